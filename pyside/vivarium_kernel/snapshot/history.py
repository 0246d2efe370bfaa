# SPDX-License-Identifier: MIT
"""Names that IPython adds with each cell and that say nothing new: _i7 is the seventh input,
_7 is Out[7].  A long session has thousands; they are made again instead of being saved.
"""

import re
from typing import Any

from ..inputs import NAMED

IPYTHONS = re.compile(r"In|Out|_{1,3}|_i{1,3}|_[iod]h|_i?\d+")


def leave_out(shell: Any, namespace: dict[str, Any]) -> None:
    """Those that have the value they had anyway, had nobody changed it."""
    for name, value in known_names(shell).items():
        if namespace.get(name, shell) is value:
            del namespace[name]


def known_names(shell: Any) -> dict[str, Any]:
    """Each name of the kind that is there, unless somebody deleted it, and its value."""
    inputs = shell.history_manager.input_hist_raw
    first = max(1, len(inputs) - NAMED)
    known = {f"_i{number}": inputs[number] for number in range(first, len(inputs))}
    outputs = shell.user_ns.get("Out")
    if type(outputs) is dict:
        known |= {f"_{number}": value for number, value in list(outputs.items())}
    return known


def put_back(shell: Any) -> None:
    """After a restore, which brought the lists that these come from."""
    known = known_names(shell)
    new = {name: value for name, value in known.items() if name not in shell.user_ns}
    shell.push(new, interactive=False)


def is_ipythons(name: str) -> bool:
    return bool(IPYTHONS.fullmatch(name))


def is_history(name: str) -> bool:
    """Names that IPython keeps up, or that nobody lists."""
    return name.startswith("_") or name in ("In", "Out")
