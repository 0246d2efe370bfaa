# SPDX-License-Identifier: MIT
"""The slow way to load one name: a tombstone stands where a part of it cannot be made.

Python's own unpickler, with a net under each opcode that runs code.
"""

import pickle
from collections.abc import Callable
from typing import Any

from .kinds import STANDARD, describe, full_name, is_own, module_of, top
from .missing import Graves
from .tombstone import Tombstone, bury

BASE: Any = pickle._Unpickler
OWN = __package__ + "."
HARMLESS = ("functions", "classes", "enums", "modules", "anchors")
CONTAINERS = frozenset({"builtins", "numpy", *STANDARD})  # of use with a hole in them, too
NOT_RUN = "loading it had failed before, and was not tried again"


class Salvager(BASE):  # type: ignore[misc]
    def __init__(
        self, file: Any, buffers: Any, memo: dict[int, Any], run: bool, graves: Graves
    ) -> None:
        super().__init__(file, buffers=buffers)
        self.memo = memo
        self.run = run  # False: make nothing but what cells define, and plain data
        self.graves = graves
        self.lost: list[Tombstone] = []

    def grave(self, what: Any, why: str, cause: Tombstone | None = None) -> Tombstone:
        kind = what if isinstance(what, type) else type(what)
        name = what if type(what) is str else full_name(kind)
        tombstone = bury(name, why)
        self.graves.add(tombstone, cause)
        self.lost.append(tombstone)
        return tombstone

    def needs(self, made: Any, part: Tombstone) -> Tombstone:
        """The grave of what cannot be without this part."""
        known = self.graves.has(part)
        why = f"it needs a {self.graves.why(part) if known else part}"
        return self.grave(made, why, part if known else None)

    def make(self, made: Any, function: Any, arguments: Any) -> Any:
        """What function(*arguments) gives; `made` says what that is to be."""
        for part in (function, *arguments):
            if type(part) is Tombstone:
                own = part is function or is_ours(function)
                return part if own else self.needs(made, part)
        who = made if isinstance(made, type) and not is_ours(function) else function
        hole = self.graves.within(arguments) if is_librarys(who) else None
        if hole is not None:
            return self.needs(made, hole)
        if not self.run and not is_harmless(function):
            return self.grave(made, NOT_RUN)
        try:
            return function(*arguments)
        except BaseException as error:
            return self.grave(made, describe(error))

    def give_up(self, value: Any, why: str) -> None:
        """It was made, but could not be filled: a half-made object is worse than none."""
        self.bury_top(self.grave(value, why))

    def bury_top(self, tombstone: Tombstone) -> None:
        value, self.stack[-1] = self.stack[-1], tombstone
        for at, known in self.memo.items():
            if known is value:
                self.memo[at] = tombstone

    def load_stack_global(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        try:
            self.append(self.find_class(module, name))
        except BaseException as error:
            self.append(self.grave(f"{module}.{name}", describe(error)))

    def load_reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        result = self.make(kind_made(function, arguments), function, arguments)
        filled = len(arguments) == 2 and self.stack and self.stack[-1] is arguments[0]
        if type(result) is Tombstone and filled and type(arguments[0]) is not Tombstone:
            self.give_up(arguments[0], result._why)
        self.append(result)

    def load_newobj(self) -> None:
        arguments, kind = self.stack.pop(), self.stack.pop()
        self.append(self.make(kind, getattr(kind, "__new__", kind), (kind, *arguments)))

    def load_newobj_ex(self) -> None:
        named, arguments, kind = self.stack.pop(), self.stack.pop(), self.stack.pop()

        def new(*given: Any) -> Any:
            return kind.__new__(kind, *given, **named)

        self.append(self.make(kind, new, arguments))

    def guarded(self, load: Callable[[Any], None], taken: int) -> None:
        """An opcode that fills the object below the `taken` on top."""
        height = len(self.stack) - taken
        value = self.stack[height - 1]
        if type(value) is Tombstone:
            del self.stack[height:]
            return
        try:
            load(self)
        except BaseException as error:
            del self.stack[height:]
            self.give_up(value, describe(error))

    def load_build(self) -> None:
        """What a library makes is of no use to it with a hole in it."""
        state, value = self.stack[-1], self.stack[-2]
        hole = self.graves.within(state) if is_librarys(type(value)) else None
        if hole is None or type(value) is Tombstone:
            self.guarded(BASE.load_build, 1)
            return
        self.stack.pop()
        self.bury_top(self.needs(value, hole))

    def load_many(self, load: Callable[[Any], None]) -> None:
        below = self.metastack[-1][-1]
        if type(below) is Tombstone:
            self.pop_mark()
            return
        try:
            load(self)
        except BaseException as error:
            self.give_up(below, describe(error))

    def load_appends(self) -> None:
        self.load_many(BASE.load_appends)

    def load_setitems(self) -> None:
        self.load_many(BASE.load_setitems)

    def load_additems(self) -> None:
        self.load_many(BASE.load_additems)

    def load_append(self) -> None:
        self.guarded(BASE.load_append, 1)

    def load_setitem(self) -> None:
        self.guarded(BASE.load_setitem, 2)

    dispatch = BASE.dispatch | {
        opcode[0]: method
        for opcode, method in (
            (pickle.STACK_GLOBAL, load_stack_global),
            (pickle.REDUCE, load_reduce),
            (pickle.NEWOBJ, load_newobj),
            (pickle.NEWOBJ_EX, load_newobj_ex),
            (pickle.BUILD, load_build),
            (pickle.APPENDS, load_appends),
            (pickle.APPEND, load_append),
            (pickle.SETITEMS, load_setitems),
            (pickle.SETITEM, load_setitem),
            (pickle.ADDITEMS, load_additems),
        )
    }


def is_ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith(OWN)


def is_librarys(made: Any) -> bool:
    """A class or function that is neither Python's, nor ours, nor a cell's."""
    home = module_of(made) if isinstance(made, type) else getattr(made, "__module__", None)
    if type(home) is not str or top(home) in CONTAINERS or is_ours(made):
        return False
    return home != "__main__" and not (isinstance(made, type) and is_own(made))


def is_harmless(function: Any) -> bool:
    """It makes what a cell defines, and runs no code of a library's or the user's."""
    home = str(getattr(function, "__module__", "")).rpartition(".")[2]
    return function is bury or (is_ours(function) and home in HARMLESS)


def kind_made(function: Any, arguments: Any) -> Any:
    if isinstance(function, type):
        return function
    if arguments and isinstance(arguments[0], type):
        return arguments[0]
    if is_ours(function):  # make_code, open_text: what it makes
        return function.__name__.partition("_")[2] or "value"
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', 'value')}"


def salvage(
    file: Any, buffers: Any, memo: dict[int, Any], run: bool, graves: Graves
) -> tuple[Any, list[Tombstone]]:
    salvager = Salvager(file, buffers, memo, run, graves)
    value = salvager.load()
    return value, salvager.lost
