# SPDX-License-Identifier: MIT
"""Characters of code for one chart: with vivarium_charts, and with matplotlib alone.

usage: bench/charts.py, with an interpreter that has matplotlib and pandas

Both programs get the same frame, with the texts that statistics offices deliver, and have to
come to the same picture: that is checked, or the comparison would mean nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Section

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
GOAL = 20
NAME = "unit-labour-costs-1995-100"
APART = 0.1  # of 255, on average, that the pictures may differ

DATA = """
import pandas as pd
years = [str(1995 + i) for i in range(26)]
de = [f"{100 + i * 0.7 + (i % 5) * 0.4:.1f}" for i in range(26)]
fr = [f"{100 + i * 1.1 - (i % 4) * 0.5:.1f}" for i in range(26)]
de[3], de[7], fr[4], fr[5], fr[25] = "NA", "106.2p", ":", "n/a", "127.0 (e)"
df = pd.DataFrame({"year": years, "de": de, "fr": fr})
"""


def program(name: str) -> str:
    return (HERE / "charts" / f"{name}.txt").read_text().strip()


def draw_both() -> dict[str, float]:
    """How far the pictures are apart."""
    sys.path += [str(ROOT / "pyside"), str(ROOT / "tests/e2e")]
    from chart_pictures import distance  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name in ("helper", "plain"):
            exec(compile(DATA + program(name), name, "exec"), {})
        apart: dict[str, float] = distance(Path(f"{NAME}.png"), Path(f"{NAME}-2.png"))
        os.chdir(ROOT)
    return apart


def measure(python: str) -> Section:
    drawn = subprocess.run([python, __file__, "draw"], capture_output=True, text=True, check=True)
    apart = json.loads(drawn.stdout)
    helper, plain = program("helper"), program("plain")
    bare = "\n".join(line.strip() for line in plain.splitlines())
    call = helper.partition("\n")[2]
    section = Section("Characters of code for a chart", ["", "characters", "times fewer"])
    section.row("matplotlib alone", f"{len(plain):,}", "1")
    section.row("vivarium_charts, with its import", f"{len(helper)}", ratio(plain, helper))
    section.row("vivarium_charts, each further chart", f"{len(call)}", ratio(plain, call))
    section.notes.append(
        f"Without its indentation and blank ends the first has {len(bare):,}. The pictures "
        f"differ by {apart['mean']:.2f} of 255 on average, sides by {apart['stretch']:.1%}."
    )
    same = apart["mean"] <= APART and apart["stretch"] < 0.01
    section.goal(f"at least {GOAL} times fewer", same and len(plain) >= GOAL * len(helper))
    return section


def ratio(plain: str, other: str) -> str:
    return f"{len(plain) / len(other):.1f}"


def main() -> int:
    if sys.argv[1:] == ["draw"]:
        print(json.dumps(draw_both()))
        return 0
    words = measure(sys.executable).markdown()
    print(words)
    return "**missed**" in words


if __name__ == "__main__":
    sys.exit(main())
