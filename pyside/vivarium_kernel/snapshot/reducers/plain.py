# SPDX-License-Identifier: MIT
"""Types whose own pickle is right and fast."""

import collections
import datetime
import decimal
import fractions
import uuid
from typing import Any

from ..kinds import dict_of, mro_of
from . import as_it_is, exactly, family, named

exactly(
    *(complex, range, slice, type(...), type(NotImplemented)),
    *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID),
    *(collections.deque, collections.OrderedDict, collections.defaultdict, collections.Counter),
)(as_it_is)
named(
    "pandas._libs.tslibs.timestamps.Timestamp",
    "pandas._libs.tslibs.timedeltas.Timedelta",
    "pandas._libs.tslibs.period.Period",
)(as_it_is)
family("numpy.generic", "numpy.dtype")(as_it_is)

NEW_ARGUMENTS: Any = vars(collections.namedtuple("Sample", "x"))["__getnewargs__"]


def is_named_tuple(kind: type, getter: Any) -> bool:
    """Made by namedtuple(), with its own way to be pickled."""
    if (
        not issubclass(kind, tuple)
        or getattr(getter, "__code__", None) is not NEW_ARGUMENTS.__code__
    ):
        return False
    maker = next(base for base in mro_of(kind) if "__new__" in dict_of(base))
    return dict_of(maker).get("__getnewargs__") is getter
