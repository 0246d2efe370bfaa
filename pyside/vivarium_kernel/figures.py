# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""matplotlib's figures: which are shown at the end of a cell, and which a file shows already.

With the inline backend, the default, matplotlib_inline shows those that a cell leaves open.
Code that says `matplotlib.use("Agg")`, as much code for servers does, would show nothing.
"""

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from .keeping import Keeper

MOST_PIXELS = 4096  # of a side; answers hold less, and the image helper takes twice as many


class Figures:
    """Knows which PNG in the workspace shows a figure as it is."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._saved: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._drawing = 0

    def watch(self, module: Any) -> None:
        """matplotlib.figure has been imported."""
        savefig = module.Figure.savefig

        @functools.wraps(savefig)
        def saving(figure: Any, fname: Any, *args: Any, **kwargs: Any) -> Any:
            with self.shown(figure):
                result = savefig(figure, fname, *args, **kwargs)
            self._note(figure, fname, kwargs.get("format"))
            return result

        module.Figure.savefig = saving

    def _note(self, figure: Any, fname: Any, kind: Any) -> None:
        if not isinstance(fname, str | os.PathLike) or kind not in (None, "png"):
            return
        path = self._keeper.relative(os.fsdecode(fname))
        if path and kind is None and not os.path.splitext(path)[1]:
            path += ".png"
        if not path.lower().endswith(".png"):
            return
        if figure not in self._saved:
            self._forget_when_changed(figure)
        self._saved[figure] = path

    def _forget_when_changed(self, figure: Any) -> None:
        """All that changes a figure calls this; drawing does too."""
        callback = figure.stale_callback

        def changed(figure: Any, value: bool) -> None:
            idle = getattr(figure.canvas, "_is_idle_drawing", False)  # what plt.savefig ends with
            if value and not self._drawing and not idle:
                self._saved.pop(figure, None)
                figure.stale_callback = callback
            if callback is not None:
                callback(figure, value)

        figure.stale_callback = changed

    @contextmanager
    def sized(self, obj: Any) -> Iterator[None]:
        """Around drawing it for a chat: one with too many pixels would not be shown at all."""
        is_figure = type(obj).__module__.startswith("matplotlib.figure")
        side = max(obj.get_size_inches()) * obj.dpi if is_figure else 0
        if side <= MOST_PIXELS:
            yield
            return
        dpi = obj.dpi
        obj.dpi = max(dpi * MOST_PIXELS / side, 1)
        try:
            yield
        finally:
            obj.dpi = dpi

    @contextmanager
    def shown(self, obj: Any) -> Iterator[str]:
        """Around drawing it, which is no change: the file that shows it too, or ""."""
        is_figure = type(obj).__module__.startswith("matplotlib.figure")
        self._drawing += 1
        try:
            yield self._saved.get(obj, "") if is_figure else ""
        finally:
            self._drawing -= 1


def show_left_open() -> None:
    """A post_execute hook."""
    matplotlib: Any = sys.modules.get("matplotlib")
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if matplotlib is None or not hasattr(pyplot, "close"):
        return
    numbers = pyplot.get_fignums()
    if not numbers or "inline" in matplotlib.get_backend().lower():
        return
    from IPython.display import display

    try:
        for number in numbers:
            display(pyplot.figure(number))
    finally:
        pyplot.close("all")
