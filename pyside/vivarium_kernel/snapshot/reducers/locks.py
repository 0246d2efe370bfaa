# SPDX-License-Identifier: MIT
"""Locks come back open: whoever held them is gone.  Threads come back if they have ended."""

import _thread
import gc
import threading
from typing import Any

from . import Unkeepable, exactly, family, named, unkeepable
from .instances import reduce_instance


@exactly(type(threading.Lock()))
def reduce_lock(pickler: Any, lock: Any) -> Any:
    return threading.Lock, ()


@exactly(type(threading.RLock()))
def reduce_rlock(pickler: Any, lock: Any) -> Any:
    return threading.RLock, ()


@family("_thread._local", "_threading_local.local")
def reduce_local(pickler: Any, local: Any) -> Any:
    return make_local, (type(local),), dict(vars(local)), None, None, fill_local


def make_local(kind: Any) -> Any:
    return kind.__new__(kind)


def fill_local(local: Any, state: dict[str, Any]) -> None:
    local.__dict__.update(state)


@family("threading.Thread")
def reduce_thread(pickler: Any, thread: Any) -> Any:
    if thread is threading.main_thread():
        return threading.main_thread, ()
    if thread.is_alive():
        raise Unkeepable("it was running")
    state = dict(vars(thread))
    done = thread.ident is not None
    for name in ("_handle", "_tstate_lock"):
        state.pop(name, None)
    return make_thread, (type(thread), done), state, None, None, fill_thread


def make_thread(kind: Any, done: bool) -> Any:
    thread = kind.__new__(kind)
    if hasattr(_thread, "_ThreadHandle"):  # since 3.13
        thread._handle = _thread._ThreadHandle()
        if done:
            thread._handle._set_done()
    else:
        thread._tstate_lock = None
    return thread


def fill_thread(thread: Any, state: dict[str, Any]) -> None:
    thread.__dict__.update(state)


@named("_queue.SimpleQueue")
def reduce_simple_queue(pickler: Any, queue: Any) -> Any:
    """Without taking the items out: another thread may wait for them."""
    size = queue.qsize()
    inside = [each for each in gc.get_referents(queue) if each is not type(queue)]
    if len(inside) == 1 and type(inside[0]) is list and len(inside[0]) >= size:  # before 3.13
        inside = inside[0][len(inside[0]) - size :]
    if len(inside) != size:
        raise Unkeepable("its items cannot be seen without taking them out")
    return make_simple_queue, (), inside, None, None, fill_simple_queue


def make_simple_queue() -> Any:
    import queue

    return queue.SimpleQueue()


def fill_simple_queue(queue: Any, items: list[Any]) -> None:
    for item in items:
        queue.put(item)


@named("concurrent.futures._base.Future")
def reduce_future(pickler: Any, future: Any) -> Any:
    if not future.done():
        raise Unkeepable("it was not done, and who worked at it is gone")
    return reduce_instance(pickler, future)


@named("concurrent.futures.thread.ThreadPoolExecutor")
def reduce_threads(pickler: Any, pool: Any) -> Any:
    made = (pool._max_workers, pool._thread_name_prefix, pool._initializer, pool._initargs)
    return make_pool, (type(pool), made, pool._shutdown)


@named("concurrent.futures.process.ProcessPoolExecutor")
def reduce_processes(pickler: Any, pool: Any) -> Any:
    made = (pool._max_workers, None, pool._initializer, pool._initargs)
    return make_pool, (type(pool), made, pool._shutdown_thread)


def make_pool(kind: Any, made: tuple[Any, ...], shut_down: bool) -> Any:
    pool = kind(*made)
    if shut_down:
        pool.shutdown()
    return pool


@family("asyncio.events.AbstractEventLoop")
def reduce_loop(pickler: Any, loop: Any) -> Any:
    return (current_loop if loop.is_running() else new_loop), ()


def current_loop() -> Any:
    import asyncio

    return asyncio.get_event_loop()


def new_loop() -> Any:
    import asyncio

    return asyncio.new_event_loop()


@family("subprocess.Popen")
def reduce_process(pickler: Any, process: Any) -> Any:
    if process.returncode is None:
        raise Unkeepable("it was a running process")
    return reduce_instance(pickler, process)


@family("multiprocessing.sharedctypes.SynchronizedBase")
def reduce_shared(pickler: Any, shared: Any) -> Any:
    return make_shared, (shared.get_obj(),)


def make_shared(raw: Any) -> Any:
    from multiprocessing import sharedctypes

    return sharedctypes.synchronized(sharedctypes.copy(raw))


unkeepable(
    "a connection ends with its process",
    "_socket.socket",
    "_ssl._SSLSocket",
    "multiprocessing.connection._ConnectionBase",
    "zmq.sugar.socket.Socket",
    "http.client.HTTPConnection",
)
unkeepable(
    "it is shared with processes that are gone",
    "multiprocessing.queues.Queue",
    "multiprocessing.queues.SimpleQueue",
    "multiprocessing.pool.Pool",
    "multiprocessing.process.BaseProcess",
    "multiprocessing.managers.BaseManager",
    "multiprocessing.managers.BaseProxy",
    "multiprocessing.shared_memory.SharedMemory",
)
unkeepable("it ends with its process", "asyncio.futures.Future", "_asyncio.Future")
