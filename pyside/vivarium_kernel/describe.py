# SPDX-License-Identifier: MIT
"""One value in a few words, without running a line of the user's code: a value is looked into
only when its type is exactly one of those known below, by calls that these types themselves
implement, and of all others only the type's name is told.
"""

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any
from uuid import UUID

MAX_SCALAR = 24  # characters of a number, of a column's name
MAX_SHOWN = 40  # of a path or a date
MAX_COLUMNS = 5
MAX_KEYS = 6
FRAME_TEXT = 68  # characters of a frame before it says how many columns are left
VARARGS, KEYWORDS, COROUTINE, ASYNC_GENERATOR = 0x04, 0x08, 0x80, 0x200  # of co_flags

Text = Callable[[Any], str]


class Describer:
    """For one report: the types of the libraries that are imported now."""

    def __init__(self) -> None:
        # By identity: a metaclass may have made of hashing and comparing something that runs.
        self._texts = {id(kind): text for kind, text in EXACT.items()}
        self._marks = {id(kind): mark for kind, mark in MARKS.items()}
        for module, names, text, mark in LIBRARIES:
            for name in names:
                kind = library_type(module, name)
                if kind is not None:
                    self._texts[id(kind)] = text
                    self._marks[id(kind)] = mark
        self._estimator = library_type("sklearn.base", "BaseEstimator")
        self._generic = library_type("numpy", "generic")
        self._image = library_type("PIL.Image", "Image")

    def text(self, value: Any) -> str:
        kind = type(value)
        try:
            known = self._texts.get(id(kind))
            return known(value) if known is not None else self._other(kind, value)
        except Exception:  # it changes under our hands, in another thread
            return type_name(kind)

    def mark(self, value: Any) -> object:
        """Differs when what the text says has changed; cheap, since it is made of all names."""
        known = self._marks.get(id(type(value)))
        try:
            return known(value) if known is not None else None
        except Exception:
            return None

    def columns(self, value: Any, most: int) -> list[str]:
        """The first names of a table's columns, those that are text; of all else none."""
        if self._texts.get(id(type(value))) is not frame:
            return []
        try:
            found = value.columns
            return [name for name in found[:most] if type(name) is str] if is_labels(found) else []
        except Exception:
            return []

    def _other(self, kind: type, value: Any) -> str:
        name = type_name(kind)
        if issubclass(kind, type):
            return "class"
        bases = set(map(id, bases_of(kind)))
        if id(self._estimator) in bases:
            return f"{name} {'fitted' if is_fitted(value) else 'not fitted'}"
        if id(self._generic) in bases and library_type("numpy", name) is kind:
            return scalar(name, value)
        if id(self._image) in bases and module_of(kind).startswith("PIL."):
            return image(value)
        return name


# Types and their names.


def library_type(module: str, name: str) -> object:
    """A type of a library that is imported already; None when it is not, or is a fake."""
    found = sys.modules.get(module)
    return vars(found).get(name) if type(found) is ModuleType else None


# Through `type` itself: a metaclass may have made of these something that runs.
def type_name(kind: type) -> str:
    return str(type.__dict__["__name__"].__get__(kind))


def module_of(kind: type) -> str:
    module = type.__dict__["__module__"].__get__(kind)
    return module if type(module) is str else ""


def bases_of(kind: type) -> tuple[type, ...]:
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return bases


def members_of(value: Any) -> dict[str, Any]:
    """An instance's own attributes, past any __getattribute__ or property of its class."""
    for base in bases_of(type(value)):
        found = type.__dict__["__dict__"].__get__(base).get("__dict__")
        if type(found) is GetSetDescriptorType:
            members = found.__get__(value)
            return members if type(members) is dict else {}
    return {}


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Plain values.


def counted(unit: str) -> Text:
    def text(value: Any) -> str:
        size = len(value)
        return f"{size} {unit}" if size == 1 else f"{size} {unit}s"

    return text


