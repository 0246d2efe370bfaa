# SPDX-License-Identifier: MIT
"""Files: B's workspace, the manager's state, what all programs share."""

from __future__ import annotations

import ctypes
import os
import select
import struct

from probes.kit import (
    CHANGES,
    OPENS,
    SEES,
    Facts,
    exists,
    libc,
    opened,
    plant,
    probe,
    read_path,
    syscall,
    write_path,
)

O_PATH = 0o10000000
FILES = "EACCES EPERM ENOENT"
# Landlock has no rights for looking at, or changing, what a path's inode says of itself.
INODE = {"L": "Landlock does not cover metadata of a path that is known"}
IN_ALL = 0xFFF


def victim(facts: Facts, name: str) -> str:
    return f"{facts['b']}/victims/{name}"


# ---- contents ----


@probe(FILES)
def files_read(facts: Facts) -> object:
    return read_path(f"{facts['b']}/secret")


@probe(FILES)
def files_list(facts: Facts) -> object:
    return os.listdir(f"{facts['b']}/listed")


@probe(FILES)
def files_read_by_a_link_of_mine(facts: Facts) -> object:
    os.symlink(f"{facts['b']}/secret", "link-to-b")
    try:
        return read_path("link-to-b")
    finally:
        os.unlink("link-to-b")


@probe(FILES)
def files_read_upwards(facts: Facts) -> object:
    return read_path(f"../{facts['b_name']}/secret")


@probe(FILES + " EXDEV")
def files_read_by_a_hard_link(facts: Facts) -> object:
    os.link(f"{facts['b']}/secret", "hard-link")
    try:
        return read_path("hard-link")
    finally:
        os.unlink("hard-link")


@probe(FILES)
def files_read_from_an_entered_directory(facts: Facts) -> object:
    os.chdir(facts["b"])
    return read_path("secret")


@probe(FILES)
def files_read_beneath_a_path_descriptor(facts: Facts) -> object:
    with opened(facts["b"], O_PATH) as directory:
        fd = os.open("secret", os.O_RDONLY, dir_fd=directory)
        return os.read(fd, 100)


@probe(FILES)
def files_reopen_a_path_descriptor(facts: Facts) -> object:
    with opened(f"{facts['b']}/secret", O_PATH) as fd:
        return read_path(f"/proc/self/fd/{fd}")


@probe(FILES + " ENOSYS")
def files_read_by_openat2(facts: Facts) -> object:
    how = struct.pack("QQQ", os.O_RDONLY, 0, 0)
    path = f"{facts['b']}/secret".encode()
    fd = syscall(437, -100, path, how, len(how))
    return os.read(fd, 100)


@probe(FILES + " ENOSYS")
def files_read_by_open_tree(facts: Facts) -> object:
    tree = syscall(428, -100, facts["b"].encode(), 0)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=tree), 100)


@probe(FILES)
def files_send_between_descriptors(facts: Facts) -> object:
    with opened(f"{facts['b']}/secret") as fd, open("copy", "w+b") as copy:
        os.copy_file_range(fd, copy.fileno(), 100)
        return os.pread(copy.fileno(), 100, 0)


@probe(FILES + " EXDEV")
def files_take_by_rename(facts: Facts) -> object:
    os.rename(victim(facts, "files_take_by_rename"), "taken")
    return read_path("taken")


@probe(FILES + " EXDEV", proof=CHANGES)
def files_swap_by_rename(facts: Facts) -> None:
    with open("mine", "w") as file:
        file.write("mine")
    path = victim(facts, "files_swap_by_rename")
    syscall(316, -100, b"mine", -100, path.encode(), 2)  # RENAME_EXCHANGE


@probe(FILES + " ENOSYS EOPNOTSUPP")
def files_open_by_handle(facts: Facts) -> object:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
    mount = ctypes.c_int()
    path = f"{facts['b']}/secret".encode()
    syscall(303, -100, path, handle, ctypes.byref(mount), 0)
    return read_handle(handle)


@probe(FILES + " ENOSYS EOPNOTSUPP ESTALE EINVAL")
def files_open_by_a_made_up_handle(facts: Facts) -> object:
    """As the first escapes from containers did: the inode's number is enough to make one."""
    handle = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, facts["secret_inode"], 0), 136)
    return read_handle(handle)


