"""Calls that outlive their client's patience: a partial answer and a call id, `wait` for
the rest, results that are kept for who could not get them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from conftest import any_python, run_daemon, type_of_start
from events import ask
from harness import Client, Daemon, Result, wait_until
from test_websocket import Talk

WAIT = "import os, time\nwhile not os.path.exists({0!r}): time.sleep(0.02)\nos.remove({0!r})\n"
CELL = "print('early')\n" + WAIT.format("go") + "print('late')\nvalue = 7"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Its calls answer after a second."""
    env = {"VIVARIUM_PYTHON": str(any_python()), "VIVARIUM_SOFT_DEADLINE": "1"}
    env |= {"VIVARIUM_USER_HEADER": "X-User"}
    yield from run_daemon(tmp_path_factory.mktemp("hasty"), env=env)


@pytest.fixture
def user(hasty: Daemon, request: pytest.FixtureRequest) -> str:
    del hasty
    return re.sub(r"\W", "-", request.node.name)[:60]


@pytest.fixture
def client(hasty: Daemon, user: str) -> Client:
    client = hasty.client(X_User=user)
    while client.run("1").data["end"] == "running":  # a kernel may start slowly
        pass
    return client


def let(daemon: Daemon, user: str, name: str = "go") -> None:
    (daemon.work / "users" / user / name).touch()


def ticket_of(result: Result) -> str:
    found = re.search(r'wait\(call="(\w+)"\)', result.text)
    assert found, result.text
    return found[1]


def test_a_long_call_answers_with_what_there_is(hasty: Daemon, client: Client, user: str) -> None:
    part = client.run(CELL, timeout_seconds=200)
    assert not part.is_error
    assert re.match(r"Still running after \d+ s; its output so far is below\.", part.text)
    assert part.text.rstrip().endswith("early")
    assert (part.data["end"], part.data["exit_code"]) == ("running", None)
    assert part.data["stdout"] == "early\n"
    ticket = ticket_of(part)
    assert ticket_of(client.call("wait", call=ticket, timeout_seconds=0)) == ticket
    let(hasty, user)
    whole = client.call("wait", call=ticket)
    while whole.data["end"] == "running":
        whole = client.call("wait", call=ticket)
    assert whole.data["stdout"] == "early\nlate\n"
    assert (whole.data["end"], whole.exit_code) == ("ok", 0)
    assert whole.footer_line("vars:") == "value 7"
    assert client.call("wait", call=ticket).raw == whole.raw  # that answer may be lost, too


def test_a_new_cell_waits_meanwhile(hasty: Daemon, client: Client, user: str) -> None:
    first = ticket_of(client.run(CELL))
    second = client.run("value + 1")
    assert re.match(r"Not begun after \d+ s: it waits for the calls before it\.", second.text)
    ticket = ticket_of(second)
    let(hasty, user)
    while (result := client.call("wait", call=ticket)).data["end"] == "running":
        pass
    assert result.data["result"] == "8"
    assert client.call("wait", call=first).exit_code == 0


def test_the_timeout_counts_on(client: Client) -> None:
    part = client.run(
        "import time\nfor i in range(100): print(i); time.sleep(0.1)", timeout_seconds=2
    )
    ticket = ticket_of(part)
    while (result := client.call("wait", call=ticket)).data["end"] == "running":
        pass
    assert result.exit_code == 124
    assert result.is_error


def test_tickets_are_their_users_own(hasty: Daemon, client: Client, user: str) -> None:
    ticket = ticket_of(client.run(CELL))
    wrong = hasty.client(X_User="somebody-else").call("wait", call=ticket)
    assert wrong.is_error
    assert f"there is no call '{ticket}'" in wrong.text
    assert client.call("wait", call="nonsense").is_error
    assert client.call("wait").is_error
    let(hasty, user)
    again = hasty.client(X_User=user)  # of any session
    while (result := again.call("wait", call=ticket)).data["end"] == "running":
        pass
    assert result.exit_code == 0


def test_older_revisions_get_it_as_text(hasty: Daemon, client: Client, user: str) -> None:
    old = hasty.client("2024-11-05", X_User=user)
    part = old.run(CELL)
    assert "structuredContent" not in part.raw
    let(hasty, user)
    ticket = ticket_of(part)
    while "Still running" in (result := old.call("wait", call=ticket)).text:
        pass
    assert "structuredContent" not in result.raw
    assert "late" in result.text
    assert client.call("wait", call=ticket).data["stdout"] == "early\nlate\n"


def test_waiting_can_be_cancelled_and_the_call_goes_on(
    hasty: Daemon, client: Client, user: str
) -> None:
    ticket = ticket_of(client.run(CELL))
    talk = Talk(hasty, X_User=user, X_Vivarium_Proxy_Secret=hasty.secret).initialize()
    wanted = talk.ask("tools/call", {"name": "wait", "arguments": {"call": ticket}})
    talk.cancel(wanted)
    assert talk.request("ping") == {}  # nothing came before
    talk.ws.sock.close()
    let(hasty, user)
    while (result := client.call("wait", call=ticket)).data["end"] == "running":
        pass
    assert result.exit_code == 0


