# SPDX-License-Identifier: MIT
"""How much of tests/data/classes.jsonl comes back in another process, as a table.

    python tests/classes/run.py [--python .venv/bin/python] [--lib numpy] [--name sqlite] [-v]

Exit status 1: less than AIM of the cases that could run was restored, or more than WRONG of
them came back silently different.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CASES = HERE.parent / "data" / "classes.jsonl"
AIM = 0.92
WRONG = 2
VERDICTS = ("restored", "tombstone", "failed", "wrong", "changed", "crash")
NOT_RUN = ("missing", "broken")  # the library is not there, or not as the case knows it
Verdict = dict[str, str]


def read_cases(lib: str = "", name: str = "") -> list[dict[str, Any]]:
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    return [each for each in cases if lib in ("", each["lib"]) and name in each["name"]]


def run(python: str, cases: list[dict[str, Any]], preload: list[str]) -> list[Verdict]:
    """One judge, which runs one case after the other."""
    command = [python, str(HERE / "judge.py"), *preload]
    judge = subprocess.run(
        command,
        input="".join(json.dumps(case) + "\n" for case in cases),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in judge.stdout.splitlines()]


def run_all(
    python: str, cases: list[dict[str, Any]], jobs: int, preload: list[str]
) -> list[Verdict]:
    verdicts: list[list[Verdict]] = [[] for _ in range(jobs)]

    def part(number: int) -> None:
        verdicts[number] = run(python, cases[number::jobs], preload)

    threads = [threading.Thread(target=part, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each for some in verdicts for each in some]


def judged(verdicts: list[Verdict]) -> list[Verdict]:
    return [each for each in verdicts if each["verdict"] not in NOT_RUN]


def falls_short(verdicts: list[Verdict]) -> str:
    """What is wrong, or ""."""
    counts = Counter(each["verdict"] for each in verdicts)
    ran = len(judged(verdicts))
    if not ran:
        return "no case could run"
    if counts["restored"] < AIM * ran:
        return f"{counts['restored']} of {ran} restored, less than {AIM:.0%}"
    if counts["wrong"] > WRONG:
        return f"{counts['wrong']} silently wrong, more than {WRONG}"
    return ""


def table(verdicts: list[Verdict]) -> str:
    ran = judged(verdicts)
    lines = [f"{'library':<14}" + "".join(f"{verdict:>11}" for verdict in VERDICTS)]
    libs = sorted({each["lib"] for each in ran}, key=lambda lib: (lib != "stdlib", lib))
    for lib in [*libs, ""]:
        counts = Counter(each["verdict"] for each in ran if lib in ("", each["lib"]))
        numbers = "".join(f"{counts[verdict] or '':>11}" for verdict in VERDICTS)
        lines.append(f"{lib or 'all ' + str(len(ran)):<14}{numbers}")
    absent = sorted({each["lib"] for each in verdicts if each["verdict"] == "missing"})
    lines.append(f"not installed: {', '.join(absent) or 'none'}")
    for each in verdicts:
        if each["verdict"] not in ("restored", "missing"):
            lines.append("{lib}.{name}: {verdict}: {seen}".format(**each))
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--lib", default="")
    options.add_argument("--name", default="")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--preload", default="", help="modules, separated by commas")
    options.add_argument("-v", "--verbose", action="store_true")
    given = options.parse_args()
    preload = [name for name in given.preload.split(",") if name]
    if given.verbose:
        preload.append("--show")
    cases = read_cases(given.lib, given.name)
    verdicts = run_all(given.python, cases, given.jobs, preload)
    print(table(verdicts))
    if given.verbose:
        print("\n".join(json.dumps(each) for each in verdicts))
    short = falls_short(verdicts)
    print(short or "good enough")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
