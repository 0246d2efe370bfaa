# SPDX-License-Identifier: MIT
"""What a session is beside its names: directory, environment, random generators, options.

Each part is caught by itself and set by itself: one that fails costs no other.
"""

import json
import os
import signal
import sys

# signal's own makes an enum of each answer, and after each cell some sixty are asked for.
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from . import libraries, live
from .kinds import HEAP_TYPE, KERNELS, describe, dict_of, flags_of, is_by_name, is_own, mro_of, top

ACCESSORS = ("Accessor", "CachedAccessor")  # pandas' own, by any version


class Part(NamedTuple):
    read: Callable[[], Any]  # None: nothing to keep
    write: Callable[[Any], None]


class Before:
    """What a process has before its first cell; the rest is the session's."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self.path = list(sys.path)
        self.signals = {int(number): getsignal(number) for number in signal.valid_signals()}
        self.recursion = sys.getrecursionlimit()


_before = Before()


def begin() -> None:
    """Once, before the first cell."""
    global _before  # noqa: PLW0603 (a process has one past)
    _before = Before()


def read_directory() -> str | None:
    with suppress(FileNotFoundError):
        return os.getcwd()
    return None


def read_environment() -> Any:
    now = dict(os.environ)
    gone = [name for name in _before.environ if name not in now]
    new = {name: value for name, value in now.items() if _before.environ.get(name) != value}
    return (new, gone) if new or gone else None


def write_environment(changes: Any) -> None:
    new, gone = changes
    os.environ.update(new)
    for name in gone:
        os.environ.pop(name, None)
    if "TZ" in new:
        import time

        time.tzset()


def read_path() -> Any:
    return (list(sys.path), _before.path) if sys.path != _before.path else None


def write_path(paths: Any) -> None:
    """Additions and order of the session; what this process's start put there stays."""
    wanted, formerly = paths
    ours = [each for each in sys.path if each not in formerly and each not in wanted]
    sys.path[:] = wanted + ours


def read_signals() -> Any:
    handlers = {}
    for number, before in _before.signals.items():
        now = getsignal(number)
        if now != before and now is not None and not is_kernels(now):
            handlers[number] = now if callable(now) else int(now)
    return handlers or None


def is_kernels(handler: Any) -> bool:
    return top(str(getattr(handler, "__module__", ""))) in KERNELS


def write_signals(handlers: Any) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def read_recursion() -> int | None:
    limit = sys.getrecursionlimit()
    return limit if limit != _before.recursion else None


def read_patches() -> Any:
    """Functions and classes of cells that were put into the modules they had imported."""
    namespace = live.namespace()
    values = list(namespace.values())
    modules = {id(each): each for each in values if type(each) is ModuleType}
    patches: list[Any] = []
    for module in modules.values():
        if is_by_name(module):
            patches += ((module, *patch) for patch in patches_of(vars(module), namespace))
    for kind in library_classes(values):
        patches += ((kind, *patch) for patch in patches_of(dict_of(kind), namespace))
    return patches or None


def library_classes(values: list[Any]) -> list[type]:
    """Of the values that have names; pandas' main ones even before there is a value."""
    pandas = vars(sys.modules.get("pandas", sys))
    kinds = {id(type(value)): type(value) for value in values}
    main = (pandas.get(name) for name in ("DataFrame", "Series", "Index"))
    kinds |= {id(kind): kind for kind in main if isinstance(kind, type)}
    bases = {id(base): base for kind in kinds.values() for base in mro_of(kind)}
    return [base for base in bases.values() if flags_of(base) & HEAP_TYPE and not is_own(base)]


def patches_of(inside: Any, namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """Functions of cells, and accessors whose class is of a cell."""
    found = []
    for name, value in list(inside.items()):
        if type(value) is FunctionType:
            if value.__globals__ is namespace:
                found.append((name, value))
        elif type(value).__name__ in ACCESSORS and is_own(value._accessor):
            found.append((name, value))
    return found


def write_patches(patches: Any) -> None:
    for owner, name, value in patches:
        setattr(owner, name, value)
        if type(value).__name__ in ACCESSORS:
            owner._accessors.add(name)


UNDERSCORES = ("_", "__", "___")


def read_shell() -> Any:
    """The counts and names as one string, which takes the same room in the memo each time."""
    shell, namespace = live.shell(), live.namespace()
    history = getattr(shell, "history_manager", None)
    display = getattr(shell, "displayhook", None)
    state = {
        "count": getattr(shell, "execution_count", 1),
        "inputs": {name: getattr(history, name, "") for name in ("_i", "_ii", "_iii", "_i00")},
        # The values are names like others.
        "outputs": [
            name for name in UNDERSCORES if getattr(display, name, None) is namespace.get(name)
        ],
    }
    return json.dumps(state), getattr(history, "input_hist_raw", [])


def write_shell(saved: Any) -> None:
    """In and Out are names like others; the shell must go on with the same objects."""
    shell, namespace = live.shell(), live.namespace()
    text, raw = (saved, None) if isinstance(saved, str) else saved
    state = json.loads(text)
    if hasattr(shell, "execution_count"):
        shell.execution_count = state["count"]
    history = getattr(shell, "history_manager", None)
    if history is not None:
        for name, attribute in (("_ih", "input_hist_parsed"), ("_oh", "output_hist")):
            if isinstance(namespace.get(name), (list, dict)):
                setattr(history, attribute, namespace[name])
        if isinstance(namespace.get("_dh"), list):
            history.dir_hist = namespace["_dh"]
        history.input_hist_raw = state["raw"] if raw is None else raw  # older states have it there
        for name, value in state["inputs"].items():
            setattr(history, name, value)
    if hasattr(shell, "displayhook"):
        for name in state["outputs"]:
            if name in namespace:
                setattr(shell.displayhook, name, namespace[name])


FIRST = {  # what loading the names may need
    "directory": Part(read_directory, os.chdir),
    "environment": Part(read_environment, write_environment),
    "path": Part(read_path, write_path),
}
LAST = {  # what loading the names may disturb
    "patches": Part(read_patches, write_patches),
    "signals": Part(read_signals, write_signals),
    "recursion": Part(read_recursion, sys.setrecursionlimit),
    "shell": Part(read_shell, write_shell),
    **{name: Part(*pair) for name, pair in libraries.PARTS.items()},
}
CALLED = {  # in a list of names that did not come back: none is a variable's.  Others as they are
    "environment": "environment variables",
    "path": "sys.path",
    "patches": "what cells put into libraries",
    "signals": "signal handlers",
    "recursion": "recursion limit",
    "shell": "input history",
    "random": "random generator",
    "warnings": "warning filters",
    "decimal": "decimal context",
    "locale": "locale setting",
    "logging": "logging levels and handlers",
}


def capture(shell: Any) -> dict[str, Any]:
    state = {}
    for name, part in (FIRST | LAST).items():
        with suppress(Exception):
            value = part.read()
            if value is not None:
                state[name] = value
    return state


def restore(parts: dict[str, Part], state: dict[str, Any]) -> list[tuple[str, str]]:
    """Sets these parts; returns those that could not be set, and why."""
    failed = []
    for name, part in parts.items():
        if name in state:
            try:
                part.write(state[name])
            except Exception as error:
                failed.append((name, describe(error)))
    return failed
