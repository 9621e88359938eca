# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory of the host or of a device."""
from __future__ import annotations

import ctypes as c
import functools
import math
import os
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from . import _dlpack
from ._handles import Closable, Handle, TensorHandle
from ._native import dims_of, lib, text
from .errors import UsageError, raise_for

if TYPE_CHECKING:
    from .context import Context
    from .runtime import Runtime

_TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
          11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
_NUMBERS = {np.dtype(name): number for number, name in _TYPES.items()}
STRING = 8
# The types of the package ml_dtypes, by our name: their number and the package's name.
_ML_TYPES = {"bfloat16": (16, "bfloat16"), "float8e4m3fn": (17, "float8_e4m3fn"), "float8e4m3fnuz": (18, "float8_e4m3fnuz"),
             "float8e5m2": (19, "float8_e5m2"), "float8e5m2fnuz": (20, "float8_e5m2fnuz"), "uint4": (21, "uint4"),
             "int4": (22, "int4"), "float4e2m1": (23, "float4_e2m1fn"), "float8e8m0": (24, "float8_e8m0fnu"),
             "uint2": (25, "uint2"), "int2": (26, "int2")}
_ML_NAMES = {number: name for number, name in _ML_TYPES.values()}
_ML_NUMBERS = {name: number for number, name in _ML_TYPES.values()}


@functools.lru_cache(None)
def _ml_type(number: int) -> np.dtype[Any]:
    """Returns a type of the package ml_dtypes, or else that of the element's bits: uint16 or uint8."""
    try:
        import ml_dtypes

        kind: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_NAMES[number]))
        return kind
    except (ImportError, AttributeError):  # an old package lacks the newest types
        return np.dtype("uint16" if number == 16 else "uint8")


@functools.lru_cache(None)
def array_type(number: int) -> np.dtype[Any]:
    """Returns NumPy's type for a number of mge/types.h."""
    return _ml_type(number) if number in _ML_NAMES else np.dtype(_TYPES[number])


def declared_type(dtype: str) -> np.dtype[Any]:
    """Returns NumPy's type for one of our names."""
    return array_type(_ML_TYPES[dtype][0]) if dtype in _ML_TYPES else np.dtype(dtype)


def dtype_name(number: int) -> str:
    return text(lib.mge_dtype_name(number))


def _number(dtype: str) -> int:
    """Returns the number of an element type that a tensor in memory may have."""
    number = STRING if dtype == "string" else _ML_TYPES[dtype][0] if dtype in _ML_TYPES else _NUMBERS.get(np.dtype(dtype))
    if number is None:
        raise UsageError(f"the type {dtype} has no counterpart in ONNX")
    return number


# ---- tensors of arrays, and arrays of tensors


def tensor_of(data: Any, number: int | None = None) -> TensorHandle:
    """Returns a tensor of an array, or of what NumPy makes one of: of the type with this number, by default that of the array. It
    shares the array's memory if that is dense and of the type."""
    array = np.asarray(data, None if number is None else array_type(number))
    out = TensorHandle()
    if array.dtype.kind in "OUS":
        return _strings(array)
    if not array.flags.c_contiguous or not array.flags.aligned or not array.dtype.isnative:
        array = np.require(array, array.dtype.newbyteorder("="), ["C", "A"]).reshape(array.shape)
    number = _NUMBERS.get(array.dtype) if number is None else number
    if number is None:
        number = _ML_NUMBERS.get(array.dtype.name)
    if number is None:
        raise UsageError(f"an array of type {array.dtype} has no counterpart in ONNX")
    raise_for(lib.mge_tensor_wrap(number, dims_of(array.shape), array.ndim, array.ctypes.data, array.nbytes, c.byref(out)))
    out.keeps = array
    if not array.flags.writeable:
        lib.mge_tensor_set_read_only(out)
    return out


