# SPDX-License-Identifier: MIT
"""The walls around kernels: which tier a machine gives, and that all works behind each.

What they keep out is tests/attack's matter.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import PYTHONS, any_python, require_python
from harness import Daemon, bare_env, is_alive, run_program, wait_until

TIERS = ("N", "U", "L", "off")
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


def forbid_namespaces() -> None:
    """Makes clone and unshare refuse new namespaces, as some machines do, for this process
    and all below it."""
    new_namespaces = 0x7E020080
    load, jump, back = 0x20, 0x15, 0x06
    clone, unshare, allow, refuse = 56, 272, 0x7FFF0000, 0x00050001
    program = [
        (load, 0, 0, 0),
        (jump, 1, 0, clone),
        (jump, 0, 3, unshare),
        (load, 0, 0, 16),
        (0x45, 0, 1, new_namespaces),  # any of these bits
        (back, 0, 0, refuse),
        (back, 0, 0, allow),
    ]
    text = b"".join(struct.pack("<HBBI", *line) for line in program)
    code = ctypes.create_string_buffer(text, len(text))
    header = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # no_new_privs
    assert libc.prctl(22, 2, header) == 0  # seccomp, filter


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of calls are those of x86_64")
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
