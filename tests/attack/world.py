# SPDX-License-Identifier: MIT
"""A daemon with two users behind walls of one tier: alice, whose kernel (A) attacks, and
bob, whose kernel (B) is attacked, beside the manager itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import REPO, Client, Daemon, all_pids, is_alive, parent_of, read_proc, wait_until
from probes import files, ipc, kit, network, proc, processes, sockets, system
from probes.kit import CHANGES, OPENS, OWN, REGISTRY, SEES, TELLS, Probe

HERE = Path(__file__).parent
ROOMS = (files, proc, processes, sockets, network, ipc, system)
USER_HEADER = "X-User-ID"
NICENESS, FILES_OF_A_CHILD = 3, 777
PORTS = ("tcp", "tcp_all", "tcp6", "udp", "udp_all", "udp6", "shared_port")
BUFFERS = ("proc_write_memory_of_bs_kernel", "memory_write_bs_kernel")


def machines_address() -> str:
    """The one that other machines would use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            any_socket.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(any_socket.getsockname()[0])


def loading(*sources: tuple[str, Path]) -> str:
    """A cell that makes modules of these texts in the kernel."""
    texts = {name: path.read_text() for name, path in sources}
    return (
        "import sys, types\n"
        f"for name, text in {texts!r}.items():\n"
        "    module = sys.modules[name] = types.ModuleType(name)\n"
        "    exec(compile(text, name, 'exec'), module.__dict__)\n"
        "del name, text, module\n"
    )


