# SPDX-License-Identifier: MIT
"""Sockets of B's on this machine: unix sockets by path and by abstract name, and the
system's lists of them.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from probes.kit import CHANGES, LIBC, SEES, Facts, opened, probe

# A path that is not there; or one that may not be reached.
PATH = "EACCES EPERM ENOENT"
ABSTRACT = "EPERM ECONNREFUSED"
LISTS = "EPERM EACCES EPROTONOSUPPORT EAFNOSUPPORT ENOSYS"
WAIT_S = 2.0
RACE_S = 1.5
MINE = b"only mine"
UNIX_DIAG, INET_DIAG = 1, socket.AF_INET


def told_by(address: str, kind: int) -> bytes:
    """What the listener at this address says to whoever connects."""
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.settimeout(WAIT_S)
        client.connect(address)
        return client.recv(200)


def send_to(address: str, text: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.settimeout(WAIT_S)
        client.sendto(text.encode(), address)


@probe(PATH)
def unix_stream_by_path(facts: Facts) -> object:
    return told_by(f"{facts['b']}/stream", socket.SOCK_STREAM)


@probe(PATH)
def unix_packets_by_path(facts: Facts) -> object:
    return told_by(f"{facts['b']}/packets", socket.SOCK_SEQPACKET)


@probe(PATH, proof=CHANGES)
def unix_datagram_by_path(facts: Facts) -> None:
    send_to(f"{facts['b']}/datagrams", "unix_datagram_by_path")


@probe(PATH)
def unix_stream_by_a_descriptor(facts: Facts) -> object:
    with opened(facts["b"], 0o10000000) as directory:
        return told_by(f"/proc/self/fd/{directory}/stream", socket.SOCK_STREAM)


@probe(PATH)
def unix_stream_by_a_link_of_mine(facts: Facts) -> object:
    os.symlink(f"{facts['b']}/stream", "link-to-stream")
    try:
        return told_by("link-to-stream", socket.SOCK_STREAM)
    finally:
        os.unlink("link-to-stream")


@probe(PATH)
def unix_session_bus(facts: Facts) -> object:
    """A program of the same user, which would start others for whoever asks."""
    return told_by(facts["bus"], socket.SOCK_STREAM)


@probe(PATH)
def unix_session_bus_from_its_directory(facts: Facts) -> object:
    os.chdir(os.path.dirname(facts["bus"]))
    return told_by("bus", socket.SOCK_STREAM)


@probe(PATH, proof=CHANGES)
def unix_datagram_from_a_pair(facts: Facts) -> None:
    """Connected to one another, each may still send to anybody."""
    for kind in socket.SOCK_DGRAM, socket.SOCK_RAW:  # Linux takes one for the other
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        with one, other:
            one.sendto(b"unix_datagram_from_a_pair", f"{facts['b']}/datagrams")


# ---- races: what is judged must be what is connected ----


@contextmanager
def meanwhile(change: Callable[[], object]) -> Iterator[float]:
    """A thread does this over and over; yields when it is enough."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            change()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield time.monotonic() + RACE_S
    finally:
        over.set()
        thread.join()


