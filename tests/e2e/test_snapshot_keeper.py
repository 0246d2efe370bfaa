# SPDX-License-Identifier: MIT
"""When a kernel saves its namespace, what it writes, and how it comes back."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PYTHONS, mounted_tmpfs, require_python
from kernel_process import PYSIDE, KernelProcess, Result
from snapshot_store import CHUNK, Manifest, Store, chunk_names, entry

BIG = "import numpy as np; big = np.arange(1 << 20, dtype='u4')"  # 4 MB in 4 chunks
# Saving it takes 2 s and can give way after each step.  A step leaves a trace.
SLOW = """
import pathlib, time
class Slow:
    def __init__(self, number): self.number = number
    def __reduce__(self):
        pathlib.Path('step').write_text(str(self.number))
        time.sleep(0.01)
        return Slow, (self.number,)
slow = [Slow(i) for i in range(200)]
"""


@pytest.fixture(params=list(PYTHONS), scope="module")
def python(request: pytest.FixtureRequest) -> str:
    return str(require_python(request.param))


class World:
    """One workspace: its store, and its kernels one after the other."""

    def __init__(self, python: str, place: Path) -> None:
        self.python = python
        self.place = place
        self.store = Store(place / "snapshots", python)
        self.kernels: list[KernelProcess] = []

    @property
    def kernel(self) -> KernelProcess:
        return self.kernels[-1]

    def start(
        self, restore: int | None = None, *, dies: bool = False, **changes: Any
    ) -> KernelProcess:
        launch = self.store.launch(restore, **changes)
        peers = [os.getpid()] if dies else None  # named: nothing waits for the first answer
        self.kernels.append(KernelProcess(self.python, self.place, peers=peers, snapshot=launch))
        return self.kernel

    def adopt(self) -> list[int]:
        numbers = self.store.adopt()
        for number in numbers:
            self.kernel.order(f"kept {number}")
        return numbers

    def run(self, code: str) -> Result:
        """A cell, and the generation after it in the store."""
        result = ok(self.kernel.run(code, 20))
        cell = result.reply["content"]["execution_count"]
        wait_until(lambda: self.has_saved(cell))
        return result

    def has_saved(self, cell: int) -> bool:
        self.adopt()
        return self.store.kept > 0 and self.manifest()["cell"] == cell

    def manifest(self, number: int | None = None) -> Manifest:
        return self.store.manifest(number)

    def come_back(self, **changes: Any) -> KernelProcess:
        """Kill the kernel and start the next one from the newest kept generation."""
        self.kernel.kill()
        return self.start(self.store.kept, **changes)


@pytest.fixture
def world(python: str, tmp_path: Path) -> Iterator[World]:
    world = World(python, tmp_path)
    yield world
    for kernel in world.kernels:
        kernel.close()


def ok(result: Result) -> Result:
    assert result.status == "ok", result.reply["content"]
    return result


def snapshot(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = result.report["snapshot"]
    return found


def wait_until(true: Callable[[], bool], timeout: float = 10) -> None:
    deadline = time.monotonic() + timeout
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_step(kernel: KernelProcess) -> None:
    """Until a step is made from now on."""
    step = kernel.workspace / "step"
    step.unlink(missing_ok=True)
    wait_until(step.exists)


# When.


def test_a_small_namespace_is_saved_before_the_reply(world: World) -> None:
    kernel = world.start()
    world.run("x = [1, 2]")
    # On a busy machine it is now and then too slow for that.
    wait_until(lambda: snapshot(ok(kernel.run("pass")))["saved"])
    report = snapshot(ok(kernel.run("x.append(3)")))
    assert report["bytes"] > 0
    assert (report["lost"], report["over"]) == ([], [])


def test_a_cell_that_raised_is_saved_too(world: World) -> None:
    kernel = world.start()
    world.run("x = [1, 2]")
    parent = world.store.kept
    assert kernel.run("y = 1; 1/0").status == "error"
    wait_until(lambda: world.has_saved(2))
    manifest = world.manifest()
    assert (manifest["outcome"], manifest["source"]) == ("error", "y = 1; 1/0")
    assert (manifest["parent"], manifest["cell"]) == (parent, 2)
    assert manifest["changes"] == {"added": ["y"], "changed": [], "removed": []}
    assert entry(manifest, "x")["cell"] == 1
    assert entry(manifest, "y")["cell"] == 2


def test_a_cell_that_was_cut_off_is_saved_too(world: World) -> None:
    kernel = world.start()
    msg_id = kernel.send_cell("x = 1\nwhile True: pass")
    wait_until(lambda: b"run" in kernel.reports + kernel._read_all(kernel.report_fd))
    time.sleep(0.2)  # into the loop
    kernel.interrupt()
    assert kernel.finish(msg_id).error == "KeyboardInterrupt"
    wait_until(lambda: world.has_saved(1))
    assert entry(world.manifest(), "x")["cell"] == 1


def test_a_large_namespace_is_saved_when_idle(world: World) -> None:
    kernel = world.start()
    assert not snapshot(ok(kernel.run(BIG)))["saved"]
    kernel.wait_report("saved 1")
    world.adopt()
    manifest = world.manifest()
    assert [piece["size"] for piece in manifest["buffers"]] == [4 * CHUNK]
    assert manifest["bytes"] == entry(manifest, "big")["bytes"] + sum(
        row["size"] for row in [manifest["process"], *manifest["entries"]] if row["name"] != "big"
    )


def test_only_what_changed_is_written_again(world: World) -> None:
    world.start()
    world.run(BIG)
    ok(world.kernel.run("big[0] = 7"))
    world.kernel.wait_report("saved 2")
    written = world.store.written()
    world.adopt()
    first, second = (world.manifest(number) for number in (1, 2))
    assert second["buffers"][0]["chunks"][1:] == first["buffers"][0]["chunks"][1:]
    assert written == set(chunk_names(second)) - set(chunk_names(first))
    assert len(written) == 2  # a chunk of the array and the stream
    assert second["changes"]["changed"] == ["big"]


def test_a_save_gives_way_and_is_made_up_for(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(SLOW))
    wait_step(kernel)
    kernel.order("yield")
    result = ok(kernel.run("1 + 1"))
    assert snapshot(result)["generation"] == 0
    assert b"saved" not in kernel.reports
    kernel.wait_report("saved 1")
    assert snapshot(ok(kernel.run("0")))["generation"] == 1


def test_after_giving_way_three_times_it_is_finished_first(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(SLOW))
    for _ in range(3):
        wait_step(kernel)
        kernel.order("yield")
        assert snapshot(ok(kernel.run("pass")))["generation"] == 0
    wait_step(kernel)
    kernel.order("yield")
    assert snapshot(ok(kernel.run("pass")))["generation"] == 1


def test_what_was_written_before_it_gave_way_is_not_written_twice(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(f"{BIG}\n{SLOW}"))
    wait_step(kernel)
    kernel.order("yield")
    ok(kernel.run("pass"))
    before = {name: (world.store.spool / name).stat().st_ino for name in world.store.written()}
    assert len(before) == 4
    kernel.wait_report("saved 1")
    after = {name: (world.store.spool / name).stat().st_ino for name in world.store.written()}
    assert before.items() <= after.items()
    world.adopt()


def test_a_yield_that_no_request_follows_does_not_stop_saving(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(SLOW))
    wait_step(kernel)
    kernel.order("yield")
    kernel.wait_report("saved 1")


HANGS = """
import time
class Hangs:
    def __reduce__(self):
        time.sleep(600)
