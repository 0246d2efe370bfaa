"""Tokens: a user each, from a file that may change while the daemon runs; what cannot start."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Client, Daemon, Reply, Result, exchange, run_program, wait_until

type_of_start = Callable[..., Daemon]
SHARED = "viv_for-all-of-us-here"


def line(user: str, token: str) -> str:
    return f"{user} {hashlib.blake2b(token.encode(), digest_size=32).hexdigest()}\n"


class Tokens:
    """A tokens file, written as an administrator would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = {"VIVARIUM_TOKENS_FILE": str(path)}

    def write(self, *lines: str) -> None:
        """In one piece, as most editors do."""
        partial = self.path.with_suffix(".new")
        partial.write_text("".join(lines))
        partial.chmod(0o600)
        partial.replace(self.path)


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "tokens")


def enter(daemon: Daemon, token: str, **headers: str) -> Client:
    client = Client(daemon.port)
    client.extra = {"Authorization": f"Bearer {token}", **headers}
    client.initialize()
    return client


def status(daemon: Daemon, token: str) -> int:
    """400: let in, and told that a session is missing."""
    headers = {"Authorization": f"Bearer {token}"}
    return exchange(daemon.port, "DELETE", "/mcp", headers=headers).status


# ---- whose call it is ----


def test_who_is_not_let_in_is_told_why(start: type_of_start, tokens: Tokens) -> None:
    tokens.write(line("ann", "a" * 20))
    daemon = start(env=tokens.env)
    wrong = {"Authorization": "Bearer " + "b" * 20}
    for headers, words in ({}, b"wants a token"), (wrong, b"none of this server's tokens"):
        reply = exchange(daemon.port, "DELETE", "/mcp", headers=headers)
        assert reply.status == 401
        assert words in reply.body


def test_the_token_names_the_user_whatever_the_header_says(
    start: type_of_start, tokens: Tokens
) -> None:
    tokens.write("# who may come in\n\n", line("alice", "a" * 20), line("bob", "b" * 20))
    daemon = start(env=tokens.env | {"VIVARIUM_USER_HEADER": "X-User-ID"})
    alice = enter(daemon, "a" * 20, **{"X-User-ID": "bob"})
    bob = enter(daemon, "b" * 20, **{"X-User-ID": "alice"})
    assert alice.run("who = 'alice'; open('mine', 'w').close()").exit_code == 0
    assert bob.run("'who' in globals()").data["result"] == "False"
    assert alice.run("who").data["result"] == "'alice'"
    assert (daemon.work / "users" / "alice" / "mine").exists()
    assert daemon.log_contains("VIVARIUM_USER_HEADER has no effect beside VIVARIUM_TOKENS_FILE")


def test_a_session_of_one_user_is_no_way_to_another(start: type_of_start, tokens: Tokens) -> None:
    tokens.write(line("alice", "a" * 20), line("bob", "b" * 20))
    daemon = start(env=tokens.env)
    alice = enter(daemon, "a" * 20)
    alice.run("who = 'alice'")
    alice.extra = {"Authorization": f"Bearer {'b' * 20}"}
    assert alice.run("'who' in globals()").data["result"] == "False"


