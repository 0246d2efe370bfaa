# SPDX-License-Identifier: MIT
"""IPython makes a name of each input, _i1, _i2, ...: whatever looks at all names would take
longer with each cell.  So only the newest have names; In has every one.
"""

from typing import Any

NAMED = 30


def forget_older(shell: Any, cell: int) -> None:
    """This cell has ended."""
    name, names, hidden = f"_i{cell - NAMED}", shell.user_ns, shell.user_ns_hidden
    if name in hidden and names.get(name) is hidden[name]:
        del names[name], hidden[name]
