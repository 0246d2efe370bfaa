# SPDX-License-Identifier: MIT
"""What an answer costs beside its cell: the footer's names, long text, a chart."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path

from harness import Daemon
from peers import PYTHON, Connection, percentile
from table import Section

ROUNDS = 100
TEXT = 19_000  # characters, just below what is kept
NAMES = """
import time, statistics
import numpy as np, pandas as pd
for i in range(450):
    globals()[f'name_{i}'] = ['x' * i, {'a': i}, [i] * i, np.zeros((i, 2)), lambda x, y=i: x][i % 5]
for i in range(50):
    columns = [f'column_{j}' for j in range(12)]
    globals()[f'frame_{i}'] = pd.DataFrame(np.zeros((100, 12)), columns=columns)
del i, columns
"""
REPORT = f"""
def _measure():
    kernel, shell, times = get_ipython().kernel, get_ipython(), []
    for _ in range({ROUNDS}):
        start = time.thread_time()
        kernel.cells.note(shell.user_ns, shell.execution_count)
        report = kernel.namespace.report(shell.user_ns)
        times.append((time.thread_time() - start) * 1e3)
    assert len(report['vars']) + report['more_vars'] == 500, report['more_vars']
    return times
print(*_measure())
"""
CHART = """
import os
import matplotlib.pyplot as plt, numpy as np
figure, axes = plt.subplots(figsize=(16, 12), dpi=100)
for i in range(6):
    axes.plot(np.linspace(0, 10, 500), np.sin(np.linspace(0, 10, 500) + i) * i, label=f'line {i}')
axes.bar(range(10), np.arange(10) / 3, alpha=0.4); axes.legend(); axes.grid()
figure.savefig('chart.png'); plt.close()
"""


# What a Python server would do with it, without a process of its own or linear light.
PILLOW = f"""
import io, sys, time
from PIL import Image
png = open(sys.argv[1], 'rb').read()
for _ in range({ROUNDS // 4}):
    start = time.process_time()
    picture = Image.open(io.BytesIO(png)).convert('RGB')
    picture.resize((1280, 960), Image.Resampling.BICUBIC).save(io.BytesIO(), 'PNG')
    print((time.process_time() - start) * 1e3)
"""


def measure(daemon: Daemon, unsaved: Daemon, program: Path) -> Section:
    client = daemon.client()
    client.run(NAMES)
    reported = client.run(REPORT)
    assert reported.exit_code == 0, reported.text
    report = [float(word) for word in reported.data["stdout"].split()]
    unsaved.client().run(CHART)
    assert (unsaved.work / "chart.png").exists()
    cells = {
        "pass": "pass",
        "text": f"print('x' * {TEXT})",
        "chart": "os.utime('chart.png')",
    }
    connection = Connection(unsaved.port)
    connection.initialize()
    requests = {name: connection.cell(code) for name, code in cells.items()}
    times: dict[str, list[float]] = {name: [] for name in cells}
    for i in range(ROUNDS + 10):
        for name, request in requests.items():
            start = time.perf_counter()
            _, body = connection.exchange(request)
            if i >= 10:
                times[name].append((time.perf_counter() - start) * 1e3)
            assert (b'"image/png"' in body) == (name == "chart"), body[:300]
    connection.close()
    helper = helper_times(unsaved.work / "chart.png", program.with_name("vivarium-image"))
    peer = subprocess.check_output([PYTHON, "-c", PILLOW, unsaved.work / "chart.png"], text=True)
    return tell(report, helper, [float(line) for line in peer.split()], times)


def helper_times(png: Path, program: Path) -> list[float]:
    """Milliseconds of processor time that the image helper takes, from exec to exit."""
    times = []
    for _ in range(ROUNDS // 4):
        with png.open("rb") as file:
            helper = subprocess.Popen(
                [program, "1280", "3000000"],
                stdin=file,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        _, status, usage = os.wait4(helper.pid, 0)
        helper.returncode = os.waitstatus_to_exitcode(status)
        assert helper.returncode == 0
        times.append((usage.ru_utime + usage.ru_stime) * 1e3)
    return times


def tell(
    report: list[float], helper: list[float], peer: list[float], times: dict[str, list[float]]
) -> Section:
    section = Section("An answer beside its cell", ["", "median", "p95"])
    medians = {name: statistics.median(values) for name, values in times.items()}
    text, chart = (medians[name] - medians["pass"] for name in ("text", "chart"))
    rows = {
        "the footer's report on 500 names, 50 of them frames: processor time": report,
        "the image helper on a chart of 1600 x 1200: processor time": helper,
        "Pillow on it, in one process for all: processor time": peer,
        "a cell `pass`": times["pass"],
        f"a cell that prints {TEXT:,} characters": times["text"],
        "a cell that touches a chart of 1600 x 1200, which comes back as 1280 x 960": times[
            "chart"
        ],
    }
    for words, values in rows.items():
        section.row(
            words, f"{statistics.median(values):.2f} ms", f"{percentile(values, 0.95):.2f} ms"
        )
    ratio = statistics.median(helper) / statistics.median(peer)
    section.row("the image helper against Pillow", f"{ratio:.2f}", "")
    section.row("the text's difference from `pass`", f"{text:.2f} ms", "")
    section.row("the chart's difference from `pass`", f"{chart:.2f} ms", "")
    section.notes.append(
        f"{ROUNDS} of each of the three cells in turn, nothing is saved; the chart is decoded,"
        " scaled and encoded in a process of its own each time. Processor time is what counts on"
        " a machine where others work too."
    )
    section.goal("footer under 3 ms at 500 names, 50 of them frames", statistics.median(report) < 3)
    section.goal(
        "the image helper under 25 ms of processor time, half of Pillow's",
        statistics.median(helper) < 25 and ratio < 0.5,
    )
    section.goal("text under 5 ms more than `pass`", text < 5)
    section.goal("a chart of 1600 x 1200 under 25 ms more than `pass`", chart < 25)
    return section
