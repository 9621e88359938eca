# SPDX-License-Identifier: Apache-2.0
"""Eager mode: single operators, which run at once, and their gradients.

    from mge import eager
    x = eager.tensor(array, device="gpu0")
    y = eager.ops.Relu(eager.ops.MatMul(x, w))     # any operator of ONNX; attributes are keywords
    a, b = eager.ops.Split(y, axis=1, num_outputs=2)
    y.numpy()                                       # waits

    with eager.GradientTape() as tape:
        tape.watch(w)
        loss = eager.ops.ReduceMean(eager.ops.MatMul(x, w), keepdims=0)
    dw, = tape.gradient(loss, [w])

A call checks names, attributes, types and shapes as far as they are known, and does not wait for the result. Other errors
arrive when a result is read. The settings eager.* change that. Types are never converted: both inputs of Add have one type.
"""
from __future__ import annotations

import ctypes as c
import json
import threading
from typing import Any, Callable, Sequence

import numpy as np

from ._handles import EagerHandle, Owner, TapeHandle, TensorHandle
from ._native import Attribute, EagerOperator, lib, take_text, text
from .errors import ClosedError, UsageError, raise_for
from .context import Context
from .runtime import Runtime, default_runtime
from .tensor import Tensor as _SharedTensor
from .tensor import array_type, dtype_name
from .values import to_value

_INT, _FLOAT, _TEXT, _INTS, _FLOATS, _TEXTS, _TENSOR = range(7)  # types of attributes
_STATES = ("pending", "ready", "dropped", "swapped", "failed")
_MOST_OUTPUTS = 256


class Eager(Owner):
    """Eager mode in a runtime. Most programs use the functions of this module, which use the one of default_runtime()."""

    def __init__(self, *, runtime: Runtime | None = None) -> None:
        handle = EagerHandle()
        raise_for(lib.mge_eager_create((runtime or default_runtime())._open(), c.byref(handle)))
        self._handle = handle
        self.ops = Operators(self)

    def tensor(self, data: Any, *, device: str | Context | None = None) -> "EagerTensor":
        """Makes an immutable tensor with a copy of an array on a device, such as "gpu0"; without one, on that of the current
        context."""
        out = c.c_void_p()
        host = data if isinstance(data, _SharedTensor) else _SharedTensor(data)
        raise_for(lib.mge_eager_put(self._open(), host._open(), None if device is None else str(device).encode(), c.byref(out)))
        return EagerTensor(self, out.value)

    def apply(self, op: str, *inputs: Any, outputs: int | None = None, domain: str = "", version: int | None = None,
              device: str | Context | None = None, **attributes: Any) -> Any:
        """Calls an operator. `inputs`: eager tensors; arrays, lists and numbers, which have no device; None for an optional
        input that is absent. `outputs`: how many are wanted; by default those that the operator requires. `version`: of the
        domain's operator set; by default the newest one. `device`: for a call without eager tensors. Returns a tensor, or a tuple
        if there are several. Attributes that are None are left out."""
        operator, keeps = _operator(op, outputs, domain, version or 0, device, attributes)
        given = [x if isinstance(x, EagerTensor) or x is None else self._operand(x) for x in inputs]
        handles = (c.c_void_p * max(1, len(given)))(*[None if x is None else x._open() for x in given])
        capacity = max(outputs or 0, int(attributes.get("num_outputs") or 0), 16)
        if capacity > _MOST_OUTPUTS:
            raise UsageError(f"{op} cannot have {capacity} outputs; {_MOST_OUTPUTS} is the limit")
        made = (c.c_void_p * capacity)()
        count = c.c_size_t()
        status = lib.mge_eager_apply(self._open(), operator, handles, len(given), made, capacity, c.byref(count))
        if status:
            raise_for(status)
        if count.value == 1:
            return EagerTensor(self, made[0])
        return tuple(EagerTensor(self, made[i]) for i in range(count.value))

    def _operand(self, data: Any) -> "EagerTensor":
        out = c.c_void_p()
        host = data if isinstance(data, _SharedTensor) else _SharedTensor(data)
        raise_for(lib.mge_eager_host_operand(self._open(), host._open(), c.byref(out)))
        return EagerTensor(self, out.value)

    def synchronize(self) -> None:
        """Waits for all operators that were called. Raises the first error since the last call of this function."""
        raise_for(lib.mge_eager_synchronize(self._open()))

    def report(self) -> dict[str, Any]:
        """Returns counters: runs of operators, memory of tensors, evictions, recomputations."""
        out = c.c_void_p()
        raise_for(lib.mge_eager_report(self._open(), b"mge.eager/1", c.byref(out)))
        return dict(json.loads(take_text(out)))


