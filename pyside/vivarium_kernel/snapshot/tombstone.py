# SPDX-License-Identifier: MIT
"""What stands in a namespace for a value that could not be kept."""

from typing import Any, NoReturn

SHOWN = 300  # characters of a reason


class NotRestoredError(AttributeError, TypeError):
    """Raised by every use of a tombstone.  An AttributeError, so that hasattr() says no."""


class Tombstone:
    """Says what was here, which cell had made it, and why it is gone; can do nothing else."""

    __slots__ = ("__weakref__", "_cell", "_name", "_what", "_why")

    def __init__(self, what: str, why: str, name: str = "", cell: int = 0) -> None:
        self._what = what
        self._why = " ".join(why.split())[:SHOWN]
        self._name = name
        self._cell = cell

    def __repr__(self) -> str:
        return f"<not restored: {self._story()}>"

    def _story(self) -> str:
        of = f" in {self._name!r}" if self._name else ""
        cell = f", made by cell {self._cell}" if self._cell else ""
        return f"{self._what}{of}{cell}: {self._why}"

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRestoredError(f"no attribute {name!r}, for the value was {self}")

    def __reduce__(self) -> Any:
        return bury, (self._what, self._why, self._name, self._cell)


def bury(what: str, why: str, name: str = "", cell: int = 0) -> Tombstone:
    return Tombstone(what, why, name, cell)


def refuse(operation: str) -> Any:
    def use(self: Tombstone, *_: object, **__: object) -> NoReturn:
        raise NotRestoredError(f"cannot be used ({operation}): {self!r}")

    use.__name__ = use.__qualname__ = operation
    return use


# Left alone: what a dict, a repr and a garbage collector need, equality and hash by identity.
OPERATIONS = (
    *("call", "iter", "next", "len", "bool", "contains", "getitem", "setitem", "delitem"),
    *("reversed", "int", "float", "complex", "index", "round", "bytes", "enter", "exit"),
    *("await", "aiter", "anext", "aenter", "aexit", "neg", "pos", "abs", "invert"),
    *("lt", "le", "gt", "ge"),
)
ARITHMETIC = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"),
    *("lshift", "rshift", "and", "xor", "or"),
)


def close_all_doors() -> None:
    names = [f"{kind}{name}" for name in ARITHMETIC for kind in ("", "r", "i")]
    for name in (*OPERATIONS, *names):
        setattr(Tombstone, f"__{name}__", refuse(f"__{name}__"))


close_all_doors()