hangs, fine = Hangs(), 5
"""


def test_a_value_that_hangs_its_save_is_left_out_until_rebound(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(HANGS, 20))
    kernel.order("yield")
    ok(kernel.run("pass", 20))
    world.run("pass")
    lost = {row["name"]: row for row in snapshot(ok(kernel.run("pass")))["lost"]}
    assert lost["hangs"]["what"] == "Hangs"
    assert lost["hangs"]["why"].startswith("took longer than")
    (left,) = world.manifest()["left_out"]
    assert left["name"] == "hangs"
    assert entry(world.manifest(), "fine")["bytes"] > 0
    world.run("hangs = 1")
    assert world.manifest()["left_out"] == []


THREADS = """
import socket, threading
stop = threading.Event()
threads = [threading.Thread(target=stop.wait) for _ in range(60)]
for thread in threads: thread.start()
line = socket.socket()
"""


def test_many_losses_of_one_kind_do_not_hide_another_name(world: World) -> None:
    kernel = world.start()
    world.run(THREADS)
    lost = {row["name"]: row["what"] for row in snapshot(ok(kernel.run("del thread")))["lost"]}
    assert lost == {"threads": "60 of threading.Thread", "line": "socket.socket"}
    ok(kernel.run("stop.set()"))


def test_losses_without_a_row_are_counted(world: World) -> None:
    world.start()
    world.run("import socket\nfor n in range(60): globals()[f's{n}'] = socket.socket()")
    report = snapshot(ok(world.kernel.run("pass")))
    assert (len(report["lost"]), report["more_lost"]) == (50, 10)


def test_the_last_save_is_made_when_the_kernel_leaves(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(BIG))
    kernel.shutdown()
    assert world.store.adopt() == [1]
    kernel = world.start(1)
    assert ok(kernel.run("int(big.sum())")).text == str(sum(range(1 << 20)))
    ok(kernel.run("other = 2; exit()"))
    kernel.process.wait(5)
    assert "other" in [
        row["name"] for n in world.store.adopt() for row in world.manifest(n)["entries"]
    ]


def test_always_saves_before_the_reply(world: World) -> None:
    kernel = world.start(mode="always")
    assert snapshot(ok(kernel.run(BIG, 20)))["saved"]
    assert world.adopt() == [1]
    assert snapshot(ok(kernel.run("big += 1", 20)))["generation"] == 2
    assert world.adopt() == [2]


def test_a_child_process_never_saves(world: World) -> None:
    kernel = world.start()
    ok(kernel.run("import os; pid = os.fork() or os._exit(0); os.waitpid(pid, 0)"))
    ok(kernel.run("pid = os.fork()"))
    ok(kernel.run("pid and os.waitpid(pid, 0) and None"))
    wait_until(lambda: world.has_saved(3))
    numbers = [line for line in kernel.reports.split(b"\n") if line.startswith(b"saved")]
    assert len(numbers) == len(set(numbers))


def test_without_orders_or_snapshots_nothing_is_written(python: str, tmp_path: Path) -> None:
    with KernelProcess(python, tmp_path) as kernel:
        assert "snapshot" not in ok(kernel.run("x = 1")).report


def test_an_interpreter_without_xxhash_says_that_nothing_is_saved(
    python: str, tmp_path: Path
) -> None:
    (tmp_path / "xxhash.py").write_text("raise ImportError(\"No module named 'xxhash'\")")
    store = Store(tmp_path / "snapshots", python)
    path = {"PYTHONPATH": str(tmp_path)}
    with KernelProcess(python, tmp_path, environment=path, snapshot=store.launch(7)) as kernel:
        kernel.wait_report("restored")
        report = snapshot(ok(kernel.run("x = 1")))
        assert report["error"] == "nothing is saved: No module named 'xxhash'"
        assert not report["saved"]
        assert list(store.spool.iterdir()) == []


# What can go wrong.


def test_a_full_disk_is_told_and_saving_goes_on_when_there_is_room(world: World) -> None:
    spool = world.store.spool
    kernel = world.start()
    with mounted_tmpfs(spool, "2m"):
        ok(kernel.run(BIG))
        wait_until(lambda: "error" in snapshot(ok(kernel.run("pass"))))
        error = snapshot(ok(kernel.run("pass")))["error"]
        assert error == "no space left on device: the snapshot could not be written"
        wait_until(lambda: not list(spool.iterdir()))
        ok(kernel.run("del big"))
        kernel.wait_report("saved 1")
        assert "error" not in snapshot(ok(kernel.run("pass")))


def test_what_is_too_large_is_left_out_and_named(world: World) -> None:
    kernel = world.start(namespace_max=6 << 20)
    ok(kernel.run(f"{BIG}; small = big[:1000].copy(); huge = np.zeros(8 << 20, 'u1')"))
    kernel.wait_report("saved 1")
    report = snapshot(ok(kernel.run("pass")))
    assert report["over"] == [{"name": "huge", "bytes": report["over"][0]["bytes"]}]
    assert report["over"][0]["bytes"] >= 8 << 20
    world.adopt()
    names = [row["name"] for row in world.manifest(1)["entries"]]
    assert {"big", "small"} <= set(names)
    assert "huge" not in names
    (left,) = world.manifest(1)["left_out"]
    assert (left["name"], left["bytes"]) == ("huge", report["over"][0]["bytes"])
    ok(kernel.run("huge = 1"))
    wait_until(lambda: not snapshot(ok(kernel.run("pass")))["over"])


def test_after_a_refusal_everything_is_written_again(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(BIG))
    kernel.wait_report("saved 1")
    for name in (*world.store.written(), "1.json"):
        (world.store.spool / name).unlink()
    kernel.order("refused 1 a chunk is bad")
    report = snapshot(ok(kernel.run("pass")))
    assert report["generation"] == 0
    assert report["error"] == "generation 1 was refused: a chunk is bad"
    kernel.wait_report("saved 2")
    assert world.adopt() == [2]
    assert world.manifest()["parent"] is None
    assert "error" not in snapshot(ok(kernel.run("pass")))


SLOW_ONCE = """
import time
class Slow:
    times = 1
    def __reduce__(self):
        end = time.thread_time() + 0.02 * Slow.times
        Slow.times = 0
        while time.thread_time() < end: pass
        return Slow, ()
