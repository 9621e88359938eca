# SPDX-License-Identifier: Apache-2.0
"""MGE, a runtime for ONNX models.

    import mge
    session = mge.Session("model.onnx", device="gpu0,cpu0")
    result = session.run(image=array)["probabilities"]
"""
from . import context, data, distributed, eager, plugins, schedules
from ._native import lib, text
from .context import Context, cpu, cpu_pinned, current_context, gpu, gpu_memory_info, num_gpus
from .errors import (CancelledError, ClosedError, DeviceError, Error, FileError, InvalidError, OutOfMemoryError,
                     TimeLimitError, UnsupportedError, UsageError)
from .generate import Batch, BatchToken, Generator, Sampling
from .runtime import Device, Runtime, default_runtime, devices, set_default_device, set_execution_strategy
from .runs import EnqueuedRun, Profile, RunControl
from .session import MemoryUse, Session, States, run
from .tensor import Tensor
from .training import Trainer
from .values import MapSequence, Value

__version__ = text(lib.mge_version())
del lib, text
__all__ = ["Batch", "BatchToken", "CancelledError", "ClosedError", "Context", "Device", "DeviceError", "EnqueuedRun", "Error", "FileError",
           "Generator", "InvalidError", "MapSequence", "MemoryUse", "OutOfMemoryError", "Profile", "RunControl", "Runtime", "Sampling", "Session",
           "States", "Tensor", "TimeLimitError", "Trainer", "UnsupportedError", "UsageError", "Value", "context", "cpu",
           "cpu_pinned", "current_context", "data", "default_runtime", "devices", "distributed", "eager", "gpu", "gpu_memory_info",
           "num_gpus", "plugins", "run", "schedules", "set_default_device", "set_execution_strategy"]
