# SPDX-License-Identifier: Apache-2.0
"""Errors of libmge. The class tells the kind of error, the attributes its parts."""
from __future__ import annotations

from ._native import lib, text


class Error(RuntimeError):
    """An error of MGE. `id` is its number (502 for E0502; 0: none), `code` one of the codes of mge/types.h, `exit_code` that of
    the mge command for it."""

    code, exit_code = 2, 1

    def __init__(self, message: str, *, id: int = 0, code: int | None = None, exit_code: int | None = None, title: str = "",
                 what: str = "", where: str = "", fix: str = "") -> None:
        super().__init__(message)
        self.id, self.title, self.what, self.where, self.fix = id, title, what, where, fix
        if code is not None:
            self.code = code
        if exit_code is not None:
            self.exit_code = exit_code

    def to_dict(self) -> dict[str, str | int]:
        return {"id": f"E{self.id:04}" if self.id else "", "code": self.code, "exit_code": self.exit_code, "title": self.title,
                "what": self.what, "where": self.where, "fix": self.fix}


class UsageError(Error, ValueError):
    """A wrong argument or setting."""

    code, exit_code = 3, 2


class ClosedError(UsageError):
    """The use of an object that was closed."""


class InvalidError(Error, ValueError):
    """A model or an input that is damaged, contradicts itself or does not fit."""

    code, exit_code = 3, 3


class UnsupportedError(Error, NotImplementedError):
    """An operator, type or feature that this version lacks."""

    code, exit_code = 12, 4


class DeviceError(Error):
    """A device or backend that does not exist, cannot be used or is lost."""

    code, exit_code = 14, 5


class OutOfMemoryError(Error, MemoryError):
    """Too little memory, or more than the limit allows."""

    code, exit_code = 8, 6


class FileError(Error, OSError):
    """A file that cannot be read or written. It has no `errno`, because the message says why."""

    code, exit_code = 5, 7


class TimeLimitError(Error, TimeoutError):
    """A run that exceeded its time limit."""

    code, exit_code = 4, 124


class CancelledError(Error):
    """A run that was cancelled."""

    code, exit_code = 1, 130


_CLASSES: dict[int, type[Error]] = {kind.exit_code: kind for kind in (
    UsageError, InvalidError, UnsupportedError, DeviceError, OutOfMemoryError, FileError, TimeLimitError, CancelledError)}


def raise_for(status: int | None) -> None:
    """Raises the error of a status, and releases it."""
    if not status:
        return
    try:
        code, exit_code = lib.mge_status_code(status), lib.mge_status_exit_code(status)
        raise _CLASSES.get(exit_code, Error)(
            text(lib.mge_status_text(status)), id=lib.mge_status_id(status), code=code, exit_code=exit_code,
            title=text(lib.mge_status_title(status)), what=text(lib.mge_status_what(status)),
            where=text(lib.mge_status_where(status)), fix=text(lib.mge_status_fix(status)))
    finally:
        lib.mge_status_release(status)
