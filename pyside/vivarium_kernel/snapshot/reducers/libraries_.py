# SPDX-License-Identifier: MIT
"""Types of other libraries that have no pickle, or one that loses something."""

import importlib
import io
from typing import Any

from . import Unkeepable, family, named, unkeepable
from .instances import reduce_instance


@named("rdkit.Chem.rdchem.Mol")
def reduce_molecule(pickler: Any, molecule: Any) -> Any:
    """With its properties, which its own pickle leaves out."""
    options = importlib.import_module("rdkit.Chem").PropertyPickleOptions
    return type(molecule), (molecule.ToBinary(int(options.AllProps)),)


@named("cv2.KeyPoint")
def reduce_key_point(pickler: Any, point: Any) -> Any:
    names = ("size", "angle", "response", "octave", "class_id")
    return type(point), (*point.pt, *(getattr(point, name) for name in names))


@named("cv2.DMatch")
def reduce_match(pickler: Any, match: Any) -> Any:
    names = ("queryIdx", "trainIdx", "imgIdx", "distance")
    return type(match), tuple(getattr(match, name) for name in names)


@named("PIL.ImageFont.FreeTypeFont")
def reduce_font(pickler: Any, font: Any) -> Any:
    """One that was read from memory has no file to be read from again."""
    data = getattr(font, "font_bytes", None)
    if not data:
        return reduce_instance(pickler, font)
    return make_font, (data, font.size, font.index, font.encoding, font.layout_engine)


def make_font(data: bytes, *how: Any) -> Any:
    return importlib.import_module("PIL.ImageFont").FreeTypeFont(io.BytesIO(data), *how)


@family("zmq.sugar.context.Context")
def reduce_context(pickler: Any, context: Any) -> Any:
    from .. import live

    if context is getattr(getattr(live.shell(), "kernel", None), "context", None):
        raise Unkeepable("it is the kernel's own")
    return type(context), ()


@named("xgboost.core.DMatrix")
def reduce_matrix(pickler: Any, matrix: Any) -> Any:
    """Its data as a sparse matrix, and what there is about rows and columns."""
    rows = {
        "label": matrix.get_label(),
        "weight": matrix.get_weight(),
        "base_margin": matrix.get_base_margin(),
    }
    rows = {name: value for name, value in rows.items() if value.size}
    about = {"feature_names": matrix.feature_names, "feature_types": matrix.feature_types}
    return make_matrix, (type(matrix), matrix.get_data(), {**rows, **about})


def make_matrix(kind: Any, data: Any, about: dict[str, Any]) -> Any:
    return kind(data, **about)


@family("z3.z3.ExprRef")
def reduce_expression(pickler: Any, expression: Any) -> Any:
    z3 = importlib.import_module("z3")
    if expression.ctx is not z3.main_ctx():
        raise Unkeepable("it belongs to another context than the main one")
    made = (declarations(z3, expression), expression.sort().sexpr(), expression.sexpr())
    if not make_expression(*made).eq(expression):
        raise Unkeepable("it is not the same when it is read again")
    return make_expression, made


def declarations(z3: Any, expression: Any) -> str:
    found: dict[str, str] = {}
    waiting = [expression]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if part.get_id() in seen or not z3.is_app(part):
            continue
        seen.add(part.get_id())
        waiting += part.children()
        made = part.decl()
        if made.kind() == z3.Z3_OP_UNINTERPRETED:
            found[made.name()] = made.sexpr()
    return "".join(found[name] for name in sorted(found))


def make_expression(declared: str, sort: str, text: str) -> Any:
    z3 = importlib.import_module("z3")
    if sort == "Bool":
        return z3.parse_smt2_string(f"{declared}(assert {text})")[0]
    whole = f"{declared}(declare-const |vivarium!| {sort})(assert (= |vivarium!| {text}))"
    return z3.parse_smt2_string(whole)[0].arg(1)


@named("z3.z3.Solver")
def reduce_solver(pickler: Any, solver: Any) -> Any:
    return make_solver, (solver.to_smt2(),)


def make_solver(text: str) -> Any:
    solver = importlib.import_module("z3").Solver()
    solver.from_string(text)
    return solver


@named("pandas.io.pytables.HDFStore", "pandas.HDFStore")
def reduce_store(pickler: Any, store: Any) -> Any:
    return make_store, (type(store),), dict(vars(store)), None, None, fill_store


def make_store(kind: Any) -> Any:
    importlib.import_module("pandas.io.pytables")._tables()  # what its __init__ calls
    return kind.__new__(kind)


def fill_store(store: Any, state: dict[str, Any]) -> None:
    vars(store).update(state)


unkeepable("a stream of batches cannot be rewound", "pyarrow.lib.RecordBatchReader")
unkeepable(
    "a connection ends with its process",
    "psycopg2.extensions.connection",
    "pymysql.connections.Connection",
    "redis.connection.ConnectionPool",
    "paramiko.client.SSHClient",
    "websocket._core.WebSocket",
)
