"""A namespace as a stream and back: what stays the same, what becomes a tombstone, what a dump
leaves as it was.  Most of it runs in the kernels' interpreter, by the judge of tests/classes.
"""

from __future__ import annotations

import gc
import importlib
import json
import linecache
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import any_python

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "pyside"), str(ROOT / "tests" / "classes")]

import run as judge  # noqa: E402 (from tests/classes)


def ours(module: str) -> Any:
    return importlib.import_module(f"vivarium_kernel.snapshot.{module}")


process, records = ours("process"), ours("records")
dump, module_versions = ours("pickler").dump, ours("pickler").module_versions
load = ours("loader").load
Tombstone, NotRestoredError = ours("tombstone").Tombstone, ours("tombstone").NotRestoredError

# name: setup, probe.  The probe must give the same repr in another process.
SAME = {
    "one object under two names": ("a=[1]; b=[a]; x=(a,b)", "b[0] is a and x[0] is a"),
    "the namespace itself": ("g=globals(); x=[g]", "x[0] is g is globals()"),
    "closures share a cell": (
        "def f():\n n=0\n def up():\n  nonlocal n; n+=1\n def get(): return n\n return up,get\n"
        "up,get=f(); up()",
        "(up(), get())",
    ),
    "a function sees new globals": ("k=1\ndef f(): return k", "(globals().update(k=7), f())"),
    "an array and its view": (
        "import numpy as np\na=np.zeros(9); v=a[2:5]",
        "(v.fill(3), a.sum())",
    ),
    "two views of an array without a name": (
        "import numpy as np\na=np.arange(9); v,w=a[1:5],a[3:7]; del a",
        "(v.fill(0), w.tolist())",
    ),
    "a reversed, strided view": (
        "import numpy as np\na=np.arange(12).reshape(3,4); v=a[::-1,::2]",
        "(v.tolist(), v.strides, np.shares_memory(a,v))",
    ),
    "a view of objects": (
        "import numpy as np\na=np.array([1,[2],3],dtype=object); v=a[1:]; o=a[1]",
        "(v[0] is o, v.__setitem__(0,5), a.tolist())",
    ),
    "an array over a bytearray": (
        "import numpy as np\nb=bytearray(b'abcd'); a=np.frombuffer(b,'u1')",
        "(b.__setitem__(0,9), a.tolist())",
    ),
    "a view of a view of a subclass": (
        "import numpy as np\nclass S(np.ndarray): pass\na=np.arange(6.).view(S); a.k=1; v=a[1:3]",
        "(v.fill(9), a.tolist(), a.k, type(v) is S)",
    ),
    "a read-only array": (
        "import numpy as np\na=np.arange(20000.); a.flags.writeable=False",
        "(a.flags.writeable, a.sum())",
    ),
    "a memory map, copy on write": (
        "import numpy as np\nm=np.memmap('/tmp/vivarium-map','i4','w+',shape=(4,)); del m\n"
        "x=np.memmap('/tmp/vivarium-map','i4','c'); x[1]=5",
        "x.tolist()",
    ),
    "instances of a class that was defined again": (
        "class A: v=1\na=A()\nclass A: v=2\nb=A()",
        "(a.v, b.v, type(a) is A, type(b) is A)",
    ),
    "an enum with values of its own": (
        "import enum\nclass P(enum.Enum):\n A=(1,2); B=(3,4)\n def __init__(s,m,r): s.m=m\n"
        " @property\n def twice(s): return s.m*2\nx=P.B",
        "(x is P.B, x.twice, P((1,2)), list(P), P['A'].m)",
    ),
    "an int enum with an alias": (
        "import enum\nclass C(enum.IntEnum):\n A=1; B=1; D=4\nx=[C.D, C.B]",
        "(x[0]+1, x[1] is C.A, C(4), list(C.__members__))",
    ),
    "__init_subclass__ does not run again": (
        "class B:\n seen=[]\n def __init_subclass__(c,key,**k): c.seen.append(key)\n"
        "class S(B,key=1): pass",
        "(B.seen, S.seen is B.seen)",
    ),
    "a metaclass does not run again": (
        "class M(type):\n made=[]\n def __new__(m,n,b,d): m.made.append(n); "
        "return super().__new__(m,n,b,d)\nclass A(metaclass=M): pass",
        "(M.made, type(A) is M)",
    ),
    "TypedDict, Protocol, Generic": (
        "import typing\nT=typing.TypeVar('T')\nclass D(typing.TypedDict): a:int\n"
        "class P(typing.Protocol):\n def m(s): ...\nclass G(typing.Generic[T]): pass\n"
        "class H(G[int]): pass",
        "(D(a=1), D.__annotations__, H.__mro__[1] is G, H.__orig_bases__ == (G[int],), G[T])",
    ),
    "exceptions of any signature": (
        "class E(Exception):\n def __init__(s,a,*,b): super().__init__('m'); s.a=a\n"
        "x=E(1,b=2); x.__cause__=KeyError('k'); y=FileNotFoundError(2,'no','f')",
        "(x, x.a, x.__cause__, y.filename, str(y))",
    ),
    "a dict class with methods of its own": (
        "class D(dict):\n def __init__(s): s.log=[]\n"
        " def __setitem__(s,k,v): s.log.append(k); super().__setitem__(k,v)\n"
        "x=D(); x['a']=1",
        "(x, x.log)",
    ),
    "classes with a __new__ of their own": (
        "import collections as k\nclass T(tuple):\n"
        " def __new__(c,a,b): return super().__new__(c,(a,b))\n"
        "class N(k.namedtuple('N','a b')):\n def __new__(c,a): return super().__new__(c,a,a)\n"
        "class O:\n made=0\n def __new__(c,a): O.made+=1; return super().__new__(c)\n"
        "class I(int):\n def __new__(c,a,b): return super().__new__(c,a+b)\n"
        "t=T(1,2); t.k=3; n=N(4); o=O(5); i=I(1,2); i.k=6",
        "(t, t.k, n, n.b, O.made, i, i.k, type(o) is O)",
    ),
    "a queue": ("import queue\nx=queue.SimpleQueue(); x.put(1); x.put([2])", "(x.get(), x.get())"),
    "a started generator": (
        "log=[]\ndef g():\n try:\n  for i in range(9):\n   log.append((yield i))\n finally:\n"
        "  log.append('end')\nx=g(); next(x); x.send(5)",
        "(x.send(6), x.close(), log)",
    ),
    "a generator that delegates": (
        "def a():\n b=yield 1\n return b\ndef g():\n yield (yield from a())\nx=g(); next(x)",
        "x.send(8)",
    ),
    "a coroutine": (
        "async def f(a): return a+1\nx=f(2)",
        "(lambda c: [c.send(None) for _ in '1'])(x) if False else x.cr_frame.f_locals.get('z')",
    ),
    "text files, at their place": (
        "p='/tmp/vivarium-text'\nopen(p,'w').write('ä1\\nö2\\nü3\\n')\nx=open(p); x.readline()\n"
        "y=open(p,'a'); y.write('end'); y.flush(); z=open(p,'rb'); z.read(3)",
        "(x.readline(), x.mode, y.tell(), y.mode, z.tell(), x.encoding)",
    ),
    "a file that is being written": (
        "x=open('/tmp/vivarium-write','w'); x.write('abc'); x.flush()",
        "(x.name, x.mode, x.readable(), x.tell(), open(x.name).read())",
    ),
    "a file whose name was of another directory": (
        "import os\nos.chdir('/tmp'); x=open('vivarium-there','w'); x.write('abc'); x.flush()\n"
        "os.chdir('/')",
        "(x.name, x.tell(), open('/tmp/vivarium-there').read(), x.closed)",
    ),
    "a database with its rows": (
        "import sqlite3\nx=sqlite3.connect(':memory:'); x.row_factory=sqlite3.Row\n"
        "x.execute('create table t(a)'); x.execute('insert into t values(5)'); x.commit()",
        "[dict(r) for r in x.execute('select * from t')]",
    ),
    "random generators": (
        "import random\nimport numpy as np\nrandom.seed(1); np.random.seed(2); "
        "r=np.random.default_rng(3); r.random(); q=random.Random(4); q.random()",
        "(random.random(), np.random.rand(), r.random(), q.random())",
    ),
    "options": (
        "import logging,warnings,decimal,os,sys\nimport pandas as pd\nimport numpy as np\n"
        "pd.options.display.max_rows=7; np.set_printoptions(precision=2)\n"
        "logging.getLogger('zz').setLevel(7); decimal.getcontext().prec=5\n"
        "warnings.filterwarnings('ignore', message='zz'); os.environ['ZZ']='1'\n"
        "os.environ.pop('HOME',0); sys.setrecursionlimit(2222)",
        "(pd.options.display.max_rows, np.get_printoptions()['precision'],"
        "logging.getLogger('zz').level, decimal.getcontext().prec, os.environ['ZZ'],"
        "'HOME' in os.environ, sys.getrecursionlimit(), warnings.filters[0][0])",
    ),
    "figures under their numbers": (
        "import matplotlib.pyplot as plt\na=plt.figure(5); b=plt.figure(2); plt.plot([1])",
        "(plt.get_fignums(), plt.gcf() is b, plt.figure(5) is a)",
    ),
    "a module made by hand": (
        "import types,sys\nm=types.ModuleType('zz_made'); m.v=3; sys.modules['zz_made']=m",
        "__import__('zz_made').v",
    ),
    "a function put into a module": ("import json\njson.twice=lambda v: v*2", "json.twice(4)"),
    "history": ("1+1", "(In[-1], len(In), Out, get_ipython().execution_count)"),
    "deep lists": ("x=[]\nfor i in range(5000): x=[x]", "len(x)"),
    "a long chain": (
        "class N:\n def __init__(s,n): s.n=n\nx=None\nfor i in range(20000): x=N(x)",
        "x.n.n is not None",
    ),
    "builtins deleted": ("def f(x): return len(x)\ndel __builtins__", "f('abc')"),
    "source for a traceback": (
        "def f(): return 1/0",
        "__import__('inspect').getsource(f)",
    ),
}
# name: setup, a piece of the reason that the tombstone gives for x.
TOMBS = {
    "a reduce that raises an interrupt": (
        "class A:\n def __reduce__(s): raise KeyboardInterrupt\nx=A()",
        "KeyboardInterrupt",
    ),
    "a reduce that recurses": (
        "class A:\n def __reduce__(s): return s.__reduce__()\nx=A()",
        "RecursionError",
    ),
    "a reduce that returns rubbish": ("class A:\n def __reduce__(s): return 5\nx=A()", "tuple"),
    "a metaclass that forbids everything": (
        "class M(type):\n def no(c,*a): raise RuntimeError('no')\n"
        " __getattribute__=__setattr__=__call__=__hash__=__eq__=no\n"
        "class A(metaclass=M): pass\nx=object.__new__(A)",
        "RuntimeError",
    ),
    "a socket": ("import socket\nx=socket.socket()", "connection"),
    "a pipe": ("import os\nx=os.fdopen(os.pipe()[0])", "name"),
    "a running thread": (
        "import threading as t\nx=t.Thread(target=t.Event().wait,daemon=True)\nx.start()",
        "running",
    ),
    "a deleted file": (
        "import os\nx=open('/tmp/vivarium-gone','w'); os.unlink('/tmp/vivarium-gone')",
        "no longer",
    ),
    "lists that never end": ("x=[]\nfor i in range(400000): x=[x]", "RecursionError"),
    "a list that cannot be iterated over": (
        "class A:\n def __reduce__(s): return list, (), None, (1/0 for _ in 'a')\nx=A()",
        "ZeroDivisionError",
    ),
    "a generator that handles an error": (
        "def g():\n try: 1/0\n except Exception: yield 1\nx=g(); next(x)",
        "exception",
    ),
}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, judge.Verdict]:
    cases: list[dict[str, Any]] = [
        {"name": name, "lib": "", "setup": setup, "probe": probe}
        for name, (setup, probe) in SAME.items()
    ]
    cases += [
        {"name": name, "lib": "", "setup": setup, "probe": None}
        for name, (setup, _) in TOMBS.items()
    ]
    preload = ["numpy", "pandas", "matplotlib.pyplot"]
    found = judge.run_all(str(any_python()), cases, 2, preload)
    return {each["name"]: each for each in found}