def _strings(array: Any) -> TensorHandle:
    values = array.reshape(-1).tolist()
    try:
        parts = [v.encode() if type(v) is str else bytes(v) if isinstance(v, bytes) else v.encode() for v in values]
    except AttributeError:
        wrong = next(v for v in values if not isinstance(v, (str, bytes)))
        raise UsageError(f"an array of objects holds strings only, and this one holds {wrong!r}") from None
    ends = np.cumsum(np.fromiter(map(len, parts), np.uint64, len(parts)), dtype=np.uint64)
    out = TensorHandle()
    raise_for(lib.mge_tensor_create_strings(dims_of(array.shape), array.ndim, b"".join(parts), ends.ctypes.data, c.byref(out)))
    return out


def _read_strings(handle: Handle, shape: tuple[int, ...]) -> Any:
    """Returns an array of str. Equal strings are one object."""
    ends = np.zeros(max(1, math.prod(shape)), np.uint64)
    raise_for(lib.mge_tensor_read_strings(handle, ends.ctypes.data, None, 0))
    buffer = c.create_string_buffer(max(1, int(ends[-1])))
    raise_for(lib.mge_tensor_read_strings(handle, ends.ctypes.data, buffer, len(buffer)))
    known: dict[bytes, str] = {}
    data, begin = buffer.raw, 0
    out = np.empty(math.prod(shape), object)
    values = []
    for end in ends[: len(out)].tolist():
        part = data[begin:end]
        value = known.get(part)
        if value is None:
            value = known[part] = part.decode("utf-8", "replace")
        values.append(value)
        begin = end
    out[:] = values
    return out.reshape(shape)


def shape_of(handle: Handle) -> tuple[int, ...]:
    return tuple(lib.mge_tensor_dims(handle)[: lib.mge_tensor_rank(handle)])


def array_of(handle: Handle) -> Any:
    """Returns an array that shares a tensor's memory and keeps it, or a copy of memory that the host cannot access."""
    number, shape = lib.mge_tensor_dtype(handle), shape_of(handle)
    if number == STRING:
        return _read_strings(handle, shape)
    size, data = lib.mge_tensor_bytes(handle), lib.mge_tensor_data(handle)
    if not size:
        return np.empty(shape, array_type(number))
    if not data:
        return array_of(host_copy(handle, number, shape))
    buffer: Any = (c.c_char * size).from_address(data)
    buffer._handle = handle
    array = np.ndarray(shape, array_type(number), buffer)
    array.flags.writeable = not lib.mge_tensor_read_only(handle)
    return array


def host_copy(handle: Handle, number: int, shape: Sequence[int]) -> TensorHandle:
    out = TensorHandle()
    raise_for(lib.mge_tensor_create(number, dims_of(shape), len(shape), c.byref(out)))
    raise_for(lib.mge_tensor_copy(handle, out))
    return out


def _place(device: "str | Context | None") -> "str | Context | None":
    """Returns where a new tensor goes: a context, the name of a device, or None for plain memory of the host."""
    from .context import Context, scope

    if device is None:
        device = scope()
    return None if isinstance(device, Context) and device.device_type == "cpu" else device


