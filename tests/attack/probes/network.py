# SPDX-License-Identifier: MIT
"""The network with VIVARIUM_NETWORK=none: B's listeners, a server of the test's own on the
machine's address, and what the daemon itself listens on.
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import struct
import time

from probes.kit import OPENS, SEES, Facts, libc, probe, read_path

# Nobody listens there; no way there; not allowed.
NET = "EACCES EPERM ECONNREFUSED ENETUNREACH EADDRNOTAVAIL EHOSTUNREACH ENOSYS EAFNOSUPPORT"
SENT = NET + " TIMEOUT own"  # a datagram that nobody gets may look sent
KIND = "EPERM EACCES EPROTONOSUPPORT EAFNOSUPPORT ESOCKTNOSUPPORT ENOSYS"
WAIT_S = 2.0
FASTOPEN = 0x20000000
MPTCP = 262


def told_at(host: str, port: int, family: int = socket.AF_INET, protocol: int = 0) -> bytes:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as client:
        client.settimeout(WAIT_S)
        client.connect((host, port))
        return client.recv(200)


def waiting() -> socket.socket:
    """One that blocks: Python's own timeouts make it one that does not."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(WAIT_S), 0))
    return client


def asked_at(host: str, port: int, family: int = socket.AF_INET) -> bytes:
    """What a UDP server answers."""
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.settimeout(WAIT_S)
        client.connect((host, port))
        client.send(b"tell me")
        return client.recv(200)


# ---- B's listeners ----


@probe(NET, shared=True)
def tcp_of_b(facts: Facts) -> object:
    return told_at("127.0.0.1", facts["tcp"])


@probe(NET, shared=True)
def tcp_of_b_by_zero(facts: Facts) -> object:
    return told_at("0.0.0.0", facts["tcp"])


@probe(NET, shared=True)
def tcp_of_b_by_another_loopback_address(facts: Facts) -> object:
    return told_at("127.1.2.3", facts["tcp_all"])


@probe(NET, shared=True)
def tcp_of_b_by_the_machines_address(facts: Facts) -> object:
    return told_at(facts["machine"], facts["tcp_all"])


@probe(NET, shared=True)
def tcp_of_b_by_ipv6(facts: Facts) -> object:
    return told_at("::1", facts["tcp6"], socket.AF_INET6)


@probe(NET, shared=True)
def tcp_of_b_by_a_mapped_address(facts: Facts) -> object:
    return told_at("::ffff:127.0.0.1", facts["tcp"], socket.AF_INET6)


@probe(NET + " EOPNOTSUPP", shared=True)
def tcp_fast_open_to_b(facts: Facts) -> object:
    with waiting() as client:
        client.sendto(b"hello", FASTOPEN, ("127.0.0.1", facts["tcp"]))
        return client.recv(200)


@probe(NET + " EOPNOTSUPP", shared=True)
def tcp_fast_open_by_message(facts: Facts) -> object:
    with waiting() as client:
        client.sendmsg([b"hello"], [], FASTOPEN, ("127.0.0.1", facts["tcp"]))
        return client.recv(200)


@probe(NET + " EOPNOTSUPP", shared=True)
def tcp_fast_open_at_connect(facts: Facts) -> object:
    with socket.socket() as client:
        client.settimeout(WAIT_S)
        client.setsockopt(socket.IPPROTO_TCP, 30, 1)  # TCP_FASTOPEN_CONNECT
        client.connect(("127.0.0.1", facts["tcp"]))
        client.send(b"hello")
        return client.recv(200)


@probe(KIND + " " + NET)
def mptcp_to_b(facts: Facts) -> object:
    return told_at("127.0.0.1", facts["tcp"], protocol=MPTCP)


@probe(KIND + " " + NET)
def mptcp_to_b_by_ipv6(facts: Facts) -> object:
    return told_at("::1", facts["tcp6"], socket.AF_INET6, MPTCP)


@probe(SENT, shared=True)
def udp_of_b(facts: Facts) -> object:
    return asked_at("127.0.0.1", facts["udp"])


