"""Saved states that are tried in a spare kernel before anybody needs them."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping

import pytest
from conftest import type_of_start
from harness import DEADLY, Client, Daemon, is_alive, wait_until

TOOLS = {"VIVARIUM_TOOLS": "run_python,undo,history,branch,list_files"}
ALWAYS = {"VIVARIUM_VERIFY": "always", **TOOLS}
SOON_S = 40  # five seconds of rest, a kernel, a machine with other work


def spares(daemon: Daemon) -> list[int]:
    """Process ids of all kernels that were started to try a state."""
    return [int(pid) for pid in re.findall(r"/proof/k\d+: kernel process (\d+)", daemon.log())]


def own(daemon: Daemon) -> int:
    """Of the kernel that was started last for calls."""
    found = re.findall(r"default/k\d+: kernel process (\d+)", daemon.log())
    return int(found[-1])


def tried(daemon: Daemon, cell: int) -> bool:
    return daemon.log_contains(f"the state after cell {cell} was tried")


def row_of(client: Client, cell: int) -> Mapping[str, object]:
    for row in client.call("history").data["cells"]:
        if row["cell"] == cell:
            assert isinstance(row, dict)
            return row
    raise AssertionError(f"no cell {cell}")


@pytest.fixture
def daemon(start: type_of_start) -> Daemon:
    return start(env=ALWAYS)


@pytest.fixture
def client(daemon: Daemon) -> Client:
    return daemon.client()


def test_a_state_that_loads_is_marked_and_the_kernel_goes(daemon: Daemon, client: Client) -> None:
    client.run("import numpy; x = [1]; a = numpy.arange(300_000)")
    wait_until(lambda: tried(daemon, 1), SOON_S)
    (spare,) = spares(daemon)
    wait_until(lambda: not is_alive(spare))
    assert is_alive(own(daemon))
    history = client.call("history")
    assert history.data["cells"][0]["verified"] is True
    assert history.data["cells"][0]["not_loading"] == []
    assert "saved, verified)" in history.text
    result = client.run("x.append(2); x, int(a.sum())")
    assert result.data["result"] == "([1, 2], 44999850000)"
    assert result.footer_line("lost if the kernel restarts: ") == ""
    assert row_of(client, 2).get("verified", False) is False


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os._exit(9)", "exited with status 9"),
        ("raise ValueError('no')", "ValueError"),
        ("import time; time.sleep(3600)", "within 20 s"),
    ],
)
def test_what_does_not_load_is_told_before_it_is_needed(
    daemon: Daemon, client: Client, what: str, why: str
) -> None:
    first = client.run(DEADLY % what)
    assert "bad" not in first.footer_line("lost if the kernel restarts: ")
    wait_until(lambda: tried(daemon, 1), SOON_S + 20)
    result = client.call("history")
    assert "verified; not loading: bad" in result.text
    result = client.run("good")
    line = result.footer_line("lost if the kernel restarts: ")
    assert line.startswith("bad (")
    assert why in line
    assert "found when it was tried, in the state after cell 1" in line
    assert (
        "found when it was tried" in result.data["state"]["namespace"]["lost_if_restarted"]["bad"]
    )
    assert "bad (" not in client.run("good").footer_line("lost if the kernel restarts: ")


def test_an_end_that_comes_together_with_what_led_to_it_is_understood(
    daemon: Daemon, client: Client
) -> None:
    client.run(DEADLY % "import os; os._exit(9)")
    wait_until(lambda: spares(daemon), SOON_S)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: not is_alive(spares(daemon)[-1]))
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    wait_until(lambda: tried(daemon, 1))


def test_what_killed_the_spare_kernel_is_left_out_by_the_next_one(
    daemon: Daemon, client: Client
) -> None:
    client.run(DEADLY % "import ctypes; ctypes.string_at(0)")
    wait_until(lambda: tried(daemon, 1), SOON_S)
    daemon.kill_kernel(own(daemon))
    result = client.run("good, also_good, str(bad)[:13]")
    assert result.data["result"] == "(1, 2, '<not restored')"
    assert "SIGSEGV" not in result.text
    assert len(re.findall(r"default/k\d+: kernel process", daemon.log())) == 2


SLOW = DEADLY % "import time; time.sleep(3600)"


def wait_for_spare(daemon: Daemon) -> int:
    wait_until(lambda: spares(daemon), SOON_S)
    return spares(daemon)[-1]


def test_a_call_ends_the_try_at_once(daemon: Daemon, client: Client) -> None:
    client.run(SLOW)
    spare = wait_for_spare(daemon)
    assert client.run("good").data["result"] == "1"
    wait_until(lambda: not is_alive(spare), 3)
    assert not tried(daemon, 1)
    assert row_of(client, 1)["verified"] is False


def test_a_spare_kernel_makes_room_for_one_that_is_needed(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_MAX_KERNELS": "2", **ALWAYS})
    client = daemon.client()
    client.run("x = 1")
    client.call("branch", name="b")
    client.run(SLOW)
    spare = wait_for_spare(daemon)
    assert client.run("x", branch="b").data["result"] == "1"
    wait_until(lambda: not is_alive(spare), 3)


@pytest.mark.parametrize(
    "env", [{"VIVARIUM_MAX_KERNELS": "1"}, {"VIVARIUM_VERIFY": "off"}], ids=["no room", "off"]
)
def test_where_there_is_no_room_or_no_wish_nothing_is_tried(
    start: type_of_start, env: dict[str, str]
) -> None:
    daemon = start(env=ALWAYS | env)
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    time.sleep(8)  # longer than the rest that a try waits for
    assert spares(daemon) == []
    assert row_of(client, 1)["verified"] is False


def test_a_state_is_tried_once(daemon: Daemon, client: Client) -> None:
    client.run("x = 1")
    wait_until(lambda: tried(daemon, 1), SOON_S)
    client.call("list_files")
    time.sleep(8)
    assert len(spares(daemon)) == 1


def test_a_mark_outlives_the_daemon(start: type_of_start) -> None:
    first = start(env=ALWAYS)
    first.client().run(DEADLY % "raise ValueError('no')")
    wait_until(lambda: tried(first, 1), SOON_S)
    client = first.client()
    wait_until(lambda: row_of(client, 1)["verified"] is True)
    first.kill()
    row = row_of(start(env=ALWAYS).client(), 1)
    assert (row["verified"], row["not_loading"]) == (True, ["bad"])


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_try_ends_with_its_daemon(daemon: Daemon, client: Client, end: str) -> None:
    client.run(SLOW)
    spare = wait_for_spare(daemon)
    if end == "stopped":
        daemon.stop()
    else:
        daemon.kill()
    wait_until(lambda: not is_alive(spare))