class Operators:
    """The operators as functions: ops.MatMul(x, w) is apply("MatMul", x, w)."""

    def __init__(self, eager: Eager | None = None) -> None:
        self._eager = eager

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(*inputs: Any, **options: Any) -> Any:
            return (self._eager or _of(inputs)).apply(name, *inputs, **options)

        call.__name__ = call.__qualname__ = name
        return call


class EagerTensor:
    """A tensor of eager mode: the result of an operator, which may not be computed yet, or a copy of an array. Nothing can write it,
    unlike mge.Tensor, which shares the memory of an array. Arithmetic calls the operators Add, Sub, Mul, Div,
    MatMul and Neg; a number gets the type of the tensor."""

    __slots__ = ("_eager", "_handle", "__weakref__")
    __array_priority__ = 100  # array + tensor calls __radd__

    def __init__(self, eager: Eager, handle: int | None) -> None:
        self._eager, self._handle = eager, handle

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle and lib is not None:
            lib.mge_eager_tensor_release(handle)

    def _open(self) -> int:
        if not self._handle:
            raise ClosedError("the tensor is closed")
        return self._handle

    def _type(self) -> tuple[int, int, tuple[int, ...]]:
        kind, dtype, rank, dims = c.c_int32(), c.c_int32(), c.c_size_t(), c.POINTER(c.c_int64)()
        raise_for(lib.mge_eager_tensor_type(self._open(), c.byref(kind), c.byref(dtype), c.byref(rank), c.byref(dims)))
        return kind.value, dtype.value, tuple(dims[: rank.value])

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions. Waits for the tensor if they depend on data."""
        return self._type()[2]

    @property
    def dtype(self) -> str:
        """The name of the element type, such as "float32"."""
        return dtype_name(self._type()[1])

    @property
    def device(self) -> str:
        """The device as it was given; "" for an operand without one."""
        return text(lib.mge_eager_tensor_device(self._open()))

    @property
    def context(self) -> Context:
        """The context of the device; cpu(0) for an operand without one. Fails for a list of devices."""
        return Context.parse(self.device or "cpu(0)")

    @property
    def state(self) -> str:
        """"pending", "ready", "dropped", "swapped" or "failed", at this moment."""
        return _STATES[lib.mge_eager_tensor_state(self._open())]

    def _value(self, on_device: bool) -> Any:
        out = TensorHandle()
        raise_for(lib.mge_eager_tensor_get(self._open(), c.byref(out)))
        return to_value(out, on_device)

    def numpy(self) -> Any:
        """Waits, and returns an array that must not be written: it may share the tensor's memory. Raises the error of the
        operator that should have computed the tensor. Sequences are lists, maps are dicts."""
        return self._value(on_device=False)

    def get(self) -> _SharedTensor:
        """Waits, and returns the tensor as an mge.Tensor that shares its memory, for DLPack. It must not be written."""
        value: _SharedTensor = self._value(on_device=True)
        return value

    def __dlpack__(self, **options: Any) -> Any:
        """Waits, and shares the memory, which must not be written; see mge.Tensor.__dlpack__()."""
        return self.get().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.get().__dlpack_device__()

    def item(self) -> Any:
        """Returns the only element."""
        return self.numpy().item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and array.dtype != dtype else array.copy() if copy else array

    def wait(self) -> None:
        raise_for(lib.mge_eager_tensor_wait(self._open()))

    def drop(self) -> None:
        """Releases the memory; the tensor is computed again when it is used. Needs the settings eager.drop and
        eager.record_computing_path."""
        raise_for(lib.mge_eager_tensor_drop(self._open()))

    def swap_out(self) -> None:
        """Moves the elements to host memory until they are used. Needs the setting eager.swap."""
        raise_for(lib.mge_eager_tensor_swap_out(self._open()))

    def swap_in(self) -> None:
        raise_for(lib.mge_eager_tensor_swap_in(self._open()))

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a scalar has no length")
        return shape[0]

    def __repr__(self) -> str:
        place = f", {self.device}" if self.device else ""
        if self.state == "pending":
            return f"<mge.eager.EagerTensor pending{place}>"
        if self.state == "failed":
            return f"<mge.eager.EagerTensor failed{place}>"
        return f"<mge.eager.EagerTensor {self.dtype}{list(self.shape)}{place}>"

    # ---- arithmetic

    def _other(self, value: Any) -> Any:
        if isinstance(value, (bool, int, float)):
            number = self._type()[1]
            kind = array_type(number)
            array = np.asarray(value, kind)
            if kind.kind in "iu" and array != value:
                raise UsageError(f"{value!r} is not a value of the tensor's type {self.dtype}; convert the tensor with Cast")
            return array
        return value

    def _call(self, op: str, *inputs: Any) -> "EagerTensor":
        result: EagerTensor = self._eager.apply(op, *inputs)
        return result

    def __add__(self, other: Any) -> "EagerTensor":
        return self._call("Add", self, self._other(other))

    def __radd__(self, other: Any) -> "EagerTensor":
        return self._call("Add", self._other(other), self)

    def __sub__(self, other: Any) -> "EagerTensor":
        return self._call("Sub", self, self._other(other))

    def __rsub__(self, other: Any) -> "EagerTensor":
        return self._call("Sub", self._other(other), self)

    def __mul__(self, other: Any) -> "EagerTensor":
        return self._call("Mul", self, self._other(other))

    def __rmul__(self, other: Any) -> "EagerTensor":
        return self._call("Mul", self._other(other), self)

    def __truediv__(self, other: Any) -> "EagerTensor":
        return self._call("Div", self, self._other(other))

    def __rtruediv__(self, other: Any) -> "EagerTensor":
        return self._call("Div", self._other(other), self)

    def __matmul__(self, other: Any) -> "EagerTensor":
        return self._call("MatMul", self, other)

    def __rmatmul__(self, other: Any) -> "EagerTensor":
        return self._call("MatMul", other, self)

    def __neg__(self) -> "EagerTensor":
        return self._call("Neg", self)


class GradientTape(Owner):
    """Records, within its `with` statement, the operators that depend on watched tensors, and computes gradients."""

    def __init__(self, *, eager: Eager | None = None) -> None:
        self._eager = eager or _default()
        handle = TapeHandle()
        raise_for(lib.mge_eager_tape_create(self._eager._open(), c.byref(handle)))
        self._handle = handle

    def __enter__(self) -> "GradientTape":
        raise_for(lib.mge_eager_tape_start(self._open()))
        return self

    def __exit__(self, *_: object) -> None:
        raise_for(lib.mge_eager_tape_stop(self._open()))

    def watch(self, *tensors: EagerTensor) -> None:
        """Records the operators that read these tensors from now on."""
        for tensor in tensors:
            raise_for(lib.mge_eager_tape_watch(self._open(), tensor._open()))

    def gradient(self, target: EagerTensor, sources: Sequence[EagerTensor], *,
                 weights: Any = None) -> list[EagerTensor | None]:
        """Returns the gradient of the sum of the target's elements, each multiplied by that of `weights` (default: 1), by
        each source; None where the target does not depend on it, or it is neither watched nor computed from a watched
        tensor."""
        sources = list(sources)  # kept during the call
        handles = (c.c_void_p * max(1, len(sources)))(*[s._open() for s in sources])
        out = (c.c_void_p * max(1, len(sources)))()
        if weights is not None and not isinstance(weights, EagerTensor):
            weights = self._eager._operand(weights)
        raise_for(lib.mge_eager_tape_gradient(self._open(), target._open(), None if weights is None else weights._open(),
                                              handles, len(sources), out))
        return [None if not h else EagerTensor(self._eager, h) for h in out[: len(sources)]]


def _attribute(name: str, value: Any, keeps: list[Any]) -> Attribute:
    """Converts an attribute. `keeps` receives what must stay alive during the call."""
    out = Attribute(name=name.encode(), count=1)
    if isinstance(value, (np.generic, np.ndarray)) and not isinstance(value, _SharedTensor) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, int)):
        out.type, out.ints = _INT, (c.c_int64 * 1)(value)
    elif isinstance(value, float):
        out.type, out.floats = _FLOAT, (c.c_float * 1)(value)
    elif isinstance(value, (str, bytes)):
        out.type, out.texts = _TEXT, (c.c_char_p * 1)(value.encode() if isinstance(value, str) else value)
    elif isinstance(value, (list, tuple)):
        items = list(value)
        out.count, size = len(items), max(1, len(items))
        if all(isinstance(v, (bool, int, np.integer)) for v in items):
            out.type, out.ints = _INTS, (c.c_int64 * size)(*[int(v) for v in items])
        elif all(isinstance(v, (bool, int, float, np.number)) for v in items):
            out.type, out.floats = _FLOATS, (c.c_float * size)(*[float(v) for v in items])
        elif all(isinstance(v, str) for v in items):
            out.type, out.texts = _TEXTS, (c.c_char_p * size)(*[v.encode() for v in items])
        else:
            raise UsageError(f"attribute {name}: a list holds integers, floats or strings only, and this one is {value!r}")
    elif isinstance(value, (np.ndarray, _SharedTensor)):
        tensor = value if isinstance(value, _SharedTensor) else _SharedTensor(value)
        keeps.append(tensor._open())
        out.type, out.tensor = _TENSOR, keeps[-1]
    else:
        raise UsageError(f"attribute {name} has the type {type(value).__name__}; use an int, float, str, a list of one of "
                         "them, or an array")
    return out


_plain: dict[str, Any] = {}  # operators without attributes or options, by name


def _operator(op: str, outputs: int | None, domain: str, version: int, device: Any,
              attributes: dict[str, Any]) -> tuple[Any, list[Any]]:
    simple = not (attributes or outputs or domain or version or device is not None)
    if simple and op in _plain:
        return _plain[op], []
    operator = EagerOperator(op=op.encode(), domain=domain.encode(), version=version, output_count=outputs or 0)
    if device is not None:
        operator.device = str(device).encode()
    keeps: list[Any] = []
    rows = [_attribute(name, value, keeps) for name, value in attributes.items() if value is not None]
    operator.attributes, operator.attribute_count = (Attribute * max(1, len(rows)))(*rows), len(rows)
    operator.attribute_size = c.sizeof(Attribute)
    keeps.append(rows)
    pointer = c.pointer(operator)
    if simple:
        _plain[op] = pointer
    return pointer, keeps


_lock = threading.Lock()
_default_eager: Eager | None = None


def _default() -> Eager:
    global _default_eager
    if _default_eager is None:
        with _lock:
            if _default_eager is None:
                _default_eager = Eager()
    return _default_eager


def _of(inputs: Sequence[Any]) -> Eager:
    for x in inputs:
        if isinstance(x, EagerTensor):
            return x._eager
    return _default()


def tensor(data: Any, *, device: str | Context | None = None) -> EagerTensor:
    """Makes an immutable tensor with a copy of an array on a device; see Eager.tensor."""
    return _default().tensor(data, device=device)


def apply(op: str, *inputs: Any, **options: Any) -> Any:
    """Calls an operator; see Eager.apply."""
    return _of(inputs).apply(op, *inputs, **options)


def synchronize() -> None:
    """Waits for all operators that were called; see Eager.synchronize."""
    _default().synchronize()


def report() -> dict[str, Any]:
    """Returns counters; see Eager.report."""
    return _default().report()


ops = Operators()
