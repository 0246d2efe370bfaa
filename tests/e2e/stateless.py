"""A client of 2026-07-28: each request says all, in its body and again in its headers."""

from __future__ import annotations

from typing import Any

from dialogue import STATELESS
from harness import Client, Daemon, Reply

META = "io.modelcontextprotocol/"


class Stateless:
    def __init__(self, daemon: Daemon, **capabilities: object) -> None:
        self.client = Client(daemon.port, STATELESS)
        self.meta: dict[str, Any] = {
            META + "protocolVersion": STATELESS,
            META + "clientCapabilities": capabilities,
            META + "clientInfo": {"name": "e2e", "version": "1"},
        }

    def headers(self, method: str, name: str = "") -> dict[str, str]:
        headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
        return headers | ({"Mcp-Name": name} if name else {})

    def post(
        self, method: str, params: dict[str, Any], headers: dict[str, str] | None = None
    ) -> Reply:
        """headers: instead of those that fit."""
        name = str(params.get("name") or params.get("uri") or params.get("taskId", ""))
        message = self.client.message(method, params | {"_meta": self.meta})
        return self.client.post(message, **(headers or self.headers(method, name)))

    def ask(self, method: str, params: dict[str, Any] | None = None) -> tuple[int, Any]:
        """The HTTP status and the JSON-RPC response."""
        reply = self.post(method, params or {})
        (answer,) = reply.messages()
        return reply.status, answer

    def call(self, tool: str, arguments: dict[str, Any], **more: object) -> tuple[int, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments} | more)

    def result(self, tool: str, arguments: dict[str, Any], **more: object) -> dict[str, Any]:
        status, answer = self.call(tool, arguments, **more)
        assert status == 200
        result = answer["result"]
        assert isinstance(result, dict)
        return result
