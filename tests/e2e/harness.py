"""What the end-to-end tests share: a daemon with directories of its own, a small MCP
client on http.client, and looks into /proc.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).parents[2]
BUILD = REPO / os.environ.get("VIVARIUM_BUILD", "build-asan")
PROGRAM = BUILD / "vivarium"
NEWEST = "2025-11-25"
# One value among good ones; what is filled in runs when it is restored.
DEADLY = """
class Deadly:
    def __reduce__(self):
        return act, (%r,)
def act(what):
    exec(what)
good = 1
bad = Deadly()
also_good = 2
"""
STORE = b"vivarium-store\n"
READY = re.compile(r"ready (https?://\S+:(\d+)/mcp)\b")
SANITIZER = re.compile(r"ERROR: \w+Sanitizer|runtime error:|SUMMARY: \w+Sanitizer")
MARK = "LC_VIVARIUM_E2E"  # the daemon hands LC_* down to all it starts
AUTHENTICATED = {"VIVARIUM_PROXY_SECRET", "VIVARIUM_TOKEN", "VIVARIUM_TOKENS_FILE"}
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


def wait_until(what: Callable[[], object], limit_s: float = 10, why: str = "") -> None:
    end = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end, f"not within {limit_s} s: {why or what}"
        time.sleep(0.01)


# ---- processes ----


def read_proc(pid: int, name: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / name).read_bytes()
    except OSError:
        return b""


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(pid: int) -> int:
    after_name = read_proc(pid, "stat").rpartition(b") ")[2].split()
    return int(after_name[1]) if len(after_name) > 1 else 0


def children_of(pid: int) -> list[int]:
    return [child for child in all_pids() if parent_of(child) == pid]


def descendants_of(pid: int) -> list[int]:
    found: list[int] = []
    queue = [pid]
    while queue:
        children = children_of(queue.pop())
        found += children
        queue += children
    return found


def is_alive(pid: int) -> bool:
    """True for a process that runs; a zombie does not."""
    state = read_proc(pid, "stat").rpartition(b") ")[2][:1]
    return state not in (b"", b"Z", b"X")


def resident_kb(pid: int) -> int:
    found = re.search(rb"VmRSS:\s+(\d+) kB", read_proc(pid, "status"))
    return int(found[1]) if found else 0


# ---- the daemon ----


class Daemon:
    """A running vivarium; check_clean() and stop() say whether it kept its promises."""

    def __init__(
        self,
        home: Path,
        *,
        env: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        runtime: Path | None = None,
        program: Path = PROGRAM,
        user: int | None = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        """user: whom to run it as; before: what to do before its exec."""
        self.token = secrets.token_hex(8)
        self.work = home / "work"
        self.state = home / "state"
        self.home = home
        # Short: a socket's path has at most 107 bytes.
        self.runtime = runtime or Path(tempfile.mkdtemp(prefix="v", dir=tempfile.gettempdir()))
        self.log_path = home / f"log-{self.token}"
        self.env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            MARK: self.token,
            # Freed memory must not look like growth.
            "ASAN_OPTIONS": "quarantine_size_mb=8",
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_CACHE_HOME": str(Path(tempfile.gettempdir()) / f"vivarium-e2e-{os.getuid()}"),
            "VIVARIUM_PORT": "0",
            "VIVARIUM_VERIFY": "off",  # no kernels that no call has asked for
            "VIVARIUM_WORKDIR": str(self.work),
            "VIVARIUM_STATE_DIR": str(self.state),
            **(env or {}),
        }
        # What a proxy sends along with the user's name, unless the test does it itself.
        self.secret = ""
        if "VIVARIUM_USER_HEADER" in self.env and not self.env.keys() & AUTHENTICATED:
            self.secret = self.env["VIVARIUM_PROXY_SECRET"] = secrets.token_hex(16)
        # What its clients need, by the variables that it has.
        self.bearer = self.env.get("VIVARIUM_TOKEN", "")
        cert = self.env.get("VIVARIUM_TLS_CERT")
        self.tls = ssl.create_default_context(cafile=cert) if cert else None
        self.killed = False
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [program, *args],
                env=self.env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=user,
                group=user,
                extra_groups=None if user is None else [],
                preexec_fn=before,  # noqa: PLW1509 (a few system calls)
            )
        wait_until(self._is_ready_or_gone, 20, "the line that says ready")
        found = READY.search(self.log())
        assert found, f"no ready line; exit status {self.process.poll()}:\n{self.log()}"
        self.url, self.port = found[1], int(found[2])

    def _is_ready_or_gone(self) -> bool:
        return READY.search(self.log()) is not None or self.process.poll() is not None

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def log_contains(self, text: str) -> bool:
        return text in self.log()

    def fds(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def children(self) -> list[int]:
        """But for the helper that keeps saved states: that one may come and go."""
        return [pid for pid in children_of(self.pid) if read_proc(pid, "comm") != STORE]

    def kernel_pid(self) -> int:
        """Of the kernel that was started last."""
        return int(re.findall(r"kernel process (\d+) started", self.log())[-1])

    def kill_kernel(self, pid: int = 0) -> None:
        """SIGKILL; returns when it is gone.  Without a pid: the one that was started last."""
        pid = pid or self.kernel_pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), 10)

    def supervisor_pid(self) -> int:
        """The one that is our child; process 1 of a kernel's namespaces may lie below it."""
        pid = parent_of(self.kernel_pid())
        while parent_of(pid) not in (0, 1, self.pid):
            pid = parent_of(pid)
        return pid

    def family(self) -> list[int]:
        """All live processes that descend from this daemon, whoever their parent is now."""
        mark = f"{MARK}={self.token}".encode()
        return [
            pid
            for pid in all_pids()
            if pid != self.pid and mark in read_proc(pid, "environ").split(b"\0") and is_alive(pid)
        ]

    def runtime_dirs(self) -> list[Path]:
        return sorted(self.runtime.glob("vivarium-*"))

    def saved_upto(self, workspace: str = "default") -> int:
        """The cell whose state is kept on disk, by the record of generations; 0: none."""
        head = self.state / "snapshots" / workspace / "head"
        if not head.exists():
            return 0
        record = json.loads(head.read_text().splitlines()[1])
        cells = {row["n"]: row["cell"] for row in record["generations"]}
        return int(cells.get(record["head"], 0))

    def health(self, token: str = "") -> dict[str, Any]:
        token = token or self.bearer
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        reply = exchange(self.port, "GET", "/health", headers=headers, tls=self.tls)
        assert reply.status == 200
        health = reply.json()
        assert isinstance(health, dict)
        return health

    def client(self, revision: str = NEWEST, **extra: str) -> Client:
        client = Client(self.port, revision, tls=self.tls)
        client.extra = {name.replace("_", "-"): value for name, value in extra.items()}
        if self.bearer:
            client.extra["Authorization"] = f"Bearer {self.bearer}"
        if self.secret:
            client.extra["X-Vivarium-Proxy-Secret"] = self.secret
        client.initialize()
        return client

    # ---- its end ----

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        self.killed = True
        self.process.kill()
        self.process.wait(10)

    def check_log(self) -> None:
        assert not SANITIZER.search(self.log()), self.log()[-6000:]

    def check_no_family(self, limit_s: float = 3) -> None:
        try:
            wait_until(lambda: not self.family(), limit_s, "all processes gone")
        except AssertionError:
            left = {pid: read_proc(pid, "cmdline") for pid in self.family()}
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"processes are left: {left}") from None

    def stop(self) -> None:
        """SIGTERM and the checks of a clean end; harmless when it has ended already."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(25)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("did not stop within 25 s of SIGTERM") from None
            assert self.process.returncode == 0, self.log()[-6000:]
            assert self.runtime_dirs() == [], "the runtime directory is left"
        self.check_log()
        self.check_no_family()

    def clean_up(self) -> None:
        """Whatever the checks said."""
        if self.process.poll() is None:
            self.kill()
        for pid in self.family():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.runtime, ignore_errors=True)


def bare_env(home: Path, **settings: str) -> dict[str, str]:
    """Of a program that is run once: its own directories, and no settings but these."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "VIVARIUM_WORKDIR": str(home / "work"),
        "VIVARIUM_STATE_DIR": str(home / "state"),
        **settings,
    }


