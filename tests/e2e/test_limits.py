# SPDX-License-Identifier: MIT
"""Limits of one kernel: memory, processes, threads, open files, file systems in memory.
Whatever a cell does, it ends with a clear result, and only its own kernel suffers.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import any_python, run_daemon, type_of_start
from harness import PROGRAM, Client, Daemon, Result, resident_kb, wait_until

MB = 1 << 20
MEMORY = 512 * MB
USERS = {"VIVARIUM_USER_HEADER": "X-User-ID", "VIVARIUM_PYTHON": str(any_python())}
SMALL = {"VIVARIUM_KERNEL_MEMORY": str(MEMORY), "VIVARIUM_KERNEL_PIDS": "64"}


def groups_of(pid: int) -> list[Path]:
    """The control groups that a daemon has made, and those in them."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        if not kind.startswith("cgroup"):
            continue
        for path in Path("/proc/self/cgroup").read_text().splitlines():
            own = Path(fields.split()[4]) / path.rpartition(":")[2].lstrip("/")
            for base in (own / f"vivarium.{pid}", own.parent / f"vivarium.{pid}"):
                if base.is_dir():
                    found += [base, *base.glob("k*")]
    return sorted(set(found))


def require_groups(daemon: Daemon) -> None:
    if not daemon.log_contains("(control groups version"):
        pytest.skip("no control groups can be made here")


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Limits so small that they are soon reached, by control groups."""
    for daemon in run_daemon(tmp_path_factory.mktemp("limited"), env=USERS | SMALL):
        require_groups(daemon)
        yield daemon


def client_of(daemon: Daemon, user: str) -> Client:
    return daemon.client(X_User_ID=user)


EAT = "x = []\nwhile True: x.append(bytearray(1 << 20))"


def test_the_start_line_tells_the_quota(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_WORKSPACE_QUOTA": "5M"})
    wait_until(lambda: daemon.log_contains("files of its workspace 5 MB"))


def test_out_of_memory_is_told_with_use_and_limit(limited: Daemon) -> None:
    client, other = client_of(limited, "memory"), client_of(limited, "other")
    other.run("kept = 1")
    result = client.run(EAT)
    assert result.exit_code == 137
    assert (
        "was ended by the system: out of memory (512 MB used, limit 512 MB: "
        "VIVARIUM_KERNEL_MEMORY) while this cell ran" in result.text
    )
    assert client.run("'again'").data["result"] == "'again'"
    assert other.run("kept").data["result"] == "1"


def test_a_child_process_that_the_system_ended_is_told(limited: Daemon) -> None:
    client = client_of(limited, "child")
    client.run("big = bytearray(8 << 20)")
    result = client.run(f"""
import os
if not (pid := os.fork()):
    {EAT.replace(chr(10), chr(10) + "    ")}
