# SPDX-License-Identifier: MIT
"""The Python inside the kernel, against the launch contract and real ipykernels."""

import importlib.util
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq
from kernel_process import PYSIDE, ROOT, KernelProcess, Result

INTERPRETERS = {
    "ipykernel-6": "/usr/bin/python3",
    "ipykernel-7": str(ROOT / ".venv/bin/python"),
}
DATA = ROOT / "tests/data"
INPUTS_NAMED = 30
Start = Callable[..., KernelProcess]


def has(python: str, module: str) -> bool:
    if not Path(python).exists():
        return False
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module", params=list(INTERPRETERS.values()), ids=list(INTERPRETERS))
def python(request: pytest.FixtureRequest) -> str:
    path = str(request.param)
    if not has(path, "ipykernel"):
        pytest.skip(f"{path} has no ipykernel")
    return path


@pytest.fixture(scope="module")
def shared(python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelProcess]:
    """One kernel for the tests that leave it as it was."""
    with KernelProcess(python, tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


@pytest.fixture
def kernel(shared: KernelProcess) -> KernelProcess:
    assert shared.process.poll() is None, "an earlier test ended the shared kernel"
    shared.run("%reset -f")
    return shared


@pytest.fixture
def start(python: str, tmp_path: Path) -> Iterator[Start]:
    """Starts kernels of the test's own."""
    kernels: list[KernelProcess] = []

    def begin(**options: object) -> KernelProcess:
        place = tmp_path / f"kernel{len(kernels)}"
        place.mkdir()
        kernels.append(KernelProcess(python, place, **options))  # type: ignore[arg-type]
        return kernels[-1]

    yield begin
    for kernel in kernels:
        kernel.close()


def ok(result: Result) -> Result:
    assert result.status == "ok", result.reply["content"]
    return result


# Launch.


def test_without_a_connection_it_refuses_to_start(python: str) -> None:
    done = subprocess.run(
        [python, str(PYSIDE)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("kernel refused to start: descriptor")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": ""}, "the key is shorter than 32 characters"),
        ({"key": "k" * 31}, "the key is shorter than 32 characters"),
        ({"vivarium": {"v": 2}}, "not a connection file|version 1"),
    ],
    ids=["empty key", "short key", "unknown version"],
)
def test_a_bad_connection_is_refused(
    python: str, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    class Changed(KernelProcess):
        def __setattr__(self, name: str, value: object) -> None:
            if name == "connection" and isinstance(value, dict):
                if "vivarium" in change:
                    value["vivarium"] |= change["vivarium"]
                else:
                    value |= change
            super().__setattr__(name, value)

    with pytest.raises(AssertionError, match=f"kernel refused to start: .*({words})") as refused:
        Changed(python, tmp_path)
    assert "Traceback" not in str(refused.value)


def test_the_start_is_silent_and_leaves_nothing_on_disk(start: Start) -> None:
    kernel = start()
    ok(kernel.run("1 + 1"))
    assert kernel.crash_output() == ""
    assert list(kernel.home.rglob("*")) == []
    assert list(kernel.workspace.iterdir()) == []
    names = {path.name for path in kernel.runtime.iterdir()}
    assert {"k-1", "k-2", "k-3", "k-4"} <= names <= {"k-1", "k-2", "k-3", "k-4", "profile"}


def test_the_key_and_our_descriptors_do_not_reach_the_user(start: Start) -> None:
    kernel = start()
    listing = ok(kernel.run("import os; os.system('ls -l /proc/self/fd; cat /proc/$PPID/cmdline')"))
    assert "memfd" not in listing.stdout
    assert kernel.key not in listing.stdout
    fds = ok(kernel.run("os.system('ls /proc/self/fd')")).stdout.split()
    assert fds == ["0", "1", "2", "3"]  # 3 is the listing's own
    own = ok(kernel.run("print(sorted(os.readlink(f'/proc/self/fd/{f}') for f in (3, 4)))")).stdout
    assert "memfd" not in own
    environ = ok(kernel.run("print(dict(os.environ), open('/proc/self/environ').read())")).stdout
    assert kernel.key not in environ
    assert "JPY" not in environ


def test_a_process_that_is_no_peer_is_not_served(start: Start) -> None:
    kernel = start(peers=[1])
    kernel.send("kernel_info_request", {})
    assert kernel.receive(kernel.shell, 0.5) is None


def test_a_sleeping_reader_loses_nothing(start: Start) -> None:
    kernel = start()
    with kernel.context.socket(zmq.SUB) as slow:
        slow.linger, slow.rcvhwm = 0, 10
        slow.subscribe(b"display_data")
        slow.connect(f"ipc://{kernel.runtime}/k-2")
        ok(kernel.run("1"))
        ok(kernel.run("for i in range(5000): display(i)", 30))
        got = 0
        while got < 5000 and slow.poll(10_000):
            slow.recv_multipart()
            got += 1
    assert got == 5000


# Streams.


def test_long_output_is_split_and_complete(start: Start) -> None:
    kernel = start(stream_split=1000)
    result = ok(kernel.run("print('aé\U0001f40d' * 3000, end='')"))
    assert result.stdout == "aé\U0001f40d" * 3000
    sizes = [len(content["text"]) for content in result.contents("stream")]
    assert sizes == [1000] * 9


def test_a_flood_of_lines_arrives_whole(kernel: KernelProcess) -> None:
    result = ok(kernel.run("for i in range(100_000): print(i)", 30))
    assert result.stdout == "".join(f"{i}\n" for i in range(100_000))


CHILD_OUTPUT = """
import ctypes, os, subprocess, sys
os.system('echo system')
subprocess.run(['echo', 'run'])
os.write(1, b'write\\n')
libc = ctypes.CDLL(None)
libc.printf(b'printf\\n'); libc.fflush(None)
subprocess.run('echo error >&2', shell=True)
"""


def test_output_of_children_and_c_comes_before_idle(kernel: KernelProcess) -> None:
    for _ in range(30):
        result = ok(kernel.run(CHILD_OUTPUT))
        assert result.stdout == "system\nrun\nwrite\nprintf\n"
        assert result.stderr == "error\n"


def test_print_and_descriptor_writes_keep_their_order(kernel: KernelProcess) -> None:
    code = """
import os
for i in range(200):
    print('p', i)
    os.write(1, b'w %d\\n' % i)
    if i % 50 == 0: os.system(f'echo s {i}')
"""
    expected = ""
    for i in range(200):
        expected += f"p {i}\nw {i}\n" + (f"s {i}\n" if i % 50 == 0 else "")
    assert ok(kernel.run(code)).stdout == expected


def test_a_display_comes_between_what_was_written_before_and_after(kernel: KernelProcess) -> None:
    result = ok(kernel.run("import os; print(1); os.system('echo 2'); display(3); print(4)"))
    shown = [
        m["content"].get("text", m["msg_type"])
        for m in result.messages
        if m["msg_type"] in ("stream", "display_data")
    ]
    cut = shown.index("display_data")
    assert "".join(shown[:cut]) == "1\n2\n"
    assert "".join(shown[cut + 1 :]) == "4\n"


def test_bytes_that_are_no_text_are_replaced(kernel: KernelProcess) -> None:
    result = ok(kernel.run(r"import os; os.write(1, b'a\xffb\n'); print('c\udcffd', '\ud800')"))
    assert result.stdout == "a\ufffdb\nc\ufffdd \ufffd\n"
    assert ok(kernel.run(r"'x\udcff'")).text.startswith("'x")


def test_a_character_cut_by_a_write_stays_whole(kernel: KernelProcess) -> None:
    code = """
import os, time
for byte in '\U0001f40d€\\n'.encode():
    os.write(1, bytes([byte])); time.sleep(0.02)
"""
    assert ok(kernel.run(code)).stdout == "\U0001f40d€\n"
    assert ok(kernel.run("os.write(1, '€'.encode()[:2])")).stdout == "\ufffd"


def test_a_child_that_never_stops_does_not_hold_the_cell(kernel: KernelProcess) -> None:
    result = ok(kernel.run("import subprocess; child = subprocess.Popen(['yes'])", 10))
    assert result.seconds < 3
    assert result.report["children"] == 1
    result = ok(kernel.run("child.kill(); child.wait(); print('over')", 20))
    assert "over\n" in result.stdout
    assert result.report["children"] == 0


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; os.close(1); os.close(2)",
        "import sys; sys.stdout = sys.stderr = None",
        "import sys; del sys.stdout",
        "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
        "import io, sys; sys.stdout = io.StringIO()",
        "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'latin-1')",
        "import sys; sys.stdout.detach()",
        "import sys; sys.stdout = object(); 1 / 0",
    ],
)
def test_a_cell_that_breaks_its_output_breaks_it_for_itself_only(
    kernel: KernelProcess, code: str
) -> None:
    kernel.run(code)
    result = ok(
        kernel.run("import os, sys; print(1, file=sys.stderr); print(2); os.system('echo 3')")
    )
    assert (result.stderr, result.stdout) == ("1\n", "2\n3\n")