@probe(SENT, shared=True)
def udp_of_b_by_the_machines_address(facts: Facts) -> object:
    return asked_at(facts["machine"], facts["udp_all"])


@probe(SENT, shared=True)
def udp_of_b_by_ipv6(facts: Facts) -> object:
    return asked_at("::1", facts["udp6"], socket.AF_INET6)


@probe(NET + " EADDRINUSE own TIMEOUT", shared=True)
def tcp_take_over_bs_port(facts: Facts) -> object:
    """B knocks at its own port all the time and says something."""
    return overheard("127.0.0.1", facts["shared_port"])


def overheard(host: str, port: int) -> object:
    """What callers say who meant somebody else."""
    with socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        mine.bind((host, port))
        mine.listen()
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if not select.select([mine], [], [], 0.2)[0]:
                continue
            caller = mine.accept()[0]
            caller.settimeout(0.5)
            return caller.recv(200)
    return ""


@probe(NET + " EADDRINUSE own TIMEOUT", shared=True)
def udp_take_over_bs_port(facts: Facts) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("127.0.0.1", facts["shared_port"]))
        mine.settimeout(WAIT_S)
        return mine.recv(200)


# ---- the machine's network ----


@probe(NET, shared=True)
def tcp_to_the_outside(facts: Facts) -> object:
    return told_at(facts["machine"], facts["outside"])


@probe(SENT, shared=True)
def udp_to_the_outside(facts: Facts) -> object:
    return asked_at(facts["machine"], facts["outside_udp"])


