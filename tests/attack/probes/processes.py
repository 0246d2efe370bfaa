# SPDX-License-Identifier: MIT
"""Processes of others: signals, tracing, memory, limits, priorities."""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import time

from probes.kit import CHANGES, SEES, Facts, exists, libc, probe, syscall

GONE = "EPERM ESRCH"
# System calls that the filter does not know end as ENOSYS.
CALL = "EPERM ESRCH ENOSYS"
# libzmq and BLAS set priorities of their own threads and die of a refusal: the filter
# answers "done" for any other process, and does nothing.
FAKED = "EPERM ESRCH own"
MADE_UP = 4_000_000  # there is never a process of this number


def child(facts: Facts, name: str) -> int:
    return int(facts["children"][name])


# ---- signals ----


@probe(GONE, proof=CHANGES)
def signals_kill(facts: Facts) -> None:
    os.kill(child(facts, "signals_kill"), signal.SIGKILL)


@probe(GONE, proof=CHANGES)
def signals_stop(facts: Facts) -> None:
    os.kill(child(facts, "signals_stop"), signal.SIGSTOP)


@probe(GONE, proof=CHANGES)
def signals_to_a_group(facts: Facts) -> None:
    os.killpg(child(facts, "signals_to_a_group"), signal.SIGTERM)


@probe(CALL, proof=CHANGES)
def signals_to_a_thread(facts: Facts) -> None:
    pid = child(facts, "signals_to_a_thread")
    syscall(234, pid, pid, signal.SIGTERM)  # tgkill


@probe(CALL, proof=CHANGES)
def signals_to_a_task(facts: Facts) -> None:
    syscall(200, child(facts, "signals_to_a_task"), signal.SIGTERM)  # tkill


@probe(CALL, proof=CHANGES)
def signals_queued(facts: Facts) -> None:
    info = struct.pack("iiiiii", int(signal.SIGTERM), 0, -1, 0, os.getpid(), os.getuid())
    syscall(129, child(facts, "signals_queued"), signal.SIGTERM, info.ljust(128, b"\0"))


@probe(CALL + " EINVAL", proof=CHANGES)
def signals_by_pidfd(facts: Facts) -> None:
    fd = os.pidfd_open(child(facts, "signals_by_pidfd"))
    signal.pidfd_send_signal(fd, signal.SIGTERM)


