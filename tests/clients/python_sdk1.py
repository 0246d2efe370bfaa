"""The conversation by the official SDK for Python 1.x, which is in an environment of
its own.

usage: python_sdk1.py URL|sse:URL|stdio:PROGRAM
"""

import importlib
import os
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import anyio
from conversation import plain, say, steps

# Not by `import`: the types that are checked here are those of 2.x.
mcp: Any = importlib.import_module("mcp")
transport: Any = importlib.import_module("mcp.client.streamable_http")


def connect(url: str) -> AbstractAsyncContextManager[Any]:
    """The streams to it: two, or three over HTTP."""
    if url.startswith("sse:"):
        sse = importlib.import_module("mcp.client.sse")
        return cast("AbstractAsyncContextManager[Any]", sse.sse_client(url.removeprefix("sse:")))
    if not url.startswith("stdio:"):
        return cast("AbstractAsyncContextManager[Any]", transport.streamable_http_client(url))
    command = url.removeprefix("stdio:")
    server = mcp.StdioServerParameters(command=command, args=["--stdio"], env=dict(os.environ))
    return cast("AbstractAsyncContextManager[Any]", mcp.stdio_client(server))


async def converse(url: str) -> None:
    """Each step, in order."""
    async with (
        connect(url) as (read, write, *_),
        mcp.ClientSession(read, write) as session,
    ):
        say(protocol=(await session.initialize()).protocolVersion)
        async for step in steps():
            if "tool" not in step:
                listed = await session.list_tools()
                say(tools=[plain(tool) for tool in listed.tools])
            else:
                say(result=plain(await session.call_tool(step["tool"], step["arguments"])))


if __name__ == "__main__":
    anyio.run(converse, sys.argv[1])