def read_handle(handle: ctypes.Array[ctypes.c_char]) -> object:
    with opened(".") as mine:
        fd = syscall(304, mine, handle, os.O_RDONLY)
        return os.read(fd, 100)


# ---- changes ----


@probe(FILES, proof=CHANGES)
def files_write(facts: Facts) -> None:
    write_path(victim(facts, "files_write"), "changed by A")


@probe(FILES, proof=CHANGES)
def files_truncate(facts: Facts) -> None:
    os.truncate(victim(facts, "files_truncate"), 1)


@probe(FILES, proof=CHANGES)
def files_unlink(facts: Facts) -> None:
    os.unlink(victim(facts, "files_unlink"))


@probe(FILES, proof=CHANGES)
def files_rename(facts: Facts) -> None:
    path = victim(facts, "files_rename")
    os.rename(path, path + "-else")


@probe(FILES, proof=CHANGES)
def files_create(facts: Facts) -> None:
    plant(facts["b"], "files_create")


@probe(FILES, proof=CHANGES)
def files_make_a_directory(facts: Facts) -> None:
    os.mkdir(f"{facts['b']}/planted-files_make_a_directory")


@probe(FILES, proof=CHANGES)
def files_make_a_link(facts: Facts) -> None:
    os.symlink("/etc/passwd", f"{facts['b']}/planted-files_make_a_link")


@probe(FILES + " ENOSYS", proof=CHANGES)
def files_make_a_fifo(facts: Facts) -> None:
    os.mkfifo(f"{facts['b']}/planted-files_make_a_fifo")


@probe(FILES + " EXDEV", proof=CHANGES)
def files_link_into(facts: Facts) -> None:
    with open("linked", "w") as file:
        file.write("mine")
    os.link("linked", f"{facts['b']}/planted-files_link_into")


@probe(FILES, proof=CHANGES)
def files_feed_a_fifo(facts: Facts) -> None:
    write_path(f"{facts['b']}/fifo", "from A")


# ---- what an inode says of itself ----


@probe(FILES, leaves=INODE)
def files_stat(facts: Facts) -> object:
    return "inode " + str(os.stat(facts["b"] + "/secret").st_ino)


@probe(FILES, leaves=INODE)
def files_read_a_link(facts: Facts) -> object:
    return os.readlink(f"{facts['b']}/told")


@probe(FILES, leaves=INODE, proof=SEES)
def files_access(facts: Facts) -> object:
    def look(path: str) -> None:
        libc("access", path.encode(), os.R_OK)

    return exists(f"{facts['b']}/secret", f"{facts['b']}/made-up", look)


@probe(FILES, leaves=INODE, proof=SEES)
def files_enter(facts: Facts) -> object:
    return exists(facts["b"], f"{facts['b']}-made-up", os.chdir)


@probe(FILES, leaves=INODE, proof=SEES)
def files_path_descriptor(facts: Facts) -> object:
    def look(path: str) -> None:
        os.close(os.open(path, O_PATH))

    return exists(f"{facts['b']}/secret", f"{facts['b']}/made-up", look)


@probe(FILES, leaves=INODE, proof=CHANGES)
def files_chmod(facts: Facts) -> None:
    os.chmod(victim(facts, "files_chmod"), 0o777)


@probe(FILES + " ENOSYS", leaves=INODE, proof=CHANGES)
def files_chmod_without_following(facts: Facts) -> None:
    path = victim(facts, "files_chmod_without_following").encode()
    syscall(452, -100, path, 0o777, 0)  # fchmodat2, newer than many lists of calls


@probe(FILES, leaves=INODE, proof=CHANGES)
def files_chown(facts: Facts) -> None:
    os.chown(victim(facts, "files_chown"), os.getuid(), os.getgid())


@probe(FILES, leaves=INODE, proof=CHANGES)
def files_set_times(facts: Facts) -> None:
    os.utime(victim(facts, "files_set_times"), (1, 1))


@probe(FILES + " EOPNOTSUPP", leaves=INODE, proof=CHANGES)
def files_set_an_attribute(facts: Facts) -> None:
    os.setxattr(victim(facts, "files_set_an_attribute"), "user.a", b"changed by A")


@probe(FILES + " EOPNOTSUPP", leaves=INODE)
def files_get_an_attribute(facts: Facts) -> object:
    return os.getxattr(f"{facts['b']}/secret", "user.told")


