"""Who asked to be told of changed files is told, over every transport and in both eras."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import type_of_start
from dialogue import META, STATELESS
from events import Stream, listen
from harness import Client, Daemon, RpcError, exchange
from stdio import Stdio
from test_websocket import Talk

UPDATED = "notifications/resources/updated"
LIST = "notifications/resources/list_changed"
ID = "io.modelcontextprotocol/subscriptionId"


def listen_params(**filters: object) -> dict[str, Any]:
    return {"notifications": filters, "_meta": META}


def open_listen(client: Client, wanted: object = "L", **filters: object) -> Stream:
    body = client.message("subscriptions/listen", listen_params(**filters), id=wanted)
    headers = client.headers(MCP_Protocol_Version=STATELESS, Mcp_Method="subscriptions/listen")
    del headers["Mcp-Session-Id"]
    return Stream(client.port, "POST", body, headers)


@pytest.fixture
def client(daemon: Daemon) -> Client:
    client = daemon.client()
    client.run("pass")
    return client


def test_a_session_is_told_on_its_newest_stream(client: Client) -> None:
    assert client.initialize()["capabilities"]["resources"] == {
        "subscribe": True,
        "listChanged": True,
    }
    client.request("resources/subscribe", {"uri": "workspace:///a.txt"})
    client.request("resources/list")
    with listen(client) as old, listen(client) as new:
        client.run("open('a.txt', 'w').write('1')")
        assert new.message()["params"] == {"uri": "workspace:///a.txt"}
        assert new.message()["method"] == LIST
        client.run("open('b.txt', 'w').write('1')")  # nobody asked for that one
        assert new.message()["method"] == LIST
        client.run("open('a.txt', 'w').write('22')")
        assert new.message()["method"] == UPDATED
        client.request("resources/unsubscribe", {"uri": "workspace:///a.txt"})
        client.run("open('a.txt', 'w').write('333')")
        client.run("import os; os.remove('a.txt')")
        assert new.message()["method"] == LIST
        new.close()
        client.call("write_file", path="c.txt", content="x")  # while none is newer
        assert old.message()["method"] == LIST


def test_what_happened_while_nobody_read_is_told_later(client: Client) -> None:
    client.request("resources/subscribe", {"uri": "workspace:///a.txt"})
    client.request("resources/list")
    with listen(client) as stream:
        client.run("open('a.txt', 'w').write('1')")
        seen = stream.event()
        assert seen
        stream.event()
    client.run("open('a.txt', 'w').write('22')")
    with listen(client, Last_Event_ID=seen.id) as again:
        assert again.message()["method"] == LIST
        assert again.message()["params"] == {"uri": "workspace:///a.txt"}


def test_who_never_listed_files_is_told_nothing_unasked(daemon: Daemon, client: Client) -> None:
    with listen(client) as stream:
        client.call("write_file", path="a.txt", content="x")
        client.request("resources/list")
        client.call("write_file", path="b.txt", content="x")
        assert stream.message()["method"] == LIST
        daemon.process.terminate()
        assert stream.event() is None
    assert daemon.process.wait(20) == 0


def test_only_the_users_own_files_are_told(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User"})
    one, other = daemon.client(X_User="one"), daemon.client(X_User="other")
    for client in (one, other):
        client.request("resources/subscribe", {"uri": "workspace:///a.txt"})
        client.request("resources/list")
    with listen(one) as ours, listen(other) as theirs:
        one.call("write_file", path="a.txt", content="x")
        assert ours.message()["method"] == UPDATED
        assert ours.message()["method"] == LIST
        other.call("write_file", path="z.txt", content="x")
        assert theirs.message()["method"] == LIST


def go_on(start: type_of_start, clients: list[Client]) -> Daemon:
    """The next daemon, and everybody's session with it."""
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User"})
    for client in clients:
        client.port = daemon.port
        client.extra["X-Vivarium-Proxy-Secret"] = daemon.secret
    return daemon


def test_who_subscribed_is_told_after_the_daemon_was_killed(start: type_of_start) -> None:
    """And nobody else: neither another user, nor who ended his subscription or session."""
    first = start(env={"VIVARIUM_USER_HEADER": "X-User"})
    clients = [first.client(X_User=user) for user in ("one", "other", "one", "one")]
    one, other, ended, deleted = clients
    for client in clients:
        client.request("resources/subscribe", {"uri": "workspace:///a.txt"})
    one.request("resources/list")
    ended.request("resources/unsubscribe", {"uri": "workspace:///a.txt"})
    ended.request("resources/subscribe", {"uri": "workspace:///line\nbreak \u00fc.txt"})
    exchange(first.port, "DELETE", "/mcp", headers=deleted.headers())
    first.kill()
    second = go_on(start, clients)
    assert deleted.post(deleted.message("ping")).status == 404
    with listen(one) as told, listen(other) as untold, listen(ended) as asked_no_more:
        one.call("write_file", path="a.txt", content="x")
        assert told.message()["params"] == {"uri": "workspace:///a.txt"}
        assert told.message()["method"] == LIST
        other.request("resources/list")
        other.call("write_file", path="z.txt", content="x")
        assert untold.message()["method"] == LIST
        ended.request("resources/list")
        one.call("write_file", path="b.txt", content="x")
        assert asked_no_more.message()["method"] == LIST
    notes = second.state / "daemon" / "sessions.wishes"
    assert notes.parent.stat().st_mode & 0o077 == 0
    assert "a.txt" in notes.read_text()
    one.request("resources/unsubscribe", {"uri": "workspace:///a.txt"})
    second.kill()
    go_on(start, clients)
    with listen(one) as told:
        one.call("write_file", path="a.txt", content="xx")  # not asked for any more
        one.call("write_file", path="c.txt", content="x")
        assert told.message()["method"] == LIST


