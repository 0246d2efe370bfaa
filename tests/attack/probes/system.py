# SPDX-License-Identifier: MIT
"""The system itself: namespaces, mounts, devices, and calls that have been ways out.
Those with senseless arguments show by EFAULT and the like that they are let through.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import stat
import struct

from probes.kit import OPENS, SEES, Facts, libc, opened, probe, read_path, syscall

NO = "EPERM ENOSYS"
CALL = "EPERM ENOSYS EACCES"
NEWNS, NEWUSER, NEWPID, NEWNET, NEWIPC = 0x20000, 0x10000000, 0x20000000, 0x40000000, 0x8000000
BIND = 4096


# ---- namespaces and mounts ----


def enter(facts: Facts, kind: str, flag: int) -> None:
    with opened(f"/proc/{facts['b_kernel']}/ns/{kind}") as fd:
        libc("setns", fd, flag)


@probe(CALL + " ENOENT ESRCH")
def namespace_enter_bs_mounts(facts: Facts) -> object:
    enter(facts, "mnt", NEWNS)
    return read_path(f"/proc/{facts['b_kernel']}/cwd/secret")


@probe(CALL + " ENOENT ESRCH", proof=SEES)
def namespace_enter_bs_network(facts: Facts) -> object:
    enter(facts, "net", NEWNET)
    return "entered"


@probe(CALL + " ENOENT ESRCH", proof=SEES)
def namespace_enter_bs_objects(facts: Facts) -> object:
    enter(facts, "ipc", NEWIPC)
    return "entered"


@probe(CALL + " ESRCH EINVAL", proof=SEES)
def namespace_enter_by_pidfd(facts: Facts) -> object:
    libc("setns", os.pidfd_open(facts["b_kernel"]), NEWNET | NEWIPC)
    return "entered"


@probe(NO, proof=OPENS)
def namespace_new_user(facts: Facts) -> object:
    return libc("unshare", NEWUSER)


@probe(NO, proof=OPENS)
def namespace_new_user_by_clone(facts: Facts) -> object:
    pid = syscall(56, NEWUSER | 17, 0, 0, 0, 0)
    if not pid:
        os._exit(0)
    return os.waitpid(pid, 0)


@probe(NO, proof=OPENS)
def namespace_new_user_by_clone3(facts: Facts) -> object:
    arguments = struct.pack("11Q", NEWUSER, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    pid = syscall(435, arguments, len(arguments))
    if not pid:
        os._exit(0)
    return os.waitpid(pid, 0)


@probe(NO, proof=OPENS)
def namespace_new_mounts(facts: Facts) -> object:
    return libc("unshare", NEWNS)


@probe(NO, proof=OPENS)
def namespace_new_network(facts: Facts) -> object:
    return libc("unshare", NEWNET)


@probe(NO + " ENOENT")
def mount_b_here(facts: Facts) -> object:
    """In mounts of its own, so that nobody else's change."""
    libc("unshare", NEWUSER | NEWNS)
    libc("mount", b"none", b"/", None, 0x4000 | 0x40000, None)  # private from here on
    os.makedirs("here", exist_ok=True)
    libc("mount", facts["b"].encode(), b"here", None, BIND, None)
    return read_path("here/secret")


@probe(NO, proof=OPENS)
def mount_anything(facts: Facts) -> object:
    libc("unshare", NEWNS)
    os.makedirs("there", exist_ok=True)
    return libc("mount", b"tmpfs", b"there", b"tmpfs", 0, None)


@probe(NO, proof=OPENS)
def mount_a_new_way(facts: Facts) -> object:
    return syscall(430, b"tmpfs", 1)


@probe(NO + " ENOENT EACCES")
def mount_take_bs_tree(facts: Facts) -> object:
    tree = syscall(428, -100, facts["b"].encode(), 1)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=tree), 100)


@probe(NO, proof=OPENS)
def mount_change_attributes(facts: Facts) -> object:
    return senseless(442, -1, None, 0, None, 32)


@probe(NO, proof=OPENS)
def mount_take_away(facts: Facts) -> object:
    return senseless(166, b"/made-up/place", 0)


@probe(NO, proof=OPENS)
def mount_pivot(facts: Facts) -> object:
    return senseless(155, None, None)


