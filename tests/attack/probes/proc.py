# SPDX-License-Identifier: MIT
"""/proc: of the manager (M), of B's kernel, of a child of B's, and of the machine."""

from __future__ import annotations

import os

from probes.kit import CHANGES, OPENS, SEES, Facts, opened, probe, read_path, write_path

# A private /proc has no such process.
PROC = "EACCES EPERM ENOENT ESRCH"

MASKED = PROC + " own"  # nothing is in it


def of(facts: Facts, who: str, name: str) -> str:
    return f"/proc/{facts[who]}/{name}"


@probe(PROC)
def proc_environment_of_the_manager(facts: Facts) -> object:
    return read_path(of(facts, "manager", "environ"))


@probe(PROC)
def proc_environment_of_bs_child(facts: Facts) -> object:
    return read_path(of(facts, "b_child", "environ"))


@probe(PROC)
def proc_arguments_of_bs_child(facts: Facts) -> object:
    return read_path(of(facts, "b_child", "cmdline"))


@probe(PROC, proof=SEES)
def proc_status_of_the_manager(facts: Facts) -> object:
    return "vivarium" if "vivarium" in read_path(of(facts, "manager", "status")) else ""


@probe(PROC, proof=SEES)
def proc_statistics_of_bs_kernel(facts: Facts) -> object:
    return read_path(of(facts, "b_kernel", "stat"))


@probe(PROC)
def proc_mappings_of_bs_kernel(facts: Facts) -> object:
    with open(of(facts, "b_kernel", "maps")) as file:
        return [line for line in file if "mapped-" in line]


@probe(PROC + " EIO")
def proc_memory_of_bs_kernel(facts: Facts) -> object:
    with opened(of(facts, "b_kernel", "mem")) as fd:
        return os.pread(fd, 64, facts["address"])


@probe(PROC + " EIO", proof=CHANGES)
def proc_write_memory_of_bs_kernel(facts: Facts) -> None:
    with opened(of(facts, "b_kernel", "mem"), os.O_RDWR) as fd:
        os.pwrite(fd, b"changed by A", facts["buffers"]["proc_write_memory_of_bs_kernel"])


@probe(PROC, proof=SEES)
def proc_memory_of_the_manager(facts: Facts) -> object:
    with open(of(facts, "manager", "maps")) as file:
        start = next(line for line in file if "[heap]" in line or "rw-p" in line).split("-")[0]
    with opened(of(facts, "manager", "mem")) as fd:
        return len(os.pread(fd, 64, int(start, 16)))


@probe(PROC)
def proc_root_of_bs_kernel(facts: Facts) -> object:
    return read_path(of(facts, "b_kernel", "cwd/secret"))


@probe(PROC)
def proc_root_of_the_manager(facts: Facts) -> object:
    return read_path(of(facts, "manager", "root") + f"{facts['b']}/secret")


@probe(PROC)
def proc_descriptor_of_bs_kernel(facts: Facts) -> object:
    """A file that has no name any more."""
    return read_path(of(facts, "b_kernel", f"fd/{facts['fd']}"))


@probe(PROC, proof=SEES)
def proc_descriptors_of_the_manager(facts: Facts) -> object:
    return os.readlink(of(facts, "manager", f"fd/{facts['manager_fd']}"))


@probe(PROC, proof=SEES)
def proc_program_of_the_manager(facts: Facts) -> object:
    return os.readlink(of(facts, "manager", "exe"))


@probe(PROC, proof=SEES)
def proc_namespaces_of_bs_kernel(facts: Facts) -> object:
    return os.readlink(of(facts, "b_kernel", "ns/mnt"))


@probe(PROC, proof=SEES)
def proc_stack_of_bs_kernel(facts: Facts) -> object:
    return read_path(of(facts, "b_kernel", "syscall"))


@probe(PROC, proof=SEES)
def proc_input_and_output_of_bs_kernel(facts: Facts) -> object:
    return read_path(of(facts, "b_kernel", "io"))


@probe(PROC + " own", proof=SEES)
def proc_list(facts: Facts) -> object:
    return "listed" if str(facts["b_kernel"]) in os.listdir("/proc") else ""


