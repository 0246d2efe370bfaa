# SPDX-License-Identifier: MIT
"""What kernels reach: nothing, the one proxy, or all.  The proxy is a squid of our own, and
behind it stands an origin that only it may reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import os
import random
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import any_python, run_daemon, type_of_start
from harness import Client, Daemon, children_of, is_alive, read_proc, run_program, wait_until

SQUID = shutil.which("squid") or "/usr/sbin/squid"
TOGETHER = 50
BIG = random.Random(1).randbytes(1 << 20) * 64
# The order matters: the first rule that fits decides.
CONFIG = """
http_port 127.0.0.1:{port}
cache deny all
pid_filename none
access_log none
cache_log {place}/cache.log
coredump_dir {place}
shutdown_lifetime 0 seconds
acl CONNECT method CONNECT
acl origin_port port {origins}
http_access deny !origin_port
http_access deny manager
http_access allow localhost
http_access deny all
"""


class Origin(http.server.BaseHTTPRequestHandler):
    """/all-N: answers when N requests of this path are there at once."""

    protocol_version = "HTTP/1.1"
    together = threading.Barrier(TOGETHER)

    def do_GET(self) -> None:
        body = f"origin {self.path}".encode()
        if self.path == "/together":
            self.together.wait(60)
        elif self.path == "/big":
            body = BIG
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Count(socketserver.StreamRequestHandler):
    """Answers only when the other side has said all."""

    def handle(self) -> None:
        self.wfile.write(f"{len(self.rfile.read())} bytes".encode())


@dataclass
class Outside:
    """The machine's network."""

    origin: int
    count: int
    proxy: int

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.origin}{path}"

    def env(self) -> dict[str, str]:
        return {"http_proxy": f"http://me:secret@localhost:{self.proxy}"}


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


