"""The main path with real kernels: what code leaves behind, what its answer says, and
how the next call finds the kernel.  Once with each ipykernel.
"""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from conftest import PYTHONS, require_python, type_of_start
from harness import (
    MARK,
    Client,
    Daemon,
    Result,
    all_pids,
    png_size,
    read_proc,
    resident_kb,
    wait_until,
)

HEX_KEY = re.compile(rb"[0-9a-fA-F]{64}")


@pytest.fixture
def client(live: Daemon) -> Client:
    return live.client()


@pytest.fixture(params=list(PYTHONS))
def start_python(request: pytest.FixtureRequest, start: type_of_start) -> Callable[..., Daemon]:
    """start(), with each interpreter; settings as keywords."""
    python = require_python(request.param)

    def begin(**settings: object) -> Daemon:
        env = {f"VIVARIUM_{name}": str(value) for name, value in settings.items()}
        return start(env={"VIVARIUM_PYTHON": str(python), **env})

    return begin


@pytest.fixture
def held(live: Daemon, client: Client) -> Any:
    """A cell that runs until the test is over: held() is its result."""
    go = live.work / "go"
    code = (
        "import os, time\nopen('begun', 'w').close()\n"
        "while not os.path.exists('go'): time.sleep(0.02)\nprint('released')"
    )
    with ThreadPoolExecutor() as pool:
        future = pool.submit(client.run, code)
        try:
            wait_until((live.work / "begun").exists)
            yield future
        finally:
            go.touch()
            assert future.result().text == "released"
            go.unlink()
            (live.work / "begun").unlink()


