# SPDX-License-Identifier: Apache-2.0
"""Sessions: models that run on devices."""
from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes as c
import dataclasses
import json
import os
import threading
import time
from typing import Any, Mapping, Sequence

from ._native import DoneFunction, MemoryFacts, SessionOptions, TrainingOptions, lib, take_text, text, texts
from .errors import CancelledError, UsageError, raise_for
from .runtime import Context, Runtime, Settings, default_runtime, setting_texts
from .tensor import Tensor, dtype_name, to_value

_KINDS = ("tensor", "sequence", "optional", "map")
# Runs that take longer wait in a thread of their own, so that Ctrl-C ends them.
_LONG_SECONDS = 0.1
_POLL_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class Value:
    """An input or output of a model. Unknown dimensions are None, or their names; so is the shape if the rank is unknown."""

    name: str
    kind: str
    dtype: str
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{'' if self.shape is None else list(self.shape)}"


@dataclasses.dataclass(frozen=True)
class MemoryUse:
    """Memory in bytes of the latest plan, as planned and as measured, and its steps."""

    planned_peak_bytes: int
    measured_peak_bytes: int
    constant_bytes: int
    steps: int
    reference_steps: int
    staged_bytes: int


class RunControl:
    """Controls runs in progress: a time limit, a seed, and cancellation from any thread."""

    def __init__(self, timeout: float | None = None, seed: int | None = None, priority: int = 0) -> None:
        self._handle = c.c_void_p()
        raise_for(lib.mge_run_control_create(c.byref(self._handle)))
        if timeout is not None:
            lib.mge_run_control_set_timeout(self._handle, timeout)
        if seed is not None:
            lib.mge_run_control_set_seed(self._handle, seed)
        if priority:
            lib.mge_run_control_set_priority(self._handle, priority)

    def cancel(self) -> None:
        """Ends the runs in progress and every later one."""
        lib.mge_run_control_cancel(self._handle)

    def reset(self) -> None:
        """Allows runs again."""
        lib.mge_run_control_reset(self._handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            lib.mge_run_control_release(self._handle)


class Session:
    """A model, loaded from a file or from bytes. Its functions may be called from any thread."""

    def __init__(self, model: str | os.PathLike[str] | bytes, *, device: str | Context | None = None,
                 threads: int = 0, settings: Settings | None = None, outputs: Sequence[str] | None = None,
                 outputs_on_device: bool = False, skip: Sequence[str] = (), runtime: Runtime | None = None) -> None:
        """`device`: "gpu0,cpu0" is an order of preference, "gpu0+cpu0" splits the model. `settings`: dynamic ones for this
        session. `outputs`: names of values that replace the model's outputs. `outputs_on_device`: runs return mge.Tensor
        objects in the memory of the device instead of arrays."""
        self._load(model, device, threads, settings, outputs, outputs_on_device, skip, runtime, None)

    def _load(self, model: Any, device: Any, threads: int, settings: Any, outputs: Any, outputs_on_device: bool, skip: Any,
              runtime: Any, training: Any) -> None:
        self._handle = c.c_void_p()
        self._runtime = runtime or default_runtime()
        self._on_device = outputs_on_device
        self._last_seconds = float("inf")
        options = SessionOptions(threads=threads, outputs_on_device=int(outputs_on_device))
        if device is not None:
            options.device = str(device).encode()
        options.skip, options.skip_count = texts(skip)
        options.settings, options.setting_count = texts(setting_texts(settings))
        if outputs is not None:
            options.outputs, options.output_count = texts(outputs)
        if training is not None:
            options.training = c.pointer(training)
        if isinstance(model, (bytes, bytearray, memoryview)):
            self._bytes = c.create_string_buffer(bytes(model), len(model))  # outlives the session
            status = lib.mge_session_load_bytes(self._runtime._handle, self._bytes, len(model), c.byref(options),
                                                c.byref(self._handle))
        else:
            status = lib.mge_session_load(self._runtime._handle, os.fspath(model).encode(), c.byref(options),
                                          c.byref(self._handle))
        raise_for(status)
        self.inputs = self._values("input")
        self.outputs = self._values("output")

    def close(self) -> None:
        """Releases the model and its memory. May be called again."""
        if getattr(self, "_handle", None):
            lib.mge_session_release(self._handle)
            self._handle = c.c_void_p()

    __del__ = close

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._handle:
            return f"<mge.{type(self).__name__}, closed>"
        inputs, outputs = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"<mge.{type(self).__name__} on {', '.join(self.devices)}: ({inputs}) -> ({outputs})>"

    def _values(self, side: str) -> tuple[Value, ...]:
        def get(what: str) -> Any:
            return getattr(lib, f"mge_session_{side}_{what}")

        values = []
        for i in range(get("count")(self._handle)):
            rank = get("rank")(self._handle, i)
            shape = None
            if rank >= 0:
                dims = get("dims")(self._handle, i)
                names = [text(get("dim_name")(self._handle, i, axis)) for axis in range(rank)]
                shape = tuple(dims[axis] if dims[axis] >= 0 else names[axis] or None for axis in range(rank))
            values.append(Value(text(get("name")(self._handle, i)), _KINDS[get("kind")(self._handle, i)],
                                dtype_name(get("dtype")(self._handle, i)), shape))
        return tuple(values)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in order of preference."""
        count = lib.mge_session_device_count(self._open())
        return tuple(text(lib.mge_session_device(self._handle, i)) for i in range(count))

    @property
    def threads(self) -> int:
        return int(lib.mge_session_threads(self._open()))

    @property
    def metadata(self) -> dict[str, str]:
        """The entries that the model's author added."""
        count = lib.mge_session_metadata_count(self._open())
        return {text(lib.mge_session_metadata_key(self._handle, i)): text(lib.mge_session_metadata_value(self._handle, i))
                for i in range(count)}

    def _open(self) -> c.c_void_p:
        if not self._handle:
            raise UsageError("the session is closed")
        return self._handle

    # ---- runs

    def run(self, inputs: Mapping[str, Any] | None = None, *, outputs: Sequence[str] | None = None,
            control: RunControl | None = None, timeout: float | None = None, seed: int | None = None,
            **named: Any) -> dict[str, Any]:
        """Runs the model on inputs by name: arrays, or mge.Tensor objects, which may lie on the session's device. Returns the
        outputs by name. `outputs`: only these are computed. `timeout`: limit in seconds. Ctrl-C cancels the run."""
        self._open()
        tensors = self._tensors({**(inputs or {}), **named})
        names = [v.name for v in self.outputs] if outputs is None else list(outputs)
        control = _control(control, timeout, seed)
        begin = time.monotonic()
        try:
            if self._last_seconds < _LONG_SECONDS or threading.current_thread() is not threading.main_thread():
                return self._run(tensors, names, control)
            control = control or RunControl()
            with concurrent.futures.ThreadPoolExecutor(1) as worker:
                future = worker.submit(self._run, tensors, names, control)
                try:
                    while True:
                        try:
                            return future.result(_POLL_SECONDS)
                        except concurrent.futures.TimeoutError:
                            if future.done():
                                raise
                except KeyboardInterrupt:
                    control.cancel()
                    raise
        finally:
            self._last_seconds = time.monotonic() - begin

    def _tensors(self, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        kinds = {v.name: v for v in self.inputs}
        tensors = {}
        for name, data in inputs.items():
            if isinstance(data, Tensor):
                tensors[name] = data
                continue
            value = kinds.get(name)
            if isinstance(data, (int, float, bool, list, tuple)) and value is not None and value.dtype not in ("string", ""):
                import numpy as np

                from .tensor import bfloat16_type

                data = np.asarray(data, bfloat16_type() if value.dtype == "bfloat16" else value.dtype)
            tensors[name] = Tensor(data)
        return tensors

    def _in_order(self, tensors: Mapping[str, Tensor]) -> Any:
        """Returns the handles of all inputs in the order of the model."""
        names = [v.name for v in self.inputs]
        if set(names) != set(tensors):
            raise UsageError(f"the inputs are {names}, and these were given: {list(tensors)}")
        return (c.c_void_p * max(1, len(names)))(*[tensors[name]._handle for name in names])

    def _run(self, tensors: Mapping[str, Tensor], names: Sequence[str], control: RunControl | None) -> dict[str, Any]:
        given, count = texts(tensors)
        handles = (c.c_void_p * max(1, count))(*[t._handle for t in tensors.values()])
        wanted, wanted_count = texts(names)
        results = (c.c_void_p * max(1, wanted_count))()
        raise_for(lib.mge_session_run_named(self._handle, given, handles, count, wanted, results, wanted_count,
                                            control and control._handle))
        return {name: to_value(c.c_void_p(results[i]), self._on_device) for i, name in enumerate(names)}

    async def run_async(self, inputs: Mapping[str, Any] | None = None, *, timeout: float | None = None,
                        seed: int | None = None, priority: int = 0, **named: Any) -> dict[str, Any]:
        """Runs without blocking the event loop. Cancelling the task cancels the run."""
        self._open()
        tensors = self._tensors({**(inputs or {}), **named})
        handles = self._in_order(tensors)
        control = RunControl(timeout, seed, priority)
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[dict[str, Any]]" = loop.create_future()

        def finish(error: BaseException | None, values: dict[str, Any]) -> None:
            if not future.done():
                future.set_exception(error) if error else future.set_result(values)

        def done(_: Any, status: Any, outputs: Any, count: int) -> None:
            error, values = None, {}
            try:
                raise_for(status)
                values = {v.name: to_value(c.c_void_p(outputs[i]), self._on_device) for i, v in enumerate(self.outputs)}
            except BaseException as caught:  # the caller's task gets it
                error = caught
            loop.call_soon_threadsafe(finish, error, values)

        callback = DoneFunction(done)
        raise_for(lib.mge_session_run_async(self._handle, handles, len(tensors), control._handle, callback, None))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            control.cancel()
            try:
                await future  # what the run uses must live until its end
            except CancelledError:
                pass
            raise

    # ---- reports

    def plan(self, inputs: Mapping[str, Any] | None = None, *, why: bool = False, **named: Any) -> str:
        """Returns the plan for inputs of these shapes as text: devices, kernels, memory. `why` adds reasons."""
        tensors = self._tensors({**(inputs or {}), **named})
        handles = self._in_order(tensors)
        out = c.c_void_p()
        raise_for(lib.mge_session_plan(self._open(), handles, len(self.inputs), b"text", int(why), c.byref(out)))
        return take_text(out)

    def report(self, schema: str) -> Any:
        """Returns facts: "mge.inspect/1" (the model) or "mge.memory/1"."""
        out = c.c_void_p()
        raise_for(lib.mge_session_report(self._open(), schema.encode(), c.byref(out)))
        return json.loads(take_text(out))

    def memory(self) -> MemoryUse:
        facts = MemoryFacts()
        raise_for(lib.mge_session_memory(self._open(), c.byref(facts)))
        return MemoryUse(**{f.name: getattr(facts, f.name) for f in dataclasses.fields(MemoryUse)})


class Trainer(Session):
    """A model that is trained: each step computes the loss of a batch and updates the parameters."""

    def __init__(self, model: str | os.PathLike[str], *, loss: str = "cross_entropy", output: str = "",
                 optimizer: str = "sgd", momentum: float = 0, beta1: float = 0, beta2: float = 0, epsilon: float = 0,
                 weight_decay: float = 0, clip_norm: float = 0, frozen: Sequence[str] = (), data_parallel: bool = False,
                 device: str | Context | None = None, threads: int = 0, settings: Settings | None = None,
                 runtime: Runtime | None = None) -> None:
        """`loss`: "cross_entropy", "binary_cross_entropy", "mse", "mae", or "output", which the model computes. `output`: the
        name of the output that is compared with the labels. `optimizer`: "sgd", "adam" or "adamw". `frozen`: initializers
        that keep their values. `data_parallel`: each of the devices, such as "gpu0,gpu1", trains on a part of every batch, with
        the result of one device with the whole batch. Zeros stand for the defaults."""
        training = TrainingOptions(loss=loss.encode(), optimizer=optimizer.encode(), momentum=momentum, beta1=beta1,
                                   beta2=beta2, epsilon=epsilon, weight_decay=weight_decay, clip_norm=clip_norm,
                                   data_parallel=int(data_parallel))
        if output:
            training.output = output.encode()
        training.frozen, training.frozen_count = texts(frozen)
        self._load(model, device, threads, settings, None, False, (), runtime, training)

    def step(self, inputs: Mapping[str, Any] | None = None, *, labels: Any = None, learning_rate: float,
             **named: Any) -> float:
        """Trains on one batch. Returns its loss before the update."""
        given = {**(inputs or {}), **named, "learning_rate": learning_rate}
        if labels is not None:
            given["labels"] = labels
        first = self.outputs[0].name
        return float(self.run(given, outputs=[first])[first])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        count = lib.mge_session_parameter_count(self._open())
        return tuple(text(lib.mge_session_parameter_name(self._handle, i)) for i in range(count))

    def state(self, name: str) -> Any:
        """Returns a copy of a parameter, or of a value of the optimizer, such as "NAME.mean" of adam."""
        out = c.c_void_p()
        raise_for(lib.mge_session_read_state(self._open(), name.encode(), c.byref(out)))
        return to_value(out)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model with its present parameters, completely or not at all."""
        raise_for(lib.mge_session_save(self._open(), os.fspath(path).encode()))


def _control(control: RunControl | None, timeout: float | None, seed: int | None) -> RunControl | None:
    if timeout is None and seed is None:
        return control
    if control is not None:
        raise UsageError("timeout and seed belong to the control if there is one")
    return RunControl(timeout, seed)


def run(model: str | os.PathLike[str] | bytes, inputs: Mapping[str, Any] | None = None, *,
        device: str | Context | None = None, **named: Any) -> dict[str, Any]:
    """Loads a model and runs it once: mge.run("model.onnx", x=array)."""
    with Session(model, device=device) as session:
        return session.run(inputs, **named)
