# SPDX-License-Identifier: MIT
"""A kernel of pyside/, started as the supervisor starts it and spoken to as the daemon does."""

import contextlib
import fcntl
import json
import os
import secrets
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq
from jupyter_client.session import Session

ROOT = Path(__file__).resolve().parents[2]
PYSIDE = ROOT / "pyside"
PORTS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5}
Message = dict[str, Any]


@dataclass
class Result:
    """One cell: its reply, and everything that came for it on IOPub before its idle."""

    reply: Message
    messages: list[Message] = field(default_factory=list)
    seconds: float = 0.0

    def contents(self, msg_type: str) -> list[Message]:
        return [m["content"] for m in self.messages if m["msg_type"] == msg_type]

    def stream(self, name: str) -> str:
        return "".join(c["text"] for c in self.contents("stream") if c["name"] == name)

    @property
    def stdout(self) -> str:
        return self.stream("stdout")

    @property
    def stderr(self) -> str:
        return self.stream("stderr")

    @property
    def status(self) -> str:
        return str(self.reply["content"]["status"])

    @property
    def text(self) -> str:
        """The last expression's value."""
        return "".join(c["data"]["text/plain"] for c in self.contents("execute_result"))

    @property
    def error(self) -> str:
        return str(self.reply["content"].get("ename", ""))

    @property
    def report(self) -> Message:
        report: Message = self.reply["metadata"]["vivarium"]
        return report

    @property
    def images(self) -> int:
        return sum("image/png" in c["data"] for c in self.contents("display_data"))


