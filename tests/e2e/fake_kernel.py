"""A scripted kernel: speaks the protocol and obeys the launch contract, but what it does
for a request is data.  Run as the kernels' interpreter: see the fixture fake_python.

fake.json in the working directory: {"starts": [[step...]...], "requests": [[step...]...]}.
The n-th start runs the n-th list of starts (default: [["ready"]], the report on fd 4);
the n-th execute_request of the workspace (the count outlives the kernel) runs the n-th
list; those after the last one are answered normally.  A step is [verb, argument...]:

  busy  idle  run                  the parts of every execution ("run" is the report on fd 4)
  stream NAME TEXT                 display DATA     result DATA     error ENAME EVALUE
  reply CONTENT METADATA           both are added to a normal execute_reply
  json CHANNEL TYPE TEXT           content as this very text
  frames CHANNEL [LATIN-1...]      frames as they are
  bad-key STEP   unsigned STEP     the message of that step, signed with another key, or not
  foreign STEP                     with a parent that nobody has sent
  again                            the last message once more
  sleep SECONDS  wait-for FILE     touch FILE
  exit CODE      signal NUMBER     close-output     say TEXT (to stderr)
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.session import Session

NORMAL: list[list[Any]] = [["busy"], ["run"], ["reply"], ["idle"]]
DELIMITER = b"<IDS|MSG>"


def read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


def count_up(name: str) -> int:
    """How often it was called in this directory before; the file's name is hidden."""
    path = Path(name)
    before = int(path.read_text()) if path.exists() else 0
    path.write_text(str(before + 1))
    return before


class FakeKernel:
    def __init__(self, connection: dict[str, Any], script: dict[str, Any]) -> None:
        self.connection = connection
        self.script = script
        self.session = Session(key=connection["key"].encode(), username="fake")
        self.other_key = Session(key=b"0" * 64)
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.sockets = {
            "shell": self.bind(zmq.ROUTER, "shell_port"),
            "control": self.bind(zmq.ROUTER, "control_port"),
            "iopub": self.bind(zmq.PUB, "iopub_port"),
        }
        self.last: tuple[str, list[bytes]] = ("iopub", [])
        self.request: dict[str, Any] = {}
        self.identities: list[bytes] = []

    def bind(self, kind: int, port: str) -> zmq.Socket[bytes]:
        socket = self.context.socket(kind)
        ours = self.connection["vivarium"]
        for pid in (*ours["peer_pids"], os.getpid()):
            socket.setsockopt(zmq.IPC_FILTER_PID, pid)
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.LINGER, 500)
        home = Path.cwd()
        os.chdir(ours["runtime_dir"])
        try:
            socket.bind(f"ipc://{self.connection['ip']}-{self.connection[port]}")
        finally:
            os.chdir(home)
        return socket

    # ---- sending ----

    def send_frames(self, channel: str, frames: list[bytes]) -> None:
        self.last = (channel, frames)
        self.sockets[channel].send_multipart(frames)

    def frames_of(
        self,
        channel: str,
        kind: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        how: str = "",
    ) -> list[bytes]:
        parent = {"header": {"msg_id": "nobody"}} if how == "foreign" else self.request
        session = self.other_key if how == "bad-key" else self.session
        message = session.msg(kind, content=content, parent=parent, metadata=metadata)
        identities = [kind.encode()] if channel == "iopub" else self.identities
        frames = [bytes(frame) for frame in session.serialize(message, identities)]
        if how == "unsigned":
            frames[frames.index(DELIMITER) + 1] = b""
        return frames

    def send(
        self,
        channel: str,
        kind: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        how: str = "",
    ) -> None:
        self.send_frames(channel, self.frames_of(channel, kind, content, metadata, how))

    def send_json(self, channel: str, kind: str, text: str) -> None:
        frames = self.frames_of(channel, kind, {})
        at = frames.index(DELIMITER)
        frames[-1] = text.encode("utf-8", "surrogateescape")
        frames[at + 1] = self.session.sign(frames[at + 2 :])
        self.send_frames(channel, frames)

    # ---- steps ----

    def step(self, verb: str, *args: Any, how: str = "") -> None:
        match verb:
            case "busy" | "idle":
                self.send("iopub", "status", {"execution_state": verb}, how=how)
            case "run":
                os.write(4, f"run {self.request['header']['msg_id']}\n".encode())
            case "stream":
                self.send("iopub", "stream", {"name": args[0], "text": args[1]}, how=how)
            case "display":
                self.send("iopub", "display_data", {"data": args[0], "metadata": {}}, how=how)
            case "result":
                content = {"data": args[0], "metadata": {}, "execution_count": 1}
                self.send("iopub", "execute_result", content, how=how)
            case "error":
                content = {"ename": args[0], "evalue": args[1], "traceback": [args[0]]}
                self.send("iopub", "error", content, how=how)
            case "reply":
                normal = {"status": "ok", "execution_count": 1}
                content, metadata = (*args, {}, {})[:2]
                self.send("shell", "execute_reply", normal | content, metadata, how=how)
            case "json":
                self.send_json(*args)
            case "frames":
                self.send_frames(args[0], [frame.encode("latin-1") for frame in args[1]])
            case "bad-key" | "unsigned" | "foreign":
                self.step(*args[0], how=verb)
            case "again":
                self.send_frames(*self.last)
            case _:
                self.act(verb, *args)

    def act(self, verb: str, *args: Any) -> None:
        match verb:
            case "sleep":
                threading.Event().wait(args[0])
            case "wait-for":
                while not Path(args[0]).exists():
                    threading.Event().wait(0.01)
            case "touch":
                Path(args[0]).touch()
            case "exit":
                self.context.destroy(linger=500)
                os._exit(args[0])
            case "signal":
                self.context.destroy(linger=500)
                os.kill(os.getpid(), args[0])
            case "close-output":
                os.close(1)
                os.close(2)
            case "say":
                os.write(2, args[0].encode())
            case _:
                raise ValueError(verb)

    # ---- serving ----

    def receive(self, channel: str) -> None:
        frames = self.sockets[channel].recv_multipart()
        self.identities, rest = self.session.feed_identities(frames)
        self.request = self.session.deserialize(rest)
        kind = self.request["header"]["msg_type"]
        if kind == "kernel_info_request":
            self.step("busy")
            self.send("shell", "kernel_info_reply", {"status": "ok"})
            self.step("idle")
        elif kind == "shutdown_request":
            self.send("control", "shutdown_reply", {"status": "ok", "restart": False})
            self.step("exit", 0)
        elif kind == "execute_request":
            number = count_up(".fake-requests")
            scripts = self.script.get("requests", [])
            for step in scripts[number] if number < len(scripts) else NORMAL:
                self.step(*step)

    def serve(self) -> None:
        poller = zmq.Poller()
        for channel in ("shell", "control"):
            poller.register(self.sockets[channel], zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            for channel in ("control", "shell"):
                if self.sockets[channel] in ready:
                    self.receive(channel)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    path = Path("fake.json")
    script = json.loads(path.read_text()) if path.exists() else {}
    kernel = FakeKernel(json.loads(read_all(3)), script)
    starts = script.get("starts", [])
    number = count_up(".fake-starts")
    steps = starts[number] if number < len(starts) else [["ready"]]
    for step in steps:
        if step == ["ready"]:
            os.write(4, b"ready\n")
        else:
            kernel.step(*step)
    kernel.serve()


if __name__ == "__main__":
    main()