@pytest.mark.parametrize("name", SAME)
def test_another_process_sees_the_same(name: str, verdicts: dict[str, judge.Verdict]) -> None:
    verdict = verdicts[name]
    if verdict["verdict"] == "missing":
        pytest.skip(verdict["seen"])
    assert (verdict["verdict"], verdict["seen"]) == ("restored", "")


@pytest.mark.parametrize("name", TOMBS)
def test_what_cannot_be_kept_says_why(name: str, verdicts: dict[str, judge.Verdict]) -> None:
    verdict = verdicts[name]
    assert verdict["verdict"] == "restored"
    assert TOMBS[name][1] in verdict["seen"]


# In this process, with namespaces of plain values.


class Shell:
    def __init__(self, names: dict[str, Any]) -> None:
        self.user_ns = names


class Memory:
    """A sink.  It may be told to give way at the n-th occasion."""

    def __init__(self, patience: int = -1) -> None:
        self.stream = bytearray()
        self.buffers: list[bytes] = []
        self.patience = patience

    def write(self, data: bytes, /) -> int:
        self.give_way()
        self.stream += data
        return len(data)

    def buffer(self, buffer: pickle.PickleBuffer, /) -> bool:
        self.buffers.append(bytes(buffer.raw()))
        return False

    def give_way(self) -> None:
        self.patience -= 1
        if self.patience == -1:
            raise records.Preempted


