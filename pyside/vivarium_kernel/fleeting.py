# SPDX-License-Identifier: MIT
"""The directory for temporary files: behind walls each kernel has its own, which goes with it."""

import os

SCANNED_MAX = 1000  # entries
# What libraries put there by themselves, and nobody looks for.
UNNAMED = (".", "tmp", "pymp-", "joblib", "pip-")


def own_directory() -> str:
    """ "" without walls: then it is the machine's."""
    home, packages = os.environ.get("HOME", ""), os.environ.get("PIP_TARGET")
    return os.environ.get("TMPDIR", "") if packages == f"{home}/packages" else ""


DIRECTORY = own_directory()  # read before user code runs


def holds(path: object) -> bool:
    return bool(DIRECTORY) and os.fsdecode(path).startswith(DIRECTORY + "/")  # type: ignore[arg-type]


def files() -> list[str]:
    """What somebody put there under a name of their own."""
    if not DIRECTORY:
        return []
    try:
        with os.scandir(DIRECTORY) as entries:
            found = [entry.name for entry, _ in zip(entries, range(SCANNED_MAX), strict=False)]
    except OSError:
        return []
    return sorted(name for name in found if not name.startswith(UNNAMED))
