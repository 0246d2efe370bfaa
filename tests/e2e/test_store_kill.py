"""vivarium-store killed before and after every system call by which it writes: what was
kept stays, what is new is taken in the next time, and nothing half-written is believed.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from harness import BUILD

PROGRAM = BUILD / "vivarium-store"
KEY = "11" * 32
CHUNK = 65536

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="reads system call numbers of x86-64"
)

# openat mkdirat unlinkat renameat renameat2 fchmod fsync fdatasync write rename unlink link
WRITING = {257, 258, 263, 264, 316, 91, 74, 75, 1, 82, 87, 265}
TRACEME, GETREGS, SYSCALL = 0, 12, 24
ORIG_RAX = 15  # place in struct user_regs_struct

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Hash128(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


xxh = ctypes.CDLL("libxxhash.so.0")  # vivarium-store needs it too
xxh.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xxh.XXH3_128bits.restype = Hash128


def hexdigest(data: bytes) -> str:
    value = xxh.XXH3_128bits(data, len(data))
    return f"{value.high:016x}{value.low:016x}"


def spool(place: Path, generation: int, stream: bytes) -> None:
    """What a kernel leaves for a namespace with this stream."""
    names = []
    for start in range(0, len(stream), CHUNK):
        piece = stream[start : start + CHUNK]
        names.append(hexdigest(piece))
        (place / "spool" / names[-1]).write_bytes(piece)
    manifest = {
        "v": 1,
        "generation": generation,
        "cell": generation,
        "time": 1,
        "chunk_bytes": CHUNK,
        "stream": {"size": len(stream), "chunks": names},
        "buffers": [],
        "entries": [],
    }
    (place / "spool" / f"{generation}.json").write_text(json.dumps(manifest))


def jobs(place: Path, *more: dict[str, Any]) -> bytes:
    start = {
        "do": "start",
        "dir": str(place),
        "workspace": "w",
        "key": KEY,
        "keep": 2,
        "max_bytes": 0,
    }
    return b"".join(json.dumps(job).encode() + b"\n" for job in (start, *more))


def answers(place: Path, *more: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs the helper to its end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(jobs(place, *more))
        ours.shutdown(socket.SHUT_WR)
        subprocess.run([str(PROGRAM)], stdin=theirs.fileno(), check=True, timeout=20)
        theirs.close()
        text = b""
        while part := ours.recv(1 << 16):
            text += part
    return [json.loads(line) for line in text.splitlines()]


def run_until(stop: int, place: Path, *more: dict[str, Any]) -> bool:
    """Kills the helper at that entry into, or exit from, a writing call.  False: it had
    ended before."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs.fileno(), 0)
        libc.ptrace(TRACEME, 0, None, None)
        os.execve(PROGRAM, [str(PROGRAM)], {"ASAN_OPTIONS": "detect_leaks=0"})
    theirs.close()
    ours.sendall(jobs(place, *more))
    ours.shutdown(socket.SHUT_WR)
    registers = (ctypes.c_ulonglong * 27)()
    seen = 0
    with ours:
        while True:
            _, status = os.waitpid(pid, 0)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                return False
            libc.ptrace(GETREGS, pid, None, ctypes.byref(registers))
            seen += registers[ORIG_RAX] in WRITING
            if seen > stop:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return True
            libc.ptrace(SYSCALL, pid, None, None)


def streams(place: Path, generation: int) -> bytes:
    manifest = json.loads((place / "generations" / f"{generation}.json").read_text())
    return b"".join((place / "chunks" / name).read_bytes() for name in manifest["stream"]["chunks"])


def test_killed_at_any_system_call_that_writes(tmp_path: Path) -> None:
    first, second = os.urandom(3 * CHUNK), os.urandom(CHUNK + 5)
    made = tmp_path / "made"
    answers(made)  # makes the directories
    spool(made, 1, first)
    (_, kept) = answers(made, {"do": "adopt", "generation": 1})
    assert kept == {"generation": 1, "cell": 1}
    spool(made, 2, first[: 2 * CHUNK] + second)

    stop, died = 0, True
    while died:
        place = tmp_path / "place"
        shutil.copytree(made, place)
        died = run_until(stop, place, {"do": "adopt", "generation": 2})
        (_, begun) = answers(place, {"do": "begin"})
        assert begun["generation"] == 2, (stop, begun, sorted(map(str, place.rglob("*"))))
        assert "words" not in begun, (stop, begun, sorted(map(str, place.rglob("*"))))
        assert streams(place, 2) == first[: 2 * CHUNK] + second
        assert streams(place, 1) == first
        assert list((place / "spool").iterdir()) == []
        shutil.rmtree(place)
        stop += 1
    assert stop > 60, "it writes by these calls"
