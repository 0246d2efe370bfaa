# SPDX-License-Identifier: MIT
"""Ways out of a workspace that were found by hand; each was open before its test was written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import any_python, mounted_tmpfs
from harness import Client, Daemon, run_program, wait_until
from test_tokens import SHARED, Tokens, enter, line
from test_walls import OTHER, USERS, build, type_of_build

__all__ = ["build"]  # a fixture

# Puts links to a directory where directories were, and these back, all the time.
SWAPPER = """
import ctypes, itertools, os, sys
libc = ctypes.CDLL(None)
for i in range(300):
    os.mkdir(f'd{i}')
    open(f'd{i}/secret.txt', 'w').write('own')
    os.symlink(sys.argv[1], f'l{i}')
print(flush=True)
for i in itertools.cycle(range(300)):
    libc.renameat2(-100, b'd%d' % i, -100, b'l%d' % i, 2)
"""
BRANCHING = {"VIVARIUM_TOOLS": "run_python,read_text_file,branch"}
SET_UP = """
import ctypes, errno, fcntl, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
LOWER_HALF_ONLY = 1 << 32  # Linux does not look at more of some arguments
def errno_of(number, *arguments):
    done = libc.syscall(number, *(ctypes.c_ulong(argument) for argument in arguments))
    return errno.errorcode[ctypes.get_errno()] if done < 0 else 'done'
"""


def linux() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])


REFUSED = {
    "lingering socket": "a = socket.socketpair()[0]; "
    "a.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 60))",
    "lease on a file of the system": "fcntl.fcntl(os.open('own', os.O_RDONLY), "
    "fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "notices of a directory": "fcntl.fcntl(os.open('/usr', os.O_RDONLY), 1026, 1)",
    "typing into a terminal": "fcntl.ioctl(0, 0x5412, b'x')",
}
REFUSED_OF_FILES = {
    "set-user-id program": "os.chmod('own', 0o4755)",
    "set-group-id program": "os.chmod('own', 0o2755)",
    "program made with that bit": "os.open('new', os.O_CREAT | os.O_WRONLY, 0o4755)",
    "nameless one": "os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755)",
}
CALLS = {  # numbers of x86_64
    "ioctl by the lower half": "errno_of(16, 0, LOWER_HALF_ONLY + 0x5412, 0)",
    "fcntl by the lower half": "errno_of(72, os.open('own', 0), LOWER_HALF_ONLY + 1024, 0)",
    "nice value of all that is the user's": "errno_of(141, 2, 0, 19)",
    "disk priority of all that is the user's": "errno_of(251, 3, 0, 2 << 13)",
}


@pytest.mark.parametrize("walls", ["N", "U", "L"])
def test_single_uses_of_calls_are_refused(build: type_of_build, walls: str) -> None:
    client = build(walls).client()
    client.run(SET_UP + "open('own', 'w').close()")
    wanted = REFUSED if walls == "U" else REFUSED | REFUSED_OF_FILES
    said = {what: client.run(code).data["error"]["name"] for what, code in wanted.items()}
    assert said == dict.fromkeys(wanted, "PermissionError")
    seen = {what: client.run(code).data["result"] for what, code in CALLS.items()}
    assert seen == dict.fromkeys(CALLS, "'EPERM'")
    works = "os.nice(1); os.chmod('own', 0o755); fcntl.flock(os.open('own', 0), fcntl.LOCK_EX)"
    assert client.run(works).exit_code == 0


def put_link_for_branches(daemon: Daemon) -> None:
    """Done by a cell: what lies in .branches comes from outside then."""
    outside = daemon.home / "outside" / "default@b"
    outside.mkdir(parents=True)
    (outside / "secret.txt").write_text("of the machine")
    for path in (outside.parent, outside, outside / "secret.txt"):
        path.chmod(0o777)
    code = "import os; os.rename('.branches', 'old'); os.symlink({!r}, '.branches')"
    assert daemon.client().run(code.format(str(outside.parent))).exit_code == 0


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("walls", ["N", "U", "L"])
def test_a_branch_replaced_by_a_link_leads_nowhere(
    build: type_of_build, walls: str, *, used: bool
) -> None:
    daemon = build(walls, env=BRANCHING)
    client = daemon.client()
    client.run("1")
    assert "is there" in client.call("branch", name="b").text
    if used:
        assert client.run("1", branch="b").exit_code == 0
    put_link_for_branches(daemon)
    seen = client.run("print(open('secret.txt').read())", branch="b", fresh=True)
    assert "of the machine" not in seen.text
    assert "of the machine" not in client.call("read_text_file", path="secret.txt", branch="b").text
    assert client.run("1").exit_code == 0


@pytest.mark.parametrize("walls", ["N", "U", "L"])
def test_copying_for_a_branch_follows_no_link(build: type_of_build, walls: str) -> None:
    daemon = build(walls, env=BRANCHING | USERS)
    victim = daemon.client(X_User_ID="B", X_Vivarium_Proxy_Secret="s" * 16)
    victim.run("open('secret.txt', 'w').write('of B')")
    client = daemon.client(X_User_ID="A", X_Vivarium_Proxy_Secret="s" * 16)
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {!r}, {!r}], "
    code = code.format(SWAPPER, str(daemon.work / "users" / "B"))
    assert client.run(code + "stdout=subprocess.PIPE); p.stdout.readline()").exit_code == 0
    for i in range(4):
        client.call("branch", name=f"b{i}")  # works or not
        found = subprocess.run(
            ["grep", "-rsl", "of B", str(daemon.work / ".branches")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.stdout == ""


# What can be done to a user's files by one of these names for their directory.
REACH = """
import os
def reach(place):
    with_it = [lambda: open(f'{place}/secret.txt').read(), lambda: os.listdir(place),
               lambda: open(f'{place}/new', 'w').close(), lambda: os.mkdir(f'{place}/made'),
               lambda: os.rename(place, place + '.old'), lambda: os.unlink(f'{place}/secret.txt')]
    for number, act in enumerate(with_it):
        try:
            act()
            yield number
        except OSError:
            pass
