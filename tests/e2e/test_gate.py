"""The gate before all doors: every spelling of Host and Origin on every route, and the order
of what is asked.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import any_python, run_daemon
from harness import Daemon, bare_env, run_program

TOKEN = "viv_a-token-for-everybody"
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
CLOSED = 0  # without an answer

# ---- the routes: name -> request line, own headers, body, status once it is let in ----

JSON = "Content-Type: application/json\r\n"
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==\r\n"
)
ROUTES = {
    "post": ("POST", "/mcp", f"{JSON}Content-Length: {len(PING)}\r\n", PING, 400),
    # a session that is none: without any, a stream without an end would begin
    "get": ("GET", "/mcp", "Accept: text/event-stream\r\nMcp-Session-Id: x\r\n", "", 404),
    "get-sse": ("GET", "/sse", "Accept: application/json\r\n", "", 406),
    "delete": ("DELETE", "/mcp", "", "", 400),
    "head": ("HEAD", "/mcp", "", "", 405),
    "options": ("OPTIONS", "/mcp", "", "", 405),
    "health": ("GET", "/health", "", "", 200),
    "well-known": ("GET", "/.well-known/oauth-protected-resource", "", "", 404),
    "unknown": ("GET", "/nothing/here", "", "", 404),
    "upgrade": ("GET", "/mcp", UPGRADE, "", 101),
    "upgrade-ws": ("GET", "/ws", UPGRADE, "", 101),
    "upgrade-elsewhere": ("GET", "/health", UPGRADE, "", 501),
}
# What a stranger gets where tokens are asked for, instead of the above.
UNASKED = {"head": 405, "health": 200, "well-known": 404}

LET_IN = [
    "Host: localhost",
    "Host: LOCALHOST",
    "host: LocalHost:8000",
    "Host: localhost:1",
    "Host: localhost:65535",
    "Host:localhost",
    "Host: \t localhost \t ",
    "Host: 127.0.0.1",
    "Host: 127.0.0.1:8000",
    "Host: 127.255.255.254",
    "Host: [::1]",
    "Host: [::1]:8000",
    "Host: vivarium",
    "Host: Vivarium:8000",
    "Host: my_box-2",
    "Host: chat.example",
    "Host: CHAT.Example:443",
    "Host: xn--bcher-kva.example",
    "Host: localhost\r\nOrigin: http://localhost",
    "Host: localhost\r\nOrigin: https://LOCALHOST:3000",
    "Host: localhost\r\nOrigin: HTTP://127.0.0.1:3080",
    "Host: localhost\r\nOrigin: http://[::1]:3080",
    "Host: localhost\r\nOrigin: http://librechat:3080",
    "Host: localhost\r\nOrigin: https://chat.example",
]
REFUSED = [
    "Host: evil.example",
    "Host: evil.example:8000",
    "Host: localhost.evil.example",
    "Host: 127.0.0.1.evil.example",
    "Host: evil.localhost",
    "Host: localhost.",
    "Host: localhost.:8000",
    "Host: chat.example.",
    "Host: .chat.example",
    "Host: x.chat.example",
    "Host: chat.example.evil",
    "Host: xn--lclhost-90a.example",
    "Host: b\u00fccher.example",
    "Host: l\u00f6calhost",
    "Host: user@localhost",
    "Host: user:password@localhost",
    "Host: localhost@evil.example",
    "Host: localhost:80@evil.example",
    "Host: localhost:",
    "Host: localhost:0",
    "Host: localhost:080",
    "Host: localhost:65536",
    "Host: localhost:99999999999999999999",
    "Host: localhost:-1",
    "Host: localhost:+80",
    "Host: localhost:http",
    "Host: localhost:80:90",
    "Host: localhost: 80",
    "Host: local host",
    "Host: localhost evil.example",
    "Host: localhost\tevil.example",
    "Host: localhost,evil.example",
    "Host: localhost\r\nHost: evil.example",
    "Host: evil.example\r\nHost: localhost",
    "Host: localhost\r\nHost: localhost",
    "Host: localhost/",
    "Host: localhost#",
    "Host: localhost?",
    "Host: localhost\\evil.example",
    "Host: localhost%2eevil.example",
    "Host: http://localhost",
    "Host: //localhost",
    "Host: ::1",
    "Host: [::1",
    "Host: [::1]evil.example",
    "Host: [::1]:",
    "Host: [::1%lo]",
    "Host: [::1%25lo]",
    "Host: [fe80::1%25eth0]:8000",
    "Host: [::ffff:127.0.0.1]",
    "Host: [0:0:0:0:0:0:0:1]",
    "Host: [::]",
    "Host: 0.0.0.0",
    "Host: 0",
    "Host: 2130706433",
    "Host: 0x7f000001",
    "Host: 0177.0.0.1",
    "Host: 127.1",
    "Host: 10.0.0.1",
    "Host: *",
    "Host: " + "a" * 64,
    "Host: " + "a" * 3000,
    "Host: localhost\r\nOrigin: null",
    "Host: localhost\r\nOrigin:",
    "Host: localhost\r\nOrigin: localhost",
    "Host: localhost\r\nOrigin: //localhost",
    "Host: localhost\r\nOrigin: file://",
    "Host: localhost\r\nOrigin: ftp://localhost",
    "Host: localhost\r\nOrigin: chrome-extension://localhost",
    "Host: localhost\r\nOrigin: http://",
    "Host: localhost\r\nOrigin: http:localhost",
    "Host: localhost\r\nOrigin: http:///localhost",
    "Host: localhost\r\nOrigin: http://localhost/",
    "Host: localhost\r\nOrigin: http://localhost.",
    "Host: localhost\r\nOrigin: http://localhost.evil.example",
    "Host: localhost\r\nOrigin: http://user@localhost",
    "Host: localhost\r\nOrigin: http://localhost:0",
    "Host: localhost\r\nOrigin: http://localhost:99999",
    "Host: localhost\r\nOrigin: http://localhost http://evil.example",
    "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example",
    "Host: localhost\r\nOrigin: http://evil.example\r\nOrigin: http://localhost",
    "Host: localhost\r\nOrigin: http://[::1%25lo]",
    "Host: localhost\r\nOrigin: https://evil.example",
    "Host: localhost\r\nOrigin: " + "x" * 3000,
]
WITHOUT_HOST = ["X-Nothing: 1", "Host:", "Host: \t ", "X-Forwarded-Host: localhost"]


def ask(port: int, head: str, body: str = "", token: str = "") -> tuple[int, bytes]:
    """head: all of it but the empty line.  The status, or CLOSED; and the body."""
    if token:
        head += f"Authorization: Bearer {token}\r\n"
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(f"{head}\r\n{body}".encode())
        answer = http.client.HTTPResponse(sock, method=head.partition(" ")[0])
        try:
            answer.begin()
            return answer.status, answer.read()
        except (http.client.BadStatusLine, ConnectionResetError):
            return CLOSED, b""


def ask_route(port: int, route: str, spelling: str, token: str = "") -> tuple[int, bytes]:
    method, path, own, body, _ = ROUTES[route]
    return ask(port, f"{method} {path} HTTP/1.1\r\n{spelling}\r\n{own}", body, token)


def statuses(port: int, spelling: str, token: str = "") -> dict[str, int]:
    return {route: ask_route(port, route, spelling, token)[0] for route in ROUTES}


HOSTS = {"VIVARIUM_ALLOWED_HOSTS": "chat.example, xn--bcher-kva.example"}


def serve(home: Path, **env: str) -> Iterator[Daemon]:
    yield from run_daemon(home, env={"VIVARIUM_PYTHON": str(any_python()), **HOSTS, **env})


@pytest.mark.parametrize("args", [[], ["--check"]])
def test_a_name_that_no_host_can_have_is_refused_at_start(tmp_path: Path, args: list[str]) -> None:
    env = bare_env(tmp_path, VIVARIUM_PORT="0", VIVARIUM_PYTHON=str(any_python()))
    ended = run_program(*args, env={**env, "VIVARIUM_ALLOWED_HOSTS": "a.example,*"}, cwd=tmp_path)
    assert ended.returncode == (1 if args else 2)
    assert "VIVARIUM_ALLOWED_HOSTS names '*', which no request's Host is" in (
        ended.stdout if args else ended.stderr
    )


@pytest.fixture(scope="module")
def open_door(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Asks for no token."""
    yield from serve(tmp_path_factory.mktemp("open"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    yield from serve(tmp_path_factory.mktemp("guarded"), VIVARIUM_TOKEN=TOKEN)


# ---- Host and Origin ----


@pytest.mark.parametrize("spelling", LET_IN)
def test_good_spellings_are_let_in_on_every_route(open_door: Daemon, spelling: str) -> None:
    want = {route: row[4] for route, row in ROUTES.items()}
    assert statuses(open_door.port, spelling) == want


@pytest.mark.parametrize("spelling", REFUSED)
def test_every_other_spelling_is_403_on_every_route(open_door: Daemon, spelling: str) -> None:
    assert statuses(open_door.port, spelling) == dict.fromkeys(ROUTES, 403)


@pytest.mark.parametrize("spelling", WITHOUT_HOST)
def test_without_a_host_it_is_400_on_every_route(open_door: Daemon, spelling: str) -> None:
    assert statuses(open_door.port, spelling) == dict.fromkeys(ROUTES, 400)


@pytest.mark.parametrize("spelling", [*REFUSED[:3], *REFUSED[-3:]])
def test_a_good_token_does_not_help_a_bad_host(guarded: Daemon, spelling: str) -> None:
    assert statuses(guarded.port, spelling, TOKEN) == dict.fromkeys(ROUTES, 403)


@pytest.mark.parametrize("host", ["localhost", "evil.example"])
@pytest.mark.parametrize(
    "target", ["http://evil.example", "https://evil.example:80", "http://localhost", "http://", "x"]
)
def test_a_target_with_an_authority_of_its_own_is_403_on_every_route(
    open_door: Daemon, target: str, host: str
) -> None:
    for name, (method, path, own, body, _) in ROUTES.items():
        head = f"{method} {target}{path} HTTP/1.1\r\nHost: {host}\r\n{own}"
        assert ask(open_door.port, head, body)[0] == 403, name


def test_the_words_of_a_refusal_are_json_and_say_what_to_do(open_door: Daemon) -> None:
    for route in ROUTES:
        _, body = ask_route(open_door.port, route, "Host: evil.example")
        if route != "head":
            text = json.loads(body)["error"]
            assert "evil.example" in text
            assert "VIVARIUM_ALLOWED_HOSTS" in text


# ---- the order ----


def test_a_stranger_is_told_401_after_the_gate_and_before_the_routes(guarded: Daemon) -> None:
    want = {route: UNASKED.get(route, 401) for route in ROUTES}
    assert statuses(guarded.port, "Host: localhost") == want
    assert statuses(guarded.port, "Host: localhost", "viv_a-token-for-everybodx") == want
    assert statuses(guarded.port, "Host: evil.example") == dict.fromkeys(ROUTES, 403)
    assert statuses(guarded.port, "X-Nothing: 1") == dict.fromkeys(ROUTES, 400)


def test_with_the_token_all_is_as_without_any(guarded: Daemon) -> None:
    want = {route: row[4] for route, row in ROUTES.items()}
    assert statuses(guarded.port, "Host: localhost", TOKEN) == want


def test_health_says_more_to_whom_it_knows(guarded: Daemon, open_door: Daemon) -> None:
    def health(port: int, token: str) -> Any:
        return json.loads(ask_route(port, "health", "Host: localhost", token)[1])

    assert health(guarded.port, "") == {"status": "healthy"}
    assert health(guarded.port, "viv_another") == {"status": "healthy"}
    assert health(guarded.port, TOKEN).keys() == health(open_door.port, "").keys()
    assert {"version", "kernels"} < health(guarded.port, TOKEN).keys()
    post = "POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
    assert ask(guarded.port, post)[0] == 401
    assert ask(guarded.port, post, token=TOKEN)[0] == 405


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        TOKEN,
        f"Bearer{TOKEN}",
        f"Basic {TOKEN}",
        f"Token {TOKEN}",
        f"Digest {TOKEN}",
        f"Bearer {TOKEN},",
        f"Bearer {TOKEN} {TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f'Bearer "{TOKEN}"',
        f"Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}",
        f"Bearer wrong\r\nAuthorization: Bearer {TOKEN}",
        f"Bearer {'x' * 300}",
        f"Bearer {'x' * 3000}",
    ],
)
def test_what_is_not_quite_the_token_is_401(guarded: Daemon, value: str) -> None:
    head = f"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {value}\r\n"
    assert ask(guarded.port, head)[0] == 401


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_the_scheme_is_read_as_http_has_it(guarded: Daemon, scheme: str) -> None:
    head = f"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: {scheme}{TOKEN}\r\n"
    assert ask(guarded.port, head)[0] == 400


