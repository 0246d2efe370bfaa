# SPDX-License-Identifier: MIT
"""Bombs in JSON, from clients and from kernels, and in pictures: memory stays bounded, and
the session and the kernel live on.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import any_python, run_daemon
from harness import BUILD, PNG_MAGIC, Client, Daemon, read_proc, wait_until
from world import loading

HERE = Path(__file__).parent
MB = 1 << 20
BOMB_BYTES = 24 * MB
# Of JSON, unguarded, 1.9 GB.  A message is there as it came, cleaned and repaired.
GROWTH_MAX_KB = 12 * BOMB_BYTES // 1024
IMAGE_MAX_KB = 100_000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    yield from run_daemon(
        tmp_path_factory.mktemp("bombs"), env={"VIVARIUM_PYTHON": str(any_python())}
    )


@pytest.fixture
def client(daemon: Daemon) -> Client:
    client = daemon.client()
    client.run(loading(("hostile_kernel", HERE / "hostile_kernel.py")) + "import hostile_kernel")
    return client


class Peak:
    """How far a process's memory grew at its highest."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.before = self.highest()

    def highest(self) -> int:
        found = re.search(rb"VmHWM:\s+(\d+) kB", read_proc(self.pid, "status"))
        assert found
        return int(found[1])

    def grown_kb(self) -> int:
        return self.highest() - self.before


# ---- from clients ----

CALL = (
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_python","arguments":%s}}'
)


