# SPDX-License-Identifier: Apache-2.0
"""Contexts, which say where new work of a thread goes. The names are those of mxnet.context.

    with mge.gpu(1):
        session = mge.Session("model.onnx")
"""
from __future__ import annotations

import ctypes as c
import threading

from ._native import Context as NativeContext
from ._native import lib, text
from .errors import raise_for
from .runtime import default_runtime


class _Scopes(threading.local):
    """The contexts of the open `with` statements of this thread, the innermost one last."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []


_scopes = _Scopes()


def scope() -> Context | None:
    """Returns the context of the innermost `with` statement of this thread."""
    return _scopes.contexts[-1] if _scopes.contexts else None


class Context:
    """A device type and an id, such as gpu(1), or a copy of a context. In a `with` statement, tensors and sessions of this thread
    that name no device use it."""

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            given = device_type
            device_type, device_id = given.device_type, given.device_id
        self._native = NativeContext()
        raise_for(lib.mge_context_create(device_type.encode(), device_id, c.byref(self._native)))

    @classmethod
    def _of(cls, native: NativeContext) -> "Context":
        context = cls.__new__(cls)
        context._native = native
        return context

    @classmethod
    def parse(cls, name: str) -> "Context":
        """Makes the context of "gpu(1)", or of any other name of one device, such as "cuda0"."""
        native = NativeContext()
        raise_for(lib.mge_context_parse(name.encode(), c.byref(native)))
        return cls._of(native)

    @property
    def device_type(self) -> str:
        return text(self._native.device_type)

    @property
    def device_id(self) -> int:
        return int(self._native.device_id)

    def empty_cache(self) -> None:
        """Returns unused memory of the device to its driver."""
        raise_for(lib.mge_device_empty_cache(default_runtime()._open(), repr(self).encode()))

    def __enter__(self) -> "Context":
        raise_for(lib.mge_device_push(repr(self).encode()))
        _scopes.contexts.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        raise_for(lib.mge_device_pop())
        _scopes.contexts.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Context) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"


def cpu(device_id: int = 0) -> Context:
    return Context("cpu", device_id)


def gpu(device_id: int = 0) -> Context:
    return Context("gpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Host memory from which copies to the GPU are fast."""
    return Context("cpu_pinned", device_id)


def current_context() -> Context:
    """Returns the context of this thread: of the innermost `with` statement, else the default device if it is set
    (MGE_DEFAULT_DEVICE), else cpu(0). In the last case, sessions that name no device still take the best one, xpux."""
    native = NativeContext()
    raise_for(lib.mge_context_current(default_runtime()._open(), c.byref(native)))
    return Context._of(native)


def num_gpus() -> int:
    """Returns the number of usable GPUs: 0 without a driver."""
    return int(lib.mge_num_gpus(default_runtime()._open()))


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Returns the free and the total bytes of a GPU."""
    free, total = c.c_uint64(), c.c_uint64()
    raise_for(lib.mge_gpu_memory_info(default_runtime()._open(), device_id, c.byref(free), c.byref(total)))
    return free.value, total.value
