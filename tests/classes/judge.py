# SPDX-License-Identifier: MIT
"""Runs in the interpreter that is judged: cases on stdin, one verdict a line on stdout.

This process forks two for each case.  A runs the setup in a shell, dumps its namespace to a
file and evaluates the probe; B loads the file into an empty shell and evaluates it again.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import random
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from json import dumps, loads  # by name: a case may replace them
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pyside"))

# What the judged interpreter has, the tools' may not have.
InteractiveShell: Any = importlib.import_module("IPython.core.interactiveshell").InteractiveShell
Config: Any = importlib.import_module("traitlets.config").Config
snapshot = "vivarium_kernel.snapshot"
process: Any = importlib.import_module(f"{snapshot}.process")
load: Any = importlib.import_module(f"{snapshot}.loader").load
dump: Any = importlib.import_module(f"{snapshot}.pickler").dump
tombstone: Any = importlib.import_module(f"{snapshot}.tombstone")

LIMIT_S = 90
LOOK_S = 20
SMALL = 65536
SHOWN = 400  # characters of a difference
Case = dict[str, Any]
Facts = dict[str, Any]


class File:
    """A sink that keeps everything in memory."""

    def __init__(self) -> None:
        self.stream = bytearray()
        self.buffers: list[bytes] = []

    def write(self, data: bytes, /) -> int:
        self.stream += data
        return len(data)

    def buffer(self, buffer: pickle.PickleBuffer, /) -> bool:
        with buffer.raw() as raw:
            if raw.nbytes < SMALL:
                return True
            self.buffers.append(bytes(raw))
        return False

    def give_way(self) -> None:
        pass


def in_child(work: Callable[[], Facts], limit_s: float = LIMIT_S) -> Facts:
    """What `work` returns in a process of its own, or how that process ended."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            os.setsid()
            with os.fdopen(writing, "wb") as file:
                file.write(dumps(work()).encode())
            status = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    os.close(writing)
    answer = b""
    with os.fdopen(reading, "rb", buffering=0) as file:
        while select.select([file], [], [], limit_s)[0]:
            piece = file.read(65536)
            if not piece:
                break
            answer += piece
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"end": f"hangs for {limit_s} s"}
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):  # what the case left running
        os.killpg(pid, signal.SIGKILL)
    if status or not answer:
        return {"end": f"ended with status {os.waitstatus_to_exitcode(status)}"}
    facts: Facts = loads(answer)
    return facts


def evaluate(shell: Any, probe: str | None) -> Facts:
    try:
        if probe is None:
            found = shell.user_ns.get("x")
            return {"tombstone": type(found) is tombstone.Tombstone}
        return {"repr": repr(eval(probe, shell.user_ns))}
    except tombstone.NotRestoredError as error:
        return {"tombstone": True, "error": f"{error}"[:SHOWN]}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"[:SHOWN]}


def before(shell: Any, case: Case, path: str) -> Facts:
    result = shell.run_cell(case["setup"], store_history=True)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        kind = "missing" if isinstance(error, ImportError) else "broken"
        return {kind: f"{type(error).__name__}: {error}"[:SHOWN]}
    state = random.getstate()  # a forked child would begin anew

    def look() -> Facts:
        random.setstate(state)
        return evaluate(shell, case["probe"])

    first = in_child(look, LOOK_S)
    sinks: list[File] = []

    def sink() -> File:
        sinks.append(File())
        return sinks[-1]

    dumped = dump(shell, shell.user_ns, sink, lambda _: 1)
    with open(path, "wb") as file:
        pickle.dump((dumped, bytes(sinks[-1].stream), sinks[-1].buffers), file)
    lost = [f"{each.name}: {each.what}: {each.why}" for e in dumped.entries for each in e.lost]
    then = evaluate(shell, case["probe"])
    if "end" in first:  # some thread pools do not survive a fork
        first = then
    return {"first": first, "then": then, "lost": lost}


def after(shell: Any, case: Case, path: str) -> Facts:
    with open(path, "rb") as file:
        dumped, stream, buffers = pickle.load(file)
    writable = [bytearray(each) for each in buffers]
    loaded = load(shell, stream, writable, dumped, skip=set(), begin=lambda *_: None)
    failed = [f"{each.name}: {each.what}: {each.why}" for each in loaded.failed]
    return {**evaluate(shell, case["probe"]), "failed": failed}


def judge(case: Case, a: Facts, b: Facts) -> tuple[str, str]:
    """The verdict, and what was seen."""
    for kind in ("missing", "broken"):
        if kind in a:
            return kind, a[kind]
    for facts, phase in ((a, "dumping"), (b, "loading")):
        if "end" in facts:
            return "crash", f"{phase} {facts['end']}"
    first, then = a["first"], a["then"]
    if first.get("repr") != then.get("repr"):
        return "changed", f"{first} before the dump, {then} after it"
    if case["probe"] is not None and "error" in first:
        return "broken", first["error"]
    return compare(case, first, b, "; ".join((*a["lost"], *b["failed"]))[:SHOWN])


def compare(case: Case, first: Facts, b: Facts, told: str) -> tuple[str, str]:
    if case["probe"] is None:
        return ("restored", told) if told or b["tombstone"] else ("wrong", "nothing says so")
    if b.get("repr") == first["repr"]:
        return "restored", told
    if b.get("tombstone") or told:
        return "tombstone", told or b.get("error", "")
    if "error" in b:
        return "failed", b["error"]
    return "wrong", f"{b['repr'][:SHOWN]} instead of {first['repr'][:SHOWN]}"


def settle(shell: Any, case: Case, place: str) -> Facts:
    path = os.path.join(place, "dump")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    a = in_child(lambda: before(shell, case, path))
    b = in_child(lambda: after(shell, case, path)) if os.path.exists(path) else {}
    verdict, seen = judge(case, a, b)
    return {"name": case["name"], "lib": case["lib"], "verdict": verdict, "seen": seen}


def main() -> None:
    out = os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)  # cases print
    if "--show" not in sys.argv:
        os.dup2(null, 2)
    sys.path.pop(0)
    config = Config()
    config.HistoryManager.enabled = False
    shell: Any = InteractiveShell.instance(config=config)
    sys.modules["__main__"] = shell.user_module
    os.environ["MPLBACKEND"] = "Agg"
    process.begin()
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)  # cases write files
        for line in sys.stdin:
            out.write(dumps(settle(shell, loads(line), place)) + "\n")


if __name__ == "__main__":
    main()
