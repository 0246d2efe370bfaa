# SPDX-License-Identifier: MIT
"""Databases of sqlite3: in memory with their content, in files by name."""

from typing import Any

from . import Unkeepable, family


@family("sqlite3.Connection")
def reduce_connection(pickler: Any, connection: Any) -> Any:
    if connection.in_transaction:
        raise Unkeepable("a transaction was open")
    databases = [row[1:3] for row in plain_cursor(connection, "PRAGMA database_list")]
    if any(name not in ("main", "temp") for name, _ in databases):
        raise Unkeepable("it has other databases attached")
    path = dict(databases)["main"] or ""
    empty = plain_cursor(connection, "PRAGMA page_count") == [(0,)]
    content = b"" if path or empty else connection.serialize()
    options = {
        "isolation_level": connection.isolation_level,
        "row_factory": connection.row_factory,
        "text_factory": connection.text_factory,
    }
    return make_connection, (type(connection), path), (content, options), None, None, fill


def plain_cursor(connection: Any, statement: str) -> Any:
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(statement).fetchall()


def make_connection(kind: Any, path: str) -> Any:
    import os

    if path and not os.path.exists(path):
        raise FileNotFoundError(path)  # else it would make an empty one
    return kind(path or ":memory:", check_same_thread=False)


def fill(connection: Any, parts: Any) -> None:
    content, options = parts
    if content:
        connection.deserialize(content)
    for name, value in options.items():
        setattr(connection, name, value)


@family("sqlite3.Row")
def reduce_row(pickler: Any, row: Any) -> Any:
    return make_row, (type(row), list(row.keys()), tuple(row))


def make_row(kind: Any, names: list[str], values: tuple[Any, ...]) -> Any:
    """A row belongs to a cursor that has columns of these names."""
    import sqlite3

    columns = ", ".join('? AS "' + name.replace('"', '""') + '"' for name in names)
    connection = sqlite3.connect(":memory:")
    connection.row_factory = kind
    row = connection.execute(f"SELECT {columns}", values).fetchone()
    connection.close()
    return row


@family("sqlite3.Cursor")
def reduce_cursor(pickler: Any, cursor: Any) -> Any:
    raise Unkeepable("rows that were not fetched cannot be read without fetching them")