def png(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + os.urandom(side) for _ in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


# ---- state and the forms of a result ----


def test_state_is_kept_between_calls_and_sessions(live: Daemon, client: Client) -> None:
    assert client.run("kept = 41").text == "(no output)"
    assert client.run("kept + 1").data["result"] == "42"
    assert live.client("2024-11-05").run("kept + 2").text.endswith(": 43")


def test_the_text_has_stdout_then_stderr_then_the_value(client: Client) -> None:
    result = client.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7")
    assert re.fullmatch(r"out\nstderr:\nerr\nOut\[\d+\]: 42", result.text)
    assert not result.is_error
    assert result.exit_code == 0


def test_a_value_of_several_lines_begins_on_its_own_line(client: Client) -> None:
    result = client.run("import pandas\npandas.DataFrame({'a': [1, 2]})")
    assert re.match(r"Out\[\d+\]:\n +a\n0 +1\n1 +2", result.text)


def test_a_semicolon_hides_the_value(client: Client) -> None:
    assert client.run("6 * 7;").text == "(no output)"


def test_an_exception_comes_first_and_its_traceback_is_plain(client: Client) -> None:
    result = client.run("def inner():\n    return 1 / 0\nprint('before')\ninner()")
    assert result.text.startswith(
        "Error: ZeroDivisionError: division by zero (exit code 1)\nbefore\n"
    )
    assert result.is_error
    assert result.exit_code == 1
    assert "return 1 / 0" in result.text
    assert "\x1b" not in result.text
    for ours in ("vivarium_kernel", "ipykernel", "interactiveshell"):
        assert ours not in result.text
    error = result.data["error"]
    assert (error["name"], error["message"]) == ("ZeroDivisionError", "division by zero")


def test_a_syntax_error_is_an_error_with_its_line(client: Client) -> None:
    result = client.run("print('never')\nx = = 1")
    assert result.text.startswith("Error: SyntaxError: ")
    assert "x = = 1" in result.text
    assert result.data["stdout"] == ""


def test_names_set_before_an_exception_stay(client: Client) -> None:
    client.run("half = 1\nraise ValueError('no')")
    assert client.run("half").data["result"] == "1"


@pytest.mark.parametrize(
    ("argument", "exit_code"), [("0", 0), ("", 0), ("None", 0), ("3", 3), ("259", 3), ("-1", 255)]
)
def test_sys_exit_ends_the_cell_with_its_code_and_the_kernel_stays(
    client: Client, argument: str, exit_code: int
) -> None:
    client.run("stays = 'yes'")
    result = client.run(f"import sys\nprint('out')\nsys.exit({argument})\nprint('never')")
    assert result.exit_code == exit_code
    assert result.is_error == (exit_code != 0)
    assert result.data["stdout"] == "out\n"
    if exit_code:
        assert result.text.startswith(f"Exit code {exit_code}.\n")
    assert "Traceback" not in result.text
    assert "SystemExit" not in result.text
    assert client.run("stays").data["result"] == "'yes'"


def test_sys_exit_with_words_says_them_on_stderr(client: Client) -> None:
    result = client.run("import sys\nsys.exit('no such table')")
    assert result.exit_code == 1
    assert "no such table" in result.data["stderr"]


def test_top_level_await_shell_and_magics_work(client: Client) -> None:
    assert (
        client.run("import asyncio\nawait asyncio.sleep(0.01)\n'woke'").data["result"] == "'woke'"
    )
    shell = client.run("!echo from the shell; echo twice")
    assert shell.data["stdout"].splitlines() == ["from the shell", "twice"]  # a pty: \r\n
    assert "time: " in client.run("%time 1 + 1").text
    assert client.run("%%time\ntimed = 5").exit_code == 0
    assert client.run("timed").data["result"] == "5"


def test_odd_bytes_and_letters_arrive(client: Client) -> None:
    letters = client.run("print('日本 \\U0001f600 \\x00 é')").data["stdout"]
    assert letters.replace("\0", "\ufffd") == "日本 \U0001f600 \ufffd é\n"
    raw = client.run("import os\nos.write(1, b'a\\xff\\xfeb\\n');")
    assert re.fullmatch("a\ufffd+b\n", raw.data["stdout"])
    lone = client.run("print('\\ud800 lone')")
    assert "lone" in lone.text


def test_output_of_children_and_of_c_code_counts_as_stdout(client: Client) -> None:
    code = """
import ctypes, os, subprocess, sys
subprocess.run([sys.executable, '-c', 'print("child")'])
subprocess.run(['sh', '-c', 'echo child error >&2'])
os.write(1, b'raw\\n')
libc = ctypes.CDLL(None)
libc.puts(b'from C')
libc.fflush(None);
"""
    result = client.run(code)
    assert set(result.data["stdout"].splitlines()) >= {"child", "raw", "from C"}
    assert "child error" in result.data["stdout"] + result.data["stderr"]


def test_carriage_returns_and_colours_do_not_reach_the_model(client: Client) -> None:
    assert client.run("print('\\x1b[31mred\\x1b[0m')").data["stdout"] == "red\n"


def test_input_is_a_clear_error_and_not_a_hang(client: Client) -> None:
    result = client.run("name = input('who? ')")
    assert result.is_error
    assert "input" in result.text.splitlines()[0]
    assert client.run("1 + 1").data["result"] == "2"


@pytest.mark.parametrize(
    "code", ["import os\nos.close(1)", "import sys\nsys.stdout.close()", "import os\nos.close(2)"]
)
def test_a_cell_that_closes_its_stdout_does_not_break_the_next(client: Client, code: str) -> None:
    client.run(code)
    result = client.run("print('still heard')\n1 + 1")
    if "still heard" not in result.text:  # what this cell broke is allowed to need a new kernel
        result = client.run("print('still heard')\n1 + 1")
    assert "still heard" in result.text
    assert result.data["result"] == "2"
    client.run("1", fresh=True)


# ---- long output ----


def test_five_megabytes_are_clipped_and_counted(client: Client) -> None:
    result = client.run("print('begin' + 'x' * 5_000_000 + 'end')")
    assert len(result.text) < 25_000
    assert result.text.startswith("begin")
    assert result.text.endswith("end")
    omitted = re.search(r"\[\.\.\. (\d+) of (\d+) characters left out", result.text)
    assert omitted, result.text[900:1200]
    assert int(omitted[2]) == 5_000_009
    assert int(omitted[1]) == pytest.approx(5_000_009 - 20_000, abs=100)


def test_a_cell_that_prints_forever_costs_the_daemon_no_memory(
    live: Daemon, client: Client
) -> None:
    client.run("1")
    before = resident_kb(live.pid)
    result = client.run("print('first line')\nwhile True: print('x' * 1000)", timeout_seconds=2)
    assert result.data["end"] in {"timed_out", "killed"}
    assert result.exit_code == 124
    assert len(json.dumps(result.raw)) < 120_000
    assert result.data["stdout"].startswith("first line\nxxx")
    assert resident_kb(live.pid) - before < 100_000
    assert client.run("1 + 1").data["result"] == "2"


# ---- death ----


def test_exit_stops_the_kernel_and_both_calls_say_so(live: Daemon, client: Client) -> None:
    client.run_saved(live, "kept = 1")
    result = client.run("exit()")
    assert "exit()" in result.text
    after = client.run("kept")
    assert "exit()" in after.text
    assert after.data["result"] == "1"
    assert not after.is_error


@pytest.mark.parametrize(
    ("code", "exit_code", "words"),
    [
        ("import os; os._exit(3)", 3, "exited with status 3"),
        ("import os; os.kill(os.getpid(), 9)", 137, "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", 139, "SIGSEGV"),
        ("import os; os.abort()", 134, "SIGABRT"),
    ],
)
def test_a_death_during_the_cell_is_told_in_words(
    live: Daemon, client: Client, code: str, exit_code: int, words: str
) -> None:
    client.run_saved(live, "treasure = 1")
    # A moment for what it said to leave the process; the death takes along what has not.
    result = client.run(f"print('last words')\nimport time; time.sleep(0.2)\n{code}")
    assert result.is_error
    assert result.text.startswith(f"Exit code {exit_code}.\n")
    assert words in result.text
    assert "The next call starts a new one" in result.data["notice"]
    assert result.data["end"] == "kernel_died"
    assert "last words" in result.data["stdout"]
    after = client.run("treasure")
    assert after.data["result"] == "1"
    assert not after.is_error


def test_a_kernel_killed_while_idle_is_replaced_and_the_code_runs_once(
    live: Daemon, client: Client
) -> None:
    client.run("open('runs', 'w').close()")
    for turn in range(5):
        client.run_saved(live, f"treasure = {turn}")
        os.kill(live.kernel_pid(), signal.SIGKILL)  # the call races with the news of it
        result = client.run(f"print({turn}, file=open('runs', 'a')); treasure")
        assert not result.is_error, result.text
        assert "SIGKILL" in result.text
        assert result.data["result"] == str(turn)
    assert (live.work / "runs").read_text().split() == list("01234")


def test_a_death_is_seen_at_once(live: Daemon, client: Client) -> None:
    client.run("1")
    pid = live.kernel_pid()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: live.log().count("was killed by signal 9") > 0, 2)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), 2)
    assert "SIGKILL" in client.run("1").data["notice"]


