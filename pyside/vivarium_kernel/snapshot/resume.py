# SPDX-License-Identifier: MIT
"""Code that starts a generator in the middle.

A suspended generator is its code, the place of its last yield, its variables and its value
stack.  Here the code gets a prologue that puts variables and stack back and yields once; after
that the generator stands where it stood, and the next send() jumps to behind the old yield.

The interpreter trusts bytecode: a wrong stack would crash it.  So the depth of the stack is
computed from the code and must agree with what is found, and only versions that were tried pass.
"""

import dis
import itertools
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

TRIED = ((3, 11), (3, 12), (3, 13))
VARIABLE_ARGUMENTS = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS
NO_LOCATION = 15  # a kind of entry in a line table
Range = tuple[int, int, int, int, bool]  # start, end, target in bytes; depth; with lasti


class Resume(NamedTuple):
    """The last constant of code that was made here."""

    code: CodeType  # as it was written
    at: int  # where it stood, in bytes
    shift: int  # bytes put before it
    filled: list[int]  # the slots that the box has values for
    started: bool


def is_tried() -> bool:
    return sys.version_info[:2] in TRIED


def slots(code: CodeType) -> list[str]:
    """The names of its variables, in the order of the frame."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return [*code.co_varnames, *cells, *code.co_freevars]


def exception_ranges(code: CodeType) -> list[Range]:
    parse: Any = dis._parse_exception_table  # type: ignore[attr-defined]
    return [(e.start, e.end, e.target, e.depth, e.lasti) for e in parse(code)]


def stack_depths(code: CodeType) -> dict[int, int]:
    """Offset of an instruction -> values on the stack before it; behind the generator's start."""
    instructions = {each.offset: each for each in dis.get_instructions(code)}
    order = sorted(instructions)
    following = dict(itertools.pairwise(order))
    first = next(at for at in order if instructions[at].opname == "RETURN_GENERATOR")
    waiting = [(following[following[first]], 0)]
    for _, _, target, depth, lasti in exception_ranges(code):
        waiting.append((target, depth + lasti + 1))
    depths: dict[int, int] = {}
    while waiting:
        at, depth = waiting.pop()
        if at in depths:
            continue
        depths[at] = depth
        step = instructions[at]
        number, arg = step.opcode, step.arg if step.opcode >= dis.HAVE_ARGUMENT else None
        if number in dis.hasjrel or number in dis.hasjabs:
            waiting.append((step.argval, depth + dis.stack_effect(number, arg, jump=True)))
        if not is_end(step.opname) and at in following:
            waiting.append((following[at], depth + dis.stack_effect(number, arg, jump=False)))
    return depths


def is_end(name: str) -> bool:
    """Nothing follows it."""
    if name.startswith(("JUMP_FORWARD", "JUMP_BACKWARD")):
        return True
    return name in ("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS")


class Writer:
    def __init__(self) -> None:
        self.code = bytearray()

    def add(self, name: str, arg: int = 0) -> None:
        for shift in (24, 16, 8):
            if arg >> shift:
                self.code += bytes((dis.opmap["EXTENDED_ARG"], arg >> shift & 255))
        self.code += bytes((dis.opmap[name], arg & 255))
        self.code += bytes(2 * caches(name))


def caches(name: str) -> int:
    known: Any = dis._inline_cache_entries  # type: ignore[attr-defined]
    found = known.get(name, 0) if isinstance(known, dict) else known[dis.opmap[name]]
    return int(found)


def resuming(code: CodeType, at: int, filled: list[int], depth: int, started: bool) -> CodeType:
    """Code that unpacks a box, its last constant but one: variables for the slots `filled`, then
    `depth` values of the stack, the top first."""
    writer = Writer()
    if code.co_freevars:
        writer.add("COPY_FREE_VARS", len(code.co_freevars))
    writer.add("RETURN_GENERATOR")
    writer.add("POP_TOP")
    writer.add("RESUME", 0)
    writer.add("LOAD_CONST", len(code.co_consts))
    writer.add("UNPACK_SEQUENCE", len(filled) + depth)
    for slot in filled:
        writer.add("STORE_FAST", slot)
    ready = len(writer.code)
    if started:
        writer.add("LOAD_CONST", len(code.co_consts) + 1)  # anything: nobody sees it
        writer.add("YIELD_VALUE", yield_arg(code, at))
        writer.add("RESUME", 1)
        writer.add("JUMP_FORWARD", at // 2 + 1)
    else:
        writer.add("JUMP_FORWARD", behind_start(code) // 2)
    shift = len(writer.code)
    ranges = [(s + shift, e + shift, t + shift, d, x) for s, e, t, d, x in exception_ranges(code)]
    for start, end, target, level, lasti in exception_ranges(code):
        if started and start <= at < end:  # what close() and throw() meet before the next send()
            ranges.insert(0, (ready + 2, shift, target + shift, level, lasti))
            break
    return code.replace(
        co_code=bytes(writer.code) + code.co_code,
        co_consts=(*code.co_consts, [], Resume(code, at, shift, filled, started)),
        co_exceptiontable=b"".join(map(encode_range, ranges)),
        co_linetable=no_location(shift // 2) + code.co_linetable,
        co_stacksize=max(code.co_stacksize, len(filled) + depth + 2),
        co_flags=code.co_flags & ~VARIABLE_ARGUMENTS,
        co_argcount=0,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
    )


def yield_before(code: CodeType, at: int) -> int:
    """The place of the yield; since 3.13 a frame points to what follows it."""
    return at - 2 if code.co_code[at] == dis.opmap["RESUME"] else at


def yield_arg(code: CodeType, at: int) -> int:
    return code.co_code[at + 1] if sys.version_info >= (3, 12) else 0


def behind_start(code: CodeType) -> int:
    """Where a generator begins that was not started: at RESUME."""
    order = list(dis.get_instructions(code))
    place = next(i for i, each in enumerate(order) if each.opname == "RETURN_GENERATOR")
    return order[place + 2].offset


def no_location(units: int) -> bytes:
    sizes = [min(8, units - start) for start in range(0, units, 8)]
    return bytes(0x80 | NO_LOCATION << 3 | size - 1 for size in sizes)


def encode_range(found: Range) -> bytes:
    start, end, target, depth, lasti = found
    parts = (start // 2, (end - start) // 2, target // 2, depth << 1 | lasti)
    data = bytearray(byte for part in parts for byte in varint(part))
    data[0] |= 0x80  # an entry begins
    return bytes(data)


def varint(number: int) -> Iterator[int]:
    """Six bits a byte, the highest first, each byte but the last marked."""
    shifts = [shift for shift in (24, 18, 12, 6) if number >> shift]
    for shift in shifts:
        yield number >> shift & 63 | 0x40
    yield number & 63
