# SPDX-License-Identifier: Apache-2.0
"""Runtimes, which hold settings and backends, and contexts, which say where new work goes."""
from __future__ import annotations

import ctypes as c
import json
import os
import threading
from typing import Any, Callable, Mapping, Sequence

from ._handles import Closable, RuntimeHandle
from ._inbox import Messages
from ._native import Context as NativeContext
from ._native import RuntimeOptions, lib, take_text, text, texts
from .errors import raise_for

Settings = Mapping[str, Any]


def setting_texts(settings: Settings | None) -> list[str]:
    """Returns settings as NAME=VALUE. Booleans are written as 1 and 0."""
    return [f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in (settings or {}).items()]


class Runtime(Closable):
    """Settings and backends. Most programs use that of default_runtime(). Sessions and tensors keep what they need of a closed
    one."""

    def __init__(self, settings: Settings | None = None, *, config_files: Sequence[str] = (),
                 plugin_directories: Sequence[str] = (), log: Callable[[int, str], None] | None = None) -> None:
        """`settings` by key or variable, such as {"select.strategy": "profile"}. `log` receives messages and their level,
        0 (debug) to 3 (error), in a thread of Python; without it they go to stderr."""
        handle = RuntimeHandle()
        options = RuntimeOptions()
        options.settings, options.setting_count = texts(setting_texts(settings))
        options.config_files, options.config_file_count = texts(config_files)
        options.plugin_directories, options.plugin_directory_count = texts(plugin_directories)
        self._messages = None if log is None else Messages(log)
        if self._messages is not None:
            options.log_inbox = self._messages.handle
        try:
            raise_for(lib.mge_runtime_create(c.byref(options), c.byref(handle)))
        finally:
            self.deliver()
        self._handle = handle

    @property
    def quiet(self) -> bool:
        """Whether there is no `log`."""
        return self._messages is None

    def deliver(self) -> None:
        """Calls `log` with the messages that have come so far."""
        if self._messages is not None:
            self._messages.deliver()

    def set(self, name: str, value: Any) -> None:
        """Sets a dynamic setting, for sessions created later."""
        key, _, content = setting_texts({name: value})[0].partition("=")
        raise_for(lib.mge_runtime_set(self._open(), key.encode(), content.encode()))

    def get(self, name: str) -> str:
        """Returns the value of a setting. Booleans are "1" and "0", sizes are in bytes."""
        out = c.c_void_p()
        raise_for(lib.mge_runtime_get(self._open(), name.encode(), c.byref(out)))
        return take_text(out)

    def set_default_device(self, device: str) -> None:
        raise_for(lib.mge_runtime_set_default_device(self._open(), device.encode()))

    def set_execution_strategy(self, strategy: str) -> None:
        """Sets how kernels are chosen: "heuristic", "profile" or "reproducible"."""
        raise_for(lib.mge_runtime_set_execution_strategy(self._open(), strategy.encode()))

    def report(self, schema: str) -> Any:
        """Returns facts: "mge.devices/1", "mge.plugins/1", "mge.env/1" or "mge.operators/1"."""
        out = c.c_void_p()
        raise_for(lib.mge_runtime_report(self._open(), schema.encode(), c.byref(out)))
        return json.loads(take_text(out))

    def devices(self) -> list[dict[str, Any]]:
        """Returns the devices, the best one first."""
        return list(self.report("mge.devices/1")["devices"])


_lock = threading.Lock()
_default: Runtime | None = None


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent may hold it


os.register_at_fork(after_in_child=_after_fork)


def default_runtime() -> Runtime:
    """Returns the runtime of this process, created with the settings of the environment at the first call and after its close()."""
    global _default
    with _lock:
        if _default is None or _default.closed:
            _default = Runtime()
        return _default


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
    return Context("cpu_pinned", device_id)


def current_context() -> Context:
    """Returns the context of this thread: of the innermost `with` statement, else the default device if it is set
    (MGE_DEFAULT_DEVICE), else cpu(0). In the last case, sessions that name no device still take the best one, xpux."""
    native = NativeContext()
    raise_for(lib.mge_context_current(default_runtime()._open(), c.byref(native)))
    return Context._of(native)


def num_gpus() -> int:
    return int(lib.mge_num_gpus(default_runtime()._open()))


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Returns the free and the total bytes of a GPU."""
    free, total = c.c_uint64(), c.c_uint64()
    raise_for(lib.mge_gpu_memory_info(default_runtime()._open(), device_id, c.byref(free), c.byref(total)))
    return free.value, total.value


def devices() -> list[dict[str, Any]]:
    return default_runtime().devices()


def set_default_device(device: str) -> None:
    default_runtime().set_default_device(device)


def set_execution_strategy(strategy: str) -> None:
    default_runtime().set_execution_strategy(strategy)
