# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""Pictures of other kinds turned into PNG, with what the interpreter has for it."""

import io
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from . import draw_svg
from .draw_svg import DRAWERS

DRAW_S = 20
SIDE_MAX = 8192  # pixels; the daemon's image helper takes no more


class NoPicture(Exception):
    """Why there is none, in words."""


def from_pixels(data: bytes) -> bytes:
    """JPEG, GIF, WebP and the like: the first frame, upright."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise NoPicture("Pillow is not installed") from None
    try:
        with Image.open(io.BytesIO(data)) as image:
            return to_png(ImageOps.exif_transpose(image) or image)
    except Exception as error:
        raise NoPicture(f"it cannot be decoded: {error}") from None


def to_png(image: Any) -> bytes:
    plain = {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"}
    profile = image.info.get("icc_profile")
    too_large = max(image.size) > SIDE_MAX
    if image.mode not in plain or (too_large and image.mode == "P"):
        image = image.convert("RGBA" if image.mode in ("PA", "La", "RGBa") else "RGB")
    if too_large:
        image = image.copy()
        image.thumbnail((SIDE_MAX, SIDE_MAX))
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1, icc_profile=profile if image.mode == "RGB" else None)
    return file.getvalue()


def from_svg(text: str) -> bytes:
    package = next((name for name in DRAWERS if find_spec(name) is not None), "")
    if not package:
        raise NoPicture(f"none of {', '.join(DRAWERS)} is installed")
    command = [sys.executable, "-s", draw_svg.__file__, package, *font_dirs()]
    path = os.pathsep.join(place for place in sys.path if place)
    try:
        done = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            capture_output=True,
            timeout=DRAW_S,
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPicture(str(error)) from None
    if done.returncode or not done.stdout:
        raise NoPicture(why_not(done.returncode, done.stderr))
    return done.stdout


def why_not(status: int, stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").splitlines()
    said = lines[0][:200] if lines else ""
    return said or f"the program that draws it ended with status {status}"


def font_dirs() -> list[str]:
    """A machine without fonts would draw no letters at all; matplotlib has some."""
    matplotlib = find_spec("matplotlib")
    places = matplotlib.submodule_search_locations if matplotlib else None
    places = [os.path.join(place, "mpl-data", "fonts", "ttf") for place in places or ()]
    return [place for place in places if os.path.isdir(place)]
