"""Saved states through the daemon: what comes back after which death, what is told of it,
going back, and bad days of the disk.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import mounted_tmpfs, type_of_start
from harness import DEADLY, STORE, Client, Daemon, children_of, is_alive, read_proc, wait_until

ALL_TOOLS = {"VIVARIUM_TOOLS": "run_python,undo,restore,history,diff"}


def store_pid(daemon: Daemon) -> int:
    (pid,) = [pid for pid in children_of(daemon.pid) if read_proc(pid, "comm") == STORE]
    return pid


@pytest.fixture
def daemon(start: type_of_start) -> Daemon:
    return start(env=ALL_TOOLS)


@pytest.fixture
def client(daemon: Daemon) -> Client:
    return daemon.client()


# ---- deaths ----


def die_idle(daemon: Daemon, client: Client) -> str:
    daemon.kill_kernel()
    return "killed by signal 9"


def die_in_a_cell(daemon: Daemon, client: Client) -> str:
    result = client.run("import os; os._exit(3)")
    assert "variables as they were after cell 1" in result.text
    return "ended in cell 2"


def die_of_a_crash(daemon: Daemon, client: Client) -> str:
    client.run("import ctypes; ctypes.string_at(0)")
    return "ended in cell 2"


def die_of_a_timeout(daemon: Daemon, client: Client) -> str:
    stuck = "import signal, time\nsignal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    result = client.run(stuck, timeout_seconds=1)
    assert result.exit_code == 124
    return "ended in cell 2"


def die_of_exit(daemon: Daemon, client: Client) -> str:
    client.run("exit()")
    return "called exit()"


@pytest.mark.parametrize(
    "die", [die_idle, die_in_a_cell, die_of_a_crash, die_of_a_timeout, die_of_exit]
)
def test_variables_outlive_their_kernel(
    daemon: Daemon, client: Client, die: Callable[[Daemon, Client], str]
) -> None:
    client.run_saved(daemon, "x = [1]; y = x; f = lambda: x[0] + 1")
    why = die(daemon, client)
    result = client.run("x[0] = 5; y, f()")
    assert result.data["result"] == "([5], 6)"
    assert why in result.text
    assert "3 variables restored, as after cell" in result.text
    assert result.footer_line("restored: ").startswith("3 variables, as after cell")
    assert "restored" not in client.run("x").text


def test_imports_alone_are_told_too(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "import os, json")
    daemon.kill_kernel()
    assert "\n2 imports restored, as after cell 1.\n" in client.run("os.sep, json.dumps(1)").text


def test_an_idle_stop_keeps_the_variables(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_IDLE_TIMEOUT": "1"})
    client = daemon.client()
    client.run("x = 41")
    wait_until(lambda: daemon.health()["kernels"] == 0, 10)
    result = client.run("x + 1")
    assert result.data["result"] == "42"
    assert "VIVARIUM_IDLE_TIMEOUT" in result.text


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_variables_outlive_the_daemon(start: type_of_start, end: str) -> None:
    first = start()
    client = first.client()
    client.run("import numpy as np; a = np.arange(100_000.); v = a[10:20]")
    wait_until(lambda: first.saved_upto() == 1, 20)
    if end == "killed":
        first.kill()
    else:
        first.stop()
    second = start()
    result = second.client().run("v[0] = -1; float(a[10]), In[1][:12]")
    assert result.data["result"] == "(-1.0, 'import numpy')"
    assert "Vivarium was restarted" in result.text
    assert "2 variables restored" in result.text, "an import is none"
    assert result.footer_line("already imported (do not re-import):") == "np=numpy"
    assert result.data["execution_count"] == 2


def test_all_killed_at_once_right_after_an_answer_with_always(start: type_of_start) -> None:
    env = {"VIVARIUM_DURABILITY": "always"}
    first = start(env=env)
    client = first.client()
    client.run("n = 0")
    for cell in range(2, 5):
        result = client.run("n += 1; import numpy; big = numpy.full(3_000_000, n)")
        assert result.data["state"]["namespace"]["saved"]
        assert result.data["execution_count"] == cell
    family = first.family()
    first.kill()
    for pid in family:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    result = start(env=env).client().run("n, int(big[0]), big.size")
    assert result.data["result"] == "(3, 3, 3000000)"


def test_a_kernel_that_dies_in_its_first_cell_tells_what_it_had(
    daemon: Daemon, client: Client
) -> None:
    client.run_saved(daemon, "x = 1")
    daemon.kill_kernel()
    result = client.run("assert x == 1; import os; os._exit(3)")
    assert "It had begun with the variables as after cell 1." in result.text
    assert client.run("x").data["result"] == "1"


def test_what_does_not_survive_is_named_before_and_after(daemon: Daemon, client: Client) -> None:
    result = client.run("import socket; s = socket.socket(); x = 1")
    assert "s (socket" in result.footer_line("lost if the kernel restarts: ")
    assert "s" in result.data["state"]["namespace"]["lost_if_restarted"]
    wait_until(lambda: daemon.saved_upto() == 1)
    daemon.kill_kernel()
    result = client.run("print(repr(s)); s.fileno()")
    assert "Not back: s (socket" in result.text
    assert "lost if" not in result.footer
    assert result.exit_code == 1
    assert "<not restored: socket" in result.data["stdout"]
    assert "cell 1" in result.data["stdout"]
    assert "not restored" in result.data["error"]["message"]


LIBRARY = """
class Table:
    def __init__(self): self.kind, self.width = Kind(), Kind()
