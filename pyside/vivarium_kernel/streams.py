# SPDX-License-Identifier: MIT
"""sys.stdout, sys.stderr and descriptors 1 and 2: everything a cell writes, in order.

Descriptors 1 and 2 are pipes that this process reads.  Before Python text is added to a stream,
what waits in its pipe is taken first, so print() and os.write(1) and finished children come out
as in a terminal.  A thread forwards what comes in between; settle() ends a cell.  What is taken is
kept in memory that outlives this process until it has arrived.
"""

import array
import codecs
import ctypes
import fcntl
import io
import os
import re
import select
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from .interrupts import Interrupts
from .lastwords import LastWords, Ring

Parent = dict[str, Any]
# Stream name, text, the request it belongs to, how many bytes the stream has with it.
Publish = Callable[[str, str, Parent, int], None]

FLUSH_INTERVAL = 0.05  # seconds that text may wait for more of it
# read() that keeps the interpreter's lock: what has left the pipe is in the ring (lastwords.py)
# before another thread can be the end of this process.
_read = ctypes.PyDLL(None).read
_read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
_read.restype = ctypes.c_ssize_t

READ_SIZE = 65536  # a pipe's usual capacity
# A flood is slowed to what a reader can follow; else its backlog grows without limit here.
FLOOD_RATE = 64 * 1024 * 1024  # characters a second
FLOOD_BURST = 64 * 1024 * 1024
PRINT_S = 0.05  # in which a print() that has begun its line will have ended it
SEPARATORS = ("\n", " ")  # what print() itself adds
LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """The text with U+FFFD for what UTF-8 cannot say."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return LONE_SURROGATES.sub("\ufffd", text)
    return text


_muted: set[int] = set()  # threads whose text goes nowhere


@contextmanager
def muted() -> Iterator[None]:
    """What this thread writes is dropped: code of the user's runs here that no cell started."""
    thread = threading.get_ident()
    outermost = thread not in _muted
    _muted.add(thread)
    try:
        yield
    finally:
        if outermost:
            _muted.discard(thread)


def read_locked(fd: int, size: int) -> bytes:
    """From a descriptor that does not block; nothing when there is nothing."""
    buffer = ctypes.create_string_buffer(size)
    count = _read(fd, buffer, size)
    return ctypes.string_at(buffer, count) if count > 0 else b""


class Guard:
    """The lock of all streams, which also puts interrupts off while the main thread is inside."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._lock = threading.RLock()

    def renew(self) -> None:
        """In a forked child: whoever held the lock does not exist here."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._interrupts.hold()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._interrupts.release()


class Pace:
    """A token bucket: how long a writer must wait so that a flood stays readable."""

    def __init__(self) -> None:
        self._tokens = float(FLOOD_BURST)
        self._at = time.monotonic()

    def spend(self, count: int) -> None:
        now = time.monotonic()
        self._tokens = min(FLOOD_BURST, self._tokens + (now - self._at) * FLOOD_RATE) - count
        self._at = now
        if self._tokens < 0:
            time.sleep(min(-self._tokens / FLOOD_RATE, 0.1))


class Bytes(io.RawIOBase):
    """`sys.stdout.buffer`: bytes that join the stream's text in order."""

    def __init__(self, stream: "Stream") -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, data: Any) -> int:
        raw = bytes(data)
        self._stream.write_bytes(raw)
        return len(raw)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Stays open: a dropped TextIOWrapper around it must not close the kernel's stdout."""
        self.flush()


