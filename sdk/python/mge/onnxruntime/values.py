# SPDX-License-Identifier: Apache-2.0
"""Values: their types as ONNX Runtime writes them, OrtValue, and values bound to the runs of a session."""
from __future__ import annotations

import ctypes as c
import math
from typing import Any, Mapping, Sequence

import numpy as np

from .._dlpack import _Old
from .._native import lib
from ..errors import raise_for
from ..tensor import Tensor, array_type, declared_type
from ..values import MapSequence, Value
from .errors import InvalidArgument, translated
from .providers import device_of

# Our names of element types: their number in ONNX and ONNX Runtime's name.
_TYPES = {"float32": (1, "float"), "uint8": (2, "uint8"), "int8": (3, "int8"), "uint16": (4, "uint16"), "int16": (5, "int16"),
          "int32": (6, "int32"), "int64": (7, "int64"), "string": (8, "string"), "bool": (9, "bool"), "float16": (10, "float16"),
          "float64": (11, "double"), "uint32": (12, "uint32"), "uint64": (13, "uint64"), "complex64": (14, "complex64"),
          "complex128": (15, "complex128"), "bfloat16": (16, "bfloat16"), "float8e4m3fn": (17, "float8e4m3fn"),
          "float8e4m3fnuz": (18, "float8e4m3fnuz"), "float8e5m2": (19, "float8e5m2"), "float8e5m2fnuz": (20, "float8e5m2fnuz"),
          "uint4": (21, "uint4"), "int4": (22, "int4"), "float4e2m1": (23, "float4e2m1"), "float8e8m0": (24, "float8e8m0"),
          "uint2": (25, "uint2"), "int2": (26, "int2")}
_NAMES = {number: name for name, (number, _) in _TYPES.items()}


def _tensor_type(dtype: str) -> str:
    return f"tensor({_TYPES[dtype][1] if dtype in _TYPES else dtype})"


def type_text(value: Value) -> str:
    """Returns the type of an input or output, such as "tensor(float)" or "seq(tensor(float))"."""
    inner = _tensor_type(value.dtype)
    if value.kind == "sequence":
        return f"seq(map(int64,{inner}))" if value.parts == "map" else f"seq({inner})"
    if value.kind == "optional":
        return f"optional(seq({inner}))" if value.parts == "sequence" else f"optional({inner})"
    return f"map(int64,{inner})" if value.kind == "map" else inner


class NodeArg:
    """An input or output of a model: `name`, `type` such as "tensor(float)", and `shape`, a list whose unknown dimensions are their
    names or None."""

    def __init__(self, value: Value) -> None:
        self.name, self.type, self.shape = value.name, type_text(value), list(value.shape or ())

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def plain(value: Any) -> Any:
    """Returns an output as ONNX Runtime returns it: arrays in memory of the host, lists, dicts and None."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, MapSequence):
        return value.tolist()
    return [plain(part) for part in value] if isinstance(value, list) else value


def _dtype_name(element_type: Any) -> str:
    """Returns our name of an element type: a number of ONNX, or a type of NumPy."""
    if isinstance(element_type, int):
        if element_type not in _NAMES:
            raise InvalidArgument(f"element type {element_type}: ONNX has 1 to {max(_NAMES)}")
        return _NAMES[element_type]
    return np.dtype(element_type).name


class OrtValue:
    """A value: a tensor in the memory of the host or of a device, or a list of values."""

    def __init__(self, value: Any) -> None:
        """`value`: an mge.Tensor, an array, a list, a dict or None."""
        self._value = Tensor(value) if isinstance(value, np.ndarray) and value.dtype.kind not in "OUS" else value

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: Any, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> "OrtValue":
        """Returns a value that shares the array's memory, or a copy in the memory of a device."""
        with translated():
            device = device_of(device_type, device_id)
            return OrtValue(numpy_obj if device is None else Tensor(numpy_obj, device=device))

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: Any, onnx_element_type: int) -> "OrtValue":
        """Returns a value whose elements are the array's bits, of a type that NumPy may lack, such as 16 (bfloat16)."""
        return OrtValue(np.asarray(data).view(array_type(onnx_element_type)))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1) -> "OrtValue":
        """Returns a new tensor; the elements of one on a device are undefined."""
        with translated():
            return OrtValue(Tensor.empty(shape, _dtype_name(element_type), device=device_of(device_type, device_id)))

    @staticmethod
    def from_dlpack(data: Any) -> "OrtValue":
        """Shares the memory of another library's tensor."""
        with translated():
            return OrtValue(Tensor.from_dlpack(data))

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor().__dlpack_device__()

    def _tensor(self) -> Tensor:
        if not isinstance(self._value, Tensor):
            raise InvalidArgument(f"the value is a {type(self._value).__name__}, and no tensor of numbers")
        return self._value

    def numpy(self) -> Any:
        """Returns an array: of the host's memory without a copy."""
        return plain(self._value)

    def shape(self) -> list[int]:
        return list(np.shape(self._value) if isinstance(self._value, np.ndarray) else self._tensor().shape)

    def data_ptr(self) -> int:
        """Returns the address of the first element on the value's device."""
        return self._tensor().address

    def data_type(self) -> str:
        """Returns the type, such as "tensor(float)"."""
        if isinstance(self._value, list):
            parts = [OrtValue(part).data_type() for part in self._value[:1]]
            return f"seq({parts[0] if parts else 'tensor(float)'})"
        return _tensor_type("string" if isinstance(self._value, np.ndarray) else self._tensor().dtype)

    def element_type(self) -> int:
        """Returns the number of the element type in ONNX."""
        return _TYPES["string" if isinstance(self._value, np.ndarray) else self._tensor().dtype][0]

    def device_name(self) -> str:
        """Returns "cpu", or the kind of the device, such as "cuda"."""
        device = self._value.device if isinstance(self._value, Tensor) else ""
        return device.rstrip("0123456789") or "cpu"

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, (Tensor, np.ndarray))

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        return False

    def tensor_size_in_bytes(self) -> int:
        return self._tensor().nbytes

    def update_inplace(self, data: Any) -> None:
        """Copies an array of the same type and shape to the value's memory."""
        with translated():
            raise_for(lib.mge_tensor_copy(Tensor(np.ascontiguousarray(data))._open(), self._tensor()._open()))


