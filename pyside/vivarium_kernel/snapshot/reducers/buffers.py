# SPDX-License-Identifier: MIT
"""Large bytes of a name, kept outside of the stream."""

import pickle
from typing import Any

from . import exactly


class BigBytes:
    def __init__(self, value: bytes) -> None:
        self.value = value


@exactly(BigBytes)
def reduce_big_bytes(pickler: Any, big: BigBytes) -> Any:
    return bytes, (pickle.PickleBuffer(big.value),)