"""


def test_what_another_version_of_a_library_cannot_load(daemon: Daemon, client: Client) -> None:
    library = daemon.work / "mylib.py"
    library.write_text(f"__version__ = '1.0'\nclass Kind: pass\n{LIBRARY}")
    client.run_saved(daemon, "import mylib; table = mylib.Table(); named = {'t': table}; x = 1")
    library.write_text(f"__version__ = '2.0'  # has no Kind\n{LIBRARY}")
    daemon.kill_kernel()
    result = client.run("y = 2")
    assert "1 variable restored, as after cell 1." in result.text
    told = (
        "mylib is now 2.0; it was 1.0 when the state was saved.\n"
        "Not back: table (Table: mylib.Kind: AttributeError: "
    )
    assert told in result.text
    assert "\nWhat could not be loaded stays saved, and comes back once it can be" in result.text
    assert result.text.count("table (") == result.text.count("named (dict: without a Table") == 1
    assert "table.width" in client.run("table.width").text
    wait_until(lambda: daemon.saved_upto() == 3, 20)
    library.write_text(f"__version__ = '1.0'\nclass Kind: pass\n{LIBRARY}")
    daemon.kill_kernel()
    result = client.run("type(table.width).__name__, named['t'] is table, x, y")
    assert result.data["result"] == "('Kind', True, 1, 2)"
    assert "4 variables restored, as after cell 3." in result.text
    assert "Not back" not in result.text


def test_a_cell_that_raised_is_saved_too(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 7\n1/0")
    daemon.kill_kernel()
    assert client.run("x").data["result"] == "7"


# ---- restores that go wrong ----


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os._exit(9)", "exited with status 9"),
        ("raise ValueError('no')", "ValueError"),
    ],
)
def test_a_value_that_cannot_be_restored_costs_only_itself(
    daemon: Daemon, client: Client, what: str, words: str
) -> None:
    client.run_saved(daemon, DEADLY % what)
    daemon.kill_kernel()
    result = client.run("good, also_good")
    assert result.data["result"] == "(1, 2)"
    assert words in result.text
    assert "bad" in result.text
    assert client.run("bad").data["result"].startswith("<not restored: ")


def test_a_value_that_restores_for_ever_costs_only_itself(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, DEADLY % "import time; time.sleep(3600)")
    daemon.kill_kernel()
    result = client.run("good, also_good")
    assert result.data["result"] == "(1, 2)"
    assert "did not get done with restoring bad within 20 s" in result.text


# ---- going back ----


def test_undo_goes_back_a_cell_and_leaves_files(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 1")
    client.run_saved(daemon, "x = 2; open('kept.txt', 'w').write('2')")
    result = client.call("undo")
    assert not result.is_error
    assert "as it was after cell 1" in result.text
    assert "files" in result.text
    result = client.run("x, open('kept.txt').read()")
    assert result.data["result"] == "(1, '2')"
    assert result.data["execution_count"] == 3


def test_undo_of_an_unsaved_cell_and_of_several(daemon: Daemon, client: Client) -> None:
    for value in range(1, 5):
        client.run_saved(daemon, f"x = {value}")
    assert client.call("undo", cells=2).data["cell"] == 2
    assert client.run("x").data["result"] == "2"
    assert client.call("restore", cell=4).data["cell"] == 4
    assert client.run("x").data["result"] == "4"
    kernel = daemon.kernel_pid()
    result = client.call("undo", cells=50)
    assert result.is_error
    assert is_alive(kernel)  # what cannot be done disturbs nothing
    assert "no state from 50 cells back is kept" in result.text
    assert client.run("x").data["result"] == "4"


def test_a_cell_that_never_was_is_not_restored(daemon: Daemon, client: Client) -> None:
    for value in (1, 2):
        client.run_saved(daemon, f"x = {value}")
    for name, arguments in (("restore", {"cell": 77}), ("diff", {"cell_a": 1, "cell_b": 77})):
        result = client.call(name, **arguments)
        assert result.is_error
        assert "there is no cell 77; saved states there are: after cells 2, 1" in result.text
    assert client.run("x").data["result"] == "2"


def test_undo_again_goes_on_from_where_it_is(daemon: Daemon, client: Client) -> None:
    for value in range(1, 5):
        client.run_saved(daemon, f"x = {value}")
    assert client.call("undo").data["cell"] == 3
    assert client.call("undo").data["cell"] == 2
    assert client.run("x").data["result"] == "2"


def test_a_refused_undo_costs_nothing_where_nothing_is_saved(start: type_of_start) -> None:
    client = start(env={"VIVARIUM_DURABILITY": "off"}).client()
    client.run("x = 1")
    assert client.call("undo").is_error
    assert client.run("x").data["result"] == "1"


def test_cells_lost_with_the_daemon_are_told_and_their_numbers_not_used_again(
    start: type_of_start,
) -> None:
    daemon = start(env=ALL_TOOLS)
    client = daemon.client()
    client.run_saved(daemon, "import numpy; big = numpy.zeros(2_000_000); k = 1")
    for value in (2, 3):
        client.run(f"k = {value}; big[:] = {value}")
    daemon.kill()
    client = start(env=ALL_TOOLS).client()
    result = client.run("k, int(big[0])")
    assert result.data["execution_count"] == 4
    k = int(result.data["result"][1])
    assert result.data["result"] == f"({k}, {0 if k == 1 else k})"
    assert k == 3 or f"what cell{'s' if k == 1 else ''} {k + 1}" in result.text
    rows = client.call("history").data["cells"]
    assert [row["cell"] for row in rows] == [1, 2, 3, 4]


def test_a_cell_that_ran_when_the_daemon_died_keeps_its_number(start: type_of_start) -> None:
    from concurrent.futures import ThreadPoolExecutor

    daemon = start(env=ALL_TOOLS)
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    with ThreadPoolExecutor() as pool:
        lost = pool.submit(client.run, "import time; open('on', 'w'); time.sleep(600)")
        wait_until((daemon.work / "on").exists)
        daemon.kill()
        assert lost.exception() is not None
    client = start(env=ALL_TOOLS).client()
    listed = client.call("history")
    assert [(row["cell"], row["outcome"]) for row in listed.data["cells"]] == [
        (1, "ok"),
        (2, "lost"),
    ]
    result = client.run("x")
    assert "lost: cell 2, which ran since" in result.text
    assert "what cell 2 did to them is lost" in result.text
    assert result.data["execution_count"] == 3
    assert [row["cell"] for row in client.call("history").data["cells"]] == [1, 2, 3]


def test_fresh_can_be_undone(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 1")
    result = client.run("'x' in globals()", fresh=True)
    assert result.data["result"] == "False"
    assert "undo brings them back" in result.text
    client.call("undo")
    assert client.run("x").data["result"] == "1"


def test_fresh_tells_the_way_back_that_is_offered(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOOLS": "run_python,restore"})
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    client.run_saved(daemon, "y = 2")
    assert "restore(cell=2) brings them back." in client.run("import os", fresh=True).text
    assert client.call("restore", cell=2).data["cell"] == 2
    client.run_saved(daemon, "del x, y")
    assert "there were no variables to throw away" in client.run("0", fresh=True).text


def test_fresh_promises_nothing_where_there_is_no_way_back(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOOLS": "run_python"})
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    assert "brings them back" not in client.run("0", fresh=True).text


def test_variables_and_imports_are_counted_apart(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "import os; from math import sqrt; a = 1\ndef f(): return a")
    client.run_saved(daemon, "a = 2")
    assert re.search(r", 2 variables: \w, \w, 2 imports: os, sqrt\. ", client.call("undo").text)
    client.run("a")
    text = client.run("import json", fresh=True).text
    assert re.search(r"threw away 2 variables \(.*\) and 2 imports; this call", text)
    assert "threw away 1 import; this call" in client.run("0", fresh=True).text


def test_after_fresh_a_crash_brings_nothing_old_back(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 1")
    client.run("import os; os._exit(0)", fresh=True)
    assert client.run("'x' in globals()").data["result"] == "False"


def test_undo_waits_for_its_turn(daemon: Daemon, client: Client) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client.run_saved(daemon, "x = 1")
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(client.run, "import time; open('on', 'w'); time.sleep(1); x = 2")
        wait_until((daemon.work / "on").exists)
        undone = daemon.client().call("undo")
        assert slow.result().exit_code == 0
    assert undone.data["cell"] == 1
    assert client.run("x").data["result"] == "1"


def test_history_and_diff(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 1; y = [1]")
    client.run_saved(daemon, "y.append(2); z = 3; del x")
    client.run("1/0")
    rows = client.call("history").data["cells"]
    assert [row["cell"] for row in rows] == [1, 2, 3]
    assert rows[0]["added"] == ["x", "y"]
    assert (rows[1]["added"], rows[1]["changed"], rows[1]["removed"]) == (["z"], ["y"], ["x"])
    assert [row["outcome"] for row in rows] == ["ok", "ok", "error"]
    diff = client.call("diff", cell_a=1, cell_b=2)
    names = {
        kind: [row["name"] for row in diff.data[kind]] for kind in ("added", "changed", "removed")
    }
    assert names == {"added": ["z"], "changed": ["y"], "removed": ["x"]}
    assert client.call("diff", cell_a=2, cell_b=2).text.startswith("From the state")


def test_without_states_the_tools_say_so(start: type_of_start) -> None:
    client = start(env={"VIVARIUM_DURABILITY": "off", **ALL_TOOLS}).client()
    assert "namespace size" not in client.run("1").footer
    for name, arguments in (("undo", {}), ("history", {}), ("restore", {"cell": 1})):
        result = client.call(name, **arguments)
        assert result.is_error
        assert "VIVARIUM_DURABILITY=off" in result.text
        assert "Correct the setting" in result.text
    listed = {tool["name"] for tool in client.request("tools/list")["tools"]}
    assert listed == {"run_python"}
    told = client.initialize()["instructions"]
    assert "Nothing is saved here" in told
    assert not re.search("comes back after a crash|undo|branch", told)


def test_stateless_calls(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_PERSIST_NAMESPACE": "0"})
    client = daemon.client()
    assert "starts empty with each call" in client.request("tools/list")["tools"][0]["description"]
    assert "vars:" not in client.run("x = 1").footer
    result = client.run("'x' in globals()")
    assert result.data["result"] == "False"
    assert not (daemon.state / "snapshots").exists()


# ---- the disk ----


def chunks(daemon: Daemon) -> list[Path]:
    return sorted((daemon.state / "snapshots/default/chunks").iterdir())


def test_a_flipped_byte_means_the_state_before_it(start: type_of_start) -> None:
    daemon = start()
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    before = set(chunks(daemon))
    client.run_saved(daemon, "x = 2")
    daemon.stop()
    (new,) = set(chunks(daemon)) - before
    content = bytearray(new.read_bytes())
    content[len(content) // 2] ^= 1
    new.chmod(0o600)
    new.write_bytes(content)
    result = start().client().run("x")
    assert result.data["result"] == "1"
    assert "state saved after cell 2 cannot be used" in result.text


def test_a_damaged_array_is_told(start: type_of_start) -> None:
    """Sizes are right and there is much of it, so the kernel finds out while it runs."""
    daemon = start()
    client = daemon.client()
    client.run_saved(daemon, "import numpy; a = numpy.arange(200_000_000 // 8)")
    daemon.stop()
    largest = max(chunks(daemon), key=lambda path: (path.stat().st_size, path.name))
    largest.chmod(0o600)
    with largest.open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff" * 8)
    client = start().client()
    first = client.run("a.size")
    if "cannot be used" in first.text:  # its hash was among those that there was time for
        return
    wait_until(lambda: "damaged" in client.run("1").text, 30)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "d" / "state"
    with mounted_tmpfs(place, "4m"):
        yield place


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_costs_only_what_does_not_fit(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_NAMESPACE_MAX_BYTES": "100000000"})
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    client.run("import os; big = os.urandom(20_000_000)")
    wait_until(lambda: "could not be saved" in client.run("x").footer, 20)
    daemon.kill_kernel()
    result = client.run("x, 'big' in globals()")
    assert result.data["result"] == "(1, False)"
    client.run_saved(daemon, "y = 2")


def test_a_disk_that_cannot_be_written_costs_only_the_saving(start: type_of_start) -> None:
    daemon = start()
    (daemon.state / "snapshots").write_text("in the way")
    result = daemon.client().run("40 + 2")
    assert result.data["result"] == "42"
    assert "Saved states are out of reach" in result.text


def test_a_killed_store_helper_is_replaced(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 1")
    old = store_pid(daemon)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not is_alive(old))
    client.run_saved(daemon, "x = 2")
    daemon.kill_kernel()
    assert client.run("x").data["result"] == "2"


def test_the_store_helper_ends_with_its_daemon(start: type_of_start) -> None:
    daemon = start()
    daemon.client().run_saved(daemon, "x = 1")
    pid = store_pid(daemon)
    daemon.kill()
    wait_until(lambda: not is_alive(pid))


def test_the_store_helper_rests_with_its_kernel(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_IDLE_TIMEOUT": "1"})
    client = daemon.client()
    client.run_saved(daemon, "x = 1")
    pid = store_pid(daemon)
    wait_until(lambda: not is_alive(pid), 10)
    assert client.run("x").data["result"] == "1"


def test_temporary_files_are_named_before_they_go(start: type_of_start) -> None:
    client = start(env={"VIVARIUM_DURABILITY": "always"}).client()
    code = "import os, tempfile; place = tempfile.gettempdir()\n"
    code += "x = open(place + '/plan.csv', 'w'); y = tempfile.TemporaryFile()"
    line = client.run(code).footer_line("lost if the kernel restarts: ")
    assert "/tmp (plan.csv: files there go with the kernel" in line
    assert "x (_io.BufferedWriter: its directory goes with the kernel" in line
    client.run("x.close(); os.unlink(x.name); del x; y.close()")
    assert "lost if" not in client.run("open('kept', 'w').close()").footer


def test_too_large_values_are_left_out_and_named(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_NAMESPACE_MAX_BYTES": "2000000"})
    client = daemon.client()
    client.run("import numpy; big = numpy.zeros(1_000_000); x = 1")
    wait_until(lambda: daemon.saved_upto() >= 1, 20)
    result = client.run("x")
    line = result.footer_line("too large to be saved (VIVARIUM_NAMESPACE_MAX_BYTES): ")
    assert line.startswith("big 7.6M")
    wait_until(lambda: daemon.saved_upto() >= 2, 20)
    daemon.kill_kernel()
    assert client.run("x, type(big).__name__").data["result"] == "(1, 'Tombstone')"


def test_only_so_many_generations_are_kept(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_SNAPSHOT_KEEP": "3"})
    client = daemon.client()
    for value in range(6):
        client.run_saved(daemon, f"x = {value}")
    kept = daemon.state / "snapshots/default/generations"
    wait_until(lambda: len(list(kept.glob("*.json"))) == 3)


def test_a_state_of_another_workspace_is_not_taken(start: type_of_start) -> None:
    env = {"VIVARIUM_USER_HEADER": "X-User"}
    daemon = start(env=env)
    for name in ("alice", "bob"):
        client = daemon.client(X_User=name)
        client.run_saved(daemon, f"secret = 'of {name}'", name)
    daemon.stop()
    shutil.rmtree(daemon.state / "snapshots/bob")
    shutil.copytree(daemon.state / "snapshots/alice", daemon.state / "snapshots/bob")
    daemon = start(env=env)
    result = daemon.client(X_User="bob").run("'secret' in globals()")
    assert result.data["result"] == "False"
    assert "another workspace's" in result.text


def test_killed_five_times_in_five_ways_the_session_ends_right(start: type_of_start) -> None:
    daemon = start()
    client = daemon.client()
    client.run("import pandas as pd\ndf = pd.DataFrame({'g': list('aabb'), 'v': [1, 2, 3, 4]})")
    client.run("def total(): return int(df.v.sum())\nseen = []")
    client.run("seen.append(total())")
    wait_until(lambda: daemon.saved_upto() == 3, 20)
    daemon.kill_kernel()  # 1: while idle
    client.run("df['w'] = df.v * 10; seen.append(int(df.w.sum()))")
    wait_until(lambda: daemon.saved_upto() == 4, 20)
    client.run("import os; os._exit(1)")  # 2: by itself
    client.run("seen.append(len(df))")
    wait_until(lambda: daemon.saved_upto() == 6, 20)
    client.run("import ctypes; ctypes.string_at(0)")  # 3: a crash
    client.run("by = df.groupby('g').v.sum()")
    wait_until(lambda: daemon.saved_upto() == 8, 20)
    stuck = "import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass"
    client.run(stuck, timeout_seconds=1)  # 4: at its timeout
    client.run("seen.append(by['b'])")
    wait_until(lambda: daemon.saved_upto() == 10, 20)
    daemon.kill()  # 5: with the daemon
    client = start().client()
    result = client.run("[int(n) for n in seen], total(), df.w.tolist()")
    assert result.data["result"] == "([10, 100, 4, 7], 10, [10, 20, 30, 40])"


def test_a_hundred_cells_are_each_saved_soon(daemon: Daemon, client: Client) -> None:
    for _ in range(100):
        client.run("x = globals().get('x', 0) + 1")
    wait_until(lambda: daemon.saved_upto() == 100, 50)
    time.sleep(0.1)
    daemon.kill_kernel()
    assert client.run("x").data["result"] == "100"


def test_of_states_that_come_too_fast_the_newest_is_kept(daemon: Daemon, client: Client) -> None:
    client.run_saved(daemon, "x = 0")
    store = store_pid(daemon)
    os.kill(store, signal.SIGSTOP)
    try:
        for _ in range(80):
            client.run("x += 1")
    finally:
        os.kill(store, signal.SIGCONT)
    wait_until(lambda: daemon.saved_upto() == 81, 30)
    daemon.kill_kernel()
    assert client.run("x").data["result"] == "80"


def test_going_back_begins_at_the_newest_state_however_slow_the_store(
    daemon: Daemon, client: Client
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client.run_saved(daemon, "x = 0")
    store = store_pid(daemon)
    os.kill(store, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        try:
            for _ in range(80):
                client.run("x += 1")
            undo = pool.submit(client.call, "undo")
        finally:
            os.kill(store, signal.SIGCONT)
        assert not undo.result(30).is_error, undo.result().text
    assert client.run("x").data["result"] == "64"


def test_a_workbook_survives_again_and_again(daemon: Daemon, client: Client) -> None:
    """Its dimensions are a defaultdict whose class is made with something else than a factory."""
    client.run_saved(
        daemon,
        "import openpyxl\nbook = openpyxl.Workbook()\nsheet = book.active\n"
        "sheet['A1'] = 5\nsheet.column_dimensions['A'].width = 30",
    )
    for _ in range(3):
        daemon.kill_kernel()
        client.run_saved(daemon, "wide = sheet.column_dimensions['B'].width")
    assert client.run("wide, sheet['A1'].value, sheet is book.active").data["result"] == (
        "(13.0, 5, True)"
    )
    assert client.run("sheet.column_dimensions['A'].width").data["result"] == "30.0"