def run_program(*args: str, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """The program run to its end, with nothing in its environment but env."""
    return subprocess.run(
        [PROGRAM, *args],
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **env},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


# ---- HTTP ----


@dataclass
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def is_stream(self) -> bool:
        return self.headers.get_content_type() == "text/event-stream"

    def messages(self) -> list[Any]:
        """The JSON-RPC messages of a plain or streamed answer."""
        if not self.is_stream():
            parsed = self.json()
            return parsed if isinstance(parsed, list) else [parsed]
        events = self.body.decode().split("\n\n")
        lines = (line for event in events for line in event.split("\n"))
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    def comments(self) -> int:
        return len(re.findall(rb"^:", self.body, re.MULTILINE))


def exchange(
    port: int,
    method: str,
    path: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    timeout_s: float = 50,
    tls: ssl.SSLContext | None = None,
) -> Reply:
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout_s, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    )
    try:
        connection.request(method, path, body, dict(headers or {}))
        response = connection.getresponse()
        return Reply(response.status, response.headers, response.read())
    finally:
        connection.close()


# ---- MCP ----


@dataclass
class Result:
    """What a tool said: the answer's text, its footer, its pictures, its structure."""

    raw: dict[str, Any]
    text: str = ""
    footer: str = ""
    images: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        for item in self.raw["content"]:
            if item["type"] == "image":
                assert item["mimeType"] == "image/png"
                self.images.append(base64.b64decode(item["data"], validate=True))
            elif item["text"].startswith("--- state ---\n"):
                self.footer = item["text"]
            else:
                self.text += item["text"]

    @property
    def is_error(self) -> bool:
        return bool(self.raw["isError"])

    @property
    def data(self) -> dict[str, Any]:
        structure = self.raw["structuredContent"]
        assert isinstance(structure, dict)
        return structure

    @property
    def exit_code(self) -> int:
        return int(self.data["exit_code"])

    def footer_line(self, start: str) -> str:
        """The rest of the footer's line that starts so, or ""."""
        for line in self.footer.splitlines():
            if line.startswith(start):
                return line[len(start) :].strip()
        return ""


