# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""The kernel's process: sockets, streams, kernel, loop, in this order, and nothing on disk."""

import atexit
import faulthandler
import fcntl
import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from .cells import Cells
from .connection import Launch, Reports
from .interrupts import Interrupts
from .leaving import BUSY_S, EXIT_S, leave_now, leave_within
from .moved import follow
from .streams import Output, clean


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """Imports of these fail inside.  They are optional, slow, and can still be imported later."""
    hidden = {name: None for name in names if name not in sys.modules}
    sys.modules.update(hidden)  # type: ignore[arg-type]  # None is how Python says it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


SLOW = ("debugpy", "jedi")

with absent(*SLOW):
    import zmq
    from ipykernel.control import ControlThread
    from ipykernel.kernelapp import IPKernelApp
    from IPython.core.profiledir import ProfileDir
    from jupyter_client.jsonutil import json_clean, json_default
    from tornado.ioloop import IOLoop
    from traitlets.config import Config
    from zmq.eventloop.zmqstream import ZMQStream

    from .kernel import Kernel
    from .publisher import SOCKET_TYPE, Publisher

INLINE = "module://matplotlib_inline.backend_inline"
CHANNELS = ("shell", "stdin", "control", "iopub")


class NoShellThread:
    """In the place of ipykernel 7's thread for subshells: cells are read by the main loop."""

    def __init__(self) -> None:
        self.parent_thread = threading.current_thread()

    def __bool__(self) -> bool:
        return False


class EmptyProfile(ProfileDir):
    """A place for what IPython may want to store, with nothing in it made in advance."""

    def _nothing(self, change: Any = None) -> None:
        pass

    check_dirs = check_startup_dir = check_log_dir = check_pid_dir = check_security_dir = _nothing


