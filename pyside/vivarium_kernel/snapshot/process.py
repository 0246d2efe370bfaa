# SPDX-License-Identifier: MIT
"""What a session is beside its names."""

from typing import Any


def capture(shell: Any) -> dict[str, Any]:
    return {}


def restore_first(shell: Any, state: dict[str, Any]) -> None:
    """What loading the names may need."""


def restore_last(shell: Any, state: dict[str, Any]) -> None:
    """What loading the names may disturb."""


def begin() -> None:
    """Once, before the first cell: what is found now is no part of a session."""
