# SPDX-License-Identifier: MIT
"""Runs a program where it can reach nothing but two doors: beside it, in a network that has
nothing but a loopback interface, are two sockets that listen, which the test holds.

usage: unshare --net python enclosed.py SOCKET COMMAND...
(SOCKET: the descriptor of a Unix socket, through which the listening ones are handed out)
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import sys

MODEL, SERVER = 8300, 8200  # ports; nobody else has any there
UP, GET_FLAGS, SET_FLAGS = 0x1, 0x8913, 0x8914


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = array.array("B", struct.pack("16sH22x", b"lo", 0))
        fcntl.ioctl(control, GET_FLAGS, request, True)
        (flags,) = struct.unpack_from("16xH", request)
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH22x", b"lo", flags | UP))


def main() -> None:
    bring_up_loopback()
    doors = [socket.create_server(("127.0.0.1", port)) for port in (MODEL, SERVER)]
    with socket.socket(fileno=int(sys.argv[1])) as tester:
        socket.send_fds(tester, [b"!"], [door.fileno() for door in doors])
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
