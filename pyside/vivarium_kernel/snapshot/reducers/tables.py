# SPDX-License-Identifier: MIT
"""csv readers and writers, and iterators that show what they hold to the garbage collector only."""

import csv
import gc
import itertools
from typing import Any

from . import Unkeepable, named

DIALECT = (
    *("delimiter", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting"),
    *("skipinitialspace", "strict"),
)


def dialect_of(found: Any) -> dict[str, Any]:
    return {name: getattr(found.dialect, name) for name in DIALECT}


@named("_csv.reader")
def reduce_reader(pickler: Any, reader: Any) -> Any:
    inside = [each for each in gc.get_referents(reader) if each is not type(reader)]
    sources = [each for each in inside if hasattr(each, "__next__")]
    if len(sources) != 1:
        raise Unkeepable("what it reads from cannot be found")
    return make_reader, (sources[0], dialect_of(reader))


def make_reader(source: Any, dialect: dict[str, Any]) -> Any:
    return csv.reader(source, **dialect)


@named("_csv.writer")
def reduce_writer(pickler: Any, writer: Any) -> Any:
    targets = [
        each for each in gc.get_referents(writer) if getattr(each, "__name__", "") == "write"
    ]
    if len(targets) != 1:
        raise Unkeepable("what it writes to cannot be found")
    return make_writer, (targets[0].__self__, dialect_of(writer))


def make_writer(target: Any, dialect: dict[str, Any]) -> Any:
    return csv.writer(target, **dialect)


@named("itertools.pairwise")
def reduce_pairs(pickler: Any, pairs: Any) -> Any:
    inside = [each for each in gc.get_referents(pairs) if each is not type(pairs)]
    return make_pairs, tuple(inside[:2])


def make_pairs(source: Any, *first: Any) -> Any:
    return itertools.pairwise(itertools.chain(first, source))
