# SPDX-License-Identifier: MIT
"""Write frames.json: Jupyter messages as jupyter_client puts them on the wire.

Usage: .venv-dev/bin/python tests/data/make_frames.py

Each entry: name, key (text), identities (hex), frames (hex; all of the message in order:
identities, <IDS|MSG>, signature, header, parent header, metadata, content, buffers), msg_type,
msg_id, parent_msg_id ("" if none), buffers (their number), and text: what a reader shows, with
U+FFFD in the place of bytes that are not UTF-8.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jupyter_client.session import Session

PATH = Path(__file__).with_name("frames.json")
KEY = "0123456789abcdef" * 4
ASTRAL = 'snake \U0001f40d, music \U0001d11e, umlaut ä, quote " and \\, line\nend'
PNG = bytes.fromhex("89504e470d0a1a0a00ff")


def header(msg_type: str, number: int) -> dict[str, Any]:
    return {
        "msg_id": f"5e55104e_{number}",
        "msg_type": msg_type,
        "username": "username",
        "session": "5e55104e",
        "date": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "version": "5.4",
    }


REQUEST = header("execute_request", 1)


def messages() -> list[dict[str, Any]]:
    """Keyword arguments of `message`, one row for each entry."""
    code = {
        "code": "1 + 1",
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }
    ok = {"status": "ok", "execution_count": 1, "user_expressions": {}, "payload": []}
    report = {"v": 1, "vars": [], "more_vars": 0, "modules": [], "threads": 0, "children": 0}
    stream = {"parent": REQUEST, "identities": [b"stream.stdout"]}
    return [
        {"name": "kernel_info_request", "msg_type": "kernel_info_request", "content": {}},
        {"name": "execute_request", "content": code, "own": REQUEST, "text": "1 + 1"},
        {
            "name": "execute_reply ok",
            "msg_type": "execute_reply",
            "content": ok,
            "parent": REQUEST,
            "metadata": {"status": "ok", "vivarium": report},
            "identities": [b"\x00dealer"],
        },
        {
            "name": "status idle",
            "msg_type": "status",
            "content": {"execution_state": "idle"},
            "parent": REQUEST,
            "identities": [b"kernel.1.status"],
            "text": "idle",
        },
        {
            "name": "stream with a raw byte that is not UTF-8",
            "msg_type": "stream",
            "content": {"name": "stdout", "text": "a\udcffb"},
            "text": "a\ufffdb",
            **stream,
        },
        {
            "name": "stream with astral text",
            "msg_type": "stream",
            "content": {"name": "stdout", "text": ASTRAL},
            "text": ASTRAL,
            **stream,
        },
        {
            "name": "display_data with a buffer",
            "msg_type": "display_data",
            "content": {"data": {"text/plain": "<Figure>"}, "metadata": {}, "transient": {}},
            "parent": REQUEST,
            "identities": [b"display_data"],
            "buffers": [PNG],
            "text": "<Figure>",
        },
        {
            "name": "no identity",
            "msg_type": "iopub_welcome",
            "content": {"subscription": ""},
        },
        {
            "name": "two identities",
            "msg_type": "execute_reply",
            "content": ok,
            "parent": REQUEST,
            "identities": [b"\x00router", b"\x80\x00\x41\xa7\xff"],
        },
        {
            "name": "empty identity",
            "msg_type": "status",
            "content": {"execution_state": "busy"},
            "parent": REQUEST,
            "identities": [b""],
            "text": "busy",
        },
    ]


def message(number: int, row: dict[str, Any]) -> dict[str, Any]:
    session = Session(key=KEY.encode(), session="5e55104e")
    own = row.get("own") or header(row["msg_type"], number)
    parent = row.get("parent", {})
    identities, buffers = row.get("identities", []), row.get("buffers", [])
    built = session.msg(own["msg_type"], row["content"], header=own, metadata=row.get("metadata"))
    built["parent_header"] = parent
    frames = [*session.serialize(built, identities), *buffers]
    return {
        "name": row["name"],
        "key": KEY,
        "identities": [part.hex() for part in identities],
        "frames": [part.hex() for part in frames],
        "msg_type": own["msg_type"],
        "msg_id": own["msg_id"],
        "parent_msg_id": parent.get("msg_id", ""),
        "buffers": len(buffers),
        "text": row.get("text", ""),
    }


def render() -> str:
    entries = [message(number, row) for number, row in enumerate(messages(), 2)]
    return json.dumps(entries, indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(render())
