# SPDX-License-Identifier: Apache-2.0
"""Options of sessions and runs. One that cannot apply is named by a warning; one that would change results is an error."""
from __future__ import annotations

import enum
import warnings
from typing import Any, Iterable

from ..runs import RunControl
from .errors import NotImplemented


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def warn_without_effect(what: str, names: Iterable[str]) -> None:
    """Warns once about the options that have no effect."""
    listed = ", ".join(names)
    if listed:
        warnings.warn(f"{what} without effect in mge.onnxruntime: {listed}", stacklevel=4)


# Their values in ONNX Runtime. Others are accepted, change no result, and have no effect.
_WITHOUT_EFFECT = {"enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True,
                   "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
                   "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0,
                   "log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "use_per_session_threads": True}
# Entries of the configuration that change results, with the values that do not.
_CHANGES_RESULTS = {"session.set_denormal_as_zero": ("0",), "session.load_model_format": ("ONNX", ""),
                    "session.disable_quant_qdq": ("0",), "session.x64quantprecision": ("0",)}


class SessionOptions:
    """Options of a session. `intra_op_num_threads`: the threads of its runs; 0: the runtime's setting. `enable_profiling`: the
    session's end_profiling() writes a trace to a file that begins with `profile_file_prefix`. `use_deterministic_compute`: the
    setting select.deterministic. The other attributes have no effect, and a session warns about those that were changed."""

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    use_per_session_threads: bool

    def __init__(self) -> None:
        self.__dict__.update(_WITHOUT_EFFECT)
        self.intra_op_num_threads = 0
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.optimized_model_filepath = ""
        self._entries: dict[str, str] = {}
        self._dimensions: list[str] = []

    def __setattr__(self, name: str, value: Any) -> None:
        known = self.__dict__ or {name: None}
        if "_dimensions" in known and name not in known:
            raise AttributeError(f"SessionOptions has no attribute '{name}'")
        if name == "optimized_model_filepath" and value:
            raise NotImplemented(f"optimized_model_filepath='{value}': MGE writes no optimized model; leave it out")
        super().__setattr__(name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Adds an entry. Those that would change results raise NotImplemented; the session warns about others."""
        allowed = _CHANGES_RESULTS.get(key)
        if allowed is not None and value not in allowed:
            raise NotImplemented(f"the session option {key}={value} would change results, and MGE does not have it; leave it out")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Returns the value of an entry that was added."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Has no effect: plans are made for the shapes of each run."""
        self._dimensions.append(f"free dimension {name}={size}")

    def add_free_dimension_override_by_denotation(self, name: str, size: int) -> None:
        """Has no effect: plans are made for the shapes of each run."""
        self._dimensions.append(f"free dimension {name}={size}")

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: operators of ONNX Runtime's libraries cannot be loaded."""
        raise NotImplemented(f"{path}: MGE cannot load custom operators of ONNX Runtime; write a backend with the SDK")

    def add_initializer(self, name: str, value: Any) -> None:
        """Raises NotImplemented."""
        raise NotImplemented(f"add_initializer('{name}'): MGE does not replace weights of a model; save the model with them")

    def add_external_initializers(self, names: Any, values: Any) -> None:
        """Raises NotImplemented."""
        raise NotImplemented("add_external_initializers: MGE does not replace weights; use mge.Session(model, files={...})")

    def _without_effect(self) -> list[str]:
        changed = [f"{name}={getattr(self, name)}" for name, usual in _WITHOUT_EFFECT.items() if getattr(self, name) != usual]
        return changed + [f"{key}={value}" for key, value in self._entries.items()
                          if key not in _CHANGES_RESULTS] + self._dimensions


class RunOptions:
    """Options of runs. `terminate = True` ends the runs in progress that have them, and every later one until it is False. A run
    computes only the outputs that it is asked for, as with `only_execute_path_to_fetches`. The run warns about others."""

    _USUAL = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": ""}

    def __init__(self) -> None:
        self.log_severity_level, self.log_verbosity_level, self.logid = -1, 0, ""
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}
        self._control = RunControl()
        self._terminate = False

    @property
    def terminate(self) -> bool:
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if value:
            self._control.cancel()
        else:
            self._control.reset()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Adds an entry, about which the run warns."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Returns the value of an entry that was added."""
        return self._entries[key]

    def add_active_adapter(self, adapter: Any) -> None:
        """Raises NotImplemented: MGE has no LoRA adapters."""
        raise NotImplemented("add_active_adapter: MGE has no LoRA adapters; merge them into the model")

    def _without_effect(self) -> list[str]:
        changed = [f"{name}={getattr(self, name)}" for name, usual in self._USUAL.items() if getattr(self, name) != usual]
        return changed + [f"{key}={value}" for key, value in self._entries.items()]
