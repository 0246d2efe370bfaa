# SPDX-License-Identifier: MIT
"""How a probe is written, and how a kernel runs it.  Standard library only: this text is
sent into kernel A as it is.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Facts = dict[str, Any]
TIERS = ("N", "U", "L")

# What proves that a probe crossed.
TELLS = "tells"  # it returned a secret that only the victim has
SEES = "sees"  # it returned: its own code has told the victim from nothing
CHANGES = "changes"  # the victim, looked at from outside, is no longer as it was
OPENS = "opens"  # nobody's object: a part of the system that no kernel may have

OWN = "own"  # among what is wanted: it returned, but reached only its own
LIMIT_S = 6


@dataclass(frozen=True)
class Probe:
    name: str
    room: str
    run: Callable[[Facts], object]
    proof: str
    wants: dict[str, frozenset[str]]  # by tier: names of errno, or OWN
    leaves: dict[str, str]  # by tier: it may cross, and why
    shared: bool  # with VIVARIUM_NETWORK=host it may: any program of the machine does


REGISTRY: dict[str, Probe] = {}


def probe(
    wants: str,
    *,
    proof: str = TELLS,
    leaves: dict[str, str] | None = None,
    shared: bool = False,
    **tiers: str,
) -> Callable[[Callable[[Facts], object]], Callable[[Facts], object]]:
    """wants: what every tier may answer; N="...", U="...", L="...": what that one may."""

    def register(run: Callable[[Facts], object]) -> Callable[[Facts], object]:
        room = run.__module__.rpartition(".")[2]
        by_tier = {tier: frozenset(tiers.get(tier, wants).split()) for tier in TIERS}
        assert run.__name__ not in REGISTRY, run.__name__
        name = run.__name__
        REGISTRY[name] = Probe(name, room, run, proof, by_tier, leaves or {}, shared)
        return run

    return register


# ---- what probes need of C ----

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long


def check(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def libc(function: str, *args: Any) -> int:
    ctypes.set_errno(0)
    return check(int(getattr(LIBC, function)(*args)))


def syscall(number: int, *args: Any) -> int:
    ctypes.set_errno(0)
    wide = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    return check(int(LIBC.syscall(ctypes.c_long(number), *wide)))


@contextmanager
def opened(path: str, flags: int = os.O_RDONLY) -> Iterator[int]:
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        os.close(fd)


def read_path(path: str, size: int = 1 << 16) -> str:
    with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
        return os.read(fd, size).decode("utf-8", "replace")


def write_path(path: str, text: str) -> None:
    """Into something that is there."""
    with opened(path, os.O_WRONLY | os.O_NONBLOCK) as fd:
        os.write(fd, text.encode())


def plant(directory: str, name: str) -> None:
    """A new file in somebody's directory; the tests look for files that are called so."""
    fd = os.open(f"{directory}/planted-{name}", os.O_CREAT | os.O_WRONLY, 0o666)
    os.close(fd)


def exists(real: Any, made_up: str, look: Callable[[str], object]) -> str:
    """SEES: look() fails for what is not there, so that it tells the one from the other."""
    look(real)
    try:
        look(made_up)
    except OSError:
        return "exists"
    return ""


# ---- running them ----


def name_of(error: OSError) -> str:
    if error.errno is None:
        return "TIMEOUT"
    if error.errno == errno.EOPNOTSUPP:  # one number, two names
        return "EOPNOTSUPP"
    return errno.errorcode.get(error.errno, str(error.errno))


def attempt(one: Probe, facts: Facts) -> list[str]:
    try:
        value = one.run(facts)
    except OSError as error:
        return ["denied", name_of(error), str(error)]
    except Exception:
        return ["broke", "", traceback.format_exc(limit=-3)]
    if value == "" and one.proof == SEES:
        return ["returned", "", "it could not tell"]
    return ["returned", "yes", str(value)[:100_000]]


def run_apart(one: Probe, facts: Facts) -> list[str]:
    """In a forked child: whatever a probe does to its process, the next one has a new one."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
        with os.fdopen(writing, "w") as out:
            json.dump(attempt(one, facts), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    status = os.waitpid(child, 0)[1]
    if text:
        outcome: list[str] = json.loads(text)
        return outcome
    number = os.WTERMSIG(status)
    return ["killed", signal.Signals(number).name if number else "", f"wait status {status}"]


def run_rooms(names: Iterable[str], facts: Facts) -> None:
    """Leaves what came of them in the file "outcomes": kind, errno or signal, words."""
    outcomes = {}
    for name in names:
        begun = time.monotonic()
        outcomes[name] = outcome = run_apart(REGISTRY[name], facts)
        if time.monotonic() - begun > LIMIT_S / 2:
            outcome[2] += f" [after {time.monotonic() - begun:.1f} s]"
    with open("outcomes", "w") as file:
        json.dump(outcomes, file)
