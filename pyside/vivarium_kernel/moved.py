# SPDX-License-Identifier: MIT
"""The first kernels of a branch: what came back still names the directory that the files were
copied from.
"""

import contextlib
import os
import sys


def follow(origin: str, home: str) -> None:
    """Put the working directory and the module path where the copies are."""
    with contextlib.suppress(OSError):
        here = moved(os.getcwd(), origin, home)
        os.chdir(here if os.path.isdir(here) else home)
    sys.path[:] = [
        moved(entry, origin, home) if isinstance(entry, str) else entry for entry in sys.path
    ]


def moved(path: str, origin: str, home: str) -> str:
    """home may lie below origin."""
    if is_below(path, origin) and not is_below(path, home):
        return os.path.normpath(os.path.join(home, os.path.relpath(path, origin)))
    return path


def is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(os.path.join(directory, ""))
