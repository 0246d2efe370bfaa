"""Users: a workspace each, named by a header of every request; the journal; idle stop; the
limit of kernels.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable
from typing import Any

import pytest
from harness import Client, Daemon, Result, wait_until

SECRET = "s3cret of a proxy"
USERS = {"VIVARIUM_USER_HEADER": "X-User-ID", "VIVARIUM_PROXY_SECRET": SECRET}


def run_as(client: Client, user: str, code: str, **options: Any) -> Result:
    client.extra = {"X-User-ID": user, "X-Vivarium-Proxy-Secret": SECRET}
    return client.run(code, **options)


@pytest.fixture
def daemon(start: Callable[..., Daemon]) -> Daemon:
    return start(env=USERS)


def test_one_session_many_users(daemon: Daemon) -> None:
    client = daemon.client()
    assert run_as(client, "alice", "who = 'alice'; open('mine', 'w').close()").exit_code == 0
    assert run_as(client, "bob", "'who' in globals()").data["result"] == "False"
    assert run_as(client, "alice", "who").data["result"] == "'alice'"
    assert client.call("list_files").raw["structuredContent"]["count"] == 1
    client.extra["X-User-ID"] = "bob"
    assert client.call("list_files").raw["structuredContent"]["count"] == 0
    assert (daemon.work / "users" / "alice" / "mine").exists()
    assert daemon.health()["kernels"] == 2


def test_without_a_user_the_lists_work_and_a_call_says_what_is_missing(daemon: Daemon) -> None:
    client = daemon.client()
    assert client.request("ping") == {}
    assert len(client.request("tools/list")["tools"]) == 6
    client.extra = {"X-Vivarium-Proxy-Secret": SECRET}
    result = client.run("1")
    assert result.is_error
    assert "no header X-User-ID" in result.text


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"X-User-ID": "bob"}, "X-Vivarium-Proxy-Secret is missing"),
        ({"X-User-ID": "bob", "X-Vivarium-Proxy-Secret": "guess"}, "is wrong"),
        (
            {"X-User-ID": "{{LIBRECHAT_USER_ID}}", "X-Vivarium-Proxy-Secret": SECRET},
            "did not fill in its placeholder",
        ),
        ({"X-User-ID": "../root", "X-Vivarium-Proxy-Secret": SECRET}, "1 to 64 of"),
    ],
)
def test_bad_identities_are_refused_in_words(
    daemon: Daemon, headers: dict[str, str], words: str
) -> None:
    client = daemon.client()
    client.extra = headers
    result = client.run("1")
    assert result.is_error
    assert words in result.text
    assert daemon.health()["kernels"] == 0


def test_users_run_side_by_side(daemon: Daemon) -> None:
    """Each of two cells runs while the other does."""
    code = "import time\nbegan = time.time()\ntime.sleep(2)\nprint(began, time.time())"
    results: list[Result] = []

    def run(user: str) -> None:
        results.append(run_as(daemon.client(), user, code))

    threads = [threading.Thread(target=run, args=(user,)) for user in ("alice", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (began, ended), (other_began, other_ended) = (
        map(float, result.data["stdout"].split()) for result in results
    )
    assert began < other_ended
    assert other_began < ended


@pytest.mark.parametrize(("limit", "words"), [(1, "1 call waits"), (2, "2 calls wait")])
def test_the_queue_has_an_end(start: Callable[..., Daemon], limit: int, words: str) -> None:
    daemon = start(env={"VIVARIUM_QUEUE_LIMIT": str(limit)})
    client = daemon.client()
    results: list[Result] = []
    threads = [
        threading.Thread(target=lambda: results.append(client.run("import time; time.sleep(1)")))
        for _ in range(1 + limit)  # one runs
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: daemon.health()["calls"] == 1 + limit)
    refused = client.run("1")
    assert refused.is_error
    assert f"{words} in workspace default already (VIVARIUM_QUEUE_LIMIT)" in refused.text
    for thread in threads:
        thread.join()
    assert [result.exit_code for result in results] == [0] * (1 + limit)


def test_the_limit_of_kernels_is_a_clear_answer(start: Callable[..., Daemon]) -> None:
    daemon = start(env=USERS | {"VIVARIUM_MAX_KERNELS": "1"})
    client = daemon.client()
    assert run_as(client, "alice", "1").exit_code == 0
    refused = run_as(client, "bob", "1")
    assert refused.exit_code == 125
    assert "1 kernel is alive already (VIVARIUM_MAX_KERNELS)" in refused.text
    run_as(client, "alice", "exit()")
    wait_until(lambda: daemon.health()["kernels"] == 0)
    assert run_as(client, "bob", "1").exit_code == 0


def test_an_idle_kernel_is_stopped_and_the_next_call_says_so(
    start: Callable[..., Daemon],
) -> None:
    daemon = start(env={"VIVARIUM_IDLE_TIMEOUT": "1"})
    client = daemon.client()
    client.run("kept = 1; import time; time.sleep(1.5)")  # a running cell is not idle
    assert daemon.health()["kernels"] == 1
    wait_until(lambda: daemon.health()["kernels"] == 0)
    after = client.run("kept")
    assert after.data["result"] == "1"
    assert "stopped after 1 s without a call" in after.text


def test_a_killed_daemon_names_the_calls_that_were_lost(start: Callable[..., Daemon]) -> None:
    daemon = start(env=USERS)
    client = daemon.client()

    def post(user: str, code: str) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            run_as(daemon.client(), user, code)

    run_as(client, "alice", "1")
    threads = [
        threading.Thread(target=post, args=("alice", "import time; time.sleep(60)"))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: daemon.health()["calls"] == 3)
    wait_until(lambda: (daemon.state / "daemon" / "calls.journal").read_text().count("begun") == 2)
    daemon.kill()
    for thread in threads:
        thread.join()
    again = start(env=USERS)
    client = again.client()
    told = run_as(client, "alice", "1")
    assert "Vivarium was killed; lost: cell 2, which ran since" in told.text
    assert "2 calls that waited" in told.text
    assert "killed" not in run_as(client, "alice", "1").text
    assert "killed" not in run_as(client, "bob", "1").text