def raw(port: int, request: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(request.encode())
        return sock.recv(65536)


@pytest.mark.parametrize("route", [route for route in ROUTES if route not in UNASKED])
def test_a_401_starts_no_oauth(guarded: Daemon, route: str) -> None:
    """LibreChat and the SDKs begin its discovery when they read that word."""
    method, path, own, body, _ = ROUTES[route]
    answer = raw(guarded.port, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{own}\r\n{body}")
    assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
    assert b"bearer" not in answer.lower()
    assert b"www-authenticate" not in answer.lower()
    text = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert "token in the header Authorization" in text


def test_nobody_is_ever_told_429(guarded: Daemon) -> None:
    """It would end a LibreChat connection for good."""
    for token in ["viv_guess"] * 200 + [TOKEN]:
        status = ask_route(guarded.port, "delete", "Host: localhost", token)[0]
        assert status == (400 if token == TOKEN else 401)


type_of_start = Callable[..., Daemon]


def test_the_token_is_nowhere_to_be_seen(start: type_of_start) -> None:
    ways: dict[str, dict[str, Any]] = {
        "env": {"env": {"VIVARIUM_TOKEN": TOKEN, "VIVARIUM_LOG_LEVEL": "debug"}},
        "flag": {"args": ["--token", TOKEN]},
        "flag=": {"args": [f"--token={TOKEN}"]},
    }
    for name, options in ways.items():
        daemon = start(name=name, **options)
        assert ask_route(daemon.port, "delete", "Host: localhost", TOKEN)[0] == 400
        assert ask_route(daemon.port, "delete", "Host: localhost", TOKEN + "x")[0] == 401
        shown = [Path(f"/proc/{daemon.pid}/{what}").read_bytes() for what in ("cmdline", "environ")]
        assert TOKEN.encode() not in b"".join(shown)
        assert TOKEN not in daemon.log()
        assert daemon.log_contains("others on this machine") == (name != "env")