def test_one_token_for_all_and_the_header_names_the_user(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOKEN": SHARED, "VIVARIUM_USER_HEADER": "X-User-ID"})
    assert enter(daemon, SHARED, **{"X-User-ID": "ada"}).run("mine = 1").exit_code == 0
    nobody = enter(daemon, SHARED)
    assert nobody.request("ping") == {}
    assert nobody.request("tools/list")["tools"]
    assert "no header X-User-ID" in nobody.run("1").text
    assert (daemon.work / "users" / "ada").is_dir()


def test_one_token_for_all_and_no_users_is_the_work_directory_itself(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOKEN": SHARED})
    assert enter(daemon, SHARED).run("open('here', 'w').close()").exit_code == 0
    assert (daemon.work / "here").exists()


def test_beside_users_one_token_for_all_has_a_workspace_like_theirs(
    start: type_of_start, tokens: Tokens
) -> None:
    tokens.write(line("alice", "a" * 20))
    daemon = start(env=tokens.env | {"VIVARIUM_TOKEN": SHARED})
    (daemon.work / "old").touch()
    assert enter(daemon, SHARED).run("open('here', 'w').close()").exit_code == 0
    assert (daemon.work / "users" / "@all" / "here").exists()
    result = enter(daemon, "a" * 20).run("import os; os.path.exists('here')")
    assert result.data["result"] == "False"
    assert daemon.log_contains(f"what else lies in {daemon.work} is in no workspace")
    assert daemon.log_contains(f"mv FILES {daemon.work}/users/@all/ brings it back")


def test_a_user_may_have_several_tokens(start: type_of_start, tokens: Tokens) -> None:
    tokens.write(line("alice", "a" * 20), line("alice", "b" * 20))
    daemon = start(env=tokens.env)
    enter(daemon, "a" * 20).run("kept = 5")
    assert enter(daemon, "b" * 20).run("kept").data["result"] == "5"


# ---- the file changes ----


@pytest.mark.parametrize("how", ["replaced", "written in place"])
def test_users_come_and_go_without_a_restart(
    start: type_of_start, tokens: Tokens, how: str
) -> None:
    def write(*lines: str) -> None:
        if how == "replaced":
            tokens.write(*lines)
        else:
            tokens.path.write_text("".join(lines))

    tokens.write(line("alice", "a" * 20))
    daemon = start(env=tokens.env)
    assert [status(daemon, "a" * 20), status(daemon, "b" * 20)] == [400, 401]
    write(line("alice", "a" * 20), line("bob", "b" * 20))
    wait_until(lambda: status(daemon, "b" * 20) == 400)
    assert status(daemon, "a" * 20) == 400
    write(line("bob", "b" * 20))
    wait_until(lambda: status(daemon, "a" * 20) == 401)
    assert status(daemon, "b" * 20) == 400
    write("# nobody\n")
    wait_until(lambda: status(daemon, "b" * 20) == 401)


@contextlib.contextmanager
def open_stream(client: Client) -> Iterator[http.client.HTTPResponse]:
    """The server's own stream, with its first comment read."""
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    try:
        headers = client.headers() | {"Accept": "text/event-stream"}
        connection.request("GET", "/mcp", headers=headers)
        with connection.getresponse() as response:
            assert response.status == 200
            assert response.read(3) == b":\n\n"
            yield response
    finally:
        connection.close()


def await_cut(stream: http.client.HTTPResponse) -> None:
    """Fails by the connection's timeout."""
    with contextlib.suppress(http.client.HTTPException, ConnectionResetError):
        while stream.read(1):
            pass


def is_over(stream: http.client.HTTPResponse) -> bool:
    """True if the server has closed; what it sent before that may wait to be read."""
    assert stream.fp is not None
    sock = stream.fp.raw._sock  # type: ignore[attr-defined]
    sock.setblocking(False)
    try:
        return bool(sock.recv(1, socket.MSG_PEEK) == b"")
    except BlockingIOError:
        return False


def test_a_revoked_tokens_streams_are_cut_and_no_others(
    start: type_of_start, tokens: Tokens
) -> None:
    tokens.write(line("alice", "a" * 20), line("bob", "b" * 20))
    daemon = start(env=tokens.env)
    alice, bob = enter(daemon, "a" * 20), enter(daemon, "b" * 20)
    bobs: list[Result] = []
    alices: list[Reply] = []

    def run_hers() -> None:
        cell = "open('begun', 'w').close(); import time; time.sleep(3); open('ended', 'w').close()"
        call = alice.message("tools/call", {"name": "run_python", "arguments": {"code": cell}})
        with contextlib.suppress(OSError, http.client.HTTPException):
            alices.append(alice.post(call))

    threads = [
        threading.Thread(target=run_hers),
        threading.Thread(target=lambda: bobs.append(bob.run("import time; time.sleep(2); 'his'"))),
    ]
    for thread in threads:
        thread.start()
    place = daemon.work / "users" / "alice"
    wait_until((place / "begun").exists)
    wait_until(lambda: daemon.health("b" * 20)["calls"] == 2)
    with open_stream(alice) as hers, open_stream(bob) as his:
        tokens.write(line("bob", "b" * 20))
        await_cut(hers)
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert not is_over(his)
    assert not any(b"exit_code" in reply.body for reply in alices), "she was told"
    assert bobs[0].data["result"] == "'his'"
    with pytest.raises(AssertionError, match="401"):
        alice.request("ping")
    wait_until((place / "ended").exists, 20, "her cell goes on")
    assert bob.request("ping") == {}


def test_a_token_that_moves_to_another_user_loses_its_streams(
    start: type_of_start, tokens: Tokens
) -> None:
    tokens.write(line("alice", "a" * 20))
    daemon = start(env=tokens.env)
    with open_stream(enter(daemon, "a" * 20)) as stream:
        tokens.write(line("bob", "a" * 20))
        await_cut(stream)
    assert status(daemon, "a" * 20) == 400


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("alice\n", "line 2: after 'alice' stands no hash"),
        ("alice 12ab\n", "line 2: after 'alice' stands no hash"),
        (f"alice {'0' * 63}g\n", "line 2: after 'alice' stands no hash"),
        (f"alice {'0' * 66}\n", "line 2: after 'alice' stands no hash"),
        (f"alice {'0' * 64} more\n", "line 2: more than NAME HASH"),
        (f"../up {'0' * 64}\n", "line 2: a user's name has 1 to 64 of"),
        (f"default {'0' * 64}\n", "line 2: 'default' is the workspace of those"),
        (line("bob", "a" * 20), "lines 1 and 2 have the same token"),
        ("\0\n", "is no text"),
        ("#" * (1 << 20), "has over 1048576 bytes"),
        ("".join(line("u", str(i)) for i in range(4096)), "over 4096 tokens"),
    ],
)
def test_a_bad_file_is_refused_whole_at_start_and_later(
    start: type_of_start, tokens: Tokens, tmp_path: Path, content: str, words: str
) -> None:
    good = line("alice", "a" * 20)
    tokens.write(good, content)
    ended = run_program(env=tokens.env | {"VIVARIUM_PORT": "0"}, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "VIVARIUM_TOKENS_FILE: " in ended.stderr
    tokens.write(good)
    daemon = start(env=tokens.env)
    tokens.write(good, content)
    wait_until(lambda: daemon.log_contains("those read before stay in force"))
    assert daemon.log_contains(words)
    assert status(daemon, "a" * 20) == 400


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_open_is_refused(
    start: type_of_start, tokens: Tokens, tmp_path: Path, mode: int
) -> None:
    tokens.write(line("alice", "a" * 20))
    tokens.path.chmod(mode)
    ended = run_program(env=tokens.env, cwd=tmp_path)
    assert ended.returncode == 2
    assert f"is open to others than its owner (mode {mode:04o}): chmod 600 it" in ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(tokens: Tokens, tmp_path: Path) -> None:
    tokens.write(line("alice", "a" * 20))
    os.chown(tokens.path, 1500, -1)
    ended = run_program(env=tokens.env, cwd=tmp_path)
    assert ended.returncode == 2
    assert "belongs to another user (uid 1500)" in ended.stderr


def test_a_file_that_goes_away_changes_nothing(start: type_of_start, tokens: Tokens) -> None:
    tokens.write(line("alice", "a" * 20))
    daemon = start(env=tokens.env)
    tokens.path.unlink()
    wait_until(lambda: daemon.log_contains("those read before stay in force"))
    assert status(daemon, "a" * 20) == 400
    tokens.write(line("bob", "b" * 20))
    wait_until(lambda: status(daemon, "a" * 20) == 401)


def test_a_pipe_in_the_files_place_is_not_waited_for(tokens: Tokens, tmp_path: Path) -> None:
    os.mkfifo(tokens.path, 0o600)
    ended = run_program(env=tokens.env, cwd=tmp_path)
    assert ended.returncode == 2
    assert "is not a file" in ended.stderr


# ---- making one ----


def test_a_new_token_is_printed_once_and_lets_its_user_in(
    start: type_of_start, tokens: Tokens, tmp_path: Path
) -> None:
    tokens.write("# no newline at the end")
    daemon = start(env=tokens.env)
    made = [
        run_program("--new-token", user, env=tokens.env, cwd=tmp_path) for user in ("ada", "bob")
    ]
    ada, bob = (one.stdout.strip() for one in made)
    assert ada != bob
    assert len(ada) == len("viv_") + 43
    assert "added to" in made[0].stderr
    assert ada not in made[0].stderr + tokens.path.read_text()
    wait_until(lambda: status(daemon, ada) == 400)
    wait_until(lambda: status(daemon, bob) == 400)
    assert enter(daemon, ada).run("1 + 1").data["result"] == "2"
    assert (daemon.work / "users" / "ada").is_dir()


def test_a_new_token_makes_the_file_or_prints_its_line(tokens: Tokens, tmp_path: Path) -> None:
    made = run_program("--new-token", "ada", env=tokens.env, cwd=tmp_path)
    assert tokens.path.read_text() == line("ada", made.stdout.strip())
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    made = run_program("--new-token", "ada", env={}, cwd=tmp_path)
    assert made.stderr.endswith(":\n" + line("ada", made.stdout.strip()))
    summed = subprocess.run(
        ["b2sum", "-l", "256"],
        input=made.stdout.strip(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert summed.stdout.split()[0] == made.stderr.split()[-1], "as the manual says"


@pytest.mark.parametrize("user", ["", "default", ".x", "a b", "a" * 65, "a/b"])
def test_a_token_for_a_bad_name_is_not_made(tokens: Tokens, tmp_path: Path, user: str) -> None:
    ended = run_program("--new-token", user, env=tokens.env, cwd=tmp_path)
    assert ended.returncode == 2
    assert not ended.stdout
    assert not tokens.path.exists()


# ---- who may listen where ----


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_tokens_open_another_address(start: type_of_start, host: str) -> None:
    env = {"VIVARIUM_TOKEN": SHARED, "VIVARIUM_HOST": host}
    if host == "0.0.0.0":
        daemon = start(env=env)
        assert daemon.log_contains("tokens cross the network unencrypted")
        assert status(daemon, SHARED) == 400
        assert status(daemon, "x") == 401
    refused = run_program(env={"VIVARIUM_HOST": host}, cwd=Path("/tmp"))
    assert refused.returncode == 2
    assert "VIVARIUM_TOKEN or VIVARIUM_TOKENS_FILE" in refused.stderr


@pytest.mark.parametrize(
    "env",
    [
        {"VIVARIUM_PROXY_SECRET": "s3cret of a proxy"},
        {"VIVARIUM_TOKEN": SHARED},
        {"VIVARIUM_TOKENS_FILE": "tokens"},
    ],
)
def test_users_by_header_need_what_a_kernel_does_not_know(
    start: type_of_start, tmp_path: Path, tokens: Tokens, env: dict[str, str]
) -> None:
    users = {"VIVARIUM_USER_HEADER": "X-User"}
    ended = run_program(env=users, cwd=tmp_path)
    assert ended.returncode == 2
    assert "name another user; set VIVARIUM_PROXY_SECRET" in ended.stderr
    assert "VIVARIUM_TOKENS_FILE" in ended.stderr
    tokens.write(line("alice", "a" * 20))
    if "VIVARIUM_TOKENS_FILE" in env:
        env = tokens.env
    assert start(env=users | env).log_contains("ready http")


def test_the_file_must_not_lie_where_code_could_change_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "below").mkdir(parents=True)
    tokens = Tokens(work / "below" / "tokens")
    tokens.write(line("alice", "a" * 20))
    (tmp_path / "link").symlink_to(tokens.path)
    for path in (tokens.path, tmp_path / "link", work / ".." / "work" / "t"):
        env = {"VIVARIUM_TOKENS_FILE": str(path), "VIVARIUM_WORKDIR": str(work)}
        for verb in ((), ("--check",)):
            ended = run_program(*verb, env=env, cwd=tmp_path)
            assert ended.returncode == (1 if verb else 2)
            words = "lies inside the work directory, where code could change it"
            assert words in ended.stdout + ended.stderr


def test_print_config_hides_the_token(tmp_path: Path) -> None:
    ended = run_program("--print-config", env={"VIVARIUM_TOKEN": SHARED}, cwd=tmp_path)
    assert "VIVARIUM_TOKEN=(hidden)\n" in ended.stdout
    assert SHARED not in ended.stdout + ended.stderr


def test_a_kernel_does_not_learn_the_token(start: type_of_start) -> None:
    token = secrets.token_hex(16)
    daemon = start(env={"VIVARIUM_TOKEN": token, "VIVARIUM_WALLS": "off"})  # sees all others
    found = enter(daemon, token).run(
        "import glob, os\nfound = []\n"
        "for name in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: found.append(open(name, 'rb').read())\n"
        "    except OSError: pass\n"
        f"token = '{token[::-1]}'[::-1].encode()\n"
        "len(found) > 3, any(token in one for one in found)"
    )
    assert found.data["result"] == "(True, False)"
