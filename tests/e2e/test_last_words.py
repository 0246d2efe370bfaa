# SPDX-License-Identifier: MIT
"""What a cell wrote before its kernel died is in the answer, however it was written and however
the kernel died.
"""

from __future__ import annotations

import re

import pytest
from harness import Client, Daemon

WRITES = {
    "os.write": "os.write(1, b'last words\\n')",
    "print": "print('last words')",
    "flushed print": "print('last words', flush=True)",
    "half a line": "print('last ', end=''); print('words')",
    "buffer": "sys.stdout.buffer.write(b'last words\\n')",
    "printf": "libc.printf(b'last words\\n'); libc.fflush(None)",
    "subprocess": "subprocess.run(['printf', 'last words\\\\n'])",
    "print, os.write, print": "print('last'); os.write(1, b'words\\n'); print('', end='')",
}
DEATHS = {
    "_exit": ("os._exit(3)", 3),
    "SIGKILL": ("os.kill(os.getpid(), 9)", 137),
    "crash": ("ctypes.string_at(0)", 139),
    "abort": ("os.abort()", 134),
}
IMPORTS = "import ctypes, os, subprocess, sys\nlibc = ctypes.CDLL(None)\n"


@pytest.fixture
def client(live: Daemon) -> Client:
    return live.client()


@pytest.mark.parametrize("death", DEATHS)
def test_what_was_written_before_the_end_is_in_the_answer(client: Client, death: str) -> None:
    ending, exit_code = DEATHS[death]
    for way, write in WRITES.items():
        result = client.run(f"{IMPORTS}{write}\n{ending}")
        assert result.exit_code == exit_code, way
        assert result.data["stdout"].split() == ["last", "words"], way
        assert result.data["stderr"] == "", way


def test_both_streams_come_whole_once_and_in_order(client: Client) -> None:
    code = (
        "import os, sys\n"
        "for i in range(3000):\n"
        "    print(i, 'é€😀')\n"
        "    print(i, '\\ud83d', file=sys.stderr)\n"
        "    os.write(2, b'raw\\n')\n"
        "os._exit(0)"
    )
    result = client.run(code)
    out, err = result.data["stdout"], result.data["stderr"]
    assert out.startswith("0 é€😀\n1 é€😀\n")
    assert out.endswith("2998 é€😀\n2999 é€😀\n")
    assert "of 25890 characters left out" in out  # as many as were printed
    assert err.startswith("0 \ufffd\nraw\n1 \ufffd\nraw\n")
    assert err.endswith("2999 \ufffd\nraw\n")
    assert "of 31890 characters left out" in err


def test_of_more_than_can_be_kept_the_end_is_there_and_the_loss_is_told(client: Client) -> None:
    """The kernel's main thread holds the interpreter: nothing of it can be sent."""
    code = (
        "import os, sys\nsys.setswitchinterval(1000)\n"
        "for i in range(100): print('x' * 10_000)\n"
        "print('the end'); os._exit(0)"
    )
    result = client.run(code)
    assert result.data["stdout"].endswith("\nthe end\n")
    found = re.search(r"of (\d+) characters left out", result.data["stdout"])
    assert found
    assert 0 <= int(found[1]) - 1_000_108 < 100  # with the line about the loss


def test_what_came_after_the_cell_is_told_by_the_next_one(live: Daemon, client: Client) -> None:
    code = (
        "import os, threading, time\n"
        "def leave():\n    time.sleep(0.2); os.write(1, b'from a thread\\n'); os._exit(5)\n"
        "threading.Thread(target=leave).start()"
    )
    client.run(code)
    result = client.run("import time; time.sleep(2)")
    # It may have died while this one ran, or before.
    told = result.data["stdout"] + result.data["earlier_output"]
    assert told.count("from a thread\n") == 1


def test_nothing_is_told_twice_by_a_kernel_that_stops(client: Client) -> None:
    client.run("print('once')\nimport os; os.write(1, b'once more\\n'); None")
    result = client.run("1", fresh=True)
    assert result.data["earlier_output"] == ""
    client.run("print('once'); exit()")
    assert client.run("2").data["earlier_output"] == ""


def test_the_end_of_a_kernel_whose_directory_is_gone_says_nothing(client: Client) -> None:
    client.run("import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); exit()")
    result = client.run("'back'")
    assert result.data["result"] == "'back'"
    assert "Traceback" not in result.text