def test_stdout_behaves_like_a_file_of_bytes_too(kernel: KernelProcess) -> None:
    code = r"""
import io, subprocess, sys
print('a'); sys.stdout.buffer.write(b'b\n'); print('c')
subprocess.run(['echo', 'd'], stdout=sys.stdout)
wrapper = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')
print('é', file=wrapper, flush=True)
print('f', file=sys.__stdout__)
"""
    assert ok(kernel.run(code)).stdout == "a\nb\nc\nd\né\nf\n"


def test_output_after_the_cell_belongs_to_the_last_cell(kernel: KernelProcess) -> None:
    code = """
import threading
gate = threading.Event()
def late():
    gate.wait(); print('late')
thread = threading.Thread(target=late); thread.start()
"""
    assert ok(kernel.run(code)).report["threads"] == 1
    probe = kernel.send("kernel_info_request", {})  # takes no output over
    kernel.outputs(probe)
    result = ok(kernel.run("gate.set(); thread.join()"))
    assert result.stdout == "late\n"
    assert result.report["threads"] == 0


def test_the_thread_that_reads_scripts_is_ipythons(kernel: KernelProcess) -> None:
    for _ in range(2):
        result = ok(kernel.run("%%bash\necho there", 20))
        assert (result.stdout, result.report["threads"]) == ("there\n", 0)
    code = """
import asyncio, threading
loop = asyncio.new_event_loop()
mine = threading.Thread(target=loop.run_forever); mine.start()
"""
    assert ok(kernel.run(code)).report["threads"] == 1, "a loop of the user's counts"
    result = ok(kernel.run("loop.call_soon_threadsafe(loop.stop); mine.join()"))
    assert result.report["threads"] == 0


