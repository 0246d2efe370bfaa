# SPDX-License-Identifier: MIT
"""Names that IPython adds with each cell and that say nothing new: _i7 is the seventh input,
_7 is Out[7].  A long session has thousands; they are made again instead of being saved.
"""

from collections.abc import Iterator
from typing import Any


def known_names(shell: Any) -> Iterator[tuple[str, Any]]:
    """Each such name, and the value it has unless somebody changed it."""
    for number, text in enumerate(list(shell.history_manager.input_hist_raw)):
        if number:
            yield f"_i{number}", text
    outputs = shell.user_ns.get("Out")
    if type(outputs) is dict:
        for number, value in list(outputs.items()):
            yield f"_{number}", value


def leave_out(shell: Any, namespace: dict[str, Any]) -> None:
    for name, value in known_names(shell):
        if namespace.get(name, shell) is value:
            del namespace[name]


def put_back(shell: Any) -> None:
    """After a restore, which brought the lists that these come from."""
    for name, value in known_names(shell):
        shell.user_ns.setdefault(name, value)


def is_history(name: str) -> bool:
    """Names that IPython keeps up, or that nobody lists."""
    return name.startswith("_") or name in ("In", "Out")
