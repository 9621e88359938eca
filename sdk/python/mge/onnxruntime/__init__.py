# SPDX-License-Identifier: Apache-2.0
"""MGE with the functions of the package onnxruntime, for scripts that are written for it:

    import mge.onnxruntime as ort
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    probabilities, = session.run(None, {"image": array})

`python -m mge.onnxruntime SCRIPT` runs a script whose libraries import onnxruntime themselves. README.md of this folder lists what
differs.
"""
import sys
import types

from . import errors
from .options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .providers import get_all_providers, get_available_providers, get_device
from .session import InferenceSession, ModelMetadata, set_seed
from .values import IOBinding, NodeArg, OrtValue

__version__ = "1.22.0"  # the version of ONNX Runtime whose functions these are; libraries compare it
SessionIOBinding = IOBinding


def get_version_string() -> str:
    """Returns the version of ONNX Runtime whose functions these are."""
    return __version__


def get_build_info() -> str:
    """Returns what runs the models."""
    from .. import __version__ as version

    return f"MGE {version} (mge.onnxruntime)"


def set_default_logger_severity(level: int) -> None:
    """Warns: MGE's messages are set by the variable MGE_LOG_LEVEL before the process begins."""
    from .options import warn_without_effect

    warn_without_effect("functions", [f"set_default_logger_severity({level}); set MGE_LOG_LEVEL instead"])


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: "str | None" = None) -> None:
    """Returns at once: backends load the driver themselves, and need no other library of a vendor."""


def disable_telemetry_events() -> None:
    """Returns at once: MGE sends nothing."""


def install() -> None:
    """Makes `import onnxruntime`, in all modules of this process, import this package."""
    package = sys.modules[__name__]
    capi = types.ModuleType("onnxruntime.capi")
    state = types.ModuleType("onnxruntime.capi.onnxruntime_pybind11_state")
    collection = types.ModuleType("onnxruntime.capi.onnxruntime_inference_collection")
    for module in (state, collection):
        module.__dict__.update({name: getattr(package, name) for name in __all__})
    state.__dict__.update({name: kind for name, kind in vars(errors).items()
                           if isinstance(kind, type) and kind.__module__ == errors.__name__})
    capi.__dict__.update(onnxruntime_pybind11_state=state, _pybind_state=state, onnxruntime_inference_collection=collection)
    capi.__path__ = []
    package.__dict__["capi"] = capi
    sys.modules.update({"onnxruntime": package, "onnxruntime.capi": capi, state.__name__: state, collection.__name__: collection,
                        "onnxruntime.capi._pybind_state": state})


__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg",
           "OrtValue", "RunOptions", "SessionIOBinding", "SessionOptions", "disable_telemetry_events", "get_all_providers",
           "get_available_providers", "get_build_info", "get_device", "get_version_string", "install", "preload_dlls",
           "set_default_logger_severity", "set_seed"]