def test_forked_workers_print_into_the_cell(kernel: KernelProcess) -> None:
    code = """
import multiprocessing
fork = multiprocessing.get_context('fork')
def work(i):
    print('child', i)
    return i * i
print('before')
with fork.Pool(2) as pool:
    print(sum(pool.map(work, range(20))))
"""
    for _ in range(3):
        lines = ok(kernel.run(code, 20)).stdout.splitlines()
        assert lines[0] == "before"
        assert sorted(lines[1:]) == sorted([f"child {i}" for i in range(20)] + ["2470"])


def test_a_stray_fork_ends_with_its_cell(kernel: KernelProcess) -> None:
    code = """
import os
pid = os.fork()
print('child' if pid == 0 else 'parent')
if pid:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    result = ok(kernel.run(code))
    assert sorted(result.stdout.splitlines()) == ["0", "child", "parent"]
    failing = "import os\nif os.fork() == 0: 1/0\nelse: print(os.wait()[1] >> 8)"
    result = ok(kernel.run(failing))
    assert result.stdout == "1\n"
    assert "ZeroDivisionError" in result.stderr
    assert ok(kernel.run("1 + 1")).text == "2"


def test_a_crash_leaves_its_trace_on_the_original_stderr(start: Start) -> None:
    kernel = start()
    kernel.send_cell("import ctypes; ctypes.string_at(0)")
    assert kernel.process.wait(10) == -signal.SIGSEGV
    assert "Segmentation fault" in kernel.crash_output()
    assert "most recent call first" in kernel.crash_output()


def test_a_program_that_dies_tells_its_status(start: Start) -> None:
    kernel = start()
    kernel.send_cell("import os; os._exit(3)")
    assert kernel.process.wait(10) == 3


# Figures.


def need_matplotlib(kernel: KernelProcess) -> None:
    if kernel.run("import matplotlib", 30).status != "ok":
        pytest.skip("this interpreter has no matplotlib")


def test_open_figures_are_shown_at_the_end_of_the_cell(start: Start) -> None:
    kernel = start()
    need_matplotlib(kernel)
    assert ok(kernel.run("import matplotlib.pyplot as plt; plt.plot([1, 2]);", 30)).images == 1
    assert ok(kernel.run("plt.plot([1]); plt.show()")).images == 1
    assert ok(kernel.run("plt.figure().gca().plot([1]); plt.figure().gca().plot([2]);")).images == 2
    assert ok(kernel.run("1 + 1")).images == 0
    assert kernel.run("plt.plot([1]); 1 / 0").images == 1
    ok(kernel.run("%matplotlib inline"))
    assert ok(kernel.run("plt.plot([1]);")).images == 1
    ok(kernel.run("plt.switch_backend('agg')"))
    assert ok(kernel.run("plt.plot([1]);")).images == 1
    assert ok(kernel.run("plt.get_fignums()")).text == "[]"


# The report in the reply.

GOLDEN_CELL = """
import math, json as js
text = 'x' * 78
items = [1] * 12
mapping = dict.fromkeys(range(2306))
raw = b'abc'
count = 42
ratio = 0.1
nothing = None
huge = 10 ** 100
def line_chart(data): pass
class Shape: pass
shape = Shape()
_private = 1
"""


def test_the_report_is_the_golden_file(start: Start) -> None:
    report = ok(start().run(GOLDEN_CELL)).report
    assert report == json.loads((DATA / "reply_metadata.json").read_text())


def test_what_changed_last_comes_first(kernel: KernelProcess) -> None:
    def names(code: str) -> list[str]:
        return [name for name, _ in ok(kernel.run(code)).report["vars"]]

    assert names("a = [1]; b = [2]; c = [3]") == ["c", "b", "a"]
    assert names("a = [4]") == ["a", "c", "b"]
    assert names("1 + 1") == ["a", "c", "b"]
    assert names("d = [5]; del c") == ["d", "a", "b"]


def test_no_code_of_the_user_runs_for_the_report(kernel: KernelProcess) -> None:
    code = """
