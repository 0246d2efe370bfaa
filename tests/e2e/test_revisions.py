"""What differs between the revisions of MCP: methods, fields of results, headers, statuses,
batches.  And what is wrong in all of them: ids, sizes, nesting.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import any_python, run_daemon, type_of_start
from dialogue import STATELESS
from harness import Client, Daemon, Reply, RpcError
from stateless import Stateless

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN_FIELDS = {"resultType", "ttlMs", "cacheScope", "_meta"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    env = {"VIVARIUM_PYTHON": str(any_python())}
    home = tmp_path_factory.mktemp("fixtures")
    yield from run_daemon(home, env=env, args=["--conformance"])


def error_of(reply: Reply) -> tuple[int, int, object]:
    answer = reply.json()
    return reply.status, answer["error"]["code"], answer["id"]


# ---- what each revision has ----


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_older_has_no_newer_fields(daemon: Daemon, revision: str) -> None:
    client = daemon.client(revision)
    results = [
        client.request(method)
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
    ]
    results.append(client.request("resources/read", {"uri": "test://static-text"}))
    call = client.request("tools/call", {"name": "list_files", "arguments": {}})
    for result in [*results, call]:
        assert not result.keys() & MODERN_FIELDS
    assert ("structuredContent" in call) == (revision >= "2025-06-18")
    for tool in results[0]["tools"]:
        assert ("annotations" in tool) == (revision >= "2025-03-26")
        assert "x-mcp-header" not in str(tool["inputSchema"])
    capabilities = client.initialize()["capabilities"]
    assert ("completions" in capabilities) == (revision >= "2025-03-26")
    with pytest.raises(RpcError) as caught:
        client.request("server/discover")
    assert caught.value.code == -32601


@pytest.mark.parametrize("asked", ["auto", "always", "never"])
def test_a_client_that_hides_the_text_behind_a_structure_gets_none(
    start: type_of_start, asked: str
) -> None:
    """Others do, unless the setting says what all get; of both eras."""
    daemon = start(env={"VIVARIUM_STRUCTURE": asked})
    for name in ("codex-mcp-client", "e2e"):
        wanted = asked == "always" or (asked == "auto" and name == "e2e")
        old, new = Client(daemon.port), Stateless(daemon)
        old.name = new.meta["io.modelcontextprotocol/clientInfo"]["name"] = name
        old.initialize()
        for tools in (old.request("tools/list"), new.ask("tools/list")[1]["result"]):
            assert all(("outputSchema" in tool) == wanted for tool in tools["tools"])
        for result in (old.call("list_files").raw, new.result("list_files", {})):
            assert ("structuredContent" in result) == wanted
            assert result["content"][0]["text"] == "The workspace has no files."


def test_the_newest_has_them_all(daemon: Daemon) -> None:
    client = Stateless(daemon)
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        status, answer = client.ask(method)
        assert (status, answer["result"].keys() >= MODERN_FIELDS) == (200, True)
    _, answer = client.ask("resources/read", {"uri": "test://static-text"})
    assert answer["result"].keys() >= MODERN_FIELDS
    _, answer = client.ask("server/discover")
    info = answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]
    assert info.keys() == {"name", "version", "title", "description", "icons"}
    result = client.result("list_files", {})
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"].keys() == {
        *["name", "version", "title"]
    }


def test_no_session_is_made_or_looked_at_in_the_newest(daemon: Daemon) -> None:
    client = Stateless(daemon)
    headers = client.headers("tools/list") | {"Mcp-Session-Id": "forged", "Last-Event-ID": "x"}
    reply = client.post("tools/list", {}, headers)
    assert reply.status == 200
    assert "Mcp-Session-Id" not in reply.headers


# ---- headers of 2026-07-28 ----


def sentinel(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def mirrored(daemon: Daemon, value: object, header: str | None) -> Reply:
    client = Stateless(daemon)
    headers = client.headers("tools/call", "test_header_parameter")
    if header is not None:
        headers["Mcp-Param-Region"] = header
    arguments = {} if value is ... else {"region": value}
    params = {"name": "test_header_parameter", "arguments": arguments}
    return client.post("tools/call", params, headers)


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("us-west1", "  us-west1 \t"),
        ("us-west1", sentinel("us-west1")),
        ("Hallo, Wörld", sentinel("Hallo, Wörld")),
        (" padded ", sentinel(" padded ")),
        ("a\nb", sentinel("a\nb")),
        ("=?base64?x?=", sentinel("=?base64?x?=")),
        ("=?BASE64?x?=", "=?BASE64?x?="),
        ("", ""),
        ("x" * 3000, "x" * 3000),
    ],
)
def test_an_argument_is_repeated_in_its_header(daemon: Daemon, value: str, header: str) -> None:
    reply = mirrored(daemon, value, header)
    assert reply.status == 200
    assert reply.json()["result"]["content"][0]["text"] == f"region: {value}"


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", None),
        ("us-west1", ""),
        ("us-west1", "us-west2"),
        ("us-west1", "US-WEST1"),
        ("us-west1", sentinel("us-west2")),
        ("Hello", "=?base64?SGVsbG8?="),
        ("Hello", "=?base64?SGVs!!!bG8=?="),
        ("Hello", "=?base64??="),
        (..., "us-west1"),
        (None, "us-west1"),
        (["us-west1"], "us-west1"),
        ({"a": 1}, "{}"),
    ],
    ids=str,
)
def test_a_header_that_says_something_else_is_refused(
    daemon: Daemon, value: object, header: str | None
) -> None:
    reply = mirrored(daemon, value, header)
    assert (reply.status, reply.json()["error"]["code"]) == (400, -32020)
    assert "Mcp-Param-Region" in reply.json()["error"]["message"]


@pytest.mark.parametrize("value", [..., None])
def test_no_header_is_wanted_for_what_is_not_given(daemon: Daemon, value: object) -> None:
    reply = mirrored(daemon, value, None)
    assert reply.status == 200
    assert "region is missing" in reply.json()["result"]["content"][0]["text"]


def test_older_revisions_and_other_tools_need_no_such_header(daemon: Daemon) -> None:
    client = daemon.client()
    assert client.call("test_header_parameter", region="x").raw["content"][0]["text"] == "region: x"
    headers = Stateless(daemon).headers("tools/call", "list_files") | {"Mcp-Param-Region": "x"}
    assert Stateless(daemon).post("tools/call", {"name": "list_files"}, headers).status == 200


@pytest.mark.parametrize("left_out", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
def test_each_header_is_needed(daemon: Daemon, left_out: str) -> None:
    client = Stateless(daemon)
    headers = client.headers("tools/call", "list_files")
    del headers[left_out]
    reply = client.post("tools/call", {"name": "list_files"}, headers)
    assert (reply.status, reply.json()["error"]["code"]) == (400, -32020)


def test_a_missing_capability_is_400_and_named(daemon: Daemon) -> None:
    status, answer = Stateless(daemon).call("test_missing_capability", {})
    assert (status, answer["error"]["code"]) == (400, -32021)
    assert answer["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}
    old = daemon.client().call("test_missing_capability")
    assert old.is_error


# ---- ids ----

BAD_IDS = [None, 1.5, True, False, [], [1], {}, {"a": 1}]


@pytest.mark.parametrize("identity", BAD_IDS, ids=json.dumps)
def test_an_id_of_another_type_is_refused_in_both_eras(daemon: Daemon, identity: object) -> None:
    old = daemon.client().post(PING | {"id": identity})
    assert error_of(old) == (400, -32600, None)
    new = Stateless(daemon)
    message = {"jsonrpc": "2.0", "id": identity, "method": "tools/list"}
    reply = new.client.post(message | {"params": {"_meta": new.meta}}, **new.headers("tools/list"))
    assert error_of(reply) == (400, -32600, None)


@pytest.mark.parametrize("identity", [7, "seven", -1, 0, "", 2**62])
def test_a_refusal_for_want_of_a_session_has_the_id(daemon: Daemon, identity: object) -> None:
    client = Client(daemon.port)
    assert error_of(client.post(PING | {"id": identity})) == (400, -32000, identity)
    unknown = client.post(PING | {"id": identity}, Mcp_Session_Id="forged")
    assert error_of(unknown) == (404, -32001, identity)
    wrong = daemon.client().post(PING | {"id": identity}, MCP_Protocol_Version="1999-01-01")
    assert error_of(wrong) == (400, -32000, identity)


def test_a_request_that_is_none_keeps_its_id(daemon: Daemon) -> None:
    client = daemon.client()
    assert error_of(client.post({"jsonrpc": "2.0", "id": 5, "method": 5})) == (400, -32600, 5)
    assert error_of(client.post({"id": 5, "method": "ping"})) == (400, -32600, 5)


# ---- too much ----


def test_ten_thousand_in_a_batch_are_refused_at_once(daemon: Daemon) -> None:
    batch = [PING | {"id": number} for number in range(10_000)]
    for revision in REVISIONS:
        reply = daemon.client(revision).post(batch)
        assert error_of(reply) == (400, -32600, None)
    reply = Stateless(daemon).client.post(batch, MCP_Protocol_Version=STATELESS)
    assert reply.status == 400


def test_five_mebibytes_are_refused_and_four_are_taken(daemon: Daemon) -> None:
    client = daemon.client()
    too_long = client.message("tools/call", {"name": "run_python", "arguments": {"code": "#" * 5}})
    too_long["params"]["arguments"]["code"] = "#" * (5 << 20)
    assert client.post(too_long).status == 413
    assert not client.run("#" * (3 << 20)).is_error
    large = {"path": "large", "content": "x" * (5 << 19)}
    status, answer = Stateless(daemon).call("write_file", large)
    assert (status, answer["result"]["isError"]) == (200, True)
    assert "over the limit" in answer["result"]["content"][0]["text"]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [100, 1000, 10_000])
def test_deep_nesting_is_an_error_of_the_argument_or_of_the_text(
    daemon: Daemon, depth: int
) -> None:
    text = "[" * depth + "1" + "]" * depth
    body = (
        '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_python",'
        f'"arguments":{{"code":{text}}}}}}}'
    )
    reply = daemon.client().post(body.encode())
    if reply.status == 200:
        assert "code must be a string" in reply.messages()[-1]["result"]["content"][0]["text"]
    else:
        assert error_of(reply) == (400, -32700, None)
    assert (reply.status == 400) == (depth == 10_000)
    assert daemon.client().request("ping") == {}


def test_deep_arguments_and_answers_do_no_harm_in_the_newest(daemon: Daemon) -> None:
    client = Stateless(daemon, elicitation={})
    deep = nested(900)
    status, answer = client.call("write_file", {"path": "x", "content": deep})
    assert (status, answer["result"]["isError"]) == (200, True)
    more = {"inputResponses": {"user_name": deep, "other": deep}}
    result = client.result("test_input_required_result_elicitation", {}, **more)
    assert result["resultType"] == "input_required"


def test_the_setting_is_bare_or_not(start: type_of_start) -> None:
    for client in (
        start(name="a", args=["--conformance=1"]).client(),
        start(name="b", env={"VIVARIUM_CONFORMANCE": "1"}).client(),
    ):
        assert client.call("test_simple_text").raw["content"][0]["text"]
    with pytest.raises(RpcError):
        start(name="off", args=["--conformance=0"]).client().call("test_simple_text")