# ---- timeouts ----


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(30)",
        "while True: pass",
        "import subprocess; subprocess.run(['sleep', '30'])",
        "import asyncio; await asyncio.sleep(30)",
        "!sleep 30",
    ],
    ids=["sleep", "loop", "subprocess", "await", "shell"],
)
def test_a_timeout_interrupts_and_keeps_output_and_variables(client: Client, code: str) -> None:
    result = client.run(f"valuable = 7\nprint('so far')\n{code}", timeout_seconds=1)
    assert result.exit_code == 124
    assert result.is_error
    assert result.data["end"] == "timed_out"
    assert result.text.startswith("Exit code 124.\nTimed out after 1 s and was interrupted.")
    assert result.data["stdout"].startswith("so far\n")
    assert client.run("valuable").data["result"] == "7"


def test_a_cell_that_ignores_the_interrupt_is_killed_and_the_next_one_works(
    client: Client,
) -> None:
    code = """
import time
doomed = 1
print('so far', flush=True)
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""
    result = client.run(code, timeout_seconds=1)
    assert result.exit_code == 124
    assert result.data["end"] == "killed"
    assert "did not yield to the interrupt" in result.text
    assert result.data["stdout"] == "so far\n"
    assert client.run("'doomed' in globals()").data["result"] == "False"


# ---- fresh and the queue ----


def test_fresh_throws_the_names_away_and_names_them(client: Client) -> None:
    client.run("alpha = beta = 1", fresh=True)
    result = client.run("'alpha' in globals()", fresh=True)
    assert re.search(r"fresh: threw away 2 variables \((alpha, beta|beta, alpha)\)", result.text)
    assert result.data["result"] == "False"
    assert "undo brings them back" in result.text


def test_calls_run_in_the_order_in_which_they_came(
    live: Daemon, client: Client, held: Future[Result]
) -> None:
    client_calls: list[Future[Result]] = []
    with ThreadPoolExecutor(20) as pool:
        for i in range(20):
            client_calls.append(pool.submit(client.run, f"print({i}, file=open('order', 'a'))"))
            wait_until(lambda: live.health()["calls"] == len(client_calls) + 1)
        assert not held.done()
        (live.work / "go").touch()
        results = [future.result() for future in client_calls]
    assert not any(result.is_error for result in results)
    assert (live.work / "order").read_text().split() == [str(i) for i in range(20)]


def test_twenty_calls_at_once_all_run_once(client: Client) -> None:
    client.run("counted = []")
    with ThreadPoolExecutor(20) as pool:
        codes = [f"counted.append({i}); len(counted)" for i in range(20)]
        results = list(pool.map(client.run, codes))
    assert sorted(int(result.data["result"]) for result in results) == list(range(1, 21))


def test_the_rest_answers_while_a_cell_runs(
    live: Daemon, client: Client, held: Future[Result]
) -> None:
    (live.work / "note.txt").write_text("a note")
    assert client.request("ping") == {}
    assert len(client.request("tools/list")["tools"]) == 6
    assert live.health()["calls"] == 1
    assert "note.txt" in client.call("list_files").text
    assert client.call("read_text_file", path="note.txt").text == "a note"
    assert not held.done()


# ---- pictures ----

PLOT = "import matplotlib.pyplot as plt\nplt.figure(figsize=(20, 10))\nplt.plot([1, 2, 3])\n"


@pytest.mark.parametrize("end", ["", "plt.show()", "plt.gcf()"], ids=["left", "show", "value"])
def test_a_figure_comes_back_as_one_picture(client: Client, end: str) -> None:
    result = client.run(PLOT + end)
    assert len(result.images) == 1
    assert max(png_size(result.images[0])) <= 1280
    assert "base64" not in result.text
    assert client.run("plt.get_fignums()").data["result"] == "[]"


def test_two_figures_are_two_pictures(client: Client) -> None:
    two = PLOT + "plt.figure()\nplt.plot([3, 1])"
    assert len(client.run(two).images) == 2


def test_a_saved_picture_is_shown_named_and_scaled_but_the_file_stays(
    live: Daemon, client: Client
) -> None:
    result = client.run(PLOT + "plt.savefig('big.png', dpi=150)\nplt.close()")
    assert len(result.images) == 1
    assert max(png_size(result.images[0])) == 1280
    assert png_size((live.work / "big.png").read_bytes()) == (3000, 1500)
    assert result.data["images"] == ["big.png"]
    assert result.footer_line("wrote:").startswith("big.png (")


def test_a_picture_file_in_a_directory_is_shown_and_unchanged_ones_are_not(
    live: Daemon, client: Client
) -> None:
    client.run("import os\nos.makedirs('plots', exist_ok=True)")
    (live.work / "old.png").write_bytes(png(20))
    code = f"open('plots/new.PNG', 'wb').write({png(10)!r});"
    result = client.run(code)
    assert result.data["images"] == ["plots/new.PNG"]
    assert [png_size(image) for image in result.images] == [(10, 10)]


def test_a_broken_picture_file_is_named(client: Client) -> None:
    result = client.run("open('bad.png', 'wb').write(b'not a picture');")
    assert result.images == []
    assert "bad.png" in result.text
    assert not result.is_error
    cut = client.run(f"open('cut.png', 'wb').write({png(50)[:-300]!r});")
    assert cut.images == []
    assert "cut.png" in cut.text


def test_no_images_when_the_limit_is_zero(start_python: Callable[..., Daemon]) -> None:
    client = start_python(MAX_IMAGES=0).client()
    result = client.run(PLOT + "plt.savefig('a.png')")
    assert result.images == []
    assert result.footer_line("wrote:").startswith("a.png")
    assert "not shown" not in result.text
    result = client.run(PLOT)
    assert result.images == []
    assert "1 picture is not shown (VIVARIUM_MAX_IMAGES); to keep pictures" in result.text


def test_images_over_the_limit_are_counted_and_scaled_to_the_side(
    start_python: Callable[..., Daemon],
) -> None:
    client = start_python(MAX_IMAGES=1, MAX_IMAGE_SIDE=64).client()
    result = client.run(PLOT + "plt.figure()\nplt.plot([2])\nplt.figure()\nplt.plot([1])")
    assert len(result.images) == 1
    assert max(png_size(result.images[0])) == 64
    assert re.search(r"\b2 (more )?(pictures|images|figures)", result.text), result.text


# ---- the footer ----


def test_the_footer_names_variables_imports_files_and_the_workspace(
    start_python: Callable[..., Daemon],
) -> None:
    daemon = start_python()
    client = daemon.client()
    result = client.run(
        "import pandas as pd, json\n"
        "df = pd.DataFrame({'GBP': [1.0, 2.0, 3.0], 'USD': [1, 2, 3]})\n"
        "raw = {'a': 1}\n"
        "def chart(): pass\n"
        "open('made.csv', 'w').write('a,b\\n1,2\\n');"
    )
    lines = result.footer.splitlines()
    assert lines[0] == "--- state ---"
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "vars",
        "already imported (do not re-import)",
        "namespace size",
        "wrote",
        "workspace",
    ]
    variables = result.footer_line("vars:")
    assert "df 3x2 [GBP, USD]" in variables
    assert "raw 1 key" in variables
    assert "chart chart()" in variables
    imports = result.footer_line("already imported (do not re-import):")
    assert set(imports.split()) == {"pd=pandas", "json"}
    assert result.footer_line("wrote:") == "made.csv (8B)"
    assert result.footer_line("workspace:").startswith("1 file")
    assert result.data["state"]["vars"]["df"] == "3x2 [GBP, USD]"
    assert result.data["state"]["imports"] == {"pd": "pandas", "json": "json"}
    assert result.data["files"] == [{"path": "made.csv", "size": 8, "uri": "workspace:///made.csv"}]
    later = client.run("later = 1")
    assert later.footer_line("vars:").startswith("later ")
    assert "pd=pandas" in later.footer_line("already imported (do not re-import):"), "each time"


def test_nothing_of_ours_is_in_the_namespace(start_python: Callable[..., Daemon]) -> None:
    client = start_python().client()
    assert client.run("1;").footer_line("vars:") == ""
    names = client.run("[n for n in dir() if not n.startswith('_')]").data["result"]
    assert set(re.findall(r"\w+", names)) <= {"In", "Out", "exit", "quit", "get_ipython", "open"}


def test_many_names_make_no_long_footer(client: Client) -> None:
    result = client.run("globals().update({f'name{i}': 'x' * 5000 for i in range(3000)})")
    assert len(result.footer) < 4000
    more = re.search(r"\+(\d+) more", result.footer_line("vars:"))
    assert more
    assert int(more[1]) > 2900
    client.run("1", fresh=True)


def test_no_footer_when_it_is_switched_off(start_python: Callable[..., Daemon]) -> None:
    result = start_python(STATE_SUMMARY=0).client().run("x = 1\nx")
    assert result.footer == ""
    assert len(result.raw["content"]) == 1
    assert result.data["state"]["vars"] == {"x": "int"} or "x" in result.data["state"]["vars"]


# ---- children ----

TWENTY = "import subprocess\nkids = [subprocess.Popen(['sleep', '300']) for _ in range(20)]\n"
GRANDCHILD = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '301'])
    os._exit(0)
os.wait()
while not any(open(f'/proc/{p}/cmdline').read().startswith('sleep\\x00301')
              for p in os.listdir('/proc') if p.isdigit() and os.path.exists(f'/proc/{p}/cmdline')):
    time.sleep(0.01)
"""