class Tensor(Closable):
    """A view of memory: its elements may be written, and everything that shares the memory sees that. (The tensors of eager mode,
    mge.eager.EagerTensor, are immutable copies.) `np.asarray(t)` shares the memory of the host, and copies that of a device.
    DLPack shares both. Arrays that share the memory keep it, also when the tensor is closed."""

    def __init__(self, data: Any, *, device: "str | Context | None" = None, runtime: "Runtime | None" = None) -> None:
        """Makes a tensor of an array, or of what NumPy makes one of. With a device, such as "gpu0", gpu(0) or cpu_pinned(0), or in a
        `with` statement of a context, it is a copy there. Otherwise, and for strings without a device, it shares the array's
        memory if that is dense."""
        handle = tensor_of(data)
        self._handle = handle
        place = _place(device)
        if place is None or (device is None and self.dtype == "string"):
            return
        self._handle = Tensor.empty(self.shape, self.dtype, device=place, runtime=runtime)._open()
        raise_for(lib.mge_tensor_copy(handle, self._handle))

    @classmethod
    def _of(cls, handle: Handle) -> "Tensor":
        tensor = cls.__new__(cls)
        tensor._handle = handle
        return tensor

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: str = "float32", *, device: "str | Context | None" = None,
              runtime: "Runtime | None" = None) -> "Tensor":
        """Makes a tensor: of zeros where the host can access them, else of undefined elements. `device` as for Tensor()."""
        from .runtime import default_runtime

        number, place, out = _number(dtype), _place(device), TensorHandle()
        if place is None:
            raise_for(lib.mge_tensor_create(number, dims_of(shape), len(shape), c.byref(out)))
            return cls._of(out)
        owner = (runtime or default_runtime())._open()
        raise_for(lib.mge_tensor_create_on(owner, str(place).encode(), number, dims_of(shape), len(shape), c.byref(out)))
        return cls._of(out)

    @classmethod
    def read(cls, source: "str | os.PathLike[str] | bytes") -> "Tensor":
        """Reads a .npy file, an array of a .npz file ("file.npz:name"), or an ONNX TensorProto (.pb). Bytes are those of a .npy
        file."""
        out = TensorHandle()
        if isinstance(source, bytes):
            raise_for(lib.mge_tensor_read_npy_bytes(source, len(source), c.byref(out)))
        else:
            raise_for(lib.mge_tensor_read(os.fspath(source).encode(), c.byref(out)))
        return cls._of(out)

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self._open())

    @property
    def dtype(self) -> str:
        """The name of the element type, such as "float32", "bfloat16" or "string"."""
        return dtype_name(lib.mge_tensor_dtype(self._open()))

    @property
    def device(self) -> str:
        """The name of the device, such as "gpu0"; "" for memory of the host."""
        return text(lib.mge_tensor_device(self._open()))

    @property
    def context(self) -> "Context":
        """The context in which the elements lie; cpu(0) for plain memory of the host."""
        from .context import Context

        return Context._of(lib.mge_tensor_context(self._open()))

    @property
    def address(self) -> int:
        """The address of the elements on the tensor's device."""
        return lib.mge_tensor_address(self._open()) or 0

    @property
    def page_locked(self) -> bool:
        """Whether the elements lie in host memory that the copy queues of the device can access."""
        return bool(lib.mge_tensor_page_locked(self._open()))

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(lib.mge_tensor_elements(self._open()))

    @property
    def nbytes(self) -> int:
        return int(lib.mge_tensor_bytes(self._open()))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._handle is None:
            return "<mge.Tensor, closed>"
        place = f", {self.device}" if self.device else ""
        return f"<mge.Tensor {self.dtype}{list(self.shape)}{place}>"

    def numpy(self) -> Any:
        """Returns an array that shares the memory of the host, or a copy of other memory. Strings become str objects."""
        return array_of(self._open())

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array

    def to_host(self) -> "Tensor":
        """Returns a copy in host memory."""
        handle = self._open()
        return Tensor._of(host_copy(handle, lib.mge_tensor_dtype(handle), shape_of(handle)))

    def to(self, device: "str | Context", *, runtime: "Runtime | None" = None) -> "Tensor":
        """Returns a copy in the memory of a device. `device` as for Tensor()."""
        handle = self._open()
        other = Tensor.empty(self.shape, self.dtype, device=device, runtime=runtime)
        raise_for(lib.mge_tensor_copy(handle, other._open()))
        return other

    def write(self, path: "str | os.PathLike[str]") -> None:
        """Writes a .npy file."""
        raise_for(lib.mge_tensor_write_npy(self._open(), os.fspath(path).encode()))

    # ---- DLPack: https://dmlc.github.io/dlpack

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Returns a capsule that shares the memory, or that has a copy in host memory: if `dl_device` is (1, 0), or `copy` is True.
        The runs that write it have ended, so no stream has to wait."""
        return _dlpack.export(self._open(), lambda: self.to_host()._open(), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.device_of(self._open())

    @classmethod
    def from_dlpack(cls, source: Any, *, device: str | None = None, runtime: "Runtime | None" = None) -> "Tensor":
        """Shares the memory of another library's tensor. `device` is its name here; by default that of DLPack's number. A tensor that
        must not be written has read-only arrays."""
        from .runtime import default_runtime

        return cls._of(_dlpack.take(source, device, lambda: (runtime or default_runtime())._open()))
