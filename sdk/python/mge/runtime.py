# SPDX-License-Identifier: Apache-2.0
"""Runtimes, which hold settings and backends, and devices."""
from __future__ import annotations

import ctypes as c
import dataclasses
import json
import os
import threading
from typing import Any, Callable, Mapping, Sequence

from ._handles import Closable, Handle, RuntimeHandle
from ._inbox import Messages
from ._native import DeviceFacts, RuntimeOptions, lib, take_text, text, texts
from .errors import raise_for

Settings = Mapping[str, Any]


def setting_texts(settings: Settings | None) -> list[str]:
    """Returns settings as NAME=VALUE. Booleans are written as 1 and 0."""
    return [f"{name}={int(value) if isinstance(value, bool) else value}" for name, value in (settings or {}).items()]


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of the machine. Sizes of memory are 0 if they are unknown."""

    name: str  # its own name, such as "cuda0"
    gpu_name: str  # "gpu0"; "" if it is no GPU
    device_class: str
    backend: str
    description: str
    total_bytes: int
    free_bytes: int  # at this moment
    limit_bytes: int | None  # the setting memory.limit
    compute_queues: int
    usable: bool  # otherwise a session on it fails with the reason


_NO_LIMIT = 2**64 - 1


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
        """Sets the device of sessions and threads that name none."""
        raise_for(lib.mge_runtime_set_default_device(self._open(), device.encode()))

    def set_execution_strategy(self, strategy: str) -> None:
        """Sets how kernels are chosen: "heuristic", "profile" or "reproducible"."""
        raise_for(lib.mge_runtime_set_execution_strategy(self._open(), strategy.encode()))

    def report(self, schema: str) -> Any:
        """Returns facts: "mge.devices/1", "mge.plugins/1", "mge.env/1", "mge.operators/1" or "mge.launch/1"."""
        out = c.c_void_p()
        raise_for(lib.mge_runtime_report(self._open(), schema.encode(), c.byref(out)))
        return json.loads(take_text(out))

    def devices(self) -> list[Device]:
        """Returns the devices. Starts all backends, and waits for them."""
        handle = self._open()
        return [_device(handle, i) for i in range(lib.mge_runtime_device_count(handle))]

    def model_report(self, path: str | os.PathLike[str], schema: str = "mge.model/1") -> Any:
        """Returns facts about a model file, also about one that cannot be loaded: "mge.model/1" or "mge.nodes/1"."""
        out = c.c_void_p()
        raise_for(lib.mge_model_report(self._open(), os.fspath(path).encode(), schema.encode(), c.byref(out)))
        return json.loads(take_text(out))

    def collective_id(self, device: str) -> str:
        """Makes the id of a group of ranks: sessions, also of several processes, whose models exchange tensors. `device` is that of
        a rank. Each session has the settings collective.id, collective.ranks and collective.rank."""
        out = c.c_void_p()
        raise_for(lib.mge_collective_id(self._open(), device.encode(), c.byref(out)))
        return take_text(out)


def _device(runtime: Handle, index: int) -> Device:
    facts = DeviceFacts()
    raise_for(lib.mge_runtime_device(runtime, index, c.byref(facts)))
    values = {f.name: getattr(facts, f.name) for f in dataclasses.fields(Device)}
    limit = None if facts.limit_bytes == _NO_LIMIT else facts.limit_bytes
    return Device(**{name: text(v) if isinstance(v, bytes) else v for name, v in values.items()} |
                  {"limit_bytes": limit, "usable": bool(facts.usable)})


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


def devices() -> list[Device]:
    """Returns the devices of default_runtime()."""
    return default_runtime().devices()


def set_default_device(device: str) -> None:
    """Sets the device of sessions and threads that name none."""
    default_runtime().set_default_device(device)


def set_execution_strategy(strategy: str) -> None:
    """Sets how kernels are chosen: "heuristic", "profile" or "reproducible"."""
    default_runtime().set_execution_strategy(strategy)
