"""A real client: the official Python SDK, in each of its modes, holds the conversation
that the product is for; over plain HTTP, and over HTTPS with a token.
"""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import mcp_types as types
import pytest
from conftest import any_python, run_daemon
from harness import Daemon, make_certificate, png_size, wait_until
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

MODES = ["auto", "legacy", "2026-07-28"]
CSV = "month,region,GBP\n2026-01,north,120\n2026-01,south,95\n2026-02,north,132\n"


def converse(daemon: Daemon, mode: str, talk: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        if not daemon.bearer:
            async with Client(daemon.url, mode=mode) as client:
                await talk(client)
            return
        headers = {"Authorization": f"Bearer {daemon.bearer}"}
        async with httpx2.AsyncClient(
            headers=headers, verify=daemon.tls or True, timeout=60
        ) as http:
            transport = streamable_http_client(daemon.url, http_client=http)
            async with Client(transport, mode=mode) as client:
                await talk(client)

    anyio.run(main)


def start_secure(home: Path) -> Iterator[Daemon]:
    cert, key = make_certificate(home)
    yield from run_daemon(
        home,
        env={
            "VIVARIUM_PYTHON": str(any_python()),
            "VIVARIUM_TOKEN": "viv_for-the-sdk-to-send",
            "VIVARIUM_TLS_CERT": str(cert),
            "VIVARIUM_TLS_KEY": str(key),
        },
    )


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    yield from start_secure(tmp_path_factory.mktemp("secure"))


@pytest.fixture(scope="module", params=["http", "https"])
def door(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("shared" if request.param == "http" else "secure")


async def run(client: Client, code: str, **options: Any) -> types.CallToolResult:
    return await client.call_tool("run_python", {"code": code, **options})


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(i.text for i in result.content if isinstance(i, types.TextContent))


def images_of(result: types.CallToolResult) -> list[bytes]:
    return [base64.b64decode(i.data) for i in result.content if isinstance(i, types.ImageContent)]


@pytest.mark.parametrize("mode", MODES)
def test_the_conversation_of_the_product(live: Daemon, mode: str) -> None:
    hold_the_conversation(live, mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_conversation_over_https_with_a_token(secure: Daemon, mode: str) -> None:
    hold_the_conversation(secure, mode)


def hold_the_conversation(live: Daemon, mode: str) -> None:
    (live.work / "sales.csv").write_text(CSV)

    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {
            "run_python",
            "wait",
            "undo",
            "list_files",
            "read_text_file",
            "write_file",
        }
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

    converse(live, mode, talk)


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_call_comes_as_a_stream_and_an_error_as_a_result(door: Daemon, mode: str) -> None:
    async def talk(client: Client) -> None:
        slow = await run(client, "import time; time.sleep(0.7); 'slow'")
        assert "'slow'" in text_of(slow)
        failed = await run(client, "1 / 0")
        assert failed.is_error
        assert text_of(failed).startswith("Error: ZeroDivisionError")
        refused = await client.call_tool("run_python", {})
        assert refused.is_error

    converse(door, mode, talk)


@pytest.mark.parametrize("mode", MODES)
def test_calls_at_once_on_one_client(door: Daemon, mode: str) -> None:
    async def talk(client: Client) -> None:
        await run(client, "at_once = set()")

        async def one(number: int) -> None:
            result = await run(client, f"at_once.add({number}); {number}")
            assert f": {number}\n" in text_of(result) + "\n"

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, number)
        assert ": 10" in text_of(await run(client, "len(at_once)"))

    converse(door, mode, talk)


@pytest.mark.parametrize("mode", MODES)
def test_a_cancelled_call_is_interrupted_and_the_variables_stay(door: Daemon, mode: str) -> None:
    begun = door.work / f"sdk-begun-{mode}"

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

    converse(door, mode, talk)


def test_both_eras_see_the_same_state(door: Daemon) -> None:
    plain = door.client()
    plain.run("from_legacy = 5")

    async def talk(client: Client) -> None:
        assert ": 5" in text_of(await run(client, "from_modern = 6; from_legacy"))

    converse(door, "2026-07-28", talk)
    assert plain.run("from_modern").data["result"] == "6"
    wait_until(lambda: door.health()["calls"] == 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("answer", ["accept", "decline"])
def test_the_client_asks_its_user_before_a_file_is_replaced(
    shared: Daemon, mode: str, answer: Literal["accept", "decline"]
) -> None:
    (shared.work / "theirs").write_text("old")
    asked: list[str] = []

    async def ask(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=answer, content={} if answer == "accept" else None)

    async def main() -> None:
        async with Client(shared.url, mode=mode, elicitation_callback=ask) as client:
            arguments = {"path": "theirs", "content": "new"}
            result = await client.call_tool("write_file", arguments)
            assert bool(result.is_error) == (answer == "decline")

    anyio.run(main)
    assert asked == ["Replace the file theirs (3B)? What is in it now will be lost."]
    assert (shared.work / "theirs").read_text() == ("new" if answer == "accept" else "old")


@pytest.mark.parametrize("mode", MODES)
def test_the_client_asks_its_user_what_a_cell_wants(shared: Daemon, mode: str) -> None:
    answers = iter(["a", "b"])

    async def ask(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"line": next(answers)})

    async def main() -> None:
        async with Client(shared.url, mode=mode, elicitation_callback=ask) as client:
            result = await run(client, "input('First? ') + input('Second? ')")
            assert "'ab'" in text_of(result)

    anyio.run(main)


@pytest.mark.parametrize("mode", MODES)
def test_prompts_and_their_completions(shared: Daemon, mode: str) -> None:
    (shared.work / "sales.csv").write_text(CSV)

    async def talk(client: Client) -> None:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["explore_file", "clean_table", "chart_column"]
        prompt = await client.get_prompt("explore_file", {"path": "sales.csv"})
        content = prompt.messages[0].content
        assert isinstance(content, types.TextContent)
        assert "month,region,GBP" in content.text
        ref = types.PromptReference(type="ref/prompt", name="chart_column")
        argument = {"name": "column", "value": "r"}
        context = {"table": "sales.csv"}
        found = await client.complete(ref, argument, context_arguments=context)
        assert found.completion.values == ["region"]
        if mode != "2026-07-28":  # who knows the revision does not ask for them
            assert "live IPython kernel" in (client.instructions or "")

    converse(shared, mode, talk)