@pytest.mark.parametrize("unit", ["{}", "[]", "0", '""', '{"a":0}', "[[]]"])
@pytest.mark.parametrize("around", ['{"code":"1","x":[%s]}', '{"code":[%s]}'])
def test_a_clients_bomb_is_refused_in_words(
    daemon: Daemon, client: Client, unit: str, around: str
) -> None:
    body = CALL % (around % ",".join([unit] * (3 * MB // (len(unit) + 1))))
    peak = Peak(daemon.pid)
    reply = client.post(body.encode())
    assert reply.status == 400
    assert "more values than fit into 16 MiB" in reply.json()["error"]["message"]
    assert peak.grown_kb() < 32_000
    assert client.run("1 + 1").data["result"] == "2"


@pytest.mark.parametrize(
    "value",
    ["[" * 10_000 + "]" * 10_000, "1e999", str(2**63), "-1e999", '"\\ud800"', "NaN"],
    ids=["deep", "huge", "beyond 64 bits", "huge and negative", "half a pair", "NaN"],
)
def test_what_json_cannot_hold_is_a_clients_error(client: Client, value: str) -> None:
    reply = client.post((CALL % f'{{"code":"1","x":{value}}}').encode())
    assert reply.status == 400
    assert reply.json()["error"]["code"] == -32700
    assert client.run("1 + 1").data["result"] == "2"


def test_of_two_codes_the_last_is_run(client: Client) -> None:
    """As Python and JavaScript read it: a proxy that looks inside sees the same."""
    reply = client.post((CALL % '{"code":"1","code":"2"}').encode())
    (answer,) = reply.messages()
    assert answer["result"]["structuredContent"]["result"] == "2"


def test_a_name_of_three_megabytes_is_no_argument(client: Client) -> None:
    reply = client.post((CALL % ('{"code":"1","%s":1}' % ("x" * 3 * MB))).encode())
    assert reply.status == 200
    assert len(reply.body) < 10_000


# ---- from kernels ----

BUNDLE = b'{"data":{"text/plain":"kept","x":%s},"metadata":{},"transient":{}}'
VALUES = {
    "huge": "b'1e999'",
    "beyond 64 bits": "str(2**70).encode()",
    "NaN": "b'NaN'",
    "deep": "b'['*10_000 + b']'*10_000",
    "half a pair": "b'\"\\\\ud800\"'",
    "NUL": "b'\"\\\\u0000\"'",
    "no UTF-8": "b'\"\\xff\\xfe\"'",
    "twice": 'b\'{"a":1,"a":2}\'',
    "objects": f"b'[' + b'{{}},' * ({BOMB_BYTES} // 3) + b'0]'",
    "arrays": f"b'[' + b'[],' * ({BOMB_BYTES} // 3) + b'0]'",
    "members": f"b'[' + b'{{\"a\":{{}}}},' * ({BOMB_BYTES} // 9) + b'0]'",
}


@pytest.mark.parametrize("value", VALUES)
def test_of_a_kernels_message_the_text_arrives(daemon: Daemon, client: Client, value: str) -> None:
    kernel = client.run("import os; os.getpid()").data["result"]
    peak = Peak(daemon.pid)
    result = client.run(
        f"hostile_kernel.broadcast('display_data', {BUNDLE!r} % ({VALUES[value]}))\nprint('after')"
    )
    assert result.exit_code == 0
    assert "kept" in result.data["stdout"]
    assert "after" in result.data["stdout"]
    assert peak.grown_kb() < GROWTH_MAX_KB
    assert client.run("os.getpid()").data["result"] == kernel


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (rb"a\ud800b", "a\ufffdb"),
        (rb"a\udc00\ud800b", "a\ufffd\ufffdb"),
        (rb"a\u0000b", "a\ufffdb"),
        (b"a\xffb", "a\ufffdb"),
        (b"a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"),
        (b"a\xf4\x90\x80\x80b", "a\ufffd\ufffd\ufffd\ufffdb"),
        (rb"a\ud83d\ude00b", "a\U0001f600b"),
    ],
)
def test_what_json_cannot_hold_is_shown_as_unknown(
    client: Client, written: bytes, shown: str
) -> None:
    content = b'{"name":"stdout","text":"%s"}' % written
    result = client.run(f"hostile_kernel.broadcast('stream', {content!r})")
    assert result.data["stdout"] == shown
    assert shown in result.text


def test_a_bomb_where_it_is_read_costs_only_its_message(daemon: Daemon, client: Client) -> None:
    peak = Peak(daemon.pid)
    result = client.run(
        'bomb = b\'{"ename":"E","evalue":"","traceback":[\' + b\'0,\' * 10_000_000 + b\'0]}\'\n'
        "hostile_kernel.broadcast('error', bomb)\ndel bomb\nprint('after')"
    )
    assert result.data["stdout"] == "after\n"
    assert peak.grown_kb() < GROWTH_MAX_KB
    assert client.run("1 + 1").data["result"] == "2"


@pytest.mark.parametrize("metadata", ['b\'{"vivarium":[\' + b"{}," * 2_000_000 + b"0]}"', "b'['"])
def test_a_spoilt_reply_ends_its_call_and_the_next_one_works(
    daemon: Daemon, client: Client, metadata: str
) -> None:
    peak = Peak(daemon.pid)
    result = client.run(f"hostile_kernel.spoil_reply({metadata})")
    assert result.data["stdout"] == ""
    assert peak.grown_kb() < GROWTH_MAX_KB
    assert client.run("1 + 1").data["result"] == "2"


def until_it_is_through(client: Client) -> None:
    """The kernel's own broadcasts come behind what it was made to send."""
    wait_until(lambda: client.run("1 + 1").data["result"] == "2", 45)


@pytest.mark.parametrize("parts", ["[b'x' * 4_000_000] * 60", "[b'x'] * 300_000"])
def test_a_message_of_endless_parts_takes_no_memory(
    daemon: Daemon, client: Client, parts: str
) -> None:
    """No part is over a limit, and none is the last."""
    peak = Peak(daemon.pid)
    result = client.run(
        "thread = hostile_kernel.kernel().iopub_thread\n"
        f"thread.schedule(lambda: thread.socket.send_multipart({parts}, copy=False))\n"
        "print('after')",
        timeout_seconds=50,
    )
    assert result.exit_code == 0
    assert "after" in result.text or "may be missing" in result.text
    until_it_is_through(client)
    # As much as one message may have, and what its buffer grew by.
    assert peak.grown_kb() < 200_000


def test_messages_wait_in_the_kernel_that_sends_them(daemon: Daemon, client: Client) -> None:
    """The daemon takes one at a time, and no more than it can hold."""
    peak = Peak(daemon.pid)
    result = client.run(
        "thread = hostile_kernel.kernel().iopub_thread\nlarge = b'x' * 20_000_000\n"
        "for _ in range(40): thread.schedule(lambda: thread.socket.send(large, copy=False))\n"
        "print('after')",
        timeout_seconds=50,
    )
    assert result.exit_code == 0
    assert "after" in result.text or "may be missing" in result.text
    until_it_is_through(client)
    assert peak.grown_kb() < 200_000


def test_a_message_for_another_call_is_nobodys(client: Client) -> None:
    """It must name the call that runs; a kernel knows, or guesses, the names of others."""
    content = b'{"name":"stdout","text":"forged"}'
    mine = "hostile_kernel.kernel().get_parent('shell')"
    result = client.run(
        f"earlier = {mine}\n"
        f"for other in 'made-up', '', earlier['header']['msg_id'] + '0':\n"
        f"    header = dict(earlier['header'], msg_id=other)\n"
        f"    hostile_kernel.broadcast('stream', {content!r}, parent={{'header': header}})\n"
        "print('mine')"
    )
    assert result.data["stdout"] == "mine\n"
    late = client.run(
        "hostile_kernel.broadcast('status', b'{\"execution_state\":\"idle\"}', parent=earlier)\n"
        "import time; time.sleep(0.3); print('to the end')"
    )
    assert late.data["stdout"] == "to the end\n"


# ---- pictures ----


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, *more: bytes, interlaced: int = 0, rows: int | None = None
) -> bytes:
    """Black, one bit a pixel: 30,000 rows of 30,000 take 109 KB."""
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, interlaced)
    squeeze = zlib.compressobj(9)
    row = b"\0" * (1 + (width + 7) // 8)
    data = b"".join(squeeze.compress(row) for _ in range(height if rows is None else rows))
    body = [chunk(b"IHDR", head), *more, chunk(b"IDAT", data + squeeze.flush())]
    return PNG_MAGIC + b"".join(body) + chunk(b"IEND", b"")


ZEROS = zlib.compress(bytes(200 * MB), 9)
# None of these makes a picture; each took, or would take, gigabytes or minutes.
PICTURES: dict[str, Callable[[], bytes]] = {
    "30,000 wide": lambda: png(30_000, 30_000),
    "30,000 wide, interlaced": lambda: png(30_000, 30_000, interlaced=1, rows=10),
    "as wide as can be said": lambda: png(0x7FFFFFFF, 1, rows=0),
    "wider than can be said": lambda: png(0xFFFFFFFF, 0xFFFFFFFF, rows=0),
    "no width": lambda: png(0, 10),
    "a length that lies": lambda: PNG_MAGIC + struct.pack(">I", 0x7FFFFFFF) + b"IHDR" + bytes(100),
    "no end": lambda: png(100, 100)[:-20],
}
# Of these the picture is shown, and what is around it is not unpacked.
HARMLESS: dict[str, Callable[[], bytes]] = {
    "a profile that unpacks to 200 MB": lambda: png(20, 20, chunk(b"iCCP", b"p\0\0" + ZEROS)),
    "a text that unpacks to 200 MB": lambda: png(20, 20, chunk(b"zTXt", b"t\0\0" + ZEROS)),
    "a word that unpacks to 200 MB": lambda: png(20, 20, chunk(b"iTXt", b"t\0\1\0\0\0" + ZEROS)),
    "100,000 texts": lambda: png(20, 20, *([chunk(b"tEXt", b"a\0b")] * 100_000)),
    "100,000 unknown pieces": lambda: png(20, 20, *([chunk(b"teSt", b"abc")] * 100_000)),
    "rows for another 200 MB": lambda: png(20, 20).replace(
        png(20, 20)[33:-12], chunk(b"IDAT", ZEROS)
    ),
}


# Memory at its highest counts from before the exec: hence a small process in between.
BETWEEN = (
    "import os, sys\n"
    "use = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[2], sys.argv[2:]), 0)\n"
    "open(sys.argv[1], 'w').write(f'{os.waitstatus_to_exitcode(use[1])} {use[2].ru_maxrss}')\n"
)


def run_helper(data: bytes, tmp_path: Path) -> tuple[int, bytes, bytes, int]:
    """Exit status, picture, words, most memory in KB."""
    told = tmp_path / "told"
    command = [sys.executable, "-ISc", BETWEEN, str(told)]
    command += [str(BUILD / "vivarium-image"), "1280", str(MB)]
    ran = subprocess.run(command, input=data, capture_output=True, env={}, check=True)
    status, memory_kb = map(int, told.read_text().split())
    return status, ran.stdout, ran.stderr, memory_kb


@pytest.mark.parametrize("name", PICTURES)
def test_a_bomb_is_no_picture(name: str, tmp_path: Path) -> None:
    status, out, words, memory_kb = run_helper(PICTURES[name](), tmp_path)
    assert status == 1
    assert out == b""
    assert words.count(b"\n") == 1
    assert memory_kb < IMAGE_MAX_KB


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_around_a_picture_is_not_unpacked(name: str, tmp_path: Path) -> None:
    status, out, words, memory_kb = run_helper(HARMLESS[name](), tmp_path)
    assert memory_kb < IMAGE_MAX_KB
    assert status == 0 or words, name
    assert out[:8] == (PNG_MAGIC if status == 0 else b"")


def test_a_large_picture_that_is_taken_has_its_bound(tmp_path: Path) -> None:
    """As wide as any: a byte a pixel here, once more while it is scaled."""
    status, out, words, memory_kb = run_helper(png(8192, 256), tmp_path)
    assert status == 0
    assert words.count(b"\n") == 1  # what it looks like, as a number
    assert out[:8] == PNG_MAGIC
    assert memory_kb < IMAGE_MAX_KB


def test_bombs_in_the_workspace_cost_the_call_little(daemon: Daemon, client: Client) -> None:
    for number, make in enumerate(PICTURES.values()):
        (daemon.work / f"bomb{number}.data").write_bytes(make())
    peak = Peak(daemon.pid)
    result = client.run(
        "from pathlib import Path\n"
        "for path in Path().glob('bomb*.data'): path.rename(path.with_suffix('.png'))\n"
        "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    )
    assert result.exit_code == 0
    assert [image[:8] for image in result.images] == [PNG_MAGIC]
    assert result.text.count("is not shown") == 3
    assert peak.grown_kb() < 64_000
    displayed = base64.b64encode(png(30_000, 30_000)).decode()
    result = client.run(
        "from IPython.display import display\n"
        f"display({{'image/png': {json.dumps(displayed)}, 'text/plain': 'big'}}, raw=True)"
    )
    assert "width 30000 is over the limit" in result.text
    assert client.run("1 + 1").data["result"] == "2"