def sleepers(daemon: Daemon) -> list[int]:
    return [pid for pid in daemon.family() if read_proc(pid, "cmdline").startswith(b"sleep\0")]


def test_children_that_outlive_the_cell_are_counted_and_end_with_the_daemon(
    start_python: Callable[..., Daemon],
) -> None:
    daemon = start_python()
    client = daemon.client()
    result = client.run(TWENTY)
    assert "20 child processes" in result.footer_line("still running:")
    client.run(GRANDCHILD)
    wait_until(lambda: len(sleepers(daemon)) == 21)
    assert "child" in client.run("1").footer_line("still running:")
    daemon.stop()
    assert sleepers(daemon) == []


def test_children_end_with_a_daemon_that_is_killed(start_python: Callable[..., Daemon]) -> None:
    daemon = start_python()
    client = daemon.client()
    client.run(TWENTY + GRANDCHILD)
    wait_until(lambda: len(sleepers(daemon)) == 21)
    daemon.kill()
    daemon.check_no_family(2)


def test_children_end_with_their_kernel(live: Daemon, client: Client) -> None:
    client.run(TWENTY + GRANDCHILD)
    wait_until(lambda: len(sleepers(live)) == 21)
    client.run("1", fresh=True)
    wait_until(lambda: sleepers(live) == [], 3)


