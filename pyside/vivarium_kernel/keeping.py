# SPDX-License-Identifier: MIT
"""Files that displays leave in the workspace."""

import os


class Keeper:
    """Knows the workspace's directory and the number of the cell that runs."""

    def __init__(self, home: str) -> None:
        self.home = home
        self.cell = 0

    def keep(self, kind: str, data: bytes, suffix: str) -> str:
        """The name of a file with this content: one that is there already, or a new one.
        OSError where it cannot be written."""
        known = self._same(data, suffix)
        if known:
            return known
        number = 1
        while True:
            name = f"{kind}-{self.cell}{'' if number == 1 else f'-{number}'}{suffix}"
            try:
                with open(os.path.join(self.home, name), "xb") as file:
                    file.write(data)
            except FileExistsError:
                number += 1
                continue
            return name

    def _same(self, data: bytes, suffix: str) -> str:
        """The picture was shown from a file, or is shown again."""
        with os.scandir(self.home) as entries:
            for entry in entries:
                if (
                    entry.name.endswith(suffix)
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat().st_size == len(data)
                ):
                    with open(entry.path, "rb") as file:
                        if file.read() == data:
                            return entry.name
        return ""

    def relative(self, path: str) -> str:
        """The path as seen from the workspace; "" if it is not in it."""
        full = os.path.realpath(path)
        home = os.path.realpath(self.home)
        return os.path.relpath(full, home) if full.startswith(home + os.sep) else ""
