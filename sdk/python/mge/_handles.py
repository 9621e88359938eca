# SPDX-License-Identifier: Apache-2.0
"""Handles: pointers to objects of the library, and the Python objects that own them.

A handle releases its object with the last reference to it. Whatever uses the object in a call keeps a reference until the end of
the call, so an owner may drop its own at any time, also in another thread.
"""
from __future__ import annotations

import ctypes as c
from typing import Any, TypeVar

from ._native import lib
from .errors import ClosedError

T = TypeVar("T", bound="Closable")


class Handle(c.c_void_p):
    _release: Any = None
    keeps: Any = None  # what must live as long as the object: an array whose memory it uses

    def __del__(self) -> None:
        if self.value:
            self._release(self.value)


class RuntimeHandle(Handle):
    _release = lib.mge_runtime_release


class SessionHandle(Handle):
    _release = lib.mge_session_release


class TensorHandle(Handle):
    """Any value of a model: a tensor, sequence, optional or map."""

    _release = lib.mge_tensor_release


class RunControlHandle(Handle):
    _release = lib.mge_run_control_release


class FenceHandle(Handle):
    _release = lib.mge_run_fence_release


class ProfileHandle(Handle):
    _release = lib.mge_profile_release


class InboxHandle(Handle):
    _release = lib.mge_inbox_release


class EagerHandle(Handle):
    _release = lib.mge_eager_release


class TapeHandle(Handle):
    _release = lib.mge_eager_tape_release


class GeneratorHandle(Handle):
    _release = lib.mge_generator_release


class BatchHandle(Handle):
    _release = lib.mge_batch_release


class Owner:
    """An object that owns a handle. Its functions get the handle from _open(), and keep it until they return."""

    _handle: Handle | None = None  # also of an object whose constructor has failed

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise ClosedError(f"the {type(self).__name__.lower()} is closed")
        return handle


class Closable(Owner):
    """An owner whose close() releases the object before the garbage collector does. It may be used in a `with` statement."""

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Releases the object. May be called again. Every other function then raises ClosedError."""
        self._handle = None

    def __enter__(self: T) -> T:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pointers(handles: list[Any]) -> Any:
    """Returns an array of the handles' pointers. The caller keeps the handles while it is used."""
    return (c.c_void_p * max(1, len(handles)))(*[None if h is None else h.value for h in handles])
