# SPDX-License-Identifier: MIT
"""Classes derived from defaultdict: its own __reduce__ calls the class with the factory alone,
which is wrong for every __init__ that means something else by its first argument."""

from collections import defaultdict
from typing import Any

from ..kinds import dict_of, inherited
from . import family
from .containers import fill
from .instances import reduce_instance

FACTORY: Any = dict_of(defaultdict)["default_factory"]


@family("collections.defaultdict")
def reduce_derived(pickler: Any, value: Any) -> Any:
    kind = type(value)
    if any(
        inherited(kind, name) is not inherited(defaultdict, name)
        for name in ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
    ):
        return reduce_instance(pickler, value)
    content = list(dict.items(value)), object.__getstate__(value)
    return make_derived, (kind,), (FACTORY.__get__(value), content), None, None, fill_derived


def make_derived(kind: type) -> Any:
    return defaultdict.__new__(kind)


def fill_derived(value: Any, parts: tuple[Any, Any]) -> None:
    factory, content = parts
    FACTORY.__set__(value, factory)
    fill(value, content)
