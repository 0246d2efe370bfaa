# SPDX-License-Identifier: MIT
"""What B owns, made by B's own kernel: setup() is run there, and report() tells later
what became of it.  With the modes that programs give such things when nobody asks; other
users are let in only where the walls do not count on modes.  What B may not make behind
them, a program of the machine makes in its place: this file, run.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import pty
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.shmat.restype = ctypes.c_void_p
LIBC.sem_open.restype = ctypes.c_void_p

KEPT: list[Any] = []  # alive as long as the kernel
GOT: dict[str, str] = {}  # what somebody else brought, by probe
FOUND: dict[str, Callable[[], str]] = {}  # how to look at what a probe wants to change
LEFT: list[Callable[[], object]] = []  # what is to be undone at the end
MADE: dict[str, Any] = {}
MISSING: dict[str, str] = {}


def must(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def forever(work: Callable[[], None]) -> None:
    def run() -> None:
        while True:
            try:
                work()
            except OSError:
                time.sleep(0.01)

    threading.Thread(target=run, daemon=True).start()


def make_files(told: dict[str, Any]) -> None:
    secret = told["secret"]
    for name in ("victims", "listed", "ticks"):
        os.mkdir(name)
    for name in told["files"]:
        write(f"victims/{name}", f"{secret} of {name}\n")
    write("secret", secret)
    write(f"listed/{secret}", "")
    write("ticks/tick", "")
    os.symlink(f"nowhere/{secret}", "told")

    def tick() -> None:
        write(f"ticks/{secret}", "x")
        write("ticks/tick", "x")
        time.sleep(0.02)

    forever(tick)


def make_an_attribute(told: dict[str, Any]) -> None:
    os.setxattr("secret", "user.told", told["secret"].encode())


def make_a_fifo(told: dict[str, Any]) -> None:
    os.mkfifo("fifo", 0o666)

    def feed() -> None:
        with open("fifo") as file:
            GOT["files_feed_a_fifo"] = file.read()

    forever(feed)


def make_a_temporary_file(told: dict[str, Any]) -> None:
    write(told["temporary"], told["secret"])
    LEFT.append(lambda: os.unlink(told["temporary"]))


def make_a_file_without_a_name(told: dict[str, Any]) -> None:
    write("gone", told["secret"])
    MADE["fd"] = os.open("gone", os.O_RDWR)
    os.unlink("gone")


def make_a_mapping(told: dict[str, Any]) -> None:
    name = f"mapped-{told['secret']}"
    write(name, "x" * 4096)
    with open(name, "rb") as file:
        KEPT.append(mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ))


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def make_memory(told: dict[str, Any]) -> None:
    """Buffers in this process: one with the secret, one for each probe to write to."""
    secret = ctypes.create_string_buffer(told["secret"].encode(), 128)
    KEPT.append(secret)
    MADE["address"] = ctypes.addressof(secret)
    MADE["buffers"] = {}
    for name in told["buffers"]:
        buffer = ctypes.create_string_buffer(128)
        MADE["buffers"][name] = ctypes.addressof(buffer)
        FOUND[name] = lambda buffer=buffer: repr(buffer.value)  # type: ignore[misc]


def make_children(told: dict[str, Any]) -> None:
    def prepare() -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (told["files_of_a_child"], hard))
        os.nice(told["niceness"])
        os.setpgid(0, 0)

    for name in told["children"]:
        KEPT.append(
            subprocess.Popen(
                [told["secret"], "600"],
                executable="/bin/sleep",
                env={"VICTIM": f"{told['token']}:{name}", "SECRET": told["secret"]},
                preexec_fn=prepare,  # noqa: PLW1509
            )
        )


def listen(address: Any, family: int, kind: int, secret: bytes, *options: int) -> socket.socket:
    """Says the secret to whoever connects."""
    listener = socket.socket(family, kind)
    if family != socket.AF_UNIX:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for option in options:
        listener.setsockopt(socket.SOL_SOCKET, option, 1)
    with contextlib.suppress(OSError):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
    listener.bind(address)
    listener.listen(50)
    KEPT.append(listener)

    def serve() -> None:
        client = listener.accept()[0]
        client.sendall(secret)
        client.settimeout(1)
        with contextlib.suppress(OSError):
            while client.recv(4096):
                pass
        client.close()

    for _ in range(3):
        forever(serve)
    return listener


def receive(address: str) -> None:
    """Datagrams: the text is the name of who sent it."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(address)

    def serve() -> None:
        text, fds = socket.recv_fds(receiver, 200, 4)[:2]
        GOT[text.decode()] = f"came, {len(fds)} descriptors"
        for fd in fds:
            os.close(fd)

    forever(serve)


