# SPDX-License-Identifier: Apache-2.0
"""The exchange of tensors through DLPack: https://dmlc.github.io/dlpack. Capsules of version 1, and of the versions before."""
from __future__ import annotations

import ctypes as c
from typing import Any, Callable

from ._handles import FenceHandle, Handle, TensorHandle
from ._native import lib
from .errors import UsageError, raise_for

CPU = 1  # a DLDeviceType
_VERSION = (1, 1)
_IS_COPIED = 2  # a bit of the flags
_DEVICES = {2: "cuda", 10: "rocm"}
_DEFAULT_STREAMS = {2: 1, 10: 0}  # by the type of the device, as __dlpack__ takes them


class _DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class _Old(c.Structure):
    """A DLManagedTensor."""


_Old._fields_ = [("tensor", _DLTensor), ("context", c.c_void_p), ("deleter", c.CFUNCTYPE(None, c.POINTER(_Old)))]


class _Versioned(c.Structure):
    """A DLManagedTensorVersioned."""


_Versioned._fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p),
                       ("deleter", c.CFUNCTYPE(None, c.POINTER(_Versioned))), ("flags", c.c_uint64), ("tensor", _DLTensor)]


class _Form:
    """One of the two forms of capsules: its names, its struct, and the library's functions for it."""

    def __init__(self, name: bytes, struct: Any, export: Any, take: Any) -> None:
        self.name, self.used, self.struct, self.export, self.take = name, b"used_" + name, struct, export, take
        self._delete = c.PYFUNCTYPE(None, c.c_void_p)(self._delete_unused)
        self._deleter = dict(struct._fields_)["deleter"]
        self._release = self._deleter(self._release_kept)
        self._kept: dict[int, Any] = {}  # by the address of the struct: the handle, and the library's deleter

    def keep(self, managed: Any, handle: Handle) -> None:
        """Keeps the handle, and with it the array whose memory it uses, until the tensor is released."""
        fields = managed.contents
        self._kept[c.addressof(fields)] = handle, c.cast(fields.deleter, self._deleter)
        fields.deleter = self._release

    def _release_kept(self, managed: Any) -> None:
        _, deleter = self._kept.pop(c.addressof(managed.contents))
        deleter(managed)

    def managed(self, handle: Handle) -> Any:
        out = c.c_void_p()
        raise_for(self.export(handle, c.byref(out)))
        return c.cast(out, c.POINTER(self.struct))

    def capsule(self, managed: Any) -> Any:
        return _new_capsule(c.cast(managed, c.c_void_p), self.name, c.cast(self._delete, c.c_void_p))

    def _delete_unused(self, capsule: int) -> None:
        if _raw_is_valid(capsule, self.name):  # nobody has taken it
            managed = c.cast(_raw_pointer_of(capsule, self.name), c.POINTER(self.struct))
            managed.contents.deleter(managed)


_new_capsule = c.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
_pointer_of = c.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
_is_valid = c.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c.c_int, [c.py_object, c.c_char_p]
_rename = c.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = c.c_int, [c.py_object, c.c_char_p]
_raw_pointer_of = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", c.pythonapi))
_raw_is_valid = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", c.pythonapi))

_NEW_FORM = _Form(b"dltensor_versioned", _Versioned, lib.mge_tensor_to_dlpack, lib.mge_tensor_from_dlpack)
_OLD_FORM = _Form(b"dltensor", _Old, lib.mge_tensor_to_old_dlpack, lib.mge_tensor_from_old_dlpack)


def device_of(handle: Handle) -> tuple[int, int]:
    """Returns what __dlpack_device__ returns."""
    managed = _NEW_FORM.managed(handle)
    place = (managed.contents.tensor.device_type, managed.contents.tensor.device_id)
    managed.contents.deleter(managed)
    return place


def export(handle: Handle, copy_of: Callable[[], Handle], stream: Any, max_version: tuple[int, int] | None,
           dl_device: tuple[int, int] | None, copy: bool | None) -> Any:
    """Returns what __dlpack__ returns. `copy_of` makes a copy in host memory. The runs that write the tensor have ended, so that no
    stream has to wait."""
    here = device_of(handle)
    if here[0] == CPU and stream not in (None, -1):
        raise UsageError(f"stream is {stream}, but memory of the host has no streams; leave it out")
    versioned = max_version is not None and max_version[0] >= 1
    elsewhere = dl_device is not None and tuple(dl_device) != here
    if elsewhere and tuple(dl_device or ()) != (CPU, 0):
        raise BufferError(f"the tensor lies on DLPack's device {here}, and can be copied to (1, 0) only, not to {dl_device}")
    # A copy may be written, and lies in host memory. Before version 1, nothing says that a tensor must not be written.
    needed = elsewhere or (not versioned and lib.mge_tensor_read_only(handle))
    if needed and copy is False:
        raise BufferError("without a copy, the tensor cannot be moved, nor its memory be protected; allow a copy")
    copied = bool(copy or needed)
    if copied and not elsewhere and here[0] != CPU:
        raise BufferError("a copy on the same device is not supported; ask for one in host memory, or use Tensor.to()")
    form = _NEW_FORM if versioned else _OLD_FORM
    managed = form.managed(copy_of() if copied else handle)
    if not copied and handle.keeps is not None:
        form.keep(managed, handle)
    if versioned and copied:
        managed.contents.flags |= _IS_COPIED
    return form.capsule(managed)


def take(source: Any, device: str | None, runtime: Callable[[], Any]) -> TensorHandle:
    """Returns a tensor that shares the memory of an object with __dlpack__."""
    kind, number = source.__dlpack_device__()
    if device is None and kind != CPU:
        if kind not in _DEVICES:
            raise UsageError(f"name the device: DLPack's device type {kind} has no name here")
        device = f"{_DEVICES[kind]}{number}"
    owner = None if device is None else runtime()
    # The producer makes its default stream wait for the work that writes the tensor, and this thread waits for that stream.
    order = {"stream": _DEFAULT_STREAMS[kind]} if kind in _DEFAULT_STREAMS else {}
    try:
        capsule = source.__dlpack__(max_version=_VERSION, **order)
    except TypeError:  # of a library that knows no versions
        capsule = source.__dlpack__(**order)
    if order and device is not None:
        fence, reached = FenceHandle(), c.c_int32()
        raise_for(lib.mge_run_fence_of_stream(owner, device.encode(), 1, c.byref(fence)))
        raise_for(lib.mge_run_fence_wait(fence, -1, c.byref(reached)))
    form = _NEW_FORM if _is_valid(capsule, _NEW_FORM.name) else _OLD_FORM
    out = TensorHandle()
    raise_for(form.take(owner, device and device.encode(), _pointer_of(capsule, form.name), c.byref(out)))
    _rename(capsule, form.used)
    return out
