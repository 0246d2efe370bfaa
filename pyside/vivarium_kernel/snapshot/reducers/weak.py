# SPDX-License-Identifier: MIT
"""Weak references and containers.  What only they pointed to is gone after loading, as ever."""

import weakref
from typing import Any

from . import Unkeepable, exactly, family


@exactly(weakref.ReferenceType)
def reduce_reference(pickler: Any, reference: Any) -> Any:
    target = reference()
    if target is None:
        return dead_reference, ()
    return weakref.ref, (target, *filter(None, [reference.__callback__]))


class Gone:
    """What a dead reference once pointed to."""


def dead_reference() -> Any:
    return weakref.ref(Gone())


@exactly(weakref.WeakMethod)
def reduce_method(pickler: Any, reference: Any) -> Any:
    method = reference()
    return (weakref.WeakMethod, (method,)) if method is not None else (dead_reference, ())


@exactly(weakref.ProxyType, weakref.CallableProxyType)
def reduce_proxy(pickler: Any, proxy: Any) -> Any:
    try:
        return weakref.proxy, (proxy.__repr__.__self__,)
    except ReferenceError:
        raise Unkeepable("what it stood for is gone") from None


@family("weakref.WeakValueDictionary", "weakref.WeakKeyDictionary")
def reduce_dictionary(pickler: Any, found: Any) -> Any:
    more = {name: value for name, value in vars(found).items() if name not in OWN}
    return make_weak, (type(found),), (list(found.items()), more), None, None, fill_dictionary


OWN = frozenset({"data", "_remove", "_pending_removals", "_iterating", "_dirty_len"})


def make_weak(kind: Any) -> Any:
    made = kind.__new__(kind)
    base: Any = next(base for base in kind.__mro__ if base.__module__ in ("weakref", "_weakrefset"))
    base.__init__(made)
    return made


def fill_dictionary(made: Any, parts: tuple[list[Any], dict[str, Any]]) -> None:
    items, more = parts
    for key, value in items:
        made[key] = value
    vars(made).update(more)


@family("_weakrefset.WeakSet")
def reduce_set(pickler: Any, found: Any) -> Any:
    return make_weak, (type(found),), list(found), None, None, fill_set


def fill_set(made: Any, items: list[Any]) -> None:
    for item in items:
        made.add(item)


@family("weakref.finalize")
def reduce_finalizer(pickler: Any, finalizer: Any) -> Any:
    peeked = finalizer.peek()
    if peeked is None:
        return dead_finalizer, ()
    return make_finalizer, (*peeked, finalizer.atexit)


def make_finalizer(target: Any, function: Any, args: Any, named: Any, atexit: bool) -> Any:
    made = weakref.finalize(target, function, *args, **named)
    made.atexit = atexit
    return made


def dead_finalizer() -> Any:
    made = weakref.finalize(Gone(), int)
    made.detach()
    return made