@probe(FILES + " ENOSYS")
def files_watch(facts: Facts) -> object:
    """B touches a file with a telling name all the time."""
    fd = libc("inotify_init1", os.O_NONBLOCK)
    libc("inotify_add_watch", fd, f"{facts['b']}/ticks".encode(), IN_ALL)
    select.select([fd], [], [], 2)
    return os.read(fd, 4096)


@probe(FILES + " ENOSYS EINVAL", proof=SEES)
def files_watch_by_fanotify(facts: Facts) -> object:
    fd = syscall(300, 0x200 | 0x2, os.O_RDONLY)  # with file handles: needs no rights
    syscall(301, fd, 1, 0x2 | 0x8, -100, f"{facts['b']}/ticks/tick".encode())
    select.select([fd], [], [], 2)
    return "watched" if os.read(fd, 4096) else ""


# ---- the manager's and everybody's ----


@probe(FILES)
def files_read_the_session_key(facts: Facts) -> object:
    with opened(f"{facts['state']}/daemon/session.key") as fd:
        return os.read(fd, 4096).hex()


@probe(FILES, leaves=INODE, proof=SEES)
def files_stat_the_session_key(facts: Facts) -> object:
    return exists(
        f"{facts['state']}/daemon/session.key", f"{facts['state']}/daemon/made-up", os.stat
    )


@probe(FILES, proof=SEES)
def files_list_the_state(facts: Facts) -> object:
    return exists(facts["state"], facts["state"] + "-made-up", os.listdir)


@probe(FILES)
def files_read_a_saved_state(facts: Facts) -> object:
    with opened(facts["manifest"]) as fd:
        return os.read(fd, 1 << 20).hex()


@probe(FILES)
def files_read_a_saved_value(facts: Facts) -> object:
    with opened(facts["chunk"]) as fd:
        return os.read(fd, 1 << 20).hex()


@probe(FILES, proof=CHANGES)
def files_add_a_saved_state(facts: Facts) -> None:
    plant(f"{facts['saved']}/generations", "files_add_a_saved_state")


@probe(FILES, proof=CHANGES)
def files_add_a_state_to_be_saved(facts: Facts) -> None:
    plant(f"{facts['saved']}/spool", "files_add_a_state_to_be_saved")


@probe(FILES, proof=CHANGES)
def files_add_a_saved_state_of_mine(facts: Facts) -> None:
    """A's own: but what was kept is the manager's, and not to be written any more."""
    plant(f"{facts['my_saved']}/generations", "files_add_a_saved_state_of_mine")


@probe(FILES, proof=CHANGES)
def files_write_the_state(facts: Facts) -> None:
    plant(facts["state"], "files_write_the_state")


@probe(FILES)
def files_list_the_runtime_directories(facts: Facts) -> object:
    return os.listdir(facts["runtime"])


@probe(FILES, proof=CHANGES)
def files_write_into_bs_runtime_directory(facts: Facts) -> None:
    plant(facts["b_runtime"], "files_write_into_bs_runtime_directory")


@probe(FILES)
def files_read_the_managers_home(facts: Facts) -> object:
    return read_path(f"{facts['home']}/private")


@probe(FILES + " EROFS", proof=CHANGES)
def files_change_every_kernels_program(facts: Facts) -> None:
    plant(facts["pyside"], "files_change_every_kernels_program" + facts["mark"])


@probe(FILES)
def files_read_bs_temporary_file(facts: Facts) -> object:
    return read_path(facts["b_temporary"])


@probe(FILES + " own")
def files_list_temporary_files(facts: Facts) -> object:
    return os.listdir("/tmp")


@probe(FILES, proof=SEES)
def files_read_the_shadow_file(facts: Facts) -> object:
    return "passwords" if ":" in read_path("/etc/shadow") else ""


@probe(FILES + " EROFS", proof=OPENS)
def files_write_into_etc(facts: Facts) -> None:
    plant("/etc", "files_write_into_etc")
    os.unlink("/etc/planted-files_write_into_etc")


@probe(FILES + " EROFS", proof=OPENS)
def files_write_into_usr(facts: Facts) -> None:
    plant("/usr/lib", "files_write_into_usr")
    os.unlink("/usr/lib/planted-files_write_into_usr")
