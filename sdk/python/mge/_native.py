# SPDX-License-Identifier: Apache-2.0
"""The functions of libmge (mge/mge.h), found and declared once. Foreign calls release the interpreter's lock."""
from __future__ import annotations

import ctypes as c
import os
import pathlib
import warnings
from typing import Any, Iterable, Sequence

from . import _installed

_NAME = "libmge.so.0"
_FOLDER = pathlib.Path(__file__).resolve().parent


def _chosen() -> str | None:
    """Returns the path that the environment names, if it is usable."""
    for variable in ("MGE_LIBRARY_PATH", "MXNET_LIBRARY_PATH"):
        path = os.environ.get(variable)
        if not path:
            continue
        if not os.path.isabs(path):
            warnings.warn(f"{variable}={path} is ignored, because it is no absolute path", stacklevel=2)
        elif not os.path.isfile(path):
            warnings.warn(f"{variable}={path} is ignored, because there is no such file", stacklevel=2)
        else:
            return path
    return None


def prefixes() -> list[pathlib.Path]:
    """Returns where MGE may be installed: in the package, as the wheel has it, or in the tree that it was installed or built with."""
    folders = [_FOLDER]
    for parent in _FOLDER.parents:
        folders += [parent, parent / "build" / "release"]
    return folders


def _candidates() -> list[str]:
    """Returns where the library may lie; the last place is the system."""
    files = [prefix / "lib" / _NAME for prefix in prefixes()]
    return [str(file) for file in files if file.is_file()] + [_NAME]


def _open() -> c.CDLL:
    chosen = _chosen()
    tried = []
    for path in [chosen] if chosen else _candidates():
        try:
            return c.CDLL(path)
        except OSError as error:
            tried.append(f"  {path}: {error}")
    reason = _installed.problem(_FOLDER) or "libmge cannot be loaded; set MGE_LIBRARY_PATH to its path"
    raise ImportError(f"{reason}\nTried:\n" + "\n".join(tried))


class Context(c.Structure):
    _fields_ = [("device_type", c.c_char * 64), ("device_id", c.c_int32)]


_Texts = c.POINTER(c.c_char_p)


class _Options(c.Structure):
    """A struct that begins with its size."""

    def __init__(self, **values: Any) -> None:
        super().__init__(struct_size=c.sizeof(type(self)), **values)


class RuntimeOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("settings", _Texts), ("setting_count", c.c_size_t), ("command_line", _Texts),
                ("command_line_count", c.c_size_t), ("config_files", _Texts), ("config_file_count", c.c_size_t),
                ("plugin_directories", _Texts), ("plugin_directory_count", c.c_size_t),
                ("no_built_in_plugins", c.c_int32), ("no_environment", c.c_int32), ("log", c.c_void_p),
                ("log_state", c.c_void_p), ("log_release", c.c_void_p), ("log_inbox", c.c_void_p)]


class ParameterGroup(c.Structure):
    _fields_ = [("pattern", c.c_char_p), ("rate", c.c_double), ("weight_decay", c.c_double)]


class TrainingOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("loss", c.c_char_p), ("loss_output", c.c_char_p), ("labels_name", c.c_char_p),
                ("optimizer", c.c_char_p), ("momentum", c.c_double), ("beta1", c.c_double), ("beta2", c.c_double),
                ("epsilon", c.c_double), ("weight_decay", c.c_double), ("clip_norm", c.c_double), ("frozen", _Texts),
                ("frozen_count", c.c_size_t),
                ("data_parallel", c.c_int32), ("reserved", c.c_int32), ("on_nan", c.c_char_p),
                ("clip_value", c.c_double), ("label_smoothing", c.c_double), ("accumulate", c.c_int64), ("facts", c.c_char_p),
                ("class_weights", c.POINTER(c.c_double)), ("class_weight_count", c.c_size_t), ("huber_delta", c.c_double),
                ("groups", c.POINTER(ParameterGroup)), ("group_count", c.c_size_t), ("average_decay", c.c_double),
                ("keep_gradients", c.c_int32), ("reserved2", c.c_int32)]


class Schedule(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("rate", c.c_double), ("warmup", c.c_double),
                ("step_factor", c.c_double), ("step_count", c.c_int64), ("points", c.POINTER(c.c_double)),
                ("point_count", c.c_size_t)]


class SessionOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_char_p), ("threads", c.c_int32),
                ("outputs_on_device", c.c_int32), ("skip", _Texts), ("skip_count", c.c_size_t), ("settings", _Texts),
                ("setting_count", c.c_size_t), ("outputs", _Texts), ("output_count", c.c_size_t),
                ("training", c.POINTER(TrainingOptions)), ("data_folder", c.c_char_p), ("control", c.c_void_p),
                ("progress", c.c_void_p), ("progress_state", c.c_void_p), ("progress_release", c.c_void_p),
                ("progress_inbox", c.c_void_p)]


