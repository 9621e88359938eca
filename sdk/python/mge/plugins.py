# SPDX-License-Identifier: Apache-2.0
"""Backends as files. These functions do not open a backend. `directories` are absolute, and searched first.

    mge.plugins.verify()["files"]
"""
from __future__ import annotations

import ctypes as c
import json
import os
from typing import Any, Sequence

from ._native import RuntimeOptions, lib, take_text, texts
from .errors import raise_for


def _options(directories: Sequence[str]) -> RuntimeOptions:
    options = RuntimeOptions()
    options.plugin_directories, options.plugin_directory_count = texts(directories)
    return options


def verify(file: str | os.PathLike[str] | None = None, *, directories: Sequence[str] = ()) -> Any:
    """Returns the report "mge.plugins/1", with the verdict "accepted" for files that a runtime would open. With `file`, checks only
    that."""
    out = c.c_void_p()
    given = None if file is None else os.fspath(file).encode()
    raise_for(lib.mge_plugins_verify(c.byref(_options(directories)), given, c.byref(out)))
    return json.loads(take_text(out))


def install(file: str | os.PathLike[str], *, directories: Sequence[str] = ()) -> str:
    """Copies an accepted file into the first directory that can be written, and returns its path."""
    out = c.c_void_p()
    raise_for(lib.mge_plugins_install(c.byref(_options(directories)), os.fspath(file).encode(), c.byref(out)))
    return take_text(out)


def remove(name: str, *, directories: Sequence[str] = ()) -> str:
    """Removes the first file of the backend with this name, and returns its path."""
    out = c.c_void_p()
    raise_for(lib.mge_plugins_remove(c.byref(_options(directories)), name.encode(), c.byref(out)))
    return take_text(out)


def quarantine(file: str | os.PathLike[str], reason: str, *, directories: Sequence[str] = ()) -> None:
    """Prevents the runtimes of this user from opening this build of a backend. `reason` is a sentence for the verdict."""
    raise_for(lib.mge_plugins_quarantine(c.byref(_options(directories)), os.fspath(file).encode(), reason.encode()))


def end_quarantine(name: str, *, directories: Sequence[str] = ()) -> None:
    """Ends the quarantine of every build of the backend with this name."""
    raise_for(lib.mge_plugins_end_quarantine(c.byref(_options(directories)), name.encode()))
