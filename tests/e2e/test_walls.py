# SPDX-License-Identifier: MIT
"""The walls around kernels: which tier a machine gives, and that all works behind each.

What they keep out is tests/attack's matter.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PYTHONS, any_python, require_python
from harness import Daemon, bare_env, children_of, is_alive, run_program, wait_until

TIERS = ("N", "U", "L", "off")
USERS = {"VIVARIUM_USER_HEADER": "X-User-ID", "VIVARIUM_PROXY_SECRET": "s" * 16}
OTHER = 1500  # a user id without rights
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
type_of_build = Callable[..., Daemon]


@pytest.fixture
def build() -> Iterator[type_of_build]:
    """build(tier, env=..., program=...): daemons in directories that all users may enter."""
    home = Path(tempfile.mkdtemp(prefix="vw"))
    home.chmod(0o711)
    daemons: list[Daemon] = []

    def begin(
        tier: str,
        *,
        env: dict[str, str] | None = None,
        user: int = 0,
        before: Callable[[], None] | None = None,
    ) -> Daemon:
        walls = tier if len(tier) > 1 else f"require:{tier}"
        settings = {"VIVARIUM_PYTHON": str(any_python()), "VIVARIUM_WALLS": walls, **(env or {})}
        place = home / f"d{len(daemons)}"
        runtime = home / f"r{len(daemons)}"
        for directory in (place, runtime):
            directory.mkdir()
            directory.chmod(0o711)
            os.chown(directory, user or -1, user or -1)
        daemons.append(
            Daemon(place, env=settings, runtime=runtime, user=user or None, before=before)
        )
        return daemons[-1]

    try:
        yield begin
        for daemon in daemons:
            daemon.stop()
    finally:
        for daemon in daemons:
            daemon.clean_up()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "U" and os.geteuid() != 0:
        pytest.skip("tier U needs root")
    return name


@pytest.mark.parametrize("python", PYTHONS)
def test_a_session_works_behind_each(build: type_of_build, tier: str, python: str) -> None:
    daemon = build(tier, env={"VIVARIUM_PYTHON": str(require_python(python))})
    client = daemon.client()
    assert client.run("x = [1]; x").text == "Out[1]: [1]"
    assert client.run("!echo hi").data["stdout"] == "hi\n"
    (wrote,) = client.run("open('a.txt', 'w').write('text')").data["files"]
    assert wrote["path"] == "a.txt"
    (daemon.work / "b.txt").write_text("from outside")
    (daemon.work / "b.txt").chmod(0o644)
    assert client.run("print(open('b.txt').read())").data["stdout"] == "from outside\n"
    assert "text" in client.call("read_text_file", path="a.txt").text
    figure = client.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert len(figure.images) == 1
    result = client.run("import time; time.sleep(30)", timeout_seconds=1)
    assert result.data["exit_code"] == 124
    assert client.run("!sleep 30", timeout_seconds=1).data["exit_code"] == 124
    assert client.run("x.append(2)").data["exit_code"] == 0
    wait_until(lambda: daemon.saved_upto() >= 7, 20, "it is saved")
    daemon.kill_kernel()
    assert client.run("print(x)").data["stdout"] == "[1, 2]\n"
    assert client.call("undo", cells=2).text
    assert client.run("print(x)").data["stdout"] == "[1]\n"


def test_tools_and_cells_share_files(build: type_of_build, tier: str) -> None:
    daemon = build(tier)
    client = daemon.client()
    for name in ("a.txt", "in/b.txt"):  # before there is a kernel
        assert client.call("write_file", path=name, content="tool").data["created"] is True
    append = "for name in ('a.txt', 'in/b.txt'): open(name, 'a').write(' cell')"
    more = "\nopen('in/c.txt', 'w').write('cell'); import os; os.makedirs('own/deep')"
    assert client.run(append + more).exit_code == 0
    for name in ("a.txt", "in/b.txt"):
        assert client.call("read_text_file", path=name).text == "tool cell"
        assert client.call("write_file", path=name, content="tool").data["created"] is False
    assert not client.call("write_file", path="in/c.txt", content="tool").is_error
    assert not client.call("write_file", path="own/deep/d.txt", content="tool").is_error
    assert client.run("print(open('in/c.txt').read())").data["stdout"] == "tool\n"
    assert client.run(append + "\nimport shutil; shutil.rmtree('in')").exit_code == 0
    listed = client.request("resources/list")["resources"]
    assert [row["name"] for row in listed] == ["a.txt", "own/deep/d.txt"]


def test_file_tools_take_the_path_that_code_sees(build: type_of_build, tier: str) -> None:
    client = build(tier).client()
    seen = client.run("import os; os.path.abspath('d/y.txt')").data["result"].strip("'")
    assert client.call("write_file", path=seen, content="y").data["path"] == "d/y.txt"
    assert client.run("open('d/y.txt').read()").data["result"] == "'y'"
    read = client.call("read_text_file", path=seen)
    assert (read.data["text"], read.data["path"]) == ("y", "d/y.txt")
    for path in (seen.replace("/d/", "/../d/"), seen.replace("/d/y", "-d/y"), "/etc/passwd"):
        assert client.call("read_text_file", path=path).is_error


def test_a_branch_has_a_copy_of_the_files(build: type_of_build, tier: str) -> None:
    daemon = build(tier, env={"VIVARIUM_TOOLS": "run_python,branch", **USERS})
    client = daemon.client(X_User_ID="ann", X_Vivarium_Proxy_Secret="s" * 16)
    made = "import os; os.mkdir('sub'); open('sub/a.txt', 'w').write('one')"
    assert client.run(made).exit_code == 0
    assert "is there" in client.call("branch", name="b").text
    client.run("open('sub/a.txt', 'w').write('two')")
    assert client.run("open('sub/a.txt').read()", branch="b").data["result"] == "'one'"


def drop_overrides() -> None:
    """Root's right to pass over the modes of files: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):
        assert libc.prctl(24, capability, 0, 0, 0) == 0  # from the bounding set