slow = Slow()
"""


def test_one_slow_save_does_not_put_off_the_next(world: World) -> None:
    kernel = world.start()
    world.run("pass")
    replies = [snapshot(ok(kernel.run(code)))["saved"] for code in (SLOW_ONCE, "pass")]
    assert replies == [False, True]


# Invisible.

TRACES = """
import gc, signal, sys, warnings
seen = []
def trace(frame, event, arg):
    seen.append(frame.f_code.co_filename)
class Loud:
    def __reduce__(self):
        print('loud'); warnings.warn('loud'); sys.stderr.write('loud')
        return Loud, ()
loud = Loud()
gc.disable()
def state(): return (gc.isenabled(), sys.gettrace(), sys.getrecursionlimit(), len(seen),
                     sorted(n for n in globals() if n[0] != '_'),
                     signal.getsignal(signal.SIGINT).__name__)
"""


def test_a_save_shows_nowhere(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(TRACES))
    ok(kernel.run(BIG))
    first = ok(kernel.run("state()"))
    kernel.wait_report("saved 1")
    second = ok(kernel.run("state()"))
    assert (first.stdout, first.stderr, second.stdout, second.stderr) == ("", "", "", "")
    assert first.text == second.text
    assert ok(kernel.run("len(In)")).text == "6"
    assert kernel.crash_output() == ""


def test_profilers_that_run_from_cell_to_cell_survive_saves(world: World) -> None:
    world.start()
    world.run("import cProfile, sys; profile = cProfile.Profile(); profile.enable()")
    world.run("def f(): return 1")
    world.run("f()")
    names = "{getattr(row.code, 'co_name', '') for row in profile.getstats()}"
    result = ok(world.kernel.run(f"profile.disable(); print('f' in {names})"))
    assert (result.stdout, result.stderr) == ("True\n", "")
    world.run("calls = []; sys.setprofile(lambda frame, event, arg: calls.append(frame))")
    world.run("calls.clear(); f()")
    assert ok(world.kernel.run("sys.setprofile(None); print(len(calls) > 0)")).stdout == "True\n"


def test_an_interrupt_during_a_save_does_nothing(world: World) -> None:
    kernel = world.start()
    ok(kernel.run(SLOW))
    wait_step(kernel)
    kernel.interrupt()
    kernel.wait_report("saved 1")
    assert ok(kernel.run("1")).text == "1"
    assert kernel.crash_output() == ""


def test_an_interrupt_handler_of_the_users_own_does_not_break_a_save(world: World) -> None:
    kernel = world.start()
    ok(kernel.run("import signal; signal.signal(signal.SIGINT, signal.default_int_handler)" + SLOW))
    wait_step(kernel)
    kernel.interrupt()
    kernel.wait_report("saved 1")
    assert ok(kernel.run("1")).text == "1"
    assert kernel.crash_output() == ""


THREAD = """
import threading, time
count, seen = 0, []
def work():
    global count
    while True:
        count += 1
        time.sleep(0.001)
