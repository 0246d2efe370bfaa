"""The conversation by the official SDK for Python 2.x.

usage: python_sdk2.py URL|stdio:PROGRAM auto|legacy
"""

import os
import sys
from typing import Literal

import anyio
from conversation import plain, say, steps
from mcp import Client, StdioServerParameters


def server_at(url: str) -> str | StdioServerParameters:
    """As the client wants it."""
    if not url.startswith("stdio:"):
        return url
    command = url.removeprefix("stdio:")
    return StdioServerParameters(command=command, args=["--stdio"], env=dict(os.environ))


async def converse(url: str, mode: Literal["auto", "legacy"]) -> None:
    """Each step, in order."""
    async with Client(server_at(url), mode=mode, read_timeout_seconds=60) as client:
        say(protocol=client.protocol_version)
        async for step in steps():
            if "tool" not in step:
                listed = await client.list_tools()
                say(tools=[plain(tool) for tool in listed.tools])
            else:
                say(result=plain(await client.call_tool(step["tool"], step["arguments"])))


if __name__ == "__main__":
    anyio.run(converse, sys.argv[1], "legacy" if sys.argv[2] == "legacy" else "auto")