class Stream(io.TextIOBase):
    """One of sys.stdout and sys.stderr, together with its descriptor."""

    encoding = "UTF-8"
    errors = "replace"
    name: str

    def __init__(self, name: str, fd: int, output: "Output", ring: Ring) -> None:
        self.name = name
        self.parent: Parent = {}
        self.due: float | None = None  # when waiting text must go out
        self._fd = fd
        self._output = output
        self._ring = ring
        self._guard = output.guard
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parts: list[str] = []
        self._size = 0
        self._last_sent = 0.0
        self._last_call: tuple[int, int] | None = None  # none: at the start of a line
        self._last_write = 0.0
        self._forked = False
        self._waiting = array.array("i", [0])
        self.source, self._keeper = os.pipe()  # not inheritable, unlike the copy at 1 or 2
        os.set_blocking(self.source, False)
        status = os.fstat(self._keeper)
        self._identity = status.st_dev, status.st_ino
        self._buffer = Bytes(self)
        self.restore()

    # What a program sees.

    @property
    def buffer(self) -> Bytes:
        return self._buffer

    @property
    def closed(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        """Flushes only: the next cell prints again."""
        self.flush()

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if threading.get_ident() in _muted:
            return len(text)
        if self._forked:
            self._write_in_child(text)
            return len(text)
        with self._guard:
            if not self._is_inside_print(text, sys._getframe(1)):
                self._take()
            self._put(text)
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        if threading.get_ident() in _muted:
            return
        if self._forked:
            self.flush()
            self._write_all(data)
            return
        with self._guard:
            self._take()
            self._put(self._decoder.decode(data))

    def flush(self) -> None:
        if self._forked:
            self._write_all(self._drop().encode("utf-8", "replace"))
            return
        with self._guard:
            self._take()
            sent = self._send()
        if sent:
            self._output.wait_sent()

    # What the kernel does with it.

    def set_parent(self, parent: Parent) -> None:
        """Later text belongs to another request; earlier text goes out for the former one."""
        with self._guard:
            self._take()
            self._send()
            self.parent = parent

    def take(self) -> bool:
        """The pipe has something to read.  False: not now, a print() is at work."""
        with self._guard:
            if self._last_call is not None and time.monotonic() - self._last_write < PRINT_S:
                return False
            self._take()
        return True

    def send_due(self, now: float) -> None:
        with self._guard:
            if self.due is not None and self.due <= now:
                self._send()

    def settle(self) -> None:
        """The end of a cell: what was written before this call is sent after it."""
        with self._guard:
            self._take()
            # A character cut short stays cut: its writer ended, or had the whole cell.
            self._put(self._decoder.decode(b"", True))
            self._send()

    def restore(self) -> None:
        """Be the process's stream again, whatever a cell did to it."""
        current = getattr(sys, self.name, None)
        if current is not self:
            if type(current) is io.TextIOWrapper:
                with suppress(OSError, ValueError):
                    current.flush()
            setattr(sys, self.name, self)
        try:
            status = os.fstat(self._fd)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._identity:
            os.dup2(self._keeper, self._fd)

    def after_fork(self) -> None:
        """In a forked child: no threads, no sockets; write to the pipe that the parent reads."""
        self._forked = True
        self._drop()

    # The rest needs the guard.

    def _is_inside_print(self, text: str, caller: FrameType) -> bool:
        """One print() writes several times; a child's line should not come before its newline."""
        call = id(caller), caller.f_lasti
        inside = text in SEPARATORS and call == self._last_call
        self._last_call = None if text == "\n" else call
        self._last_write = time.monotonic()
        return inside

    def _take(self) -> None:
        """Take what waits in the pipe, and no more: a child may never stop writing."""
        fcntl.ioctl(self.source, termios.FIONREAD, self._waiting, True)
        left = self._waiting[0]
        while left > 0:
            data = read_locked(self.source, min(left, READ_SIZE))
            if not data:
                return
            left -= len(data)
            self._put(self._decoder.decode(data))

    def _put(self, text: str) -> None:
        if not text or self._output.ended:
            return
        try:
            data = text.encode()
        except UnicodeEncodeError:
            text = clean(text)
            data = text.encode()
        self._ring.add(data)
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._output.split:
            self._send()
        elif self.due is None:
            now = time.monotonic()
            if now - self._last_sent > FLUSH_INTERVAL and "\n" in text:
                self._send()  # the first line is seen at once
            else:
                self.due = now + FLUSH_INTERVAL
                self._output.wake()

    def _drop(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        self._size = 0
        self.due = None
        return text

    def _send(self) -> bool:
        text = self._drop()
        if not text:
            return False
        split = self._output.split
        end = self._ring.end
        if len(text) > split:
            end -= len(text.encode())
        for start in range(0, len(text), split):
            part = text[start : start + split]
            if len(text) > split:
                end += len(part.encode())
            self._output.publish(self.name, part, self.parent, end)
        self._output.pace.spend(len(text))
        self._last_sent = time.monotonic()
        return True

    def _write_in_child(self, text: str) -> None:
        """Whole lines, so that the lines of several children do not mix."""
        self._parts.append(text)
        self._size += len(text)
        if "\n" in text or self._size > READ_SIZE:
            text = self._drop()
            end = text.rfind("\n") + 1 or len(text)
            self._write_all(text[:end].encode("utf-8", "replace"))
            if end < len(text):
                self._parts.append(text[end:])
                self._size = len(text) - end

    def _write_all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]


class Output:
    """Both streams, the thread that forwards what comes in between, and the way out."""

    def __init__(
        self,
        publish: Publish,
        wait_sent: Callable[[], None],
        interrupts: Interrupts,
        split: int,
    ) -> None:
        self.publish = publish
        self.wait_sent = wait_sent  # returns when the socket has what was published
        self.split = split
        self.pace = Pace()
        self.guard = Guard(interrupts)
        self.ended = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._last_words = LastWords()
        out, err = self._last_words.rings
        self.streams = (Stream("stdout", 1, self, out), Stream("stderr", 2, self, err))
        os.register_at_fork(after_in_child=self._after_fork)
        threading.Thread(target=self._forward, name="Output", daemon=True).start()

    def wake(self) -> None:
        os.eventfd_write(self._wake, 1)

    def handed_over(self) -> list[int]:
        """The descriptors from which the daemon reads what did not get out before our end."""
        return [self._last_words.fd, *(stream.source for stream in self.streams)]

    def set_parent(self, parent: Parent) -> None:
        for stream in self.streams:
            stream.set_parent(parent)

    def restore(self) -> None:
        for stream in self.streams:
            stream.restore()

    def settle(self) -> None:
        for stream in self.streams:
            stream.settle()

    def end(self, fd: int) -> None:
        """The last words are said: what libraries say about being closed goes elsewhere."""
        for stream in self.streams:
            os.dup2(fd, stream.fileno())
        self.settle()
        self.ended = True

    def flush(self) -> None:
        for stream in self.streams:
            stream.flush()

    def _after_fork(self) -> None:
        self.guard.renew()
        for stream in self.streams:
            stream.after_fork()

    def _forward(self) -> None:
        sources = {stream.source: stream for stream in self.streams}
        poller = select.poll()
        for fd in (self._wake, *sources):
            poller.register(fd, select.POLLIN)
        while True:
            due = [stream.due for stream in self.streams if stream.due is not None]
            wait_ms = max(0.0, min(due) - time.monotonic()) * 1000 + 1 if due else None
            for fd, _ in poller.poll(wait_ms):
                if fd == self._wake:
                    os.eventfd_read(fd)
                elif not sources[fd].take():
                    time.sleep(PRINT_S / 20)
            now = time.monotonic()
            for stream in self.streams:
                stream.send_due(now)