class Outside:
    """Servers of the machine: on its network, and at a path where all users may connect."""

    def __init__(self, host: str, bus: Path, secret: str) -> None:
        self.bus = socket.socket(socket.AF_UNIX)
        self.bus.bind(str(bus))
        bus.chmod(0o777)
        self.bus.listen(100)
        self.tcp = socket.create_server((host, 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind((host, 0))
        self.secret = secret.encode()
        for serve in (self.tell_all, self.tcp), (self.tell_all, self.bus), (self.serve_udp,):
            threading.Thread(target=serve[0], args=serve[1:], daemon=True).start()

    def tell_all(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as client, contextlib.suppress(BrokenPipeError):
                    client.sendall(self.secret)

    def serve_udp(self) -> None:
        with contextlib.suppress(OSError):
            while (asker := self.udp.recvfrom(200)[1]) is not None:  # None: it is closed
                self.udp.sendto(self.secret, asker)

    def close(self) -> None:
        for one in (self.tcp, self.bus, self.udp):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@dataclass(frozen=True)
class Verdict:
    probe: Probe
    word: str  # "crossed", "open", "own", or what it was refused with
    words: str

    def is_crossing(self) -> bool:
        return self.word in ("crossed", "open")

    def is_wanted(self, tier: str, network: str) -> bool:
        if self.is_crossing():
            return tier in self.probe.leaves or (network == "host" and self.probe.shared)
        return self.word in self.probe.wants[tier]

    def __str__(self) -> str:
        return f"{self.probe.room:9} {self.probe.name:46} {self.word:14} {self.words[:110]!r}"


class World:
    def __init__(self, daemon: Daemon, proxy_secret: str) -> None:
        self.daemon = daemon
        self.token = secrets.token_hex(6)
        self.secret = f"secret-{secrets.token_hex(12)}"
        self.a = self.user("alice", proxy_secret)
        self.b = self.user("bob", proxy_secret)
        self.b_files = daemon.work / "users" / "bob"
        self.machine = machines_address()
        secret = f"outside-{self.token}-{secrets.token_hex(8)}"
        self.outside = Outside(self.machine, daemon.home / "bus", secret)
        self.facts: dict[str, Any] = self.names()
        private = daemon.home / "private"
        private.touch(mode=0o600)
        private.write_text(self.secret)
        self.a.run("here = 1")
        self.set_up_b()
        self.find_processes()
        self.find_files()
        self.known = self.what_only_victims_know(proxy_secret)

    def user(self, name: str, proxy_secret: str) -> Client:
        client = self.daemon.client()
        client.extra = {USER_HEADER: name, "X-Vivarium-Proxy-Secret": proxy_secret}
        return client

    def names(self) -> dict[str, Any]:
        daemon = self.daemon
        return {
            "b": str(self.b_files),
            "b_name": "bob",
            "b_temporary": f"/tmp/vivarium-attack-{self.token}",
            "home": str(daemon.home),
            "state": str(daemon.state),
            "runtime": str(daemon.runtime),
            "pyside": str(REPO / "pyside" / "vivarium_kernel"),
            "mark": f"-{self.token}",  # in names where other tests plant at the same time
            "abstract": f"vivarium-{self.token}",
            "shm": f"vivarium-{self.token}",
            "queue": f"vivarium-{self.token}",
            "sysv_key": random.randrange(1 << 20, 1 << 30),
            "key_name": f"vivarium-{self.token}",
            "machine": self.machine,
            "outside": self.outside.tcp.getsockname()[1],
            "bus": str(daemon.home / "bus"),
            "outside_udp": self.outside.udp.getsockname()[1],
            "door": daemon.port,
            "door_host": daemon.env["VIVARIUM_HOST"],
            "user_header": USER_HEADER,
            "manager": daemon.pid,
            "disk": self.disk(),
            # Where B may not make something, nothing has these.
            "terminal": "/dev/pts/0",
            "connection": (1, 2),
            **dict.fromkeys(PORTS, 1),
            **dict.fromkeys(("shmid", "doomed_shmid", "key", "key_to_change"), 0x7FFFFFF0),
            "fd": 0x7FFFFFF0,
        }

    @staticmethod
    def disk() -> tuple[int, int]:
        device = os.stat("/").st_dev
        return os.major(device), os.minor(device)

    # ---- B ----

    def set_up_b(self) -> None:
        told = self.facts | {
            "secret": self.secret,
            "token": self.token,
            "temporary": self.facts["b_temporary"],
            "files": [probe.name for probe in REGISTRY.values() if probe.room == "files"],
            "children": self.victims_among_children(),
            "buffers": BUFFERS,
            "niceness": NICENESS,
            "files_of_a_child": FILES_OF_A_CHILD,
        }
        cell = loading(("victim", HERE / "victim.py"))
        result = self.b.run(f"{cell}import victim\nvictim.setup({told!r})")
        assert result.exit_code == 0, result.text
        answer = json.loads(result.data["stdout"])
        self.facts |= answer["made"]
        self.missing: dict[str, str] = {}
        self.bystander: subprocess.Popen[str] | None = None
        if answer["missing"]:
            self.set_up_bystander(told | {"only": list(answer["missing"])})
        cell_number = int(self.b.run("x = 1").data["execution_count"])
        wait_until(lambda: self.daemon.saved_upto("bob") >= cell_number, 20, "B's state is saved")

    def set_up_bystander(self, told: dict[str, Any]) -> None:
        """A program of the daemon's own user, without walls, makes what B may not."""
        user = os.stat(self.daemon.work).st_uid
        self.bystander = subprocess.Popen(
            [sys.executable, HERE / "victim.py"],
            cwd=self.b_files,
            user=None if user == os.getuid() else user,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        answer = self.ask_bystander(json.dumps(told))
        self.missing = answer["missing"]
        self.facts |= answer["made"]

    def ask_bystander(self, line: str) -> dict[str, Any]:
        if self.bystander is None:
            return {}
        assert self.bystander.stdin
        assert self.bystander.stdout
        self.bystander.stdin.write(line + "\n")
        answer: dict[str, Any] = json.loads(self.bystander.stdout.readline())
        return answer

    @staticmethod
    def victims_among_children() -> list[str]:
        return [
            probe.name
            for probe in REGISTRY.values()
            if probe.room in ("processes", "proc") and probe.name not in BUFFERS
        ]

    def find_processes(self) -> None:
        mark = f"VICTIM={self.token}:".encode()
        self.children: dict[str, int] = {}
        for pid in all_pids():
            for line in read_proc(pid, "environ").split(b"\0"):
                if line.startswith(mark):
                    self.children[line[len(mark) :].decode()] = pid
        kernel = parent_of(next(iter(self.children.values())))
        self.facts |= {
            "children": self.children,
            "b_child": self.children["proc_environment_of_bs_child"],
            "b_kernel": kernel,
            "b_supervisor": parent_of(kernel),
        }

    def find_files(self) -> None:
        daemon = self.daemon
        saved = daemon.state / "snapshots" / "bob"
        generations = sorted((saved / "generations").glob("*.json"), key=lambda it: int(it.stem))
        arguments = read_proc(self.facts["b_supervisor"], "cmdline").decode()
        found = re.search(re.escape(str(daemon.runtime)) + r"[^\0]*", arguments)
        sockets_of_kernels = sorted(daemon.runtime.rglob("k-1"), key=lambda k: k.stat().st_ctime_ns)
        self.facts |= {
            "saved": str(saved),
            "my_saved": str(saved.with_name("alice")),
            "manifest": str(generations[-1]),
            "chunk": str(next((saved / "chunks").iterdir())),
            "secret_inode": (self.b_files / "secret").stat().st_ino,
            "b_runtime": found[0] if found else str(sockets_of_kernels[-1].parent),
            "manager_fd": self.a_descriptor_of_the_manager(),
        }

    def a_descriptor_of_the_manager(self) -> int:
        for number in os.listdir(f"/proc/{self.daemon.pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{self.daemon.pid}/fd/{number}").startswith("/"):
                    return int(number)
        return 1

    def what_only_victims_know(self, proxy_secret: str) -> set[str]:
        daemon = self.daemon
        return {
            self.secret,
            proxy_secret,
            self.outside.secret.decode(),
            f"inode {self.facts['secret_inode']}",
            (daemon.state / "daemon" / "session.key").read_bytes()[:64].hex(),
            Path(self.facts["manifest"]).read_bytes()[:64].hex(),
            Path(self.facts["chunk"]).read_bytes()[:64].hex(),
            *(path.name for path in daemon.runtime_dirs()),
            Path(self.facts["b_temporary"]).name,
            f"{self.facts['shm']}-write",
            f"files {FILES_OF_A_CHILD}",
            f"niceness {NICENESS}",
        }

    # ---- looking at the victims from outside ----

    def state_of_child(self, pid: int) -> str:
        """All that a probe may want to change, in one line."""
        if not is_alive(pid):
            return "gone"
        stat = read_proc(pid, "stat").rpartition(b") ")[2].split()
        parts = [
            "stopped" if stat[0] in (b"T", b"t") else "runs",
            os.getpriority(os.PRIO_PROCESS, pid),
            sorted(os.sched_getaffinity(pid)),
            os.sched_getscheduler(pid),
            kit.syscall(252, 1, pid),  # ioprio_get
            *(read_proc(pid, name) for name in ("limits", "oom_score_adj", "coredump_filter")),
            read_proc(pid, "timerslack_ns"),
        ]
        return " ".join(str(part) for part in parts)

    def planted(self, name: str, *places: Path) -> list[Path]:
        names = (f"planted-{name}", f"planted-{name}{self.facts['mark']}")
        return [place / each for place in places for each in names]

    def state_of_file(self, name: str) -> str:
        places = (
            self.b_files,
            Path(self.facts["state"]),
            Path(self.facts["saved"]) / "generations",
            Path(self.facts["saved"]) / "spool",
            Path(self.facts["my_saved"]) / "generations",
            Path(self.facts["b_runtime"]),
            Path(self.facts["pyside"]),
        )
        planted = [path for path in self.planted(name, *places) if os.path.lexists(path)]
        victim = self.b_files / "victims" / name
        if not os.path.lexists(victim):
            return f"{planted}"
        status = victim.lstat()
        times = status.st_mtime_ns, status.st_ctime_ns  # not that of the last reading
        return f"{planted} {status[:7]} {times} {os.listxattr(victim)}"

    def snapshot(self) -> dict[str, str]:
        result = self.b.run("victim.report()")
        assert result.exit_code == 0, result.text
        seen: dict[str, str] = json.loads(result.data["stdout"]) | self.ask_bystander("report")
        for probe in REGISTRY.values():
            name = probe.name
            seen[name] = seen.get(name, "") + self.state_of_file(name)
            if name in self.children:
                seen[name] += self.state_of_child(self.children[name])
        return seen

    # ---- the attack ----

    def knock_at_the_door(self) -> None:
        """Tells the secret to whoever listens there."""
        request = f"GET /{self.secret} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        while self.attacking:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.daemon.port), 1) as caller,
            ):
                caller.sendall(request)
                caller.recv(1000)
            time.sleep(0.05)

    def attack(self) -> dict[str, Verdict]:
        package = HERE / "probes"
        modules = [("probes", package / "__init__.py"), ("probes.kit", package / "kit.py")]
        modules += [(room.__name__, Path(str(room.__file__))) for room in ROOMS]
        before = self.snapshot()
        outcomes: dict[str, list[str]] = {}
        self.attacking = True
        threading.Thread(target=self.knock_at_the_door, daemon=True).start()
        loaded = self.a.run(loading(*modules))
        assert loaded.exit_code == 0, loaded.text
        for room in ROOMS:
            short = room.__name__.rpartition(".")[2]
            names = [probe.name for probe in REGISTRY.values() if probe.room == short]
            cell = f"sys.modules['probes.kit'].run_rooms({names!r}, {self.facts!r})"
            result = self.a.run(cell, timeout_seconds=120)
            assert result.exit_code == 0, result.text[-3000:]
            outcomes |= json.loads((self.daemon.work / "users/alice/outcomes").read_text())
        self.attacking = False
        after = self.snapshot()
        assert set(outcomes) == set(REGISTRY)
        return {
            name: self.judge(probe, outcomes[name], before[name] != after[name])
            for name, probe in REGISTRY.items()
        }

    def judge(self, probe: Probe, outcome: list[str], changed: bool) -> Verdict:
        kind, what, words = outcome
        told = any(secret in words for secret in self.known)
        crossed = {
            TELLS: kind == "returned" and told,
            SEES: kind == "returned" and what == "yes",
            CHANGES: changed,
            OPENS: False,
        }[probe.proof]
        if crossed:
            return Verdict(probe, "crossed", words)
        if kind == "returned":
            return Verdict(probe, "open" if probe.proof == OPENS else OWN, words)
        if kind == "denied" and probe.proof == OPENS and what not in probe.wants["N"]:
            return Verdict(probe, "open", f"{what}: {words}")
        return Verdict(probe, what if kind == "denied" else f"{kind} {what}".strip(), words)

    def clean_up(self) -> None:
        self.outside.close()
        for name in REGISTRY:
            for path in self.planted(name, Path(self.facts["pyside"])):
                path.unlink(missing_ok=True)
        self.b.run("victim.clean_up()")
        if self.bystander:
            self.bystander.communicate(timeout=10)


@contextlib.contextmanager
def world(home: Path, env: dict[str, str], **options: Any) -> Iterator[World]:
    proxy_secret = secrets.token_hex(16)
    env = {
        "VIVARIUM_WALLS": "off",
        "VIVARIUM_HOST": "0.0.0.0",
        "VIVARIUM_ANONYMOUS": "1",
        "VIVARIUM_ALLOWED_HOSTS": machines_address(),
        "VIVARIUM_USER_HEADER": USER_HEADER,
        "VIVARIUM_PROXY_SECRET": proxy_secret,
        **env,
    }
    daemon = Daemon(home, env=env, **options)
    try:
        made = World(daemon, proxy_secret)
        try:
            yield made
        finally:
            made.clean_up()
        daemon.stop()
    finally:
        daemon.clean_up()
