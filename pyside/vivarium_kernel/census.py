# SPDX-License-Identifier: MIT
"""How many threads and child processes the user's code keeps alive."""

import os
import sys
import threading
from types import BuiltinMethodType, MethodType
from typing import Any
from weakref import WeakSet

WAITS = ("ThreadedChildWatcher._do_waitpid", "_ThreadedChildWatcher._do_waitpid")  # asyncio's
METHODS = (MethodType, BuiltinMethodType)


class Census:
    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._own: WeakSet[threading.Thread] = WeakSet()

    def exclude_present(self) -> None:
        """Called when the kernel is complete: the threads of now are its own."""
        self._own.update(threading.enumerate())

    def exclude(self, thread: threading.Thread | None) -> None:
        """One more of the kernel's own."""
        if thread is not None:
            self._own.add(thread)

    def threads(self) -> int:
        threads = [each for each in threading.enumerate() if each not in self._own]
        threads = [each for each in threads if hasattr(each, "_target")]  # else it is at its end
        return sum(not (_is_a_helper(each) or self._is_of_scripts(each)) for each in threads)

    def _is_of_scripts(self, thread: threading.Thread) -> bool:
        """With the first %%bash, IPython starts one for the loop that its scripts are read in."""
        magics = self._shell.magics_manager.registry.get("ScriptMagics")
        loop = getattr(magics, "event_loop", None)
        target: Any = getattr(thread, "_target", None)
        return loop is not None and type(target) in METHODS and target.__self__ is loop

    def children(self) -> int:
        """Living children; not zombies, not multiprocessing's own helpers."""
        if not _has_children():
            return 0
        helpers = {
            _helper_pid("multiprocessing.resource_tracker", "_resource_tracker", "_pid"),
            _helper_pid("multiprocessing.forkserver", "_forkserver", "_forkserver_pid"),
        }
        return sum(pid not in helpers and _lives(pid) for pid in _child_pids())


def _is_a_helper(thread: threading.Thread) -> bool:
    """pyzmq starts a thread of its own with the first large message, tqdm with the first bar,
    asyncio one that waits for the end of a child, which is counted itself."""
    if type(thread).__module__.startswith(("zmq.", "tqdm.")):
        return True
    target = getattr(thread, "_target", None)
    return type(target) is MethodType and getattr(target.__func__, "__qualname__", "") in WAITS


def _has_children() -> bool:
    """Also zombies.  Asked after each cell, so with one call of the system."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _child_pids() -> list[int]:
    pids: list[int] = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", "rb") as file:
                pids += map(int, file.read().split())
        except OSError:
            continue  # the thread ended, or the kernel was built without this file
    return pids


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _helper_pid(module: str, instance: str, attribute: str) -> object:
    return getattr(getattr(sys.modules.get(module), instance, None), attribute, None)
