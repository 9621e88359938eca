# SPDX-License-Identifier: Apache-2.0
"""Errors of libmge. The class tells the kind of error, the attributes its parts."""
from __future__ import annotations

from ._native import lib, text


class Error(RuntimeError):
    """An error of MGE. `id` is its number (502 for E0502; 0: none), `kind` the exit code of the mge command for it."""

    def __init__(self, message: str, *, id: int = 0, kind: int = 1, title: str = "", what: str = "", where: str = "",
                 fix: str = "") -> None:
        super().__init__(message)
        self.id, self.kind, self.title, self.what, self.where, self.fix = id, kind, title, what, where, fix

    def to_dict(self) -> dict[str, str | int]:
        return {"id": f"E{self.id:04}" if self.id else "", "kind": self.kind, "title": self.title, "what": self.what,
                "where": self.where, "fix": self.fix}


class UsageError(Error, ValueError):
    """A wrong argument or setting."""


class ClosedError(UsageError):
    """The use of an object that was closed."""


class InvalidError(Error, ValueError):
    """A model or an input that is damaged, contradicts itself or does not fit."""


class UnsupportedError(Error, NotImplementedError):
    """An operator, type or feature that this version lacks."""


class DeviceError(Error):
    """A device or backend that does not exist, cannot be used or is lost."""


class OutOfMemoryError(Error, MemoryError):
    """Too little memory, or more than the limit allows."""


class FileError(Error):
    """A file that cannot be read or written."""


class TimeLimitError(Error, TimeoutError):
    """A run that exceeded its time limit."""


class CancelledError(Error):
    """A run that was cancelled."""


_CLASSES: dict[int, type[Error]] = {2: UsageError, 3: InvalidError, 4: UnsupportedError, 5: DeviceError,
                                    6: OutOfMemoryError, 7: FileError, 124: TimeLimitError, 130: CancelledError}


def raise_for(status: int | None) -> None:
    """Raises the error of a status, and releases it."""
    if not status:
        return
    try:
        kind, number = lib.mge_status_kind(status), lib.mge_status_id(status)
        parts = {part: text(getattr(lib, "mge_status_" + part)(status)) for part in ("title", "what", "where", "fix")}
        raise _CLASSES.get(kind, Error)(text(lib.mge_status_text(status)), id=number, kind=kind, **parts)
    finally:
        lib.mge_status_release(status)
