# SPDX-License-Identifier: Apache-2.0
"""Tensors in the memory of the host or of a device, and other values of models as Python's own types."""
from __future__ import annotations

import ctypes as c
from typing import Any, Sequence

import numpy as np

from ._native import DLManagedTensor, Text, dims_of, lib, text
from .errors import UsageError, raise_for

_TYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
          11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}
_NUMBERS = {np.dtype(name): number for number, name in _TYPES.items()}
_STRING, _BFLOAT16 = 8, 16
_TENSOR, _SEQUENCE, _OPTIONAL = 0, 1, 2  # kinds of values; the last one is a map
_DL_CPU = 1
_CAPSULE, _USED_CAPSULE = b"dltensor", b"used_dltensor"


def bfloat16_type() -> np.dtype[Any]:
    """Returns NumPy's type for bfloat16: that of the package ml_dtypes, or else its bits as uint16."""
    try:
        import ml_dtypes

        kind: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return kind
    except ImportError:
        return np.dtype("uint16")


def dtype_name(number: int) -> str:
    return text(lib.mge_dtype_name(number))


class Tensor:
    """A dense tensor. `np.asarray(t)` shares the memory of the host, and copies that of a device. DLPack shares both."""

    def __init__(self, data: Any, device: str | None = None, runtime: Any = None) -> None:
        """Makes a tensor of an array, or of what NumPy makes one of. Without a device, it shares the array's memory if that
        is dense; else it is a copy in the memory of the device, such as "gpu0"."""
        array = np.asarray(data)
        if array.dtype.kind in "OUS":
            self._handle, self._keeps = _strings(array), None
        else:
            array = np.ascontiguousarray(array).reshape(array.shape)
            number = _BFLOAT16 if array.dtype.name == "bfloat16" else _NUMBERS.get(array.dtype)
            if number is None:
                raise UsageError(f"an array of type {array.dtype} has no counterpart in ONNX")
            self._handle, self._keeps = _wrap(array, number), array
        if device is not None:
            host = self
            other = Tensor.empty(host.shape, host.dtype, device, runtime)
            raise_for(lib.mge_tensor_copy(host._handle, other._handle))
            host.close()
            self._handle, self._keeps = other._release(), other._keeps

    @classmethod
    def _of(cls, handle: int | c.c_void_p, keeps: Any = None) -> "Tensor":
        tensor = cls.__new__(cls)
        tensor._handle, tensor._keeps = c.c_void_p(handle) if isinstance(handle, int) else handle, keeps
        return tensor

    @classmethod
    def empty(cls, shape: Sequence[int], dtype: str = "float32", device: str | None = None,
              runtime: Any = None) -> "Tensor":
        """Makes a tensor: zeros in host memory, or undefined elements on a device."""
        from .runtime import default_runtime

        number = _BFLOAT16 if dtype == "bfloat16" else _NUMBERS.get(np.dtype(dtype))
        if number is None:
            raise UsageError(f"the type {dtype} has no counterpart in ONNX")
        out = c.c_void_p()
        if device is None:
            raise_for(lib.mge_tensor_create(number, dims_of(shape), len(shape), c.byref(out)))
            return cls._of(out)
        runtime = runtime or default_runtime()
        raise_for(lib.mge_tensor_create_on(runtime._handle, device.encode(), 0, number, dims_of(shape), len(shape),
                                           c.byref(out)))
        return cls._of(out, runtime)

    @classmethod
    def read(cls, path: str) -> "Tensor":
        """Reads a .npy file, an array of a .npz file ("file.npz:name"), or an ONNX TensorProto (.pb)."""
        out = c.c_void_p()
        raise_for(lib.mge_tensor_read(str(path).encode(), c.byref(out)))
        return cls._of(out)

    def _release(self) -> c.c_void_p:
        handle, self._handle = self._handle, c.c_void_p()
        return handle

    def close(self) -> None:
        """Releases the memory. Arrays that share it must not be used any more."""
        if getattr(self, "_handle", None):
            lib.mge_tensor_release(self._release())

    __del__ = close

    def __enter__(self) -> "Tensor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(lib.mge_tensor_dims(self._handle)[: lib.mge_tensor_rank(self._handle)])

    @property
    def dtype(self) -> str:
        """The name of the element type, such as "float32", "bfloat16" or "string"."""
        return dtype_name(lib.mge_tensor_dtype(self._handle))

    @property
    def device(self) -> str:
        """The name of the device, such as "gpu0"; "" for memory of the host."""
        return text(lib.mge_tensor_device(self._handle))

    @property
    def address(self) -> int:
        """The address of the elements on the tensor's device."""
        return lib.mge_tensor_address(self._handle) or 0

    @property
    def nbytes(self) -> int:
        return int(lib.mge_tensor_bytes(self._handle))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        place = f", {self.device}" if self.device else ""
        return f"<mge.Tensor {self.dtype}{list(self.shape)}{place}>"

    def numpy(self) -> Any:
        """Returns an array that shares the memory of the host, or a copy of other memory. Strings become str objects."""
        number = lib.mge_tensor_dtype(self._handle)
        if number == _STRING:
            return self._read_strings()
        if not lib.mge_tensor_data(self._handle) and self.nbytes:
            return self.to_host().numpy()
        kind = bfloat16_type() if number == _BFLOAT16 else np.dtype(_TYPES[number])
        if not self.nbytes:
            return np.empty(self.shape, kind)
        buffer: Any = (c.c_char * self.nbytes).from_address(lib.mge_tensor_data(self._handle))
        buffer._tensor = self  # lives as long as the array
        return np.frombuffer(buffer, kind).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array

    def to_host(self) -> "Tensor":
        """Returns a copy in host memory."""
        other = Tensor.empty(self.shape, self.dtype)
        raise_for(lib.mge_tensor_copy(self._handle, other._handle))
        return other

    def to(self, device: str, runtime: Any = None) -> "Tensor":
        """Returns a copy in the memory of a device."""
        other = Tensor.empty(self.shape, self.dtype, device, runtime)
        raise_for(lib.mge_tensor_copy(self._handle, other._handle))
        return other

    def write(self, path: str) -> None:
        """Writes a .npy file."""
        raise_for(lib.mge_tensor_write_npy(self._handle, str(path).encode()))

    def _read_strings(self) -> Any:
        count = int(lib.mge_tensor_elements(self._handle))
        out = np.empty(count, object)
        for i in range(count):
            part: Text = lib.mge_tensor_string(self._handle, i)
            out[i] = c.string_at(part.data, part.size).decode("utf-8", "replace") if part.size else ""
        return out.reshape(self.shape)

    # ---- DLPack: https://dmlc.github.io/dlpack

    def _managed(self) -> Any:
        out = c.c_void_p()
        raise_for(lib.mge_tensor_to_dlpack(self._handle, c.byref(out)))
        return c.cast(out, c.POINTER(DLManagedTensor))

    def __dlpack__(self, **_: Any) -> Any:
        """Returns a capsule that shares the memory. The runs that write it have ended, so no stream has to wait."""
        return _new_capsule(c.cast(self._managed(), c.c_void_p), _CAPSULE, _delete_capsule)

    def __dlpack_device__(self) -> tuple[int, int]:
        managed = self._managed()
        place = (managed.contents.tensor.device_type, managed.contents.tensor.device_id)
        managed.contents.deleter(managed)
        return place

    @classmethod
    def from_dlpack(cls, source: Any, device: str | None = None, runtime: Any = None) -> "Tensor":
        """Shares the memory of another library's tensor. `device` is its name here; by default that of DLPack's number."""
        from .runtime import default_runtime

        kind, number = source.__dlpack_device__()
        if device is None and kind != _DL_CPU:
            names = {2: "cuda", 10: "rocm"}
            if kind not in names:
                raise UsageError(f"name the device: DLPack's device type {kind} has no name here")
            device = f"{names[kind]}{number}"
        runtime = None if device is None else runtime or default_runtime()
        capsule = source.__dlpack__()
        out = c.c_void_p()
        raise_for(lib.mge_tensor_from_dlpack(runtime and runtime._handle, device and device.encode(),
                                             _pointer_of(capsule, _CAPSULE), c.byref(out)))
        _rename_capsule(capsule, _USED_CAPSULE)
        return cls._of(out, runtime)


