# SPDX-License-Identifier: MIT
"""An MCP server by the Python SDK with a tool run_python that uses a Jupyter kernel, as one
writes it with jupyter_client.  Prints its port and its process id.
"""

from __future__ import annotations

import asyncio
import os
import socket

import uvicorn
from jupyter_client.manager import start_new_async_kernel
from mcp.server import MCPServer

server = MCPServer("peer", log_level="ERROR")
kernel: asyncio.Task[object] | None = None
turn = asyncio.Lock()


@server.tool()
async def run_python(code: str) -> str:
    """Run Python code in a kernel that stays."""
    global kernel  # noqa: PLW0603
    kernel = kernel or asyncio.create_task(start_new_async_kernel(kernel_name="python3"))
    _, client = await kernel
    said: list[str] = []

    def take(message: dict[str, dict[str, str]]) -> None:
        said.append(message["content"].get("text", ""))

    async with turn:  # a kernel does one thing after the other
        await client.execute_interactive(code, output_hook=take)
    return "".join(said)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], os.getpid(), flush=True)
app = server.streamable_http_app(json_response=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