class Watcher:
    def __reduce__(self):
        seen.append(count)
        time.sleep(0.02)
        return Watcher, ()
threading.Thread(target=work, daemon=True).start()
watchers = [Watcher() for _ in range(20)]
"""


def test_threads_of_the_user_run_on_while_it_saves(world: World) -> None:
    kernel = world.start()
    world.run(THREAD)
    assert int(ok(kernel.run("len(set(seen))")).text) >= 20


# Coming back.


def test_after_a_kill_the_namespace_is_there(world: World) -> None:
    world.start()
    world.run("x = [1]; y = x; import math as m")
    world.run(BIG)
    world.run("def f(): return x")
    kernel = world.come_back()
    kernel.wait_report("restored")
    assert kernel.reports.index(b"restoring\n") < kernel.reports.index(b"restored\n")
    assert not (world.store.spool / "restoring").exists()
    result = ok(kernel.run("x.append(2); print(x is y, f(), m.pi, int(big.sum()))"))
    assert result.stdout == f"True [1, 2] 3.141592653589793 {sum(range(1 << 20))}\n"
    back = result.report["restored"]
    assert (back["cell"], back["failed"], back["versions"]) == (3, [], [])
    assert back["names"] == 4, "x, y, big and f: an import is no variable"
    assert result.reply["content"]["execution_count"] == 4
    assert "restored" not in ok(kernel.run("pass")).report


def test_the_first_save_after_a_restore_writes_no_buffer_again(world: World) -> None:
    world.start()
    world.run(f"{BIG}; fixed = np.arange(100_000); fixed.flags.writeable = False; n = 1")
    kernel = world.come_back()
    ok(kernel.run("n = 2"))
    kernel.wait_report("saved 2")
    assert len(world.store.written()) == 1
    world.adopt()
    assert world.manifest()["parent"] == 1
    assert world.manifest()["changes"] == {"added": [], "changed": ["n"], "removed": []}
    assert entry(world.manifest(), "big")["cell"] == 1


def test_the_history_comes_back_without_being_saved_name_by_name(world: World) -> None:
    world.start()
    world.run("[1, 2]")
    world.run("x = _1; _i1 = 'mine'")
    names = {row["name"] for row in world.manifest()["entries"]}
    assert "_i2" not in names
    assert "_i1" in names  # it is not the history's any more
    kernel = world.come_back()
    result = ok(kernel.run("print(_1 is x is Out[1], _i1, _i2, In[1], _ is x)"))
    assert result.stdout == "True mine x = _1; _i1 = 'mine' [1, 2] True\n"


LONG_INPUT = f"'{'x' * 70_000}';"
HISTORIES = """
shell = get_ipython()
lists = In, shell.history_manager.input_hist_raw
print(In is _ih is shell.history_manager.input_hist_parsed, *(len(each) for each in lists))
print([[text[:6] for text in each[:4]] for each in lists], [len(each[1]) for each in lists])
"""


def with_a_long_history(world: World) -> None:
    world.start()
    for code in (LONG_INPUT, "same = [In]", *["pass"] * 4):  # until no `_iii` has the long one
        world.run(code)


def test_inputs_of_before_are_written_once(world: World) -> None:
    with_a_long_history(world)
    before = world.manifest()
    world.run("pass")
    after = world.manifest()
    assert [piece["size"] > 70_000 for piece in after["buffers"]] == [True, True]  # In and raw
    assert after["buffers"] == before["buffers"]
    assert after["stream"]["size"] < 20_000
    kernel = world.come_back()
    firsts = ["", "'xxxxx", "same =", "pass"]
    result = ok(kernel.run(HISTORIES))
    assert result.stdout == f"True 9 9\n{[firsts, firsts]} {[len(LONG_INPUT)] * 2}\n"
    assert ok(kernel.run("same[0] is In, In[7], _i7")).text == ("(True, 'pass', 'pass')")
    world.run("pass")
    assert world.manifest()["buffers"] == before["buffers"]


def test_after_megabytes_of_inputs_a_small_state_is_still_saved_at_once(world: World) -> None:
    kernel = world.start()
    for code in [LONG_INPUT] * 20 + ["pass"] * 4:
        world.run(code)
    report = snapshot(ok(kernel.run("pass")))
    assert report["bytes"] > 2 << 20
    assert report["saved"] is True


def test_a_damaged_part_of_the_history_costs_nothing_else(world: World) -> None:
    with_a_long_history(world)
    for piece in world.manifest()["buffers"]:
        (world.store.chunks / piece["chunks"][0]).unlink(missing_ok=True)
    kernel = world.come_back()
    result = ok(kernel.run(HISTORIES + "print(same[0] is In)"))
    lost = [["", "", "same =", "pass"]] * 2
    assert result.stdout == f"True 8 8\n{lost} [0, 0]\nTrue\n"


def test_a_history_that_somebody_changed_comes_back_so(world: World) -> None:
    world.start()
    world.run("'a'")
    world.run("In[1] = 'b'; In.append({3}); raw = get_ipython().history_manager.input_hist_raw")
    world.run("raw[1] = 'c\\0d'")
    world.run("import numpy as np; In[2] = np.arange(3)")
    kernel = world.come_back()
    history = "get_ipython().history_manager.input_hist_raw"
    result = ok(kernel.run(f"print(In[1:4], [{history}[1]], raw is {history})"))
    assert result.stdout == "['b', array([0, 1, 2]), {3}] ['c\\x00d'] True\n"


def hashes(directory: Path) -> dict[str, str]:
    return {p.name: hashlib.md5(p.read_bytes()).hexdigest() for p in directory.iterdir()}


def test_what_is_mapped_is_never_written_through(world: World) -> None:
    world.start()
    world.run(f"{BIG}; fixed = np.arange(100_000); fixed.flags.writeable = False")
    before = hashes(world.store.chunks)
    kernel = world.come_back()
    result = ok(kernel.run("big[:] = 1; print(fixed.flags.writeable, big.flags.writeable)"))
    assert result.stdout == "False True\n"
    kernel.wait_report("saved 2")
    assert before.items() <= hashes(world.store.chunks).items()


BOMB = """
import os
class Bomb:
    def __init__(self): self.x = 1
    def __setstate__(self, state): os._exit(9)