@probe(NO + " ENOENT EACCES")
def root_move_to_b(facts: Facts) -> object:
    os.chroot(facts["b"])
    return read_path("/secret")


# ---- devices ----


@probe(CALL, proof=OPENS)
def device_make_the_machines_disk(facts: Facts) -> object:
    major, minor = facts["disk"]
    os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(major, minor))
    try:
        return len(os.read(os.open("disk", os.O_RDONLY), 512))
    finally:
        os.unlink("disk")


DEVICES = "ENOENT EACCES EPERM ENXIO ENODEV"


def opens(path: str, flags: int = os.O_RDWR) -> object:
    with opened(path, flags | os.O_NONBLOCK) as fd:
        return fd


@probe(DEVICES, proof=OPENS)
def device_disk(facts: Facts) -> object:
    return opens("/dev/vda", os.O_RDONLY)


@probe(DEVICES, proof=OPENS)
def device_log(facts: Facts) -> object:
    return opens("/dev/kmsg", os.O_RDONLY)


@probe(DEVICES, proof=OPENS)
def device_fuse(facts: Facts) -> object:
    return opens("/dev/fuse")


@probe(DEVICES, proof=OPENS)
def device_loop(facts: Facts) -> object:
    return opens("/dev/loop-control")


@probe(DEVICES, proof=OPENS)
def device_tunnel(facts: Facts) -> object:
    return opens("/dev/net/tun")


@probe(DEVICES, proof=OPENS)
def device_virtual_machine(facts: Facts) -> object:
    return opens("/dev/kvm")


@probe(DEVICES, proof=OPENS)
def device_page_faults(facts: Facts) -> object:
    return opens("/dev/userfaultfd")


@probe(DEVICES, proof=OPENS)
def device_console(facts: Facts) -> object:
    return opens("/dev/tty0")


@probe(NO + " EACCES ENOTTY EIO", proof=OPENS)
def device_type_into_a_terminal(facts: Facts) -> object:
    """TIOCSTI: as if typed by whoever sits there."""
    leader, follower = os.openpty()
    os.setsid()
    libc("ioctl", follower, 0x540E, 0)
    return leader, libc("ioctl", follower, 0x5412, b"x")


# ---- calls that have been ways out ----


def senseless(number: int, *arguments: object) -> object:
    """Fails in any case; what is refused fails before its arguments are looked at."""
    return syscall(number, *arguments)


@probe(NO, proof=OPENS)
def call_io_uring(facts: Facts) -> object:
    return senseless(425, 1, None)


@probe(NO + " EACCES ENOENT")
def call_io_uring_to_read_b(facts: Facts) -> object:
    """No filter of system calls sees what a ring is asked to do."""
    parameters = ctypes.create_string_buffer(120)
    ring = syscall(425, 4, parameters)
    fields = struct.unpack_from("30I", parameters)  # struct io_uring_params
    tail, mask, array = fields[11], fields[12], fields[16]
    submit = mmap.mmap(ring, array + 4 * fields[0], offset=0)
    entries = mmap.mmap(ring, 64 * fields[0], offset=0x10000000)
    complete = mmap.mmap(ring, fields[25] + 16 * fields[1], offset=0x8000000)

    def do(entry: bytes) -> int:
        (at,) = struct.unpack_from("I", submit, tail)
        (wrap,) = struct.unpack_from("I", submit, mask)
        entries[64 * (at & wrap) : 64 * (at & wrap) + 64] = entry.ljust(64, b"\0")
        struct.pack_into("I", submit, array + 4 * (at & wrap), at & wrap)
        struct.pack_into("I", submit, tail, at + 1)
        syscall(426, ring, 1, 1, 1, None, 0)
        result: int = struct.unpack_from("i", complete, fields[25] + 16 * at + 8)[0]
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result

    path = ctypes.create_string_buffer(f"{facts['b']}/secret".encode())
    fd = do(struct.pack("BBHiQQII", 18, 0, 0, -100, 0, ctypes.addressof(path), 0, os.O_RDONLY))
    room = ctypes.create_string_buffer(100)
    do(struct.pack("BBHiQQI", 22, 0, 0, fd, 0, ctypes.addressof(room), 100))
    return room.value


