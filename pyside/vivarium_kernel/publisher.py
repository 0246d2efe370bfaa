# SPDX-License-Identifier: MIT
"""ipykernel's IOPub thread with one socket, one way in, and an orderly end.

ipykernel's own has a loopback TCP port for forked children (ours write to the capture pipes)
and a ZeroMQ socket per sending thread, whose closing at exit now and then aborts libzmq.
"""

import inspect
import threading
from collections.abc import Callable
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread

# 7.2 and newer greet subscribers, for which they must see subscriptions.
SOCKET_TYPE = zmq.XPUB if hasattr(IOPubThread, "_setup_xpub_listener") else zmq.PUB


class Publisher(IOPubThread):
    @classmethod
    def create(cls, socket: Any, session: Any) -> "Publisher":
        takes_session = "session" in inspect.signature(IOPubThread.__init__).parameters
        return cls(socket, pipe=False, **({"session": session} if takes_session else {}))

    def _setup_event_pipe(self) -> None:
        """None is needed: the loop has a wake-up of its own."""

    def schedule(self, f: Callable[[], Any]) -> None:
        self._events.append(f)
        try:
            loop: Any = self.io_loop
            loop.asyncio_loop.call_soon_threadsafe(self._run_events)
        except RuntimeError:  # the loop is closed: the process is leaving
            self._events.clear()

    def _run_events(self) -> None:
        for _ in range(len(self._events)):
            self._events.popleft()()

    def wait_sent(self, timeout: float = 1.0) -> None:
        """Return when the socket has everything that was scheduled before."""
        if threading.current_thread() is not self.thread and self.thread.is_alive():
            done = threading.Event()
            self.schedule(done.set)
            done.wait(timeout)

    def end(self, linger_ms: int) -> None:
        """Close the socket in its thread; what was sent still goes out within linger_ms."""

        def close() -> None:
            self.socket.close(linger_ms)
            self.socket = None

        self.schedule(close)
        self.wait_sent()