@probe(GONE + " own", proof=CHANGES)
def signals_by_an_event(facts: Facts) -> None:
    """Whoever owns a socket's events gets SIGIO from the system itself."""
    mine, other = socket.socketpair()
    fcntl.fcntl(mine, fcntl.F_SETOWN, child(facts, "signals_by_an_event"))
    fcntl.fcntl(mine, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    other.send(b"x")
    time.sleep(0.1)


@probe(GONE, proof=SEES)
def signals_ask_for_the_manager(facts: Facts) -> object:
    return exists(facts["manager"], str(MADE_UP), lambda pid: os.kill(int(pid), 0))


@probe(GONE, proof=SEES)
def signals_ask_for_bs_kernel(facts: Facts) -> object:
    return exists(facts["b_kernel"], str(MADE_UP), lambda pid: os.kill(int(pid), 0))


@probe(GONE, proof=SEES)
def signals_ask_for_bs_supervisor(facts: Facts) -> object:
    return exists(facts["b_supervisor"], str(MADE_UP), lambda pid: os.kill(int(pid), 0))


# ---- tracing and memory ----

ATTACH, SEIZE, EXITKILL = 16, 0x4206, 0x100000


@probe(CALL, proof=SEES)
def memory_attach_to_bs_child(facts: Facts) -> object:
    pid = child(facts, "memory_attach_to_bs_child")
    libc("ptrace", ATTACH, pid, None, None)
    os.waitpid(pid, 0x40000000)
    libc("ptrace", 17, pid, None, None)
    return "attached"


@probe(CALL, proof=CHANGES)
def memory_seize_bs_child(facts: Facts) -> None:
    """It dies with its tracer."""
    libc("ptrace", SEIZE, child(facts, "memory_seize_bs_child"), None, ctypes.c_long(EXITKILL))


@probe(CALL, proof=SEES)
def memory_attach_to_the_manager(facts: Facts) -> object:
    libc("ptrace", SEIZE, facts["manager"], None, None)
    return "seized"


def vectors(facts: Facts, mine: ctypes.Array[ctypes.c_char], theirs: int) -> list[bytes]:
    return [struct.pack("QQ", ctypes.addressof(mine), len(mine)), struct.pack("QQ", theirs, 64)]


@probe(CALL)
def memory_read_bs_kernel(facts: Facts) -> object:
    mine = ctypes.create_string_buffer(64)
    local, remote = vectors(facts, mine, facts["address"])
    syscall(310, facts["b_kernel"], local, 1, remote, 1, 0)
    return mine.value


@probe(CALL, proof=CHANGES)
def memory_write_bs_kernel(facts: Facts) -> None:
    mine = ctypes.create_string_buffer(b"changed by A", 64)
    local, remote = vectors(facts, mine, facts["buffers"]["memory_write_bs_kernel"])
    syscall(311, facts["b_kernel"], local, 1, remote, 1, 0)


@probe(CALL + " EINVAL EBADF")
def memory_take_a_descriptor_of_bs_kernel(facts: Facts) -> object:
    fd = syscall(438, os.pidfd_open(facts["b_kernel"]), facts["fd"], 0)
    return os.pread(fd, 100, 0)


@probe(CALL + " EINVAL EBADF", proof=SEES)
def memory_take_a_descriptor_of_the_manager(facts: Facts) -> object:
    return syscall(438, os.pidfd_open(facts["manager"]), facts["manager_fd"], 0)


@probe(CALL, proof=SEES)
def memory_compare_with_bs_kernel(facts: Facts) -> object:
    return syscall(312, os.getpid(), facts["b_kernel"], 1, 0, 0)  # kcmp


@probe(CALL, proof=SEES)
def memory_find_the_locks_of_bs_kernel(facts: Facts) -> object:
    head, size = ctypes.c_void_p(), ctypes.c_size_t()
    syscall(274, facts["b_kernel"], ctypes.byref(head), ctypes.byref(size))
    return size.value


@probe(CALL, proof=SEES)
def memory_ask_where_pages_of_bs_kernel_are(facts: Facts) -> object:
    page = ctypes.c_void_p(facts["address"] & ~4095)
    status = ctypes.c_int(-1)
    syscall(279, facts["b_kernel"], 1, ctypes.byref(page), None, ctypes.byref(status), 0)
    return f"node {status.value}" if status.value >= 0 else ""


@probe(CALL + " EACCES ENOENT", proof=SEES)
def memory_count_events_of_bs_kernel(facts: Facts) -> object:
    attributes = struct.pack("IIQ", 1, 128, 1).ljust(128, b"\0")  # software, task clock
    return syscall(298, attributes, facts["b_kernel"], -1, -1, 0)


@probe(CALL + " EINVAL EBADF", proof=SEES)
def memory_advise_bs_kernel(facts: Facts) -> object:
    vector = struct.pack("QQ", facts["address"] & ~4095, 4096)
    return syscall(440, os.pidfd_open(facts["b_kernel"]), vector, 1, 20, 0)


# ---- limits and priorities ----


@probe(GONE)
def priority_get_limits(facts: Facts) -> object:
    pid = child(facts, "priority_get_limits")
    return f"files {resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]}"


@probe(GONE, proof=CHANGES)
def priority_set_limits(facts: Facts) -> None:
    pid = child(facts, "priority_set_limits")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (99, hard))


@probe(GONE, proof=SEES)
def priority_get_limits_of_the_manager(facts: Facts) -> object:
    return resource.prlimit(facts["manager"], resource.RLIMIT_NOFILE)


@probe(GONE + " EACCES", proof=CHANGES)
def priority_set_niceness(facts: Facts) -> None:
    os.setpriority(os.PRIO_PROCESS, child(facts, "priority_set_niceness"), 15)


@probe(GONE + " EACCES", proof=CHANGES)
def priority_set_niceness_of_a_group(facts: Facts) -> None:
    os.setpriority(os.PRIO_PGRP, child(facts, "priority_set_niceness_of_a_group"), 15)


@probe(GONE)
def priority_get_niceness(facts: Facts) -> object:
    pid = child(facts, "priority_get_niceness")
    return f"niceness {os.getpriority(os.PRIO_PROCESS, pid)}"


@probe(FAKED, proof=CHANGES)
def priority_set_affinity(facts: Facts) -> None:
    os.sched_setaffinity(child(facts, "priority_set_affinity"), {0})


@probe(FAKED, proof=CHANGES)
def priority_set_scheduler(facts: Facts) -> None:
    pid = child(facts, "priority_set_scheduler")
    os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))


@probe(FAKED, proof=CHANGES)
def priority_set_scheduler_by_attributes(facts: Facts) -> None:
    attributes = struct.pack("IIQiI", 48, os.SCHED_BATCH, 0, 5, 0).ljust(48, b"\0")
    syscall(314, child(facts, "priority_set_scheduler_by_attributes"), attributes, 0)


@probe(CALL, proof=CHANGES)
def priority_set_io(facts: Facts) -> None:
    syscall(251, 1, child(facts, "priority_set_io"), 3 << 13)  # idle


@probe(GONE, proof=SEES)
def priority_get_session(facts: Facts) -> object:
    return exists(facts["b_kernel"], str(MADE_UP), lambda pid: os.getsid(int(pid)))
