"""Event streams, read as they come."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness import Client


@dataclass
class Event:
    id: str = ""
    name: str = ""
    data: str = ""
    retry: str = ""

    def json(self) -> Any:
        return json.loads(self.data)


class Stream:
    """One request whose answer is a stream, or is not."""

    def __init__(
        self,
        port: int,
        method: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        path: str = "/mcp",
    ) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        data = None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, data, dict(headers or {}))
        self.sock = self.connection.sock
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.comments = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The connection is dropped, wherever it is."""
        self.response.close()
        self.connection.close()

    def is_stream(self) -> bool:
        return self.response.headers.get_content_type() == "text/event-stream"

    def event(self) -> Event | None:
        """The next one; None when the stream has ended."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode():
            line = line.rstrip("\n")
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif fields:
                known = {"id", "data", "retry"} & fields.keys()
                return Event(name=fields.get("event", ""), **{key: fields[key] for key in known})
        return None

    def events(self) -> Iterator[Event]:
        while event := self.event():
            yield event

    def messages(self) -> Iterator[Any]:
        if self.is_stream():
            yield from (event.json() for event in self.events() if event.data)
        else:
            yield json.loads(self.response.read())

    def message(self) -> Any:
        return next(self.messages())


def ask(client: Client, method: str, params: object = None, **headers: str) -> Stream:
    """A POST of the client's session."""
    return Stream(client.port, "POST", client.message(method, params), client.headers(**headers))


def ask_run(client: Client, code: str, *, meta: object = None, **arguments: object) -> Stream:
    params = {"name": "run_python", "arguments": {"code": code, **arguments}}
    return ask(client, "tools/call", params | ({"_meta": meta} if meta else {}))


def listen(client: Client, **headers: str) -> Stream:
    """A GET of the client's session."""
    return Stream(client.port, "GET", headers=client.headers(**headers))