os.waitpid(pid, 0)[1]
""")
    assert result.data["result"] == "9"
    assert "ended 1 process that the kernel had started: out of memory" in result.text
    assert client.run("len(big)").text == f"Out[3]: {8 << 20}"


def test_one_request_that_can_never_be_met_costs_no_kernel(limited: Daemon) -> None:
    client = client_of(limited, "request")
    client.run("kept = 1")
    assert client.run("bytearray(1 << 36)").data["error"]["name"] == "MemoryError"
    assert client.run("kept").data["result"] == "1"


BOMBS = {
    "forks": (
        "import os, signal, time\nwhile True:\n    if not os.fork(): time.sleep(100)",
        "at its limit of 64 processes and threads (VIVARIUM_KERNEL_PIDS)",
    ),
    "forks of forks": (
        "import os\nwhile True: os.fork()",
        "VIVARIUM_KERNEL_",  # the children's memory may run out first
    ),
    "threads": (
        "import threading\nstop = threading.Event()\n"
        "for _ in range(10_000): threading.Thread(target=stop.wait, daemon=True).start()",
        "at its limit of 64 processes and threads (VIVARIUM_KERNEL_PIDS)",
    ),
    "open files": ("files = [open('/dev/null') for _ in range(10_000)]", "Too many open files"),
    "sockets": (
        "import socket\nsockets = [socket.socketpair() for _ in range(10_000)]",
        "Too many open files",
    ),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_words_and_hurts_nobody_else(limited: Daemon, name: str) -> None:
    code, words = BOMBS[name]
    client, other = client_of(limited, "bomber"), client_of(limited, "other")
    other.run("calls = 0")
    client.run("import os", fresh=True)
    fds, resident = limited.fds(), resident_kb(limited.pid)
    results: list[Result] = []
    thread = threading.Thread(
        target=lambda: results.append(client.run(code, timeout_seconds=30)), daemon=True
    )
    thread.start()
    for _ in range(5):
        assert other.run("calls += 1").exit_code == 0
    thread.join(60)
    assert words in results[0].text, results[0].text
    assert results[0].exit_code not in (0, 124)
    assert client.run("1 + 1", fresh=True).data["result"] == "2"
    assert other.run("calls").data["result"] == "5"
    wait_until(lambda: limited.fds() <= fds + 2, 10, "the descriptors are back")
    assert resident_kb(limited.pid) < resident + 30_000


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
def test_a_file_system_in_memory_is_full_before_the_memory_is(limited: Daemon, place: str) -> None:
    if not limited.log_contains("tier N"):
        pytest.skip("only tier N has its own")
    client = client_of(limited, "filler")
    client.run("kept = 1")
    result = client.run(
        f"with open('{place}/big', 'wb') as f:\n    while True: f.write(bytes(1<<20))"
    )
    assert "No space left on device" in result.text
    assert client.run(f"import os; os.unlink('{place}/big'); kept").data["result"] == "1"


def test_the_groups_end_with_their_kernels_and_daemon(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_KERNEL_CPUS": "0.5"})
    require_groups(daemon)
    client = daemon.client()
    client.run("1")
    groups = groups_of(daemon.pid)
    kernels = [group for group in groups if group.name == "k1"]
    assert kernels
    quota = [group / "cpu.cfs_quota_us" for group in kernels] + [g / "cpu.max" for g in kernels]
    assert [path.read_text().split()[0] for path in quota if path.exists()] == ["50000"]
    for group in kernels:
        assert str(daemon.kernel_pid()) in (group / "cgroup.procs").read_text().split()
        assert str(daemon.pid) not in (group / "cgroup.procs").read_text().split()
    daemon.kill_kernel()
    wait_until(lambda: not any(g.name == "k1" for g in groups_of(daemon.pid)), 10)
    client.run("1")
    assert [g.name for g in groups_of(daemon.pid) if g.name != f"vivarium.{daemon.pid}"]
    daemon.stop()
    assert not groups_of(daemon.pid)


def test_the_groups_of_a_killed_daemon_go_with_its_kernels(start: type_of_start) -> None:
    daemon = start()
    require_groups(daemon)
    daemon.client().run("1")
    assert groups_of(daemon.pid)
    daemon.kill()
    wait_until(lambda: not groups_of(daemon.pid), 10)


def test_the_group_above_is_made_again_where_it_is_gone(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_KERNEL_MEMORY": str(MEMORY)})
    require_groups(daemon)
    bases = groups_of(daemon.pid)
    assert {base.name for base in bases} == {f"vivarium.{daemon.pid}"}  # no kernel yet
    empty = [base for base in bases if not (base / "daemon").exists()]
    weights = [file for base in empty for file in (base / "cpu.shares", base / "cpu.weight")]
    before = [file.read_text() for file in weights if file.exists()]
    for base in empty:
        base.rmdir()
    client = daemon.client()
    assert client.run("6 * 7").data["result"] == "42"
    assert [file.read_text() for file in weights if file.exists()] == before
    result = client.run(f"bytearray({2 * MEMORY})[-1]")
    assert result.is_error


def test_what_a_dead_daemon_left_is_removed_at_the_next_start(start: type_of_start) -> None:
    daemon = start()
    require_groups(daemon)
    base = groups_of(daemon.pid)[0].parent
    left = base / "vivarium.4194304"  # more than any process number
    (left / "k7").mkdir(parents=True)
    daemon.stop()
    start(name="next")
    assert not left.exists()


# ---- the quota of files ----

QUOTA = 40 * MB
FILL = """
for i in range(1000):
    with open(os.path.expanduser(f'{}{{i}}'), 'wb') as file: file.write(bytes(1 << 20))
    time.sleep(0.02)
