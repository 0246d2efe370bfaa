# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""Charts of libraries that draw in a browser: a picture where the library can make one here,
else a page in the workspace and a sentence.
"""

import os
import shlex
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote, urlsplit

from .imports import AfterImport
from .keeping import Keeper

PLOTLY_JSON = "application/vnd.plotly.v1+json"
SCALE = 2  # pixels of a picture for one of the page
CHROMES = (
    "/usr/lib/chromium/chromium",  # Debian's; its script in /usr/bin reads files of /etc
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium",
    "chromium-browser",
)


def library_of(kind: type) -> str:
    """Which of the libraries below draws objects of this type; "" for all others."""
    for base in type.mro(kind) if kind is not type else ():
        known = TYPES.get(base.__name__)
        if known and base.__module__.partition(".")[0] == known:
            return known
    return ""


def plotly_png(figure: Any) -> bytes:
    """By kaleido, which starts Chrome; its first version brought its own."""
    if find_spec("kaleido") is None:
        raise RuntimeError("the package kaleido is not installed")
    if find_spec("choreographer") is None:
        return bytes(figure.to_image("png", scale=SCALE))
    chrome = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, CHROMES)), None)
    if chrome is None:
        raise RuntimeError("kaleido needs Chrome or Chromium, which is not installed")
    with browser_path(chrome):
        return bytes(figure.to_image("png", scale=SCALE))


@contextmanager
def browser_path(chrome: str) -> Iterator[None]:
    """Has kaleido start Chrome without the process that forks others: it makes namespaces,
    which the walls around a kernel do not let it.
    """
    before = os.environ.get("BROWSER_PATH")
    with tempfile.TemporaryDirectory(prefix="chrome-") as room:
        path = os.path.join(room, "chrome")
        with open(path, "w", opener=lambda name, flags: os.open(name, flags, 0o700)) as file:
            file.write(f'#!/bin/sh\nexec {shlex.quote(chrome)} --no-zygote "$@"\n')
        os.environ["BROWSER_PATH"] = path
        try:
            yield
        finally:
            del os.environ["BROWSER_PATH"]
            if before is not None:
                os.environ["BROWSER_PATH"] = before


def plotly_page(figure: Any) -> str:
    return str(figure.to_html(include_plotlyjs=True))


def altair_png(chart: Any) -> bytes:
    if find_spec("vl_convert") is None:
        raise RuntimeError("the package vl-convert-python is not installed")
    return bytes(import_module("vl_convert").vegalite_to_png(chart.to_json(), scale=SCALE))


def altair_page(chart: Any) -> str:
    try:
        return str(chart.to_html(inline=True))
    except Exception:  # without vl_convert the page takes its scripts from the network
        return str(chart.to_html())


def bokeh_png(_model: Any) -> bytes:
    raise RuntimeError("bokeh draws only in a browser, and there is none")


def bokeh_page(model: Any) -> str:
    resources = import_module("bokeh.resources").INLINE
    return str(import_module("bokeh.embed").file_html(model, resources))


Draw = Callable[[Any], bytes]
Page = Callable[[Any], str]
TYPES = {"BaseFigure": "plotly", "TopLevelMixin": "altair", "LayoutDOM": "bokeh"}
LIBRARIES: dict[str, tuple[Draw, Page]] = {
    "plotly": (plotly_png, plotly_page),
    "altair": (altair_png, altair_page),
    "bokeh": (bokeh_png, bokeh_page),
}


def bundle(library: str, chart: Any, keeper: Keeper) -> dict[str, Any]:
    """A bundle with a picture, or with a sentence that says where the chart is kept."""
    png, page = LIBRARIES[library]
    name = f"<{type(chart).__name__} of {library}>"
    try:
        return {"image/png": png(chart), "text/plain": name}
    except Exception as error:
        why = first_sentence(str(error)) or type(error).__name__
    try:
        kept = keeper.keep("chart", page(chart).encode("utf-8", "replace"), ".html")
    except OSError as error:
        kept = f"no file: {error.strerror}"
    return {"text/plain": f"{name[1:-1]}: no picture ({why}); the interactive page is {kept}"}


def first_sentence(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line[:160].rstrip(".")


def plotly_figure(data: Any) -> Any:
    """A figure from what plotly sends to notebooks."""
    return import_module("plotly.graph_objects").Figure(
        {key: data[key] for key in ("data", "layout", "frames") if key in data}
    )


# Calls that would open a browser.


class Browser(webbrowser.BaseBrowser):
    """Takes what a program wants to show in a browser: a file is brought into the workspace."""

    def __init__(self, keeper: Keeper) -> None:
        super().__init__("vivarium")
        self._keeper = keeper

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        parts = urlsplit(url)
        if parts.scheme not in ("", "file"):
            print(f"There is no browser here to open {url}")
            return True
        path = unquote(parts.path)
        try:
            name = self._keeper.relative(path) or self._bring(path)
        except OSError as error:
            print(f"There is no browser here to open {path}: {error.strerror}")
            return True
        print(f"There is no browser here; the page is {name}")
        return True

    def _bring(self, path: str) -> str:
        with open(path, "rb") as file:
            return self._keeper.keep("page", file.read(), os.path.splitext(path)[1] or ".html")


def install(keeper: Keeper, after: AfterImport) -> None:
    webbrowser.register("vivarium", None, Browser(keeper), preferred=True)
    after.do("plotly.io._renderers", show_plotly_here)
    after.do("bokeh.io", show_bokeh_here)


def show_plotly_here(renderers: Any) -> None:
    """fig.show() and pio.show(), whichever renderer they are asked for."""
    from IPython.display import display

    def show(figure: Any, *_args: Any, **_options: Any) -> None:
        display(figure if library_of(type(figure)) else plotly_figure(figure))

    renderers.show = show


def show_bokeh_here(_bokeh_io: Any) -> None:
    """bokeh's show() displays, as in a notebook, whether or not output_notebook() was called."""
    from IPython.display import display

    def load(*_args: Any) -> None:
        """There is no page to load scripts into."""

    def show_doc(model: Any, *_args: Any) -> None:
        display(model)

    def show_app(*_args: Any) -> None:
        print("A bokeh application needs a browser, and there is none here", file=sys.stderr)

    notebook: Any = sys.modules["bokeh.io.notebook"]
    state: Any = sys.modules["bokeh.io.state"]
    notebook.install_notebook_hook("jupyter", load, show_doc, show_app, overwrite=True)
    state.curstate().output_notebook()
