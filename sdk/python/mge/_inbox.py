# SPDX-License-Identifier: Apache-2.0
"""Inboxes: ended runs, messages and progress wait in the library until a thread of Python takes them.

No thread of the library enters the interpreter. It would wait for the interpreter's lock, which a thread that forks holds while it
waits for the runs in progress; and Python ends every thread that enters it after its own end.
"""
from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes as c
import itertools
import os
import select
import threading
import time
import traceback
import weakref
from typing import Any, Callable

from ._handles import Handle, InboxHandle, TensorHandle
from ._native import RunOptions, lib, take_text
from .errors import Error, raise_for

Finish = Callable[["Error | None", "list[TensorHandle]"], None]
_EXIT_SECONDS = 10.0  # patience with cancelled runs when the program ends


def _new_inbox() -> InboxHandle:
    handle = InboxHandle()
    raise_for(lib.mge_inbox_create(c.byref(handle)))
    return handle


class LoopInbox:
    """The runs of one event loop. It keeps what a run uses until the run has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._handle = _new_inbox()
        self._tags = itertools.count()
        self._pending: dict[int, tuple[int, Finish, Handle, Any]] = {}
        self.process = os.getpid()
        loop.add_reader(lib.mge_inbox_descriptor(self._handle), self.drain)

    def start(self, session: Handle, inputs: Any, count: int, results: Any, outputs: int, control: Handle, keeps: Any,
              finish: Finish) -> None:
        """Starts a run. Calls finish(error, outputs) in the event loop when it has ended."""
        tag = next(self._tags)
        self._pending[tag] = outputs, finish, control, (session, keeps)
        try:
            options = RunOptions(control=control, inbox=self._handle, tag=tag)
            raise_for(lib.mge_session_run(session, inputs, count, results, outputs, options, None))
        except BaseException:
            del self._pending[tag]
            raise

    def drain(self) -> None:
        """Takes the runs that have ended."""
        while (taken := self._take()) is not None:
            tag, error, values = taken
            self._pending.pop(tag)[1](error, values)

    def _take(self) -> "tuple[int, Error | None, list[TensorHandle]] | None":
        capacity = max((p[0] for p in self._pending.values()), default=0)
        tag, count, status = c.c_uint64(), c.c_size_t(), c.c_void_p()
        outputs = (c.c_void_p * max(1, capacity))()
        if not lib.mge_inbox_take_run(self._handle, c.byref(tag), c.byref(status), outputs, capacity, c.byref(count)):
            return None
        values = [TensorHandle(outputs[i]) for i in range(count.value)]
        try:
            raise_for(status.value)
        except Error as error:
            return tag.value, error, values
        return tag.value, None, values

    def end(self) -> None:
        """Cancels all runs and waits for them, but not for ever."""
        for _, _, control, _ in self._pending.values():
            lib.mge_run_control_cancel(control)
        limit = time.monotonic() + _EXIT_SECONDS
        while self._pending and time.monotonic() < limit:
            if (taken := self._take()) is None:
                time.sleep(0.001)
            else:
                self._pending.pop(taken[0])
        if self._pending:
            c.pythonapi.Py_IncRef(c.py_object(self._pending))  # what they use must outlive the interpreter


_inboxes: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopInbox]" = weakref.WeakKeyDictionary()


def inbox_of(loop: asyncio.AbstractEventLoop) -> LoopInbox:
    inbox = _inboxes.get(loop)
    if inbox is None or inbox.process != os.getpid():
        inbox = _inboxes[loop] = LoopInbox(loop)
    return inbox


@atexit.register
def _end_runs() -> None:
    for inbox in list(_inboxes.values()):
        if inbox.process == os.getpid():
            inbox.end()


class Watched:
    """An inbox whose contents are for a function of the program. A thread delivers them as they come, and so does a call that made
    some, before it returns."""

    def __init__(self, name: str) -> None:
        self.handle = _new_inbox()
        self._lock = threading.RLock()
        ended, self._end = os.pipe()
        self._finalizer = weakref.finalize(self, os.close, self._end)
        watched = lib.mge_inbox_descriptor(self.handle)
        threading.Thread(target=_watch, args=(weakref.ref(self), watched, ended), name=name, daemon=True).start()
        _all_watched.add(self)

    def _deliver_next(self) -> bool:
        """Takes one thing, and calls the program's function with it. Returns whether there was one."""
        raise NotImplementedError

    def deliver(self) -> None:
        with self._lock:
            while True:
                try:
                    if not self._deliver_next():
                        break
                except Exception:  # as of any callback: the caller is not to blame
                    traceback.print_exc()

    def after_fork(self) -> None:
        self._lock = threading.RLock()  # a thread of the parent may hold it


class Messages(Watched):
    """The messages of a runtime."""

    def __init__(self, log: Callable[[int, str], None]) -> None:
        self._log = log
        super().__init__("mge.log")

    def _deliver_next(self) -> bool:
        level, message = c.c_int32(), c.c_void_p()
        if not lib.mge_inbox_take_message(self.handle, c.byref(level), c.byref(message)):
            return False
        self._log(level.value, take_text(message))
        return True


class Progress(Watched):
    """How far the load of a session is, and the planning of its runs."""

    def __init__(self, progress: Callable[[str, int, int], None]) -> None:
        self._progress = progress
        super().__init__("mge.progress")

    def _deliver_next(self) -> bool:
        stage, done, total = c.c_void_p(), c.c_uint64(), c.c_uint64()
        if not lib.mge_inbox_take_progress(self.handle, c.byref(stage), c.byref(done), c.byref(total)):
            return False
        self._progress(take_text(stage), done.value, total.value)
        return True


def _watch(inbox: "weakref.ref[Watched]", watched: int, ended: int) -> None:
    poll = select.poll()
    for descriptor in (watched, ended):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        alive = inbox()
        if ended in ready or alive is None:
            break
        with contextlib.suppress(SystemExit):  # ends a program only from its main thread
            alive.deliver()
        del alive
    os.close(ended)


_all_watched: "weakref.WeakSet[Watched]" = weakref.WeakSet()


@atexit.register
def _deliver_all() -> None:
    for inbox in list(_all_watched):
        inbox.deliver()


def _after_fork() -> None:
    for inbox in list(_all_watched):
        inbox.after_fork()


os.register_at_fork(after_in_child=_after_fork)