import types
calls = []
def spy(name):
    def method(*args, **kwargs):
        calls.append(name); raise RuntimeError(name)
    return method
methods = {n: spy(n) for n in ('__repr__', '__len__', '__str__', '__getattribute__', '__eq__',
                               '__hash__', '__bool__', '__iter__', '__format__')}
class Meta(type):
    __name__ = property(spy('meta name'))
    __instancecheck__ = __subclasscheck__ = __eq__ = spy('meta')
    __hash__ = type.__hash__
one = Meta('One', (), dict(methods, __class__=property(spy('class'))))()
two = type('Two', (dict,), methods)()
three = type('Three', (types.ModuleType,), methods)('three')
"""
    report = ok(kernel.run(code)).report
    assert ok(kernel.run("print(calls)")).stdout == "[]\n"
    shown = dict(report["vars"])
    assert (shown["one"], shown["two"], shown["Meta"]) == ("One", "Two", "class")
    assert ["three", "three"] in report["modules"]
    assert "error" not in report


def test_the_report_keeps_no_object_alive(kernel: KernelProcess) -> None:
    ok(kernel.run("import weakref\nclass Big: pass\nbig = Big(); seen = weakref.ref(big)"))
    assert ok(kernel.run("del big; seen() is None")).text == "True"


def test_a_failing_report_leaves_a_valid_reply(start: Start) -> None:
    kernel = start()
    result = kernel.run("get_ipython().kernel.namespace.report = lambda ns: 1 / 0; 7")
    assert result.text == "7"
    assert result.report["v"] == 1
    assert "ZeroDivisionError" in result.report["error"]


def test_the_report_is_bounded(start: Start) -> None:
    kernel = start(summary_max=2000)
    code = "for i in range(500): globals()[f'name_{i:03}'] = [i]"
    report = ok(kernel.run(code)).report
    assert len(json.dumps([report["vars"], report["modules"]])) <= 2000
    assert len(report["vars"]) + report["more_vars"] == 501


def test_tables_are_summarized(start: Start) -> None:
    kernel = start()
    if kernel.run("import pandas, numpy", 30).status != "ok":
        pytest.skip("this interpreter has no pandas")
    code = """
