# SPDX-License-Identifier: MIT
"""What the soaked daemon has when it rests: to the descriptor, the process and the byte."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Protocol

from harness import REPO, Daemon, children_of, exchange, is_alive, read_proc, wait_until
from soak_player import Player

REST_S = 45  # for what goes on by itself after the last answer
# Bytes of the state directory: in each workspace 20 generations of a small namespace; the
# journal starts anew at 256 KB.
STATE_MAX = 64 << 20
# The heap may grow by so much between two rests: once, and for each move that was played.
HEAP_ONCE, HEAP_PER_MOVE = 64 << 10, 20


class World(Protocol):
    """What a look at the daemon needs of the soak around it."""

    daemon: Daemon
    players: list[Player]

    def check(self, ok: bool, words: str) -> bool: ...
    def say(self, words: str) -> None: ...
    def moves_played(self) -> int: ...


class Heap:
    """Bytes that the daemon has allocated and not freed (soak_heap.c)."""

    def __init__(self, place: Path) -> None:
        self.library, self.file = place / "soak_heap.so", place / "heap"
        source = REPO / "tests/soak_heap.c"
        command: list[str | Path] = ["cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o"]
        subprocess.run([*command, self.library, source], check=True)

    def environment(self) -> dict[str, str]:
        """For a daemon that begins; the count starts at 0."""
        self.file.write_bytes(bytes(8))
        return {
            "SOAK_HEAP": str(self.file),
            "LD_PRELOAD": str(self.library),
            "ASAN_OPTIONS": "quarantine_size_mb=8:verify_asan_link_order=0",
        }

    def live(self) -> int:
        """0 in a build without AddressSanitizer."""
        return int(struct.unpack("q", self.file.read_bytes())[0])


class Rest:
    """Knows what an empty daemon, a workspace and a kernel have, and compares."""

    def __init__(self, world: World, heap: Heap) -> None:
        self.world, self.heap = world, heap
        self.per_workspace = self.per_kernel = self.at_start = 0
        self.first: tuple[int, int] | None = None  # heap and moves at this daemon's first rest

    def health(self) -> dict[str, int]:
        found: dict[str, int] = exchange(self.world.daemon.port, "GET", "/health").json()
        return found

    def kernels(self) -> int:
        return self.health()["kernels"]

    def supervisors(self) -> list[int]:
        return [
            pid
            for pid in children_of(self.world.daemon.pid)
            if b"vivarium-supervisor" in read_proc(pid, "cmdline") and is_alive(pid)
        ]

    def fds(self) -> int:
        """Once the connections have closed and the count stands still."""
        history = [-1] * 20

        def still() -> bool:
            history.append(self.world.daemon.fds())
            return len(set(history[-20:])) == 1

        wait_until(still, 30, "a steady number of descriptors")
        return history[-1]

    def learn(self) -> None:
        """Descriptors of an empty daemon, and those that a workspace and a kernel add."""
        one, two = self.world.players[:2]
        one.begin()
        one.quick()  # what is made once, with the first kernel, is no workspace's cost
        one.run("exit()")
        wait_until(lambda: self.kernels() == 0, 30)
        before = self.fds()
        two.begin()
        after = self.fds()
        two.quick()
        self.per_kernel = self.fds() - after
        self.per_workspace = after - before
        self.at_start = before - self.per_workspace
        one.held = -1
        self.world.say(
            f"descriptors: {self.at_start}, {self.per_workspace} a workspace, "
            f"{self.per_kernel} a kernel"
        )

    def look(self) -> None:
        """All answers are out, nobody plays: exactly the kernels' things are there."""
        daemon, wanted, found = self.world.daemon, (0, 0, 0, 0), (0, 0, 0, 0)

        def is_exact() -> bool:
            nonlocal wanted, found
            health = self.health()
            kernels = health["kernels"]
            fds = self.at_start + health["workspaces"] * self.per_workspace
            wanted = (0, fds + kernels * self.per_kernel, kernels, kernels)
            supervisors = self.supervisors()
            children = len(daemon.children())
            found = (health["calls"], daemon.fds(), len(supervisors), children)
            return wanted == found

        try:
            wait_until(is_exact, REST_S)
            self.world.check(True, "")
        except AssertionError:
            words = f"calls, descriptors, supervisors, children are {found}, not {wanted}"
            left = sorted(os.readlink(f) for f in Path(f"/proc/{daemon.pid}/fd").iterdir())
            self.world.check(False, f"at rest, {words}: {left}")

    def look_without_kernels(self, idle_s: float) -> None:
        """The same when its kernels have been stopped as idle: then nothing else is left."""
        daemon, check = self.world.daemon, self.world.check
        try:
            wait_until(lambda: self.kernels() == 0, idle_s + REST_S, "all kernels stopped")
        except AssertionError as error:
            check(False, f"at rest: {error}")
            return
        self.look()
        left = {pid: read_proc(pid, "cmdline") for pid in daemon.family()}
        check(not left, f"processes without a kernel: {left}")
        own = ("lock", "identity")  # the daemon's
        left_there = [
            str(path)
            for root in daemon.runtime_dirs()
            for path in root.iterdir()
            if path.name not in own
        ]
        check(not left_there, f"runtime files are left: {left_there}")
        state = sum(path.stat().st_size for path in daemon.state.rglob("*"))
        check(state < STATE_MAX, f"the state directory has {state} bytes")
        errors = re.findall(r"^\S+ error .*", daemon.log(), re.MULTILINE)
        check(not errors, f"logged as errors: {errors[:5]}")
        self.look_at_heap()

    def look_at_heap(self) -> None:
        live, moves = self.heap.live(), self.world.moves_played()
        if live <= 0:
            self.world.say("heap: not counted in this build")
        elif self.first is None:
            self.first = live, moves
            self.world.say(f"heap: {live} bytes at the first rest")
        else:
            grown, played = live - self.first[0], moves - self.first[1]
            limit = HEAP_ONCE + HEAP_PER_MOVE * played
            words = f"heap: {live} bytes, {grown:+} in {played} moves (up to {limit:+})"
            self.world.say(words)
            self.world.check(grown <= limit, f"grew: {words}")

    def fill(self, kernels: int) -> None:
        """As many kernels as may live can be had: none that ended is still counted."""
        for player in self.world.players[:kernels]:
            player.quick_for_sure()
        self.world.players[kernels].refused_for_sure("VIVARIUM_MAX_KERNELS")
