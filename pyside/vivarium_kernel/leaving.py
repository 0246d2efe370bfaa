# SPDX-License-Identifier: MIT
"""How the process ends: soon, with its last messages sent, whatever user code left behind.

Python's own finalization would wait for the user's threads, and ipykernel's exit handlers hang
or abort now and then; both are left out.
"""

import atexit
import os
import threading
from collections.abc import Callable

BUSY_S = 0.3  # for a cell that still runs at shutdown to give way
EXIT_S = 2.0  # for the user's atexit handlers and the last messages


def leave_within(seconds: float) -> threading.Event:
    """The process is gone after this time, unless the event that is returned gets set."""
    called_off = threading.Event()

    def wait() -> None:
        if not called_off.wait(seconds):
            os._exit(0)

    threading.Thread(target=wait, name="Leaving", daemon=True).start()
    return called_off


def leave_now(close: Callable[[], None]) -> None:
    """Run exit handlers, then close(), then end the process.  Never returns."""
    leave_within(EXIT_S)
    try:
        atexit._run_exitfuncs()
        close()
    finally:
        os._exit(0)
