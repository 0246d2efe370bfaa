"""WebSockets byte by byte: an upgrade, frames as one likes them, and what comes back."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import ssl
import struct
import time

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MASK = b"\x12\x34\x56\x78"


class Refused(Exception):
    """The answer was no 101."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        super().__init__(f"{status}: {body!r}")
        self.status = status
        self.headers = headers
        self.body = body


class Closed(Exception):
    """A close frame came (its code), or the connection ended without one (0)."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


def masked(data: bytes, mask: bytes = MASK) -> bytes:
    whole = int.from_bytes(data, "big")
    pad = (mask * (len(data) // 4 + 1))[: len(data)]
    return (whole ^ int.from_bytes(pad, "big")).to_bytes(len(data), "big")


def frame(op: int, data: bytes, *, fin: bool = True, mask: bytes = MASK, flags: int = 0) -> bytes:
    """One frame as a client sends it; or, with an empty mask, as none may."""
    size, bit = len(data), 0x80 if mask else 0
    head = bytes([op | (0x80 if fin else 0) | flags])
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    return head + mask + (masked(data, mask) if mask else data)


def request(path: str = "/mcp", **headers: str | None) -> bytes:
    """The upgrade; a header's name with _ for -, None to leave one out."""
    fields: dict[str, str | None] = {
        "Host": "localhost",
        "Connection": "keep-alive, Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "mcp",
    }
    fields.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = [f"GET {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


class WebSocket:
    """A connection after its upgrade; answers pings by itself."""

    def __init__(
        self,
        port: int,
        path: str = "/mcp",
        *,
        tls: ssl.SSLContext | None = None,
        rcvbuf: int = 0,
        first: bytes = b"",
        **headers: str | None,
    ) -> None:
        """first: sent in one piece with the upgrade."""
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(30)
        self.sock.connect(("127.0.0.1", port))
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = bytearray()
        self.pings = 0
        self.answers_pings = True
        try:
            self._open(request(path, **headers) + first)
        except BaseException:
            self.sock.close()
            raise

    def _open(self, data: bytes) -> None:
        self.send(data)
        status, self.headers = self._head()
        if status != 101:
            body = self._take(int(self.headers.get("content-length", 0)))
            raise Refused(status, self.headers, body)

    def __enter__(self) -> WebSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def _more(self) -> None:
        try:
            data = self.sock.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(0)
        self.buf += data

    def _take(self, size: int) -> bytes:
        while len(self.buf) < size:
            self._more()
        taken = bytes(self.buf[:size])
        del self.buf[:size]
        return taken

    def _head(self) -> tuple[int, dict[str, str]]:
        while b"\r\n\r\n" not in self.buf:
            self._more()
        lines = self._take(self.buf.index(b"\r\n\r\n") + 4).decode().split("\r\n")
        headers = [line.split(": ", 1) for line in lines[1:] if line]
        return int(lines[0].split()[1]), {name.lower(): value for name, value in headers}

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send_while_taken(self, data: bytes) -> None:
        """For what the other side may refuse half-way."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send(data)

    def text(self, text: str | bytes) -> None:
        self.send(frame(TEXT, text.encode() if isinstance(text, str) else text))

    def frame(self) -> tuple[int, bool, bytes]:
        """The next one: opcode, whether it is final, payload."""
        first, second = self._take(2)
        assert not first & 0x70, "a reserved bit: compression was not agreed on"
        assert not second & 0x80, "a server does not mask"
        size = second & 127
        if size == 126:
            size = struct.unpack(">H", self._take(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self._take(8))[0]
        return first & 15, bool(first & 0x80), self._take(size)

    def message(self, until: float = float("inf")) -> bytes:
        """The next text message; raises Closed, or TimeoutError at that time."""
        data = bytearray()
        while True:
            self.sock.settimeout(min(30, max(0.01, until - time.monotonic())))
            op, fin, part = self.frame()
            if op == PING:
                self.pings += 1
                if self.answers_pings:
                    self.send(frame(PONG, part))
            elif op == CLOSE:
                with contextlib.suppress(OSError):
                    self.send(frame(CLOSE, part[:2]))
                raise Closed(struct.unpack(">H", part[:2])[0] if len(part) > 1 else 1005)
            elif op in {TEXT, CONTINUATION}:
                assert (op == TEXT) == (not data), "the first frame, and only it, is TEXT"
                data += part
                if fin:
                    return bytes(data)

    def close_code(self) -> int:
        """How it ends, whatever else comes before."""
        try:
            while True:
                self.message()
        except Closed as closed:
            return closed.code

    def listen(self, seconds: float) -> list[bytes]:
        """What comes in that time."""
        came, until = [], time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            while True:
                came.append(self.message(until))
        return came