@probe(KIND + " " + SENT, proof=SEES)
def ping_the_machine(facts: Facts) -> object:
    """An echo request, which the machine answers with what was in it."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(WAIT_S)
        raw.sendto(struct.pack("!BBHHH", 8, 0, 0xF7FF, 0, 0), (facts["machine"], 0))
        return "echo" if raw.recv(100) else ""


@probe(KIND, proof=OPENS)
def packets_of_all(facts: Facts) -> object:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as raw:
        return raw.getsockname()


@probe(KIND, proof=OPENS, N=KIND + " own")
def packets_made_by_hand(facts: Facts) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        return raw.getsockname()


def opens(family: int, kind: int, protocol: int = 0) -> object:
    with socket.socket(family, kind, protocol) as made:
        return made.fileno()


@probe(KIND, proof=OPENS)
def socket_vsock(facts: Facts) -> object:
    """To the machine that this one is a guest of."""
    return opens(40, socket.SOCK_STREAM)


@probe(KIND, proof=OPENS)
def socket_pair_of_a_cluster(facts: Facts) -> object:
    """TIPC, whose module Linux loads for whoever asks."""
    for one in socket.socketpair(30, socket.SOCK_SEQPACKET):
        one.close()
    return 0


@probe(KIND, proof=OPENS)
def socket_mptcp(facts: Facts) -> object:
    return opens(socket.AF_INET, socket.SOCK_STREAM, MPTCP)


@probe(KIND, proof=OPENS)
def socket_cryptography(facts: Facts) -> object:
    return opens(38, socket.SOCK_SEQPACKET)


@probe(KIND, proof=OPENS)
def socket_netlink_audit(facts: Facts) -> object:
    return opens(socket.AF_NETLINK, socket.SOCK_RAW, 9)


@probe(KIND, proof=OPENS)
def socket_netlink_netfilter(facts: Facts) -> object:
    return opens(socket.AF_NETLINK, socket.SOCK_RAW, 12)


@probe(KIND, proof=OPENS)
def socket_netlink_generic(facts: Facts) -> object:
    return opens(socket.AF_NETLINK, socket.SOCK_RAW, 16)


@probe(KIND, proof=OPENS)
def socket_netlink_events(facts: Facts) -> object:
    return opens(socket.AF_NETLINK, socket.SOCK_RAW, 15)


@probe(KIND + " ENODEV EPERM", proof=OPENS)
def network_card_settings(facts: Facts) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0x49)
        return libc("ioctl", any_socket.fileno(), 0x8914, request)  # SIOCSIFFLAGS: up, as it is


# ---- the daemon's own door ----

NO_DOOR = NET + " own"  # own: it answered that this is nobody it knows
ACCEPT = "application/json, text/event-stream"


def post(facts: Facts, host: str, headers: dict[str, str], connect: object = None) -> str:
    """The text of what /mcp says to B's name asking for B's secret."""
    client = http.client.HTTPConnection(host, facts["door"], timeout=4)
    if connect is not None:
        client.sock = connect
    headers = {"Content-Type": "application/json", "Accept": ACCEPT} | headers

    def ask(method: str, params: object, **more: str) -> tuple[str, str | None]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        client.request("POST", "/mcp", json.dumps(message), headers | more)
        response = client.getresponse()
        return response.read().decode(), response.getheader("Mcp-Session-Id")

    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    text, session = ask("initialize", hello)
    if not session:
        return text
    arguments = {"name": "read_text_file", "arguments": {"path": "secret"}}
    with_session = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    return ask("tools/call", arguments, **with_session)[0]


def as_b(facts: Facts) -> dict[str, str]:
    return {facts["user_header"]: facts["b_name"]}


def with_the_secret(facts: Facts) -> dict[str, str]:
    """Where the daemon was given it."""
    lines = read_path(f"/proc/{facts['manager']}/environ").split("\0")
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    return as_b(facts) | {"X-Vivarium-Proxy-Secret": found["VIVARIUM_PROXY_SECRET"]}


@probe(NO_DOOR)
def door_by_loopback_as_b(facts: Facts) -> object:
    return post(facts, "127.0.0.1", as_b(facts))


@probe(NO_DOOR)
def door_by_the_machines_address_as_b(facts: Facts) -> object:
    return post(facts, facts["machine"], as_b(facts))


@probe(NO_DOOR)
def door_with_two_names(facts: Facts) -> object:
    return post(facts, "127.0.0.1", as_b(facts) | {facts["user_header"].upper(): "alice"})


@probe(NO_DOOR)
def door_with_a_guess(facts: Facts) -> object:
    return post(facts, "127.0.0.1", as_b(facts) | {"X-Vivarium-Proxy-Secret": "x" * 32})


@probe(NO_DOOR + " ENOENT ESRCH")
def door_with_the_secret_of_the_environment(facts: Facts) -> object:
    return post(facts, "127.0.0.1", with_the_secret(facts))


@probe(NO_DOOR + " ENOENT ESRCH")
def door_by_the_machines_address_with_the_secret(facts: Facts) -> object:
    return post(facts, facts["machine"], with_the_secret(facts))


@probe(NO_DOOR + " " + KIND + " ENOENT ESRCH")
def door_by_mptcp_with_the_secret(facts: Facts) -> object:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    made.settimeout(WAIT_S)
    made.connect(("127.0.0.1", facts["door"]))
    return post(facts, "127.0.0.1", with_the_secret(facts), made)


@probe(NO_DOOR + " EOPNOTSUPP", proof=SEES, shared=True)
def door_by_fast_open(facts: Facts) -> object:
    """To be heard at all: its health."""
    with waiting() as client:
        request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        client.sendto(request, FASTOPEN, ("127.0.0.1", facts["door"]))
        return client.recv(200).decode()[:12]


@probe(NET, proof=SEES, shared=True)
def door_by_loopback(facts: Facts) -> object:
    return health(facts, "127.0.0.1")


@probe(NET, proof=SEES, shared=True)
def door_by_the_machines_address(facts: Facts) -> object:
    return health(facts, facts["machine"])


def health(facts: Facts, host: str) -> object:
    client = http.client.HTTPConnection(host, facts["door"], timeout=WAIT_S)
    client.request("GET", "/health")
    return client.getresponse().status


@probe(NET + " EADDRINUSE own")
def door_take_over_its_port(facts: Facts) -> object:
    """The tests knock there all the time, and say something."""
    return overheard(facts["door_host"], facts["door"])
