"""The interrupt ladder against everything that a cell may be busy with, by timeout and by
notifications/cancelled: the verdict is true, the variables stay wherever the kernel does.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from harness import Client, Daemon, wait_until

# What the cell does; whether the kernel survives the interrupt.
BUSY = {
    "sleep": ("import time; time.sleep(60)", True),
    "loop": ("while True: pass", True),
    "subprocess": ("import subprocess; subprocess.run(['sleep', '60'])", True),
    "shell": ("!sleep 60", True),
    "await": ("import asyncio; await asyncio.sleep(60)", True),
    "gather": ("import asyncio; await asyncio.gather(*[asyncio.sleep(60)] * 3)", True),
    "blocking in a coroutine": (
        "import time\nasync def f():\n    time.sleep(60)\nawait f()",
        True,
    ),
    "input wait on a lock": ("import threading; threading.Event().wait(60)", True),
    "native call that returns": ("sum(range(60_000_000)) and None\nwhile True: pass", True),
    "ignored by signal": (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True: time.sleep(1)",
        False,
    ),
    "ignored by except": (
        "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except BaseException: pass",
        False,
    ),
    "native call that does not": (
        "import ctypes; ctypes.PyDLL(None).sleep(60); ctypes.PyDLL(None).sleep(60)",
        None,  # sleep() returns early at a signal: the second one may or may not run
    ),
}


@pytest.fixture
def client(live: Daemon) -> Client:
    client = live.client()
    client.run_saved(live, "kept = 41")
    return client


def check_after(client: Client, result: Any, lives: bool | None) -> None:
    assert result.is_error
    said_lives = "The kernel lives: its variables are kept." in result.text
    said_killed = "the kernel was killed" in result.text
    assert said_lives != said_killed, result.text
    if lives is not None:
        assert said_lives == lives, result.text
    after = client.run("kept + 1")  # kept, or brought back
    assert after.data["result"] == "42"


@pytest.mark.parametrize("name", BUSY)
def test_a_timeout_interrupts(client: Client, name: str) -> None:
    code, lives = BUSY[name]
    result = client.run(f"print('before')\n{code}", timeout_seconds=1)
    assert result.exit_code == 124
    assert result.data["stdout"].startswith("before\n")
    assert result.text.startswith("Exit code 124.\nTimed out after 1 s")
    check_after(client, result, lives)


@pytest.mark.parametrize("name", ["sleep", "loop", "await", "shell"])
def test_cancelled_interrupts_and_keeps_the_variables(
    live: Daemon, client: Client, name: str
) -> None:
    code, _ = BUSY[name]
    message = client.message(
        "tools/call", {"name": "run_python", "arguments": {"code": f"begun = 1\n{code}"}}
    )
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(client.post(message)))
    cells = live.log().count("cell ")
    thread.start()
    wait_until(lambda: live.health()["calls"] == 1)
    assert client.notify("notifications/cancelled", {"requestId": 10**6}).status == 202
    assert client.notify("notifications/cancelled", {"requestId": message["id"]}).status == 202
    thread.join(10)
    assert not thread.is_alive(), "the cancelled cell still runs"
    assert live.log().count("cell ") == cells + 1
    assert client.run("kept").data["result"] == "41"


def test_what_waits_can_be_cancelled_without_running(live: Daemon, client: Client) -> None:
    def call(code: str) -> tuple[dict[str, Any], threading.Thread]:
        message = client.message("tools/call", {"name": "run_python", "arguments": {"code": code}})
        thread = threading.Thread(target=client.post, args=(message,))
        thread.start()
        return message, thread

    first, running = call("import time; time.sleep(20)")
    wait_until(lambda: live.health()["calls"] == 1)
    second, waiting = call("waited = 1")
    wait_until(lambda: live.health()["calls"] == 2)
    client.notify("notifications/cancelled", {"requestId": second["id"]})
    waiting.join(10)
    assert not waiting.is_alive()
    client.notify("notifications/cancelled", {"requestId": first["id"]})
    running.join(10)
    assert client.run("'waited' in globals()").data["result"] == "False"


def test_another_session_cannot_cancel(live: Daemon, client: Client) -> None:
    message = client.message(
        "tools/call", {"name": "run_python", "arguments": {"code": "import time; time.sleep(1.5)"}}
    )
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(client.post(message)))
    thread.start()
    wait_until(lambda: live.health()["calls"] == 1)
    live.client().notify("notifications/cancelled", {"requestId": message["id"]})
    thread.join(10)
    (answer,) = answers[0].messages()
    assert answer["result"]["isError"] is False
