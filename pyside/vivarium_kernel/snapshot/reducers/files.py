# SPDX-License-Identifier: MIT
"""Open files: opened again by name, at their position, without being truncated."""

import contextlib
import io
import os
import stat
import sys
import weakref
from typing import Any

from ... import fleeting
from . import Unkeepable, exactly, family, named

STANDARD = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")


def standard_stream(file: Any) -> Any:
    for name in STANDARD:
        if getattr(sys, name, None) is file:
            return find_stream, (name,)
    return None


def find_stream(name: str) -> Any:
    return getattr(sys, name)


@family("vivarium_kernel.streams.Stream", "vivarium_kernel.streams.Bytes")
def reduce_stream(pickler: Any, file: Any) -> Any:
    if type(file).__name__ == "Bytes":
        return getattr, (file._stream, "buffer")
    return find_stream, (file.name,)


@exactly(io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom)
def reduce_binary(pickler: Any, file: Any) -> Any:
    found = standard_stream(file)
    if found is not None:
        return found
    if type(file) is not io.FileIO and type(file.raw) is not io.FileIO:
        return reduce_wrapped(file, file.raw)
    raw = file if type(file) is io.FileIO else file.raw
    name, mode = raw.name, raw.mode
    if file.closed:
        return closed_file, (type(file), name, mode)
    path = path_of(file, name)
    if fleeting.holds(path):
        raise Unkeepable("its directory goes with the kernel; files of the workspace stay")
    if file.writable():
        file.flush()
    position = file.tell() if file.seekable() else None
    return open_again, (type(file), path, name, mode, position)


def reduce_wrapped(file: Any, inner: Any) -> Any:
    if file.closed or file.writable():
        raise Unkeepable("it writes through another stream")
    return open_wrapped, (type(file), inner, file.tell())


def open_wrapped(kind: Any, inner: Any, position: int) -> Any:
    file = kind(inner)
    file.seek(position)
    return file


@exactly(io.TextIOWrapper)
def reduce_text(pickler: Any, file: Any) -> Any:
    found = standard_stream(file)
    if found is not None:
        return found
    if file.closed:
        mode = getattr(file, "mode", "r")
        return closed_text, (file.name, mode, file.encoding, file.errors)
    if file.writable():
        file.flush()
    position = None
    if file.seekable():
        try:
            position = file.tell()
        except OSError as error:  # disabled while lines are iterated over
            raise Unkeepable("it was being iterated over") from error
    options = (file.encoding, file.errors, file.line_buffering, file.write_through)
    return open_text, (file.buffer, options, position, file.__dict__)


def path_of(file: Any, name: Any) -> Any:
    """Where it lies: a relative name leads elsewhere after a chdir()."""
    status = os.fstat(file.fileno())
    if not isinstance(name, (str, bytes)):
        raise Unkeepable("it has no name to open it by")
    if not stat.S_ISREG(status.st_mode) and os.fspath(name) != os.devnull:
        raise Unkeepable("it is no regular file")
    named = os.path.abspath(name)
    if is_at(status, named):
        return named
    with contextlib.suppress(OSError):
        path = os.readlink(f"/proc/self/fd/{file.fileno()}")
        if is_at(status, path):
            return path
    if os.path.exists(named):
        raise Unkeepable("another file has its name now")
    raise Unkeepable("it is no longer where it was opened")


def is_at(status: os.stat_result, path: Any) -> bool:
    try:
        return os.path.samestat(status, os.stat(path))
    except OSError:
        return False


def open_raw(path: Any, name: Any, mode: str) -> io.FileIO:
    def opener(_: Any, flags: int) -> int:
        return os.open(path, flags & ~(os.O_TRUNC | os.O_EXCL | os.O_CREAT) | os.O_CLOEXEC)

    return io.FileIO(name, mode.replace("b", ""), opener=opener)


def open_again(kind: Any, path: Any, name: Any, mode: str, position: int | None) -> Any:
    raw = open_raw(path, name, mode)
    file = raw if kind is io.FileIO else kind(raw)
    if position is not None:
        file.seek(position)
    return file


def open_text(buffer: Any, options: Any, position: int | None, state: Any) -> Any:
    encoding, errors, line_buffering, write_through = options
    file = io.TextIOWrapper(buffer, encoding, errors, None, line_buffering, write_through)
    if position is not None:
        file.seek(position)
    file.__dict__.update(state)
    return file


def closed_file(kind: Any, name: Any, mode: str) -> Any:
    raw = io.FileIO(os.devnull, mode.replace("b", "").replace("x", "w"))
    raw.name = name
    file = raw if kind is io.FileIO else kind(raw)
    file.close()
    return file


def closed_text(name: Any, mode: str, encoding: Any, errors: Any) -> Any:
    raw = io.FileIO(os.devnull, mode.replace("t", "").replace("x", "w"))
    raw.name = name
    inner: Any = io.BufferedReader(raw) if raw.readable() else io.BufferedWriter(raw)
    file = io.TextIOWrapper(inner, encoding, errors)
    file.mode = mode  # type: ignore[misc]
    file.close()
    return file


@family("gzip.GzipFile", "bz2.BZ2File", "lzma.LZMAFile")
def reduce_compressed(pickler: Any, file: Any) -> Any:
    name = getattr(file, "name", None) or getattr(getattr(file, "_fp", None), "name", None)
    if file.closed or file.writable() or not isinstance(name, str):
        raise Unkeepable("only a compressed file that is being read can be opened again")
    return open_compressed, (type(file), os.path.abspath(name), file.tell())


def open_compressed(kind: Any, path: str, position: int) -> Any:
    file = kind(path, "rb")
    file.seek(position)
    return file


@named("tempfile._TemporaryFileWrapper")
def reduce_temporary(pickler: Any, wrapper: Any) -> Any:
    deleted = getattr(wrapper, "delete", False)
    return make_temporary, (wrapper.file, wrapper.name, deleted)


def make_temporary(file: Any, name: str, delete: bool) -> Any:
    import tempfile

    return tempfile._TemporaryFileWrapper(file, name, delete)


@named("tempfile.TemporaryDirectory")
def reduce_directory(pickler: Any, directory: Any) -> Any:
    state = {name: value for name, value in vars(directory).items() if name != "_finalizer"}
    return make_directory, (type(directory), state, directory._finalizer.alive)


def make_directory(kind: Any, state: dict[str, Any], alive: bool) -> Any:
    directory = kind.__new__(kind)
    directory.__dict__.update(state)
    directory._finalizer = weakref.finalize(
        directory,
        kind._cleanup,
        directory.name,
        warn_message=f"Implicitly cleaning up {directory!r}",
        ignore_errors=state.get("_ignore_cleanup_errors", False),
    )
    if not alive:
        directory._finalizer.detach()
    return directory


@named("posix.DirEntry")
def reduce_entry(pickler: Any, entry: Any) -> Any:
    return find_entry, (os.path.abspath(entry.path), entry.path)


def find_entry(path: str, shown: str) -> Any:
    with os.scandir(os.path.dirname(shown) or ".") as entries:
        return next(entry for entry in entries if entry.name == os.path.basename(path))
