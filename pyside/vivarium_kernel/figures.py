# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""Figures that a cell leaves open are shown at its end, whatever backend the cell chose.

With the inline backend, the default, matplotlib_inline does it.  Code that says
`matplotlib.use("Agg")`, as much code for servers does, would show nothing.
"""

import sys
from typing import Any


def show_left_open() -> None:
    """A post_execute hook."""
    matplotlib: Any = sys.modules.get("matplotlib")
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    if matplotlib is None or not hasattr(pyplot, "close"):
        return
    numbers = pyplot.get_fignums()
    if not numbers or "inline" in matplotlib.get_backend().lower():
        return
    from IPython.core.pylabtools import print_figure
    from IPython.display import publish_display_data

    try:
        for number in numbers:
            figure = pyplot.figure(number)
            image = print_figure(figure, "png")
            if image is not None:  # None: nothing is drawn in it
                width, height = (int(x * figure.dpi) for x in figure.get_size_inches())
                text = f"<Figure size {width}x{height} with {len(figure.axes)} Axes>"
                publish_display_data({"image/png": image, "text/plain": text})
    finally:
        pyplot.close("all")