@as_root
def test_what_only_the_kernel_may_read_is_refused_in_words(build: type_of_build) -> None:
    daemon = build("U", before=drop_overrides)
    client = daemon.client()
    client.run("import os; open('own', 'w').write('x'); os.chmod('own', 0o600)")
    client.run("os.mkdir('dir'); os.chmod('dir', 0o700)")
    read = client.call("read_text_file", path="own")
    assert "may not be read" in read.text
    assert "may not be written" in client.call("write_file", path="dir/x", content="x").text
    message = client.message("resources/read", {"uri": "workspace:///own"})
    assert "may not be read" in client.post(message).json()["error"]["message"]
    assert client.call("list_files").data["count"] == 1
    daemon.kill()  # it may not remove all of its kernel's runtime directory either


def test_nothing_outlives_a_kernel(build: type_of_build, tier: str) -> None:
    daemon = build(tier)
    client = daemon.client()
    code = "import subprocess\nfor _ in range(5): subprocess.Popen(['setsid', 'sleep', '1000'])"
    assert client.run(code).data["exit_code"] == 0
    daemon.kill_kernel()
    wait_until(lambda: not daemon.children(), 5, "supervisor gone")
    assert client.run("1").data["result"] == "1"
    assert client.run(code).data["exit_code"] == 0
    supervisor = daemon.supervisor_pid()
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not is_alive(supervisor), 5)
    wait_until(lambda: not daemon.children(), 5, "its kernel gone")
    client.run(code)
    daemon.kill()
    daemon.check_no_family()


def test_a_kernel_sees_its_workspace_at_one_path(build: type_of_build) -> None:
    client = build("N").client()
    text = client.run("import os; print(os.getcwd(), os.environ['HOME'])").data["stdout"]
    assert text == "/workspace /home/kernel\n"
    seen = client.run("print(sorted(p for p in os.listdir('/proc') if p.isdigit()))")
    assert seen.data["stdout"] == "['1', '2']\n"


def test_its_home_outlives_it(build: type_of_build, tier: str) -> None:
    daemon = build(tier)
    client = daemon.client()
    code = "from pathlib import Path; note = Path.home() / '.note'"
    client.run(f"{code}; note.write_text('kept')")
    daemon.kill_kernel()
    assert client.run(f"{code}; print(note.read_text())").data["stdout"] == "kept\n"


