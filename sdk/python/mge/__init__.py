# SPDX-License-Identifier: Apache-2.0
"""MGE, a runtime for ONNX models.

    import mge
    session = mge.Session("model.onnx", device="gpu0,cpu0")
    result = session.run(image=array)["probabilities"]
"""
from . import data, eager
from ._native import lib as _lib
from ._native import text as _text
from .errors import (CancelledError, ClosedError, DeviceError, Error, FileError, InvalidError, OutOfMemoryError,
                     TimeLimitError, UnsupportedError, UsageError)
from .runtime import (Context, Runtime, cpu, cpu_pinned, current_context, default_runtime, devices, gpu, gpu_memory_info,
                      num_gpus, set_default_device, set_execution_strategy)
from .session import MemoryUse, RunControl, Session, Trainer, run
from .tensor import Tensor
from .values import MapSequence, Value

__version__ = _text(_lib.mge_version())
__all__ = ["CancelledError", "ClosedError", "Context", "DeviceError", "Error", "FileError", "InvalidError", "MapSequence",
           "MemoryUse", "OutOfMemoryError", "RunControl", "Runtime", "Session", "Tensor", "TimeLimitError", "Trainer",
           "UnsupportedError", "UsageError", "Value", "cpu", "cpu_pinned", "current_context", "data", "default_runtime", "devices", "eager", "gpu", "gpu_memory_info",
           "num_gpus", "run", "set_default_device", "set_execution_strategy"]