class KernelProcess:
    def __init__(
        self,
        python: str,
        place: Path,
        *,
        environment: dict[str, str] | None = None,
        peers: list[int] | None = None,
        **ours: Any,
    ) -> None:
        self.workspace, self.home = place / "workspace", place / "home"
        self.runtime = place / "runtime"
        for directory in (self.workspace, self.home, self.runtime):
            directory.mkdir(mode=0o700, exist_ok=True)
        self.key = secrets.token_hex(32)
        self.connection: Message = {
            "transport": "ipc",
            "ip": "k",
            **{f"{name}_port": port for name, port in PORTS.items()},
            "key": self.key,
            "signature_scheme": "hmac-sha256",
            "vivarium": {
                "v": 1,
                "runtime_dir": str(self.runtime),
                "peer_pids": [os.getpid()] if peers is None else peers,
                "stream_split": 262144,
                "summary_max": 16384,
            }
            | ours,
        }
        # The test's own environment must not leak in; HOME is watched by a test.
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8"}
        self.environment |= environment or {}
        self.started = time.monotonic()
        self.process, self.report_fd, self.log_fd, self.orders_fd = launch(
            python,
            json.dumps(self.connection).encode(),
            self.workspace,
            self.environment,
            with_orders=ours.get("snapshot") is not None,
        )
        self.log = self.reports = b""
        self.open = True
        self.context = zmq.Context()
        try:
            self._await_ready(self.report_fd)
        except BaseException:
            self.close()
            raise
        self.ready_after = time.monotonic() - self.started
        self.session = Session(key=self.key.encode())
        self.shell = self.connect(zmq.DEALER, "shell")
        self.control = self.connect(zmq.DEALER, "control")
        self.iopub = self.connect(zmq.SUB, "iopub")
        if peers is None:
            self._await_subscription()

    def connect(self, kind: int, name: str) -> "zmq.Socket[bytes]":
        socket = self.context.socket(kind)
        socket.linger = 0
        if kind == zmq.SUB:
            socket.rcvhwm = 0
            socket.subscribe(b"")
        socket.connect(f"ipc://{self.runtime}/k-{PORTS[name]}")
        return socket

    def _await_ready(self, fd: int) -> None:
        if select.select([fd], [], [], 20)[0]:
            line, _, rest = os.read(fd, 64).partition(b"\n")
            self.reports += rest
            if line == b"ready":
                return
        raise AssertionError(f"the kernel did not become ready: {self.crash_output()}")

    def _await_subscription(self) -> None:
        """Ask until IOPub is heard: what is published before the subscription is lost."""
        for _ in range(100):
            self.reply(self.send("kernel_info_request", {}))
            if self.iopub.poll(50):
                return
        raise AssertionError("nothing is heard on IOPub")

    def send(self, msg_type: str, content: Message, channel: str = "shell") -> str:
        message = self.session.msg(msg_type, content)
        self.session.send(getattr(self, channel), message)
        return str(message["header"]["msg_id"])

    def send_cell(self, code: str, **options: Any) -> str:
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        return self.send("execute_request", content | options)

    def receive(self, socket: "zmq.Socket[bytes]", timeout: float) -> Message | None:
        if not socket.poll(max(0, int(timeout * 1000))):
            return None
        _, frames = self.session.feed_identities(socket.recv_multipart())
        return self.session.deserialize(frames)

    def reply(self, msg_id: str, timeout: float = 30, channel: str = "shell") -> Message:
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            message = self.receive(getattr(self, channel), left)
            if message is not None and message["parent_header"].get("msg_id") == msg_id:
                return message
        raise AssertionError(f"no reply within {timeout} s; {self.crash_output()}")

    def outputs(self, msg_id: str, timeout: float = 30) -> list[Message]:
        """Everything on IOPub for one request, up to its idle."""
        found: list[Message] = []
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            message = self.receive(self.iopub, left)
            if message is None or message["parent_header"].get("msg_id") != msg_id:
                continue
            found.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return found
        raise AssertionError(f"no idle within {timeout} s: {[m['msg_type'] for m in found]}")

    def wait_output(self, msg_type: str, timeout: float = 30) -> Message:
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            message = self.receive(self.iopub, left)
            if message is not None and message["msg_type"] == msg_type:
                return message
        raise AssertionError(f"no {msg_type} within {timeout} s")

    def finish(self, msg_id: str, timeout: float = 30) -> Result:
        start = time.monotonic()
        reply = self.reply(msg_id, timeout)
        messages = self.outputs(msg_id, timeout)
        self.reports += self._read_all(self.report_fd)
        return Result(reply, messages, time.monotonic() - start)

    def run(self, code: str, timeout: float = 30, **options: Any) -> Result:
        return self.finish(self.send_cell(code, **options), timeout)

    def order(self, line: str) -> None:
        """A line to the kernel, as the daemon writes them."""
        os.write(self.orders_fd, f"{line}\n".encode())

    def wait_report(self, line: str, timeout: float = 30) -> None:
        """Until the kernel has reported this line."""
        deadline = time.monotonic() + timeout
        while line.encode() not in self.reports.split(b"\n")[:-1]:
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self.report_fd], [], [], left)[0]:
                raise AssertionError(f"no report {line!r} within {timeout} s: {self.reports!r}")
            self.reports += self._read_all(self.report_fd)

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def shutdown(self, timeout: float = 5) -> int:
        """Ask for the end and return the exit status."""
        msg_id = self.send("shutdown_request", {"restart": False}, "control")
        assert self.reply(msg_id, timeout, "control")["content"]["status"] == "ok"
        return self.process.wait(timeout)

    def crash_output(self) -> str:
        """What came on the descriptors that the daemon reads."""
        self.log += self._read_all(self.log_fd)
        return self.log.decode("utf-8", "replace")

    @staticmethod
    def _read_all(fd: int) -> bytes:
        found = b""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(fd, 65536):
                found += data
        return found

    def kill(self) -> None:
        """The kernel alone, at once, and without a trace."""
        self.process.kill()
        self.process.wait(5)

    def close(self) -> None:
        """May be called again."""
        if not self.open:
            return
        self.open = False
        with contextlib.suppress(ProcessLookupError):  # its children too
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(5)
        os.close(self.log_fd)
        os.close(self.report_fd)
        os.close(self.orders_fd)
        self.context.destroy(linger=0)

    def __enter__(self) -> "KernelProcess":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()


def launch(
    python: str,
    connection: bytes,
    cwd: Path,
    environment: dict[str, str],
    *,
    with_orders: bool = False,
) -> tuple["subprocess.Popen[bytes]", int, int, int]:
    """Start pyside with the connection at 3, the report pipe at 4 and, if wanted, orders at 5.

    Returns the process, the read ends of reports and log, and the write end of the orders.
    """
    spare: list[int] = []
    while not spare or spare[-1] < 6:  # nothing below may own 3, 4 or 5 while they are placed
        spare.append(os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC))
    memory = high(os.memfd_create("connection"))
    os.write(memory, connection)
    os.lseek(memory, 0, os.SEEK_SET)
    ready, told = map(high, os.pipe())
    orders, ordered = map(high, os.pipe())
    log, crash = os.pipe()
    os.set_blocking(log, False)
    os.set_blocking(ready, False)

    def place() -> None:
        os.dup2(memory, 3)
        os.dup2(told, 4)
        if with_orders:
            os.dup2(orders, 5)

    try:
        process = subprocess.Popen(
            [python, str(PYSIDE)],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=crash,
            stderr=crash,
            pass_fds=(3, 4, 5) if with_orders else (3, 4),
            preexec_fn=place,  # noqa: PLW1509 (two or three system calls, no lock)
            start_new_session=True,
        )
    finally:
        for fd in (*spare, memory, told, orders, crash):
            os.close(fd)
    return process, ready, log, ordered


def high(fd: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(fd)
    return moved