def test_pip_installs_into_the_home(build: type_of_build, tier: str) -> None:
    if tier == "off":
        pytest.skip("there it would change the interpreter that runs the tests")
    daemon = build(tier)
    with zipfile.ZipFile(daemon.work / "own_thing-1.0-py3-none-any.whl", "w") as wheel:
        info = "own_thing-1.0.dist-info"
        wheel.writestr("own_thing.py", "answer = 42\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: own-thing\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    (daemon.work / "own_thing-1.0-py3-none-any.whl").chmod(0o644)
    client = daemon.client()
    told = client.run("%pip install -q --no-index ./own_thing-1.0-py3-none-any.whl")
    assert told.data["exit_code"] == 0, told.text
    code = "import own_thing; print(own_thing.answer)"
    assert client.run(code).data["stdout"] == "42\n"
    daemon.kill_kernel()
    assert client.run(code).data["stdout"] == "42\n"
    assert client.run(f"!python -c '{code}'").data["stdout"] == "42\n"


def test_a_directory_of_the_machine_is_seen_only_if_asked_for(
    build: type_of_build, tmp_path: Path
) -> None:
    shared = Path(tempfile.mkdtemp(prefix="vshared"))
    shared.chmod(0o755)
    (shared / "data.csv").write_text("a,b\n")
    try:
        code = f"print(open('{shared}/data.csv').read())"
        assert build("N").client().run(code).data["error"]["name"] == "FileNotFoundError"
        client = build("N", env={"VIVARIUM_READ_DIRS": str(shared)}).client()
        assert client.run(code).data["stdout"] == "a,b\n\n"
        refused = client.run(f"open('{shared}/data.csv', 'w')").data["error"]["name"]
        assert refused in ("OSError", "PermissionError")
    finally:
        shutil.rmtree(shared)


@pytest.mark.parametrize(
    "shown", ["/", "{home}", "{home}/work", "{home}/state/homes", "rel", "/nope"]
)
def test_what_walls_keep_apart_is_not_shown(tmp_path: Path, shown: str) -> None:
    (tmp_path / "state/homes").mkdir(parents=True)
    env = bare_env(
        tmp_path,
        VIVARIUM_PYTHON=str(any_python()),
        VIVARIUM_READ_DIRS=f"/usr/share:{shown.format(home=tmp_path)}",
    )
    ended = run_program("--check", env=env, cwd=tmp_path)
    assert ended.returncode == 1
    assert "no  walls: VIVARIUM_READ_DIRS" in ended.stdout


@as_root
def test_kernels_of_root_are_not_root_and_files_stay_its_own(build: type_of_build) -> None:
    daemon = build("N")
    client = daemon.client()
    client.run("open('f', 'w').write('x'); import os; os.mkdir('d')")
    assert int(client.run("print(os.getuid())").data["stdout"]) > 1000
    assert [(daemon.work / name).stat().st_uid for name in ("f", "d")] == [0, 0]
    uid = Path(f"/proc/{daemon.kernel_pid()}").stat().st_uid
    assert uid > 1000


@as_root
def test_a_daemon_without_rights_gives_the_same_walls(build: type_of_build) -> None:
    daemon = build("N", user=OTHER)
    client = daemon.client()
    assert client.run("import os; print(os.getcwd())").data["stdout"] == "/workspace\n"
    client.run("open('f', 'w').write('x')")
    assert (daemon.work / "f").stat().st_uid == OTHER


LIBC = ctypes.CDLL(None, use_errno=True)
LOAD, JUMP, RETURN = 0x20, 0x15, 0x06  # of a filter's program
ALLOW, NOTIFY, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050001
x86_64 = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="numbers of calls are those of x86_64"
)


def enter_filter(program: list[tuple[int, int, int, int]], flags: int = 0) -> int:
    """For this process and all below it.  With flags 8: returns the listener."""
    text = b"".join(struct.pack("<HBBI", *line) for line in program)
    code = ctypes.create_string_buffer(text, len(text))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    assert LIBC.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
    result: int = LIBC.syscall(317, 1, flags, header)  # seccomp
    assert result >= 0
    return result


def forbid_namespaces() -> None:
    """Makes clone and unshare refuse new namespaces, as some machines do."""
    new_namespaces = 0x7E020080
    clone, unshare = 56, 272
    enter_filter(
        [
            (LOAD, 0, 0, 0),
            (JUMP, 1, 0, clone),
            (JUMP, 0, 3, unshare),
            (LOAD, 0, 0, 16),
            (0x45, 0, 1, new_namespaces),  # any of these bits
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        ]
    )