df = pandas.DataFrame({'GBP': [1.0, 2], 'USD': [3, 4]})
wide = pandas.DataFrame(numpy.zeros((3, 8)), columns=list('abcdefgh'))
s = df.GBP
grid = numpy.zeros((3, 4))
point = numpy.float64(1.5)
class Sub(pandas.DataFrame): pass
sub = Sub()
"""
    shown = dict(ok(kernel.run(code, 20)).report["vars"])
    assert shown["df"] == "2x2 [GBP, USD]"
    assert shown["wide"] == "3x8 [a, b, c, d, e, +3]"
    assert shown["s"] == "Series 2 float64"
    assert shown["grid"] == "ndarray 3x4 float64"
    assert shown["point"] == "float64 1.5"
    assert shown["sub"] == "Sub"


# Exits.


@pytest.mark.parametrize(
    ("argument", "code", "stderr"),
    [
        ("", 0, ""),
        ("None", 0, ""),
        ("0", 0, ""),
        ("3", 3, ""),
        ("-1", 255, ""),
        ("True", 1, ""),
        ("'wrong'", 1, "wrong\n"),
    ],
)
def test_sys_exit_keeps_the_kernel(
    kernel: KernelProcess, argument: str, code: int, stderr: str
) -> None:
    ok(kernel.run("import sys, warnings; warnings.simplefilter('always')"))
    result = kernel.run(f"x = 1; sys.exit({argument})")
    assert result.error == "SystemExit"
    assert result.report["exit_code"] == code
    assert (result.stdout, result.stderr) == ("", stderr)
    assert [content["ename"] for content in result.contents("error")] == ["SystemExit"]
    after = ok(kernel.run("x"))
    assert after.text == "1"
    assert "exit_code" not in after.report


@pytest.mark.parametrize("code", ["print('bye')\nexit()", "print('bye')\nquit()", "exit"])
def test_exit_ends_the_process_after_the_reply(start: Start, code: str) -> None:
    kernel = start()
    result = ok(kernel.run(code))
    assert result.stdout == ("bye\n" if "bye" in code else "")
    assert result.report["exiting"] is True
    assert kernel.process.wait(5) == 0
    assert kernel.crash_output() == ""


def test_twenty_shutdowns_are_clean(start: Start) -> None:
    for i in range(20):
        kernel = start()
        if i % 2:
            ok(kernel.run("import threading, atexit; print(1)"))
        if i % 4 == 3:
            ok(kernel.run("threading.Thread(target=threading.Event().wait).start()"))
        assert kernel.shutdown() == 0
        assert kernel.crash_output() == ""
        kernel.close()


def test_shutdown_runs_exit_handlers_and_sends_their_output(start: Start) -> None:
    kernel = start()
    code = "import atexit; atexit.register(lambda: (open('left', 'w').close(), print('end')))"
    ok(kernel.run(code))
    (kernel.workspace / "k-1").touch()  # has the name of a socket, and must survive
    assert kernel.shutdown() == 0
    assert kernel.wait_output("stream")["content"]["text"].rstrip() == "end"  # or in two parts
    assert {path.name for path in kernel.workspace.iterdir()} == {"left", "k-1"}


@pytest.mark.parametrize(
    "code",
    [
        "import time; print('go'); time.sleep(60)",
        "print('go')\nwhile True:\n  try:\n    while True: pass\n  except BaseException: pass",
    ],
    ids=["sleeping", "stubborn"],
)
def test_shutdown_ends_a_running_cell(start: Start, code: str) -> None:
    kernel = start()
    kernel.send_cell(code)
    kernel.wait_output("stream")
    begin = time.monotonic()
    assert kernel.shutdown() == 0
    assert time.monotonic() - begin < 2


# Interrupts.

LOOPS = {
    "sleep": "import time; print('go'); time.sleep(60)",
    "loop": "print('go')\nwhile True: pass",
    "subprocess": "import subprocess; print('go'); subprocess.run(['sleep', '60'])",
    "shell command": "print('go')\n!sleep 60",
    "deaf shell command": "!trap '' INT HUP; echo go; sleep 60",
    "print flood": "print('go')\nwhile True: print('x' * 100)",
    "await": "import asyncio; print('go'); await asyncio.sleep(60)",
    "gather": "import asyncio; print('go'); await asyncio.gather(*[asyncio.sleep(60)] * 1)",
    "sleep in a coroutine": """