def dumped_from(names: dict[str, Any]) -> tuple[Any, Memory]:
    sinks: list[Memory] = []

    def sink() -> Memory:
        sinks.append(Memory())
        return sinks[-1]

    process.begin()  # this process is pytest's, not a session
    shell = Shell(names)
    return dump(shell, shell.user_ns, sink, lambda _: 3), sinks[-1]


def loaded_from(
    dumped: Any,
    memory: Memory,
    skip: frozenset[str] = frozenset(),
    begin: Callable[[int, str], None] = lambda *_: None,
) -> tuple[dict[str, Any], Any]:
    shell = Shell({})
    buffers = [bytearray(each) for each in memory.buffers]
    loaded = load(shell, memory.stream, buffers, dumped, skip=skip, begin=begin)
    return shell.user_ns, loaded


BROKEN = """
class Fragile:
    whole = True
    def __init__(self, *parts): self.parts = parts
    def __setstate__(self, state):
        if not Fragile.whole: raise OSError('broken')
        self.__dict__.update(state)
"""


def with_fragile() -> tuple[dict[str, Any], Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(BROKEN, names)
    return names, names["Fragile"]


def test_a_name_that_fails_leaves_the_later_ones_right() -> None:
    names, fragile = with_fragile()
    shared, inner = ["shared"], ["inner"]
    fragile.whole = False
    names |= {
        "a": shared,
        "b": [fragile(inner, shared), inner],
        "c": [inner, shared],
        "d": {"k": inner},
    }
    dumped, memory = dumped_from(names)
    found, loaded = loaded_from(dumped, memory)
    assert [each.name for each in loaded.failed] == ["b"]
    assert "broken" in loaded.failed[0].why
    assert type(found["b"][0]) is Tombstone
    assert found["c"] == [["inner"], ["shared"]]
    assert found["c"][0] is found["b"][1] is found["d"]["k"]
    assert found["c"][1] is found["a"]


def test_a_skipped_name_is_not_run_and_what_it_held_is_a_tombstone_elsewhere() -> None:
    names, fragile = with_fragile()
    thing = fragile(1)
    names |= {"a": [thing], "b": [thing, 2], "c": 3}
    dumped, memory = dumped_from(names)
    begun: list[str] = []
    found, loaded = loaded_from(
        dumped, memory, frozenset({"a"}), lambda _, name: begun.append(name)
    )
    assert begun == ["Fragile", "a", "b", "c"]
    assert {each.name for each in loaded.failed} >= {"a"}
    assert type(found["a"][0]) is Tombstone
    assert found["b"][0] is found["a"][0]
    assert (found["b"][1], found["c"]) == (2, 3)


def test_a_stream_that_is_damaged_costs_one_name() -> None:
    dumped, memory = dumped_from({"a": [1, 2], "b": {"k": (3, 4)}, "c": "end"})
    middle = dumped.entries[1]
    memory.stream[middle.at + 11 : middle.at + 14] = b"\xff\xff\xff"
    found, loaded = loaded_from(dumped, memory)
    assert (found["a"], found["c"]) == ([1, 2], "end")
    assert type(found["b"]) is Tombstone
    assert [each.name for each in loaded.failed] == ["b"]


def test_code_of_another_python_is_compiled_from_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = (
        "def f(a):\n    return a + k\nk = 2\ng = (i for i in 'ab')\ntwo = lambda: 1, lambda: 2\n"
    )
    lines = source.splitlines(True)
    monkeypatch.setitem(linecache.cache, "cell", (len(source), None, lines, "cell"))
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "cell", "exec"), names)
    dumped, memory = dumped_from(names)
    for module in (ours("reducers.functions"), ours("reducers.generators")):
        monkeypatch.setattr(module, "MINOR", (3, 99))
    found, loaded = loaded_from(dumped, memory)
    assert found["f"](1) == 3
    assert {each.name for each in loaded.failed} == {"g", "two"}  # which lambda is not known
    assert type(found["g"]) is Tombstone


