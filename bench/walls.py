# SPDX-License-Identifier: MIT
"""What the walls around kernels cost, and whether a busy kernel slows another down."""

from __future__ import annotations

import contextlib
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import Daemon, children_of, read_proc, wait_until
from peers import Connection
from table import Section

ROUNDS, CELLS = 6, 5
STARTS = 10
BURNERS = 8
WORK = "sum(i * i for i in range(4_000_000))"  # some tenths of a second
BURN = f"""
import os, signal
burners = []
for _ in range({BURNERS}):
    if not (pid := os.fork()):
        while True: pass
    burners.append(pid)
"""
CALM = "for pid in burners: os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)"
USER = "VIVARIUM_USER_HEADER"
start_of_daemon = Callable[..., contextlib.AbstractContextManager[Daemon]]


class Users:
    """One connection; each call names its user."""

    def __init__(self, daemon: Daemon) -> None:
        self.secret = daemon.secret
        self.connection = Connection(daemon.port)
        self.connection.initialize(**self.named("first"))

    def named(self, user: str) -> dict[str, str]:
        return {"X_User_ID": user, "X_Vivarium_Proxy_Secret": self.secret}

    def run(self, user: str, code: str) -> float:
        """The seconds that it took."""
        request = self.connection.cell(code, **self.named(user))
        start = time.perf_counter()
        _, body = self.connection.exchange(request)
        took = time.perf_counter() - start
        assert b'"isError":false' in body, body
        return took


def alone_and_beside(daemon: Daemon) -> tuple[list[float], list[float]]:
    """Times of a cell while another kernel rests, and while it burns, in turn."""
    users = Users(daemon)
    alone: list[float] = []
    beside: list[float] = []
    users.run("calm", WORK)
    for _ in range(ROUNDS):
        alone += [users.run("calm", WORK) for _ in range(CELLS)]
        users.run("busy", BURN)
        beside += [users.run("calm", WORK) for _ in range(CELLS)]
        users.run("busy", CALM)
    users.connection.close()
    return alone, beside


def without_groups(program: Path, place: Path) -> Path:
    """The program where no control group can be seen."""
    wrapper = place / "without-groups"
    hide = 'umount -R -l /sys/fs/cgroup; exec "$0" "$@"'
    wrapper.write_text(f"#!/bin/sh\nexec unshare -m sh -c '{hide}' {program} \"$@\"\n")
    wrapper.chmod(0o755)
    return wrapper


def measure_burning(start: start_of_daemon, program: Path, place: Path) -> Section:
    section = Section(
        f"A cell while another kernel burns {BURNERS} processes",
        ["", "alone", "beside it", "times as long"],
    )
    kinds = {
        "equal shares, by control groups": program,
        "no control groups": without_groups(program, place),
    }
    ratios = []
    for name, kind in kinds.items():
        with start(place / name.replace(" ", "-"), kind, **{USER: "X-User-ID"}) as daemon:
            if "no control" not in name and not daemon.log_contains("(control groups"):
                section.notes.append("No control groups can be made here.")
            alone, beside = map(statistics.median, alone_and_beside(daemon))
        ratios.append(beside / alone)
        section.row(name, f"{alone:.2f} s", f"{beside:.2f} s", f"{ratios[-1]:.2f}")
    section.notes.append(
        f"A cell that computes in one thread; the median of {ROUNDS * CELLS}, the two kinds of "
        f"times in turn."
    )
    section.goal("less than 1.2 times as long", ratios[0] < 1.2)
    return section


def end_kernels(daemon: Daemon, users: Users, user: str) -> None:
    request = users.connection.cell("exit()", **users.named(user))
    users.connection.exchange(request)
    wait_until(lambda: daemon.health()["kernels"] == 0, 20)


def memory_kb(pid: int, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+)".encode(), read_proc(pid, "smaps_rollup"), re.MULTILINE)
    return int(found[1]) if found else 0


def helpers(daemon: Daemon) -> Iterator[tuple[str, int]]:
    """The small processes of the kernel that was started last."""
    names = {b"viv-supervisor\n": "supervisor", b"viv-forward\n": "forwarder"}
    for outer in children_of(daemon.pid):
        if read_proc(outer, "comm") == b"viv-supervisor\n":
            yield "supervisor", outer
            for inner in children_of(outer):
                name = names.get(read_proc(inner, "comm"))
                if name:
                    yield "process 1" if name == "supervisor" else name, inner


def measure_starts(start: start_of_daemon, program: Path, place: Path) -> Section:
    """The proxy need not be there: nobody connects."""
    section = Section(
        "What walls cost a kernel",
        ["", "first call, `pass`", "against none", "memory of its helpers"],
    )
    kinds = {
        "no walls": {"VIVARIUM_WALLS": "off", "VIVARIUM_NETWORK": "host"},
        "tier L": {"VIVARIUM_WALLS": "require:L", "VIVARIUM_NETWORK": "host"},
        "tier N": {"VIVARIUM_WALLS": "require:N", "VIVARIUM_NETWORK": "none"},
        "tier N, forwarder to a proxy": {
            "VIVARIUM_WALLS": "require:N",
            "VIVARIUM_NETWORK": "proxy",
            "http_proxy": "http://127.0.0.1:9",
        },
    }
    times: dict[str, list[float]] = {name: [] for name in kinds}
    memory: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        daemons = {
            name: stack.enter_context(
                start(place / f"starts{i}", program, **{USER: "X-User-ID"}, **env)
            )
            for i, (name, env) in enumerate(kinds.items())
        }
        users = {name: Users(daemon) for name, daemon in daemons.items()}
        for i in range(STARTS + 1):
            for name, daemon in daemons.items():
                took = users[name].run(f"u{i}", "pass")
                if i:  # the first fills the page cache
                    times[name].append(took)
                memory[name] = ", ".join(
                    f"{what} {memory_kb(pid, 'Rss')} ({memory_kb(pid, 'Pss')})"
                    for what, pid in helpers(daemon)
                )
                end_kernels(daemon, users[name], f"u{i}")
        for each in users.values():
            each.connection.close()
    first = statistics.median(times["no walls"])
    for name, found in times.items():
        middle = statistics.median(found)
        section.row(name, f"{middle * 1e3:.0f} ms", f"{middle / first:.3f}", memory[name])
    section.notes.append(
        f"The median of {STARTS}, in turn. Memory in KB: resident (its part of what is shared)."
    )
    return section


def measure(start: start_of_daemon, program: Path, place: Path) -> Iterator[Section]:
    place.mkdir()
    yield measure_burning(start, program, place)
    yield measure_starts(start, program, place)
