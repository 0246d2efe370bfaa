# SPDX-License-Identifier: MIT
"""One workspace of the soak: what is asked of it at random, and what may come back."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import random
import secrets
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness import NEWEST, PNG_MAGIC, Reply, Result

PROXY_SECRET = "soak-proxy-secret"
STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"
OVERTAKEN_S = 0.3  # two requests sent within this time may be read in either order
DEADLINE_S = 150  # of any answer: 120 s for a kernel, a call's own time, and some
# A notice with one of these ends a namespace, or some of its cells.
LOST = ("gone", "is lost", "Vivarium was killed", "fresh:")

# Each cell says what it found, so that a foreign or lost namespace shows at once.
PRELUDE = """\
print(globals().get("secret", "nothing"), n := globals().get("n", 0) + 1)
secret = {token!r}
"""
FIGURE = """\
import matplotlib.pyplot as plt
_ = plt.figure(facecolor="#" + secret[:6])
_ = plt.plot([1, n, 2])
"""
STUBBORN = """\
import time
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""
DIE = "import os\nos.kill(os.getpid(), 9)\n"
LEAVE = "import sys\nsys.exit(3)\n"
CHILD = "import subprocess\nkid = subprocess.Popen(['sleep', '600'])\n"
THREAD = """\
import threading, time
threading.Thread(target=time.sleep, args=(5,)).start()
"""
KEEPS = {"ok", "error", "timed_out", "cancelled"}  # ends after which the kernel lives


def first_pixel(png: bytes) -> bytes:
    """Red, green, blue of the upper left corner, which no filter of PNG changes."""
    at, data = len(PNG_MAGIC), b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    return zlib.decompress(data)[1:4]


class World(Protocol):
    """What a player sees of the soak around it."""

    port: int
    generation: int  # which daemon, counted from 0
    restarting: bool
    paused_at: float  # when the daemon was last stopped for a moment
    killed_before: bool  # the daemon before this one ended by SIGKILL

    def check(self, ok: bool, words: str) -> bool: ...


class DisturbedError(Exception):
    """The daemon went away during a request, as it was told to."""


@dataclass
class Pending:
    """A request that was sent and not yet answered."""

    world: World
    what: str
    connection: http.client.HTTPConnection
    generation: int
    sent: float

    def disturbed(self) -> bool:
        return self.world.restarting or self.world.generation != self.generation

    def reply(self) -> Reply:
        """The whole answer; comments that keep a stream alive do not extend its time."""
        try:
            response = self.connection.getresponse()
            body = b""
            while part := response.read1(1 << 20):
                body += part
                if time.monotonic() - self.sent > DEADLINE_S:
                    raise TimeoutError
            return Reply(response.status, response.headers, body)
        except (OSError, http.client.HTTPException) as error:
            if not self.disturbed():
                gone = f"no answer, {error!r} after {time.monotonic() - self.sent:.1f} s"
                self.world.check(False, f"{self.what}: {gone}")
            raise DisturbedError from error
        finally:
            self.connection.close()

    def drop(self) -> None:
        self.connection.close()


