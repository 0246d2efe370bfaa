# SPDX-License-Identifier: MIT
"""Which walls this machine can have, found out without the product; and daemons of
another user, since a daemon of root's builds them in another way.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import PROGRAM, read_proc

PLAIN = 65534  # nobody: a user without any rights
NEW_USER, NEW_MOUNTS = 0x10000000, 0x20000
LANDLOCK_CREATE_RULESET = 444
CAP_SETGID, CAP_SETUID = 6, 7
LIBC = ctypes.CDLL(None, use_errno=True)

# Tier and who runs the daemon.  "root" means whoever runs the tests, where it is not root.
HOUSES = [("N", "root"), ("N", "plain"), ("U", "root"), ("L", "root"), ("L", "plain")]


def try_namespaces(uid: int) -> bool:
    """In a child, which changes nothing for anybody else."""
    child = os.fork()
    if not child:
        if uid != os.getuid():
            os.setresuid(uid, uid, uid)
        os._exit(1 if LIBC.unshare(NEW_USER | NEW_MOUNTS) else 0)
    return os.waitpid(child, 0)[1] == 0


def has_landlock() -> bool:
    return bool(LIBC.syscall(LANDLOCK_CREATE_RULESET, None, 0, 1) > 0)


def may_change_users() -> bool:
    for line in read_proc(os.getpid(), "status").decode().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return held >> CAP_SETUID & held >> CAP_SETGID & 1 == 1
    return False


def require(tier: str, who: str) -> None:
    """Skips the test in words where the machine, not the product, cannot have it."""
    if who == "plain" and os.getuid() != 0:
        pytest.skip("only root can start a daemon of another user")
    if tier != "off" and not has_landlock():
        pytest.skip("this machine has no Landlock")
    if tier == "N" and not try_namespaces(PLAIN if who == "plain" else os.getuid()):
        pytest.skip("this machine allows no user namespaces")
    if tier == "U" and not may_change_users():
        pytest.skip("no rights here to change users (CAP_SETUID, CAP_SETGID)")


def walls(tier: str) -> str:
    return "off" if tier == "off" else f"require:{tier}"


@contextlib.contextmanager
def home_of(who: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A home and options for a Daemon of this user.  pytest's own directories are closed to
    others, and in tier U each kernel is another user.
    """
    top = Path(tempfile.mkdtemp(prefix="v", dir=tempfile.gettempdir()))
    try:
        top.chmod(0o755)
        home, runtime = top / "home", top / "run"
        options: dict[str, Any] = {"runtime": runtime}
        for made, mode in (home, 0o711), (runtime, 0o711):
            made.mkdir()
            made.chmod(mode)
            if who == "plain":
                os.chown(made, PLAIN, PLAIN)
        if who == "plain":
            options["program"] = top / "program"
            write_program(top / "program")
        yield home, options
    finally:
        shutil.rmtree(top, ignore_errors=True)


def write_program(path: Path) -> None:
    """The daemon, as somebody else."""
    path.write_text(
        f"#!/bin/sh\nexec setpriv --reuid={PLAIN} --regid={PLAIN} --clear-groups"
        f' -- "{PROGRAM}" "$@"\n'
    )
    path.chmod(0o755)
