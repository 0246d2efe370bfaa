"""One message after the other over whatever carries MCP both ways: standard streams, a
WebSocket."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import Any, Self

NEWEST, BATCHES, STATELESS = "2025-11-25", "2025-03-26", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Dialogue(ABC):
    def __init__(self) -> None:
        self.ids = itertools.count(1)

    @abstractmethod
    def send(self, message: object) -> None:
        """A message; bytes are sent as they are."""

    @abstractmethod
    def read(self) -> Any:
        """The next message of the other side."""

    def ask(self, method: str, params: object = None, **more: object) -> Any:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self.ids), "method": method}
        message |= ({} if params is None else {"params": params}) | more
        self.send(message)
        return message["id"]

    def request(self, method: str, params: object = None) -> Any:
        wanted = self.ask(method, params)
        answer = self.read()
        assert answer["id"] == wanted, answer
        return answer.get("result", answer.get("error"))

    def initialize(self, revision: str = NEWEST, **capabilities: object) -> Self:
        info = {"name": "e2e", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info}
        assert self.request("initialize", params)["protocolVersion"] == revision
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def cancel(self, wanted: object) -> None:
        params = {"requestId": wanted}
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def check_question_is_withdrawn(self, name: str) -> None:
        """A call that would replace a file of this name is cancelled while the user, who
        can be asked, is asked."""
        arguments = {"path": name, "content": "new"}
        wanted = self.ask("tools/call", {"name": "write_file", "arguments": arguments})
        question = self.read()
        assert question["method"] == "elicitation/create"
        self.cancel(wanted)
        withdrawn = self.read()
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == question["id"]
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
        assert self.request("ping") == {}

    def check_input_is_asked(self) -> None:
        """The user, who can be asked, is asked what a cell wants."""
        wanted = self.ask_run("input('First? ') + input('Second? ')")
        for answer in "ab":
            question = self.read()
            assert question["method"] == "elicitation/create"
            result = {"action": "accept", "content": {"line": answer}}
            self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})
        done = self.read()
        assert done["id"] == wanted
        assert "'ab'" in done["result"]["content"][0]["text"]

    def ask_run(self, code: str, **params: object) -> Any:
        return self.ask("tools/call", {"name": "run_python", "arguments": {"code": code}, **params})

    def run(self, code: str, **params: object) -> str:
        wanted = self.ask_run(code, **params)
        answer = self.read()
        assert answer["id"] == wanted, answer
        return str(answer["result"]["content"][0]["text"])
