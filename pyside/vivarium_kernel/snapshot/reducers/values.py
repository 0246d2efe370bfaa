# SPDX-License-Identifier: MIT
"""Small types of the standard library that have state and no pickle."""

import contextvars
import functools
import gc
import re
import struct
from typing import Any

from ..kinds import is_found_as
from . import Unkeepable, exactly, family, named


@exactly(struct.Struct)
def reduce_struct(pickler: Any, found: struct.Struct) -> Any:
    return struct.Struct, (found.format,)


@exactly(re.Match)
def reduce_match(pickler: Any, match: Any) -> Any:
    made = (match.re, match.string, match.start(), match.endpos, match.end())
    if find_match(*made).regs != match.regs:
        raise Unkeepable("the same match is not found again")
    return find_match, made


def find_match(pattern: Any, text: Any, start: int, limit: int, end: int) -> Any:
    found = pattern.match(text, start, limit)
    if found is None or found.end() != end:
        found = pattern.fullmatch(text, start, end)
    return found


@exactly(type({}.keys()), type({}.values()), type({}.items()))
def reduce_view(pickler: Any, view: Any) -> Any:
    # The mapping is a proxy; what it stands for is found by asking it to be merged.
    return look_at, (view.mapping | Reveal(), type(view).__name__.removeprefix("dict_"))


class Reveal:
    """`proxy | Reveal()` is the dict itself behind a mappingproxy."""

    def __ror__(self, other: Any) -> Any:
        return other


def look_at(mapping: Any, name: str) -> Any:
    return getattr(mapping, name)()


ABSENT = "__vivarium_absent__"


@exactly(contextvars.ContextVar)
def reduce_variable(pickler: Any, variable: Any) -> Any:
    default = [each for each in gc.get_referents(variable) if each is not variable.name][:1]
    value = contextvars.copy_context().get(variable, ABSENT)
    state = () if value is ABSENT else (value,)
    return make_variable, (variable.name, *default), state, None, None, set_variable


def make_variable(name: str, *default: Any) -> Any:
    options = {"default": default[0]} if default else {}
    return contextvars.ContextVar(name, **options)


def set_variable(variable: Any, state: tuple[Any, ...]) -> None:
    if state:
        variable.set(state[0])


@named("functools._lru_cache_wrapper")
def reduce_cache(pickler: Any, cached: Any) -> Any:
    """Without what it has cached: it is computed again."""
    place = (getattr(cached, "__module__", ""), getattr(cached, "__qualname__", ""))
    if is_found_as(cached, *place):
        return str(place[1])
    options = cached.cache_parameters()
    made = (cached.__wrapped__, options["maxsize"], options["typed"])
    return make_cache, made, dict(vars(cached)), None, None, fill_cache


def make_cache(function: Any, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize, typed)(function)


def fill_cache(cached: Any, state: dict[str, Any]) -> None:
    vars(cached).update(state)


@family("argparse.Action")
def reduce_action(pickler: Any, action: Any) -> Any:
    return make_action, (type(action),), dict(vars(action)), None, None, fill_action


def make_action(kind: Any) -> Any:
    return kind.__new__(kind)


def fill_action(action: Any, state: dict[str, Any]) -> None:
    """argparse compares this string by `is`."""
    import argparse

    for name, value in state.items():
        vars(action)[name] = argparse.SUPPRESS if value == argparse.SUPPRESS else value


@family("ssl.SSLContext")
def reduce_ssl(pickler: Any, context: Any) -> Any:
    verify = (context.check_hostname, context.verify_mode, context.verify_flags)
    versions = (context.minimum_version, context.maximum_version)
    authorities = context.get_ca_certs(binary_form=True)
    return make_ssl, (context.protocol, context.options, verify, versions, authorities)


def make_ssl(protocol: Any, options: Any, verify: Any, versions: Any, authorities: Any) -> Any:
    import ssl

    context = ssl.SSLContext(protocol)
    context.check_hostname, context.verify_mode, context.verify_flags = verify
    context.minimum_version, context.maximum_version = versions
    context.options = options
    for each in authorities:
        context.load_verify_locations(cadata=each)
    return context


@family("IPython.core.interactiveshell.InteractiveShell", "ipykernel.kernelbase.Kernel")
def reduce_shell(pickler: Any, found: Any) -> Any:
    from .. import live

    if found is live.shell():
        return current_shell, ()
    if found is getattr(live.shell(), "kernel", None):
        return getattr, (live.shell(), "kernel")
    raise Unkeepable("it is another shell than this one")


def current_shell() -> Any:
    from .. import live

    return live.shell()
