# SPDX-License-Identifier: Apache-2.0
"""Values of models as Python's own types: arrays, lists for sequences, dicts for maps, None for an empty optional."""
from __future__ import annotations

import collections.abc
import ctypes as c
import dataclasses
import functools
from typing import Any, Callable, Iterator, Mapping, Sequence, overload

import numpy as np

from ._handles import Handle, TensorHandle, pointers
from ._native import lib
from .errors import InvalidError, UsageError, raise_for
from .tensor import Tensor, array_of, declared_type, shape_of, tensor_of

KINDS = ("tensor", "sequence", "optional", "map")
_TENSOR, _SEQUENCE, _OPTIONAL, _MAP = range(4)


@dataclasses.dataclass(frozen=True)
class Value:
    """An input or output of a model. Unknown dimensions are None, or their names; so is the shape if the rank is unknown. `parts`
    is the kind of the parts of a sequence or an optional."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int | str | None, ...] | None
    parts: str = "tensor"

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{'' if self.shape is None else list(self.shape)}"


@functools.lru_cache(64)
def _maker_of_dicts(columns: int) -> Callable[[list[Any], list[Any]], list[dict[Any, Any]]]:
    """Returns a function of keys and rows, with as many elements as `columns`, that returns a dict for each row."""
    if not 1 <= columns <= 64:
        return lambda keys, rows: [dict(zip(keys, row)) for row in rows]
    # As namedtuple does, writes the function: a dict of a fixed form is made seven times as fast as by dict(zip(...)).
    keys, items = (", ".join(f"{letter}{i}" for i in range(columns)) for letter in "kv")
    pairs = ", ".join(f"k{i}: v{i}" for i in range(columns))
    namespace: dict[str, Any] = {}
    exec(f"def make(keys, rows):\n  {keys}, = keys\n  return [{{{pairs}}} for {items}, in rows]", namespace)
    return namespace["make"]  # type: ignore[no-any-return]


class MapSequence(collections.abc.Sequence[dict[Any, Any]]):
    """A sequence of maps with the same keys, such as a classifier's probabilities. It behaves like a list of dicts, which it makes
    when they are read. The arrays `keys`, of m keys, and `values`, a row of m for each map, hold all of it."""

    __slots__ = ("_names", "values")

    def __init__(self, keys: Any, values: Any) -> None:
        self._names, self.values = np.asarray(keys).tolist(), np.asarray(values)
        if np.ndim(keys) != 1 or self.values.ndim != 2 or self.values.shape[1] != len(self._names):
            raise UsageError(f"keys{list(np.shape(keys))} and values{list(self.values.shape)} do not fit: the values need a "
                             "column for each key")

    @classmethod
    def _of(cls, names: list[Any], values: Any) -> "MapSequence":
        maps = cls.__new__(cls)
        maps._names, maps.values = names, values
        return maps

    @property
    def keys(self) -> Any:
        return np.array(self._names, object if isinstance(self._names[0], str) else np.int64) if self._names else np.empty(0, object)

    def _dicts(self, rows: Any) -> list[dict[Any, Any]]:
        return _maker_of_dicts(len(self._names))(self._names, rows.tolist())

    def column(self, key: Any) -> Any:
        """Returns the values of one key, as an array with an element for each map."""
        if key not in self._names:
            raise KeyError(key)
        return self.values[:, self._names.index(key)]

    def tolist(self) -> list[dict[Any, Any]]:
        return self._dicts(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> dict[Any, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> "MapSequence": ...

    def __getitem__(self, index: int | slice) -> "dict[Any, Any] | MapSequence":
        if isinstance(index, slice):
            return MapSequence._of(self._names, self.values[index])
        return dict(zip(self._names, self.values[index].tolist()))

    def __iter__(self) -> Iterator[dict[Any, Any]]:
        for begin in range(0, len(self.values), 1024):
            yield from self._dicts(self.values[begin : begin + 1024])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple, MapSequence)) or len(other) != len(self):
            return NotImplemented if not isinstance(other, (list, tuple, MapSequence)) else False
        return all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<mge.MapSequence of {len(self)} maps with the keys {self._names}>"


# ---- outputs


def part_of(handle: Handle, index: int) -> TensorHandle:
    part = TensorHandle()
    raise_for(lib.mge_tensor_part(handle, index, c.byref(part)))
    return part


def to_value(handle: Handle, on_device: bool = False) -> Any:
    """Returns an output as an array (or a Tensor, if it shall stay on its device), a list, a MapSequence, a dict, or None for an
    empty optional."""
    kind = lib.mge_tensor_kind(handle)
    if kind == _TENSOR:
        return Tensor._of(handle) if on_device else array_of(handle)
    count = lib.mge_tensor_part_count(handle)
    if kind == _SEQUENCE and count and lib.mge_tensor_kind(part_of(handle, 0)) == _MAP:
        keys, values = TensorHandle(), TensorHandle()
        status = lib.mge_value_table(handle, c.byref(keys), c.byref(values))
        if not status:
            return MapSequence._of(array_of(keys).tolist(), array_of(values))
        lib.mge_status_release(status)  # keys differ: a dict for each map
    parts = [to_value(part_of(handle, i), on_device and kind != _MAP) for i in range(count)]
    if kind == _SEQUENCE:
        return parts
    if kind == _OPTIONAL:
        return parts[0] if parts else None
    return dict(zip(parts[0].tolist(), parts[1].tolist()))


# ---- memory for outputs


def memory_of(name: str, data: Any, declared: Value) -> Handle:
    """Returns a tensor over the memory to which a run writes an output: that of an array, or an mge.Tensor."""
    if isinstance(data, Tensor):
        return data._open()
    if not isinstance(data, np.ndarray):
        raise UsageError(f"out['{name}'] is a {type(data).__name__}; give a NumPy array or an mge.Tensor")
    if declared.kind != "tensor" or declared.dtype == "string":
        what = "has strings" if declared.kind == "tensor" else f"is a {declared.kind}"
        raise UsageError(f"out['{name}']: the output {what}, and only tensors of numbers can be written to an array; leave it out")
    wanted = declared_type(declared.dtype) if declared.dtype else data.dtype
    if data.dtype != wanted:
        raise InvalidError(f"out['{name}'] has elements of type {data.dtype}, and the output has {declared.dtype}; "
                           f"give an array of type {wanted}")
    if not data.flags.writeable:
        raise InvalidError(f"out['{name}'] is read-only; give an array that may be written")
    if not (data.flags.c_contiguous and data.flags.aligned):
        raise InvalidError(f"out['{name}'] is not C-contiguous and aligned, so that results cannot be written to it without a copy; "
                           "give an array as np.empty() makes it")
    return tensor_of(data, 16 if declared.dtype == "bfloat16" else None)


def written(data: Any, handle: Handle) -> Any:
    """Returns what a run returns for memory that was given to it: the same object, unless an asynchronous run has replaced the
    memory of a tensor."""
    if not isinstance(data, Tensor):
        return data
    same = data.shape == shape_of(handle) and data.address == (lib.mge_tensor_address(handle) or 0)
    return data if same else Tensor._of(handle)


# ---- inputs


def _create(kind: int, parts: Sequence[Handle]) -> TensorHandle:
    out = TensorHandle()
    raise_for(lib.mge_value_create(kind, pointers(list(parts)), len(parts), c.byref(out)))
    out.keeps = list(parts)  # the arrays whose memory they use
    return out


def _tensor(data: Any, declared: Value | None) -> Handle:
    if isinstance(data, Tensor):
        return data._open()
    if isinstance(data, (int, float, bool, list, tuple)) and declared is not None and declared.dtype not in ("string", ""):
        data = np.asarray(data, declared_type(declared.dtype))
    return tensor_of(data)


def _map(data: Any, declared: Value) -> TensorHandle:
    if not isinstance(data, collections.abc.Mapping):
        raise InvalidError(f"input '{declared.name}' takes maps, and {type(data).__name__} is none; give a dict")
    keys = list(data)
    text = any(isinstance(key, str) for key in keys)
    if not all(isinstance(key, str if text else (int, np.integer)) for key in keys):
        raise InvalidError(f"input '{declared.name}': the keys of a map are all int or all str")
    values = list(data.values())
    named = np.array(values, object) if declared.dtype == "string" else np.asarray(values, declared.dtype or None)
    return _create(_MAP, [tensor_of(np.array(keys, object if text else np.int64)), tensor_of(named)])


def _sequence(data: Any, declared: Value, parts: str) -> TensorHandle:
    if not isinstance(data, (list, tuple, MapSequence)):
        raise InvalidError(f"input '{declared.name}' is a sequence, and {type(data).__name__} is none; give a list")
    make = _map if parts == "map" else _tensor
    return _create(_SEQUENCE, [make(part, declared) for part in data])


def from_value(data: Any, declared: Value | None) -> Handle:
    """Returns an input of the declared kind: an array, list, dict or None, or an mge.Tensor."""
    if declared is None or declared.kind == "tensor":
        return _tensor(data, declared)
    if declared.kind == "sequence":
        return _sequence(data, declared, declared.parts)
    if declared.kind == "map":
        return _map(data, declared)
    if data is None:
        return _create(_OPTIONAL, [])
    return _create(_OPTIONAL, [_sequence(data, declared, "tensor") if declared.parts == "sequence" else _tensor(data, declared)])


def handles_of(inputs: Mapping[str, Any], declared: Mapping[str, Value]) -> dict[str, Handle]:
    return {name: from_value(data, declared.get(name)) for name, data in inputs.items()}
