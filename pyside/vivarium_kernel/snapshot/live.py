# SPDX-License-Identifier: MIT
"""The shell whose namespace is dumped or loaded: restored functions are bound to it."""

from typing import Any

_shell: Any = None


def enter(shell: Any) -> None:
    global _shell  # noqa: PLW0603 (a process has one shell)
    _shell = shell


def shell() -> Any:
    return _shell


def namespace() -> dict[str, Any]:
    found: dict[str, Any] = _shell.user_ns
    return found