@probe(PROC, proof=CHANGES)
def proc_make_bs_child_the_first_to_be_killed(facts: Facts) -> None:
    child = facts["children"]["proc_make_bs_child_the_first_to_be_killed"]
    write_path(f"/proc/{child}/oom_score_adj", "999")


@probe(PROC, proof=CHANGES)
def proc_set_what_bs_child_dumps(facts: Facts) -> None:
    child = facts["children"]["proc_set_what_bs_child_dumps"]
    write_path(f"/proc/{child}/coredump_filter", "0x7f")


@probe(PROC, proof=CHANGES)
def proc_slow_the_timers_of_bs_child(facts: Facts) -> None:
    child = facts["children"]["proc_slow_the_timers_of_bs_child"]
    write_path(f"/proc/{child}/timerslack_ns", "70000")


@probe(PROC + " own", shared=True)
def proc_unix_sockets(facts: Facts) -> object:
    with open("/proc/net/unix") as file:
        return file.read()


@probe(PROC)
def proc_unix_sockets_as_b_has_them(facts: Facts) -> object:
    with open(of(facts, "b_kernel", "net/unix")) as file:
        return file.read()


@probe(PROC + " own", proof=SEES, shared=True)
def proc_tcp_ports(facts: Facts) -> object:
    with open("/proc/net/tcp") as file:
        return "listed" if f"0100007F:{facts['tcp']:04X}" in file.read() else ""


@probe(PROC + " own")
def proc_keys(facts: Facts) -> object:
    return read_path("/proc/keys")


@probe(PROC + " own", proof=SEES)
def proc_shared_memory(facts: Facts) -> object:
    return "listed" if str(facts["sysv_key"]) in read_path("/proc/sysvipc/shm") else ""


@probe(MASKED, proof=SEES)
def proc_memory_of_the_machine(facts: Facts) -> object:
    return len(read_path("/proc/kcore", 64)) or ""


@probe(PROC + " EROFS", proof=OPENS)
def proc_settings_of_the_machine(facts: Facts) -> None:
    with opened("/proc/sys/vm/overcommit_memory", os.O_WRONLY):
        pass


@probe(PROC + " EROFS", proof=OPENS)
def proc_settings_of_the_host_name(facts: Facts) -> None:
    with opened("/proc/sys/kernel/hostname", os.O_WRONLY):
        pass


@probe(MASKED + " EROFS EIO", proof=SEES)
def proc_system_request(facts: Facts) -> object:
    with opened("/proc/sysrq-trigger", os.O_WRONLY) as fd:
        return "" if os.fstat(fd).st_rdev else "opened"


@probe(MASKED, proof=SEES)
def proc_kernel_log(facts: Facts) -> object:
    with opened("/proc/kmsg", os.O_RDONLY | os.O_NONBLOCK) as fd:
        return "" if os.fstat(fd).st_rdev else "opened"  # a device: /dev/null over it


@probe(MASKED, proof=SEES)
def proc_timers_of_the_machine(facts: Facts) -> object:
    return len(read_path("/proc/timer_list", 64)) or ""


@probe(PROC + " own", proof=SEES)
def proc_addresses_of_the_system(facts: Facts) -> object:
    """Where its code lies in memory; zeros for whom it does not trust."""
    with open("/proc/kallsyms") as file:
        return "told" if any(int(line.split()[0], 16) for line in file) else ""


@probe(PROC + " EROFS", proof=OPENS)
def proc_settings_of_the_memory(facts: Facts) -> None:
    with opened("/sys/kernel/mm/transparent_hugepage/enabled", os.O_WRONLY):
        pass


@probe(PROC + " EROFS own", proof=SEES)
def proc_join_another_control_group(facts: Facts) -> object:
    """The topmost one, which limits nothing."""
    refused = OSError(2, "none is here")
    for directory in ("", "memory/", "pids/", "cpu/", "unified/"):
        try:
            write_path(f"/sys/fs/cgroup/{directory}cgroup.procs", str(os.getpid()))
        except OSError as error:
            refused = error
        else:
            return directory
    raise refused