def number(value: Any) -> str:
    if type(value) is int and value.bit_length() > 256:
        return f"int of {value.bit_length()} bits"
    return shorten(repr(value), MAX_SCALAR)


def shown(value: Any) -> str:
    return shorten(str(value), MAX_SHOWN)


def decimal(value: Any) -> str:
    return f"Decimal {shorten(str(value), MAX_SCALAR)}"


def fraction(value: Any) -> str:
    top, bottom = value.numerator, value.denominator
    return f"{number(top)}/{number(bottom)}" if type(top) is type(bottom) is int else "Fraction"


def mapping(value: Any) -> str:
    text = counted("key")(value)
    if 0 < len(value) <= MAX_KEYS and all(type(key) is str for key in value):
        return f"{text} [{', '.join(shorten(key, MAX_SCALAR) for key in value)}]"
    return text


def scalar(name: str, value: Any) -> str:
    """A number of numpy's; of a record only the name, since it may hold any object."""
    if name in ("void", "object_", "bytes_", "str_"):
        return name
    return f"{name} {shorten(str(value), MAX_SCALAR)}"


# Functions.


def function(value: Any) -> str:
    for _ in range(8):  # what a decorator made of it tells less
        wrapped = value.__dict__.get("__wrapped__")
        if type(wrapped) is not FunctionType:
            break
        value = wrapped
    code, name = value.__code__, value.__name__
    listed = ", ".join(parameters(value, code))
    if name == "<lambda>":
        return f"lambda {listed}".rstrip()
    is_async = code.co_flags & (COROUTINE | ASYNC_GENERATOR)
    return f"{'async ' if is_async else ''}{str.__str__(name)}({listed})"


def parameters(value: Any, code: Any) -> list[str]:
    names = code.co_varnames
    usual, only, keywords = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
    defaults = value.__defaults__ or ()
    rows = [names[i] + default(defaults, i - usual + len(defaults)) for i in range(usual)]
    if only:
        rows.insert(only, "/")
    after = usual + keywords
    if code.co_flags & VARARGS:
        rows.append("*" + names[after])
        after += 1
    elif keywords:
        rows.append("*")
    given = value.__kwdefaults__ or {}
    for name in names[usual : usual + keywords]:
        rows.append(name + (default((given[name],), 0) if name in given else ""))
    if code.co_flags & KEYWORDS:
        rows.append("**" + names[after])
    return rows


def default(defaults: tuple[Any, ...], index: int) -> str:
    if index < 0:
        return ""
    value = defaults[index]
    if type(value) is str:
        return "=" + shorten(repr(value[:MAX_SCALAR]), MAX_SCALAR)
    kind = type(value)
    plain = value is None or kind is int or kind is float or kind is bool
    return "=" + (number(value) if plain else "…")


def builtin(value: Any) -> str:
    return f"{value.__name__}()"


# Tables, arrays, models, pictures.


def label(value: Any) -> str:
    """A column's name."""
    kind = type(value)
    if kind is str:
        return shorten(value, MAX_SCALAR)
    if kind is int or kind is float or kind is bool:
        return number(value)
    if kind is tuple:
        return "/".join(label(part) for part in value[:MAX_COLUMNS])
    if kind is date:
        return str(value)
    if kind is library_type("pandas", "Timestamp"):
        return shorten(str(value).removesuffix(" 00:00:00"), MAX_SCALAR)
    return type_name(kind)


def is_labels(columns: Any) -> bool:
    return type(columns) is list or module_of(type(columns)).partition(".")[0] == "pandas"


def frame(value: Any) -> str:
    rows, width = value.shape
    columns = value.columns
    if not is_labels(columns):
        return f"{rows}x{width}"
    text = f"{rows}x{width} ["
    left = width
    for name in map(label, columns[:MAX_COLUMNS]):
        if left < width and len(text) + len(name) > FRAME_TEXT:
            break
        text += (", " if left < width else "") + name
        left -= 1
    return text + (f", +{left}]" if left else "]")