import time
async def work(): print('go'); time.sleep(60)
await work()""",
    "thread": """
import asyncio, time
print('go'); await asyncio.to_thread(time.sleep, 2)""",
}


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS.keys())
def test_an_interrupt_is_a_keyboard_interrupt(kernel: KernelProcess, code: str) -> None:
    msg_id = kernel.send_cell(code)
    kernel.wait_output("stream")
    began = time.monotonic()
    kernel.interrupt()
    result = kernel.finish(msg_id)
    took = time.monotonic() - began
    assert result.error == "KeyboardInterrupt", result.reply["content"]
    assert [content["ename"] for content in result.contents("error")] == ["KeyboardInterrupt"]
    assert took < 2
    assert str(PYSIDE) not in "".join(result.reply["content"]["traceback"])
    assert ok(kernel.run("1 + 1")).text == "2"


def test_a_value_that_cannot_be_shown_fails_no_later_cell(kernel: KernelProcess) -> None:
    result = kernel.run("class Bad:\n  def __repr__(self): 1 / 0\nBad()")
    assert [content["ename"] for content in result.contents("error")] == ["ZeroDivisionError"]
    assert result.error in ("", "ZeroDivisionError")  # ipykernel before 7.3 calls the cell fine
    ok(kernel.run("await __import__('asyncio').sleep(0)"))


def test_an_interrupt_while_idle_is_harmless(kernel: KernelProcess) -> None:
    for _ in range(5):
        kernel.interrupt()
        assert ok(kernel.run("1 + 1")).text == "2"


def test_an_interrupt_at_any_moment_leaves_a_reply(kernel: KernelProcess) -> None:
    cells = [
        "for i in range(3000): print(i)",
        "await __import__('asyncio').sleep(0.005)",
        "1 / 0",
        "!true",
    ]
    ends = set()
    for i in range(80):
        msg_id = kernel.send_cell(cells[i % 4])
        until = time.monotonic() + i * 0.0002
        while time.monotonic() < until:
            pass
        kernel.interrupt()
        ends.add(kernel.finish(msg_id).error)
    assert ends <= {"", "KeyboardInterrupt", "ZeroDivisionError"}
    assert ok(kernel.run("1 + 1")).text == "2"


def test_an_interrupt_just_as_a_command_ends_is_a_keyboard_interrupt(
    kernel: KernelProcess,
) -> None:
    code = """
import os
waitpid = os.waitpid
def interrupted(pid, options):
    found = waitpid(pid, options)
    if found[0]:
        os.waitpid = waitpid
        raise KeyboardInterrupt
    return found