"""


def with_all_and_ann(
    build: type_of_build, walls: str, tokens: Tokens
) -> tuple[Daemon, Client, Client]:
    tokens.write(line("ann", "a" * 20))
    daemon = build(walls, env=BRANCHING | tokens.env | {"VIVARIUM_TOKEN": SHARED})
    everyone, ann = enter(daemon, SHARED), enter(daemon, "a" * 20)
    assert ann.run("open('secret.txt', 'w').write('of ann')").exit_code == 0
    assert "is there" in ann.call("branch", name="b").text
    return daemon, everyone, ann


@pytest.mark.parametrize("walls", ["N", "U", "L", "off"])
def test_the_workspace_of_all_sees_no_users(
    build: type_of_build, tmp_path: Path, walls: str
) -> None:
    daemon, everyone, ann = with_all_and_ann(build, walls, Tokens(tmp_path / "tokens"))
    names = [f"{daemon.work}/.branches/ann@b", "users/ann", "../ann", f"{daemon.work}/users/ann"]
    assert everyone.run(REACH).exit_code == 0
    done = {name: everyone.run(f"list(reach({name!r}))").data["result"] for name in names}
    if walls == "off":  # so the others could fail
        assert done[names[2]] == "[0, 1, 2, 3, 4]"
        return
    assert done == dict.fromkeys(names, "[]")
    assert ann.run("import os; open('secret.txt').read(), os.listdir()").data["result"] == (
        "('of ann', ['secret.txt'])"
    )


@pytest.mark.parametrize("walls", ["L", "off"])
def test_what_is_done_for_the_workspace_of_all_shows_no_users(
    build: type_of_build, tmp_path: Path, walls: str
) -> None:
    daemon, everyone, _ = with_all_and_ann(build, walls, Tokens(tmp_path / "tokens"))
    assert (
        everyone.run("import os; os.mkdir('users'); open('users/own', 'w').close()").exit_code == 0
    )
    for path in ("users/ann/secret.txt", "../ann/secret.txt", "users/../../ann/secret.txt"):
        assert everyone.call("read_text_file", path=path).is_error
    shown = everyone.request("resources/list")["resources"]
    assert [entry["uri"] for entry in shown] == ["workspace:///users/own"]
    assert "is there" in everyone.call("branch", name="b").text
    copied = daemon.work / ".branches" / "default@b"
    assert [str(path.relative_to(copied)) for path in copied.rglob("*")] == ["users", "users/own"]


@pytest.mark.parametrize("report", ["damaged x", "saved 1"])
def test_what_a_kernel_reports_has_bounds(build: type_of_build, report: str) -> None:
    daemon = build("off")
    client = daemon.client()
    client.run_saved(daemon, "kept = 1")
    daemon.kill_kernel()
    assert client.run("kept").data["result"] == "1"  # so that something can be damaged
    code = "import os, socket; report = socket.socket(fileno=os.dup(4)); report.setblocking(True)"
    assert client.run(f"{code}; report.sendall(b'{report}\\n' * 100_000)").exit_code == 0
    texts = [client.run("kept = 2").text for _ in range(3)]
    assert max(len(text) for text in texts) < 5000
    assert len(daemon.log()) < 20_000
    wait_until(lambda: daemon.saved_upto() == 6, 20, "states are still kept")


def test_no_module_of_the_work_directory_is_imported_at_start(tmp_path: Path) -> None:
    """By the daemon's question to the interpreter, which no walls are around."""
    work = tmp_path / "w"
    work.mkdir()
    for name in ("contextlib", "functools", "ipykernel", "numpy", "types", "warnings"):
        (work / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    env = {
        "VIVARIUM_WORKDIR": str(work),
        "VIVARIUM_STATE_DIR": str(tmp_path / "s"),
        "VIVARIUM_PYTHON": str(any_python()),
    }
    assert run_program("--check", env=env, cwd=work).returncode == 0
    assert not (tmp_path / "ran").exists()


def test_a_full_disk_does_not_lower_the_walls(tmp_path: Path) -> None:
    runtime = tmp_path / "r"
    env = {
        "VIVARIUM_WORKDIR": str(tmp_path / "w"),
        "VIVARIUM_STATE_DIR": str(tmp_path / "s"),
        "VIVARIUM_PYTHON": str(any_python()),
        "XDG_RUNTIME_DIR": str(runtime),
    }
    with mounted_tmpfs(runtime, "64k"):
        (runtime / "fill").write_bytes(bytes(60_000))
        tried = run_program("--check", env=env, cwd=tmp_path)
        assert tried.returncode == 1
        assert "No space left on device" in tried.stdout
        (runtime / "fill").write_bytes(bytes(64 * 1024))
        assert run_program("--check", env=env, cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("user", [0, OTHER])
@pytest.mark.parametrize("walls", ["N", "L"])
def test_what_a_kernel_leaves_is_removed(build: type_of_build, walls: str, user: int) -> None:
    if user and os.geteuid() != 0:
        pytest.skip("needs root")
    daemon = build(walls, user=user)
    client = daemon.client()
    client.run(
        "import os; own = os.path.dirname(os.environ['TMPDIR'])\n"
        f"if {walls!r} == 'N': own = '/run/kernel'\n"
        "for name in ('closed', 'closed/inner'): os.mkdir(f'{own}/{name}')\n"
        "os.chmod(f'{own}/closed', 0); os.chdir(own)\n"
        "for _ in range(3000): os.mkdir('deep'); os.chdir('deep')\n"
        f"os.chdir('/'); os.chmod(own, 0)"
    )
    (left,) = daemon.runtime_dirs()[0].glob("k1*")
    daemon.kill_kernel()
    wait_until(lambda: not left.exists(), 20, "its directory is gone")


@pytest.mark.skipif(linux() < (6, 16), reason="SO_PASSRIGHTS came with Linux 6.16")
def test_the_daemon_is_handed_nothing_to_close(build: type_of_build) -> None:
    """The last reference of a large memory file takes long to give up."""
    client = build("N").client()
    client.run(
        "import array, os, socket\n"
        "report = socket.socket(fileno=os.dup(4))\n"
        "large = array.array('i', [os.memfd_create('large')])\n"
    )
    code = "report.sendmsg([b'x\\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, large)])"
    assert client.run(code).data["error"]["name"] == "PermissionError"
    assert client.run("1 + 1").data["result"] == "2"
