# SPDX-License-Identifier: MIT
"""Runs inside a kernel and speaks for it, past ipykernel: any bytes in any signed message."""

from __future__ import annotations

import sys
from typing import Any

DELIMITER = b"<IDS|MSG>"


def kernel() -> Any:
    return sys.modules["ipykernel.kernelbase"].Kernel.instance()


def frames(kind: str, content: bytes, metadata: bytes, parent: dict[str, Any]) -> list[bytes]:
    session = kernel().session
    message = session.msg(kind, content={}, parent=parent)
    parts = [session.pack(message["header"]), session.pack(message["parent_header"])]
    parts += [metadata, content]
    return [kind.encode(), DELIMITER, session.sign(parts), *parts]


def broadcast(
    kind: str, content: bytes, *, metadata: bytes = b"{}", parent: dict[str, Any] | None = None
) -> None:
    """In its turn among the other broadcasts."""
    if parent is None:
        parent = kernel().get_parent("shell")
    message = frames(kind, content, metadata, parent)
    thread = kernel().iopub_thread
    thread.schedule(lambda: thread.socket.send_multipart(message))


def spoil_reply(metadata: bytes) -> None:
    """The reply of this cell comes with this in the place of its metadata."""
    session = kernel().session
    pack = session.pack

    def pack_once(value: Any) -> bytes:
        if isinstance(value, dict) and "vivarium" in value:
            session.pack = pack
            return metadata
        packed: bytes = pack(value)
        return packed

    session.pack = pack_once