_new_capsule = c.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
_pointer_of = c.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
_rename_capsule = c.pythonapi.PyCapsule_SetName
_rename_capsule.restype, _rename_capsule.argtypes = c.c_int, [c.py_object, c.c_char_p]
_raw_pointer_of = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", c.pythonapi))
_raw_is_valid = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", c.pythonapi))


def _delete(capsule: int) -> None:
    if _raw_is_valid(capsule, _CAPSULE):  # nobody has taken it
        managed = c.cast(_raw_pointer_of(capsule, _CAPSULE), c.POINTER(DLManagedTensor))
        managed.contents.deleter(managed)


_delete_function = c.PYFUNCTYPE(None, c.c_void_p)(_delete)
_delete_capsule = c.cast(_delete_function, c.c_void_p)


def _wrap(array: Any, number: int) -> c.c_void_p:
    out = c.c_void_p()
    raise_for(lib.mge_tensor_wrap(number, dims_of(array.shape), array.ndim, array.ctypes.data, array.nbytes, c.byref(out)))
    return out


def _strings(array: Any) -> c.c_void_p:
    for value in array.reshape(-1):
        if not isinstance(value, (str, bytes)):
            raise UsageError(f"an array of objects holds strings only, and this one holds {value!r}")
    out = c.c_void_p()
    raise_for(lib.mge_tensor_create(_STRING, dims_of(array.shape), array.ndim, c.byref(out)))
    for i, value in enumerate(array.reshape(-1)):
        data = value if isinstance(value, bytes) else value.encode()
        raise_for(lib.mge_tensor_set_string(out, i, data, len(data)))
    return out


def to_value(handle: c.c_void_p, on_device: bool = False) -> Any:
    """Takes over an output: an array (or a Tensor, if it shall stay on its device), a list, a dict, or None for an empty
    optional."""
    kind = lib.mge_tensor_kind(handle)
    if kind == _TENSOR:
        tensor = Tensor._of(handle)
        return tensor if on_device else tensor.numpy()
    try:
        parts = []
        for i in range(lib.mge_tensor_part_count(handle)):
            part = c.c_void_p()
            raise_for(lib.mge_tensor_part(handle, i, c.byref(part)))
            parts.append(to_value(part, on_device))
    finally:
        lib.mge_tensor_release(handle)
    if kind == _SEQUENCE:
        return parts
    if kind == _OPTIONAL:
        return parts[0] if parts else None
    return dict(zip(parts[0].tolist(), parts[1].tolist()))