class _Pointer:
    """Memory of the program, as an object that DLPack can take. The program keeps the memory."""

    _CODES = {"i": 0, "u": 1, "f": 2, "b": 6, "c": 5}

    def __init__(self, address: int, dtype: Any, shape: Sequence[int], kind: int, number: int) -> None:
        self._dims, self._place = (c.c_int64 * max(1, len(shape)))(*shape), (kind, number)
        self._managed = _Old()
        tensor = self._managed.tensor
        tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = address, kind, number, len(shape)
        tensor.code, tensor.bits, tensor.lanes = self._CODES[dtype.kind], dtype.itemsize * 8, 1
        tensor.shape = self._dims

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place

    def __dlpack__(self, **_: Any) -> Any:
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        return new(c.addressof(self._managed), b"dltensor", None)


_DLPACK_KINDS = {"cuda": 2, "rocm": 10}


def tensor_at(address: int, device_type: str, device_id: int, element_type: Any, shape: Sequence[int]) -> Tensor:
    """Returns a tensor over memory of the program at an address of the host or of a GPU. The program keeps it until the runs end."""
    dtype = declared_type(_dtype_name(element_type))
    if device_of(device_type) is None:
        buffer: Any = (c.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
        return Tensor(np.frombuffer(buffer, dtype).reshape(shape))
    if device_type.lower() not in _DLPACK_KINDS:
        raise InvalidArgument(f"device type '{device_type}': pointers may be to memory of cpu, {' and '.join(_DLPACK_KINDS)}; "
                              "use an OrtValue")
    pointer = _Pointer(address, dtype, shape, _DLPACK_KINDS[device_type.lower()], device_id)
    tensor = Tensor.from_dlpack(pointer)
    tensor._open().keeps = pointer
    return tensor


class IOBinding:
    """Inputs and outputs of the runs of a session, made by InferenceSession.io_binding() or from the session."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, tuple[str | None, Tensor | None]] = {}  # the device, None for the host, and memory
        self._results: dict[str, Any] = {}

    def _input(self, name: str, value: Any) -> None:
        self._known(name, [v.name for v in self._session.get_inputs()], "input")
        self._inputs[name] = value

    @staticmethod
    def _known(name: str, names: Sequence[str], side: str) -> None:
        if name not in names:
            raise InvalidArgument(f"the model has no {side} '{name}'; its {side}s are {list(names)}")

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array."""
        self._input(name, arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds memory at an address, which the program keeps."""
        with translated():
            self._input(name, tensor_at(buffer_ptr, device_type, device_id, element_type, shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value."""
        self._input(name, ortvalue._value)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Binds memory at an address, which the program keeps; without one, each run makes a value on the device."""
        self._known(name, [v.name for v in self._session.get_outputs()], "output")
        memory = None
        if buffer_ptr is not None:
            if shape is None or element_type is None:
                raise ValueError("shape and element_type are needed to bind an output to memory at an address")
            with translated():
                memory = tensor_at(buffer_ptr, device_type, device_id, element_type, shape)
        self._outputs[name] = device_of(device_type, device_id), memory

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, to which each run writes."""
        self._known(name, [v.name for v in self._session.get_outputs()], "output")
        memory = ortvalue._tensor()
        self._outputs[name] = memory.device or None, memory

    def synchronize_inputs(self) -> None:
        """Returns at once: values are complete when they are bound."""

    def synchronize_outputs(self) -> None:
        """Returns at once: a run returns when its outputs are complete."""

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the latest run, in the order in which they were bound."""
        return [OrtValue(self._results[name]) for name in self._outputs if name in self._results]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Returns the outputs of the latest run as arrays."""
        return [plain(value._value) for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Removes the bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Removes the bound outputs, and those of the latest run."""
        self._outputs.clear()
        self._results.clear()

    def _memory(self) -> Mapping[str, Tensor]:
        return {name: memory for name, (_, memory) in self._outputs.items() if memory is not None}

    def _keep(self, results: Mapping[str, Any]) -> None:
        """Keeps the outputs of a run, each where it was bound."""
        self._results = {}
        for name, (device, memory) in self._outputs.items():
            value = results[name]
            if memory is None and isinstance(value, Tensor) and value.device != (device or ""):
                value = value.to_host() if device is None else value.to(device)
            elif memory is None and device is not None and isinstance(value, np.ndarray):
                value = Tensor(value, device=device)
            self._results[name] = value
