"""Namespaces that do not want to be saved: each costs only itself, whatever it does, and
nothing of the saving shows.
"""

from __future__ import annotations

import pytest
from conftest import type_of_start
from harness import wait_until

# Code, and the type that `bad` has after a restore: Tombstone for what cannot be kept.
BAD = {
    "its __reduce__ sleeps": (
        "import time\nclass Bad:\n    def __reduce__(self): time.sleep(100)\nbad = Bad()",
        "Tombstone",
    ),
    "its __reduce__ is interrupted": (
        "class Bad:\n    def __reduce__(self): raise KeyboardInterrupt\nbad = Bad()",
        "Tombstone",
    ),
    "its __reduce__ exits": (
        "class Bad:\n    def __reduce__(self): raise SystemExit(3)\nbad = Bad()",
        "Tombstone",
    ),
    "its __reduce__ has no end": (
        "class Bad:\n    def __reduce__(self): return Bad, (Bad(),)\nbad = Bad()",
        "Tombstone",
    ),
    "its __reduce__ prints": (
        "import warnings\nclass Bad:\n    def __reduce__(self):\n"
        "        print('LEAK'); warnings.warn('LEAK'); return int, (5,)\nbad = Bad()",
        "int",
    ),
    "its __reduce__ differs each time": (
        "import random\nclass Bad:\n    def __reduce__(self): return float, (random.random(),)\n"
        "bad = Bad()",
        "float",
    ),
    "a lock that another thread held": (
        "import threading\nlock = threading.Lock()\nclass Bad:\n    def __getstate__(self):\n"
        "        with lock: return {}\nbad = Bad()\n"
        "thread = threading.Thread(target=lock.acquire); thread.start(); thread.join()",
        "Tombstone",
    ),
    "deep nesting": ("bad = []\nfor _ in range(5000): bad = [bad]", "list"),
    "a thread that changes names": (
        "import threading, time\nbad = {n: n for n in range(20000)}\ndef change():\n    n = 0\n"
        "    while True:\n        n += 1; bad[n % 40000] = n; bad.pop(n * 7 % 40000, None)\n"
        "        globals()[f'name{n % 50}'] = n\n        time.sleep(0.00001)\n"
        "threading.Thread(target=change, daemon=True).start()",
        "dict",
    ),
    "a fork": (
        "import os\nbad = os.fork()\nif bad == 0: os._exit(0)\nended = os.waitpid(bad, 0)",
        "int",
    ),
    "a trace function": ("import sys\nbad = 1\nsys.settrace(lambda *_: None)", "int"),
    "no builtins": ("bad = 1\ndel __builtins__", "int"),
    "a metaclass that forbids all": (
        "class Meta(type):\n    def __getattribute__(cls, name): raise TypeError('no')\n"
        "    def __setattr__(cls, name, value): raise TypeError('no')\n"
        "class Kind(metaclass=Meta): pass\nbad = 1",
        "int",
    ),
    "a __getattr__ without end": (
        "class Bad:\n    def __getattr__(self, name): return getattr(self, name + 'x')\n"
        "bad = Bad()",
        "Bad",
    ),
    "a repr that raises": (
        "class Bad:\n    def __repr__(self): raise ValueError('no')\nbad = Bad()",
        "Bad",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_costs_only_itself(start: type_of_start, name: str) -> None:
    code, kind = BAD[name]
    daemon = start(env={"VIVARIUM_VERIFY": "off"})
    client = daemon.client()
    client.run("keep = [1, 2]; same = keep")
    texts = [client.run(code).text, client.run("keep.append(3)").text]
    cell = int(client.run("None").data["execution_count"])
    wait_until(lambda: daemon.saved_upto() == cell, 30, "it is saved")
    texts.append(client.run("'after'").text)
    assert texts == ["(no output)", "(no output)", f"Out[{cell + 1}]: 'after'"]
    daemon.kill_kernel()
    result = client.run("print(keep, same is keep, type(bad).__name__)")
    assert result.data["stdout"] == f"[1, 2, 3] True {kind}\n"
    assert "LEAK" not in result.text