def test_who_waits_is_told_how_far_it_is(hasty: Daemon, client: Client, user: str) -> None:
    bar = r"print('\r 50%|#####     | 1/2 [00:01<00:01,  1.00it/s]', end='', flush=True)"
    code = "import os\nwhile not os.path.exists('bar'): pass\n"
    ticket = ticket_of(client.run(code + bar + "\n" + CELL))
    let(hasty, user, "bar")
    while True:
        params = {"name": "wait", "arguments": {"call": ticket}, "_meta": {"progressToken": 1}}
        with ask(client, "tools/call", params) as stream:
            *told, answer = stream.messages()
        if [message for message in told if message["params"].get("total") == 2]:
            break
        assert "result" in answer
    let(hasty, user)


def test_what_is_kept_of_a_user_is_bounded(client: Client) -> None:
    tickets = []
    for i in range(20):
        part = client.run(f"import time; time.sleep(1.3); print({i})")
        tickets.append(ticket_of(part))
        while client.call("wait", call=tickets[-1]).data["end"] == "running":
            pass
    assert client.call("wait", call=tickets[0]).is_error
    kept = [client.call("wait", call=ticket).is_error for ticket in tickets]
    assert kept == [True] * 4 + [False] * 16


def test_no_patience_is_needed_where_nobody_can_wait(start: type_of_start) -> None:
    env = {"VIVARIUM_SOFT_DEADLINE": "1", "VIVARIUM_TOOLS": "run_python"}
    client = start(env=env).client()
    result = client.run("import time; time.sleep(2.5); print('whole')")
    assert result.text == "whole"


def leave(daemon: Daemon, talk: Talk) -> None:
    """Without a word, and the daemon has seen it."""
    fds = daemon.fds()
    talk.ws.sock.close()
    wait_until(lambda: daemon.fds() < fds, 20, "the daemon has seen that it left")


def test_an_answer_that_nobody_got_is_told_and_kept(daemon: Daemon) -> None:
    client = daemon.client()
    client.run("pass")
    talk = Talk(daemon).initialize()
    talk.ask_run("open('begun', 'w')\n" + CELL)
    wait_until((daemon.work / "begun").exists, 20)
    leave(daemon, talk)
    (daemon.work / "go").touch()
    told = client.run("value")
    found = re.search(r'did not reach its client: wait\(call="(\w+)"\)', told.text)
    assert found, told.text
    assert told.data["result"] == "7"
    assert client.call("wait", call=found[1]).data["stdout"] == "early\nlate\n"
    assert "did not reach" not in client.run("1").text


def test_answers_that_nobody_got_are_told_in_one_line(daemon: Daemon) -> None:
    client = daemon.client()
    client.run("pass")
    talk = Talk(daemon).initialize()
    talk.ask_run("open('begun', 'w')\n" + CELL)
    for number in range(3):
        talk.ask_run(f"print('cell', {number})")
    wait_until((daemon.work / "begun").exists, 20)
    leave(daemon, talk)
    (daemon.work / "go").touch()
    told = client.run("1")
    found = re.search(r"The answers of 4 earlier calls .* of (.*)\.\n", told.text)
    assert found, told.text
    first, *others = (
        client.call("wait", call=call).data["stdout"] for call in found[1].split(", ")
    )
    assert (first, others) == ("early\nlate\n", [f"cell {number}\n" for number in range(3)])


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_a_client_without_an_id_to_come_back_by_misses_nothing(
    daemon: Daemon, revision: str
) -> None:
    client = daemon.client(revision)
    client.run("pass")
    params = {"name": "run_python", "arguments": {"code": CELL}}
    with ask(client, "tools/call", params) as stream:
        assert stream.is_stream()  # and nothing was on it
        fds = daemon.fds()
    wait_until(lambda: daemon.fds() < fds, 20, "the daemon has seen that it left")
    (daemon.work / "go").touch()
    told = client.run("value")
    found = re.search(r'did not reach its client: wait\(call="(\w+)"\)', told.text)
    assert found, told.text
    assert "late" in client.call("wait", call=found[1]).text


def test_a_cancelled_call_is_not_missed(daemon: Daemon) -> None:
    client = daemon.client()
    client.run("pass")
    talk = Talk(daemon).initialize()
    wanted = talk.ask_run("open('begun', 'w')\n" + CELL)
    wait_until((daemon.work / "begun").exists, 20)
    talk.cancel(wanted)
    assert talk.request("ping") == {}
    talk.ws.sock.close()
    assert "did not reach" not in client.run("1").text
