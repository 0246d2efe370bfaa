# SPDX-License-Identifier: MIT
"""Generators, started or not, with their variables and loops; coroutines that were not started."""

import dis
import gc
import itertools
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any

from ..resume import Resume, is_tried, resuming, slots, stack_depths, yield_before
from . import Unkeepable, exactly
from .functions import MINOR, make_function, whose_globals


@exactly(GeneratorType)
def reduce_generator(pickler: Any, generator: Any) -> Any:
    if generator.gi_running:
        raise Unkeepable("it was running")
    if generator.gi_frame is None:
        return finished, ()
    return take_apart(generator, generator.gi_code, generator.gi_frame, generator.gi_suspended)


@exactly(CoroutineType)
def reduce_coroutine(pickler: Any, coroutine: Any) -> Any:
    if coroutine.cr_frame is None or coroutine.cr_suspended or coroutine.cr_running:
        raise Unkeepable("it had begun, and what it waits for ends with the process")
    return take_apart(coroutine, coroutine.cr_code, coroutine.cr_frame, False)


@exactly(AsyncGeneratorType)
def reduce_async_generator(pickler: Any, generator: Any) -> Any:
    frame = generator.ag_frame
    if frame is None or generator.ag_running or has_begun(generator):
        raise Unkeepable("it had begun, and what it waits for ends with the process")
    return take_apart(generator, generator.ag_code, frame, False)


def has_begun(generator: Any) -> bool:
    suspended = getattr(generator, "ag_suspended", None)  # since 3.12
    if suspended is not None:
        return bool(suspended)
    code = generator.ag_code
    return bool(generator.ag_frame.f_lasti > first_place(code))


def first_place(code: CodeType) -> int:
    return next(i.offset for i in dis.get_instructions(code) if i.opname == "RETURN_GENERATOR")


def finished() -> Any:
    generator = (each for each in "")
    next(generator, None)
    return generator


def take_apart(generator: Any, code: CodeType, frame: Any, started: bool) -> Any:
    if not is_tried():
        raise Unkeepable("this version of Python was not tried with started generators")
    marks = code.co_consts[-1:]
    mark = marks[0] if marks and type(marks[0]) is Resume else None
    written = mark.code if mark is not None else code
    names = slots(written)
    free = len(written.co_freevars)
    at = frame.f_lasti
    stack: list[Any] = []
    if mark is not None and not started:  # restored, and not started since
        at, filled, values = mark.at, mark.filled, list(code.co_consts[-2])
        cells = referents(generator, code)[:free]
    else:
        if mark is not None:
            at = mark.at if at < mark.shift else at - mark.shift
        at = yield_before(written, at) if started else at
        depth = stack_depths(written).get(at, 0) - 1 if started else 0
        found, stack = contents(generator, code, frame, names, depth)
        own = len(names) - free
        filled = [slot for slot in found if slot < own]
        values = [found[slot] for slot in filled]
        cells = [found[slot] for slot in range(own, len(names))]
    function = (whose_globals(frame.f_globals), generator.__name__, tuple(cells))
    place = (at, filled, len(stack), started, MINOR)
    made = (written, function, generator.__qualname__, place)
    return make_generator, made, [*values, *reversed(stack)], None, None, start


def contents(
    generator: Any, code: CodeType, frame: Any, names: list[str], depth: int
) -> tuple[dict[int, Any], list[Any]]:
    """Variables by slot, and the value stack, as the garbage collector sees them."""
    inside = referents(generator, code)
    cells = {*code.co_cellvars, *code.co_freevars}
    known = frame.f_locals
    filled = [slot for slot, name in enumerate(names) if name in cells or name in known]
    size = len(filled) + depth
    stack = inside[len(filled) :]
    if any(isinstance(each, BaseException) for each in stack):
        raise Unkeepable("it was handling an exception")
    if depth < 0 or not (len(inside) == size or inside[size:] == [None]):
        raise Unkeepable("it was inside of an expression that cannot be taken apart")
    stack = stack[:depth]
    return dict(zip(filled, inside, strict=False)), stack


def referents(generator: Any, code: CodeType) -> list[Any]:
    """What the frame holds: variables by slot, then the value stack."""
    inside = gc.get_referents(generator)
    for place, (one, two) in enumerate(itertools.pairwise(inside)):
        if two is code and type(one) is FunctionType:  # the frame's function and code
            return inside[place + 2 :]
    raise Unkeepable("its frame cannot be read")


def make_generator(code: CodeType, function: Any, qualname: str, place: Any) -> Any:
    whose, name, cells = function
    at, filled, depth, started, minor = place
    if tuple(minor) != MINOR:
        raise ValueError(f"it stood in code of Python {minor[0]}.{minor[1]}")
    again = resuming(code, at, filled, depth, started)
    generator = make_function(again, whose, name, cells or None)()
    generator.__name__, generator.__qualname__ = name, qualname
    return generator


def start(generator: Any, values: list[Any]) -> None:
    codes = (getattr(generator, f"{kind}_code", None) for kind in ("gi", "cr", "ag"))
    box, mark = next(code for code in codes if code is not None).co_consts[-2:]
    box[:] = values
    if mark.started:
        next(generator)
        box.clear()  # the frame has them now