def test_a_thread_that_prints_later_is_shown_with_the_next_call(
    live: Daemon, client: Client
) -> None:
    client.run(
        "import threading, os, time\n"
        "def later():\n"
        "    while not os.path.exists('say'): time.sleep(0.01)\n"
        "    print('said late', flush=True)\n"
        "    open('said', 'w').close()\n"
        "threading.Thread(target=later, daemon=True).start()"
    )
    (live.work / "say").touch()
    wait_until((live.work / "said").exists)
    texts = []

    def is_shown() -> bool:
        texts.append(client.run("'now'").text)
        return "said late" in texts[-1]

    wait_until(is_shown)
    assert sum("said late" in text for text in texts) == 1


# ---- shell commands ----


def test_a_shell_command_is_a_program_in_a_terminal_without_its_line_ends(client: Client) -> None:
    result = client.run("!printf 'a\\nb\\tc\\r\\nd'; test -t 1 && echo terminal")
    assert result.data["stdout"] == "a\nb\tc\ndterminal\n"
    assert client.run("!echo err >&2; exit 3").data["stdout"] == "err\n"
    assert client.run("_exit_code").data["result"] == "3"
    assert client.run("!kill -9 $$").data["end"] == "ok"
    assert client.run("_exit_code").data["result"] == "-9"


