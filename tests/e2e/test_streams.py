"""Event streams that break and go on: what is sent again, to whom, and for how long."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from typing import Any

import pytest
from conftest import type_of_start
from dialogue import META, STATELESS
from events import Event, Stream, ask_run, listen
from harness import Client, Daemon, resident_kb, wait_until
from test_clients import ROOM, TOOLS, require

WAIT = "import os, time\nwhile not os.path.exists({0!r}): time.sleep(0.02)\nos.remove({0!r})\n"
# What the stream of a call carries besides its answer.
TOKEN = {"progressToken": "t"}


def let(daemon: Daemon, name: str) -> None:
    (daemon.work / name).touch()


def first_event(stream: Stream) -> Event:
    event = stream.event()
    assert event
    return event


def resume(client: Client, seen: str) -> Stream:
    return listen(client, Last_Event_ID=seen)


def answer_of(stream: Stream) -> Any:
    """The only response on it, which is the last."""
    *before, answer = stream.messages()
    assert all("method" in message for message in before), before
    return answer


def text_of(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


# ---- answers ----


def test_a_stream_begins_with_an_empty_event_that_has_an_id(shared: Daemon) -> None:
    client = shared.client()
    with ask_run(client, WAIT.format("go")) as stream:
        first = first_event(stream)
        assert first.id
        assert not first.data
        assert int(first.retry) > 0
        let(shared, "go")
        answer = first_event(stream)
        assert answer.id not in {"", first.id}
        assert "result" in answer.json()
        assert stream.event() is None


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_clients_get_ids_but_no_empty_event(shared: Daemon, revision: str) -> None:
    client = shared.client(revision)
    with ask_run(client, WAIT.format("go"), meta=TOKEN) as stream:
        first = first_event(stream)
        assert first.id
        assert first.json()["method"] == "notifications/progress"
        stream.close()
        let(shared, "go")
        with resume(client, first.id) as again:
            assert "result" in answer_of(again)


@pytest.mark.parametrize("when", ["away", "back"])
def test_who_lost_the_connection_gets_the_answer(shared: Daemon, when: str) -> None:
    """It comes while nobody is there, or once somebody is there again."""
    client = shared.client()
    with ask_run(client, WAIT.format("go") + "print('the', 'answer')\nopen('done', 'w')") as stream:
        seen = first_event(stream).id
    if when == "away":
        let(shared, "go")
        wait_until((shared.work / "done").exists, 20)
    with resume(client, seen) as again:
        let(shared, "go")
        answer = again.message()
        assert text_of(answer).startswith("the answer")
    with resume(client, seen) as once_more:  # that answer may have been lost as well
        assert once_more.message() == answer
    client.run("import os; os.remove('done'); os.path.exists('go') and os.remove('go')")


def test_a_stream_that_has_been_read_has_nothing_more(shared: Daemon) -> None:
    client = shared.client()
    with ask_run(client, "import time; time.sleep(0.5)") as stream:
        events = list(stream.events())
    with resume(client, events[-1].id) as again:
        assert again.status == 204
        assert again.response.read() == b""


def test_only_what_comes_after_the_event_is_sent_again(shared: Daemon) -> None:
    client = shared.client()
    with ask_run(client, WAIT.format("go"), meta=TOKEN) as stream:
        events = [first_event(stream) for _ in range(3)]
    let(shared, "go")
    with resume(client, events[1].id) as again:
        rest = list(again.events())
    assert rest[0].id == events[2].id
    assert rest[0].data == events[2].data
    assert "result" in rest[-1].json()
    assert not {event.id for event in rest} & {event.id for event in events[:2]}


def test_streams_are_not_mixed_up(shared: Daemon) -> None:
    client = shared.client()
    with (
        ask_run(client, WAIT.format("go") + "print('one')") as one,
        ask_run(client, "print('other')") as other,
    ):
        seen = [first_event(stream).id for stream in (one, other)]
    let(shared, "go")
    for name, event_id in zip(("one", "other"), seen, strict=True):
        with resume(client, event_id) as again:
            assert text_of(answer_of(again)).startswith(name)


def test_who_comes_back_takes_over_from_the_dead_connection(shared: Daemon) -> None:
    client = shared.client()
    with ask_run(client, WAIT.format("go")) as stream:
        seen = first_event(stream).id
        with resume(client, seen) as again:
            assert stream.event() is None
            let(shared, "go")
            assert "result" in answer_of(again)


def test_ids_of_others_and_made_up_ones_are_refused(shared: Daemon) -> None:
    client, other = shared.client(), shared.client()
    with ask_run(client, WAIT.format("go") + "print('secret')") as stream:
        seen = first_event(stream).id
    let(shared, "go")
    changed = seen[0] + ("1" if seen[1] == "0" else "0") + seen[2:]
    wrong = [changed, "s" + seen[1:], seen[:20], "nonsense", "a_0", seen + "_?", "x" * 5000]
    for event_id in [*wrong, "a" + 32 * "0" + "_0", seen.replace("_", "_-")]:
        with resume(client, event_id) as again:
            assert again.status == 400, event_id
            assert again.message()["error"]["code"] == -32000
    with resume(other, seen) as again:
        assert again.status == 400
    with resume(client, seen) as again:
        assert text_of(answer_of(again)).startswith("secret")


def test_what_was_said_to_one_user_is_not_said_to_another(start: type_of_start) -> None:
    """Sessions belong to nobody: who asks is looked at anew."""
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User"})
    client = daemon.client(X_User="ada")
    with ask_run(client, "import time; time.sleep(0.5); print('secret')") as stream:
        seen = first_event(stream).id
        stream.event()
    for name in ("eve", "{{unknown}}"):
        client.extra["X-User"] = name
        with resume(client, seen) as again:
            assert again.status == 400
    client.extra["X-User"] = "ada"
    with resume(client, seen) as again:
        assert text_of(answer_of(again)).startswith("secret")


def test_what_is_kept_has_an_end(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_REPLAY_KEEP": "1"})
    client = daemon.client()
    with ask_run(client, WAIT.format("go")) as stream:
        seen = first_event(stream).id
    let(daemon, "go")
    client.run("pass")  # that one is over
    for _ in range(20):
        time.sleep(2)  # longer than it is kept; each look begins that time anew
        with resume(client, seen) as again:
            answer = again.message()
        if "error" in answer:
            break
    assert answer["error"]["code"] == -32603
    assert "not kept any more" in answer["error"]["message"]


def test_who_keeps_most_loses_the_oldest_first(start: type_of_start) -> None:
    daemon = start(
        env={
            "VIVARIUM_REPLAY_MAX_BYTES": str(1 << 20),
            "VIVARIUM_OUTPUT_LIMIT": "300000",
            "VIVARIUM_RESULT_LIMIT": str(16 << 20),
            "VIVARIUM_USER_HEADER": "X-User",
        }
    )
    big, small = daemon.client(X_User="big"), daemon.client(X_User="small")
    code = "import time; time.sleep(0.4); print({0} * 'x')"
    with ask_run(small, code.format(10)) as stream:
        kept = first_event(stream).id
        stream.event()
    seen = []
    for _ in range(4):  # each is there twice: text and structure
        with ask_run(big, code.format(250_000)) as stream:
            seen.append(first_event(stream).id)
            stream.event()
    with resume(big, seen[0]) as again:
        assert "error" in answer_of(again)
    with resume(big, seen[-1]) as again:
        assert "result" in answer_of(again)
    with resume(small, kept) as again:
        assert "result" in answer_of(again)


def test_after_a_kill_the_answer_is_said_to_be_lost(start: type_of_start) -> None:
    daemon = start()
    client = daemon.client()
    with ask_run(client, WAIT.format("go")) as stream, listen(client) as standing:
        seen = first_event(stream).id
        assert standing.status == 200
        daemon.kill()
    again = start()
    client.port = again.port
    with resume(client, seen) as lost:
        answer = answer_of(lost)
        assert answer["id"] == next(client.ids) - 1
        assert answer["error"]["code"] == -32603
    let(again, "go")
    assert "lost" in client.run("1").text or again.log()


# ---- answers that nobody came back for ----


def lose(client: Client, code: str) -> tuple[str, str]:
    """Asks, and leaves before the answer; the id to come back by, and what will be told."""
    cell = client.run("get_ipython().execution_count").data["result"]  # of the next one
    with ask_run(client, WAIT.format("go") + code) as stream:
        seen = first_event(stream).id
    return seen, f"The answer of cell [{cell}] did not reach its client"


def told_to(client: Client, what: str) -> list[str]:
    """What its results tell of lost answers until that is among it."""
    lines: list[str] = []

    def look() -> bool:
        text = client.run("pass").text
        lines.extend(line for line in text.splitlines() if "did not reach" in line)
        return any(what in line for line in lines)

    wait_until(look, 60, what)
    return lines


@pytest.mark.parametrize("keep", ["1", "600"])
def test_an_answer_that_nobody_comes_back_for_is_told_once(start: type_of_start, keep: str) -> None:
    """When it is forgotten, or when it has waited for a while and may be resumed yet."""
    daemon = start(env={"VIVARIUM_REPLAY_KEEP": keep, "VIVARIUM_USER_HEADER": "X-User"})
    client, stranger = daemon.client(X_User="ada"), daemon.client(X_User="eve")
    seen, about = lose(client, "print('a'); value = 7")
    (daemon.work / "users" / "ada" / "go").touch()
    other = daemon.client(X_User="ada")  # another session of the same user
    assert told_to(other, about) == [
        f"{about}; what the cell did is there: see the variables and files."
    ]
    with resume(client, seen) as again:
        answer = answer_of(again)
        assert ("error" in answer) == (keep == "1")
    for each in client, other, stranger:
        assert "did not reach" not in each.run("pass").text
    assert other.run("value").data["result"] == "7"


def test_an_answer_that_was_fetched_or_not_wanted_is_not_told(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_REPLAY_KEEP": "1"})
    client = daemon.client()
    seen, _ = lose(client, "print('fetched')")
    with resume(client, seen) as again:
        let(daemon, "go")
        assert text_of(answer_of(again)).startswith("fetched")
    with ask_run(client, WAIT.format("go")) as stream:  # read to its end
        first_event(stream)
        let(daemon, "go")
        assert "result" in answer_of(stream)
    lose(client, "print('cancelled')")
    client.notify("notifications/cancelled", {"requestId": next(client.ids) - 1})
    _, about = lose(client, "print('lost')")  # is forgotten after those before it
    let(daemon, "go")
    assert len(told_to(client, about)) == 1


def test_an_answer_that_was_pushed_out_or_whose_session_ended_is_told(
    start: type_of_start,
) -> None:
    daemon = start(
        env={
            "VIVARIUM_REPLAY_MAX_BYTES": str(1 << 20),
            "VIVARIUM_OUTPUT_LIMIT": "300000",
            "VIVARIUM_RESULT_LIMIT": str(16 << 20),
            "VIVARIUM_SOFT_DEADLINE": "2",
        }
    )
    client, ended = daemon.client(), daemon.client()
    abouts = []
    for _ in range(3):  # each is there twice: text and structure
        abouts.append(lose(client, "print(250_000 * 'x')")[1])
        let(daemon, "go")
        client.run("pass")
    assert told_to(client, abouts[0])[0].startswith(abouts[0])
    _, about = lose(ended, "pass")
    with Stream(ended.port, "DELETE", headers=ended.headers()) as deleted:
        assert deleted.status == 200
    let(daemon, "go")
    told_to(client, about)
    lose(client, "pass")  # answers in part, after two seconds, as do those behind it
    told = "\n".join(told_to(client, "The first part of the answer of a cell did not reach"))
    let(daemon, "go")
    ticket = told.split("returns all of it")[0].rsplit('wait(call="', 1)[1].split('"')[0]
    assert client.call("wait", call=ticket).exit_code == 0


# ---- the session's own streams ----


def test_a_thousand_streams_of_a_session_are_bounded_and_disturb_nobody(shared: Daemon) -> None:
    client, other = shared.client(), shared.client()
    before, fds = resident_kb(shared.pid), shared.fds()
    with contextlib.ExitStack() as stack:
        streams = []
        for i in range(1000):
            streams.append(stack.enter_context(listen(client)))
            assert streams[-1].status == 200
            if i >= 32:  # the oldest has made room
                assert streams[i - 32].event() is None
                streams[i - 32].close()
            if i % 100 == 0:
                assert other.request("ping") == {}
        assert shared.fds() - fds < 50
        assert client.request("ping") == {}
    assert resident_kb(shared.pid) - before < 20_000


def test_one_id_twice_in_flight_is_two_requests(shared: Daemon) -> None:
    """Over HTTP each has a stream of its own."""
    client = shared.client()
    params = {"name": "run_python", "arguments": {"code": WAIT.format("go") + "print('one')"}}
    message = client.message("tools/call", params, id="same")
    with Stream(client.port, "POST", message, client.headers()) as one:
        seen = first_event(one).id
        assert client.post(client.message("ping", id="same")).json()["result"] == {}
        client.notify("notifications/cancelled", {"requestId": "never"})
        let(shared, "go")
        assert text_of(answer_of(one)).startswith("one")
    with resume(client, seen) as again:
        assert answer_of(again)["id"] == "same"


def test_a_deleted_session_has_no_streams(shared: Daemon) -> None:
    client = shared.client()
    with listen(client) as standing, ask_run(client, WAIT.format("go")) as stream:
        seen = first_event(stream).id
        with Stream(client.port, "DELETE", headers=client.headers()) as deleted:
            assert deleted.status == 200
        assert standing.event() is None
        assert stream.event() is None
        with resume(client, seen) as again:
            assert again.status == 404
    let(shared, "go")
    assert shared.client().run("2").data["result"] == "2"


# ---- 2026-07-28 ----


def stateless(client: Client, code: str, **meta: str) -> Stream:
    more = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
    params = {"name": "run_python", "arguments": {"code": code}, "_meta": META | more}
    headers = client.headers(
        MCP_Protocol_Version=STATELESS,
        Mcp_Method="tools/call",
        Mcp_Name="run_python",
        Last_Event_ID="whatever",
    )
    del headers["Mcp-Session-Id"]
    return Stream(client.port, "POST", client.message("tools/call", params), headers)


def test_a_stateless_stream_has_no_ids_and_to_leave_it_is_to_cancel(shared: Daemon) -> None:
    client = shared.client()
    with stateless(client, "import time; time.sleep(0.5)") as stream:
        events = list(stream.events())
        assert [event.id for event in events] == [""]
    code = "left = 'kept'\nopen('begun', 'w').close()\nimport time; time.sleep(50)"
    with stateless(client, code) as stream:
        assert stream.is_stream()
        wait_until((shared.work / "begun").exists, 20)
    assert client.run("left").data["result"] == "'kept'"
    with Stream(
        client.port,
        "GET",
        headers={"Accept": "text/event-stream", "MCP-Protocol-Version": STATELESS},
    ) as none:
        assert none.status == 405
        assert "POST" in none.response.headers["Allow"]
    with Stream(client.port, "DELETE", headers={"MCP-Protocol-Version": STATELESS}) as none:
        assert none.status == 405


# ---- who does not read ----


def test_a_client_that_does_not_read_makes_nothing_grow(start: type_of_start) -> None:
    daemon = start()
    client = daemon.client()
    client.request("logging/setLevel", {"level": "debug"})
    client.run("pass")
    before = resident_kb(daemon.pid)
    flood = (
        "for i in range(60):\n  print(('x' * 99 + chr(10)) * 1000); import time; time.sleep(0.1)"
    )
    with ask_run(client, flood) as stream:
        seen = first_event(stream).id
        other = daemon.client()
        assert other.request("ping") == {}
        assert other.run("1").data["result"] == "1"  # behind it in the queue
        assert resident_kb(daemon.pid) - before < 40_000
        with resume(client, seen) as again:
            assert "result" in answer_of(again)


@pytest.mark.parametrize("era", ["sessions", STATELESS])
def test_one_that_reads_a_byte_at_a_time_gets_it_all_and_disturbs_nobody(
    start: type_of_start, era: str
) -> None:
    daemon = start()
    client, other = daemon.client(), daemon.client()
    client.request("logging/setLevel", {"level": "debug"})
    code = "for i in range(3): print('x' * 300); import time; time.sleep(1)"
    opened = stateless(client, code, logLevel="debug") if era == STATELESS else None
    with opened or ask_run(client, code) as slow:
        got = b""
        while b'"result"' not in got:
            got += slow.response.read(1)
            if len(got) % 500 == 0:
                assert other.request("ping") == {}
        assert b'"id":' in got
        assert b"x" * 300 in got


# ---- the official client ----


class Cutter:
    """Hands on to the daemon, and breaks the first connection that carries a stream's event."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(ours,), daemon=True).start()

    def _serve(self, ours: socket.socket) -> None:
        with ours, socket.create_connection(("127.0.0.1", self.to)) as theirs:
            back = threading.Thread(target=self._copy, args=(theirs, ours, True), daemon=True)
            back.start()
            self._copy(ours, theirs, False)
            back.join()

    def _copy(self, source: socket.socket, sink: socket.socket, may_cut: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
                if may_cut and b"notifications/progress" in data and not self.cut.is_set():
                    self.cut.set()
                    break
            for end in (source, sink):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.timeout(120)
def test_the_official_client_gets_its_answer_though_the_connection_broke(shared: Daemon) -> None:
    node = require(TOOLS / "node", "Node.js")
    cutter = Cutter(shared.port)
    code = WAIT.format("go") + "print('after all')"
    client = subprocess.Popen(
        [node, ROOM / "resume_sdk1.mjs", f"http://127.0.0.1:{cutter.port}/mcp", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert cutter.cut.wait(60)
    let(shared, "go")
    out, err = client.communicate(timeout=60)
    cutter.listener.close()
    assert client.returncode == 0, err
    answer = json.loads(out)
    assert answer["text"] == "after all"
    assert answer["told"]
