# SPDX-License-Identifier: MIT
"""Putting a state into an object without code of its class."""

from typing import Any


def set_state(value: Any, state: Any) -> None:
    slots = None
    if type(state) is tuple and len(state) == 2:
        state, slots = state
    if state:
        object.__getattribute__(value, "__dict__").update(state)
    for name, part in (slots or {}).items():
        object.__setattr__(value, name, part)
