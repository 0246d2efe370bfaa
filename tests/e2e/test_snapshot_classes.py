"""The published cases, as far as their libraries are in the kernels' environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import require_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "classes"))

import run as judge


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kernel", ["ipykernel-7", "ipykernel-6"])
def test_most_classes_come_back_and_hardly_any_changed(kernel: str) -> None:
    python = str(require_python(kernel))
    preload = ["numpy", "pandas", "matplotlib.pyplot"]
    verdicts = judge.run_all(python, judge.read_cases(), 2, preload)
    assert judge.falls_short(verdicts) == "", judge.table(verdicts)
    assert len(judge.judged(verdicts)) > 100