@x86_64
def test_a_lower_tier_is_said_everywhere(build: type_of_build) -> None:
    user = OTHER if os.geteuid() == 0 else 0
    daemon = build("auto", user=user, before=forbid_namespaces)
    assert "walls: tier L" in daemon.log()
    assert daemon.health()["walls"]["tier"] == "L"
    result = daemon.client().run("1")
    assert "walls: tier L, because of tier N: make namespaces: " in result.footer


def test_a_tier_that_cannot_be_had_is_refused(tmp_path: Path) -> None:
    unspeakable = tmp_path / "with\na line end"
    unspeakable.mkdir()
    env = bare_env(
        tmp_path,
        VIVARIUM_PYTHON=str(any_python()),
        VIVARIUM_WALLS="require:N",
        VIVARIUM_READ_DIRS=str(unspeakable),
    )
    ended = run_program("--check", env=env, cwd=tmp_path)
    assert ended.returncode == 1
    assert "no  walls: VIVARIUM_WALLS cannot be kept here: tier N: " in ended.stdout


@as_root
def test_a_closed_directory_that_hinders_is_named() -> None:
    with tempfile.TemporaryDirectory(prefix="vw") as closed:  # 0700
        home = Path(closed) / "home"
        home.mkdir(mode=0o755)
        env = bare_env(home, VIVARIUM_PYTHON=str(any_python()), VIVARIUM_WALLS="require:U")
        ended = run_program("--check", env=env, cwd=home)
        words = f"kept here: tier U: other users may not pass {closed}: chmod o+x {closed}"
        assert words in ended.stdout
        Path(closed).chmod(0o711)
        ended = run_program("--check", env=env, cwd=home)
        assert ended.returncode == 0, ended.stdout


