# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""What is displayed, in the form that a reader without a browser can use best: a PNG, or
text/plain that says it.  The other forms stay beside it for those who have a browser.
"""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.zmqshell import ZMQDisplayPublisher
from IPython.core.formatters import DisplayFormatter

from . import frames, plots
from .figures import Figures
from .imports import AfterImport
from .keeping import Keeper
from .rasters import NoPicture, from_pixels, from_svg, to_png
from .readable import read

Bundle = dict[str, Any]
PNG = "image/png"
PLAIN = "text/plain"
TEXT_MAX = 2_000_000  # characters of a text that are worth sending
FORM_MAX = 1 << 20  # of any other form beside text and PNG
# What objects say of themselves when they have nothing to say.
EMPTY = re.compile(r"<[\w.<>]+( object)?( at 0x[0-9a-f]+)?>")
PICTURES = {
    "image/svg+xml": ".svg",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
}


class Displays(DisplayFormatter):
    """IPython's, but for what is drawn by libraries that want a browser."""

    keeper: Keeper
    figures: Figures

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> tuple[Bundle, Bundle]:
        library = plots.library_of(type(obj))
        if library:
            return plots.bundle(library, obj, self.keeper), {}
        with self.figures.shown(obj) as saved, self.figures.sized(obj):
            data, metadata = super().format(obj, include=include, exclude=exclude)
        if saved:
            metadata["vivarium"] = {"saved": saved}
        return data, metadata


class Publisher(ZMQDisplayPublisher):
    keeper: Keeper

    def publish(  # type: ignore[override]  # IPython's has a parameter that went out of use
        self, data: Bundle, metadata: Any = None, **kwargs: Any
    ) -> None:
        if isinstance(data, dict):
            data = prepared(data, self.keeper)
        super().publish(data, metadata, **kwargs)


class Hook(ZMQShellDisplayHook):
    keeper: Keeper

    def write_format_data(self, format_dict: Bundle, md_dict: Any = None) -> None:
        super().write_format_data(prepared(format_dict, self.keeper), md_dict)


def install(shell: Any, home: str) -> Keeper:
    """Called once, when the shell is complete."""
    keeper = Keeper(home)
    after = AfterImport()
    after.install()
    formatter = shell.display_formatter
    formatter.keeper = shell.display_pub.keeper = shell.displayhook.keeper = keeper
    formatter.figures = Figures(keeper)
    after.do("matplotlib.figure", formatter.figures.watch)
    after.do("pandas", frames.set_pandas)
    frames.register(formatter.formatters[PLAIN])
    # Pillow's own fails for some kinds of picture, and makes a JPEG beside the PNG.
    formatter.formatters[PNG].for_type_by_name("PIL.Image", "Image", to_png)
    formatter.formatters["image/jpeg"].for_type_by_name("PIL.Image", "Image", nothing)
    after.do("PIL.ImageShow", show_pictures_here)
    plots.install(keeper, after)
    return keeper


def show_pictures_here(image_show: Any) -> None:
    """Image.show() would take xdg-open, where the machine has it, which has no screen here."""
    image_show.register(image_show.IPythonViewer, 0)


def nothing(_picture: Any) -> None:
    """The form is not made."""


def prepared(data: Bundle, keeper: Keeper) -> Bundle:
    """The bundle with a PNG or a text/plain that says it.  What is wrong with a form is told
    in words; no form fails a cell."""
    data = dict(data)
    if plots.PLOTLY_JSON in data and PNG not in data:
        data |= attempt(lambda: plotly(data[plots.PLOTLY_JSON], keeper))
    if PNG not in data:
        data |= picture(data, keeper)
    if PNG not in data and EMPTY.fullmatch(str(data.get(PLAIN, "<none>"))):
        data |= attempt(lambda: text(data, keeper))
    return {mime: value for mime, value in bounded(data) if value is not None}


def attempt(make: Callable[[], Bundle]) -> Bundle:
    try:
        return make()
    except Exception as error:  # the form is not what its name says
        return {PLAIN: f"(cannot be shown: {type(error).__name__}: {str(error)[:200]})"}


def plotly(figure: Any, keeper: Keeper) -> Bundle:
    return plots.bundle("plotly", plots.plotly_figure(figure), keeper)


def picture(data: Bundle, keeper: Keeper) -> Bundle:
    mime = next((mime for mime in PICTURES if mime in data), "")
    if not mime:
        return {}
    try:
        original = raw(mime, data[mime])
    except (TypeError, ValueError):
        return {PLAIN: f"(an {mime} that is not what it says)"}
    try:
        kept = "kept as " + keeper.keep("picture", original, PICTURES[mime])
    except OSError as error:
        kept = f"not kept: {error.strerror}"
    try:
        is_svg = mime == "image/svg+xml"
        return {
            PNG: from_svg(original.decode("utf-8", "replace")) if is_svg else from_pixels(original)
        }
    except NoPicture as why:
        return {PLAIN: f"A picture, {mime}, {kept}; it is not shown: {why}"}


def raw(mime: str, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    text = "".join(value) if isinstance(value, list) else str(value)
    return text.encode("utf-8", "replace") if mime.endswith("xml") else base64.b64decode(text)


def text(data: Bundle, keeper: Keeper) -> Bundle:
    """From the forms there are, the one that reads best as it is."""
    for mime in ("text/markdown", "text/latex"):
        if mime in data:
            return {PLAIN: str(data[mime])}
    if "application/json" in data:
        return {PLAIN: json.dumps(data["application/json"], indent=2, ensure_ascii=False)}
    if "text/html" in data:
        words = page(str(data["text/html"]), keeper)
        # One without words says less than the object's name, unless HTML is all it is.
        return {PLAIN: words} if words or "<IPython." in str(data.get(PLAIN)) else {}
    if "application/javascript" in data:
        return {PLAIN: "(JavaScript, which nothing runs here)"}
    if PLAIN in data or not data:
        return {}
    return {PLAIN: f"(shown as {', '.join(data)} only)"}


def page(html: str, keeper: Keeper) -> str:
    words, active = read(html)
    if words or not active:
        return words
    kept = keeper.keep("page", html.encode("utf-8", "replace"), ".html")
    return f"An interactive page, kept as {kept}"


def bounded(data: Bundle) -> list[tuple[str, Any]]:
    rows = []
    for mime, value in data.items():
        if mime == PLAIN and isinstance(value, str) and len(value) > TEXT_MAX:
            half = TEXT_MAX // 2
            left = f"\n[... {len(value) - TEXT_MAX} characters left out ...]\n"
            rows.append((mime, value[:half] + left + value[-half:]))
        elif mime in (PLAIN, PNG) or size(value) <= FORM_MAX:
            rows.append((mime, value))
    return rows


def size(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    try:
        return len(json.dumps(value))
    except (TypeError, ValueError):
        return 0
