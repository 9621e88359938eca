# SPDX-License-Identifier: Apache-2.0
"""The exceptions of ONNX Runtime, by their names. Each has the error of MGE as its cause."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

from .. import errors


class Fail(Exception):
    """Any other failure; also a run that RunOptions.terminate has ended."""


class InvalidArgument(Exception):
    """An input, output or option that does not fit the model."""


class NoSuchFile(Exception):
    """A model that does not exist or cannot be read."""


class NoModel(Exception):
    """A session without a model."""


class EngineError(Exception):
    """A device that failed."""


class RuntimeException(Exception):
    """A run that failed, such as by too little memory."""


class InvalidProtobuf(Exception):
    """A file that is no ONNX model."""


class ModelLoaded(Exception):
    """A session that already has a model."""


class NotImplemented(Exception):  # noqa: A001  (ONNX Runtime's name)
    """An operator, type or option that MGE lacks."""


class InvalidGraph(Exception):
    """A model that contradicts itself."""


class EPFail(Exception):
    """A provider whose device cannot be used."""


_NO_MODEL = 301  # E0301: this is not an ONNX model
_OF_LOADING: tuple[tuple[type[errors.Error], type[Exception]], ...] = (
    (errors.FileError, NoSuchFile), (errors.UnsupportedError, NotImplemented), (errors.DeviceError, EPFail),
    (errors.OutOfMemoryError, RuntimeException), (errors.InvalidError, InvalidGraph), (errors.UsageError, InvalidArgument))
_OF_RUNNING: tuple[tuple[type[errors.Error], type[Exception]], ...] = (
    (errors.UsageError, InvalidArgument), (errors.InvalidError, InvalidArgument), (errors.UnsupportedError, NotImplemented),
    (errors.DeviceError, EngineError), (errors.OutOfMemoryError, RuntimeException))


@contextlib.contextmanager
def translated(loading: bool = False) -> Iterator[Any]:
    """Raises an error of MGE as the exception that ONNX Runtime raises."""
    try:
        yield
    except errors.Error as error:
        if loading and error.id == _NO_MODEL:
            raise InvalidProtobuf(str(error)) from error
        for kind, theirs in _OF_LOADING if loading else _OF_RUNNING:
            if isinstance(error, kind):
                raise theirs(str(error)) from error
        raise Fail(str(error)) from error