def test_a_stateless_client_listens_by_a_request(client: Client) -> None:
    uris = ["workspace:///a.txt"]
    with open_listen(
        client, resourceSubscriptions=uris, resourcesListChanged=True, toolsListChanged=True
    ) as stream:
        first = stream.message()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {
            "resourceSubscriptions": uris,
            "resourcesListChanged": True,
        }
        client.call("write_file", path="a.txt", content="x")
        told = [stream.message(), stream.message()]
        assert [message["method"] for message in told] == [UPDATED, LIST]
        assert told[0]["params"]["uri"] == uris[0]
        assert {message["params"]["_meta"][ID] for message in (first, *told)} == {"L"}
    with open_listen(client, 7, resourceSubscriptions=uris) as stream:
        assert stream.message()["params"]["_meta"] == {ID: 7}
        client.call("write_file", path="other.txt", content="x")  # not asked for
        client.call("write_file", path="a.txt", content="y")
        assert stream.message()["method"] == UPDATED


def test_listening_ends_with_the_daemon_in_good_order(start: type_of_start) -> None:
    daemon = start()
    with open_listen(daemon.client(), resourcesListChanged=True) as stream:
        stream.message()
        daemon.process.terminate()
        last = stream.message()
        assert last["id"] == "L"
        assert last["result"]["resultType"] == "complete"
        assert last["result"]["_meta"][ID] == "L"
        assert stream.event() is None
    assert daemon.process.wait(20) == 0


@pytest.mark.parametrize(
    "filters",
    [
        None,
        [],
        {"resourceSubscriptions": "a"},
        {"resourceSubscriptions": [1]},
        {"resourceSubscriptions": ["x"] * 200},
    ],
)
def test_a_wrong_filter_is_refused(client: Client, filters: object) -> None:
    params = {"_meta": META} | ({} if filters is None else {"notifications": filters})
    body = client.message("subscriptions/listen", params)
    headers = client.headers(MCP_Protocol_Version=STATELESS, Mcp_Method="subscriptions/listen")
    with Stream(client.port, "POST", body, headers) as stream:
        assert stream.message()["error"]["code"] == -32602


def test_subscriptions_of_a_session_are_bounded(client: Client) -> None:
    for i in range(128):
        client.request("resources/subscribe", {"uri": f"workspace:///{i}"})
    for uri in ("workspace:///more", "x" * 5000, 7, None):
        with pytest.raises(RpcError) as refused:
            client.request("resources/subscribe", {"uri": uri})
        assert refused.value.code == -32602
    client.request("resources/unsubscribe", {"uri": "workspace:///never"})


def test_a_websocket_is_told_between_its_answers(daemon: Daemon) -> None:
    talk = Talk(daemon).initialize()
    try:
        assert talk.request("resources/subscribe", {"uri": "workspace:///a.txt"}) == {}
        assert talk.request("resources/list") == {"resources": []}
        wanted = talk.ask(
            "tools/call", {"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}
        )
        came = [talk.read() for _ in range(3)]
        assert [message.get("method") for message in came] == [UPDATED, LIST, None]
        assert came[2]["id"] == wanted
        listening = talk.ask("subscriptions/listen", listen_params(resourcesListChanged=True))
        assert talk.read()["params"]["_meta"][ID] == listening
        talk.cancel(listening)
        assert talk.request("ping") == {}  # and nothing before it
    finally:
        talk.ws.sock.close()


def test_stdio_is_told_and_ends_though_somebody_listens(daemon: Daemon, tmp_path: Any) -> None:
    """Handed on to the daemon through its door."""
    env = {"VIVARIUM_WORKDIR": str(daemon.work), "VIVARIUM_STATE_DIR": str(daemon.state)}
    stdio = Stdio(tmp_path, env=env)
    try:
        wanted = stdio.ask("subscriptions/listen", listen_params(resourcesListChanged=True))
        assert stdio.read()["params"]["_meta"][ID] == wanted
        daemon.client().call("write_file", path="a.txt", content="x")
        assert stdio.read()["method"] == LIST
        stdio.close()
    finally:
        stdio.clean_up()


def test_alone_stdio_answers_what_listens_when_its_input_ends(tmp_path: Any) -> None:
    stdio = Stdio(tmp_path)
    try:
        wanted = stdio.ask("subscriptions/listen", listen_params(resourcesListChanged=True))
        assert stdio.read()["params"]["_meta"][ID] == wanted
        rest = [json.loads(line) for line in stdio.close().splitlines()]
        assert [message["id"] for message in rest] == [wanted]
    finally:
        stdio.clean_up()