def make_unix_sockets(told: dict[str, Any]) -> None:
    secret = told["secret"].encode()
    for where in ("", f"\0{told['abstract']}-"):
        listen(where + "stream", socket.AF_UNIX, socket.SOCK_STREAM, secret)
        listen(where + "packets", socket.AF_UNIX, socket.SOCK_SEQPACKET, secret)
    # Only to be seen in the system's lists.
    told_name = socket.socket(socket.AF_UNIX)
    told_name.bind(f"\0{told['secret']}")
    KEPT.append(told_name)


def make_unix_datagrams(told: dict[str, Any]) -> None:
    for where in ("", f"\0{told['abstract']}-"):
        receive(where + "datagrams")


def answer(address: Any, family: int, secret: bytes) -> int:
    """UDP: the secret to whoever asks."""
    server = socket.socket(family, socket.SOCK_DGRAM)
    server.bind(address)

    def serve() -> None:
        asker = server.recvfrom(200)[1]
        server.sendto(secret, asker)

    forever(serve)
    return int(server.getsockname()[1])


def make_ports(told: dict[str, Any]) -> None:
    secret = told["secret"].encode()
    stream = socket.SOCK_STREAM
    for name, host in ("tcp", "127.0.0.1"), ("tcp_all", "0.0.0.0"):
        MADE[name] = listen((host, 0), socket.AF_INET, stream, secret).getsockname()[1]
        MADE[name.replace("tcp", "udp")] = answer((host, 0), socket.AF_INET, secret)


def make_ports_of_ipv6(told: dict[str, Any]) -> None:
    secret = told["secret"].encode()
    listener = listen(("::1", 0), socket.AF_INET6, socket.SOCK_STREAM, secret)
    MADE["tcp6"] = listener.getsockname()[1]
    MADE["udp6"] = answer(("::1", 0), socket.AF_INET6, secret)


def make_a_shared_port(told: dict[str, Any]) -> None:
    """B knocks at its own port, by TCP and UDP, and says the secret to whoever answers."""
    secret = told["secret"].encode()
    kind = socket.SOCK_STREAM
    listener = listen(("127.0.0.1", 0), socket.AF_INET, kind, b"", socket.SO_REUSEPORT)
    port = listener.getsockname()[1]
    both = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    both.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    both.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    both.bind(("127.0.0.1", port))
    KEPT.append(both)
    MADE["shared_port"] = port

    def knock() -> None:
        time.sleep(0.02)
        with socket.create_connection(("127.0.0.1", port), 1) as caller:
            caller.sendall(secret)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.sendto(secret, ("127.0.0.1", port))

    forever(knock)