@contextmanager
def my_listener(path: str) -> Iterator[None]:
    """Says something else than those of others."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(100)

        def serve() -> None:
            try:
                while True:
                    with listener.accept()[0] as client:
                        client.sendall(MINE)
            except OSError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            os.unlink(path)


def address_of(path: str, family: int = socket.AF_UNIX) -> bytes:
    return (struct.pack("H", family) + path.encode()).ljust(110, b"\0")


def told_by_another(address: object, until: float) -> str:
    """Connects until somebody else than my listener answers."""
    while time.monotonic() < until:
        with socket.socket(socket.AF_UNIX) as client:
            if LIBC.connect(client.fileno(), address, 110) == 0:
                told = client.recv(200)
                if told not in (MINE, b""):
                    return told.decode()
    return ""


@probe(PATH + " own")
def unix_race_of_addresses(facts: Facts) -> object:
    """Another thread writes into the address while it is looked at."""
    mine, bus = address_of("race-of-addresses"), address_of(facts["bus"])
    other_family = address_of(facts["bus"], socket.AF_INET)
    room = ctypes.create_string_buffer(mine, 110)

    def change() -> None:
        for one in bus, mine, other_family, bus:
            ctypes.memmove(room, one, 110)

    with my_listener("race-of-addresses"), meanwhile(change) as until:
        return told_by_another(room, until)


@probe(PATH + " own")
def unix_race_of_descriptors(facts: Facts) -> object:
    """Another thread puts another socket in the place of the one that is connected."""
    bus = address_of(facts["bus"])
    pair = socket.socketpair()
    try:
        other = socket.socket(socket.AF_INET)
    except OSError:  # none without a network
        other = pair[0].dup()
    slot = os.dup(other.fileno())
    client = socket.socket(socket.AF_UNIX)

    def change() -> None:
        os.dup2(client.fileno(), slot)
        os.dup2(other.fileno(), slot)

    with pair[0], pair[1], other, client:
        with meanwhile(change) as until:
            while time.monotonic() < until:
                if LIBC.connect(slot, bus, 110) == 0:
                    break
        client.settimeout(WAIT_S)
        try:
            client.getpeername()
        except OSError:
            return ""
        return client.recv(200).decode()


def race_of_links(link: str, ways: tuple[str, str], path: str) -> object:
    """Another thread turns the link to and fro."""
    directory = f"{link}-of-mine"
    os.mkdir(directory)

    def change() -> None:
        for way in ways:
            os.symlink(way, f"{link}-new")
            os.rename(f"{link}-new", link)

    try:
        with my_listener(f"{directory}/bus"):
            change()
            with meanwhile(change) as until:
                return told_by_another(address_of(path), until)
    finally:
        os.unlink(link)
        os.rmdir(directory)


@probe(PATH + " own")
def unix_race_of_links_to_sockets(facts: Facts) -> object:
    link = "race-link"
    return race_of_links(link, (facts["bus"], f"{link}-of-mine/bus"), link)


@probe(PATH + " own")
def unix_race_of_links_to_directories(facts: Facts) -> object:
    link, bus = "race-directory", os.path.dirname(facts["bus"])
    return race_of_links(link, (bus, f"{link}-of-mine"), f"{link}/bus")


@probe(PATH, proof=CHANGES)
def unix_bind_in_bs_workspace(facts: Facts) -> None:
    os.chdir(facts["b"])
    with socket.socket(socket.AF_UNIX) as mine:
        mine.bind("planted-unix_bind_in_bs_workspace")


@probe(ABSTRACT)
def unix_stream_by_abstract_name(facts: Facts) -> object:
    return told_by(f"\0{facts['abstract']}-stream", socket.SOCK_STREAM)


@probe(ABSTRACT)
def unix_packets_by_abstract_name(facts: Facts) -> object:
    return told_by(f"\0{facts['abstract']}-packets", socket.SOCK_SEQPACKET)


@probe(ABSTRACT, proof=CHANGES)
def unix_datagram_by_abstract_name(facts: Facts) -> None:
    send_to(f"\0{facts['abstract']}-datagrams", "unix_datagram_by_abstract_name")


@probe(ABSTRACT, proof=CHANGES)
def unix_pass_a_descriptor(facts: Facts) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.settimeout(WAIT_S)
        client.connect(f"\0{facts['abstract']}-datagrams")
        socket.send_fds(client, [b"unix_pass_a_descriptor"], [0])


def greeting_of(facts: Facts, number: int) -> object:
    """ZeroMQ's first bytes: it talks to us.  Its signature is FF ... 7F."""
    # The path may be longer than a socket's address.
    os.chdir(facts["b_runtime"])
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(WAIT_S)
        client.connect(f"k-{number}")
        client.sendall(b"\xff\0\0\0\0\0\0\0\1\x7f\3")
        answer = client.recv(64)
    return "greeting" if answer[:1] == b"\xff" else ""


@probe(PATH + " own ECONNRESET EPIPE", proof=SEES)
def unix_shell_of_bs_kernel(facts: Facts) -> object:
    return greeting_of(facts, 1)


@probe(PATH + " own ECONNRESET EPIPE", proof=SEES)
def unix_broadcasts_of_bs_kernel(facts: Facts) -> object:
    return greeting_of(facts, 2)


@probe(PATH + " own ECONNRESET EPIPE", proof=SEES)
def unix_control_of_bs_kernel(facts: Facts) -> object:
    return greeting_of(facts, 4)


# ---- the system's lists ----


def ask_netlink(request: bytes) -> bytes:
    """All that the system answers to one dump request of sock_diag."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as asking:
        asking.settimeout(WAIT_S)
        asking.send(struct.pack("IHHII", 16 + len(request), 20, 0x301, 1, 0) + request)
        answer = b""
        while len(answer) < 1 << 20:
            part = asking.recv(1 << 16)
            answer += part
            if struct.unpack_from("IH", part)[1] in (2, 3):  # an error, the end
                break
            # The end may come in the last part, behind other messages.
            if b"\x14\0\0\0\3\0" in part:
                break
    return answer


@probe(LISTS, N=LISTS + " own")
def diagnose_unix_sockets(facts: Facts) -> object:
    request = struct.pack("BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, UNIX_DIAG, 0, 0)
    return ask_netlink(request).decode("latin-1")


@probe(LISTS, N=LISTS + " own", proof=SEES)
def diagnose_tcp_ports(facts: Facts) -> object:
    request = struct.pack("BBBBI", INET_DIAG, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF).ljust(56, b"\0")
    answer = ask_netlink(request)
    return "port of B" if struct.pack("!H", facts["tcp"]) in answer else ""


@probe(LISTS + " own", proof=CHANGES)
def diagnose_and_destroy_a_connection_of_bs(facts: Facts) -> None:
    """SOCK_DESTROY: whoever may administrate the network ends anybody's connections."""
    source, target = facts["connection"]
    identity = struct.pack("!HH", source, target)
    identity += socket.inet_aton("127.0.0.1").ljust(16, b"\0") * 2
    identity += struct.pack("III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    request = struct.pack("BBBBI", INET_DIAG, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + identity
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as asking:
        asking.settimeout(WAIT_S)
        asking.send(struct.pack("IHHII", 16 + len(request), 21, 5, 1, 0) + request)
        answer = asking.recv(4096)
    (code,) = struct.unpack_from("i", answer, 16)
    if code:
        raise OSError(-code, os.strerror(-code))
