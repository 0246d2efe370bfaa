# SPDX-License-Identifier: MIT
"""What the daemon hands over: the connection on descriptor 3, a socket for reports on 4 and,
where snapshots are kept, a pipe with its orders on 5.

Descriptor 3 is read whole and closed, so the key is never in argv, environment or a file.
"""

import json
import os
import socket
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

CONNECTION_FD = 3
REPORT_FD = 4
ORDERS_FD = 5
NAMES_MAX = 400  # bytes of names in one report
NOTICE_S = 0.05  # in which a message reaches the daemon
SHORTEST_KEY = 32  # ipykernel takes an empty key as "no signatures": never start with one


class LaunchError(Exception):
    """The process was not started as a kernel must be; the text says what is wrong."""


@dataclass(frozen=True)
class Restore:
    manifest: str  # of the generation to come back from
    skip: frozenset[str]  # names that killed or hung an earlier attempt
    moved_from: str = ""  # where the work directory was, if it is a copy
    older: frozenset[int] = frozenset()  # generations beside it that have names of it


@dataclass(frozen=True)
class SnapshotLaunch:
    store: str  # has chunks/, not ours to write
    spool: str  # for what we write
    mode: str  # "idle"; "always": on the disk before the reply
    generation: int  # the last number that was used
    namespace_max: int  # bytes; 0: no limit
    restore: Restore | None
    orders_fd: int = ORDERS_FD


@dataclass(frozen=True)
class Launch:
    connection: dict[str, Any]  # the keys of a Jupyter connection file
    runtime_dir: str  # the sockets' directory, private to this kernel
    peer_pids: tuple[int, ...]  # who may connect; 0 is anyone outside the pid namespace
    stream_split: int  # characters after which a stream message is cut
    summary_max: int  # bytes that the names in a reply's metadata may take
    cell: int  # execution count that the next cell gets
    snapshot: SnapshotLaunch | None  # None: nothing is saved


def read_launch() -> Launch:
    try:
        with open(CONNECTION_FD, "rb") as file:
            file.seek(0)
            text = file.read()
        os.set_inheritable(REPORT_FD, False)
    except OSError as error:
        raise LaunchError(f"descriptors 3 and 4 must be open ({error.strerror})") from None
    try:
        return parse_launch(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # The text holds the key: name what is wrong, quote nothing.
        kind = f"no {error}" if isinstance(error, KeyError) else type(error).__name__
        raise LaunchError(f"descriptor 3 is not a connection file ({kind})") from None


def parse_launch(info: dict[str, Any]) -> Launch:
    ours = info.pop("vivarium")
    if len(info["key"]) < SHORTEST_KEY:
        raise LaunchError(f"the key is shorter than {SHORTEST_KEY} characters")
    if ours["v"] != 1:
        raise LaunchError("this pyside knows version 1 of the launch contract only")
    return Launch(
        connection=info,
        runtime_dir=str(ours["runtime_dir"]),
        peer_pids=tuple(int(pid) for pid in ours["peer_pids"]),
        stream_split=max(1, int(ours["stream_split"])),
        summary_max=int(ours["summary_max"]),
        cell=int(ours.get("cell", 1)),
        snapshot=parse_snapshot(ours.get("snapshot")) if has_orders() else None,
    )


def parse_snapshot(found: dict[str, Any] | None) -> SnapshotLaunch | None:
    if found is None:
        return None
    restore = found["restore"]
    return SnapshotLaunch(
        store=str(found["store"]),
        spool=str(found["spool"]),
        mode=str(found["mode"]),
        generation=int(found["generation"]),
        namespace_max=int(found["namespace_max"]),
        restore=restore
        and Restore(
            str(restore["manifest"]),
            frozenset(restore["skip"]),
            str(restore.get("moved_from", "")),
            frozenset(restore.get("older", ())),
        ),
    )


def has_orders() -> bool:
    """Descriptor 5 is the daemon's pipe; then no child of ours shall have it."""
    try:
        if not stat.S_ISFIFO(os.fstat(ORDERS_FD).st_mode):
            return False
        os.set_inheritable(ORDERS_FD, False)
    except OSError:
        return False
    return True


class Reports:
    """Lines to the daemon through a socket: what is written stays when the writer dies."""

    def __init__(self) -> None:
        self._socket = os.fstat(REPORT_FD)
        os.set_blocking(REPORT_FD, False)  # a daemon that does not read must not stop a cell

    def ready(self, handed_over: list[int]) -> None:
        """Every socket is bound: the daemon may connect, and gets descriptors of ours."""
        try:
            fd = os.dup(REPORT_FD)
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=fd) as connection:
                socket.send_fds(connection, [b"ready\n"], handed_over)
        except OSError:  # a pipe: whoever started us does not want them
            self._write("ready")

    def run(self, request_id: str) -> None:
        """The code of this request begins: from now on it may have had effects."""
        if not self._write(f"run {request_id}"):
            time.sleep(NOTICE_S)  # the daemon sees "busy" instead

    def restoring(self) -> None:
        self._write("restoring")

    def restored(self) -> None:
        self._write("restored")

    def saved(self, generation: int) -> None:
        """It is complete in the spool."""
        self._write(f"saved {generation}")

    def damaged(self, names: Iterable[str]) -> None:
        """What these were restored from is not what was saved."""
        text = " ".join(names).encode("utf-8", "replace")[:NAMES_MAX]
        self._write(f"damaged {text.decode('utf-8', 'ignore')}")

    def _write(self, line: str) -> bool:
        try:  # the user's code may have closed the descriptor, or have put a file there
            if not os.path.samestat(os.fstat(REPORT_FD), self._socket):
                return False
            return os.write(REPORT_FD, f"{line}\n".encode()) > 0
        except OSError:
            return False