@contextlib.contextmanager
def serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def squid(place: Path, origins: list[int]) -> Iterator[int]:
    if not os.access(SQUID, os.X_OK):
        pytest.skip("squid is not installed")
    place.chmod(0o777)  # it becomes somebody else
    port = free_port()
    config = place / "squid.conf"
    text = CONFIG.format(port=port, place=place, origins=" ".join(map(str, origins)))
    config.write_text(text)
    parsed = subprocess.run(
        [SQUID, "-k", "parse", "-f", config], capture_output=True, text=True, check=True
    )
    # It ignores what it takes for a mistake, and only mumbles.
    assert "WARNING" not in parsed.stderr, parsed.stderr
    process = subprocess.Popen(
        [SQUID, "-N", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: answers(port), 20, "squid listens")
        yield port
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    place = Path(tmp_path_factory.mktemp("squid"))
    for above in place.parents:
        if above.stat().st_uid == os.getuid() and not above.stat().st_mode & 1:
            above.chmod(above.stat().st_mode | 0o11)
    with (
        serving(Origin) as origin,
        serving(Count) as count,
        squid(place, [origin, count]) as proxy,
    ):
        yield Outside(origin, count, proxy)


@contextlib.contextmanager
def walled(tier: str, network: str, outside: Outside) -> Iterator[Daemon]:
    """A daemon in directories that the users of tier U may enter."""
    if tier == "U" and os.geteuid() != 0:
        pytest.skip("tier U needs root")
    env = {
        "VIVARIUM_PYTHON": str(any_python()),
        "VIVARIUM_WALLS": f"require:{tier}",
        "VIVARIUM_NETWORK": network,
    }
    with tempfile.TemporaryDirectory(prefix="vn") as made:
        home, runtime = Path(made) / "d", Path(made) / "r"
        for directory in (home, runtime):
            directory.mkdir()
        for directory in (Path(made), home, runtime):
            directory.chmod(0o711)
        yield from run_daemon(home, env=env | outside.env(), runtime=runtime)


@pytest.fixture(scope="module", params=["N", "U", "L"])
def proxied(request: pytest.FixtureRequest, outside: Outside) -> Iterator[Daemon]:
    with walled(request.param, "proxy", outside) as daemon:
        yield daemon


@pytest.fixture
def client(proxied: Daemon, outside: Outside) -> Client:
    client = proxied.client()
    client.run(
        "import hashlib, http.client, os, requests, socket, threading, urllib.request\n"
        # The machine's loopback is a kernel's own, so nothing may be left out here.
        "for name in ('no_proxy', 'NO_PROXY'): os.environ[name] = ''\n"
        "proxy = requests.utils.urlparse(os.environ['http_proxy'])\n"
        f"origin, count, url = {outside.origin}, {outside.count}, '{outside.url('')}'"
    )
    return client


def value(client: Client, code: str) -> str:
    result = client.run(code, timeout_seconds=120)
    assert result.exit_code == 0, result.text
    return str(result.data["result"])


def test_requests_and_urllib_go_through_the_proxy(client: Client) -> None:
    assert value(client, "requests.get(url + '/a').text") == "'origin /a'"
    assert value(client, "requests.get(url + '/a').headers['Via'].count('squid')") == "1"
    assert value(client, "urllib.request.urlopen(url + '/b').read()") == "b'origin /b'"
    assert value(client, "proxy.username, proxy.password") == "('me', 'secret')"


def test_a_tunnel_goes_through_the_proxy(client: Client) -> None:
    code = """
tunnel = http.client.HTTPConnection(proxy.hostname, proxy.port)
tunnel.set_tunnel('127.0.0.1', origin)
tunnel.request('GET', '/c')
tunnel.getresponse().read()
"""
    assert value(client, code) == "b'origin /c'"
    refused = client.run("tunnel.close(); tunnel.set_tunnel('127.0.0.1', 22); tunnel.connect()")
    assert "Tunnel connection failed: 403" in refused.text


def test_many_connections_at_once(client: Client) -> None:
    code = f"""
texts = []
def get(): texts.append(requests.get(url + '/together', timeout=60).text)
threads = [threading.Thread(target=get) for _ in range({TOGETHER})]
for thread in threads: thread.start()
for thread in threads: thread.join()
texts.count('origin /together')
"""
    assert value(client, code) == str(TOGETHER)


@pytest.mark.timeout(120)
def test_a_long_download_is_intact(client: Client) -> None:
    code = "hashlib.sha256(requests.get(url + '/big').content).hexdigest()"
    assert value(client, code) == repr(hashlib.sha256(BIG).hexdigest())


# What is tried, and the exception it must be; all of it is there for the proxy to reach.
WAYS = {
    "TCP": "socket.create_connection(('127.0.0.1', origin), 5)",
    "the daemon's own port": "socket.create_connection(('127.0.0.1', door), 5)",
    "TCP to the machine's address": "socket.create_connection((address, origin), 5)",
    "IPv6": "socket.create_connection(('::1', origin), 5)",
    "UDP": "assert udp() == b'heard'",
    "a name": "socket.getaddrinfo('example.org', 80)",
    "a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_other_way_leads_out(proxied: Daemon, client: Client, way: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.settimeout(0.5)
        code = f"""
door, address = {proxied.port}, '{socket.gethostbyname(socket.gethostname())}'
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b'x', ('127.0.0.1', {heard.getsockname()[1]}))
    raise OSError('sent')
try: {WAYS[way]}
except OSError as error: print(type(error).__name__)
"""
        result = client.run(code, timeout_seconds=60)
        assert result.exit_code == 0, result.text
        assert result.data["stdout"]
        with pytest.raises(TimeoutError):
            heard.recv(1)


def test_the_proxy_leads_not_to_the_daemon(proxied: Daemon, client: Client) -> None:
    url = f"http://127.0.0.1:{proxied.port}/health"
    assert value(client, f"requests.get('{url}').status_code") == "403"


# ---- the forwarder of tier N ----


def forwarders(daemon: Daemon) -> list[int]:
    """Of the kernel that was started last."""
    above = children_of(daemon.pid)
    return [p for s in above for p in children_of(s) if read_proc(p, "comm") == b"viv-forward\n"]


def begin(start: type_of_start, env: dict[str, str]) -> Daemon:
    return start(env={"VIVARIUM_WALLS": "require:N", "VIVARIUM_NETWORK": "proxy"} | env)


def test_the_forwarder_ends_with_its_kernel(start: type_of_start, outside: Outside) -> None:
    daemon = begin(start, outside.env())
    client = daemon.client()
    client.run("import socket; s = socket.create_connection(('127.0.0.1', 3128))")
    fds = daemon.fds()
    (forwarder,) = forwarders(daemon)
    daemon.kill_kernel()
    wait_until(lambda: not is_alive(forwarder), 10)
    client.run("1")
    (second,) = forwarders(daemon)
    wait_until(lambda: daemon.fds() <= fds, 10, "the descriptors are back")
    daemon.kill()
    wait_until(lambda: not is_alive(second), 10)


def test_the_forwarder_keeps_nothing_of_a_connection(
    start: type_of_start, outside: Outside
) -> None:
    daemon = begin(start, outside.env())
    client = daemon.client()
    client.run("import os, requests; os.environ['no_proxy'] = os.environ['NO_PROXY'] = ''")
    (forwarder,) = forwarders(daemon)

    def fds() -> int:
        return len(os.listdir(f"/proc/{forwarder}/fd"))

    before = fds()
    code = f"for i in range(100): requests.get('{outside.url('/x')}')"
    assert client.run(code, timeout_seconds=100).exit_code == 0
    wait_until(lambda: fds() == before, 10, "its descriptors are back")


def test_each_way_ends_alone(start: type_of_start, outside: Outside) -> None:
    """Squid ends both; here what counts bytes stands in for a proxy."""
    daemon = begin(start, {"http_proxy": f"http://127.0.0.1:{outside.count}"})
    code = """
import socket
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(bytes(3_000_000))
s.shutdown(socket.SHUT_WR)
answer = b''
while part := s.recv(1000): answer += part
answer
"""
    assert value(daemon.client(), code) == "b'3000000 bytes'"


def test_the_forwarder_does_not_spin(start: type_of_start, outside: Outside) -> None:
    """One side has ended and the other says nothing, and one is waiting for room."""
    daemon = begin(start, outside.env())
    client = daemon.client()
    client.run(
        "import socket\n"
        "a = socket.create_connection(('127.0.0.1', 3128)); a.shutdown(socket.SHUT_WR)\n"
        "b = socket.create_connection(('127.0.0.1', 3128))\n"
        f"b.sendall(b'GET {outside.url('/big')} HTTP/1.0\\r\\n\\r\\n')"
    )
    (forwarder,) = forwarders(daemon)

    def ticks() -> int:
        fields = read_proc(forwarder, "stat").rpartition(b") ")[2].split()
        return int(fields[11]) + int(fields[12])

    wait_until(lambda: len(os.listdir(f"/proc/{forwarder}/fd")) > 5, 10)
    time.sleep(0.5)
    before = ticks()
    time.sleep(1)
    assert ticks() - before < os.sysconf("SC_CLK_TCK") // 4


def test_a_proxy_that_is_down_is_said(start: type_of_start) -> None:
    daemon = begin(start, {"http_proxy": f"http://127.0.0.1:{free_port()}"})
    client = daemon.client()
    answer = client.run("import requests; r = requests.get('http://example.org'); r.text")
    assert "the proxy cannot be reached: Connection refused" in answer.data["result"]
    tunnel = client.run("requests.get('https://example.org')")
    assert "502 The proxy cannot be reached: Connection refused" in tunnel.text


def test_a_proxy_without_an_address_is_said(start: type_of_start) -> None:
    daemon = begin(start, {"http_proxy": "http://nowhere.invalid:3128"})
    answer = daemon.client().run("import requests; requests.get('http://example.org').text")
    assert "the proxy cannot be reached: its name has no address" in answer.data["result"]


# ---- other settings ----


@pytest.mark.parametrize("tier", ["N", "U", "L"])
def test_none_reaches_nothing(outside: Outside, tier: str) -> None:
    code = f"""
import os, socket
for port in ({outside.proxy}, {outside.origin}, 3128):
    try: socket.create_connection(('127.0.0.1', port), 5)
    except OSError: print('no')
print([name for name in os.environ if 'proxy' in name.lower()])
"""
    with walled(tier, "none", outside) as daemon:
        assert daemon.client().run(code).data["stdout"] == "no\nno\nno\n[]\n"


def test_auto_is_the_proxy_where_there_is_one(start: type_of_start, outside: Outside) -> None:
    assert start(env=outside.env()).log_contains("network proxy")
    assert start(name="other").log_contains("network host")


def test_without_walls_the_proxy_is_only_a_wish(start: type_of_start, outside: Outside) -> None:
    env = {"VIVARIUM_WALLS": "off", "VIVARIUM_NETWORK": "proxy"}
    daemon = start(env=env | outside.env())
    assert daemon.log_contains("network proxy is not enforced")
    code = "import os; os.environ['http_proxy']"
    told = outside.env()["http_proxy"]
    assert daemon.client().run(code).data["result"] == repr(told)


@pytest.mark.parametrize(
    ("proxies", "words"),
    [
        ({}, "VIVARIUM_NETWORK=proxy needs the proxy's address in http_proxy"),
        ({"http_proxy": "socks5://a:1"}, "http_proxy is not http://HOST:PORT"),
        ({"http_proxy": "https://a:1"}, "http_proxy is not http://HOST:PORT"),
        ({"https_proxy": "http://u:s3cret@a"}, "https_proxy is not http://HOST:PORT"),
        ({"http_proxy": "http://a:1", "HTTPS_PROXY": "http://b:1"}, "HTTPS_PROXY names another"),
    ],
)
def test_what_is_no_proxy_is_refused(tmp_path: Path, proxies: dict[str, str], words: str) -> None:
    env = {"VIVARIUM_NETWORK": "proxy", "VIVARIUM_PORT": "0"}
    ended = run_program(env=env | proxies, cwd=tmp_path)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "s3cret" not in ended.stderr