class KernelApp(IPKernelApp):
    launch: Launch
    output: Output
    context: Any  # what ipykernel declares may be None, and here never is
    shell: Any

    def initialize(self, argv: Any = None) -> None:
        self.log.setLevel(self.log_level)  # traitlets makes each debug line, for no handler
        self.interrupts = Interrupts()
        self.leaving = False
        self.called_off: threading.Event | None = None
        self.keep_crash_output()
        self.init_pdb()
        self.profile_dir = EmptyProfile(
            location=os.path.join(self.launch.runtime_dir, "profile"), parent=self
        )
        self.load_connection_info(cast(Any, self.launch.connection))
        self.session.pack = pack
        self.session.copy_threshold = sys.maxsize  # sends without a copy cost a thread of pyzmq's
        self.init_sockets()
        self.init_io()
        self.interrupts.install()
        os.environ["MPLBACKEND"] = INLINE
        with absent(*SLOW):
            self.init_kernel()
        self.init_path()
        self.init_shell()
        self.init_extensions()
        self.shell._sys_modules_keys = set(sys.modules)
        self.reports = Reports()
        cells = Cells()
        self.snapshots = self.keep_snapshots(cells)
        self.kernel.prepare(
            self.output,
            self.interrupts,
            self.leave,
            self.reports,
            self.launch.summary_max,
            cells=cells,
            snapshots=self.snapshots,
        )

    def keep_snapshots(self, cells: Cells) -> Any:
        if self.launch.snapshot is None:
            return None
        try:
            from .snapshot.session import Snapshots
        except ImportError as error:  # an interpreter of the user's own, without xxhash
            from .unsaved import Unsaved

            return Unsaved(self.launch.snapshot, self.reports, error)
        return Snapshots(self.launch.snapshot, self.shell, cells, self.reports)

    def keep_crash_output(self) -> None:
        """Descriptor 2 as it is now goes to the daemon: for what must survive a crash."""
        crash = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 10)
        self.crash_file = os.fdopen(crash, "w", buffering=1, errors="backslashreplace")
        sys.excepthook = self.excepthook
        for handler in self.log.handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(self.crash_file)
        enable = faulthandler.enable
        enable(file=crash)

        def enable_again(
            file: Any = self.crash_file, all_threads: bool = True, **more: Any
        ) -> None:
            """User code that calls it means the real stderr, not a pipe that dies with us."""
            enable(file=file, all_threads=all_threads, **more)

        faulthandler.enable = enable_again

    def excepthook(self, etype: Any, evalue: Any, tb: Any) -> None:
        import traceback

        traceback.print_exception(etype, evalue, tb, file=self.crash_file)

    def init_sockets(self) -> None:
        self.context = zmq.Context()
        home = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.chdir(self.launch.runtime_dir)  # relative: a socket's path holds 107 bytes at most
        try:
            for name in CHANNELS:
                setattr(self, f"{name}_socket", self.bind(name))
        finally:
            os.fchdir(home)
            os.close(home)
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = NoShellThread()
        self.configure_tornado_logger()
        self.iopub_thread = Publisher.create(self.iopub_socket, self.session)
        self.iopub_thread.start()
        atexit.unregister(self.iopub_thread.stop)
        self.iopub_socket = self.iopub_thread.background_socket

    def bind(self, name: str) -> Any:
        socket = self.context.socket(SOCKET_TYPE if name == "iopub" else zmq.ROUTER)
        socket.linger = 1000
        if name == "iopub":
            socket.sndhwm = 0  # before bind: a slow reader loses nothing
        else:
            socket.router_handover = 1  # a reconnecting client keeps its identity
        if self.transport == "ipc":
            for pid in {*self.launch.peer_pids, os.getpid()}:
                socket.setsockopt(zmq.IPC_FILTER_PID, pid)
        self._bind_socket(socket, getattr(self, f"{name}_port"))
        return socket

    def init_io(self) -> None:
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.reconfigure(line_buffering=True)
        self.output = Output(
            self.publish_stream,
            self.iopub_thread.wait_sent,
            self.interrupts,
            self.launch.stream_split,
        )

    def publish_stream(self, name: str, text: str, parent: dict[str, Any], end: int) -> None:
        content = {"name": name, "text": text}
        ident = b"stream." + name.encode()
        metadata = {"vivarium": {"end": end}}
        self.session.send(
            self.iopub_thread, "stream", content, parent, ident=ident, metadata=metadata
        )

    def init_kernel(self) -> None:
        self.shell_stream = ZMQStream(self.shell_socket)
        self.control_stream = ZMQStream(self.control_socket, self.control_thread.io_loop)
        self.control_thread.start()
        options = {
            "session": self.session,
            "shell_stream": self.shell_stream,
            "control_stream": self.control_stream,
            "control_thread": self.control_thread,
            "shell_channel_thread": self.shell_channel_thread,
            "iopub_thread": self.iopub_thread,
            "iopub_socket": self.iopub_socket,
            "stdin_socket": self.stdin_socket,
            "profile_dir": self.profile_dir,
            "log": self.log,
            "user_ns": None,
        }
        known = {name: value for name, value in options.items() if Kernel.class_traits().get(name)}
        self.kernel = Kernel.instance(parent=self, **known)
        ports = (*CHANNELS, "hb")
        self.kernel.record_ports({f"{name}_port": getattr(self, f"{name}_port") for name in ports})

    def start(self) -> None:
        self.kernel.start()
        self.io_loop = IOLoop.current()
        self.reports.ready(self.output.handed_over())
        if self.snapshots is not None:
            self.restore()
        self.shell.count_from(self.launch.cell)
        while not self.leaving:
            try:
                self.io_loop.start()
            except KeyboardInterrupt:  # struck between two callbacks: nothing to interrupt
                continue
        if self.called_off is not None:
            self.called_off.set()
        if self.snapshots is not None:
            called_off = leave_within(EXIT_S)
            self.snapshots.last_save()
            called_off.set()
        leave_now(self.close)

    def restore(self) -> None:
        home = os.getcwd()
        self.kernel.census.exclude(self.snapshots.start(self.io_loop))
        what = self.launch.snapshot and self.launch.snapshot.restore
        if what and what.moved_from:
            follow(what.moved_from, home)

    def leave(self) -> None:
        """End the process once the current message is answered; any thread may call it."""
        self.leaving = True
        self.io_loop.add_callback(self.io_loop.stop)
        if threading.current_thread() is not threading.main_thread():
            self.called_off = leave_within(BUSY_S if self.interrupts.busy() else EXIT_S)

    def close(self) -> None:
        """Send what is left and close each socket in the thread that owns it."""
        linger_ms = 300
        self.output.restore()
        self.output.end(self.crash_file.fileno())
        logging.disable()  # tornado complains of sockets that we close
        os.chdir(self.launch.runtime_dir)  # libzmq unlinks the relative paths it bound
        self.shell_stream.flush()
        self.shell_stream.close(linger_ms)
        self.stdin_socket.close(linger_ms)
        closed = threading.Event()

        def close_control() -> None:
            self.control_stream.flush()
            self.control_stream.close(linger_ms)
            closed.set()

        self.control_thread.io_loop.add_callback(close_control)
        self.iopub_thread.end(linger_ms)
        if closed.wait(1):
            self.context.term()


def pack(message: Any) -> bytes:
    """JSON for the wire, always valid UTF-8, whatever strings the user's program made."""
    try:
        text = json.dumps(message, default=json_default, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(json_clean(message), default=json_default, ensure_ascii=False)
    return clean(text).encode()


def show_own_packages() -> None:
    """What `pip install` puts into the workspace's home, where the interpreter's packages are
    not ours to change: before those, so that a newer version counts."""
    own = os.environ.get("PIP_TARGET")
    if not own or os.environ.get("PYTHONPATH"):
        return
    with suppress(OSError):  # Python would remember that it was not there
        os.makedirs(own, exist_ok=True)
    os.environ["PYTHONPATH"] = own  # for the programs that it starts
    packages = (i for i, path in enumerate(sys.path) if path.endswith("-packages"))
    sys.path.insert(next(packages, len(sys.path)), own)


def main(launch: Launch) -> None:
    sys.argv = [""]
    own = os.path.dirname(os.path.dirname(__file__))
    sys.path[:] = [path for path in sys.path if path != own] + [own]  # last: it hides nothing
    show_own_packages()
    config = Config()
    config.HistoryManager.enabled = False
    config.Kernel._execute_sleep = 0.0
    KernelApp.launch = launch
    app = KernelApp.instance(config=config, kernel_class=Kernel, log_level=logging.ERROR)
    app.initialize()
    app.start()
