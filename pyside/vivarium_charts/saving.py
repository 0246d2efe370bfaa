# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""A chart's file: its name, and whether somebody will show it."""

from __future__ import annotations

import io
import itertools
import os
import sys
import unicodedata
from pathlib import Path
from typing import Any

from .errors import ChartError

MOST_BYTES = 60  # of a name made from a title
WATCHED_DEPTH = 32  # directories below the workspace that are scanned


def save(figure: Any, title: str, filename: str | None) -> str:
    """Write the picture to a file of its own; the name of it."""
    picture = io.BytesIO()
    figure.savefig(
        picture, format="png", bbox_inches="tight", pad_inches=0.15, metadata={"Software": None}
    )
    wanted = filename or name_from(title)
    try:
        path = write_new(Path(wanted), picture.getvalue())
    except (OSError, ValueError) as error:  # a ValueError: the name has a NUL
        why = getattr(error, "strerror", None) or error
        raise ChartError(f"the picture cannot be written as {wanted!r}: {why}") from None
    if not is_watched(Path.cwd() / path):
        show(picture.getvalue())
    return str(path)


def name_from(title: str) -> str:
    """A title's letters and digits; "chart" where it has none."""
    kept = "".join(
        c if c.isalnum() or unicodedata.category(c) in ("Mn", "Mc") else " "
        for c in unicodedata.normalize("NFC", title.lower())
    )
    name = ""
    for word in kept.split():
        longer = f"{name}-{word}" if name else word
        if len(longer.encode()) > MOST_BYTES:
            break
        name = longer
    if not name and kept.split():
        name = kept.split()[0].encode()[:MOST_BYTES].decode(errors="ignore")
    return name or "chart"


def write_new(wanted: Path, content: bytes) -> Path:
    """As wanted, or with -2, -3 and so on: no file is ever overwritten."""
    stem = wanted.name[:-4] if wanted.name.lower().endswith(".png") else wanted.name
    wanted.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        path = wanted.with_name(f"{stem}-{number}.png" if number > 1 else f"{stem}.png")
        try:
            with path.open("xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def is_watched(path: Path) -> bool:
    """New pictures in the workspace come back with the result; hidden places are not looked at."""
    shell = shell_now()
    if shell is None:
        return True
    home = os.path.realpath(getattr(shell, "starting_dir", "."))
    try:
        parts = Path(os.path.realpath(path)).relative_to(home).parts
    except ValueError:
        return False
    hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
    return not hidden and len(parts) <= WATCHED_DEPTH


def show(picture: bytes) -> None:
    from IPython.display import Image, display

    display(Image(data=picture, format="png"))


def shell_now() -> Any:
    """IPython's shell, if the code runs in one."""
    ipython: Any = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
