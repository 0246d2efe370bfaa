# SPDX-License-Identifier: MIT
"""Sockets of B's on this machine: unix sockets by path and by abstract name, and the
system's lists of them.
"""

from __future__ import annotations

import os
import socket
import struct

from probes.kit import CHANGES, SEES, Facts, opened, probe

# A path that is not there; or one that may not be reached.
PATH = "EACCES EPERM ENOENT"
ABSTRACT = "EPERM ECONNREFUSED"
LISTS = "EPERM EACCES EPROTONOSUPPORT EAFNOSUPPORT ENOSYS"
BY_PATH = {"L": "Landlock covers connecting to a path from ABI 9 on (Linux 7.1)"}
WAIT_S = 2.0
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


@probe(PATH, leaves=BY_PATH)
def unix_stream_by_path(facts: Facts) -> object:
    return told_by(f"{facts['b']}/stream", socket.SOCK_STREAM)


@probe(PATH, leaves=BY_PATH)
def unix_packets_by_path(facts: Facts) -> object:
    return told_by(f"{facts['b']}/packets", socket.SOCK_SEQPACKET)


@probe(PATH, proof=CHANGES, leaves=BY_PATH)
def unix_datagram_by_path(facts: Facts) -> None:
    send_to(f"{facts['b']}/datagrams", "unix_datagram_by_path")


@probe(PATH, leaves=BY_PATH)
def unix_stream_by_a_descriptor(facts: Facts) -> object:
    with opened(facts["b"], 0o10000000) as directory:
        return told_by(f"/proc/self/fd/{directory}/stream", socket.SOCK_STREAM)


@probe(PATH, leaves=BY_PATH)
def unix_stream_by_a_link_of_mine(facts: Facts) -> object:
    os.symlink(f"{facts['b']}/stream", "link-to-stream")
    try:
        return told_by("link-to-stream", socket.SOCK_STREAM)
    finally:
        os.unlink("link-to-stream")


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
