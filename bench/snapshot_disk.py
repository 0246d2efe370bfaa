# SPDX-License-Identifier: MIT
"""Room on the disk for a series of states, against a full copy of each."""

from __future__ import annotations

from pathlib import Path

from snapshot_room import BIG_MB, GB, MB, Room, data_size, room
from table import Section

CELLS = 20
# A hundredth of all bytes each time, and never the same ones.
CHANGES = {
    "in one place": "n = floats.size // 25\nfloats[%(cell)d * n:][:n] = rng.random(n)",
    "spread evenly": """
floats[%(cell)d::100] = rng.random(floats[%(cell)d::100].size)
octets[%(cell)d::100] += 1
frame.iloc[%(cell)d::100] = rng.random(frame.iloc[%(cell)d::100].shape)
""",
}


def used(depot: Path) -> int:
    """Bytes of the disk."""
    return sum(path.stat().st_blocks * 512 for path in depot.rglob("*") if path.is_file())


def run_changes(where: Room, code: str) -> None:
    for cell in range(CELLS):
        where.run(code % {"cell": cell})
        where.settle()


def measure(program: Path, place: Path, pickle_size: int) -> Section:
    section = Section(
        f"Saved states: the disk after {CELLS} cells that each change 1 % of {data_size(BIG_MB)}",
        ["", "states kept", "on disk", "a full copy of each", "ratio"],
    )
    sizes: dict[str, int] = {}
    for i, (words, code) in enumerate(CHANGES.items()):
        with room(place / f"disk-{i}", program, BIG_MB) as where:
            run_changes(where, code)
            states = len(where.head()["generations"])
            sizes[words] = used(where.depot())
        section.row(
            words,
            f"{states}",
            f"{sizes[words] / GB:.2f} GB",
            f"{states * pickle_size / GB:.2f} GB",
            f"{sizes[words] / (states * pickle_size):.3f}",
        )
    section.notes.append(
        "A state is kept in pieces of 1 MB: what is spread evenly is in each of them. Limits are as"
        " they come (`VIVARIUM_SNAPSHOT_KEEP`, `VIVARIUM_SNAPSHOT_MAX_BYTES`). A full copy is one"
        " pickle of the same data"
        f" ({pickle_size / GB:.2f} GB), times the states."
    )
    limit = 1.4 * BIG_MB * MB
    section.goal("in one place: under 1.4 times the data", sizes["in one place"] < limit)
    return section