def test_check_says_which(build: type_of_build, tmp_path: Path, tier: str) -> None:
    env = bare_env(
        tmp_path,
        VIVARIUM_PYTHON=str(any_python()),
        VIVARIUM_WALLS="off" if tier == "off" else "auto",
    )
    ended = run_program("--check", env=env, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert f"ok  walls: tier {'0' if tier == 'off' else 'N'}" in ended.stdout
    assert not list(tmp_path.glob("state/try"))


# ---- guarded connections ----

# A listener that nobody attends to: the second connection to it waits.
FULL = (
    "import os, socket, threading\n"
    "full = socket.socket(socket.AF_UNIX); full.bind('full'); full.listen(0)\n"
    "first = socket.socket(socket.AF_UNIX); first.connect('full'); os.getpid()"
)
WAITS = "socket.socket(socket.AF_UNIX).connect('full')"


def needs_the_guard(tier: str) -> None:
    if tier in ("N", "off"):
        pytest.skip("Landlock or nothing keeps its sockets")
    if LIBC.syscall(444, None, 0, 1) >= 9:
        pytest.skip("this machine's Landlock knows the paths of sockets")


def under_way(daemon: Daemon) -> list[int]:
    """What connects for the kernel."""
    return [pid for pid in children_of(daemon.supervisor_pid()) if pid != daemon.kernel_pid()]


def test_a_cell_that_waits_for_a_connection_is_interrupted(build: type_of_build, tier: str) -> None:
    client = build(tier).client()
    kernel = client.run(FULL).data["result"]
    assert client.run(WAITS, timeout_seconds=1).data["exit_code"] == 124
    assert client.run("first.close(); full.accept(); os.getpid()").data["result"] == kernel
    assert client.run(WAITS).exit_code == 0


def test_connections_under_way_end_with_their_kernel(build: type_of_build, tier: str) -> None:
    needs_the_guard(tier)
    daemon = build(tier)
    client = daemon.client()
    client.run(FULL)
    waits = f"lambda: {WAITS}"
    client.run(f"for _ in range(9): threading.Thread(target={waits}, daemon=True).start()")
    wait_until(lambda: len(under_way(daemon)) == 9, 20, "all are under way")
    daemon.kill_kernel()
    wait_until(lambda: not daemon.children(), 10, "all have ended")
    client.run("import os; os.unlink('full')")
    client.run(FULL)
    client.run(f"threading.Thread(target={waits}, daemon=True).start()")
    wait_until(lambda: len(under_way(daemon)) == 1, 20, "one is under way")
    (connecting,) = under_way(daemon)
    os.kill(daemon.supervisor_pid(), signal.SIGKILL)
    wait_until(lambda: not is_alive(connecting), 10, "it ends with the supervisor")


def test_a_child_that_ends_leaves_no_connection_under_way(build: type_of_build, tier: str) -> None:
    needs_the_guard(tier)
    daemon = build(tier)
    client = daemon.client()
    client.run(FULL)
    client.run(
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', \"import socket; {WAITS}\"])"
    )
    wait_until(lambda: len(under_way(daemon)) == 1, 20, "it is under way")
    client.run("child.kill(); child.wait()")
    wait_until(lambda: not under_way(daemon), 10, "nobody waits for it any more")


def test_more_connections_than_may_come_at_once(build: type_of_build, tier: str) -> None:
    """Above what may come early, and above what may be under way."""
    client = build(tier).client()
    result = client.run(
        "import socket, threading\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(5)\n"
        "def connect():\n"
        "    for _ in range(8):\n"
        "        with socket.socket(socket.AF_UNIX) as c: c.connect('s')\n"
        "threads = [threading.Thread(target=connect) for _ in range(100)]\n"
        "for one in threads: one.start()\n"
        "for _ in range(800): s.accept()[0].close()\n"
        "for one in threads: one.join()\n"
        "print('all')"
    )
    assert result.data["stdout"] == "all\n"


def test_abstract_names_of_its_own(build: type_of_build, tier: str) -> None:
    """Without Landlock's rule for them nobody can say whose they are."""
    unknown = tier in ("U", "L") and LIBC.syscall(444, None, 0, 1) < 6
    result = (
        build(tier)
        .client()
        .run(
            "import errno, os, socket\n"
            "s = socket.socket(socket.AF_UNIX); s.bind(f'\\0{os.urandom(8).hex()}'); s.listen()\n"
            "c = socket.socket(socket.AF_UNIX); why = c.connect_ex(s.getsockname())\n"
            "print(errno.errorcode.get(why, 'connected'))"
        )
    )
    assert result.data["stdout"] == ("EPERM\n" if unknown else "connected\n")


@x86_64
def test_a_kernel_gets_no_listener_of_its_own(build: type_of_build, tier: str) -> None:
    """By which what is left when its supervisor is gone could let itself through."""
    needs_the_guard(tier)
    client = build(tier).client()
    result = client.run(
        "import ctypes, errno\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for flags in 8, 8 | 32, 0:\n"
        "    libc.syscall(317, 1, flags, None)\n"
        "    print(errno.errorcode[ctypes.get_errno()])"
    )
    assert result.data["stdout"] == "EBUSY\nEBUSY\nEFAULT\n"


def keep_two_rights() -> None:
    """All but CAP_SETGID and CAP_SETUID go from the bounding set."""
    for capability in {*range(41)} - {6, 7}:
        LIBC.prctl(24, capability, 0, 0, 0)


@as_root
def test_two_rights_are_enough_for_the_guard(build: type_of_build) -> None:
    needs_the_guard("U")
    daemon = build("U", before=keep_two_rights)
    assert "guarded sockets; " in daemon.log()
    client = daemon.client()
    client.run(FULL)
    assert client.run(WAITS, timeout_seconds=1).data["exit_code"] == 124
    assert client.run("first.close(); full.accept(); " + WAITS).exit_code == 0
    daemon.kill()  # it may not remove all of its kernel's runtime directory


@x86_64
@pytest.mark.parametrize("tier", [pytest.param("U", marks=as_root), "L"])
def test_without_the_guard_it_is_said(build: type_of_build, tier: str) -> None:
    """Of listeners there is one to a process; some containers have it."""
    needs_the_guard(tier)
    keeper, sender = socket.socketpair()
    nobody_calls = 1000

    def listen_first() -> None:
        program = [
            (LOAD, 0, 0, 0),
            (JUMP, 0, 1, nobody_calls),
            (RETURN, 0, 0, NOTIFY),
            (RETURN, 0, 0, ALLOW),
        ]
        # On its way it stays open, which no descriptor of the daemon's would.
        socket.send_fds(sender, [b"listener"], [enter_filter(program, 8)])

    with keeper, sender:
        daemon = build(tier, before=listen_first)
        assert f"walls: tier {tier}" in daemon.log()
        lower = f"tier {tier}, because of tier {tier} with guarded sockets: guard connect(): "
        assert daemon.health()["walls"]["lower"].startswith(lower)
        client = daemon.client()
        assert "walls: " + lower in client.run(FULL).footer
        assert client.run("full.accept(); " + WAITS).exit_code == 0