def make_a_connection(told: dict[str, Any]) -> None:
    """Of B's with itself, that another one might end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        KEPT.extend([client, server.accept()[0]])
    MADE["connection"] = (client.getsockname()[1], client.getpeername()[1])

    def state() -> str:
        try:
            client.send(b"x")
        except OSError as error:
            return str(error)
        return "connected"

    FOUND["diagnose_and_destroy_a_connection_of_bs"] = state


def attach(shmid: int) -> int:
    address = LIBC.shmat(shmid, None, 0)
    if address == ctypes.c_void_p(-1).value:
        must(-1)
    return int(address)


def make_sysv(told: dict[str, Any]) -> None:
    key, secret = told["sysv_key"], told["secret"].encode()
    shmid = must(LIBC.shmget(key, 4096, 0o1666))
    place = attach(shmid)
    ctypes.memmove(place, secret, len(secret))
    MADE["shmid"] = shmid
    doomed = must(LIBC.shmget(0, 4096, 0o1666))
    MADE["doomed_shmid"] = doomed
    FOUND["sysv_write_memory"] = lambda: repr(ctypes.string_at(place + 64, 20))
    FOUND["sysv_remove_memory"] = lambda: str(LIBC.shmctl(doomed, 2, bytes(256)))
    semid = must(LIBC.semget(key, 1, 0o1666))
    FOUND["sysv_semaphore"] = lambda: str(LIBC.semctl(semid, 0, 12))
    queue = must(LIBC.msgget(key, 0o1666))
    LEFT.append(lambda: LIBC.shmctl(shmid, 0, None))
    LEFT.append(lambda: LIBC.shmctl(doomed, 0, None))
    LEFT.append(lambda: LIBC.semctl(semid, 0, 0))
    LEFT.append(lambda: LIBC.msgctl(queue, 0, None))
    must(LIBC.msgsnd(queue, struct.pack("l", 1) + secret, len(secret), 0))

    def message() -> str:
        room = ctypes.create_string_buffer(264)
        return str(LIBC.msgrcv(queue, room, 256, 2, 0o4000))

    FOUND["sysv_send_a_message"] = message


def make_posix_memory(told: dict[str, Any]) -> None:
    name = f"/dev/shm/{told['shm']}"
    for ending, text in ("", told["secret"]), ("-write", "as it was"), ("-remove", ""):
        made = os.open(name + ending, os.O_CREAT | os.O_RDWR, 0o600)  # as shm_open() is used
        os.write(made, text.encode())
        os.close(made)

    def content() -> str:
        with open(f"{name}-write") as file:
            return file.read()

    FOUND["posix_write_memory"] = content
    FOUND["posix_remove_memory"] = lambda: str(os.path.exists(f"{name}-remove"))
    for left in (name, f"{name}-write", f"{name}-remove", f"/dev/shm/sem.{told['shm']}"):
        LEFT.append(lambda left=left: os.unlink(left))  # type: ignore[misc]
    semaphore = ctypes.c_void_p(LIBC.sem_open(f"/{told['shm']}".encode(), 0o100, 0o600, 0))
    value = ctypes.c_int()

    def count() -> str:
        LIBC.sem_getvalue(semaphore, ctypes.byref(value))
        return str(value.value)

    FOUND["posix_semaphore"] = count


def make_queues(told: dict[str, Any]) -> None:
    def queue(name: str) -> int:
        attributes = struct.pack("8l", 0, 5, 256, 0, 0, 0, 0, 0)
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK
        LEFT.append(lambda: LIBC.syscall(241, name.encode()))
        return must(LIBC.syscall(240, name.encode(), flags, 0o666, attributes))

    name = told["queue"]
    secret = told["secret"].encode()
    must(LIBC.syscall(242, queue(name), secret, len(secret), 0, None))
    receiving = queue(f"{name}-send")
    queue(f"{name}-remove")
    room = ctypes.create_string_buffer(256)
    FOUND["posix_send_a_message"] = lambda: str(LIBC.syscall(243, receiving, room, 256, 0, None))
    FOUND["posix_remove_a_queue"] = lambda: str(
        LIBC.syscall(240, f"{name}-remove".encode(), os.O_RDONLY, 0, None) > 0
    )


def make_keys(told: dict[str, Any]) -> None:
    def key(name: str, text: bytes) -> int:
        serial = must(LIBC.syscall(248, b"user", name.encode(), text, len(text), -4))
        LEFT.append(lambda: LIBC.syscall(250, 21, serial))  # invalidate it
        must(LIBC.syscall(250, 5, serial, 0x3F3F3F3F))  # all may do anything
        return serial

    MADE["key"] = key(told["key_name"], told["secret"].encode())
    MADE["key_to_change"] = changed = key(f"{told['key_name']}-change", b"as it was")
    KEPT.append(key(told["secret"], b"listed"))
    room = ctypes.create_string_buffer(64)

    def content() -> str:
        size = LIBC.syscall(250, 11, changed, room, 64, 0)
        return repr(room.raw[: max(size, 0)])

    FOUND["key_replace"] = content


def make_a_terminal(told: dict[str, Any]) -> None:
    leader, follower = pty.openpty()
    MADE["terminal"] = os.ttyname(follower)
    os.write(leader, told["secret"].encode() + b"\n")
    os.set_blocking(leader, False)

    def written() -> str:
        with contextlib.suppress(BlockingIOError):
            GOT["terminal"] = GOT.get("terminal", "") + os.read(leader, 4096).decode()
        return str("changed" in GOT.get("terminal", ""))

    FOUND["terminal_write"] = written


MAKERS = (
    make_files,
    make_an_attribute,
    make_a_fifo,
    make_a_temporary_file,
    make_a_file_without_a_name,
    make_a_mapping,
    make_memory,
    make_children,
    make_unix_sockets,
    make_unix_datagrams,
    make_ports,
    make_ports_of_ipv6,
    make_a_shared_port,
    make_a_connection,
    make_sysv,
    make_posix_memory,
    make_queues,
    make_keys,
    make_a_terminal,
)


def setup(told: dict[str, Any]) -> None:
    """Prints what was made, and what could not be."""
    for make in MAKERS:
        if make.__name__ not in told.get("only", make.__name__):
            continue
        try:
            make(told)
        except OSError as error:
            MISSING[make.__name__] = str(error)
    print(json.dumps({"made": MADE, "missing": MISSING}), flush=True)


def clean_up() -> None:
    """What would stay on the machine when no wall has kept it apart."""
    for undo in LEFT:
        with contextlib.suppress(OSError):
            undo()


def report() -> None:
    print(json.dumps(GOT | {name: look() for name, look in FOUND.items()}), flush=True)


if __name__ == "__main__":
    setup(json.loads(sys.stdin.readline()))
    for _ in sys.stdin:
        report()
    clean_up()
    os._exit(0)  # its threads wait for somebody
