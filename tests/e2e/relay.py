# SPDX-License-Identifier: MIT
"""A relay between a client and the daemon: hands bytes on as they are, and keeps what the
client sent."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class Request:
    method: str
    headers: dict[str, str]  # names in small letters
    body: Any  # JSON, or None


def take_apart(sent: bytes) -> Iterator[Request]:
    """The requests of one connection; one that was cut off is left out."""
    while b"\r\n\r\n" in sent:
        head, _, sent = sent.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        size = int(headers.get("content-length", "0"))
        body, sent = sent[:size], sent[size:]
        if len(body) == size:
            yield Request(first.split()[0], headers, json.loads(body) if body else None)


class Relay:
    def __init__(self, listener: socket.socket, port: int) -> None:
        self.listener, self.port = listener, port
        self.sent: list[bytearray] = []  # a connection each
        self.open: set[socket.socket] = set()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):  # until the listener is shut down
            while True:
                client, _ = self.listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self.port))
                except OSError:  # as a daemon that is not there
                    client.close()
                    continue
                self.open |= {client, server}
                self.sent.append(bytearray())
                for args in ((client, server, self.sent[-1]), (server, client, bytearray())):
                    threading.Thread(target=self.pump, args=args, daemon=True).start()

    def pump(self, source: socket.socket, target: socket.socket, kept: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                kept += data
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def requests(self) -> list[Request]:
        return [request for sent in self.sent for request in take_apart(bytes(sent))]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
