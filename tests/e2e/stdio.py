"""vivarium --stdio as a client that starts it sees it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conftest import any_python
from dialogue import Dialogue
from harness import MARK, PROGRAM, SANITIZER, all_pids, is_alive, read_proc, wait_until

PATIENCE_S = 60


class Stdio(Dialogue):
    """vivarium --stdio, and the lines that it writes."""

    def __init__(
        self, home: Path, *args: str, env: Mapping[str, str] | None = None, name: str = "s"
    ) -> None:
        super().__init__()
        self.token = secrets.token_hex(8)
        self.state = home / "state"
        self.log_path = home / f"{name}-{self.token}.log"
        self.runtime = Path(tempfile.mkdtemp(prefix="v"))
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--stdio", *args],
                env={
                    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
                    "HOME": str(home),
                    "LANG": "C.UTF-8",
                    MARK: self.token,
                    "XDG_RUNTIME_DIR": str(self.runtime),
                    "XDG_CACHE_HOME": str(
                        Path(tempfile.gettempdir()) / f"vivarium-e2e-{os.getuid()}"
                    ),
                    "VIVARIUM_WORKDIR": str(home / "work"),
                    "VIVARIUM_STATE_DIR": str(self.state),
                    "VIVARIUM_PYTHON": str(any_python()),
                    "VIVARIUM_VERIFY": "off",
                    **(env or {}),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=home,
            )
        assert self.process.stdin
        assert self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def send(self, message: object) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.input.write(data)
        self.input.flush()

    def read(self) -> Any:
        line = self.output.readline()
        assert line, f"the output has ended:\n{self.log()}"
        return json.loads(line)

    def family(self) -> list[int]:
        mark = f"{MARK}={self.token}".encode()
        return [
            pid
            for pid in all_pids()
            if pid != self.process.pid
            and mark in read_proc(pid, "environ").split(b"\0")
            and is_alive(pid)
        ]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def close(self) -> str:
        """Ends the input; the rest of the output, after a clean end."""
        with contextlib.suppress(BrokenPipeError):
            self.input.close()
        rest = self.output.read().decode()
        assert self.process.wait(PATIENCE_S) == 0, self.log()
        self.check()
        return rest

    def check(self) -> None:
        assert not SANITIZER.search(self.log()), self.log()
        wait_until(lambda: not self.family(), 5, "all processes gone")

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.kill()
        for stream in (self.input, self.output):
            with contextlib.suppress(OSError):
                stream.close()
        for pid in self.family():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.runtime, ignore_errors=True)
