# SPDX-License-Identifier: MIT
"""The namespace as a generation has it, before the first cell is read.

Which name is being loaded is written to a file that outlives this process, so that a name which
kills or hangs it is left out the next time.
"""

import contextlib
import os
import platform
import struct
import threading
import time
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from ..cells import Cells
from ..connection import Reports, Restore, SnapshotLaunch
from ..summary import origin_of
from . import live, manifest
from .baseline import address_of
from .chunks import CHUNK
from .collector import Piece
from .history import is_history, is_ipythons, put_back
from .loader import load
from .manifest import LeftOut, Read, Unreadable
from .mapping import Gone, Store, pieces
from .missing import has_hole
from .older import Older
from .patience import Patience
from .pickler import version_of
from .records import Loaded, Lost
from .salvage import NOT_RUN
from .tombstone import Tombstone, bury
from .writer import Writer

JOURNAL = "restoring"
RECORD = 512  # bytes: index, then the name
BASELINE_S = 0.25  # for a look at what came back, if loading did not take longer
DAMAGED = "its data on the disk is damaged"
CHECK_PAUSE_S = 0.004  # after each chunk: at most 250 MB a second


class Journal:
    """Which entry is being loaded."""

    def __init__(self, spool: str) -> None:
        self._path = os.path.join(spool, JOURNAL)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def begin(self, index: int, name: str) -> None:
        text = name.encode("utf-8", "replace")[: RECORD - 4]
        os.pwrite(self._fd, (struct.pack("<I", index) + text).ljust(RECORD, b"\0"), 0)

    def end(self) -> None:
        os.close(self._fd)
        with contextlib.suppress(OSError):
            os.unlink(self._path)


@dataclass
class Comeback:
    """What came back; told with the first cell's reply."""

    generation: int = 0
    cell: int = 0
    names: int = 0  # of variables
    imports: int = 0
    failed: list[Lost] = field(default_factory=list)
    causes: list[list[str]] = field(default_factory=list)  # other versions, of what failed
    versions: list[list[str]] = field(default_factory=list)  # of the rest
    kept: bool = False  # some that failed are tried again by later kernels
    cwd_gone: str | None = None
    ms: int = 0
    error: str = ""

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = {
            "generation": self.generation,
            "cell": self.cell,
            "names": self.names,
            "imports": self.imports,
            "failed": [{"name": f.name, "what": f.what, "why": f.why} for f in self.failed],
            "kept": self.kept,
            "causes": self.causes,
            "versions": self.versions,
            "ms": self.ms,
        }
        if self.cwd_gone is not None:
            report["cwd_gone"] = self.cwd_gone
        if self.error:
            report["error"] = self.error
        return report


