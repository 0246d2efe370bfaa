# SPDX-License-Identifier: MIT
"""What kernel A can do to B and to the manager, with no walls and in each tier."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from conftest import any_python
from probes.kit import REGISTRY
from world import Verdict, world

PROBES_MIN = 110
CROSSINGS_MIN = 60  # without walls: else the probes prove nothing


def table(verdicts: dict[str, Verdict], tier: str = "") -> str:
    rows = [one for one in verdicts.values() if not tier or not one.is_wanted(tier)]
    return "\n" + "\n".join(str(row) for row in rows)


@pytest.mark.timeout(300)
def test_without_walls_the_probes_cross(tmp_path: Path) -> None:
    with world(tmp_path, {"VIVARIUM_PYTHON": str(any_python())}) as made:
        assert made.missing == {}
        verdicts = made.attack()
        counts = Counter(verdict.word for verdict in verdicts.values())
        print(table(verdicts))
        print(counts)
        assert len(REGISTRY) >= PROBES_MIN
        assert not [name for name, verdict in verdicts.items() if "broke" in verdict.word]
        assert counts["crossed"] >= CROSSINGS_MIN, table(verdicts)
