"""What clients send wrong, and what files and settings can be: each gets a clear answer
and the daemon stays up.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import any_python, type_of_start
from harness import NEWEST, Client, Daemon, Reply, RpcError, exchange, run_program, wait_until

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
BODY_MAX = 4 << 20
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def client(shared: Daemon) -> Client:
    return shared.client()


def error_of(reply: Reply) -> tuple[int, int]:
    return reply.status, reply.json()["error"]["code"]


# ---- messages ----


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"',
        b"nonsense",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"} {}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}',
        b'{"a": NaN}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
    ids=["empty", "brace", "cut", "words", "two", "not UTF-8", "NaN", "deep list", "deep object"],
)
def test_what_is_no_json_is_a_parse_error(client: Client, body: bytes) -> None:
    reply = client.post(body)
    assert error_of(reply) == (400, -32700)
    assert reply.json()["id"] is None


@pytest.mark.parametrize(
    "body",
    [
        1,
        "ping",
        None,
        {},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
    ],
    ids=json.dumps,
)
def test_what_is_no_request_is_an_invalid_request(client: Client, body: object) -> None:
    assert error_of(client.post(body)) == (400, -32600)


@pytest.mark.parametrize("identity", [0, -1, 2**53, "", "näme", "x" * 1000])
def test_an_id_comes_back_as_it_was(client: Client, identity: object) -> None:
    answer = client.post(PING | {"id": identity}).json()
    assert answer == {"jsonrpc": "2.0", "id": identity, "result": {}}


@pytest.mark.parametrize("method", ["", "tasks/get", "tools/calls", "PING", "x" * 10_000])
def test_an_unknown_method_is_said_in_band(client: Client, method: str) -> None:
    with pytest.raises(RpcError) as caught:
        client.request(method)
    assert caught.value.code == -32601


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": "run_pyhton"},
        {"name": 5},
        {"name": None},
        {"name": "run_python", "arguments": [1]},
        {"name": "run_python", "arguments": "code"},
    ],
    ids=json.dumps,
)
def test_a_call_that_names_no_tool_is_invalid_params(client: Client, params: object) -> None:
    with pytest.raises(RpcError) as caught:
        client.request("tools/call", params)
    assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("run_python", {}, "code is missing"),
        ("run_python", {"code": None}, "code is missing"),
        ("run_python", {"code": 5}, "code must be a string, not"),
        ("run_python", {"code": ["1"]}, "code must be a string, not"),
        ("run_python", {"code": "1", "cod": "2"}, "no argument 'cod'; it takes code"),
        (
            "run_python",
            {"code": "1", "timeout_seconds": "9"},
            "timeout_seconds must be a number, not",
        ),
        ("run_python", {"code": "1", "timeout_seconds": 0}, "timeout_seconds is 0"),
        ("run_python", {"code": "1", "timeout_seconds": -1}, "timeout_seconds is -1"),
        ("run_python", {"code": "1", "fresh": "yes"}, "fresh must be a boolean, not"),
        ("run_python", {"code": "1", "fresh": 1}, "fresh must be a boolean, not"),
        ("run_python", {"code": "print(1)\0"}, "NUL character at character 9"),
        ("list_files", {"path": "."}, "no argument 'path'; it takes none"),
        ("read_text_file", {}, "path is missing"),
        ("read_text_file", {"path": "a", "max_chars": 0}, "max_chars is 0"),
        ("read_text_file", {"path": "a", "max_chars": 2.5}, "max_chars is 2.5; it must be a whole"),
        ("read_text_file", {"path": "a", "max_chars": "all"}, "max_chars must be an integer, not"),
    ],
)
def test_a_wrong_argument_is_the_tools_own_error(
    client: Client, tool: str, arguments: dict[str, object], words: str
) -> None:
    result = client.call(tool, **arguments)
    assert result.is_error
    assert result.text.startswith("Error: ")
    assert words in result.text


def test_a_timeout_over_the_limit_is_clamped_and_said(client: Client) -> None:
    result = client.run("1 + 1", timeout_seconds=1e9)
    assert "timeout_seconds was lowered from 1e+09 to 300 (VIVARIUM_MAX_TIMEOUT)" in result.text
    assert result.data["result"] == "2"


def test_a_default_over_the_limit_is_clamped_without_words(start: type_of_start) -> None:
    client = start(env={"VIVARIUM_MAX_TIMEOUT": "1"}).client()
    assert client.run("1 + 1").text == "Out[1]: 2"
    assert "Timed out after 1 s" in client.run("while True: pass").text


def test_code_that_is_not_utf8_never_gets_to_the_kernel(client: Client) -> None:
    call = client.message("tools/call", {"name": "run_python", "arguments": {"code": "'@'"}})
    raw = json.dumps(call).encode()
    assert error_of(client.post(raw.replace(b"@", b"\xff"))) == (400, -32700)
    lone = client.post(raw.replace(b"@", b"\\ud800"))
    assert lone.status in {200, 400}
    assert client.run("1 + 1").data["result"] == "2"


def test_long_code_is_taken_up_to_the_bodys_limit(client: Client) -> None:
    result = client.run("x = '" + "a" * 3_000_000 + "'\nlen(x)")
    assert result.data["result"] == "3000000"


def test_a_body_over_the_limit_is_413(client: Client) -> None:
    fits = json.dumps(PING).encode().ljust(BODY_MAX)
    assert client.post(fits).json()["result"] == {}
    assert client.post(fits + b" ").status == 413
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    try:  # without a length the limit holds too
        pieces = (b" " * 65536 for _ in range(100))
        status = 413
        try:
            connection.request("POST", "/mcp", pieces, client.headers(), encode_chunked=True)
            status = connection.getresponse().status
        except OSError:  # it was cut off while it still sent
            pass
        assert status == 413
    finally:
        connection.close()
    assert client.request("ping") == {}


# ---- files ----


@pytest.fixture
def work(shared: Daemon, tmp_path: Path) -> Path:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    for name, target in {
        "link-out": outside,
        "link-up": Path(".."),
        "link-absolute": Path("/etc/passwd"),
    }.items():
        (shared.work / name).unlink(missing_ok=True)
        (shared.work / name).symlink_to(target)
    if not (shared.work / "fifo").exists():
        os.mkfifo(shared.work / "fifo")
        (shared.work / "directory").mkdir()
        (shared.work / "binary").write_bytes(b"\x7fELF\0\0")
        (shared.work / "ok.txt").write_text("fine")
    return shared.work


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../x",
        "directory/../../x",
        "/etc/passwd",
        "link-out",
        "link-up/x",
        "link-absolute",
        "fifo",
        "directory",
        "binary",
        "missing",
        "ok.txt/",
        "ok.txt/x",
        "ok.txt\0",
        "x" * 300,
        "x/" * 3000,
        "/proc/self/environ",
    ],
)
def test_a_path_that_is_no_text_file_of_the_workspace_is_refused(
    client: Client, work: Path, path: str
) -> None:
    result = client.call("read_text_file", path=path)
    assert result.is_error
    assert result.text.startswith("Error: ")
    assert "secret" not in result.text
    assert "root:" not in result.text
    assert client.call("read_text_file", path="ok.txt").text == "fine"


def test_a_gigabyte_of_text_costs_its_beginning_only(client: Client, work: Path) -> None:
    big = work / "big.txt"
    with big.open("wb") as file:
        file.write(b"line\n" * 5000)
        file.truncate(1 << 30)
    try:
        result = client.call("read_text_file", path="big.txt", max_chars=100)
        assert result.text.startswith("line\n" * 20)
        assert "it goes on: these are the characters 0 to 100; call again" in result.text
        assert result.data["cut"] is True
        assert len(client.call("read_text_file", path="big.txt").text) < 11_000
        assert "big.txt  1.0G" in client.call("list_files").text
        huge = client.call("read_text_file", path="big.txt", max_chars=1e12)
        assert len(json.dumps(huge.raw)) < 4 << 20
    finally:
        big.unlink()


def test_broken_utf8_in_names_and_texts_is_shown(client: Client, shared: Daemon) -> None:
    (shared.work / "latin1.txt").write_bytes(b"caf\xe9 \xf0\x9f\x98\x80")
    odd = os.fsencode(shared.work) + b"/od\xff\nd"
    with open(odd, "wb"):
        pass
    assert client.call("read_text_file", path="latin1.txt").text == "caf\ufffd \U0001f600"
    listed = client.call("list_files").text
    (line,) = [line for line in listed.splitlines() if line.startswith("od")]
    assert line.startswith("od\ufffd\\nd")
    os.unlink(odd)


def test_characters_and_not_bytes_are_counted(client: Client, shared: Daemon) -> None:
    (shared.work / "wide.txt").write_text("\U0001f600" * 50)
    result = client.call("read_text_file", path="wide.txt", max_chars=7)
    assert result.text.startswith("\U0001f600" * 7 + "\n[")


def test_ten_thousand_files_are_listed_in_part(client: Client, shared: Daemon) -> None:
    many = shared.work / "many"
    many.mkdir()
    for i in range(3000):
        (many / f"f{i}").touch()
    try:
        result = client.call("list_files")
        assert "older; list them with run_python" in result.text
        assert len(result.data["files"]) == 500
        assert result.data["count"] >= 3000
    finally:
        for file in many.iterdir():
            file.unlink()
        many.rmdir()


# ---- sessions and revisions ----


def test_a_request_without_a_session_is_told_to_initialize(shared: Daemon) -> None:
    reply = Client(shared.port).post(PING)
    assert error_of(reply) == (400, -32000)
    assert "initialize" in reply.json()["error"]["message"]


@pytest.mark.parametrize("identity", ["x", "a" * 96, "A" * 5000, "é"])
def test_an_unknown_session_is_not_found(shared: Daemon, identity: str) -> None:
    client = Client(shared.port)
    reply = client.post(PING, Mcp_Session_Id=identity)
    assert error_of(reply) in {(404, -32001)} or reply.status in {400, 431}


def test_a_session_with_one_letter_changed_is_not_found(client: Client) -> None:
    session = client.session or ""
    for at in (0, len(session) // 2, len(session) - 2):
        letter = "A" if session[at] != "A" else "B"
        changed = session[:at] + letter + session[at + 1 :]
        assert error_of(client.post(PING, Mcp_Session_Id=changed)) == (404, -32001)


def test_a_deleted_session_is_gone(client: Client) -> None:
    assert exchange(client.port, "DELETE", "/mcp", headers=client.headers()).status in {200, 204}
    assert error_of(client.post(PING)) == (404, -32001)
    assert exchange(client.port, "DELETE", "/mcp", headers=client.headers()).status == 404


def test_a_second_initialize_is_a_new_session_and_state_stays(client: Client) -> None:
    client.run("survivor = 1")
    first = client.session
    client.initialize()
    assert client.session != first
    assert client.run("survivor").data["result"] == "1"
    client.session = "stale"  # and so it is with one that has ended
    client.initialize()
    assert client.request("ping") == {}


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_is_agreed_on(shared: Daemon, revision: str) -> None:
    client = Client(shared.port, revision)
    result = client.initialize()
    assert result["protocolVersion"] == revision
    assert result["capabilities"]["tools"] == {"listChanged": False}
    assert result["serverInfo"]["name"] == "vivarium"
    tools = client.request("tools/list")["tools"]
    names = [tool["name"] for tool in tools]
    assert names == ["run_python", "wait", "undo", "list_files", "read_text_file", "write_file"]
    assert ("outputSchema" in tools[0]) == (revision >= "2025-06-18")
    assert ("annotations" in tools[0]) == (revision >= "2025-03-26")


@pytest.mark.parametrize("revision", ["2099-01-01", "1.0", "", "2026-07-28"])
def test_an_unknown_revision_gets_our_newest_of_that_era(shared: Daemon, revision: str) -> None:
    result = Client(shared.port, revision).initialize()
    assert result["protocolVersion"] == NEWEST


def test_initialize_without_a_revision_is_an_error(shared: Daemon) -> None:
    client = Client(shared.port)
    for params in (None, {}, {"protocolVersion": 5}):
        with pytest.raises(RpcError) as caught:
            client.request("initialize", params)
        assert caught.value.code == -32602


def test_an_unsupported_protocol_version_header_is_refused(client: Client) -> None:
    assert error_of(client.post(PING, MCP_Protocol_Version="2024-01-01")) == (400, -32000)
    assert client.post(PING, MCP_Protocol_Version="junk").status == 400
    headers = client.headers()
    del headers["MCP-Protocol-Version"]
    body = json.dumps(PING)
    assert exchange(client.port, "POST", "/mcp", body, headers).json()["result"] == {}


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_deleted_session_is_gone_after_a_restart_too(start: type_of_start, how: str) -> None:
    first = start()
    client, other = first.client(), first.client()
    exchange(client.port, "DELETE", "/mcp", headers=client.headers())
    getattr(first, how)()
    second = start()
    for each in client, other:
        each.port = second.port
    assert client.post(client.message("ping")).status == 404
    assert other.post(other.message("ping")).status == 200


def test_sessions_survive_a_restart_of_the_daemon(start: type_of_start) -> None:
    first = start()
    client = first.client()
    first.stop()
    second = start()  # same directories, another port
    client.port = second.port
    assert client.request("ping") == {}
    assert client.run("1 + 1").data["result"] == "2"
    key = second.state / "daemon" / "session.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert second.state.stat().st_mode & 0o777 == 0o700


def test_state_of_before_the_daemon_had_a_directory_of_its_own_is_taken_over(
    start: type_of_start,
) -> None:
    first = start()
    client = first.client()
    client.run_saved(first, "x = 6")
    first.stop()
    for path in (first.state / "daemon").iterdir():
        if not path.is_socket():
            path.rename(first.state / path.name)
    client.port = start().port
    assert client.run("x * 7").data["result"] == "42"  # the session, the state: both are known


# ---- batches ----


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
def test_a_batch_is_answered_as_one_in_the_revisions_that_have_it(
    shared: Daemon, revision: str
) -> None:
    client = shared.client(revision)
    batch: list[object] = [
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/whatever"},
        {"jsonrpc": "2.0", "id": "b", "method": "nope"},
        {"jsonrpc": "2.0", "id": "gone", "result": {}},
        5,
        client.message("tools/call", {"name": "list_files"}),
    ]
    answers = {str(answer["id"]): answer for answer in client.post(batch).json()}
    assert len(answers) == 4
    assert answers["a"]["result"] == {}
    assert answers["b"]["error"]["code"] == -32601
    assert answers["None"]["error"]["code"] == -32600


def test_a_batch_of_calls_has_all_its_results(shared: Daemon) -> None:
    client = shared.client("2025-03-26")
    batch = [
        client.message("tools/call", {"name": "run_python", "arguments": {"code": f"{i} * 11"}})
        for i in range(5)
    ]
    answers = client.post(batch).messages()
    flat = [one for answer in answers for one in (answer if isinstance(answer, list) else [answer])]
    texts = {one["id"]: one["result"]["content"][0]["text"].rpartition(": ")[2] for one in flat}
    assert [texts[message["id"]] for message in batch] == ["0", "11", "22", "33", "44"]


def test_a_batch_of_notifications_is_accepted_without_an_answer(shared: Daemon) -> None:
    reply = shared.client("2025-03-26").post([{"jsonrpc": "2.0", "method": "notifications/x"}] * 3)
    assert (reply.status, reply.body) == (202, b"")


def test_batches_that_are_empty_too_long_or_too_late_are_refused(shared: Daemon) -> None:
    old = shared.client("2025-03-26")
    assert error_of(old.post([])) == (400, -32600)
    assert error_of(old.post([PING] * 101)) == (400, -32600)
    assert len(old.post([PING] * 100).json()) == 100
    for revision in ("2025-06-18", "2025-11-25"):
        assert error_of(shared.client(revision).post([PING])) == (400, -32600)
    for revision in ("2025-11-25", "2026-07-28"):  # the header says it, without a session
        reply = Client(shared.port).post([PING], MCP_Protocol_Version=revision)
        assert error_of(reply) == (400, -32600)


# ---- HTTP ----


def test_the_forms_of_a_request_are_checked(client: Client) -> None:
    assert client.post(PING, Accept="text/html").status == 406
    assert client.post(PING, Content_Type="text/plain").status == 415
    assert client.post(PING, Content_Type="application/json; charset=utf-8").status == 200
    assert client.post(PING, Accept="*/*").status == 200
    assert client.post(PING, Accept="application/json").status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
def test_other_methods_are_405_with_allow(client: Client, method: str) -> None:
    reply = exchange(client.port, method, "/mcp", headers={"Content-Length": "0"})
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET, POST, DELETE"


def test_get_needs_an_event_stream_and_a_session(client: Client) -> None:
    headers = client.headers(Accept="application/json")
    assert exchange(client.port, "GET", "/mcp", headers=headers).status == 406
    # which revisions have; without any header a conversation of 2024-11-05 begins
    stream = {"Accept": "text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    assert exchange(client.port, "GET", "/mcp", headers=stream).status == 400


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/nothing",
    ],
)
def test_what_is_not_there_is_404_in_json(client: Client, path: str) -> None:
    reply = exchange(client.port, "GET", path)
    assert reply.status == 404
    assert reply.headers.get_content_type() == "application/json"
    assert isinstance(reply.json(), dict)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:8000"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "vivarium:8000"}, 200),
        ({"Host": "[::1]"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/health"])
def test_the_gate_looks_at_host_and_origin(
    client: Client, headers: dict[str, str], status: int, path: str
) -> None:
    if path == "/health":
        assert exchange(client.port, "GET", path, headers=headers).status == status
    else:
        body = json.dumps(PING)
        reply = exchange(client.port, "POST", path, body, client.headers() | headers)
        assert reply.status == status


def test_allowed_hosts_are_let_in(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_ALLOWED_HOSTS": "chat.example, other.example"})
    assert exchange(daemon.port, "GET", "/health", headers={"Host": "chat.example"}).status == 200
    assert exchange(daemon.port, "GET", "/health", headers={"Host": "evil.example"}).status == 403


def test_notifications_and_responses_are_accepted_without_an_answer(client: Client) -> None:
    for method in ("notifications/initialized", "notifications/unknown", "tools/call"):
        reply = client.notify(method)
        assert (reply.status, reply.body) == (202, b"")
    reply = client.post({"jsonrpc": "2.0", "id": 9, "result": {}})
    assert (reply.status, reply.body) == (202, b"")


# ---- streams ----


def call_code(client: Client, code: str) -> dict[str, Any]:
    return client.message("tools/call", {"name": "run_python", "arguments": {"code": code}})


def test_a_quick_answer_is_json_and_a_slow_one_a_stream(client: Client) -> None:
    client.run("import time")
    assert not client.post(call_code(client, "1")).is_stream()
    reply = client.post(call_code(client, "time.sleep(0.6); 'slow'"))
    assert reply.is_stream()
    assert reply.headers["Cache-Control"].startswith(("no-store", "no-cache"))
    (message,) = reply.messages()
    assert message["result"]["structuredContent"]["result"] == "'slow'"


def test_who_takes_no_stream_gets_json_however_late(client: Client) -> None:
    reply = client.post(
        call_code(client, "import time; time.sleep(0.6); 'slow'"), Accept="application/json"
    )
    assert not reply.is_stream()
    assert reply.json()["result"]["structuredContent"]["result"] == "'slow'"


def test_a_silent_stream_is_kept_alive(client: Client) -> None:
    reply = client.post(call_code(client, "import time; time.sleep(15.6)"))
    assert reply.is_stream()
    assert reply.comments() >= 1
    assert len(reply.messages()) == 1


def test_a_client_that_leaves_does_not_cancel(shared: Daemon, client: Client) -> None:
    body = json.dumps(
        call_code(
            client,
            "import os, time\nopen('left-begun', 'w').close()\n"
            "while not os.path.exists('left-go'): time.sleep(0.01)\nleft_state = 'kept'",
        )
    )
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    connection.request("POST", "/mcp", body, client.headers())
    wait_until((shared.work / "left-begun").exists)
    connection.close()
    (shared.work / "left-go").touch()
    assert client.run("left_state").data["result"] == "'kept'"


def test_a_client_that_leaves_a_stream_does_not_cancel(shared: Daemon, client: Client) -> None:
    body = json.dumps(
        call_code(
            client,
            "import os, time\nwhile not os.path.exists('stream-go'): time.sleep(0.01)\n"
            "stream_state = 'kept'",
        )
    )
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=10)
    connection.request("POST", "/mcp", body, client.headers())
    response = connection.getresponse()  # its head comes after 250 ms
    assert response.headers.get_content_type() == "text/event-stream"
    response.close()
    connection.close()
    (shared.work / "stream-go").touch()
    assert client.run("stream_state").data["result"] == "'kept'"


def test_notifications_cancelled_interrupts_and_keeps_the_variables(
    shared: Daemon, client: Client
) -> None:
    call = call_code(client, "cancel_kept = 1\nopen('c', 'w').close()\nimport time; time.sleep(60)")
    answers: list[Reply] = []
    thread = threading.Thread(target=lambda: answers.append(client.post(call)))
    thread.start()
    wait_until((shared.work / "c").exists)
    client.notify("notifications/cancelled", {"requestId": "another"})
    client.notify("notifications/cancelled", {"requestId": call["id"], "reason": "user"})
    thread.join(10)
    assert not thread.is_alive()
    assert client.run("cancel_kept").data["result"] == "1"


def test_half_requests_and_noise_do_not_disturb_others(shared: Daemon, client: Client) -> None:
    noise = [
        b"",
        b"\0" * 100,
        b"GET",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
        b"\x16\x03\x01",
    ]
    sockets = []
    for piece in noise * 3:
        sock = socket.create_connection(("127.0.0.1", shared.port), 5)
        sock.sendall(piece)
        sockets.append(sock)
    assert client.request("ping") == {}
    for sock in sockets:
        sock.close()
    assert client.request("ping") == {}


# ---- settings ----


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("VIVARIUM_PORT", "eighty", "0 to 65535"),
        ("VIVARIUM_PORT", "65536", "0 to 65535"),
        ("VIVARIUM_PORT", "", "0 to 65535"),
        ("VIVARIUM_MAX_TIMEOUT", "0", "1 to 86400"),
        ("VIVARIUM_MAX_IMAGES", "-1", "0 to 32"),
        ("VIVARIUM_MAX_IMAGE_SIDE", "1e3", "16 to 8192"),
        ("VIVARIUM_STATE_SUMMARY", "yes", "neither 0 nor 1"),
        ("VIVARIUM_LOG_FORMAT", "xml", "text|json"),
        ("VIVARIUM_USER_HEADER", "X User", "the name of an HTTP header"),
        ("VIVARIUM_USER_HEADER", "X-User:", "the name of an HTTP header"),
        ("VIVARIUM_LOG_LEVEL", "loud", "error|warn|info|debug"),
        ("VIVARIUM_OUTPUT_LIMIT", "99999999999999999999", "1200 to"),
    ],
)
def test_a_bad_setting_is_refused_with_name_value_and_range(
    tmp_path: Path, name: str, value: str, words: str
) -> None:
    ended = run_program(env={name: value}, cwd=tmp_path)
    assert ended.returncode == 2
    assert f"{name}='{value}'" in ended.stderr
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    flag = "--" + name.removeprefix("VIVARIUM_").lower().replace("_", "-")
    ended = run_program(f"{flag}={value}", env={}, cwd=tmp_path)
    assert ended.returncode == 2
    assert f"{flag}='{value}'" in ended.stderr


@pytest.mark.parametrize("args", [["--prot", "1"], ["serve"], ["--port"], ["--"], ["-x"]])
def test_an_unknown_flag_is_refused(tmp_path: Path, args: list[str]) -> None:
    ended = run_program(*args, env={}, cwd=tmp_path)
    assert ended.returncode == 2
    assert args[0] in ended.stderr


@pytest.mark.timeout(120)
def test_what_cannot_start_says_why(tmp_path: Path, shared: Daemon) -> None:
    env = {
        "VIVARIUM_PORT": "0",
        "VIVARIUM_PYTHON": str(any_python()),
        "VIVARIUM_STATE_DIR": str(tmp_path / "s"),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    bare = tmp_path / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare.parents[1]], check=True)
    for name, value, status, words in [
        ("PYTHON", "/no/python", 2, "{}: '/no/python' is not a program that can be run"),
        ("PYTHON", "/bin/ls", 2, "{}: '/bin/ls' is not a Python interpreter"),
        ("PYTHON", "/usr/bin/yes", 2, "{}: '/usr/bin/yes' is not a Python interpreter"),
        ("PYTHON", str(bare), 2, "has no ipykernel: install it there"),
        ("HOST", "0.0.0.0", 2, "{}=0.0.0.0 lets other machines run code here; set VIVARIUM_TO"),
        ("HOST", "::", 2, "VIVARIUM_ANONYMOUS=1"),
        ("HOST", "127.0.0.1x", 2, "not an IP address"),
        ("HOST", "::1%nowhere", 2, "ANONYMOUS"),
        ("PORT", str(shared.port), 1, "another program has this port: stop it, or choose another"),
        ("WORKDIR", "/proc/none", 2, "{}: "),
        ("WORKDIR", "/etc/passwd", 2, "{}: open the directory /etc/passwd: Not a directory"),
        ("STATE_DIR", str(tmp_path / "workspace" / "s"), 2, "{}: "),
        ("STATE_DIR", "/proc/none", 2, "{}: make /proc/none"),
        ("USER_HEADER", "X-User", 2, "{}=X-User, but code in a kernel could"),
        ("TOKEN", "short", 2, "{}: a token has at least 16 characters"),
        ("PROXY_SECRET", "x", 2, "{} has 1 character, which can be guessed; it needs at least 16"),
        ("TOKEN", "with blanks in between", 2, "{}: a token has"),
        ("TOKENS_FILE", "/no/file", 2, "{}: there is no /no/file; `vivarium --new-token NAME`"),
        ("TOKENS_FILE", "/dev/null", 2, "{}: /dev/null is not a file"),
        ("TLS_CERT", "/no/cert", 2, "{} needs VIVARIUM_TLS_KEY beside it"),
        ("TLS_KEY", "/no/key", 2, "{} needs VIVARIUM_TLS_CERT beside it"),
    ]:
        variable = f"VIVARIUM_{name}"
        flag = "--" + name.lower().replace("_", "-")
        for args, change, shown in [
            ((), {variable: value}, variable),
            ((flag, value), {}, flag),
        ]:
            ended = run_program(*args, env=env | change, cwd=tmp_path)
            assert ended.returncode == status, (change, ended.stderr)
            assert words.format(shown) in ended.stderr
            assert "ready http" not in ended.stderr
            assert not list(tmp_path.glob("vivarium-*")), "the runtime directory is left"
        checked = run_program("--check", flag, value, env=env, cwd=tmp_path)
        assert checked.returncode == 1
        refused = [line for line in checked.stdout.splitlines() if line.startswith("no ")]
        assert any(words.format(flag) in line for line in refused), checked.stdout


def test_a_second_daemon_could_not_start_and_check_says_so(daemon: Daemon) -> None:
    env = {**daemon.env, "VIVARIUM_PORT": "0"}
    second = run_program(env=env, cwd=daemon.work.parent)
    assert second.returncode == 1
    assert f"another Vivarium (pid {daemon.pid}) uses this work directory" in second.stderr
    checked = run_program("--check", env=env, cwd=daemon.work.parent)
    assert checked.returncode == 1
    assert f"\nno  in use: the work directory, by pid {daemon.pid}" in checked.stdout
    assert "\nok  walls: " in checked.stdout, "the rest is told too"


def test_check_shows_where_it_works_and_who_may_come_in(tmp_path: Path) -> None:
    env = {
        "VIVARIUM_PORT": "0",
        "VIVARIUM_USER_HEADER": "X-User",
        "VIVARIUM_PROXY_SECRET": "sixteen letters!",
    }
    checked = run_program("--check", env=env, cwd=tmp_path)
    assert f"\nok  work directory: {tmp_path}/workspace\n" in checked.stdout
    assert "\nok  access: whoever has the proxy secret\n" in checked.stdout


def test_a_user_without_stdio_is_warned_about(start: type_of_start) -> None:
    daemon = start(args=["--user", "alice"])
    assert daemon.log_contains("--user has no effect without --stdio")


def test_a_secret_without_a_user_header_is_warned_about(start: type_of_start) -> None:
    daemon = start(args=["--proxy-secret", "hush6" * 4])
    assert daemon.log_contains("--proxy-secret has no effect without VIVARIUM_USER_HEADER")
    assert not daemon.log_contains("hush6")


def test_anonymous_opens_another_address(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_HOST": "0.0.0.0", "VIVARIUM_ANONYMOUS": "1"})
    assert daemon.url == f"http://0.0.0.0:{daemon.port}/mcp"
    assert daemon.client().request("ping") == {}


def test_an_unknown_variable_is_warned_about(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TIMEUOT": "5"})
    assert daemon.log_contains("VIVARIUM_TIMEUOT is not a setting of this version: ignored")


def test_flags_win_over_variables_and_are_printed(tmp_path: Path) -> None:
    ended = run_program(
        "--print-config",
        "--max-timeout",
        "11",
        "--log-format=json",
        env={"VIVARIUM_MAX_TIMEOUT": "12", "VIVARIUM_MAX_IMAGES": "3"},
        cwd=tmp_path,
    )
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert "VIVARIUM_MAX_TIMEOUT=11" in lines
    assert "VIVARIUM_MAX_IMAGES=3" in lines
    assert "VIVARIUM_LOG_FORMAT=json" in lines
    assert "VIVARIUM_HOST=127.0.0.1" in lines
    settings = dict(line.split("=", 1) for line in lines)
    assert settings["VIVARIUM_WORKDIR"] == str(tmp_path / "workspace")
    state = settings["VIVARIUM_STATE_DIR"]
    assert state.startswith(f"{tmp_path}/.local/state/vivarium/")
    assert os.access(settings["VIVARIUM_PYTHON"], os.X_OK)
    assert not list(tmp_path.iterdir()), "nothing is made"
    run_program("--check", env={"VIVARIUM_PORT": "0"}, cwd=tmp_path)
    assert Path(state).is_dir(), "the one that is used"
    secret = run_program("--print-config", env={"VIVARIUM_PROXY_SECRET": "hush5"}, cwd=tmp_path)
    assert "hush5" not in secret.stdout


def test_the_other_verbs_answer_and_exit(tmp_path: Path) -> None:
    assert run_program("--version", env={}, cwd=tmp_path).stdout.startswith("vivarium ")
    help_text = run_program("--help", env={}, cwd=tmp_path)
    assert help_text.returncode == 0
    for name in ("VIVARIUM_PORT", "VIVARIUM_WORKDIR", "--check", "--print-config"):
        assert name in help_text.stdout
    env = {"VIVARIUM_STATE_DIR": str(tmp_path / "s")}
    good = run_program("--check", env=env | {"VIVARIUM_PYTHON": str(any_python())}, cwd=tmp_path)
    assert good.returncode == 0, good.stdout
    assert "ipykernel" in good.stdout
    bad = run_program("--check", env=env | {"VIVARIUM_PYTHON": "/bin/false"}, cwd=tmp_path)
    assert bad.returncode == 1
    assert "no " in bad.stdout


def test_the_json_log_is_json(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_LOG_FORMAT": "json", "VIVARIUM_LOG_LEVEL": "debug"})
    assert daemon.client().run("'loud \\n \\x1b'").exit_code == 0
    daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert len(lines) > 5
    assert all(isinstance(line, dict) and line["level"] for line in lines)
    assert "loud" not in daemon.log()
