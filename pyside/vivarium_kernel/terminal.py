# SPDX-License-Identifier: MIT
"""`!command` in a terminal of its own, so that programs write line by line, as IPython has it.

Unlike IPython's: lines end as the program wrote them, no character is cut in two where a read
ends, nothing is kept, and an interrupt has no moment in which it finds nothing to stop.
"""

import codecs
import math
import os
import signal
import subprocess
import termios
import time
from contextlib import suppress
from typing import Any

READ_SIZE = 65536
LOOK_S = 0.05  # whether the command has ended, while something it left behind has the terminal
LEAVE_S = 0.2  # for a command to end by itself after an interrupt


def prepare() -> None:
    """In the child, before the command: its output is not edited, who asks hears at once that
    nobody types, and Python's own way with broken pipes is not handed on."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    settings = termios.tcgetattr(1)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(1, termios.TCSANOW, settings)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def run(shell: str, command: str) -> int:
    """The exit status, or less than 0: minus the signal that ended it."""
    import pexpect  # type: ignore[import-untyped]

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    child: Any = None

    def forward(end: float) -> None:
        """Print what comes until the command has ended, or it is too late."""
        while time.monotonic() < end:
            try:
                data = child.read_nonblocking(READ_SIZE, LOOK_S)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                return
            print(decoder.decode(data), end="", flush=True)

    try:
        try:
            child = pexpect.spawn(shell, ["-c", command], preexec_fn=prepare)
        except OSError:  # walls without terminals of our own
            return run_piped(shell, command)
        child.ptyproc.delayafterclose = 0
        forward(math.inf)
        child.wait()  # it may have closed its output and gone on
    except KeyboardInterrupt:
        if child is None:
            raise
        try:
            child.sendintr()
            with suppress(KeyboardInterrupt):  # the impatient do it twice
                forward(time.monotonic() + LEAVE_S)
            ends_itself = not child.isalive()
            child.terminate(force=True)
        except pexpect.ExceptionPexpect:
            # It struck between the command's end and pexpect's note of it: no status to tell.
            raise KeyboardInterrupt from None
        if not ends_itself:  # deaf to it, or not yet there to hear it
            raise
    print(decoder.decode(b"", True), end="", flush=True)
    if child.signalstatus is not None:
        return -int(child.signalstatus)
    return told_by_shell(int(child.exitstatus or 0))


def told_by_shell(status: int) -> int:
    """More than 128 is how a shell tells of a command that a signal ended."""
    return status if status <= 128 else 128 - status


def run_piped(shell: str, command: str) -> int:
    """The same through a pipe; the command is in our process group, so that an interrupt
    reaches both."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    child = subprocess.Popen(
        [shell, "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    assert child.stdout is not None
    try:
        while data := child.stdout.read(READ_SIZE):
            print(decoder.decode(data), end="", flush=True)
        child.wait()
    except KeyboardInterrupt:
        with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
            child.wait(LEAVE_S)
        child.kill()
        child.wait()
        raise
    finally:
        child.stdout.close()
    print(decoder.decode(b"", True), end="", flush=True)
    return told_by_shell(child.returncode)
