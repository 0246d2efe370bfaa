# SPDX-License-Identifier: MIT
"""Charts in one line, for code that a language model writes.

    from vivarium_charts import line_chart, bar_chart, scatter_chart, clean_numeric

    line_chart(df, x="year", y=["de", "fr"], title="Unit labour costs", ylabel="Index")

kinds      the three charts
cleaning   clean_numeric: text that means numbers
numerals   one such text
tables     what came in, as columns; which of them x and y are
dates      text that means dates
axes       ticks, their labels, scales
dress      size, colours, legend, titles
lettering  fonts for each script, right-to-left text
saving     the file and its name
fontlist   matplotlib's list of fonts, made once for all kernels
errors     ChartError, and notes on what was done

docs/charts.md says how the charts behave.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cleaning import clean_numeric
    from .errors import ChartError
    from .kinds import bar_chart, line_chart, scatter_chart

__all__ = ["ChartError", "bar_chart", "clean_numeric", "line_chart", "scatter_chart"]

HOMES = {"clean_numeric": "cleaning", "ChartError": "errors"}


def __getattr__(name: str) -> Any:
    """Pandas and matplotlib are imported with the first chart, not with this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{HOMES.get(name, 'kinds')}", __name__), name)
    found.__module__ = __name__  # where footers say that it is from
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return __all__
