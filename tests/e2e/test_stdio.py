"""MCP over standard streams: what is taken when, two processes at one work directory, and
every way to end.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import any_python
from dialogue import BATCHES, META, STATELESS
from harness import (
    PROGRAM,
    SANITIZER,
    Daemon,
    resident_kb,
    wait_until,
)
from stdio import PATIENCE_S, Stdio

type_of_speak = Callable[..., Stdio]


@pytest.fixture
def speak(tmp_path: Path) -> Iterator[type_of_speak]:
    """speak(*args, env=...): processes at one work directory."""
    begun: list[Stdio] = []

    def begin(*args: str, **options: Any) -> Stdio:
        begun.append(Stdio(tmp_path, *args, **options))
        return begun[-1]

    yield begin
    for one in begun:
        one.clean_up()
    for one in begun:
        assert not SANITIZER.search(one.log()), one.log()


# ---- what is taken when ----


def test_probes_take_nothing_even_two_at_once(speak: type_of_speak, tmp_path: Path) -> None:
    first, second = speak().initialize(), speak()
    assert second.request("server/discover", {"_meta": META})["supportedVersions"] == [STATELESS]
    for one in (first, second):
        assert one.request("tools/list", {"_meta": META})["tools"]
    assert first.request("ping") == {}
    assert second.request("nothing/known", {"_meta": META})["code"] == -32601
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "work").exists()
    assert first.close() == second.close() == ""
    assert "ready" not in first.log()


def test_a_conversation_of_each_era(speak: type_of_speak) -> None:
    one = speak().initialize()
    assert one.run("x = 6 * 7; x") == "Out[1]: 42"
    answer = one.ask_run("x + 1", _meta=META)
    message = one.read()
    assert message["id"] == answer
    assert message["result"]["resultType"] == "complete"
    assert message["result"]["content"][0]["text"] == "Out[2]: 43"
    assert "ready on standard input and output" in one.log()
    one.close()


def test_a_question_of_a_cancelled_call_is_withdrawn(speak: type_of_speak, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "theirs").write_text("old")
    one = speak().initialize(elicitation={})
    one.check_question_is_withdrawn("theirs")
    assert (tmp_path / "work" / "theirs").read_text() == "old"
    one.check_input_is_asked()
    one.close()


def test_who_comes_through_the_door_can_be_asked_too(speak: type_of_speak, tmp_path: Path) -> None:
    first = speak().initialize()
    first.run("open('theirs', 'w').write('old')")
    second = speak().initialize(elicitation={})
    arguments = {"path": "theirs", "content": "new"}
    wanted = second.ask("tools/call", {"name": "write_file", "arguments": arguments})
    question = second.read()
    assert question["method"] == "elicitation/create"
    assert (tmp_path / "work" / "theirs").read_text() == "old"
    second.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
    answer = second.read()
    assert answer["id"] == wanted
    assert answer["result"]["content"][0]["text"] == "Replaced theirs, 3 bytes."
    (tmp_path / "work" / "theirs").write_text("old")
    second.check_question_is_withdrawn("theirs")
    assert (tmp_path / "work" / "theirs").read_text() == "old"
    second.check_input_is_asked()
    second.close()
    first.close()


def test_what_was_piped_in_is_answered_before_the_end(speak: type_of_speak) -> None:
    one = speak()
    one.initialize()
    wanted = one.ask_run("print('done')")
    answers = [json.loads(line) for line in one.close().splitlines()]
    assert [answer["id"] for answer in answers] == [wanted]
    assert answers[0]["result"]["content"][0]["text"].startswith("done")


def test_files_and_a_last_line_without_an_end(tmp_path: Path) -> None:
    given, taken = tmp_path / "in", tmp_path / "out"
    given.write_text('\n\r\n{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
    with given.open("rb") as stdin, taken.open("wb") as stdout:
        env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        run = subprocess.run(
            [PROGRAM, "--stdio"], env=env, stdin=stdin, stdout=stdout, timeout=30, check=False
        )
    assert run.returncode == 0
    assert json.loads(taken.read_text()) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_the_state_survives_from_one_process_to_the_next(speak: type_of_speak) -> None:
    one = speak().initialize()
    one.run("x = 41")
    one.close()
    two = speak().initialize()
    assert "Out[2]: 42" in two.run("x + 1")
    two.close()


def test_a_user_has_a_workspace_of_its_own(speak: type_of_speak, tmp_path: Path) -> None:
    alice = speak("--user", "alice").initialize()
    alice.run("open('mine', 'w').close(); x = 1")
    assert (tmp_path / "work/users/alice/mine").exists()
    other = speak().initialize()  # through the door, as nobody in particular
    assert "NameError" in other.run("x")
    again = speak(env={"VIVARIUM_USER": "alice"}).initialize()
    assert again.run("x") == "Out[2]: 1"
    wrong = speak("--user", "../x").initialize()
    assert "no user's name" in wrong.run("1")
    for one in (wrong, again, other, alice):
        one.close()


def test_no_user_comes_into_a_work_directory_that_is_one_workspace(speak: type_of_speak) -> None:
    everyone = speak().initialize()
    assert "Out[1]: 1" in everyone.run("1")
    alice = speak("--user", "alice").initialize()
    assert "whole work directory is the workspace of those without a name" in alice.run("1")
    alice.close()
    everyone.close()


def test_what_cannot_start_is_told_to_each_call(speak: type_of_speak, tmp_path: Path) -> None:
    one = speak("--python", "/bin/false").initialize()
    for _ in range(2):
        error = one.request("tools/call", {"name": "run_python", "arguments": {"code": "1"}})
        assert "/bin/false" in error["message"]
    assert one.request("ping") == {}
    other = speak().initialize()  # the lock was given back
    assert other.run("1") == "Out[1]: 1"
    other.close()
    one.close()


# ---- two at one work directory ----


def test_the_second_hands_on_to_the_first(speak: type_of_speak) -> None:
    first, second = speak().initialize(), speak().initialize(BATCHES)
    first.run("x = 1")
    assert second.run("x + 1") == "Out[2]: 2"
    owner = rf"\(pid {first.process.pid}, started by a client with --stdio\)"
    told = rf"another Vivarium {owner} has the state directory /[^;]*: handing on to it\n"
    assert re.search(told, second.log())
    second.send(
        [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {
                "jsonrpc": "2.0",
                "id": "b",
                "method": "tools/call",
                "params": {"name": "run_python", "arguments": {"code": "x"}},
            },
        ]
    )
    assert [answer["id"] for answer in second.read()] == ["a", "b"]
    second.close()
    assert first.run("x") == "Out[4]: 1"
    first.close()


def test_both_may_begin_at_once(speak: type_of_speak) -> None:
    both = [speak().initialize(), speak().initialize()]
    for one in both:
        one.ask_run("import os; os.getpid()")
    pids = {one.read()["result"]["structuredContent"]["result"] for one in both}
    assert len(pids) == 1, "there is one kernel"
    for one in both:  # the first of them stays for the other
        one.input.close()
    for one in both:
        assert one.process.wait(PATIENCE_S) == 0


def test_it_hands_on_to_a_daemon_that_speaks_http(speak: type_of_speak, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, env={"VIVARIUM_PYTHON": str(any_python())})
    try:
        daemon.client().run("x = 1")
        door = tmp_path / "state/daemon/door"
        assert stat.S_IMODE(door.stat().st_mode) == 0o600
        one = speak().initialize()
        assert one.run("x + 1") == "Out[2]: 2"
        one.close()
        daemon.stop()
        assert not door.exists()
    finally:
        daemon.clean_up()


def test_when_the_first_is_killed_its_calls_fail_and_the_next_one_works(
    speak: type_of_speak,
) -> None:
    first, second = speak().initialize(), speak().initialize()
    first.run("x = 41")
    assert second.run("x") == "Out[2]: 41"
    running = second.ask_run("open('begun', 'w').close(); import time; time.sleep(100)")
    wait_until((second.state.parent / "work/begun").exists, 20)
    first.kill()
    answer = second.read()
    assert answer["id"] == running
    assert "has ended" in answer["error"]["message"]
    assert "x + 1" not in second.log()
    assert "42" in second.run("x + 1")
    assert "ready on standard input" in second.log()
    second.close()


def test_the_first_stays_until_the_second_has_left(speak: type_of_speak) -> None:
    first, second = speak().initialize(), speak().initialize()
    first.run("x = 41")
    second.run("x")
    first.input.close()
    assert second.run("x + 1") == "Out[3]: 42"
    assert first.process.poll() is None
    second.close()
    assert first.process.wait(PATIENCE_S) == 0


def test_who_comes_to_the_door_without_the_key_is_sent_away(speak: type_of_speak) -> None:
    one = speak().initialize()
    one.run("1")
    hello = {"vivarium": {"key": "0" * 64, "user": ""}}
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    lines: list[object] = [hello, ping, [], "x" * 5_000_000]
    for first in lines:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20)
            sock.connect(str(one.state / "daemon" / "door"))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sock.sendall(json.dumps(first).encode() + b"\n")
                assert sock.recv(100) == b""
    assert one.run("2") == "Out[2]: 2"
    one.close()


def test_a_state_directory_with_a_long_name(speak: type_of_speak, tmp_path: Path) -> None:
    long = {"VIVARIUM_STATE_DIR": str(tmp_path / ("d" * 120) / "state")}
    first, second = speak(env=long).initialize(), speak(env=long).initialize()
    first.run("x = 1")
    assert second.run("x") == "Out[2]: 1"
    second.close()
    first.close()


# ---- bad input ----


def deep(levels: int) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * levels + b"]" * levels + b"}"
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700),
        (b'"\xff\xfe"', -32700),
        (deep(10_000), -32700),
        (b"42", -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', -32600),  # no initialize
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * (5 << 20) + b'"}}',
            -32600,
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_each_bad_line_has_its_answer(speak: type_of_speak, line: bytes, code: int) -> None:
    one = speak()
    one.send(line + b"\n")
    assert one.read()["error"]["code"] == code
    assert one.request("ping") == {}
    one.close()


def test_a_line_without_end_does_not_grow_us(speak: type_of_speak) -> None:
    one = speak().initialize()
    before = resident_kb(one.process.pid)
    for _ in range(64):
        one.send(b"x" * (1 << 20))
    one.send(b"\n")
    assert one.read()["error"]["code"] == -32600
    assert resident_kb(one.process.pid) - before < 40 * 1024
    assert one.request("ping") == {}
    one.close()


def test_byte_by_byte(speak: type_of_speak) -> None:
    one = speak()
    for byte in b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n' * 3:
        one.send(bytes([byte]))
    assert [one.read()["result"] for _ in range(3)] == [{}, {}, {}]
    one.close()


def test_an_id_that_is_in_flight_is_refused_without_it(speak: type_of_speak) -> None:
    one = speak().initialize()
    one.run("1")
    message = {"name": "run_python", "arguments": {"code": "import time; time.sleep(1); 5"}}
    one.ask("tools/call", message, id="twice")
    one.ask("tools/call", message, id="twice")
    error, answer = one.read(), one.read()
    assert error["id"] is None
    assert "twice" in error["error"]["message"]
    assert answer["id"] == "twice"
    assert answer["result"]["content"][0]["text"] == "Out[2]: 5"
    one.close()


def test_a_cancelled_call_stops_and_is_not_answered(speak: type_of_speak) -> None:
    one = speak().initialize()
    for stateless in ({}, {"_meta": META}):
        wanted = one.ask_run(
            "open('begun', 'w').close(); import time; time.sleep(100)", **stateless
        )
        begun = one.state.parent / "work/begun"
        wait_until(begun.exists, 20)
        begun.unlink()
        one.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": wanted},
            }
        )
        assert "7" in one.run("7")
    one.close()


def test_who_does_not_read_is_not_read_from(speak: type_of_speak) -> None:
    one = speak().initialize()
    before = resident_kb(one.process.pid)
    sent = threading.Event()

    def flood() -> None:
        for _ in range(3000):
            one.ask("tools/list")
        sent.set()

    thread = threading.Thread(target=flood)
    thread.start()
    assert not sent.wait(3), "it was read all the same"
    assert resident_kb(one.process.pid) - before < 30 * 1024
    count = sum(1 for _ in range(3000) if one.read()["result"]["tools"])
    thread.join()
    assert count == 3000
    one.close()


# ---- the end ----


def test_sigterm_ends_a_running_cell_within_a_clients_patience(speak: type_of_speak) -> None:
    one = speak().initialize()
    one.run("x = 41")
    one.ask_run("open('begun', 'w').close(); import time; time.sleep(100)")
    wait_until((one.state.parent / "work/begun").exists, 20)
    one.process.terminate()
    assert one.process.wait(PATIENCE_S) == 0
    one.check()
    two = speak().initialize()
    assert "42" in two.run("x + 1")
    two.close()


def test_a_client_that_is_gone_ends_it(speak: type_of_speak) -> None:
    one = speak().initialize()
    one.run("1")
    one.ask_run("open('begun', 'w').close(); import time; time.sleep(100)")
    wait_until((one.state.parent / "work/begun").exists, 20)
    one.input.close()
    one.output.close()
    assert one.process.wait(PATIENCE_S) == 0
    one.check()


def test_nothing_but_lines_is_on_the_output(speak: type_of_speak) -> None:
    one = speak(env={"VIVARIUM_LOG_LEVEL": "debug"}).initialize()
    one.ask_run("import os; os.system('echo loud'); os.write(1, b'x'); print('y')")
    lines = one.close().splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["result"]["structuredContent"]["exit_code"] == 0


def test_http_too_where_a_port_is_given(speak: type_of_speak) -> None:
    one = speak("--port", "0").initialize()
    one.run("x = 1")
    wait_until(lambda: "ready http://" in one.log(), 10)
    one.close()
