"""A real client: the official Python SDK, in each of its modes, holds the conversation
that the product is for.
"""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import pytest
from harness import Client as PlainClient
from harness import Daemon, png_size, wait_until
from mcp import Client

MODES = ["auto", "legacy", "2026-07-28"]
CSV = "month,region,GBP\n2026-01,north,120\n2026-01,south,95\n2026-02,north,132\n"


def converse(url: str, mode: str, talk: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Client(url, mode=mode) as client:
            await talk(client)

    anyio.run(main)


async def run(client: Client, code: str, **options: Any) -> types.CallToolResult:
    return await client.call_tool("run_python", {"code": code, **options})


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(i.text for i in result.content if isinstance(i, types.TextContent))


def images_of(result: types.CallToolResult) -> list[bytes]:
    return [base64.b64decode(i.data) for i in result.content if isinstance(i, types.ImageContent)]


@pytest.mark.parametrize("mode", MODES)
def test_the_conversation_of_the_product(live: Daemon, mode: str) -> None:
    (live.work / "sales.csv").write_text(CSV)

    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"run_python", "undo", "list_files", "read_text_file", "write_file"}
        assert tools["run_python"].output_schema
        listed = await client.call_tool("list_files", {})
        assert "sales.csv" in text_of(listed)
        read = await client.call_tool("read_text_file", {"path": "sales.csv"})
        assert text_of(read) == CSV
        loaded = await run(
            client, "import pandas as pd\nsales = pd.read_csv('sales.csv')\nsales.shape", fresh=True
        )
        assert not loaded.is_error
        assert "(3, 3)" in text_of(loaded)
        assert "sales 3x3" in text_of(loaded)
        grouped = await run(client, "by = sales.groupby('region').GBP.sum()\nby")
        assert "252" in text_of(grouped)
        assert grouped.structured_content
        plotted = await run(client, "by.plot.bar();")
        (picture,) = images_of(plotted)
        assert max(png_size(picture)) <= 1280
        wait_until(lambda: live.saved_upto() == plotted.structured_content["execution_count"], 30)
        os.kill(live.kernel_pid(), signal.SIGKILL)
        after = await run(client, "len(pd.read_csv('sales.csv')), len(sales), by['north'] > 0")
        assert not after.is_error
        assert "SIGKILL" in text_of(after)
        assert "restored" in text_of(after)

    converse(live.url, mode, talk)


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_call_comes_as_a_stream_and_an_error_as_a_result(shared: Daemon, mode: str) -> None:
    async def talk(client: Client) -> None:
        slow = await run(client, "import time; time.sleep(0.7); 'slow'")
        assert "'slow'" in text_of(slow)
        failed = await run(client, "1 / 0")
        assert failed.is_error
        assert text_of(failed).startswith("Error: ZeroDivisionError")
        refused = await client.call_tool("run_python", {})
        assert refused.is_error

    converse(shared.url, mode, talk)


@pytest.mark.parametrize("mode", MODES)
def test_calls_at_once_on_one_client(shared: Daemon, mode: str) -> None:
    async def talk(client: Client) -> None:
        await run(client, "at_once = set()")

        async def one(number: int) -> None:
            result = await run(client, f"at_once.add({number}); {number}")
            assert f": {number}\n" in text_of(result) + "\n"

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, number)
        assert ": 10" in text_of(await run(client, "len(at_once)"))

    converse(shared.url, mode, talk)


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_is_interrupted_and_the_variables_stay(shared: Daemon, mode: str) -> None:
    begun = shared.work / f"sdk-begun-{mode}"

    async def talk(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(
                run,
                client,
                f"sdk_kept = '{mode}'\nopen('{begun.name}', 'w')\nimport time; time.sleep(60)",
            )
            while not begun.exists():
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        with anyio.fail_after(20):
            assert mode in text_of(await run(client, "sdk_kept"))

    converse(shared.url, mode, talk)


def test_both_eras_see_the_same_state(shared: Daemon) -> None:
    plain = PlainClient(shared.port)
    plain.initialize()
    plain.run("from_legacy = 5")

    async def talk(client: Client) -> None:
        assert ": 5" in text_of(await run(client, "from_modern = 6; from_legacy"))

    converse(shared.url, "2026-07-28", talk)
    assert plain.run("from_modern").data["result"] == "6"
    wait_until(lambda: shared.health()["calls"] == 0)
