# SPDX-License-Identifier: MIT
"""What code asks on the stdin channel. A reply does not say what it answers: threads ask one
after the other, and none waits beyond the end of its cell, or it would take the answer to what
the next one asks."""

import sys
import threading
from typing import Any

END_OF_FILE = "\4"
LOOK_MS = 50  # at the end of the cell; answers come at once


class Questions:
    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._cell = 0

    def end_cell(self) -> None:
        """Who asks in it gets no answer."""
        self._cell += 1

    def ask(self, kernel: Any, prompt: str, ident: Any, parent: Any) -> str:
        """The answer; EOFError: there is none."""
        cell = self._cell
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            with self._turn:
                while kernel.stdin_socket.poll(0):  # of somebody who did not wait for it
                    kernel.stdin_socket.recv_multipart()
                content = {"prompt": prompt, "password": False}
                kernel.session.send(
                    kernel.stdin_socket, "input_request", content, parent, ident=ident
                )
                answer = self._receive(kernel, cell)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Interrupted by user") from None  # a short traceback
        if answer == END_OF_FILE:
            raise EOFError
        return answer

    def _receive(self, kernel: Any, cell: int) -> str:
        while self._cell == cell:
            if not kernel.stdin_socket.poll(LOOK_MS):
                continue
            _, reply = kernel.session.recv(kernel.stdin_socket)
            if reply is not None:
                return str(reply["content"]["value"])
        return END_OF_FILE