class Restorer:
    def __init__(
        self, launch: SnapshotLaunch, shell: Any, cells: Cells, reports: Reports, writer: Writer
    ) -> None:
        self._spool = launch.spool
        self._shell = shell
        self._cells = cells
        self._reports = reports
        self._writer = writer
        self._store = Store(os.path.join(launch.store, "chunks"))

    def run(self, what: Restore) -> tuple[Comeback, "Check | None"]:
        """Also returns the check of what was mapped, which has begun."""
        began = time.monotonic()
        live.enter(self._shell)
        self._reports.restoring()
        comeback, check = Comeback(), None
        try:
            found = manifest.read(what.manifest)
            comeback.generation, comeback.cell = found.generation, found.cell
            check = self._restore_or_bury(found, what, comeback)
        except Unreadable as error:
            comeback.error = str(error)
        comeback.ms = int((time.monotonic() - began) * 1000)
        self._reports.restored()
        return comeback, check

    def _restore_or_bury(self, found: Read, what: Restore, comeback: Comeback) -> "Check | None":
        try:
            self._restore(found, what, comeback)
        except (Exception, KeyboardInterrupt) as error:  # the kernel starts all the same
            comeback.error = f"{type(error).__name__}: {error}"
            self._bury(found, comeback.error)
            return None
        return Check(self._store, found, self._reports)

    def _bury(self, found: Read, why: str) -> None:
        """Nothing, or not everything, came back.  It is still where it was."""
        namespace, failed = self._shell.user_ns, []
        for entry in found.dumped.entries:
            if entry.name not in namespace and not is_history(entry.name):
                cell = found.cells[entry.name]
                namespace[entry.name] = bury(entry.type, why, entry.name, cell)
                failed.append(Lost(entry.name, entry.type, why))
        self._carry(found, Loaded([], failed), (row for row in found.left_out if row.carried))

    def _restore(self, found: Read, what: Restore, comeback: Comeback) -> None:
        began = time.monotonic()
        older = Older(what, self._store, self._shell.user_ns, found)
        journal = Journal(self._spool)
        try:
            loaded, mapped = self._load(found, what.skip, journal)
            put_back(self._shell)
            self._cells.recall(self._shell.user_ns, found.cells)
            loading_s = time.monotonic() - began
            patience = Patience(None, seconds=max(BASELINE_S, loading_s))
            self._writer.resume(found, mapped, patience)
            if back := older.find(journal.begin):
                self._shell.user_ns.update(back)
                self._cells.recall(self._shell.user_ns, found.cells)
        finally:
            journal.end()
        self._carry(found, loaded, older.rows())
        comeback.failed = [lost for lost in loaded.failed if not is_history(lost.name)]
        comeback.failed += self._mark_absent(found)
        comeback.failed += self._torn(comeback.failed)
        carried = [self._writer.omissions.carried(lost.name) for lost in comeback.failed]
        comeback.kept = any(row and NOT_RUN not in row.why for row in carried)
        self._count(loaded, comeback)
        comeback.cwd_gone = loaded.cwd_gone
        blamed = loaded.graves.packages()
        for row in different(found):
            (comeback.causes if row[0] in blamed else comeback.versions).append(row)

    def _load(
        self, found: Read, skip: Set[str], journal: Journal
    ) -> tuple[Loaded, dict[tuple[int, int], Piece]]:
        """Also returns what was mapped.  No buffer is referred to from here afterwards: whether
        memory is shared is told by who does."""
        stream = self._store.read(found.stream.size, found.stream.chunks)
        buffers, gone = self._store.every(found.buffers)
        damaged = owners(found, gone)
        mapped = {}
        for buffer, piece in zip(buffers, found.buffers, strict=True):
            if not isinstance(buffer, Gone):
                mapped[address_of(buffer), piece.size] = piece
        loaded = load(self._shell, stream, buffers, found.dumped, skip=skip, begin=journal.begin)
        loaded.failed = [lost for lost in loaded.failed if not is_ipythons(lost.name)]
        for lost in loaded.failed:
            if lost.name in damaged:
                lost.why = DAMAGED
        return loaded, mapped

    def _count(self, loaded: Loaded, comeback: Comeback) -> None:
        """What came back whole and a person would count."""
        namespace, hidden = self._shell.user_ns, self._shell.user_ns_hidden
        torn = {lost.name for lost in comeback.failed}
        whole = [name for name in loaded.names if name in namespace and name not in torn]
        found = [origin_of(name, namespace[name], hidden) for name in whole]
        comeback.names = found.count("")
        comeback.imports = sum(bool(origin) for origin in found)

    def _torn(self, known: list[Lost]) -> list[Lost]:
        """Also not there: what could not be saved, or could not be loaded earlier."""
        told = {lost.name for lost in known}
        rows = []
        for name, value in self._shell.user_ns.items():
            if name in told or is_history(name):
                continue
            carried = self._writer.omissions.carried(name)
            if type(value) is Tombstone:
                rows.append(Lost(name, value._what, value._why))
            elif carried is not None:
                rows.append(Lost(name, carried.what, carried.why))
        return rows

    def _mark_absent(self, found: Read) -> list[Lost]:
        """Names whose values were never saved: who uses one shall hear why it is not there."""
        namespace, absent = self._shell.user_ns, []
        for row in found.left_out:
            if row.name not in namespace:
                namespace[row.name] = bury(row.what, row.why, row.name)
                absent.append(Lost(row.name, row.what, row.why))
        return absent

    def _carry(self, found: Read, loaded: Loaded, carried: Iterable[LeftOut]) -> None:
        """What could not be restored stays in its generation: the next ones say in which."""
        namespace, omissions = self._shell.user_ns, self._writer.omissions
        rows = {row.name: row for row in carried}
        for lost in loaded.failed:
            if lost.name in found.bytes_of:
                size = found.bytes_of[lost.name]
                row = LeftOut(lost.name, lost.what, lost.why, size, found.generation)
                rows.setdefault(lost.name, row)
        for name, row in rows.items():
            if has_hole(namespace.get(name)):
                omissions.carry(name, namespace[name], row)


def owners(found: Read, buffers: Set[int]) -> frozenset[str]:
    """Names that have something of these buffers."""
    return frozenset(
        entry.name
        for entry in found.dumped.entries
        if not buffers.isdisjoint(
            range(entry.first_buffer, entry.first_buffer + entry.buffer_count)
        )
    )


def different(found: Read) -> list[list[str]]:
    """Packages, and Python, that are not what they were: name, then, now."""
    now = {name: version_of(name) for name in found.packages}
    versions = [[name, then, now[name]] for name, then in found.packages.items()]
    versions.append(["python", found.python, platform.python_version()])
    return [row for row in versions if row[1] != row[2]]


class Check:
    """Reads every chunk that was only mapped, without haste, and compares it with its name."""

    def __init__(self, store: Store, found: Read, reports: Reports) -> None:
        self.damaged: list[str] = []  # names; grows while the thread runs
        self._store = store
        self._found = found
        self._reports = reports
        self.thread = threading.Thread(target=self._run, name="SnapshotCheck", daemon=True)
        self.thread.start()

    def take(self) -> list[str]:
        """The names that were found since the last call."""
        count = len(self.damaged)
        names, self.damaged[:count] = self.damaged[:count], []
        return names

    def _run(self) -> None:
        bad = {number for number in range(len(self._found.buffers)) if self._is_bad(number)}
        names = sorted(owners(self._found, bad))
        if names:
            self.damaged += names  # before the report: the next reply is to tell them too
            self._reports.damaged(names)

    def _is_bad(self, number: int) -> bool:
        piece = self._found.buffers[number]
        for start, name in pieces(piece.size, piece.chunks):
            if self._store.is_damaged(name, min(CHUNK, piece.size - start)):
                return True
            time.sleep(CHECK_PAUSE_S)
        return False