"""


@pytest.fixture
def quota(start: type_of_start) -> Client:
    daemon = start(env={"VIVARIUM_WORKSPACE_QUOTA": str(QUOTA)})
    client = daemon.client()
    client.daemon = daemon
    client.run("import glob, os, subprocess, time")
    return client


OVER = "that they may (VIVARIUM_WORKSPACE_QUOTA). Delete files; the largest: "


def test_a_cell_that_fills_the_disk_is_interrupted_and_the_next_can_clean_up(
    quota: Client,
) -> None:
    filled = quota.run(FILL.format("f"), timeout_seconds=60)
    assert filled.exit_code == 130
    assert "wrote files over the quota and was interrupted. The kernel lives" in filled.text
    assert OVER in filled.text
    after = quota.run("i > 0")
    assert after.data["result"] == "True"
    assert OVER in after.text
    cleaned = quota.run("for f in glob.glob('f*'): os.unlink(f)")
    assert "QUOTA" not in cleaned.text
    assert "QUOTA" not in quota.run("1").text


def test_over_the_quota_only_a_tenth_more_may_be_written(quota: Client) -> None:
    quota.run(FILL.format("f"), timeout_seconds=60)
    little = quota.run("open('more', 'wb').write(bytes(2 << 20)); time.sleep(2.5)")
    assert little.exit_code == 0
    assert OVER in little.text
    assert quota.run(FILL.format("~/g")).exit_code == 130


def test_one_file_ends_at_the_quota(quota: Client) -> None:
    result = quota.run("open('big', 'wb').write(bytes(50 << 20))")
    assert "File too large" in result.text
    assert re.search(r"take (a little more than|\S+M of) the 40M that they may", result.text)
    assert "the largest: big (40M).\n" in result.text, "and nothing that is not the user's"


def test_what_is_left_running_is_stopped_too(quota: Client) -> None:
    loop = "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > z$i; sleep 0.05; done"
    quota.run(f"subprocess.Popen(['sh', '-c', {loop!r}]); None")
    wait_until(lambda: quota.daemon.health()["kernels"] == 0, 60, "the kernel is stopped")
    result = quota.run("1")
    assert "had left running went on writing files over the quota" in result.text


def test_what_cannot_be_measured_counts_as_too_much(quota: Client) -> None:
    deep = quota.run(
        "top = os.getcwd()\n"
        "for _ in range(300): os.mkdir('d'); os.chdir('d')\n"
        "open('x', 'w').close(); os.chdir(top)"
    )
    assert "it has too many files, or too deep directories, to be measured" in deep.text
    assert "QUOTA" not in quota.run("import shutil; shutil.rmtree('d')").text


def test_links_and_sparse_files_count_as_what_they_take(quota: Client) -> None:
    result = quota.run(
        "open('a', 'wb').write(bytes(20 << 20))\n"
        "for i in range(10): os.link('a', f'a{i}')\n"
        "os.symlink('/', 'root')\n"
        "os.truncate('a', 20 << 20); open('s', 'wb').truncate(30 << 20)"
    )
    assert result.exit_code == 0
    assert "QUOTA" not in result.text


# ---- without control groups ----


def without_groups(tmp_path: Path) -> Path:
    """The program where no control group can be seen."""
    unshare = shutil.which("unshare")
    wrapper = tmp_path / "without-groups"
    wrapper.write_text(
        f'#!/bin/sh\nexec {unshare} -m sh -c \'umount -R -l /sys/fs/cgroup; exec "$0" "$@"\' '
        f'{PROGRAM} "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper


def test_without_groups_the_limits_of_processes_hold(start: type_of_start, tmp_path: Path) -> None:
    daemon = start(program=without_groups(tmp_path), env=SMALL)
    if not daemon.log_contains("tier N"):
        pytest.skip("nothing can be unmounted here")
    assert daemon.log_contains("not kept here: memory 512 MB holds for each process")
    assert daemon.log_contains("no equal shares of the processors (the daemon sees no control")
    client = daemon.client()
    client.run("kept = 1")
    assert client.run(EAT).data["error"]["name"] == "MemoryError"
    assert client.run("del x; kept").data["result"] == "1"
    forks = client.run("import os, time\nwhile True:\n    if not os.fork(): time.sleep(100)")
    assert forks.data["error"]["name"] == "BlockingIOError"
    assert client.run("kept").data["result"] == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_an_ordinary_user_has_limits_of_processes(tmp_path: Path) -> None:
    """The processes of kernels are counted apart from those that the user has besides."""
    with tempfile.TemporaryDirectory(prefix="vl") as made:
        home, runtime = Path(made) / "d", Path(made) / "r"
        Path(made).chmod(0o711)
        for directory in (home, runtime):
            directory.mkdir()
            os.chown(directory, 1500, 1500)
        env = SMALL | {"VIVARIUM_PYTHON": str(any_python()), "VIVARIUM_WALLS": "require:N"}
        for daemon in run_daemon(home, env=env, runtime=runtime, user=1500):
            if not daemon.log_contains("not kept here: memory"):
                pytest.skip("this user may make control groups")
            client = daemon.client()
            client.run("kept = 1")
            assert client.run(EAT).data["error"]["name"] == "MemoryError"
            client.run("del x")
            code = "import os, time\nwhile True:\n    if not os.fork(): time.sleep(100)"
            forks = client.run(code)
            assert "BlockingIOError" in forks.text, forks.text
            assert client.run("kept").data["result"] == "1"
            assert daemon.client().run("kept").data["result"] == "1"


def test_without_walls_and_groups_what_is_missing_is_said(
    start: type_of_start, tmp_path: Path
) -> None:
    daemon = start(program=without_groups(tmp_path), env={"VIVARIUM_WALLS": "off"})
    assert daemon.log_contains("no limit of processes")