@dataclass
class Player:
    """Owned by one thread; last_blow alone is written by another."""

    world: World
    name: str
    rng: random.Random
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    session: str = ""
    last_blow: float = -1e9  # when its kernel was last killed from outside
    alive_at: float = 0.0  # its kernel was known to live
    held: int = -1  # the generation whose kernel holds our names, or -1
    count: int = 0  # n of the last cell
    ids: Iterable[int] = field(default_factory=itertools.count)
    streams: list[Pending] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)

    # ---- requests ----

    def headers(self) -> dict[str, str]:
        return {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "X-User-ID": self.name,
            "X-Vivarium-Proxy-Secret": PROXY_SECRET,
        }

    def send(self, method: str, headers: dict[str, str], body: bytes, what: str) -> Pending:
        world = self.world
        connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=DEADLINE_S)
        what = f"{self.name} {what}"
        pending = Pending(world, what, connection, world.generation, time.monotonic())
        try:
            connection.request(method, "/mcp", body, headers)
        except OSError as error:
            connection.close()
            if not pending.disturbed():
                world.check(False, f"{pending.what}: cannot send: {error!r}")
            raise DisturbedError from error
        return pending

    def message(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(iter(self.ids)), "method": method}
        return message if params is None else message | {"params": params}

    def post(self, message: dict[str, Any], what: str, *, stateless: bool = False) -> Pending:
        headers = self.headers()
        if stateless:
            meta = {
                f"{META}protocolVersion": STATELESS,
                f"{META}clientCapabilities": {},
                f"{META}clientInfo": {"name": "soak", "version": "1"},
            }
            message["params"] = message.get("params", {}) | {"_meta": meta}
            headers |= {"MCP-Protocol-Version": STATELESS, "Mcp-Method": message["method"]}
            if "name" in message["params"]:
                headers["Mcp-Name"] = message["params"]["name"]
        else:
            headers |= {"MCP-Protocol-Version": NEWEST, "Mcp-Session-Id": self.session}
        return self.send("POST", headers, json.dumps(message).encode(), what)

    def answer(self, pending: Pending, message: dict[str, Any]) -> dict[str, Any]:
        """The result that belongs to the message."""
        reply = pending.reply()
        ok = reply.status == 200 or (reply.status == 503 and pending.disturbed())
        self.world.check(ok, f"{pending.what}: HTTP {reply.status} {reply.body[:300]!r}")
        if reply.status != 200:
            raise DisturbedError
        found = reply.messages()
        fits = len(found) == 1 and found[0].get("id") == message["id"] and "result" in found[0]
        if not self.world.check(fits, f"{pending.what}: answered {str(found)[:600]}"):
            raise DisturbedError
        result: dict[str, Any] = found[0]["result"]
        return result

    def begin(self) -> None:
        """One session, kept over all restarts of the daemon."""
        params = {
            "protocolVersion": NEWEST,
            "capabilities": {},
            "clientInfo": {"name": "soak", "version": "1"},
        }
        body = json.dumps(self.message("initialize", params)).encode()
        reply = self.send("POST", self.headers(), body, "initialize").reply()
        self.world.check(reply.status == 200, f"{self.name} initialize: {reply.status}")
        self.session = reply.headers["Mcp-Session-Id"]

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        message = self.message(method, params)
        return self.answer(self.post(message, method), message)

    def tool(self, name: str, **arguments: object) -> Result:
        message = self.message("tools/call", {"name": name, "arguments": arguments})
        pending = self.post(message, name, stateless=self.rng.random() < 0.3)
        return Result(self.answer(pending, message))

    # ---- cells ----

    def start(self, code: str, **options: object) -> tuple[Pending, dict[str, Any]]:
        arguments = {"code": PRELUDE.format(token=self.token) + code, **options}
        message = self.message("tools/call", {"name": "run_python", "arguments": arguments})
        what = f"cell {code.strip().splitlines()[-1][:50]!r}" if code.strip() else "cell"
        return self.post(message, what, stateless=self.rng.random() < 0.3), message

    def finish(self, begun: tuple[Pending, dict[str, Any]], *ends: str) -> Result:
        """The answer, which must have one of these ends or a disturbance to excuse it."""
        pending, message = begun
        try:
            result = Result(self.answer(pending, message))
        except DisturbedError:
            self.held = -1
            raise
        if "structuredContent" not in result.raw:
            stops = pending.disturbed() and "stopping" in result.text
            self.world.check(stops, f"{pending.what}: refused: {result.text[:300]}")
            raise DisturbedError
        end, notice = result.data["end"], result.data["notice"]
        self.outcomes[end] = self.outcomes.get(end, 0) + 1
        ok = end in ends or self.is_excused(end, notice, pending)
        self.world.check(ok, f"{pending.what}: {end}, not {ends}: {result.text[:500]}")
        if "Vivarium was killed" in notice:
            self.world.check(self.world.killed_before, f"{pending.what}: untrue: {notice}")
        self.look_at_names(result, pending)
        return result

    def is_excused(self, end: str, notice: str, pending: Pending) -> bool:
        if end in ("kernel_died", "cancelled") and pending.disturbed():
            return True
        if end == "kernel_died" and self.last_blow >= self.alive_at:
            return True
        if end == "not_run":
            blown = "The kernel " in notice and self.last_blow >= self.alive_at
            stops = "stopping" in notice and pending.disturbed()
            return blown or stops or "VIVARIUM_MAX_KERNELS" in notice
        return False

    def look_at_names(self, result: Result, pending: Pending) -> None:
        end, notice = result.data["end"], result.data["notice"]
        told = any(word in notice for word in LOST)
        if end == "not_run":
            self.held = -1 if told else self.held
            return
        words = result.data["stdout"].split(maxsplit=2)
        if len(words) >= 2:
            mine = words[0] == self.token
            fits = mine or words[0] == "nothing"
            self.world.check(fits, f"{pending.what}: FOREIGN NAMESPACE: {words[0]}")
            back = mine or "restored, as after" not in notice
            self.world.check(back, f"{pending.what}: said to be restored: {result.text[:300]}")
            if self.held == pending.generation and not told:
                same = mine and int(words[1]) == self.count + 1
                was = f"n was {self.count}, now {words[:2]}, and nobody said why"
                self.world.check(same, f"{pending.what}: {was}: {result.text[:300]}")
            self.count = int(words[1])
        elif end in ("ok", "error"):
            self.world.check(False, f"{pending.what}: output is missing: {result.text[:300]}")
        kept = end in KEEPS and len(words) >= 2 and not pending.disturbed()
        self.held = pending.generation if kept else -1
        self.alive_at = pending.sent

    def run(self, code: str, *ends: str, **options: object) -> Result:
        return self.finish(self.start(code, **options), *(ends or ("ok",)))

    # ---- what is played ----

    def quick(self) -> Result:
        a, b = self.rng.randrange(10**6), self.rng.randrange(10**6)
        result = self.run(f"{a} * {b}")
        if result.data["end"] == "ok":
            fine = result.data["result"] == str(a * b)
            self.world.check(fine, f"{self.name}: {a} * {b}: {result.text}")
        return result

    def quick_for_sure(self) -> None:
        """When nothing disturbs: no excuses."""
        result = self.quick()
        self.world.check(result.data["end"] == "ok", f"{self.name}: refused: {result.text}")

    def refused_for_sure(self, word: str) -> None:
        result = self.run("", "not_run")
        self.world.check(word in result.text, f"{self.name}: {word} is not in {result.text}")

    def look_at_lines(self, result: Result, lines: Iterable[str]) -> None:
        """All that the cell printed after the prelude's line."""
        if result.data["end"] == "ok":
            printed, wanted = result.data["stdout"].splitlines()[1:], list(lines)
            words = f"{self.name}: {len(printed)} lines, not {len(wanted)}: {result.text[-200:]}"
            self.world.check(printed == wanted, words)

    def prints(self) -> None:
        lines = self.rng.randrange(1, 300)
        result = self.run(f"for i in range({lines}): print('line', i)")
        self.look_at_lines(result, (f"line {i}" for i in range(lines)))

    def error(self) -> None:
        result = self.run("1 / 0", "error")
        if result.data["end"] == "error":
            name = result.data["error"]["name"]
            self.world.check(name == "ZeroDivisionError", f"{self.name}: {name}")

    def figure(self) -> None:
        result = self.run(FIGURE)
        if result.data["end"] == "ok":
            fine = len(result.images) == 1 and result.images[0].startswith(PNG_MAGIC)
            self.world.check(fine, f"{self.name}: {len(result.images)} images: {result.text}")
            mine = fine and first_pixel(result.images[0]) == bytes.fromhex(self.token[:6])
            self.world.check(mine, f"{self.name}: FOREIGN PICTURE")

    def timeout(self) -> None:
        kinds = ("import time\ntime.sleep(60)", "import asyncio\nawait asyncio.sleep(60)")
        self.run(self.rng.choice(kinds), "timed_out", timeout_seconds=1)

    def stubborn(self) -> None:
        self.run(STUBBORN, "killed", timeout_seconds=1)
        self.held = -1

    def fresh(self) -> None:
        self.held = -1
        self.run("", fresh=True)

    def die(self) -> None:
        self.run(DIE, "kernel_died")
        self.held = -1

    def leave(self) -> None:
        self.run(self.rng.choice((LEAVE, "exit()")), "error", "ok")
        self.held = -1  # exit() takes the kernel along

    def child(self) -> None:
        self.run(self.rng.choice((CHILD, THREAD)))

    def big(self) -> None:
        size = self.rng.choice((10**5, 10**6, 8 * 10**6))
        result = self.run(f"print('x' * {size})\nprint('end')")
        if result.data["end"] == "ok":
            fine = result.data["stdout"].rstrip().endswith("end")
            self.world.check(fine, f"{self.name}: the end of {size} bytes is missing")

    def displays(self) -> None:
        self.look_at_lines(self.run("for i in range(500): display(i)"), map(str, range(500)))

    def cancelled(self) -> None:
        begun = self.start("import time\ntime.sleep(30)")
        pending, message = begun
        delay = self.rng.random() * 1.5
        time.sleep(delay)  # anywhere in its life
        if "_meta" in message["params"]:
            pending.drop()  # since 2026-07-28, to leave is to cancel
            self.held = -1
            return
        note = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": message["id"]},
        }
        try:
            status = self.post(note, "cancel").reply().status
        except DisturbedError:
            self.held = -1
            pending.drop()
            raise
        self.world.check(status == 202, f"{self.name}: a notification was answered {status}")
        sent = time.monotonic()
        again = threading.Timer(3, self.cancel_again, [note])
        if delay < OVERTAKEN_S or self.world.paused_at > pending.sent:
            again.start()
        result = self.finish(begun, "cancelled", "not_run", "killed", "ok")
        again.cancel()
        took = time.monotonic() - sent
        self.world.check(took < 20, f"{self.name}: cancelling took {took:.1f} s: {result.text}")

    def cancel_again(self, note: dict[str, Any]) -> None:
        """The first may have overtaken its request, on a connection of its own."""
        with contextlib.suppress(DisturbedError):
            self.post(note, "cancel again").reply()

    def disconnect(self) -> None:
        pending, _ = self.start("import time\ntime.sleep(0.3)")
        time.sleep(self.rng.random() * 0.5)
        pending.drop()
        self.held = -1  # nobody saw the answer, and with it a notice

    def burst(self) -> None:
        """Several at once: each runs once, whatever the order."""
        held, count = self.held, self.count
        self.held = -1
        results = []
        begun = [self.start("") for _ in range(3)]
        for one in begun:
            with contextlib.suppress(DisturbedError):
                results.append(self.finish(one, "ok"))
                self.held = -1
        ran = [r.data["stdout"].split() for r in results if r.data["end"] == "ok"]
        told = any(word in r.data["notice"] for r in results for word in LOST)
        if len(ran) == 3 and held == begun[0][0].generation and not told:
            numbers = sorted(int(words[1]) for words in ran)
            wanted = [count + 1, count + 2, count + 3]
            self.world.check(numbers == wanted, f"{self.name}: a burst ran as {numbers}")

    def files(self) -> None:
        written = self.run("with open('mine.txt', 'w') as f: f.write(secret)")
        there = written.data["end"] == "ok"
        result = self.tool("read_text_file", path="mine.txt")
        if there or not result.is_error:
            self.world.check(self.token in result.text, f"{self.name}: FOREIGN FILE {result.text}")
        missing = self.tool("read_text_file", path=f"none-{self.rng.randrange(9)}.txt")
        self.world.check(missing.is_error, f"{self.name}: read what is not there")
        wrote = self.tool("write_file", path="in/theirs.txt", content=self.token)
        self.world.check(not wrote.is_error, f"{self.name}: write: {wrote.text}")
        got = str(self.ask("resources/read", {"uri": "workspace:///in/theirs.txt"}))
        self.world.check(self.token in got, f"{self.name}: FOREIGN RESOURCE {got}")
        result = self.tool("list_files")
        if there:
            self.world.check("mine.txt" in result.text, f"{self.name}: files: {result.text}")

    def small(self) -> None:
        self.world.check(self.ask("ping") == {}, f"{self.name}: ping")
        tools = self.ask("tools/list")["tools"]
        self.world.check(len(tools) >= 3, f"{self.name}: {len(tools)} tools")

    def stream(self) -> None:
        """An idle GET stream more, or one less."""
        if len(self.streams) >= 2:
            self.streams.pop(0).drop()
            return
        headers = self.headers() | {"Mcp-Session-Id": self.session}
        pending = self.send("GET", headers, b"", "GET")
        try:
            status = pending.connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            if not pending.disturbed():
                self.world.check(False, f"{self.name}: GET: {error!r}")
            raise DisturbedError from error
        fine = status == 200 or (status == 503 and pending.disturbed())
        self.world.check(fine, f"{self.name}: GET {status}")
        self.streams.append(pending)

    def nonsense(self) -> None:
        """What must be refused, in the words that belong to it."""
        good = self.headers() | {"Mcp-Session-Id": self.session}
        ping = json.dumps(self.message("ping")).encode()
        call = {"name": "list_files", "arguments": {}}
        files = json.dumps(self.message("tools/call", call)).encode()
        body, headers, status = self.rng.choice(
            (
                (b'{"jsonrpc":', good, 400),
                (ping, good | {"Mcp-Session-Id": "nobody"}, 404),
                (ping, good | {"Content-Type": "text/plain"}, 415),
                (ping, good | {"Origin": "http://elsewhere.example"}, 403),
                (files, good | {"X-User-ID": "{{USER}}"}, 200),
                (files, good | {"X-Vivarium-Proxy-Secret": "wrong"}, 200),
            )
        )
        pending = self.send("POST", headers, body, f"nonsense for {status}")
        reply = pending.reply()
        fine = reply.status == status or (reply.status == 503 and pending.disturbed())
        self.world.check(fine, f"{pending.what}: {reply.status} {reply.body[:200]!r}")
        if reply.status == 200:
            refused = reply.messages()[0]["result"]["isError"]
            self.world.check(refused, f"{pending.what}: let in: {reply.body[:200]!r}")

    def close(self) -> None:
        for stream in self.streams:
            stream.drop()
        self.streams.clear()


Move = Callable[[Player], object]
MOVES: dict[Move, int] = {
    Player.quick: 30,
    Player.prints: 10,
    Player.error: 8,
    Player.figure: 4,
    Player.timeout: 4,
    Player.stubborn: 1,
    Player.fresh: 3,
    Player.die: 2,
    Player.leave: 3,
    Player.child: 3,
    Player.big: 4,
    Player.displays: 2,
    Player.cancelled: 5,
    Player.disconnect: 5,
    Player.burst: 4,
    Player.files: 6,
    Player.small: 10,
    Player.stream: 5,
    Player.nonsense: 6,
}


def play(player: Player) -> str:
    """One move; returns its name."""
    move = player.rng.choices(list(MOVES), list(MOVES.values()))[0]
    with contextlib.suppress(DisturbedError):
        if not player.session:
            player.begin()
        move(player)
    return move.__name__
