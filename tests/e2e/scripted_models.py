# SPDX-License-Identifier: MIT
"""Models that follow a script: just enough of two vendors' interfaces for a real client to be
led through calls of tools, and a record of what it hands a model."""

from __future__ import annotations

import base64
import http.server
import itertools
import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass
class Use:
    """A turn that calls a tool.  before: what to do first, while the client waits."""

    tool: str
    arguments: dict[str, Any]
    before: Callable[[], object] = lambda: None


@dataclass
class Got:
    """What a model is handed for a call."""

    error: bool = False
    text: str = ""
    pictures: list[bytes] = field(default_factory=list)


class Model(ABC):
    """One a conversation: the n-th turn is the n-th Use of the script, then "done"."""

    def __init__(self, listener: socket.socket, script: Sequence[Use]) -> None:
        self.script = script
        self.asked: list[dict[str, Any]] = []  # the requests that had tools
        self.ids = itertools.count(1)
        self.server = Server(self, listener)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def use(self, turn: int) -> Use | None:
        if turn >= len(self.script):
            return None
        self.script[turn].before()
        return self.script[turn]

    @abstractmethod
    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        """Media type and content."""

    @abstractmethod
    def got(self) -> list[Got]:
        """Of all calls, in order."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model, listener: socket.socket) -> None:
        super().__init__(listener.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener.dup()
        self.model = model


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind, content = self.server.model.answer(self.path, body)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


def events(parts: Iterable[dict[str, Any]]) -> tuple[str, bytes]:
    lines = (f"event: {part['type']}\ndata: {json.dumps(part)}\n\n" for part in parts)
    return "text/event-stream", "".join(lines).encode()


class Anthropic(Model):
    """The Messages API, streaming."""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        if "/count_tokens" in path:
            return "application/json", b'{"input_tokens": 1}'
        use = None
        if body.get("tools"):
            self.asked.append(body)
            use = self.use(sum(message["role"] == "assistant" for message in body["messages"]))
        usage = {"input_tokens": 1, "output_tokens": 1}
        message: dict[str, Any] = {"type": "message", "role": "assistant", "content": []}
        message |= {"id": f"msg_{next(self.ids)}", "model": body["model"], "usage": usage}
        message["stop_reason"] = None
        stop = {"stop_reason": "tool_use" if use else "end_turn"}
        return events(
            [
                {"type": "message_start", "message": message},
                *self.block(use),
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": stop, "usage": usage},
                {"type": "message_stop"},
            ]
        )

    def block(self, use: Use | None) -> Iterable[dict[str, Any]]:
        if use:
            block: dict[str, Any] = {
                "type": "tool_use",
                "id": f"toolu_{next(self.ids)}",
                "name": use.tool,
            }
            block["input"] = {}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(use.arguments)}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}

    def got(self) -> list[Got]:
        blocks = (
            block
            for message in self.asked[-1]["messages"]
            for block in message["content"]
            if isinstance(block, dict) and block["type"] == "tool_result"
        )
        return [self.read(block) for block in blocks]

    def read(self, block: dict[str, Any]) -> Got:
        got = Got(bool(block.get("is_error")))
        content = block["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for part in content:
            if part["type"] == "text":
                got.text += part["text"] + "\n"
            elif part["type"] == "image":
                got.pictures.append(base64.b64decode(part["source"]["data"], validate=True))
        return got


class Gemini(Model):
    """generateContent, streaming or not."""

    NOTHING: ClassVar = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        if "countTokens" in path:
            return "application/json", b'{"totalTokens": 1}'
        use = None
        if body.get("tools"):
            self.asked.append(body)
            use = self.use(sum(part.get("role") == "model" for part in body["contents"]))
        part = (
            {"functionCall": {"name": use.tool, "args": use.arguments}} if use else {"text": "done"}
        )
        content = {"role": "model", "parts": [part]}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        whole = json.dumps({"candidates": [candidate], "usageMetadata": self.NOTHING})
        if "stream" in path:
            return "text/event-stream", f"data: {whole}\n\n".encode()
        return "application/json", whole.encode()

    def got(self) -> list[Got]:
        found: list[Got] = []
        for content in self.asked[-1]["contents"]:
            for part in content["parts"]:
                if "functionResponse" in part:
                    response = part["functionResponse"]["response"]
                    error = "error" in response
                    found.append(Got(error, response["error" if error else "output"]))
                elif "inlineData" in part:
                    data = part["inlineData"]["data"]
                    found[-1].pictures.append(base64.b64decode(data, validate=True))
        return found
