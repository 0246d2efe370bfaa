# SPDX-License-Identifier: MIT
"""A short session with the daemon under valgrind: the part of `make memcheck` with a kernel.

Every way an answer can go: plain, stream, picture, error, interrupt by timeout, a kernel
that is killed, bad requests, a client that leaves; then SIGTERM.  Fails if valgrind has
found anything.
"""

from __future__ import annotations

import socket
import tempfile
import time
from pathlib import Path

from harness import REPO, Client, Daemon, exchange, wait_until

FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('x')"


def talk(daemon: Daemon, client: Client) -> None:
    assert client.request("tools/list")["tools"]
    assert "2" in client.run("1 + 1").text
    assert "slow" in client.run("import time; time.sleep(1); print('slow')").text
    assert client.run("raise ValueError('no')").exit_code == 1
    assert client.run("print('\\u00e9\\x1b[31m' * 20000)").text
    assert client.run(FIGURE).images
    assert client.run("while True: pass", timeout=2).is_error
    client.run("open('a.txt', 'w').write('text' * 1000)")
    assert "a.txt" in client.call("list_files").text
    assert "text" in client.call("read_text_file", path="a.txt").text
    assert not client.call("write_file", path="in/b.txt", content="text").is_error
    assert not client.call("read_text_file", path="in/b.txt", offset=2).is_error
    for row in client.request("resources/list")["resources"]:
        assert client.request("resources/read", {"uri": row["uri"]})["contents"]
    client.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert "3" in client.run("1 + 2").text
    assert client.call("run_python").is_error


def annoy(daemon: Daemon, client: Client) -> None:
    for body in (b"{", b"[]", b"[1]", b"\xff", b'{"jsonrpc":"2.0","id":1,"method":"no"}'):
        assert client.post(body).status in (200, 400, 404)
    assert exchange(daemon.port, "GET", "/nothing").status == 404
    assert daemon.health()
    with socket.create_connection(("127.0.0.1", daemon.port)) as leaver:
        head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
        leaver.sendall(head.encode() + b"{")
    wait_until(daemon.health, 10)


def main() -> None:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vivarium-memcheck-") as home:
        daemon = Daemon(
            Path(home),
            program=REPO / "tests/valgrind/run",
            args=["under", str(REPO / "build/vivarium")],
            env={"VIVARIUM_PYTHON": str(REPO / ".venv/bin/python")},
        )
        try:
            client = daemon.client()
            talk(daemon, client)
            annoy(daemon, client)
            daemon.stop()
            assert "==" not in daemon.log(), daemon.log()[-6000:]
        finally:
            daemon.clean_up()
    print(f"daemon: nothing found, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