@probe(NO, proof=OPENS)
def call_page_faults_by_hand(facts: Facts) -> object:
    return syscall(323, 1)


@probe(NO, proof=OPENS)
def call_bpf_map(facts: Facts) -> object:
    return syscall(321, 0, struct.pack("IIII", 2, 4, 8, 1).ljust(72, b"\0"), 72)


@probe(NO, proof=OPENS)
def call_bpf_program(facts: Facts) -> object:
    return senseless(321, 5, None, 72)


@probe(NO + " EACCES", proof=OPENS)
def call_performance_counters(facts: Facts) -> object:
    return senseless(298, None, 0, -1, -1, 0)


@probe(NO, proof=OPENS)
def call_load_a_module(facts: Facts) -> object:
    return senseless(175, None, 0, None)


@probe(NO, proof=OPENS)
def call_load_a_module_file(facts: Facts) -> object:
    return senseless(313, -1, None, 0)


@probe(NO, proof=OPENS)
def call_load_another_system(facts: Facts) -> object:
    return senseless(246, 0, 1, None, 0)


@probe(NO, proof=OPENS)
def call_restart_the_machine(facts: Facts) -> object:
    return senseless(169, 0, 0, 0, None)  # without its magic numbers


@probe(NO, proof=OPENS)
def call_set_the_clock(facts: Facts) -> object:
    return senseless(227, 0, None)


@probe(NO, proof=OPENS)
def call_name_the_machine(facts: Facts) -> object:
    return senseless(170, None, 5)


@probe(NO, proof=OPENS)
def call_swap(facts: Facts) -> object:
    return senseless(167, b"/made-up/place", 0)


@probe(NO, proof=OPENS)
def call_account(facts: Facts) -> object:
    return senseless(163, b"/made-up/place")


@probe(NO, proof=OPENS)
def call_ports_of_the_machine(facts: Facts) -> object:
    return senseless(173, 0, 1 << 20, 1)


@probe(NO, proof=OPENS)
def call_kernel_log(facts: Facts) -> object:
    return syscall(103, 10, None, 0)


@probe(NO, proof=OPENS)
def call_add_a_key(facts: Facts) -> object:
    return senseless(248, None, None, None, 0, 0)


@probe(NO, proof=OPENS)
def call_quota(facts: Facts) -> object:
    return senseless(179, 0x80000700, b"/made-up/place", 0, None)


@probe(NO, proof=OPENS)
def call_personality(facts: Facts) -> object:
    return syscall(135, 0x0040000)  # addresses that are not random


@probe(NO, proof=OPENS)
def call_tables_of_segments(facts: Facts) -> object:
    return senseless(154, 1, None, 0)


# ---- rights ----


def rights() -> int:
    """Capabilities that this process has or may take."""
    head, data = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    syscall(125, head, data)
    return sum(struct.unpack("6I", data))


@probe("EPERM own", proof=OPENS)
def rights_become_root(facts: Facts) -> object:
    os.setresuid(0, 0, 0)
    if not rights():
        raise PermissionError(1, "root in name only")
    return rights()


@probe("EPERM", proof=OPENS)
def rights_become_somebody_else(facts: Facts) -> None:
    os.setresuid(12345, 12345, 12345)


@probe("EPERM", proof=OPENS)
def rights_join_groups(facts: Facts) -> None:
    os.setgroups([12345])


@probe("EPERM", proof=OPENS)
def rights_have_any(facts: Facts) -> object:
    if not rights():
        raise PermissionError(1, "none")
    return rights()


@probe("EPERM", proof=OPENS)
def rights_gain_by_a_program(facts: Facts) -> object:
    if libc("prctl", 39, 0, 0, 0, 0) == 1:  # PR_GET_NO_NEW_PRIVS
        raise PermissionError(1, "no new privileges")
    return "a program may give some"


@probe("EPERM EINVAL", proof=OPENS)
def rights_raise_a_limit(facts: Facts) -> object:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard + 1))
    except ValueError as error:  # what Python makes of EPERM
        raise PermissionError(1, str(error)) from None
    return "raised"


@probe("EPERM EACCES", proof=OPENS)
def rights_run_before_all_others(facts: Facts) -> None:
    os.setpriority(os.PRIO_PROCESS, 0, -10)
