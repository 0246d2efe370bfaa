# SPDX-License-Identifier: MIT
"""A soak: twenty workspaces at random, with kills and restarts, for SOAK_MINUTES.

environment: SOAK_MINUTES (30), SOAK_SEED (random; printed), SOAK_BUILD (build-asan)

Checks every answer against what may come (soak_player.py), and the daemon against its
own past: memory, descriptors and processes stay flat while it lives; when it rests
(soak_rest.py) it has exactly what its kernels need, without kernels nothing but its heap
of before, and as many kernels as ever can be had; nothing is left when it has ended.
Prints each fault as it is found and ends with "N passed, N failed".
"""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from harness import REPO, Daemon, children_of, resident_kb, wait_until
from soak_player import PROXY_SECRET, Player, play
from soak_rest import Heap, Rest

PYTHON = REPO / ".venv/bin/python"
WORKSPACES = 20
THREADS = 5  # each plays its own workspaces, so their cells overlap
PAUSE_S = 0.5  # on average, between two moves of a thread
BLOW_EVERY_S = 7.0  # on average, a kernel or supervisor is killed
LIFE_S = 75.0  # of a daemon, but for the one that lives half of the time
IDLE_S = 25  # VIVARIUM_IDLE_TIMEOUT
KEEP_S = 20  # of answers, for who comes back: a rest is to have none
MAX_KERNELS = 18  # two less than there are workspaces
SPELL_S = 300.0  # of play, between two long rests of the daemon that lives long
WARM_UP_S = 25
# The last quarter's median may exceed the first's by so much.  The sanitizer keeps freed
# memory for a while (8 MB, set below); kernels come and go between two samples.
TOLERANCE = {"memory kB": (0.15, 12_000), "other descriptors": (0.0, 12), "other processes": (0, 6)}


@dataclass
class Sample:
    at: float
    values: dict[str, float]