def test_large_bytes_go_beside_the_stream() -> None:
    big = bytes(range(256)) * 1000
    dumped, memory = dumped_from({"a": big, "b": big, "c": b"small"})
    assert len(memory.buffers) == 1
    assert len(memory.stream) < len(big) / 10
    found, _ = loaded_from(dumped, memory)
    assert found["a"] == big
    assert found["b"] is found["a"]
    assert [each.type for each in dumped.entries] == ["bytes"] * 3


def test_many_names_that_cannot_be_written_cost_only_themselves() -> None:
    names: dict[str, Any] = {"kept": [1]}
    for number in range(60):
        endless: list[Any] = []
        for _ in range(300_000 if number % 20 == 0 else 3):
            endless = [endless]
        names[f"n{number}"] = endless
    dumped, memory = dumped_from(names)
    assert [each.name for each in dumped.entries if each.lost] == ["n0", "n20", "n40"]
    found, _ = loaded_from(dumped, memory)
    assert (found["kept"], found["n1"]) == ([1], [[[[]]]])
    assert type(found["n20"]) is Tombstone


def test_every_use_of_a_tombstone_says_what_it_was() -> None:
    dumped, memory = dumped_from({"lost": threading.current_thread})
    lost = Tombstone("socket.socket", "a connection ends with its process", "s", 4)
    dumped, memory = dumped_from({"s": lost})
    again = loaded_from(dumped, memory)[0]["s"]
    assert repr(again) == repr(lost)
    assert "socket.socket in 's', made by cell 4: a connection ends" in repr(again)
    uses: list[Callable[[Any], Any]] = [
        len, iter, bool, int, next, lambda v: v + 1, lambda v: 1 + v, lambda v: v(), lambda v: v[0],
        lambda v: v.send, lambda v: v < 1, lambda v: -v, lambda v: 1 in v,
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(NotRestoredError, match=r"socket\.socket"):
            use(again)
    assert not hasattr(again, "_repr_html_")


@pytest.mark.parametrize("patience", [0, 1, 5, 40])
def test_a_dump_gives_way_and_leaves_everything_as_it_was(patience: int) -> None:
    def trace(*_: Any) -> Any:
        return trace

    names, fragile = with_fragile()
    names["x"] = [fragile(n) for n in range(100)]
    before = (gc.isenabled(), sys.getrecursionlimit(), signal.getsignal(signal.SIGINT))
    attributes = set(vars(fragile))
    shell = Shell(names)
    old = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(records.Preempted) as caught:
            dump(shell, shell.user_ns, lambda: Memory(patience), lambda _: 1)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(old)
    assert before == (gc.isenabled(), sys.getrecursionlimit(), signal.getsignal(signal.SIGINT))
    assert caught.value.name in ("", "Fragile", "x")
    assert dumped_from(names)[0].entries[-1].name == "x"
    assert set(vars(fragile)) == attributes


def test_an_error_of_the_sink_is_not_taken_for_the_users() -> None:
    class Full(Memory):
        def write(self, data: bytes, /) -> int:
            raise OSError(28, "No space left")

    shell = Shell({"x": 1})
    with pytest.raises(OSError, match="No space left"):
        dump(shell, shell.user_ns, Full, lambda _: 1)


def test_a_dict_that_a_thread_changes_is_written_in_the_end() -> None:
    class Busy:
        left = 3

        def __reduce__(self) -> Any:
            if Busy.left:
                Busy.left -= 1
                table[len(table)] = Busy()
            return int, (7,)

    table: dict[int, Any] = {0: Busy()}
    dumped, memory = dumped_from({"t": table})
    found, _ = loaded_from(dumped, memory)
    assert set(found["t"].values()) == {7}


def test_entries_tell_sizes_types_and_cells() -> None:
    dumped, memory = dumped_from({"a": 1, "b": [threading.Thread(), b"x" * 70000], "_c": "s"})
    assert [(each.name, each.type) for each in dumped.entries] == [
        ("a", "int"),
        ("b", "list"),
        ("_c", "str"),
    ]
    ends = [each.at + each.size for each in dumped.entries]
    assert ends[:-1] == [each.at for each in dumped.entries[1:]]
    assert ends[-1] == len(memory.stream)
    assert dumped.process.at == 0
    assert dumped.process.size == dumped.entries[0].at
    assert "pytest" not in module_versions(dumped)


def test_names_that_are_not_the_users_stay_out() -> None:
    names = {"_vivarium_x": 1, "__secret__": 2, "_kept": 3, "__half": 4, "x": 5}
    dumped, _ = dumped_from(names)
    assert [each.name for each in dumped.entries] == ["_kept", "__half", "x"]


def test_states_of_older_versions_have_the_inputs_in_one_text() -> None:
    shell = SimpleNamespace(user_ns={"_ih": ["", "1"]}, history_manager=SimpleNamespace())
    state = {"count": 2, "inputs": {"_i": "1"}, "raw": ["", "1 "], "outputs": []}
    ours("live").enter(shell)
    process.write_shell(json.dumps(state))
    history = shell.history_manager
    assert (history.input_hist_parsed, history.input_hist_raw) == (["", "1"], ["", "1 "])
    assert history.input_hist_parsed is shell.user_ns["_ih"]
    assert history._i == "1"