os.waitpid = interrupted
!true
"""
    assert kernel.run(code).error == "KeyboardInterrupt"
    assert ok(kernel.run("!echo still here")).stdout == "still here\n"


def test_a_handler_of_one_cell_does_not_outlive_it(kernel: KernelProcess) -> None:
    ok(kernel.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"))
    test_an_interrupt_is_a_keyboard_interrupt(kernel, LOOPS["sleep"])


# What the user finds.


def test_input_is_refused_in_words(kernel: KernelProcess) -> None:
    refused = {"input('?')": "nobody to ask", "import getpass; getpass.getpass()": "not offered"}
    for code, words in refused.items():
        result = kernel.run(code)
        assert result.error == "StdinNotImplementedError"
        assert words in result.reply["content"]["evalue"]
        assert str(PYSIDE) not in "".join(result.reply["content"]["traceback"])


def test_inputs_of_long_ago_have_no_names(kernel: KernelProcess) -> None:
    ok(kernel.run("_i2 = 'mine'"))
    for _ in range(INPUTS_NAMED + 2):
        ok(kernel.run("pass"))
    result = ok(kernel.run("[n for n in dir() if n.startswith('_i') and n[2:].isdigit()], _i2"))
    assert result.text.endswith(" 'mine')")
    assert result.text.count("_i") == INPUTS_NAMED + 2  # this cell's, too, and that of the user
    assert ok(kernel.run("In[-3]")).text == "'pass'"


def test_a_module_of_the_workspace_is_importable(kernel: KernelProcess) -> None:
    (kernel.workspace / "helper.py").write_text("def triple(x): return 3 * x\n")
    result = ok(kernel.run("import helper; helper.triple(2)"))
    assert result.text == "6"
    assert result.report["modules"] == [["helper", "helper"]]


def test_the_process_looks_like_a_plain_interpreter(kernel: KernelProcess) -> None:
    code = """
import os, pickle, sys
class Point: pass
assert isinstance(pickle.loads(pickle.dumps(Point())), Point)
assert sys.modules['__main__'].Point is Point
print(sys.argv, os.getcwd(), os.environ['TERM'], sys.stdin.read(), '' in sys.path)
"""
    printed = ok(kernel.run(code)).stdout
    assert printed == f"[''] {kernel.workspace} dumb  True\n"


def test_magics_and_shell_commands_work(kernel: KernelProcess) -> None:
    result = ok(kernel.run("!tty <&1; echo shell\n%pip --version", 30))
    assert "/dev/pts/" in result.stdout
    assert "shell" in result.stdout
    assert "pip " in result.stdout
    assert ok(kernel.run("display('shown')")).contents("display_data")
    assert ok(kernel.run("%%bash\necho bash")).stdout == "bash\n"


@pytest.mark.parametrize("code", ["", " \n\t", "\u3000"])
def test_a_blank_cell_has_a_number_of_its_own(kernel: KernelProcess, code: str) -> None:
    numbers = [
        ok(kernel.run(each)).reply["content"]["execution_count"] for each in ("1", code, "2")
    ]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_a_shell_command_that_asks_hears_that_nobody_types(kernel: KernelProcess) -> None:
    assert ok(kernel.run("!read answer || echo nobody")).stdout == "nobody\n"


def test_debugpy_is_left_to_the_user(kernel: KernelProcess) -> None:
    result = ok(kernel.run("import sys; print('debugpy' in sys.modules, 'jedi' in sys.modules)"))
    assert result.stdout == "False False\n"


@pytest.mark.parametrize(
    "code",
    [
        "1 / 0",
        "import sys; sys.stdout.write(5)",
        "def f():\n  try: 1 / 0\n  except Exception as e: raise ValueError from e\nf()",
        "import sys; sys.stdout.buffer.write(5j)",
    ],
)
def test_tracebacks_do_not_show_our_code(kernel: KernelProcess, code: str) -> None:
    result = kernel.run(code)
    assert result.status == "error"
    text = "".join(result.reply["content"]["traceback"])
    assert "vivarium" not in text
    assert "Traceback" in text


# Golden messages for the C tests.


def test_the_golden_frames_are_what_jupyter_client_writes() -> None:
    spec = importlib.util.spec_from_file_location("make_frames", DATA / "make_frames.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.render() == module.PATH.read_text()


def test_the_tests_own_environment_is_not_the_kernels(kernel: KernelProcess) -> None:
    seen = ok(kernel.run("import os; print(sorted(os.environ))")).stdout
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert "PYTEST" not in seen