class ModelFile(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_char_p), ("size", c.c_uint64)]


class ModelSource(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("path", c.c_char_p), ("data", c.c_char_p), ("size", c.c_uint64),
                ("read", c.c_void_p), ("files", c.POINTER(ModelFile)), ("file_count", c.c_size_t),
                ("file_size", c.c_size_t), ("release", c.c_void_p), ("state", c.c_void_p)]


class ExampleOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("seed", c.c_uint64), ("shapes", _Texts), ("shape_count", c.c_size_t),
                ("variant", c.c_int32), ("reserved", c.c_int32)]


class RunOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("input_names", _Texts), ("output_names", _Texts), ("control", c.c_void_p),
                ("after", c.POINTER(c.c_void_p)), ("after_count", c.c_size_t), ("done", c.c_void_p), ("state", c.c_void_p),
                ("inbox", c.c_void_p), ("tag", c.c_uint64), ("native_stream", c.c_void_p)]


class DeviceFacts(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char * 64), ("gpu_name", c.c_char * 64),
                ("device_class", c.c_char * 64), ("backend", c.c_char * 64), ("description", c.c_char * 128),
                ("total_bytes", c.c_uint64), ("free_bytes", c.c_uint64), ("limit_bytes", c.c_uint64),
                ("compute_queues", c.c_uint32), ("usable", c.c_int32)]


class MemoryFacts(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("planned_peak_bytes", c.c_uint64), ("measured_peak_bytes", c.c_uint64),
                ("constant_bytes", c.c_uint64), ("steps", c.c_uint32), ("reference_steps", c.c_uint32),
                ("staged_bytes", c.c_uint64), ("engine_operations", c.c_uint64)]


class ValueFacts(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("kind", c.c_int32), ("part_kind", c.c_int32),
                ("dtype", c.c_int32), ("rank", c.c_int32), ("dims", c.POINTER(c.c_int64)), ("dim_names", _Texts)]


class Attribute(c.Structure):
    _fields_ = [("name", c.c_char_p), ("type", c.c_int32), ("reserved", c.c_int32), ("ints", c.POINTER(c.c_int64)),
                ("floats", c.POINTER(c.c_float)), ("texts", _Texts), ("tensor", c.c_void_p), ("count", c.c_size_t)]


class EagerOperator(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("op", c.c_char_p), ("domain", c.c_char_p), ("version", c.c_int32),
                ("reserved", c.c_int32), ("attributes", c.POINTER(Attribute)), ("attribute_count", c.c_size_t),
                ("attribute_size", c.c_size_t),
                ("output_count", c.c_size_t), ("device", c.c_char_p)]


class GeneratorOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_char_p), ("threads", c.c_int32), ("reserved", c.c_int32),
                ("settings", _Texts), ("setting_count", c.c_size_t), ("max_length", c.c_int64)]


class GeneratorFacts(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("vocabulary", c.c_int64), ("max_length", c.c_int64), ("weight_bytes", c.c_uint64),
                ("cache_bytes_per_token", c.c_uint64), ("cache_bytes", c.c_uint64), ("end_tokens", c.POINTER(c.c_int64)),
                ("end_token_count", c.c_size_t), ("device", c.c_char_p), ("threads", c.c_int32), ("reserved", c.c_int32)]


class BatchOptions(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("device", c.c_char_p), ("threads", c.c_int32), ("reserved", c.c_int32),
                ("settings", _Texts), ("setting_count", c.c_size_t), ("max_length", c.c_int64), ("cache_bytes", c.c_uint64)]


class BatchToken(c.Structure):
    _fields_ = [("sequence", c.c_int64), ("id", c.c_int64), ("end", c.c_int32), ("reserved", c.c_int32)]


class Sampling(_Options):
    _fields_ = [("struct_size", c.c_size_t), ("repetition_penalty", c.c_double), ("temperature", c.c_double),
                ("top_k", c.c_int64), ("top_p", c.c_double), ("min_p", c.c_double), ("seed", c.c_uint64)]


lib = _open()

