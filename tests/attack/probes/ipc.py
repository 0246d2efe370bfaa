# SPDX-License-Identifier: MIT
"""System V and POSIX objects of B's, keyrings, and a terminal."""

from __future__ import annotations

import ctypes
import os
import struct

from probes.kit import (
    CHANGES,
    LIBC,
    SEES,
    Facts,
    check,
    libc,
    probe,
    read_path,
    syscall,
    write_path,
)

# Another IPC namespace does not have it; the filter knows no such call, or refuses it.
SYSV = "ENOENT EINVAL EIDRM EACCES EPERM ENOSYS"
SHM = "ENOENT EACCES EPERM"
KEYS = "ENOSYS EPERM EACCES ENOKEY"
TERMINAL = "ENOENT EACCES EPERM EIO ENXIO"
BY_NAME = {"L": "one /dev/shm for all: a name that is known can be opened"}

LIBC.shmat.restype = ctypes.c_void_p
LIBC.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]


def attach(identity: int, flags: int = 0) -> int:
    ctypes.set_errno(0)
    address = LIBC.shmat(identity, None, flags)
    if address == ctypes.c_void_p(-1).value:
        check(-1)
    return int(address)


@probe(SYSV)
def sysv_memory_by_key(facts: Facts) -> object:
    return ctypes.string_at(attach(libc("shmget", facts["sysv_key"], 0, 0), 0o10000), 64)


@probe(SYSV)
def sysv_memory_by_number(facts: Facts) -> object:
    return ctypes.string_at(attach(facts["shmid"], 0o10000), 64)


@probe(SYSV, proof=CHANGES)
def sysv_write_memory(facts: Facts) -> None:
    ctypes.memmove(attach(facts["shmid"]) + 64, b"changed by A", 12)


@probe(SYSV + " own", proof=SEES)
def sysv_list_memory(facts: Facts) -> object:
    room = ctypes.create_string_buffer(256)
    for index in range(64):
        try:
            syscall(31, index, 15, room)  # shmctl, SHM_STAT_ANY
        except OSError as error:
            if error.errno != 22:  # a gap
                raise
            continue
        if struct.unpack_from("i", room)[0] == facts["sysv_key"]:
            return "listed"
    return ""


@probe(SYSV, proof=CHANGES)
def sysv_remove_memory(facts: Facts) -> None:
    libc("shmctl", facts["doomed_shmid"], 0, None)


@probe(SYSV, proof=CHANGES)
def sysv_semaphore(facts: Facts) -> None:
    libc("semctl", libc("semget", facts["sysv_key"], 0, 0), 0, 16, 77)  # SETVAL


@probe(SYSV + " ENOMSG")
def sysv_take_a_message(facts: Facts) -> object:
    room = ctypes.create_string_buffer(264)
    libc("msgrcv", libc("msgget", facts["sysv_key"], 0), room, 256, 1, 0o4000)
    return room.raw[8:]


@probe(SYSV, proof=CHANGES)
def sysv_send_a_message(facts: Facts) -> None:
    text = struct.pack("l", 2) + b"changed by A"
    libc("msgsnd", libc("msgget", facts["sysv_key"], 0), text, 12, 0o4000)


@probe(SHM, leaves=BY_NAME)
def posix_memory(facts: Facts) -> object:
    return read_path(f"/dev/shm/{facts['shm']}")


@probe(SHM, leaves=BY_NAME, proof=CHANGES)
def posix_write_memory(facts: Facts) -> None:
    write_path(f"/dev/shm/{facts['shm']}-write", "changed by A")


@probe(SHM, leaves=BY_NAME, proof=CHANGES)
def posix_remove_memory(facts: Facts) -> None:
    os.unlink(f"/dev/shm/{facts['shm']}-remove")


@probe(SHM + " own")
def posix_list_memory(facts: Facts) -> object:
    return os.listdir("/dev/shm")


@probe(SHM, leaves=BY_NAME, proof=CHANGES)
def posix_semaphore(facts: Facts) -> None:
    LIBC.sem_open.restype = ctypes.c_void_p
    ctypes.set_errno(0)
    semaphore = LIBC.sem_open(f"/{facts['shm']}".encode(), 0)
    if not semaphore:
        check(-1)
    libc("sem_post", ctypes.c_void_p(semaphore))


QUEUES = "ENOENT EACCES EPERM ENOSYS"


@probe(QUEUES + " EAGAIN")
def posix_take_a_message(facts: Facts) -> object:
    queue = syscall(240, facts["queue"].encode(), os.O_RDWR | os.O_NONBLOCK, 0, 0)
    room = ctypes.create_string_buffer(256)
    syscall(243, queue, room, 256, 0, 0)
    return room.value


@probe(QUEUES, proof=CHANGES)
def posix_send_a_message(facts: Facts) -> None:
    name = facts["queue"] + "-send"
    queue = syscall(240, name.encode(), os.O_RDWR | os.O_NONBLOCK, 0, 0)
    syscall(242, queue, b"changed by A", 12, 0, 0)


@probe(QUEUES, proof=CHANGES)
def posix_remove_a_queue(facts: Facts) -> None:
    syscall(241, (facts["queue"] + "-remove").encode())


# ---- keyrings ----


def read_key(serial: int) -> bytes:
    room = ctypes.create_string_buffer(256)
    syscall(250, 11, serial, room, 256, 0)
    return room.value


@probe(KEYS)
def key_of_the_user(facts: Facts) -> object:
    found = syscall(250, 10, -4, b"user", facts["key_name"].encode(), 0)
    return read_key(found)


@probe(KEYS)
def key_by_number(facts: Facts) -> object:
    return read_key(facts["key"])


@probe(KEYS)
def key_by_request(facts: Facts) -> object:
    return read_key(syscall(249, b"user", facts["key_name"].encode(), None, 0))


@probe(KEYS, proof=CHANGES)
def key_replace(facts: Facts) -> None:
    syscall(250, 2, facts["key_to_change"], b"changed by A", 12, 0)


# ---- a terminal of B's ----


@probe(TERMINAL, proof=CHANGES)
def terminal_write(facts: Facts) -> None:
    write_path(facts["terminal"], "changed by A\n")


@probe(TERMINAL + " EAGAIN")
def terminal_read(facts: Facts) -> object:
    return read_path(facts["terminal"])