def dtype(value: Any) -> str:
    """A user's own dtype may have any __str__."""
    kind = type(value.dtype)
    if module_of(kind).partition(".")[0] in ("numpy", "pandas", "polars", "torch"):
        return str(value.dtype).removeprefix("torch.")
    return type_name(kind)


def series(value: Any) -> str:
    return f"{type_name(type(value))} {len(value)} {dtype(value)}"


def array(value: Any) -> str:
    shape = "x".join(map(str, value.shape)) or "scalar"
    return f"{type_name(type(value))} {shape} {dtype(value)}"


def is_fitted(model: Any) -> bool:
    """scikit-learn's own rule: something whose name ends in an underscore was learnt."""
    members = members_of(model)
    steps = members.get("steps")  # a pipeline: as its last step
    if type(steps) is list and steps and type(steps[-1]) is tuple and len(steps[-1]) == 2:
        return is_fitted(steps[-1][1])
    learnt = (name for name in members if type(name) is str and name.endswith("_"))
    return any(not name.startswith("__") for name in learnt) or "_Booster" in members


def image(value: Any) -> str:
    members = members_of(value)
    size, mode = members.get("_size"), members.get("_mode", members.get("mode"))
    if type(size) is tuple and len(size) == 2 and type(mode) is str:
        return f"Image {number(size[0])}x{number(size[1])} {shorten(mode, MAX_SCALAR)}"
    return "Image"


EXACT: dict[type, Text] = {
    str: counted("char"),
    bytes: counted("byte"),
    bytearray: counted("byte"),
    dict: mapping,
    OrderedDict: mapping,
    defaultdict: mapping,
    Counter: mapping,
    list: counted("item"),
    tuple: counted("item"),
    set: counted("item"),
    frozenset: counted("item"),
    deque: counted("item"),
    range: counted("item"),
    int: number,
    float: number,
    complex: number,
    bool: number,
    type(None): number,
    date: shown,
    datetime: lambda value: shown(value.replace(tzinfo=None)),  # a tzinfo may be anybody's
    time: lambda value: shown(value.replace(tzinfo=None)),
    timedelta: shown,
    Decimal: decimal,
    Fraction: fraction,
    PosixPath: shown,
    UUID: shown,
    FunctionType: function,
    BuiltinFunctionType: builtin,
}

MARKS: dict[type, Callable[[Any], object]] = dict.fromkeys(
    (bytearray, dict, OrderedDict, defaultdict, Counter, list, set, deque), len
)


def of_shape(value: Any) -> object:
    return value.shape


def of_frame(value: Any) -> object:
    """Its columns are another object when one is added or renamed."""
    columns = value.columns
    return value.shape, id(columns) if type(columns) is not list else tuple(columns)


LIBRARIES: tuple[tuple[str, tuple[str, ...], Text, Callable[[Any], object]], ...] = (
    ("pandas", ("DataFrame",), frame, of_frame),
    ("geopandas", ("GeoDataFrame",), frame, of_frame),
    ("polars", ("DataFrame",), frame, of_frame),
    (
        "pandas",
        ("Series", "Index", "RangeIndex", "DatetimeIndex", "MultiIndex", "CategoricalIndex"),
        series,
        of_shape,
    ),
    ("pandas", ("Timestamp", "Timedelta"), shown, id),
    ("polars", ("Series",), series, of_shape),
    ("numpy", ("ndarray", "matrix"), array, of_shape),
    ("numpy.ma", ("MaskedArray",), array, of_shape),
    ("torch", ("Tensor",), array, of_shape),
    ("xarray", ("DataArray",), array, of_shape),
    (
        "scipy.sparse",
        ("csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array", "coo_array"),
        array,
        of_shape,
    ),
)