def test_a_shell_command_sees_the_names_of_who_calls_it(client: Client) -> None:
    code = "cmd = 'global'\ndef f(name):\n    !echo {name} $cmd\nf('local')"
    assert client.run(code).data["stdout"] == "local global\n"


def test_no_character_of_a_shell_command_is_cut(client: Client) -> None:
    code = "!yes é€😀 | head -n 100000"
    result = client.run(code, timeout_seconds=50)
    assert "\ufffd" not in result.data["stdout"]
    assert f"of {100_000 * 4} characters left out" in result.data["stdout"]


def test_a_shell_command_ends_though_it_leaves_a_process_in_its_terminal(client: Client) -> None:
    assert client.run("!sleep 50 & echo begun").data["stdout"] == "begun\n"


def test_a_shell_command_is_interrupted(client: Client) -> None:
    result = client.run("!echo begun; sleep 50", timeout_seconds=1)
    assert result.exit_code == 124
    assert result.data["stdout"].startswith("begun\n")
    assert result.data["end"] == "timed_out"


# ---- structure ----


def members(value: object, key: str) -> Iterator[object]:
    """Every value of that key, at any depth."""
    if isinstance(value, dict):
        yield from (found for name, found in value.items() if name == key)
        for inner in value.values():
            yield from members(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner, key)


def test_no_schema_has_a_list_of_types(client: Client) -> None:
    """Some model providers refuse it."""
    for tool in client.request("tools/list")["tools"]:
        for schema in tool["inputSchema"], tool["outputSchema"]:
            assert not [kind for kind in members(schema, "type") if isinstance(kind, list)]


