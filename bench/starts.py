# SPDX-License-Identifier: MIT
"""How soon there is an answer when there is no kernel."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import Daemon, wait_until
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from peers import PYTHON, Connection, clean_environment
from table import Section

ROUNDS = 10


class Starts:
    """One of each, in turn."""

    def __init__(self, daemon: Daemon, place: Path) -> None:
        self.daemon, self.place = daemon, place
        self.users = 0
        self.connection = Connection(daemon.port)
        self.connection.initialize(**self.named("start"))

    def named(self, user: str) -> dict[str, str]:
        return {"X_User_ID": user, "X_Vivarium_Proxy_Secret": self.daemon.secret}

    def run(self, user: str) -> bytes:
        request = self.connection.cell("pass", **self.named(user))
        _, body = self.connection.exchange(request)
        assert b'"isError":false' in body, body
        return body

    def python(self, code: str) -> float:
        start = time.perf_counter()
        subprocess.run([PYTHON, "-c", code], env=clean_environment(), check=True, cwd=self.place)
        return time.perf_counter() - start

    def cold(self) -> float:
        """The first call of a workspace."""
        self.users += 1
        start = time.perf_counter()
        self.run(f"cold-{self.users}")
        took = time.perf_counter() - start
        self.end_kernel()
        return took

    def end_kernel(self) -> None:
        request = self.connection.cell("exit()", **self.named(f"cold-{self.users}"))
        self.connection.exchange(request)
        wait_until(lambda: self.daemon.health()["kernels"] == 0, 20)

    def after_kill(self) -> float:
        """kill -9, and at once a call."""
        self.run("start")
        pid = self.daemon.kernel_pid()
        start = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        body = self.run("start")
        took = time.perf_counter() - start
        assert b"killed by signal 9" in body, body
        request = self.connection.cell("exit()", **self.named("start"))
        self.connection.exchange(request)
        wait_until(lambda: self.daemon.health()["kernels"] == 0, 20)
        return took

    def stock(self) -> float:
        """jupyter_client with the stock kernel: start, ready, one cell."""
        manager = KernelManager()
        argv = [PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        manager._kernel_spec = KernelSpec(argv=argv, language="python", display_name="stock")
        start = time.perf_counter()
        manager.start_kernel(
            env=clean_environment(), cwd=str(self.place), stderr=subprocess.DEVNULL
        )
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        assert client.execute_interactive("pass", timeout=60)["content"]["status"] == "ok"
        took = time.perf_counter() - start
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        return took


def measure(daemon: Daemon) -> Section:
    section = Section(
        "From nothing to an answer", ["", "median", "lowest", "highest", "against the stock start"]
    )
    with tempfile.TemporaryDirectory() as made:
        starts = Starts(daemon, Path(made))
        what: dict[str, Callable[[], float]] = {
            "`python -c pass`": lambda: starts.python("pass"),
            "`python -c 'import ipykernel.kernelapp'`": lambda: starts.python(
                "import ipykernel.kernelapp"
            ),
            "stock `jupyter_client.KernelManager`: start, ready, `pass`": starts.stock,
            "vivarium: first call of a workspace, `pass`": starts.cold,
            "vivarium: `kill -9` of the kernel, the next call, `pass`": starts.after_kill,
        }
        times: dict[str, list[float]] = {name: [] for name in what}
        for i in range(ROUNDS + 1):
            for name, run in what.items():
                took = run()
                if i:  # the first fills the page cache
                    times[name].append(took)
        starts.connection.close()
    stock = statistics.median(times["stock `jupyter_client.KernelManager`: start, ready, `pass`"])
    for name, found in times.items():
        middle = statistics.median(found)
        section.row(
            name,
            f"{middle:.2f} s",
            f"{min(found):.2f} s",
            f"{max(found):.2f} s",
            f"{middle / stock:.2f}",
        )
    section.notes.append(f"{ROUNDS} of each in turn, after one to fill the page cache.")
    return section