"""


def test_a_name_that_kills_the_restore_is_known_and_skipped(world: World) -> None:
    world.start()
    world.run(BOMB)
    world.run("a, bomb, z = 1, Bomb(), [2]")
    kernel = world.come_back(dies=True)
    kernel.process.wait(10)
    record = (world.store.spool / "restoring").read_bytes()
    assert len(record) == 512
    index, name = int.from_bytes(record[:4], "little"), record[4:].rstrip(b"\0").decode()
    assert name == world.manifest()["entries"][index]["name"] == "bomb"
    kept = world.store.kept
    world.start(kept, skip=["bomb"])
    result = world.run("print(a, z, type(bomb).__name__)")
    assert result.stdout == "1 [2] Tombstone\n"
    assert [row["name"] for row in result.report["restored"]["failed"]] == ["bomb"]
    (left,) = world.manifest()["left_out"]
    assert (left["name"], left["carried"]) == ("bomb", kept)
    assert left["bytes"] > 0
    world.come_back()
    world.run("a = 2")
    assert world.manifest()["left_out"] == [left]
    world.run("bomb = 2")
    assert world.manifest()["left_out"] == []


LATE = """
import pathlib, time
class Late:
    def __init__(self): self.x = 1
    def __setstate__(self, state):
        pathlib.Path('step').write_text('1'); time.sleep(0.5); self.x = 2
