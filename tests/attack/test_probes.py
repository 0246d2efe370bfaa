# SPDX-License-Identifier: MIT
"""What kernel A can do to B and to the manager, with no walls and in each tier."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import any_python
from probes.kit import REGISTRY
from tiers import HOUSES, home_of, require, walls
from world import Verdict, world

PROBES_MIN = 110
CROSSINGS_MIN = 60  # without walls: else the probes prove nothing
# Kinds of things that may be left, each written down where its probes are ("leaves").
KINDS_LEFT_MAX = {"N": 0, "U": 1, "L": 2}


def table(verdicts: list[Verdict]) -> str:
    return "\n" + "\n".join(str(one) for one in verdicts)


def attacked(tier: str, who: str, network: str) -> list[Verdict]:
    require(tier, who)
    env = {
        "VIVARIUM_PYTHON": str(any_python()),
        "VIVARIUM_WALLS": walls(tier),
        "VIVARIUM_NETWORK": network,
    }
    with home_of(who) as (home, options), world(home, env, **options) as made:
        assert made.missing == {}
        verdicts = list(made.attack().values())
    broken = [one for one in verdicts if one.word.startswith(("broke", "killed"))]
    assert not broken, table(broken)
    return verdicts


@pytest.mark.timeout(120)
@pytest.mark.parametrize("who", ["root", "plain"])
def test_without_walls_the_probes_cross(who: str) -> None:
    verdicts = attacked("off", who, "host")
    counts = Counter(verdict.word for verdict in verdicts)
    assert len(REGISTRY) >= PROBES_MIN
    assert counts["crossed"] >= CROSSINGS_MIN, table(verdicts)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("network", ["none", "host"])
@pytest.mark.parametrize(("tier", "who"), HOUSES)
def test_the_walls_hold(tier: str, who: str, network: str) -> None:
    verdicts = attacked(tier, who, network)
    unwanted = [one for one in verdicts if not one.is_wanted(tier, network)]
    assert not unwanted, table(unwanted)
    left = [one for one in verdicts if one.is_crossing() and tier in one.probe.leaves]
    kinds = {one.probe.leaves[tier] for one in left}
    assert len(kinds) <= KINDS_LEFT_MAX[tier], table(left)
