# SPDX-License-Identifier: Apache-2.0
"""The compiled form of Session.run(), where there is one. It does the common case; the rest of the package does all cases."""
from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import pathlib
import sys
from typing import Any, Sequence

import numpy as np

from ._handles import Handle, TensorHandle
from ._native import lib
from .errors import raise_for
from .tensor import _NUMBERS, array_type
from .values import MapSequence, Value, to_value

_NAME = "mge._compiled"
_FILE = "_compiled.abi3.so"


def _find() -> Any:
    """Returns the module: beside this file, or in the build tree of the library. None in sys.modules forbids it."""
    if sys.modules.get(_NAME, sys) is None:
        return None
    try:
        return importlib.import_module(_NAME)
    except ImportError:
        path = pathlib.Path(lib._name).parent / "python" / _FILE
    if not path.is_file():
        return None
    try:
        loader = importlib.machinery.ExtensionFileLoader(_NAME, str(path))
        spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        loader.exec_module(module)
        return module
    except ImportError:
        return None


compiled = _find()


def _take(handle: int) -> Any:
    return to_value(TensorHandle(handle))


def new_call(session: Handle, inputs: Sequence[Value], outputs: Sequence[Value]) -> Any:
    """Returns call(inputs, named), which does Session.run(inputs, **named), or returns NotImplemented if the inputs are not plain
    arrays of the declared types; None if the module or the model does not allow that."""
    if compiled is None or max(len(inputs), len(outputs)) > compiled.MAX_VALUES:
        return None
    numbers = {value.dtype: _NUMBERS.get(np.dtype(value.dtype), 0) if value.dtype in _PLAIN else 0 for value in inputs}
    if any(value.kind != "tensor" or not numbers[value.dtype] for value in inputs):
        return None
    return compiled.Call(lib._handle, session.value, session, tuple((v.name, numbers[v.dtype]) for v in inputs),
                         tuple(v.name for v in outputs), np.ndarray, _TYPES_BY_NUMBER, _take, MapSequence._of, raise_for)


_PLAIN = frozenset(str(kind) for kind in _NUMBERS)
_TYPES_BY_NUMBER = tuple(array_type(n) if n in _NUMBERS.values() else None for n in range(17))