_p, _s, _i32, _i64, _u64, _size, _f64 = c.c_void_p, c.c_char_p, c.c_int32, c.c_int64, c.c_uint64, c.c_size_t, c.c_double
_out, _ps = c.POINTER(c.c_void_p), c.POINTER(c.c_char_p)
_dims = c.POINTER(c.c_int64)
# Functions by what they return. A status is null, or an error that raise_for() raises and releases.
_FUNCTIONS: dict[Any, dict[str, list[Any]]] = {
    _s: {"version": [], "status_text": [_p], "status_title": [_p], "status_what": [_p], "status_where": [_p],
         "status_fix": [_p], "dtype_name": [_i32], "tensor_device": [_p],
         "session_metadata_key": [_p, _size], "session_metadata_value": [_p, _size], "session_device": [_p, _size], "session_parameter_name": [_p, _size],
         "session_state_name": [_p, _size], "eager_tensor_device": [_p]},
    _i32: {"inbox_descriptor": [_p], "inbox_take_run": [_p, c.POINTER(_u64), _out, _out, _size, c.POINTER(_size)],
           "inbox_take_message": [_p, c.POINTER(_i32), _out],
           "inbox_take_progress": [_p, _out, c.POINTER(_u64), c.POINTER(_u64)], "status_code": [_p], "status_exit_code": [_p],
           "status_id": [_p], "tensor_dtype": [_p], "tensor_kind": [_p], "tensor_page_locked": [_p], "tensor_read_only": [_p],
           "num_gpus": [_p], "session_threads": [_p], "eager_tensor_state": [_p]},
    _size: {"string_size": [_p], "tensor_rank": [_p], "tensor_part_count": [_p], "session_input_count": [_p],
            "session_output_count": [_p], "session_metadata_count": [_p], "session_device_count": [_p],
            "session_parameter_count": [_p], "session_state_count": [_p], "runtime_device_count": [_p]},
    _u64: {"tensor_elements": [_p], "tensor_bytes": [_p]},
    _dims: {"tensor_dims": [_p], "generator_tokens": [_p, c.POINTER(_size)]},
    _p: {
        # pointers
        "string_data": [_p], "tensor_data": [_p], "tensor_address": [_p],
        # statuses
        "runtime_create": [_p, _out], "runtime_set": [_p, _s, _s], "runtime_get": [_p, _s, _out],
        "runtime_set_default_device": [_p, _s],
        "runtime_set_execution_strategy": [_p, _s], "runtime_report": [_p, _s, _out],
        "runtime_device": [_p, _size, c.POINTER(DeviceFacts)], "collective_id": [_p, _s, _out],
        "plugins_verify": [c.POINTER(RuntimeOptions), _s, _out], "plugins_install": [c.POINTER(RuntimeOptions), _s, _out],
        "plugins_remove": [c.POINTER(RuntimeOptions), _s, _out],
        "plugins_quarantine": [c.POINTER(RuntimeOptions), _s, _s], "plugins_end_quarantine": [c.POINTER(RuntimeOptions), _s],
        "model_report": [_p, _s, _s, _out], "context_create": [_s, _i32, c.POINTER(Context)],
        "context_parse": [_s, c.POINTER(Context)], "device_push": [_s], "device_pop": [],
        "context_current": [_p, c.POINTER(Context)], "device_empty_cache": [_p, _s],
        "gpu_memory_info": [_p, _i32, c.POINTER(_u64), c.POINTER(_u64)],
        "tensor_create": [_i32, _dims, _size, _out], "tensor_create_on": [_p, _s, _i32, _dims, _size, _out],
        "tensor_wrap": [_i32, _dims, _size, _p, _u64, _out],
        "tensor_create_strings": [_dims, _size, _s, _p, _out], "tensor_read_strings": [_p, _p, _p, _u64],
        "value_create": [_i32, _out, _size, _out], "value_table": [_p, _out, _out],
        "tensor_read": [_s, _out], "tensor_write_npy": [_p, _s], "tensor_copy": [_p, _p],
        "tensor_read_npy_bytes": [_s, _u64, _out], "tensor_to_dlpack": [_p, _out], "tensor_from_dlpack": [_p, _s, _p, _out],
        "tensor_to_old_dlpack": [_p, _out], "tensor_from_old_dlpack": [_p, _s, _p, _out], "tensor_part": [_p, _size, _out],
        "session_load": [_p, _s, _p, _out], "session_load_from": [_p, _p, _p, _out],
        "session_run": [_p, _out, _size, _out, _size, c.POINTER(RunOptions), _out],
        "inbox_create": [_out],
        "session_example_inputs": [_p, c.POINTER(ExampleOptions), _out, _size, _out],
        "session_read_input": [_p, _size, _s, _out], "session_read_output": [_p, _size, _s, _out],
        "session_read_state": [_p, _s, _out], "session_write_state": [_p, _s, _p], "session_save": [_p, _s], "session_save_for_inference": [_p, _s],
        "session_save_checkpoint": [_p, _s, _s], "session_load_checkpoint": [_p, _s, _out], "session_evaluation": [_p, _out],
        "schedule_rate": [c.POINTER(Schedule), _f64, c.POINTER(_f64)],
        "session_input": [_p, _size, c.POINTER(ValueFacts)], "session_output": [_p, _size, c.POINTER(ValueFacts)],
        "session_plan": [_p, _out, _size, _s, _i32, _out], "session_report": [_p, _s, _out],
        "session_memory": [_p, c.POINTER(MemoryFacts)],
        "session_plan_measured": [_p, _out, _size, _p, _s, _i32, _out], "run_control_create": [_out],
        "run_control_overdue": [_p, c.POINTER(_f64), _out], "run_fence_wait": [_p, _f64, c.POINTER(_i32)],
        "run_fence_of_stream": [_p, _s, _p, _out],
        "profile_create": [_out], "profile_report": [_p, _s, _out],
        "generator_load": [_p, _s, c.POINTER(GeneratorOptions), _out], "generator_describe": [_p, c.POINTER(GeneratorFacts)],
        "generator_sampling": [_p, c.POINTER(Sampling)], "generator_set_sampling": [_p, c.POINTER(Sampling)],
        "generator_set_source": [_p, _ps, _out, _size, _p],
        "generator_append": [_p, _dims, _size], "generator_next": [_p, _p, c.POINTER(_i64), c.POINTER(_i32)],
        "generator_logits": [_p, _p, c.POINTER(c.POINTER(c.c_float)), c.POINTER(_size)], "generator_rewind": [_p, _size],
        "batch_load": [_p, _s, c.POINTER(BatchOptions), _out],
        "batch_add": [_p, _dims, _size, c.POINTER(Sampling), _i64, c.POINTER(_i64)],
        "batch_step": [_p, _p, c.POINTER(c.POINTER(BatchToken)), c.POINTER(_size)],
        "batch_tokens": [_p, _i64, c.POINTER(_dims), c.POINTER(_size)], "batch_remove": [_p, _i64],
        "eager_create": [_p, _out], "eager_put": [_p, _p, _s, _out], "eager_host_operand": [_p, _p, _out],
        "eager_apply": [_p, c.POINTER(EagerOperator), _out, _size, _out, _size, c.POINTER(_size)],
        "eager_synchronize": [_p], "eager_report": [_p, _s, _out], "eager_tensor_get": [_p, _out],
        "eager_tensor_wait": [_p],
        "eager_tensor_type": [_p, c.POINTER(_i32), c.POINTER(_i32), c.POINTER(_size), c.POINTER(_dims)],
        "eager_tensor_drop": [_p], "eager_tensor_swap_out": [_p], "eager_tensor_swap_in": [_p], "eager_tape_create": [_p, _out],
        "eager_tape_start": [_p], "eager_tape_stop": [_p], "eager_tape_watch": [_p, _p],
        "eager_tape_gradient": [_p, _p, _p, _out, _size, _out]},
    Context: {"tensor_context": [_p]},
    None: {"status_release": [_p], "string_release": [_p], "runtime_release": [_p], "tensor_release": [_p],
           "tensor_set_read_only": [_p], "inbox_release": [_p], "session_release": [_p], "run_control_release": [_p],
           "run_control_set_timeout": [_p, _f64], "run_control_set_seed": [_p, _u64], "run_control_set_priority": [_p, _i32],
           "run_control_set_profile": [_p, _p], "run_control_cancel": [_p], "run_control_reset": [_p],
           "run_fence_release": [_p], "profile_release": [_p], "profile_reset": [_p], "eager_release": [_p], "generator_release": [_p], "batch_release": [_p],
           "eager_tensor_release": [_p], "eager_tape_release": [_p]},
}
for _result, _group in _FUNCTIONS.items():
    for _name, _parameters in _group.items():
        _function = getattr(lib, "mge_" + _name)
        _function.restype, _function.argtypes = _result, _parameters


def text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def take_text(handle: c.c_void_p) -> str:
    """Returns the text of a mge_string, and releases it."""
    try:
        return c.string_at(lib.mge_string_data(handle), lib.mge_string_size(handle)).decode("utf-8", "replace")
    finally:
        lib.mge_string_release(handle)


def texts(values: Iterable[str]) -> tuple[Any, int]:
    """Returns an array of C strings and its length."""
    encoded = [v.encode() for v in values]
    return (c.c_char_p * max(1, len(encoded)))(*encoded), len(encoded)


def dims_of(shape: Sequence[int]) -> Any:
    return (c.c_int64 * max(1, len(shape)))(*shape)