class Soak:
    """The world of the players (soak_player.World)."""

    def __init__(self, home: Path, build: Path, seed: int, minutes: float) -> None:
        self.home, self.program, self.seconds = home, build / "vivarium", minutes * 60
        self.rng = random.Random(seed)
        self.runtime = Path(tempfile.mkdtemp(prefix="v", dir=tempfile.gettempdir()))
        self.lock = threading.Lock()
        self.passed = self.failed = 0
        self.moves: Counter[str] = Counter()
        self.blows: Counter[str] = Counter()
        self.samples: list[Sample] = []
        self.port, self.generation = 0, 0
        self.restarting = self.killed_before = self.ended = False
        self.paused_at = -1e9
        self.may_play = threading.Event()
        self.playing = 0
        self.began = time.monotonic()
        self.players = [
            Player(self, f"user-{i}", random.Random(self.rng.random())) for i in range(WORKSPACES)
        ]
        self.heap = Heap(home)
        self.daemon = self.begin_daemon()
        self.look = Rest(self, self.heap)

    def check(self, ok: bool, words: str) -> bool:
        with self.lock:
            self.passed += ok
            self.failed += not ok
        if not ok:
            self.say(f"FAULT (daemon {self.generation}): {words}")
        return ok

    def say(self, words: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {words}", flush=True)

    # ---- the daemon ----

    def begin_daemon(self) -> Daemon:
        env = {
            "VIVARIUM_USER_HEADER": "X-User-ID",
            "VIVARIUM_PROXY_SECRET": PROXY_SECRET,
            "VIVARIUM_IDLE_TIMEOUT": str(IDLE_S),
            "VIVARIUM_MAX_KERNELS": str(MAX_KERNELS),
            "VIVARIUM_REPLAY_KEEP": str(KEEP_S),
            "VIVARIUM_PORT": str(self.port),  # the same again, as a restarted service has it
            "VIVARIUM_PYTHON": str(PYTHON if PYTHON.exists() else "/usr/bin/python3"),
            **self.heap.environment(),
        }
        daemon = Daemon(self.home, env=env, runtime=self.runtime, program=self.program)
        self.port = daemon.port
        return daemon

    def moves_played(self) -> int:
        return sum(self.moves.values())

    def restart(self, how: signal.Signals) -> None:
        self.restarting = True
        old = self.daemon
        try:
            if how == signal.SIGKILL:
                old.kill()
                old.check_log()
                old.check_no_family(10)
            else:
                old.stop()
            self.check(True, "")
        except AssertionError as error:
            self.check(False, f"ending daemon {self.generation} by {how.name}: {error}")
        self.killed_before = how == signal.SIGKILL
        self.daemon = self.begin_daemon()
        self.look.first = None
        self.generation += 1
        self.restarting = False
        self.say(f"daemon {self.generation} (after {how.name})")

    # ---- what is done to it ----

    def blow(self) -> None:
        """Kill a kernel or a supervisor, or stop the daemon for a moment."""
        what = self.rng.choice(("kernel", "kernel", "supervisor", "pause"))
        self.blows[what] += 1
        if what == "pause":
            self.paused_at = time.monotonic()
            self.daemon.process.send_signal(signal.SIGSTOP)
            threading.Event().wait(0.7)
            self.daemon.process.send_signal(signal.SIGCONT)
            return
        supervisors = self.look.supervisors()
        if not supervisors:
            return
        target = self.rng.choice(supervisors)
        kernels = children_of(target)
        if not kernels:
            return
        try:
            name = Path(os.readlink(f"/proc/{kernels[0]}/cwd")).name
        except OSError:
            return
        for player in self.players:
            if player.name == name:
                player.last_blow = time.monotonic()
                try:
                    os.kill(target if what == "supervisor" else kernels[0], signal.SIGKILL)
                except ProcessLookupError:
                    return

    def sample(self) -> None:
        """What is not a kernel's, so that it should not change."""
        try:
            health = self.look.health()
            streams = sum(
                stream.generation == self.generation
                for player in self.players
                for stream in list(player.streams)
            )
            fds = self.daemon.fds() - health["kernels"] * self.look.per_kernel - streams
            fds -= health["workspaces"] * self.look.per_workspace
            processes = len(children_of(self.daemon.pid)) - health["kernels"]
        except OSError:
            return
        values = {
            "memory kB": float(resident_kb(self.daemon.pid)),
            "other descriptors": float(fds),
            "other processes": float(processes),
        }
        self.samples.append(Sample(time.monotonic(), values))

    def judge_samples(self) -> None:
        """First quarter against last, of one daemon's life after its warm-up."""
        begin = self.samples[0].at + WARM_UP_S if self.samples else 0.0
        kept = [sample for sample in self.samples if sample.at > begin]
        self.samples = []
        if len(kept) < 40:
            return
        quarter = len(kept) // 4
        for name, (share, allowance) in TOLERANCE.items():
            first = statistics.median(s.values[name] for s in kept[:quarter])
            last = statistics.median(s.values[name] for s in kept[-quarter:])
            limit = first * (1 + share) + allowance
            life = kept[-1].at - kept[0].at
            words = f"{name}: {first:g} -> {last:g} in {life:.0f} s (up to {limit:g})"
            self.say(words)
            self.check(last <= limit, f"grew: {words}")

    # ---- threads ----

    def work(self, index: int) -> None:
        mine = self.players[index::THREADS]
        rng = random.Random(self.rng.random())
        while not self.ended:
            if not self.may_play.wait(0.5):
                continue
            with self.lock:
                self.playing += 1
            try:
                # One of them rests at a time, so that its kernel is stopped as idle.
                resting = int((time.monotonic() - self.began) / (IDLE_S + 10)) % len(mine)
                player = rng.choice([p for i, p in enumerate(mine) if i != resting])
                name = play(player)
                with self.lock:
                    self.moves[name] += 1
            except Exception as error:  # a fault in an answer's form, or of ours
                self.check(False, f"{player.name}: {error!r}")
            finally:
                with self.lock:
                    self.playing -= 1
            time.sleep(rng.expovariate(1 / PAUSE_S))

    def live(self, seconds: float) -> None:
        """Play against one daemon, then let it rest and look."""
        end = time.monotonic() + seconds
        next_blow = time.monotonic() + self.rng.expovariate(1 / BLOW_EVERY_S)
        self.may_play.set()
        while time.monotonic() < end:
            if time.monotonic() > next_blow:
                self.blow()
                next_blow = time.monotonic() + self.rng.expovariate(1 / BLOW_EVERY_S)
            self.check(self.daemon.process.poll() is None, "the daemon died")
            if self.daemon.process.poll() is not None:
                break
            self.sample()
            time.sleep(1)

    def rest(self, *, long: bool = False) -> None:
        """long: until the kernels have gone, too."""
        self.may_play.clear()
        wait_until(lambda: self.playing == 0, 400, "the players stop")
        for player in self.players:
            player.close()
        self.look.look()
        if long:
            self.look.look_without_kernels(IDLE_S)

    def live_long(self, seconds: float) -> None:
        """In spells, with a long rest after each."""
        spells = max(2, round(seconds / SPELL_S))
        for _ in range(spells):
            self.live(max(30.0, seconds / spells - IDLE_S - 5))
            self.rest(long=True)
        self.judge_samples()
        self.look.fill(MAX_KERNELS)

    def run(self) -> None:
        self.look.learn()
        for player in self.players:  # so that all workspaces are there from the start
            player.begin()
            player.tool("list_files")
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            end = self.began + self.seconds
            self.live_long(self.seconds / 2)
            while (left := end - time.monotonic()) > 15:
                self.restart(signal.SIGKILL if self.generation % 2 else signal.SIGTERM)
                self.live(min(LIFE_S, left))
                self.judge_samples()
                if self.generation % 3 == 0:  # the others end in the middle of their work
                    self.rest()
            self.rest(long=True)
        finally:
            self.ended = True
            for thread in threads:
                thread.join()
        try:
            self.daemon.stop()
            self.check(True, "")
        except AssertionError as error:
            self.check(False, f"the last end: {error}")

    def report(self) -> None:
        ends: Counter[str] = Counter()
        for player in self.players:
            ends.update(player.outcomes)
        self.say(f"moves: {dict(self.moves.most_common())}")
        self.say(f"cells by end: {dict(ends.most_common())}; blows: {dict(self.blows)}")


def main() -> int:
    """Play, report, and say whether anything failed."""
    minutes = float(os.environ.get("SOAK_MINUTES", "30"))
    seed = int(os.environ.get("SOAK_SEED") or secrets.randbelow(10**6))
    build = REPO / os.environ.get("SOAK_BUILD", "build-asan")
    print(f"soak: {minutes:g} minutes, seed {seed}, {build.name}", flush=True)
    home = Path(tempfile.mkdtemp(prefix="vivarium-soak-"))
    soak = Soak(home, build, seed, minutes)
    try:
        soak.run()
    except Exception as error:
        soak.check(False, f"the soak itself: {error!r}")
        raise
    finally:
        soak.ended = True
        soak.daemon.clean_up()
        soak.report()
        if soak.failed:
            print(f"logs are kept in {home}")
        else:
            shutil.rmtree(home)
        print(f"{soak.passed} passed, {soak.failed} failed", flush=True)
    return soak.failed > 0


if __name__ == "__main__":
    sys.exit(main())
