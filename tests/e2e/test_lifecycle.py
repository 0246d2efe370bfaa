"""How the daemon ends, what it leaves, and what it does when its helpers, its disk or its
peers fail.  Also the one-way rule of the rooms.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import mounted_tmpfs, type_of_start
from harness import (
    REPO,
    Client,
    Daemon,
    Result,
    exchange,
    is_alive,
    parent_of,
    read_proc,
    resident_kb,
    wait_until,
)

GRANDCHILD = """
import os, subprocess
kid = subprocess.Popen(['sleep', '300'])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '301'])
    os._exit(0)
os.wait();
"""


def sleepers(daemon: Daemon) -> list[int]:
    return [pid for pid in daemon.family() if read_proc(pid, "cmdline").startswith(b"sleep\0")]


def begin(client: Client, daemon: Daemon, code: str, pool: ThreadPoolExecutor) -> Future[Result]:
    """Starts a cell and returns when its code runs."""
    mark = daemon.work / "begun"
    mark.unlink(missing_ok=True)
    future = pool.submit(client.run, f"open('begun', 'w').close()\n{code}")
    wait_until(mark.exists)
    return future


# ---- SIGTERM ----


def test_sigterm_lets_a_cell_finish(daemon: Daemon, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        future = begin(client, daemon, "import time; time.sleep(1); print('finished')", pool)
        daemon.process.terminate()
        result = future.result()
    assert result.data["stdout"] == "finished\n"
    assert not result.is_error
    assert daemon.process.wait(5) == 0
    assert daemon.runtime_dirs() == []


def test_sigterm_interrupts_what_does_not_finish(daemon: Daemon, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        future = begin(client, daemon, "print('so far')\nimport time; time.sleep(60)", pool)
        daemon.process.terminate()
        result = future.result()
    assert result.is_error
    assert result.data["stdout"].startswith("so far\n")
    assert daemon.process.wait(10) == 0
    assert daemon.runtime_dirs() == []


def test_sigterm_answers_what_waits_and_takes_nothing_new(daemon: Daemon, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        running = begin(client, daemon, "import time; time.sleep(1.5)", pool)
        waiting = pool.submit(client.run, "open('never', 'w')")
        wait_until(lambda: daemon.health()["calls"] == 2)
        daemon.process.terminate()
        assert "stopping" in waiting.result().text
        with pytest.raises((OSError, http.client.HTTPException)):
            exchange(daemon.port, "GET", "/health", timeout_s=2)
        assert not running.result().is_error
    assert daemon.process.wait(10) == 0
    assert not (daemon.work / "never").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_at_once(daemon: Daemon, client: Client, number: int) -> None:
    with ThreadPoolExecutor() as pool:
        future = begin(client, daemon, "import time; time.sleep(60)", pool)
        daemon.process.send_signal(number)
        wait_until(lambda: daemon.log_contains("once more stops at once"))
        daemon.process.send_signal(number)
        assert daemon.process.wait(2) == 128 + number
        with pytest.raises((OSError, http.client.HTTPException)):
            future.result()
    daemon.check_no_family(2)


def test_an_idle_daemon_stops_at_once_on_sigint(daemon: Daemon) -> None:
    daemon.process.send_signal(signal.SIGINT)
    assert daemon.process.wait(2) == 0
    assert daemon.runtime_dirs() == []


# ---- SIGKILL ----


def test_nothing_outlives_a_killed_daemon_and_the_next_one_cleans_up(start: type_of_start) -> None:
    first = start()
    first.client().run(GRANDCHILD)
    wait_until(lambda: len(sleepers(first)) == 2)
    kernel = first.kernel_pid()
    assert {first.supervisor_pid(), kernel, *sleepers(first)} <= set(first.family())
    first.kill()
    first.check_no_family(2)
    (stale,) = first.runtime_dirs()
    second = start("second", runtime=first.runtime)
    (current,) = second.runtime_dirs()
    assert current != stale
    assert second.client().run("1 + 1").data["result"] == "2"


def test_two_daemons_do_not_clean_each_other_up(start: type_of_start) -> None:
    first = start()
    first.client().run("mine = 1")
    second = start("second", runtime=first.runtime)
    assert len(first.runtime_dirs()) == 2
    second.client().run("1")
    assert first.client().run("mine").data["result"] == "1"
    first_dirs = [path for path in first.runtime_dirs() if any(path.iterdir())]
    assert len(first_dirs) == 2
    # Both share the directory, so it is the second one that finds it empty at its end.
    second.process.terminate()
    assert second.process.wait(10) == 0
    assert len(first.runtime_dirs()) == 1


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_killed_supervisor_is_told_and_leaves_nothing(
    daemon: Daemon, client: Client, busy: bool
) -> None:
    client.run_saved(daemon, "kept = 1\n" + GRANDCHILD)
    wait_until(lambda: len(sleepers(daemon)) == 2)
    supervisor, kernel = daemon.supervisor_pid(), daemon.kernel_pid()
    assert parent_of(supervisor) == daemon.pid
    if busy:
        with ThreadPoolExecutor() as pool:
            future = begin(client, daemon, "import time; time.sleep(60)", pool)
            os.kill(supervisor, signal.SIGKILL)
            result = future.result()
        assert result.data["end"] == "kernel_died"
    else:
        os.kill(supervisor, signal.SIGKILL)
        wait_until(lambda: daemon.log_contains("supervisor was killed"), 2)
        result = client.run("1")
        assert result.data["end"] == "ok"
    assert "supervisor was killed" in result.text
    wait_until(lambda: not is_alive(kernel) and not sleepers(daemon), 3)
    assert client.run("kept + 1").data["result"] == "2"
    wait_until(lambda: len(daemon.children()) == 1, 3, "no zombie is left")
    (runtime,) = daemon.runtime_dirs()
    wait_until(lambda: len(list(runtime.glob("k*"))) == 1, 3, "only the new kernel's directory")


def test_a_stopped_kernel_is_killed_at_its_timeout(daemon: Daemon, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        future = pool.submit(
            client.run,
            "open('begun', 'w').close()\nimport time; time.sleep(60)",
            timeout_seconds=2,
        )
        wait_until((daemon.work / "begun").exists)
        os.kill(daemon.kernel_pid(), signal.SIGSTOP)
        result = future.result()
    assert result.exit_code == 124
    assert result.data["end"] == "killed"
    assert client.run("1 + 1").data["result"] == "2"


# ---- many ----


def test_a_hundred_calls_at_once_from_twenty_connections(daemon: Daemon, client: Client) -> None:
    client.run("seen = []")
    errors: list[object] = []

    def talk(worker: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=50)
        try:
            for turn in range(5):
                code = f"seen.append({worker * 5 + turn}); {worker * 5 + turn}"
                call = client.message(
                    "tools/call", {"name": "run_python", "arguments": {"code": code}}
                )
                headers = client.headers(Accept="application/json")
                connection.request("POST", "/mcp", json.dumps(call), headers)
                answer = json.loads(connection.getresponse().read())
                result = answer["result"]["structuredContent"]["result"]
                if answer["id"] != call["id"] or result != str(worker * 5 + turn):
                    errors.append(answer)
        finally:
            connection.close()

    threads = [threading.Thread(target=talk, args=(worker,)) for worker in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert client.run("sorted(seen) == list(range(100))").data["result"] == "True"


def test_thirty_kernels_later_the_daemon_holds_no_more_than_before(
    daemon: Daemon, client: Client
) -> None:
    figure = "open('p.png', 'wb').write(b'broken');"
    for _ in range(3):  # what is allocated once
        client.run(figure, fresh=True)
    wait_until(lambda: len(daemon.children()) == 1)
    fds, memory = daemon.fds(), resident_kb(daemon.pid)
    for turn in range(30):
        ways = ["import os; os._exit(1)", "import os; os.kill(os.getpid(), 9)", "exit()", figure]
        client.run(ways[turn % 4], fresh=turn % 4 == 3)
    client.run("1")
    wait_until(lambda: len(daemon.children()) == 1, 3, "one supervisor")
    wait_until(lambda: daemon.fds() <= fds, 3, f"{daemon.fds()} descriptors, {fds} before")
    assert resident_kb(daemon.pid) - memory < 30_000
    assert len(list(daemon.runtime_dirs()[0].glob("k*"))) == 1


def test_connections_that_come_and_go_leave_nothing(daemon: Daemon, client: Client) -> None:
    client.request("ping")
    fds = daemon.fds()
    for _ in range(200):
        client.request("ping")
    streams = []
    for _ in range(20):
        stream = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=10)
        stream.request("GET", "/mcp", headers=client.headers(Accept="text/event-stream"))
        response = stream.getresponse()
        assert response.status == 200
        streams.append(response)  # it has the connection: nothing else can come on it
    assert daemon.fds() >= fds + 19  # the first ping's connection may have been counted
    for response in streams:
        response.close()
    wait_until(lambda: daemon.fds() <= fds + 1, 5)


# ---- a full disk ----


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    with mounted_tmpfs(disk, "1m"):
        yield disk


def test_calls_answer_when_the_disk_is_full(start: type_of_start, small_disk: Path) -> None:
    daemon = start(env={"VIVARIUM_WORKDIR": str(small_disk)})
    client = daemon.client()
    full = client.run("with open('fill', 'wb') as f: f.write(b'x' * 2_000_000)")
    assert full.data["error"]["name"] == "OSError"
    assert "No space left" in full.text
    assert client.run("1 + 1").data["result"] == "2"
    assert "fill" in client.call("list_files").text
    picture = client.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert len(picture.images) == 1
    assert client.run("1 + 1", fresh=True).data["result"] == "2"


def test_calls_answer_when_the_state_disk_is_full(start: type_of_start, small_disk: Path) -> None:
    daemon = start(env={"VIVARIUM_STATE_DIR": str(small_disk / "state")})
    client = daemon.client()
    fill = os.open(small_disk / "fill", os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while os.write(fill, b"x" * 512):
            pass
    os.close(fill)
    assert os.statvfs(small_disk).f_bfree == 0
    for i in range(5):
        assert client.run(f"{i} + 1").data["result"] == str(i + 1)


def test_a_work_directory_that_goes_away_is_survived(daemon: Daemon, client: Client) -> None:
    client.run("1")
    daemon.work.rename(daemon.home / "moved")
    assert client.request("ping") == {}
    client.call("list_files")
    assert client.run("1 + 1").data["result"] == "2"
    result = client.run("open('new', 'w').close(); 1 + 1", fresh=True)
    assert result.data["result"] == "2"
    assert "directory was removed or replaced" in result.text
    assert result.footer_line("wrote:").startswith("new")
    assert "new" in client.call("list_files").text
    assert os.listdir(daemon.work) == ["new"]


def test_a_directory_removed_before_its_kernel_begins_is_made_anew(
    daemon: Daemon, client: Client
) -> None:
    client.call("list_files")
    shutil.rmtree(daemon.work)
    assert not client.call("write_file", path="a.txt", content="a").is_error
    result = client.run("print(open('a.txt').read())")
    assert result.data["stdout"] == "a\n"
    assert result.text.count("directory was removed or replaced") == 1


# ---- rooms ----

BELOW = {
    "wire": {"wire"},
    "kernelmgr": {"kernelmgr", "wire"},
    "mcp": {"mcp", "kernelmgr", "wire"},
    "api": {"api", "kernelmgr", "wire"},
}


def test_includes_go_down_only() -> None:
    upward = []
    for room, allowed in BELOW.items():
        sources = sorted((REPO / room).glob("*.[ch]"))
        assert sources
        for source in sources:
            if source.name in {"main.c", "main_house.c", "main_house.h"}:
                continue
            for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.read_text(), re.M):
                if name.partition("/")[0] not in allowed and not name.endswith(".inc"):
                    upward.append(f"{room}/{source.name}: {name}")
    assert upward == []


def test_each_header_is_included_from_the_root() -> None:
    for room in BELOW:
        for source in (REPO / room).glob("*.c"):
            for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source.read_text(), re.M):
                assert (REPO / name).exists() or name.endswith(".inc"), f"{source.name}: {name}"


def test_the_daemon_reaps_what_it_starts(daemon: Daemon, client: Client) -> None:
    for i in range(5):
        client.run(f"open('p{i}.png', 'wb').write(b'broken');")
    wait_until(lambda: len(daemon.children()) == 1, 3, "the supervisor alone")


# ---- what a call is told of the one before ----


@pytest.mark.parametrize(
    "ending", ["import os; os._exit(3)", "import os; os.kill(os.getpid(), 9)", "stuck"]
)
def test_the_call_after_a_death_says_once_that_its_kernel_is_new(
    daemon: Daemon, client: Client, ending: str
) -> None:
    client.run("''")
    client.run(" ")  # is counted, too
    if ending == "stuck":
        code = "import signal; signal.signal(2, signal.SIG_IGN)\nwhile True: pass"
        assert client.run(code, timeout_seconds=1).exit_code == 124
    else:
        assert client.run(ending).is_error
    told = "This call runs in a new kernel, since the earlier one ended in cell 3.\n"
    result = client.run("1 / 0")
    assert result.text.startswith(f"{told}Error: ZeroDivisionError")
    assert result.data["notice"] == told
    assert client.run("1").data["notice"] == ""


def test_the_log_names_the_cells_as_the_user_sees_them(daemon: Daemon, client: Client) -> None:
    for code in ("1", "2", "import os; os._exit(1)", "3", " ", "4"):
        client.run(code)
    client.run("5", fresh=True)
    numbers = re.findall(r"default: cell (\d+):", daemon.log())
    assert numbers == ["1", "2", "3", "4", "5", "6", "7"]


def test_the_restart_comes_before_the_error(start: type_of_start) -> None:
    first = start()
    first.client().run_saved(first, "x = 1")
    first.stop()
    result = start().client().run("x / 0")
    told = r"Vivarium was restarted: .*\n1 variable restored, .*\nError: ZeroDivisionError: "
    assert re.match(told, result.text)


def test_how_a_kernel_ended_is_known_though_its_supervisor_is_gone_too(live: Daemon) -> None:
    """The daemon looks again only when both are dead."""
    client = live.client()
    client.run("1")
    kernel, supervisor = live.kernel_pid(), live.supervisor_pid()
    with ThreadPoolExecutor() as pool:
        call = pool.submit(client.run, "open('begun', 'w').close(); import time; time.sleep(60)")
        wait_until((live.work / "begun").exists, 20)
        os.kill(live.pid, signal.SIGSTOP)
        try:
            os.kill(kernel, signal.SIGABRT)
            wait_until(lambda: not is_alive(supervisor), 20)
        finally:
            os.kill(live.pid, signal.SIGCONT)
        assert call.result(30).exit_code == 128 + signal.SIGABRT
