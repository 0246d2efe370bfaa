# SPDX-License-Identifier: MIT
"""Runs in a kernel that saves nothing by itself, and saves its names as others do."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from IPython import get_ipython  # type: ignore[import-not-found]  # the kernels' own

IPYTHONS = {"In", "Out", "exit", "quit", "open", "get_ipython"}
running: list[Callable[[Any], None]] = []


def names() -> dict[str, Any]:
    namespace = get_ipython().user_ns
    return {n: v for n, v in namespace.items() if n[:1] != "_" and n not in IPYTHONS}


def begin(kind: str, place: str) -> None:
    """kind: cloudpickle, all names in one file; dill, each name in a file of its own."""
    os.makedirs(place, exist_ok=True)
    library = __import__(kind)

    def save(value: object, name: str) -> None:
        path = os.path.join(place, name)
        with open(path + ".new", "wb") as file:
            library.dump(value, file)
        os.replace(path + ".new", path)

    def after_cell(_result: object) -> None:
        if kind == "cloudpickle":
            save(names(), "all")
        else:
            for name, value in names().items():
                save(value, name)

    running.append(after_cell)
    get_ipython().events.register("post_run_cell", after_cell)


def end() -> None:
    get_ipython().events.unregister("post_run_cell", running.pop())
