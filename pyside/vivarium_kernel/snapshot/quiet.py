# SPDX-License-Identifier: MIT
"""No output, no trace function and no garbage collection in this thread while a dump runs."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..streams import muted


@contextmanager
def quiet() -> Iterator[None]:
    trace, profile, collecting = sys.gettrace(), sys.getprofile(), gc.isenabled()
    sys.settrace(None)
    if callable(profile):  # one in C, such as cProfile's, could not be set again
        sys.setprofile(None)
    gc.disable()  # a collection looks at every object, and a dump makes many short-lived ones
    try:
        with muted():
            yield
    finally:
        if collecting:
            gc.enable()
        if callable(profile):
            sys.setprofile(profile)
        sys.settrace(trace)