def test_the_structure_agrees_with_the_text_and_its_schema(client: Client) -> None:
    (tool,) = [t for t in client.request("tools/list")["tools"] if t["name"] == "run_python"]
    schema = tool["outputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    codes = [
        "print('a'); 5",
        "1 / 0",
        "import sys; sys.exit(4)",
        "open('s.png', 'wb').write(b'x')",
        "import os; os._exit(1)",
    ]
    for code in codes:
        result = client.run(code)
        jsonschema.validate(result.data, schema, cls=jsonschema.Draft202012Validator)
        assert result.is_error == (result.exit_code != 0)
        for part in ("stdout", "stderr", "result", "notice"):
            assert result.data[part].strip() in result.text
    tools = {tool["name"]: tool for tool in client.request("tools/list")["tools"]}
    listed = client.call("list_files")
    jsonschema.validate(listed.data, tools["list_files"]["outputSchema"])
    read = client.call("read_text_file", path="s.png")
    jsonschema.validate(read.data, tools["read_text_file"]["outputSchema"])


def test_older_revisions_get_no_structure(live: Daemon) -> None:
    for revision in ("2024-11-05", "2025-03-26"):
        result = live.client(revision).run("1 + 1")
        assert "structuredContent" not in result.raw
        assert result.text.endswith(": 2")


# ---- secrets ----


def test_no_process_shows_the_key_or_our_settings(live: Daemon, client: Client) -> None:
    client.run("1")
    family = live.family()
    assert live.kernel_pid() in family
    for pid in [live.pid, *family]:
        seen = read_proc(pid, "environ") + read_proc(pid, "cmdline")
        assert not HEX_KEY.search(seen)
        if pid != live.pid:
            assert b"VIVARIUM_" not in seen.replace(MARK.encode(), b"")
    for path in live.runtime.rglob("*"):
        if path.is_file():
            assert not HEX_KEY.search(path.read_bytes()), path
    assert "64" in client.run(
        "import os, re\n"
        "assert not any(k.startswith('VIVARIUM_') for k in os.environ)\n"
        "assert not re.search('[0-9a-f]{64}', repr(dict(os.environ)))\n64"
    ).data["result"]  # fmt: skip


def test_the_kernel_inherits_no_descriptor_of_the_daemon(client: Client) -> None:
    code = """
import os, subprocess
def links(pid): return {os.readlink(f'/proc/{pid}/fd/{n}') for n in os.listdir(f'/proc/{pid}/fd')
                        if os.path.islink(f'/proc/{pid}/fd/{n}')}
out = subprocess.run(['ls', '-l', '/proc/self/fd'], capture_output=True, text=True).stdout
print([line.split(' -> ')[1] for line in out.splitlines() if ' -> ' in line])
"""
    shown = client.run(code, fresh=True).data["stdout"]
    links = re.findall(r"'([^']+)'", shown)
    assert len(links) == 4, links  # 0, 1, 2 and ls's own
    assert "memfd" not in shown


def test_the_log_has_a_line_a_call_and_never_code_or_output(live: Daemon, client: Client) -> None:
    before = live.log().count(" bytes of code")
    client.run("print('marker-' + 'output')  # marker-code")
    client.run("raise RuntimeError('marker-error')")
    client.run("marker_name = 1")
    wait_until(lambda: live.log().count(" bytes of code") == before + 3)
    assert "marker" not in live.log()
    last = [line for line in live.log().splitlines() if "bytes of code" in line][-2]
    assert re.search(r"default: cell \d+: \d+ ms, exit code 1, 34 bytes of code$", last)


def test_a_kernel_is_started_by_the_first_call_and_not_before(
    start_python: Callable[..., Daemon],
) -> None:
    daemon = start_python()
    client = daemon.client()
    client.request("tools/list")
    client.call("list_files")
    assert daemon.children() == []
    assert daemon.health()["kernels"] == 0
    client.run("1")
    assert len(daemon.children()) == 1
    assert daemon.kernel_pid() in all_pids()
