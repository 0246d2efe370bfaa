# SPDX-License-Identifier: MIT
"""States that meet a library of another version, and the right one again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import any_python
from kernel_process import Result
from test_snapshot_keeper import World, ok

FRAME = """
class Frame:
    def __init__(self, rows):
        self.rows, self.kind, self.width = rows, Kind(), Kind()
"""
OLD = f"__version__ = '1.0'\nclass Kind: pass\n{FRAME}"
NEW = f"__version__ = '2.0'  # has no Kind any more\n{FRAME}"
DEADLY = f"""
import os
class Kind:
    def __setstate__(self, state): os._exit(9)
    __new__ = lambda cls: os._exit(9)
{FRAME}"""
CELL = """
import mylib
class Box: pass
rows = [1, 2]
df = other = mylib.Frame(rows)
data = {'df': df, 'n': 1}
boxes = [Box(), df]
x = 5
ip = get_ipython()
df
"""
WHOLE = "other is df and data['df'] is df and type(boxes[0]) is Box and df.rows is rows"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(str(any_python()), tmp_path)
    yield world
    for kernel in world.kernels:
        kernel.close()


def begin(world: World, cell: str = CELL) -> None:
    kernel = world.start()
    (kernel.workspace / "mylib.py").write_text(OLD)
    world.run(cell)


def go_on(world: World, library: str, cell: str) -> Result:
    """The next kernel, which has the library like this."""
    world.kernel.kill()
    (world.kernel.workspace / "mylib.py").write_text(library)
    world.start(world.store.kept)
    return world.run(cell)


def not_back(result: Result) -> dict[str, str]:
    rows = result.report["restored"]["failed"]
    found = {row["name"]: f"{row['what']}: {row['why']}" for row in rows}
    assert len(found) == len(rows), "one row a name"
    return found


def carried(world: World) -> dict[str, int]:
    return {row["name"]: row["carried"] for row in world.manifest()["left_out"]}


def test_what_another_version_cannot_load_is_told_once_a_name(world: World) -> None:
    begin(world)
    result = go_on(world, NEW, "print(x, type(df).__name__, type(data['df']).__name__)")
    assert result.stdout == "5 Tombstone Tombstone\n"
    missing = not_back(result)
    assert list(missing) == ["df", "other", "data", "boxes"]
    assert missing["df"] == missing["other"]
    assert missing["df"].startswith("Frame: mylib.Kind: AttributeError")
    assert missing["data"].startswith("dict: without a Frame in it: mylib.Kind: AttributeError")
    restored = result.report["restored"]
    assert restored["names"] == 4, "rows, x, ip and Box"
    assert restored["causes"] == [["mylib", "1.0", "2.0"]]
    assert restored["versions"] == []
    assert carried(world) == dict.fromkeys(missing, 1)


def test_the_right_version_brings_it_back_whole(world: World) -> None:
    begin(world)
    go_on(world, NEW, "y = 1")
    go_on(world, NEW, "y = 2")
    assert carried(world) == dict.fromkeys(("df", "other", "data", "boxes"), 1)
    result = go_on(world, OLD, f"print({WHOLE}, df.rows, data['n'], y)")
    assert result.stdout == "True [1, 2] 1 2\n"
    assert not_back(result) == {}
    assert result.report["restored"]["names"] == 9
    assert carried(world) == {}
    result = go_on(world, OLD, f"print({WHOLE})")
    assert result.stdout == "True\n"


def test_what_a_cell_has_made_of_it_meanwhile_stays(world: World) -> None:
    begin(world)
    go_on(world, NEW, "df = 'mine'; data['n'] = 2; boxes[1] = 0")
    assert carried(world) == {"other": 1, "data": 1, "boxes": 1}
    look = "print(df, other.rows, data['n'], type(data['df']).__name__, boxes[1])"
    result = go_on(world, OLD, look)
    assert result.stdout == "mine [1, 2] 2 Tombstone 0\n"
    assert list(not_back(result)) == ["data"]
    assert carried(world) == {"data": 1}, "boxes lacks nothing any more"


def test_a_class_that_was_changed_is_not_taken_for_the_one_of_then(world: World) -> None:
    begin(world, "import mylib\nclass Box: pass\ndf = mylib.Frame([Box()])")
    go_on(world, NEW, "class Box: new = True")
    look = "print(type(df.rows[0]) is Box, type(df.rows[0]).__name__, hasattr(df.rows[0], 'new'))"
    result = go_on(world, OLD, look)
    assert result.stdout == "False Box False\n"


def test_a_state_that_is_damaged_costs_no_placeholder(world: World) -> None:
    begin(world)
    go_on(world, NEW, "pass")
    (world.store.generations / "1.json").write_text("{")
    result = go_on(world, OLD, "print(x, df)")
    assert result.stdout.startswith("5 <not restored: mylib.Frame in 'df'")
    assert list(not_back(result)) == ["df", "other", "data", "boxes"]
    assert carried(world) == dict.fromkeys(("df", "other", "data", "boxes"), 1)


def test_a_state_that_ends_the_kernel_that_looks_into_it_is_given_up(world: World) -> None:
    begin(world)
    go_on(world, NEW, "pass")
    world.kernel.kill()
    (world.kernel.workspace / "mylib.py").write_text(DEADLY)
    kernel = world.start(world.store.kept, dies=True)
    assert kernel.process.wait(20) == 9
    name = (world.store.spool / "restoring").read_bytes()[4:].rstrip(b"\0")
    assert name == b"df"
    world.start(world.store.kept, skip=["df"])
    assert world.run("print(x, type(df).__name__)").stdout == "5 Tombstone\n"
    result = go_on(world, DEADLY, "print(x, type(other).__name__)")
    assert result.stdout == "5 Tombstone\n"
    assert not result.report["restored"]["kept"]
    assert carried(world) == dict.fromkeys(("df", "other", "data", "boxes"), 1)


def test_what_has_no_name_is_told_as_what_it_is(world: World) -> None:
    kernel = world.start()
    (kernel.workspace / "mylib.py").write_text("class Notice(UserWarning): pass\n")
    world.run("import mylib, warnings")
    world.run("warnings.simplefilter('error', mylib.Notice); warnings.simplefilter('ignore')")
    look = "print(any(f[2] is Warning for f in warnings.filters)); warnings.warn('calm')"
    result = go_on(world, "# nothing\n", look)
    assert result.stdout == "True\n"
    (row,) = result.report["restored"]["failed"]
    assert (row["name"], row["what"]) == ("warning filters", "")
    assert row["why"].startswith("mylib.Notice: AttributeError")


def test_a_part_of_a_name_that_failed_is_missed_by_those_that_refer_to_it(world: World) -> None:
    begin(world, f"{CELL}def f(known=df): return known\nlater = [[data]]\ndel df, other, boxes")
    result = go_on(world, NEW, "pass")
    assert set(not_back(result)) == {"f", "data", "later"}
    result = go_on(world, OLD, "print(f() is data['df'], later[0][0] is data, f.__globals__['x'])")
    assert result.stdout == "True True 5\n"
    assert ok(result).report["restored"]["names"] == 7
