# SPDX-License-Identifier: MIT
"""What kernel A can do to B and to the manager, with no walls and in each tier."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from conftest import any_python
from probes.kit import REGISTRY
from tiers import HOUSES, home_of, require, walls
from world import Verdict, world

PROBES_MIN = 110
CROSSINGS_MIN = 60  # without walls: else the probes prove nothing
RESIDUE_MAX = {"N": 0, "U": 0, "L": 12}


def table(verdicts: list[Verdict]) -> str:
    return "\n" + "\n".join(str(one) for one in verdicts)


def attacked(tier: str, who: str, tmp_path: Path) -> tuple[list[Verdict], dict[str, str]]:
    require(tier, who)
    env = {
        "VIVARIUM_PYTHON": str(any_python()),
        "VIVARIUM_WALLS": walls(tier),
        "VIVARIUM_NETWORK": "host" if tier == "off" else "none",
    }
    with home_of(who, tmp_path) as (home, options), world(home, env, **options) as made:
        return list(made.attack().values()), made.missing


@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", ["root", "plain"])
def test_without_walls_the_probes_cross(who: str, tmp_path: Path) -> None:
    verdicts, missing = attacked("off", who, tmp_path)
    counts = Counter(verdict.word for verdict in verdicts)
    assert missing == {}
    assert len(REGISTRY) >= PROBES_MIN
    assert not [one.probe.name for one in verdicts if one.word.startswith(("broke", "killed"))]
    assert counts["crossed"] >= CROSSINGS_MIN, table(verdicts)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("tier", "who"), HOUSES)
def test_the_walls_hold(tier: str, who: str, tmp_path: Path) -> None:
    verdicts, _ = attacked(tier, who, tmp_path)
    crossed = [one for one in verdicts if one.word in ("crossed", "open")]
    unwanted = [one for one in verdicts if not one.is_wanted(tier)]
    assert not unwanted, table(unwanted)
    # What may be left is written down where its probe is.
    assert len(crossed) <= RESIDUE_MAX[tier], table(crossed)
