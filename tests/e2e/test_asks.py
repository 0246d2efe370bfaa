"""What tools ask of the client before they go on: as requests on the stream of the call in
older revisions, as input_required with a sealed state in 2026-07-28.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest
from conftest import type_of_start
from harness import Client, Daemon, Result, exchange, wait_until
from stateless import Stateless

ACCEPT = {"action": "accept", "content": {}}
DECLINE = {"action": "decline"}

type_of_answer = Callable[[dict[str, Any]], dict[str, Any] | None]


class Conversation:
    """A client that answers what it is asked; `asked` has the questions."""

    def __init__(self, daemon: Daemon, **capabilities: object) -> None:
        self.client = Client(daemon.port)
        self.client.capabilities = capabilities
        self.client.initialize()
        self.asked: list[dict[str, Any]] = []

    def call(self, tool: str, answer: type_of_answer, **arguments: object) -> dict[str, Any]:
        """The JSON-RPC response to a call.  answer: of a question its result; None: an error."""
        message = self.client.message("tools/call", {"name": tool, "arguments": arguments})
        connection = http.client.HTTPConnection("127.0.0.1", self.client.port, timeout=50)
        try:
            connection.request("POST", "/mcp", json.dumps(message), self.client.headers())
            for got in messages_of(connection.getresponse()):
                if "method" not in got:
                    assert got["id"] == message["id"]
                    return got
                if "id" in got:
                    self.asked.append(got)
                    self.reply(got, answer(got))
        finally:
            connection.close()
        raise AssertionError("the stream ended without an answer")

    def reply(self, question: dict[str, Any], result: dict[str, Any] | None) -> None:
        end = {"error": {"code": -1, "message": "no"}} if result is None else {"result": result}
        reply = self.client.post({"jsonrpc": "2.0", "id": question["id"]} | end)
        assert (reply.status, reply.body) == (202, b"")

    def result(self, tool: str, answer: type_of_answer, **arguments: object) -> Result:
        return Result(self.call(tool, answer, **arguments)["result"])


def messages_of(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    if response.headers.get_content_type() != "text/event-stream":
        yield json.loads(response.read())
        return
    for line in response:
        data = line.removeprefix(b"data: ").strip()
        if line.startswith(b"data: ") and data:
            yield json.loads(data)


def never(question: dict[str, Any]) -> None:
    raise AssertionError(f"asked {question}")


def put(daemon: Daemon, name: str, text: str) -> None:
    daemon.work.mkdir(exist_ok=True)
    (daemon.work / name).write_text(text)


# ---- write_file ----


def test_a_file_of_somebody_elses_is_replaced_when_the_user_agrees(shared: Daemon) -> None:
    put(shared, "theirs", "x" * 2000)
    user = Conversation(shared, elicitation={})
    result = user.result("write_file", lambda _: ACCEPT, path="theirs", content="new")
    assert result.text == "Replaced theirs, 3 bytes."
    (question,) = user.asked
    assert question["method"] == "elicitation/create"
    assert question["params"] == {
        "message": "Replace the file theirs (2.0K)? What is in it now will be lost.",
        "requestedSchema": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize("answer", [DECLINE, {"action": "cancel"}])
def test_it_stays_when_the_user_does_not_agree(shared: Daemon, answer: dict[str, Any]) -> None:
    put(shared, "theirs", "old")
    user = Conversation(shared, elicitation={})
    result = user.result("write_file", lambda _: answer, path="theirs", content="new")
    assert result.is_error
    assert result.text.startswith("Error: the user did not agree; nothing was changed")
    assert (shared.work / "theirs").read_text() == "old"


def test_it_stays_when_the_client_answers_with_an_error(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    user = Conversation(shared, elicitation={})
    result = user.result("write_file", lambda _: None, path="theirs", content="new")
    assert "the client did not answer what it was asked: no" in result.text
    assert (shared.work / "theirs").read_text() == "old"


def test_a_client_that_answers_nonsense_is_not_asked_for_ever(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    user = Conversation(shared, elicitation={})
    result = user.result("write_file", lambda _: {"x": 1}, path="theirs", content="new")
    assert "asked 10 times and gave no answer that fits" in result.text
    assert len(user.asked) == 10
    assert (shared.work / "theirs").read_text() == "old"


def test_what_write_file_wrote_is_replaced_without_a_word(shared: Daemon) -> None:
    user = Conversation(shared, elicitation={"form": {}})
    for text in ("one", "two", "three"):
        assert not user.result("write_file", never, path="ours", content=text).is_error
    put(shared, "ours", "changed by somebody")
    user.result("write_file", lambda _: ACCEPT, path="ours", content="four")
    assert len(user.asked) == 1


def test_a_new_file_and_a_wrong_argument_are_not_asked_about(shared: Daemon) -> None:
    put(shared, "there", "old")
    user = Conversation(shared, elicitation={})
    assert not user.result("write_file", never, path="brand-new", content="x").is_error
    wrong = user.result("write_file", never, path="there", content="!", encoding="base64")
    assert "no base64" in wrong.text


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_who_cannot_be_asked_is_not(shared: Daemon, capabilities: dict[str, object]) -> None:
    put(shared, "theirs", "old")
    user = Conversation(shared, **capabilities)
    assert not user.result("write_file", never, path="theirs", content="new").is_error


def test_nobody_is_asked_where_the_setting_says_so(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_CONFIRM": "0"})
    put(daemon, "theirs", "old")
    user = Conversation(daemon, elicitation={})
    assert not user.result("write_file", never, path="theirs", content="new").is_error


# ---- undo ----


def test_a_long_undo_is_asked_about_and_a_short_one_is_not(start: type_of_start) -> None:
    daemon = start()
    user = Conversation(daemon, elicitation={})
    for number in range(8):
        user.client.run_saved(daemon, f"n = {number}")
    assert not user.result("undo", never, cells=1).is_error
    assert user.result("undo", lambda _: DECLINE, cells=6).is_error
    assert "Undo the last 6 cells?" in user.asked[0]["params"]["message"]
    assert user.client.run("n").text.endswith(": 6")
    assert not user.result("undo", lambda _: ACCEPT, cells=6).is_error


def test_an_undo_is_asked_about_by_what_it_really_takes(start: type_of_start) -> None:
    daemon = start()
    user = Conversation(daemon, elicitation={})
    user.client.run_saved(daemon, "n = 1")
    for _ in range(5):  # none of these has a state of its own
        user.client.run("import os; os._exit(3)")
    user.client.run_saved(daemon, "n = 7")
    assert user.result("undo", lambda _: DECLINE, cells=1).is_error
    asked = user.asked[0]["params"]["message"]
    assert "Undo the last 6 cells? (Asked for: 1, but those between have no saved" in asked
    assert user.client.run("n").text.endswith(": 7")
    assert not user.result("undo", never, cells=1).is_error
    assert not user.result("undo", lambda _: ACCEPT, cells=1).is_error
    assert user.client.run("n").text.endswith(": 1")


def test_an_undo_that_cannot_be_is_not_asked_about(shared: Daemon) -> None:
    user = Conversation(shared, elicitation={})
    user.client.run("n = 1")
    refused = user.result("undo", never, cells=50)
    assert "no state from 50 cells back is kept" in refused.text


def test_what_restore_can_bring_back_is_not_asked_about(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOOLS": "run_python,undo,restore"})
    user = Conversation(daemon, elicitation={})
    for number in range(7):
        user.client.run_saved(daemon, f"n = {number}")
    assert not user.result("undo", never, cells=6).is_error


# ---- while somebody is asked ----


def test_others_are_served_meanwhile_and_only_the_asked_one_can_answer(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    user, other = Conversation(shared, elicitation={}), Conversation(shared, elicitation={})

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        other.reply(question, ACCEPT)  # is ignored: it is not theirs
        assert (shared.work / "theirs").read_text() == "old"
        assert other.client.request("ping") == {}
        return DECLINE

    assert user.result("write_file", answer, path="theirs", content="new").is_error
    assert (shared.work / "theirs").read_text() == "old"


def test_questions_that_nobody_answers_are_few(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    user = Conversation(shared, elicitation={})
    with ExitStack() as stack:
        for _ in range(8):
            connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=50)
            stack.enter_context(closing(connection))
            arguments = {"path": "theirs", "content": "new"}
            message = user.client.message(
                "tools/call", {"name": "write_file", "arguments": arguments}
            )
            connection.request("POST", "/mcp", json.dumps(message), user.client.headers())
            response = stack.enter_context(closing(connection.getresponse()))
            assert next(messages_of(response))["method"] == "elicitation/create"
        ninth = user.result("write_file", never, path="theirs", content="new")
        assert "leaves 8 questions open already" in ninth.text
        other = Conversation(shared, elicitation={})
        assert other.result("write_file", lambda _: DECLINE, path="theirs", content="x").is_error
        assert len(other.asked) == 1
    assert (shared.work / "theirs").read_text() == "old"


# ---- 2026-07-28 ----


def test_the_question_is_the_result_and_the_next_request_has_the_answer(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    user, arguments = Stateless(shared, elicitation={}), {"path": "theirs", "content": "new"}
    asked = user.result("write_file", arguments)
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["confirm"]["method"] == "elicitation/create"
    assert (shared.work / "theirs").read_text() == "old"
    done = user.result(
        "write_file",
        arguments,
        inputResponses={"confirm": ACCEPT},
        requestState=asked["requestState"],
    )
    assert done["resultType"] == "complete"
    assert (shared.work / "theirs").read_text() == "new"


def test_an_agreement_is_for_the_file_as_it_was(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    user, arguments = Stateless(shared, elicitation={}), {"path": "theirs", "content": "new"}
    state = user.result("write_file", arguments)["requestState"]
    put(shared, "theirs", "changed meanwhile")
    answers = {"confirm": ACCEPT}
    again = user.result("write_file", arguments, inputResponses=answers, requestState=state)
    assert again["resultType"] == "input_required"
    without = user.result("write_file", arguments, inputResponses=answers)
    assert without["resultType"] == "input_required"
    assert (shared.work / "theirs").read_text() == "changed meanwhile"


def state_for(user: Stateless, **arguments: str) -> str:
    return str(user.result("write_file", arguments)["requestState"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state + "-TAMPERED",
        lambda state: state[:-1] + ("A" if state[-1] != "A" else "B"),
        lambda state: "A" + state[1:] if state[0] != "A" else "B" + state[1:],
        lambda state: state[: len(state) // 2],
        lambda state: "",
        lambda state: "A" * 100_000,
        lambda state: 5,
        lambda state: {"state": state},
    ],
    ids=["longer", "last letter", "first letter", "half", "empty", "huge", "number", "object"],
)
def test_a_state_that_is_not_ours_is_refused(shared: Daemon, spoil: Callable[[str], Any]) -> None:
    put(shared, "theirs", "old")
    user, arguments = Stateless(shared, elicitation={}), {"path": "theirs", "content": "new"}
    state = spoil(state_for(user, **arguments))
    more = {"inputResponses": {"confirm": ACCEPT}, "requestState": state}
    status, answer = user.call("write_file", arguments, **more)
    assert (status, answer["error"]["code"]) == (200, -32602)
    assert "requestState" in answer["error"]["message"]


def test_a_state_is_good_for_its_request_only(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    put(shared, "other", "old")
    user = Stateless(shared, elicitation={})
    state = state_for(user, path="theirs", content="new")
    more = {"inputResponses": {"confirm": ACCEPT}, "requestState": state}
    for arguments in ({"path": "other", "content": "new"}, {"path": "theirs", "content": "more"}):
        _, answer = user.call("write_file", arguments, **more)
        assert answer["error"]["code"] == -32602


def test_a_state_is_good_after_a_restart_and_for_its_user_only(start: type_of_start) -> None:
    first = start(env={"VIVARIUM_USER_HEADER": "X-User-ID"})
    for name in ("ann", "bob"):
        (first.work / "users" / name).mkdir(parents=True, exist_ok=True)
        (first.work / "users" / name / "theirs").write_text("old")
    arguments = {"path": "theirs", "content": "new"}

    def as_user(daemon: Daemon, name: str) -> Stateless:
        user = Stateless(daemon, elicitation={})
        user.client.extra = {"X-User-ID": name, "X-Vivarium-Proxy-Secret": daemon.secret}
        return user

    state = state_for(as_user(first, "ann"), **arguments)
    first.kill()
    env = {"VIVARIUM_USER_HEADER": "X-User-ID", "VIVARIUM_PROXY_SECRET": first.secret}
    second = start(env=env)
    second.secret = first.secret
    more = {"inputResponses": {"confirm": ACCEPT}, "requestState": state}
    _, answer = as_user(second, "bob").call("write_file", arguments, **more)
    assert answer["error"]["code"] == -32602
    done = as_user(second, "ann").result("write_file", arguments, **more)
    assert done["resultType"] == "complete"
    assert (second.work / "users" / "ann" / "theirs").read_text() == "new"
    assert (second.work / "users" / "bob" / "theirs").read_text() == "old"


def test_who_leaves_while_asked_costs_nothing(shared: Daemon) -> None:
    put(shared, "theirs", "old")
    before = shared.fds()
    users = [Conversation(shared, elicitation={}) for _ in range(5)]
    asked = threading.Barrier(len(users))

    def leave(user: Conversation) -> None:
        def answer(_: dict[str, Any]) -> None:
            asked.wait(30)
            raise ConnectionError

        with pytest.raises(ConnectionError):
            user.call("write_file", answer, path="theirs", content="new")
        ended = exchange(user.client.port, "DELETE", "/mcp", headers=user.client.headers())
        assert ended.status == 200

    threads = [threading.Thread(target=leave, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: shared.fds() <= before, 10, "connections are gone")
    assert (shared.work / "theirs").read_text() == "old"