"""


def test_an_interrupt_during_a_restore_does_nothing(world: World) -> None:
    world.start()
    world.run(LATE)
    world.run("late = Late()")
    world.kernel.kill()
    kernel = world.start(world.store.kept, dies=True)
    wait_until((kernel.workspace / "step").exists)
    kernel.interrupt()
    assert ok(kernel.run("print(late.x)")).reply["content"]["status"] == "ok"
    assert ok(kernel.run("assert late.x == 2"))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def test_a_damaged_chunk_of_a_buffer_is_found_and_told(world: World) -> None:
    world.start()
    world.run(f"{BIG}; other = big + 1")
    first = entry(world.manifest(), "big")["first_buffer"]
    flip(world.store.chunks / world.manifest()["buffers"][first]["chunks"][2])
    kernel = world.come_back()
    kernel.wait_report("damaged big")
    assert snapshot(ok(kernel.run("pass")))["damaged"] == ["big"]
    assert "damaged" not in snapshot(ok(kernel.run("pass")))


def test_a_cut_chunk_costs_its_names_only(world: World) -> None:
    world.start()
    world.run(f"{BIG}; other = big + 1; x = 5")
    first = entry(world.manifest(), "big")["first_buffer"]
    os.truncate(world.store.chunks / world.manifest()["buffers"][first]["chunks"][2], 5000)
    kernel = world.come_back()
    result = ok(kernel.run("print(x, int(other[5]), type(big).__name__)"))
    assert result.stdout == "5 6 Tombstone\n"
    assert [row["name"] for row in result.report["restored"]["failed"]] == ["big"]


def test_a_damaged_stream_costs_everything_but_the_kernel(world: World) -> None:
    world.start()
    world.run("x = 5")
    flip(world.store.chunks / world.manifest()["stream"]["chunks"][0])
    world.come_back()
    result = world.run("print(x)")
    assert result.stdout.startswith("<not restored: ")
    assert result.report["restored"]["names"] == 0
    assert result.report["restored"]["error"].startswith("Damaged")
    (left,) = world.manifest()["left_out"]
    assert (left["name"], left["carried"]) == ("x", 1)


def test_other_versions_are_told(world: World) -> None:
    world.start()
    world.run(BIG)
    path = world.store.generations / "1.json"
    manifest = json.loads(path.read_bytes())
    assert "numpy" in manifest["packages"]
    now, manifest["packages"]["numpy"] = manifest["packages"]["numpy"], "0.9"
    path.write_text(json.dumps(manifest))
    kernel = world.come_back()
    assert ok(kernel.run("pass")).report["restored"]["versions"] == [["numpy", "0.9", now]]


# What changed.


def test_a_change_is_blamed_on_the_name_that_changed(world: World) -> None:
    """All entries share one memo, whose indices shift when an earlier entry changes."""
    world.start()
    world.run("a, b, c = [[1]], [['x'] * 2], {'k': ('t',)}\ndef f(): return a")
    changes = []
    for cell in ("b[0].append('y'); b.append([b, 'z', ['w']])", "b.append(b[0])", "del a", "pass"):
        world.run(cell)
        changes.append(world.manifest()["changes"])
    assert changes == [
        {"added": [], "changed": ["b"], "removed": []},
        {"added": [], "changed": ["b"], "removed": []},
        {"added": [], "changed": [], "removed": ["a"]},
        {"added": [], "changed": [], "removed": []},
    ]


# The write path, killed at every system call of it.

WRITER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from vivarium_kernel.snapshot import chunks
stop, count = int(sys.argv[3]), 0
def counted(call):
    def run(*args, **kwargs):
        global count
        count += 1
        if count == stop: os.kill(os.getpid(), 9)
        if call is real_write and len(args[1]) > 1 and stop % 2: args = (args[0], args[1][:1000])
        return call(*args, **kwargs)
    return run
real_write = os.write
for name in ("open", "write", "fdatasync", "close", "rename", "fsync", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
spool = chunks.Spool(sys.argv[2], True)
known = chunks.Chunks(spool)
names = [known.put(bytes([n]) * 3000) for n in range(3)]
spool.sync()
spool.write("1.json", " ".join(names).encode())
spool.sync()
print("done", count)
"""


def test_killed_at_any_system_call_the_spool_has_all_or_nothing(
    python: str, tmp_path: Path
) -> None:
    done, stop = False, 0
    while not done:
        stop += 1
        spool = tmp_path / str(stop)
        spool.mkdir()
        result = subprocess.run(
            [python, "-c", WRITER, str(PYSIDE), str(spool), str(stop)],
            capture_output=True,
            text=True,
            check=False,
        )
        done = result.stdout.startswith("done")
        assert done or result.returncode == -9, result.stderr
        if (spool / "1.json").exists():
            names = (spool / "1.json").read_text().split()
            assert len(names) == 3
            assert all((spool / name).stat().st_size == 3000 for name in names)
        else:
            assert not done
    assert stop > 20
