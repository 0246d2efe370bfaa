# SPDX-License-Identifier: MIT
"""Whoever runs code in a workspace renames and links while the file tools look: nothing of
outside is ever read, listed or shown.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import any_python, run_daemon
from harness import BUILD, Client, Daemon, png_size

OPENS = 1_000_000
READS = 1_500
CELLS = 25
SECRET = "secret of outside"


def race(directory: Path, count: int, *how: str) -> dict[str, int]:
    command = [str(BUILD / "tests" / "race_files"), str(directory), str(count), *how]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", ran.stdout)}


@pytest.mark.timeout(300)
def test_a_million_opens_leak_nothing(tmp_path: Path) -> None:
    found = race(tmp_path, OPENS)
    assert found["leaked"] == 0
    assert found["told"] == 0
    # It was a race: each outcome happened, and often.
    assert found["read"] > OPENS // 10
    assert found["refused"] > OPENS // 10
    assert found["listed"] == OPENS // 100


def test_the_same_race_is_lost_by_those_who_look_first(tmp_path: Path) -> None:
    assert race(tmp_path, OPENS, "naive")["leaked"] == 1


# ---- through the daemon ----

# Always one rename away from the other; in a process of its own, so that cells go on.
SWAPPER = """
import os, subprocess, sys
code = '''
import itertools, os
outside = %(outside)r
os.makedirs("directory", exist_ok=True)
for name in "file.txt", "directory/f.txt":
    with open(name, "w") as file: file.write("good")
pairs = [
    ("file.txt", outside + "/f.txt"),
    ("directory", outside),
    ("other.txt", "/dev/zero"),
    ("self.txt", "/proc/self/environ"),
]
for turn in itertools.count():
    for name, target in pairs:
        link, kept = "." + name + ".link", "." + name + ".kept"
        os.symlink(target, link)
        if os.path.lexists(name): os.rename(name, kept)
        os.rename(link, name)
        os.unlink(name)
        if os.path.lexists(kept): os.rename(kept, name)
    if turn == 10: open("begun", "w").close()
'''
swapper = subprocess.Popen([sys.executable, "-c", code])
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in "f.txt", "named-outside.txt":
        (outside / name).write_text(SECRET)
    yield from run_daemon(tmp_path, env={"VIVARIUM_PYTHON": str(any_python())})


@pytest.mark.timeout(120)
def test_the_file_tools_leak_nothing(daemon: Daemon, tmp_path: Path) -> None:
    client = daemon.client()
    started = client.run(SWAPPER % {"outside": str(tmp_path / "outside")})
    assert started.exit_code == 0, started.text
    client.run("import time\nwhile not os.path.exists('begun'): time.sleep(0.01)")
    seen = {"good": 0, "refused": 0}
    paths = ("file.txt", "directory/f.txt", "other.txt", "self.txt", "directory/../file.txt")
    for turn in range(READS):
        result = client.call("read_text_file", path=paths[turn % len(paths)], max_chars=100)
        assert SECRET not in result.text
        assert result.is_error or result.text == "good"
        seen["refused" if result.is_error else "good"] += 1
        if turn % 10 == 0:
            assert "named-outside" not in client.call("list_files").text
    assert min(seen.values()) > READS // 50, seen
    assert client.run("swapper.kill(); swapper.wait()").exit_code == 0


PICTURES = """
import os, struct, threading, zlib
def png(side):
    def chunk(kind, data):
        crc = struct.pack('>I', zlib.crc32(kind + data))
        return struct.pack('>I', len(data)) + kind + data + crc
    head = struct.pack('>IIBBBBB', side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress((b'\\0' + bytes(side)) * side)
    body = chunk(b'IHDR', head) + chunk(b'IDAT', rows) + chunk(b'IEND', b'')
    return b'\\x89PNG\\r\\n\\x1a\\n' + body
def swap():
    for number in range(10_000_000):
        with open('.mine', 'wb') as file: file.write(png(20))
        os.rename('.mine', 'shown.png')
        os.symlink(outside, '.link')
        os.rename('.link', 'shown.png')
        if over: break
over = False
thread = threading.Thread(target=swap, daemon=True)
"""


def test_a_picture_of_outside_is_never_shown(daemon: Daemon, tmp_path: Path) -> None:
    """A new *.png comes back with its cell: of the workspace only."""
    client: Client = daemon.client()
    made = client.run(PICTURES + "open('big.data', 'wb').write(png(77))")
    assert made.exit_code == 0, made.text
    outside = tmp_path / "outside" / "shown.png"
    (daemon.work / "big.data").rename(outside)
    client.run(f"outside = {str(outside)!r}; thread.start()")
    sizes = set()
    for number in range(CELLS):
        result = client.run(f"{number}")
        sizes |= {png_size(image) for image in result.images}
    client.run("over = True; thread.join()")
    assert sizes <= {(20, 20)}
    assert sizes, "it was never shown at all"