class RpcError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = int(error["code"])
        self.message = str(error["message"])


class Client:
    """One MCP session.  Every request has a connection of its own, so threads may share it."""

    daemon: Daemon  # set by who has use for it

    def __init__(
        self, port: int, revision: str = NEWEST, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.port = port
        self.tls = tls
        self.revision = revision
        self.session: str | None = None
        self.extra: dict[str, str] = {}  # headers of every request
        self.capabilities: dict[str, object] = {}  # that initialize() tells of
        self.name = "e2e"  # too
        self.ids = itertools.count(1)

    def headers(self, **more: str) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.session:
            headers["Mcp-Session-Id"] = self.session
            headers["MCP-Protocol-Version"] = self.revision
        more = {name.replace("_", "-"): value for name, value in more.items()}
        return headers | more | self.extra

    def post(self, body: object, **headers: str) -> Reply:
        """body: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return exchange(self.port, "POST", "/mcp", data, self.headers(**headers), tls=self.tls)

    def message(self, method: str, params: object = None, **more: object) -> dict[str, Any]:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self.ids), "method": method}
        if params is not None:
            message["params"] = params
        return message | more

    def request(self, method: str, params: object = None) -> dict[str, Any]:
        message = self.message(method, params)
        reply = self.post(message)
        assert reply.status == 200, (reply.status, reply.body)
        (answer,) = reply.messages()
        assert answer["id"] == message["id"]
        if "error" in answer:
            raise RpcError(answer["error"])
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def notify(self, method: str, params: object = None) -> Reply:
        message = {"jsonrpc": "2.0", "method": method}
        return self.post(message if params is None else message | {"params": params})

    def initialize(self) -> dict[str, Any]:
        message = self.message(
            "initialize",
            {
                "protocolVersion": self.revision,
                "capabilities": self.capabilities,
                "clientInfo": {"name": self.name, "version": "1"},
            },
        )
        reply = self.post(message)
        assert reply.status == 200, reply.body
        self.session = reply.headers["Mcp-Session-Id"]
        result = reply.json()["result"]
        assert isinstance(result, dict)
        self.revision = result["protocolVersion"]
        assert self.notify("notifications/initialized").status == 202
        return result

    def call(self, tool: str, **arguments: object) -> Result:
        return Result(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def run(self, code: str, **options: object) -> Result:
        return self.call("run_python", code=code, **options)

    def run_saved(self, daemon: Daemon, code: str, workspace: str = "default") -> int:
        """Runs a cell, waits until its state is kept, and returns its number."""
        cell = int(self.run(code).data["execution_count"])
        wait_until(lambda: daemon.saved_upto(workspace) == cell, 30, f"cell {cell} is saved")
        return cell


# ---- TLS ----


def make_certificate(place: Path, name: str = "tls") -> tuple[Path, Path]:
    """For localhost and 127.0.0.1, signed by itself: certificate and key."""
    cert, key = place / f"{name}.pem", place / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext"]
    command += ["subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"]
    subprocess.run([*command, "-keyout", key, "-out", cert], capture_output=True, check=True)
    return cert, key


# ---- pictures ----


def png_size(png: bytes) -> tuple[int, int]:
    assert png.startswith(PNG_MAGIC)
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
