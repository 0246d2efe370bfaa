"""The tasks extension of 2026-07-28: calls that answer with a task, listening to it, tasks
that ask. The tools that ask are fixtures of --conformance; that the official suite finds them
right is in test_conformance.py.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import any_python, run_daemon, type_of_start
from dialogue import META, STATELESS
from events import Stream
from harness import REPO, Client, Daemon, RpcError
from test_patience import CELL
from test_websocket import Talk

TASKS = "io.modelcontextprotocol/tasks"
ID = "io.modelcontextprotocol/subscriptionId"
TASKS_OF_ONE_MAX = 16
LISTENS_OF_ONE_MAX = 64
YES = {"action": "accept", "content": {"confirm": True}}
ROOM = REPO / "tests" / "clients"
NODE = REPO / ".venv-clients" / "bin" / "node"


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Its cells are tasks after a second; users come by a header."""
    env = {"VIVARIUM_PYTHON": str(any_python()), "VIVARIUM_SOFT_DEADLINE": "1"}
    env |= {"VIVARIUM_USER_HEADER": "X-User"}
    place = tmp_path_factory.mktemp("tasks")
    yield from run_daemon(place, env=env, args=["--conformance"])


class User:
    """A client that keeps nothing: each request names its user and what it can."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        self.client = Client(daemon.port, STATELESS)
        self.client.extra = {"X-User": name, "X-Vivarium-Proxy-Secret": daemon.secret}
        self.place = daemon.work / "users" / name

    def open(self, method: str, params: dict[str, Any], *, tasks: bool = True) -> Stream:
        able: dict[str, Any] = {"elicitation": {}}
        if tasks:
            able["extensions"] = {TASKS: {}}
        meta = META | {"io.modelcontextprotocol/clientCapabilities": able}
        name = str(params.get("name") or params.get("taskId"))
        headers = {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method, "Mcp-Name": name}
        body = self.client.message(method, params | {"_meta": meta})
        return Stream(self.client.port, "POST", body, self.client.headers() | headers)

    def request(self, method: str, params: dict[str, Any], *, tasks: bool = True) -> Any:
        with self.open(method, params, tasks=tasks) as stream:
            return stream.message()

    def call(self, tool: str, **arguments: object) -> Any:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def begin(self, tool: str, **arguments: object) -> str:
        task = self.call(tool, **arguments)
        assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
        assert task["pollIntervalMs"] > 0
        return str(task["taskId"])

    def look(self, task_id: str) -> Any:
        task = self.request("tasks/get", {"taskId": task_id})["result"]
        assert (task.pop("resultType"), task["taskId"]) == ("complete", task_id)
        del task["_meta"]
        return task

    def poll(self, task_id: str) -> Any:
        while (task := self.look(task_id))["status"] == "working":
            pass
        return task

    def answer(self, task_id: str, responses: object) -> Any:
        params = {"taskId": task_id, "inputResponses": responses}
        return self.request("tasks/update", params)

    def cancel(self, task_id: str) -> None:
        answer = self.request("tasks/cancel", {"taskId": task_id})["result"]
        assert answer.pop("_meta")
        assert answer == {"resultType": "complete"}

    def listen(self, *task_ids: object, tasks: bool = True) -> Stream:
        wanted = {"notifications": {"taskIds": list(task_ids)}}
        return self.open("subscriptions/listen", wanted, tasks=tasks)

    def let(self) -> None:
        (self.place / "go").touch()


@pytest.fixture
def user(hasty: Daemon, request: pytest.FixtureRequest) -> User:
    user = User(hasty, request.node.originalname[-40:].replace("_", "-"))
    user.poll(user.begin("slow_compute", seconds=0))  # its kernel is up
    return user


def told(stream: Stream) -> Any:
    """The next DetailedTask."""
    message = stream.message()
    assert message["method"] == "notifications/tasks"
    task = message["params"]
    assert task.pop("_meta")[ID]
    return task


def test_who_knows_tasks_gets_one(user: User) -> None:
    found = user.request("server/discover", {})["result"]
    assert found["capabilities"]["extensions"] == {TASKS: {}}
    task_id = user.begin("run_python", code=CELL)
    assert user.answer(task_id, {})["result"]["resultType"] == "complete"
    user.let()
    task = user.poll(task_id)
    assert task["status"] == "completed"
    assert task["result"]["resultType"] == "complete"
    assert task["result"]["structuredContent"]["stdout"] == "early\nlate\n"
    assert task["ttlMs"] >= 600_000
    waited = user.call("wait", call=task_id)
    assert waited["structuredContent"]["stdout"] == "early\nlate\n"


def test_a_task_can_be_cancelled(user: User) -> None:
    task_id = user.begin("run_python", code="kept = 1\nimport time; time.sleep(100)")
    user.cancel(task_id)
    task = user.poll(task_id)
    assert task["status"] == "cancelled"
    assert "result" not in task
    assert user.call("run_python", code="kept")["structuredContent"]["result"] == "1"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_tasks_are_for_who_says_so_and_has_one(hasty: Daemon, user: User, method: str) -> None:
    params = {"taskId": "nonsense", "inputResponses": {}}
    assert user.request(method, params)["error"]["code"] == -32602
    error = user.request(method, params, tasks=False)["error"]
    assert error["code"] == -32021
    assert error["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}
    with pytest.raises(RpcError) as refused:
        hasty.client().request(method, params)
    assert refused.value.code == -32601


# ---- listening ----


def test_who_listens_is_told_the_end(user: User) -> None:
    task_id = user.begin("run_python", code=CELL)
    with user.listen(task_id, "nonsense", 7) as stream:
        acknowledged = stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"taskIds": [task_id]}
        user.let()
        assert told(stream) == user.look(task_id)
    assert user.look(task_id)["status"] == "completed"


def test_what_happened_before_is_told_at_once(user: User) -> None:
    over, asking = user.begin("slow_compute", seconds=0), user.begin("multi_input")
    user.poll(over)
    user.poll(asking)
    with user.listen(over, asking) as stream:
        assert stream.message()["params"]["notifications"] == {"taskIds": [over, asking]}
        assert [told(stream)["status"] for _ in "12"] == ["completed", "input_required"]
        first, second = user.look(asking)["inputRequests"]
        user.answer(asking, {first: YES})
        assert list(told(stream)["inputRequests"]) == [second]
        user.answer(asking, {second: YES})
        assert [told(stream)["status"] for _ in "12"] == ["working", "completed"]


def test_who_begins_to_listen_is_told_alone_and_once(user: User) -> None:
    over, asking = user.begin("slow_compute", seconds=0), user.begin("multi_input")
    user.poll(over)
    first, _ = user.poll(asking)["inputRequests"]
    with user.listen(over, asking, over) as stream, user.listen(over, over) as other:
        assert stream.message()["params"]["notifications"] == {"taskIds": [over, asking]}
        assert other.message()["params"]["notifications"] == {"taskIds": [over]}
        assert told(other)["status"] == "completed"
        user.answer(asking, {first: YES})
        told_of = [told(stream)["taskId"] for _ in "123"]
        assert told_of == [over, asking, asking]
    user.cancel(asking)


def test_one_user_does_not_take_all_the_listening(hasty: Daemon) -> None:
    talk = Talk(hasty, X_User="greedy", X_Vivarium_Proxy_Secret=hasty.secret)
    params = {"notifications": {"resourcesListChanged": True}, "_meta": META}
    for _ in range(LISTENS_OF_ONE_MAX):
        talk.ask("subscriptions/listen", params)
        assert talk.read()["method"] == "notifications/subscriptions/acknowledged"
    talk.ask("subscriptions/listen", params)
    assert "too many subscriptions" in talk.read()["error"]["message"]
    with User(hasty, "modest").listen() as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
    talk.ws.sock.close()


def test_tasks_of_others_are_not_told(hasty: Daemon, user: User) -> None:
    task_id = user.begin("confirm_delete", filename="x")
    other = User(hasty, "other")
    with other.listen(task_id) as stream:
        assert stream.message()["params"]["notifications"] == {"taskIds": []}
    assert other.request("tasks/get", {"taskId": task_id})["error"]["code"] == -32602
    user.cancel(task_id)


@pytest.mark.parametrize(
    ("tasks", "wanted", "code"), [(False, ["x"], -32021), (True, "x", -32602), (True, 129, -32602)]
)
def test_listening_is_for_who_knows_tasks(
    user: User, tasks: bool, wanted: object, code: int
) -> None:
    ids = ["x"] * wanted if isinstance(wanted, int) else wanted
    params = {"notifications": {"taskIds": ids}}
    assert user.request("subscriptions/listen", params, tasks=tasks)["error"]["code"] == code


def test_tasks_over_one_websocket(hasty: Daemon) -> None:
    able: dict[str, Any] = {"extensions": {TASKS: {}}}
    meta = META | {"io.modelcontextprotocol/clientCapabilities": able}
    talk = Talk(hasty, X_User="socket", X_Vivarium_Proxy_Secret=hasty.secret)
    call = {"name": "slow_compute", "arguments": {"seconds": 0}, "_meta": meta}
    task_id = talk.request("tools/call", call)["taskId"]
    params = {"notifications": {"taskIds": [task_id]}, "_meta": meta}
    listening = talk.ask("subscriptions/listen", params)
    assert talk.read()["params"]["_meta"][ID] == listening
    message = talk.read()
    assert (message["method"], message["params"]["status"]) == ("notifications/tasks", "completed")
    talk.ws.sock.close()


# ---- tasks that ask ----


def test_what_does_not_answer_is_asked_again_under_another_key(user: User) -> None:
    task_id = user.begin("confirm_delete", filename="x")
    seen: list[str] = []
    for rubbish in (7, {"action": "accept"}, {"action": "accept", "content": {"confirm": "?"}}):
        task = user.poll(task_id)
        assert (task["status"], task["statusMessage"]) == (
            "input_required",
            "It waits for answers.",
        )
        (key,) = task["inputRequests"]
        assert key not in seen
        seen.append(key)
        user.answer(task_id, {key: rubbish, "never asked": YES})
    (key,) = user.poll(task_id)["inputRequests"]
    user.answer(task_id, dict.fromkeys(seen, YES))  # those are over
    assert user.look(task_id)["status"] == "input_required"
    user.answer(task_id, {key: YES})
    assert user.poll(task_id)["result"]["isError"] is False


def test_asking_ends(user: User) -> None:
    task_id = user.begin("confirm_delete", filename="x")
    while (task := user.poll(task_id))["status"] == "input_required":
        user.answer(task_id, {key: {} for key in task["inputRequests"]})
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True
    assert "asked 10 times" in task["result"]["content"][0]["text"]


def test_answers_have_to_be_an_object(user: User) -> None:
    task_id = user.begin("confirm_delete", filename="x")
    assert user.answer(task_id, [YES])["error"]["code"] == -32602
    assert user.look(task_id)["status"] == "input_required"
    user.cancel(task_id)
    assert user.look(task_id)["status"] == "cancelled"
    assert user.answer(task_id, {"1.confirm": YES})["result"]  # too late


def test_who_waits_for_one_that_asks_is_asked(user: User) -> None:
    task_id = user.begin("confirm_delete", filename="x")
    waited = user.call("wait", call=task_id)
    assert waited["inputRequests"] == user.look(task_id)["inputRequests"]
    again = {"name": "wait", "arguments": {"call": task_id}}
    again |= {"inputResponses": {"1.confirm": YES}, "requestState": waited["requestState"]}
    result = user.request("tools/call", again)["result"]
    assert result["content"][0]["text"].startswith("Answered: ")
    assert user.look(task_id)["status"] == "completed"


def test_tasks_of_one_user_are_bounded(user: User) -> None:
    tasks = [user.begin("confirm_delete", filename="x") for _ in range(TASKS_OF_ONE_MAX)]
    assert user.call("confirm_delete", filename="x")["resultType"] == "input_required"
    user.cancel(tasks.pop())
    tasks.append(user.begin("confirm_delete", filename="x"))
    for task_id in tasks:
        user.cancel(task_id)


# ---- the official client ----


def test_the_official_client_follows_tasks(start: type_of_start) -> None:
    """Its own polling, checking of shapes, and answers to what a task asks."""
    if not NODE.exists() or not (ROOM / "node_modules" / ".stamp").exists():
        pytest.skip("no npm packages: npm's registry was out of reach at set-up")
    done = subprocess.run(
        [NODE, ROOM / "typescript_tasks.mjs", start(args=["--conformance"]).url],
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    computed, failed, refused, confirmed, two, cancelled = map(json.loads, done.stdout.splitlines())
    assert computed["result"]["structuredContent"]["stdout"] == "Computed.\n"
    assert (failed["status"], failed["result"]["isError"]) == ("completed", True)
    assert (refused["status"], refused["code"]) == ("failed", -32603)
    assert confirmed["result"]["content"][0]["text"].startswith("Answered: ")
    assert two["asked"] == ["The first?", "The second?"]
    assert cancelled == {"status": "cancelled"}
