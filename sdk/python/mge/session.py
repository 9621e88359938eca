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
from collections.abc import Mapping as AnyMapping
from typing import Any, Mapping, Sequence

from ._call import new_call
from ._handles import Closable, Handle, Owner, RunControlHandle, SessionHandle, TensorHandle, pointers
from ._inbox import inbox_of
from ._native import ExampleOptions, MemoryFacts, RunOptions, SessionOptions, TrainingOptions, lib, take_text, text, texts
from .errors import CancelledError, Error, UsageError, raise_for
from .runtime import Context, Runtime, Settings, default_runtime, setting_texts
from .tensor import dtype_name
from .values import KINDS, Value, handles_of, to_value

# Runs that take longer wait in a thread of their own, so that Ctrl-C ends them.
_LONG_SECONDS = 0.1
_POLL_SECONDS = 0.05
_CLOSE_POLL_SECONDS = 0.001


@dataclasses.dataclass(frozen=True)
class MemoryUse:
    """Memory in bytes of the latest plan, as planned and as measured, and its steps."""

    planned_peak_bytes: int
    measured_peak_bytes: int
    constant_bytes: int
    steps: int
    reference_steps: int
    staged_bytes: int


class RunControl(Owner):
    """Controls runs in progress: a time limit, a seed, and cancellation from any thread."""

    def __init__(self, timeout: float | None = None, seed: int | None = None, priority: int = 0) -> None:
        handle = RunControlHandle()
        raise_for(lib.mge_run_control_create(c.byref(handle)))
        if timeout is not None:
            lib.mge_run_control_set_timeout(handle, timeout)
        if seed is not None:
            lib.mge_run_control_set_seed(handle, seed)
        if priority:
            lib.mge_run_control_set_priority(handle, priority)
        self._handle = handle

    def cancel(self) -> None:
        """Ends the runs in progress and every later one."""
        lib.mge_run_control_cancel(self._open())

    def reset(self) -> None:
        """Allows runs again."""
        lib.mge_run_control_reset(self._open())


class Session(Closable):
    """A model, loaded from a file or from bytes. Its functions may be called from any thread."""

    _runtime: Runtime
    _call: Any = None  # the compiled form of run(), for a call with arrays only
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    def __init__(self, model: str | os.PathLike[str] | bytes, *, device: str | Context | None = None,
                 threads: int = 0, settings: Settings | None = None, outputs: Sequence[str] | None = None,
                 outputs_on_device: bool = False, skip: Sequence[str] = (), runtime: Runtime | None = None) -> None:
        """`device`: "gpu0,cpu0" is an order of preference, "gpu0+cpu0" splits the model. `settings`: dynamic ones for this
        session. `outputs`: names of values that replace the model's outputs. `outputs_on_device`: runs return mge.Tensor
        objects in the memory of the device instead of arrays."""
        self._load(model, device, threads, settings, outputs, outputs_on_device, skip, runtime, None)
        if not outputs_on_device and self._runtime.quiet:
            self._call = new_call(self._open(), self.inputs, self.outputs)

    def _load(self, model: Any, device: Any, threads: int, settings: Any, outputs: Any, outputs_on_device: bool, skip: Any,
              runtime: Any, training: Any) -> None:
        handle = SessionHandle()
        self._runtime = runtime or default_runtime()
        self._on_device = outputs_on_device
        self._last_seconds = float("inf")
        self._running: list[int] = []  # the threads that are in a run
        self._process = os.getpid()
        options = SessionOptions(threads=threads, outputs_on_device=int(outputs_on_device))
        if device is not None:
            options.device = str(device).encode()
        options.skip, options.skip_count = texts(skip)
        options.settings, options.setting_count = texts(setting_texts(settings))
        if outputs is not None:
            options.outputs, options.output_count = texts(outputs)
        if training is not None:
            options.training = c.pointer(training)
        try:
            if isinstance(model, (bytes, bytearray, memoryview)):
                handle.keeps = c.create_string_buffer(bytes(model), len(model))  # outlives the session
                raise_for(lib.mge_session_load_bytes(self._runtime._open(), handle.keeps, len(model), c.byref(options),
                                                     c.byref(handle)))
            else:
                raise_for(lib.mge_session_load(self._runtime._open(), os.fspath(model).encode(), c.byref(options),
                                               c.byref(handle)))
        finally:
            self._runtime.deliver()
        self.inputs = _values(handle, "input")
        self.outputs = _values(handle, "output")
        self._declared = {v.name: v for v in self.inputs}
        self._names = [v.name for v in self.outputs]
        self._handle = handle

    def close(self) -> None:
        """Releases the model and its memory, when the runs that have begun in other threads have ended. Later runs raise
        ClosedError. May be called again."""
        call, self._call, self._handle = self._call, None, None
        me = threading.get_ident()
        # In a forked child, the runs of the parent's threads never end.
        while any(i != me for i in getattr(self, "_running", ())) or (call is not None and call.running):
            if self._process != os.getpid():
                break
            time.sleep(_CLOSE_POLL_SECONDS)

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<mge.{type(self).__name__}, closed>"
        inputs, outputs = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"<mge.{type(self).__name__} on {', '.join(self.devices)}: ({inputs}) -> ({outputs})>"

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in order of preference."""
        handle = self._open()
        return tuple(text(lib.mge_session_device(handle, i)) for i in range(lib.mge_session_device_count(handle)))

    @property
    def compiled(self) -> bool:
        """Whether run() has a compiled form, for arrays of the declared types."""
        return self._call is not None

    @property
    def threads(self) -> int:
        return int(lib.mge_session_threads(self._open()))

    @property
    def metadata(self) -> dict[str, str]:
        """The entries that the model's author added."""
        handle = self._open()
        return {text(lib.mge_session_metadata_key(handle, i)): text(lib.mge_session_metadata_value(handle, i))
                for i in range(lib.mge_session_metadata_count(handle))}

    # ---- runs

    def run(self, inputs: Any = None, /, *, outputs: Sequence[str] | None = None, control: RunControl | None = None,
            timeout: float | None = None, seed: int | None = None, **named: Any) -> dict[str, Any]:
        """Runs the model. `inputs`: a mapping from names to values, a list of all values in the order of the model, or the value
        of a model's only input; or name them, as in run(x=array). Values are arrays, mge.Tensor objects, which may lie on the session's device, lists for sequences, dicts
        for maps, None for an empty optional. Returns the outputs by name. `outputs`: only these are computed. `timeout`: limit
        in seconds. Ctrl-C cancels the run."""
        call = self._call
        if call is not None and outputs is None and control is None and timeout is None and seed is None:
            result = call(inputs, named)
            if result is not NotImplemented:
                return result  # type: ignore[no-any-return]
        self._open()
        handles = handles_of(self._given(inputs, named), self._declared)
        names = self._names if outputs is None else list(outputs)
        control = _control(control, timeout, seed)
        begin = time.monotonic()
        try:
            main = threading.main_thread()
            # The main thread counts as dead when functions of atexit run: then Python starts no thread.
            if self._last_seconds < _LONG_SECONDS or threading.current_thread() is not main or not main.is_alive():
                return self._run(handles, names, control)
            control = control or RunControl()
            with concurrent.futures.ThreadPoolExecutor(1) as worker:
                future = worker.submit(self._run, handles, names, control)
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
            if call is not None:
                call.is_long = self._last_seconds >= _LONG_SECONDS
            self._runtime.deliver()

    def _given(self, inputs: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the inputs by name."""
        if inputs is None or isinstance(inputs, AnyMapping):
            return {**inputs, **named} if inputs and named else inputs or named
        names = [v.name for v in self.inputs]
        if named:
            raise UsageError(f"give all inputs {names} in one way: by name, or as a mapping or a list")
        if len(names) == 1 and not self._is_list_of_one(inputs):
            return {names[0]: inputs}
        if not isinstance(inputs, (list, tuple)):
            raise UsageError(f"name the inputs {names}, or give a list of them: only that of a model with one input needs neither")
        if len(inputs) != len(names):
            raise UsageError(f"the list has {len(inputs)} values, and the inputs are {names}")
        return dict(zip(names, inputs))

    def _is_list_of_one(self, inputs: Any) -> bool:
        """Returns whether `inputs` is a list with the only input, and not the input itself as a list: its element is an array of the
        rank that the model declares."""
        only = self.inputs[0]
        if only.kind != "tensor" or not isinstance(inputs, (list, tuple)) or len(inputs) != 1:
            return False
        shape = getattr(inputs[0], "shape", None)
        return shape is not None and (only.shape is None or len(shape) == len(only.shape))

    def _in_order(self, handles: Mapping[str, Handle]) -> list[Handle]:
        """Returns all inputs in the order of the model."""
        if self._declared.keys() != handles.keys():
            raise UsageError(f"the inputs are {list(self._declared)}, and these were given: {list(handles)}")
        return [handles[name] for name in self._declared]

    def _run(self, handles: Mapping[str, Handle], names: Sequence[str], control: RunControl | None) -> dict[str, Any]:
        running, me = self._running, threading.get_ident()
        running.append(me)  # before the handle is taken: close() sees one of the two
        try:
            session, options = self._open(), None
            if control is not None:
                options = RunOptions(control=control._open())
            results = (c.c_void_p * max(1, len(names)))()
            if names is self._names and self._declared.keys() == handles.keys():
                given = pointers([handles[name] for name in self._declared])
            else:
                given, options = pointers(list(handles.values())), options or RunOptions()
                options.input_names, _ = texts(handles)
                options.output_names, _ = texts(names)
            status = lib.mge_session_run(session, given, len(handles), results, len(names), options, None)
        finally:
            running.remove(me)
        if status:
            raise_for(status)
        values = [TensorHandle(results[i]) for i in range(len(names))]
        return {name: to_value(value, self._on_device) for name, value in zip(names, values)}

    async def run_async(self, inputs: Any = None, /, *, timeout: float | None = None, seed: int | None = None, priority: int = 0,
                        **named: Any) -> dict[str, Any]:
        """Runs without blocking the event loop. Cancelling the task cancels the run; closing the session does not."""
        session = self._open()
        handles = self._in_order(handles_of(self._given(inputs, named), self._declared))
        control = RunControl(timeout, seed, priority)
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[dict[str, Any]]" = loop.create_future()

        def finish(error: Error | None, outputs: list[TensorHandle]) -> None:
            if future.done():
                return
            try:
                if error is not None:
                    raise error
                future.set_result({name: to_value(v, self._on_device) for name, v in zip(self._names, outputs)})
            except Exception as caught:  # the caller's task gets it
                future.set_exception(caught)

        inbox_of(loop).start(session, pointers(handles), len(handles), len(self._names), control._open(), handles, finish)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            control.cancel()
            try:
                await future
            except CancelledError:
                pass
            raise

    # ---- inputs

    def example_inputs(self, *, seed: int = 0, shapes: Mapping[str, str] | None = None,
                       given: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        """Generates inputs, to try or to time the model: those that are not `given`. `shapes`: of some, such as {"x":
        "1x3x224x224"}; other unknown dimensions are chosen to match. Returns the inputs and the report "mge.inputs/1" on them."""
        session, options, out = self._open(), ExampleOptions(seed=seed), c.c_void_p()
        options.shapes, options.shape_count = texts(setting_texts(shapes))
        handles = handles_of(given or {}, self._declared)
        for name in handles.keys() - self._declared.keys():
            raise UsageError(f"the model has no input '{name}'; its inputs are {list(self._declared)}")
        both = pointers([handles.get(name) for name in self._declared])
        raise_for(lib.mge_session_example_inputs(session, c.byref(options), both, len(self.inputs), c.byref(out)))
        values = {name: handles.get(name) or TensorHandle(both[i]) for i, name in enumerate(self._declared)}
        return {name: to_value(value) for name, value in values.items()}, json.loads(take_text(out))

    def read_input(self, name: str, path: str | os.PathLike[str]) -> Any:
        """Reads a value for an input from a file: .npy, .npz ("file.npz:name"), or .pb, also sequences, optionals and maps."""
        if name not in self._declared:
            raise UsageError(f"the model has no input '{name}'; its inputs are {list(self._declared)}")
        session, out = self._open(), TensorHandle()
        raise_for(lib.mge_session_read_input(session, list(self._declared).index(name), os.fspath(path).encode(), c.byref(out)))
        return to_value(out)

    # ---- reports

    def plan(self, inputs: Any = None, /, *, why: bool = False, **named: Any) -> str:
        """Returns the plan for inputs of these shapes as text: devices, kernels, memory. `why` adds reasons."""
        session = self._open()
        handles = self._in_order(handles_of(self._given(inputs, named), self._declared))
        out = c.c_void_p()
        raise_for(lib.mge_session_plan(session, pointers(handles), len(handles), b"text", int(why), c.byref(out)))
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


def _values(session: Handle, side: str) -> tuple[Value, ...]:
    def get(what: str) -> Any:
        return getattr(lib, f"mge_session_{side}_{what}")

    values = []
    for i in range(get("count")(session)):
        rank = get("rank")(session, i)
        shape = None
        if rank >= 0:
            dims = get("dims")(session, i)
            names = [text(get("dim_name")(session, i, axis)) for axis in range(rank)]
            shape = tuple(dims[axis] if dims[axis] >= 0 else names[axis] or None for axis in range(rank))
        values.append(Value(text(get("name")(session, i)), KINDS[get("kind")(session, i)], dtype_name(get("dtype")(session, i)),
                            shape, KINDS[get("part_kind")(session, i)]))
    return tuple(values)


class Trainer(Session):
    """A model that is trained: each step computes the loss of a batch and updates the parameters."""

    def __init__(self, model: str | os.PathLike[str], *, loss: str = "cross_entropy", loss_output: str = "",
                 optimizer: str = "sgd", momentum: float = 0, betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8,
                 weight_decay: float = 0, clip_norm: float = 0, frozen: Sequence[str] = (), data_parallel: bool = False,
                 device: str | Context | None = None, threads: int = 0, settings: Settings | None = None,
                 runtime: Runtime | None = None) -> None:
        """`loss`: "cross_entropy", "binary_cross_entropy", "mse", "mae", or "output", which the model computes. `loss_output`:
        the name of the output that is compared with the labels. `optimizer`: one that `mge train --help` lists, with the
        numbers that it reads. `frozen`: initializers that keep their values. `data_parallel`: each of the devices, such as
        "gpu0,gpu1", trains on a part of every batch, with the result of one device with the whole batch.
        `clip_norm`: the limit of the norm of all gradients together; 0: none."""
        training = TrainingOptions(loss=loss.encode(), optimizer=optimizer.encode(), momentum=momentum, beta1=betas[0],
                                   beta2=betas[1], epsilon=epsilon, weight_decay=weight_decay, clip_norm=clip_norm,
                                   data_parallel=int(data_parallel))
        if loss_output:
            training.loss_output = loss_output.encode()
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
        handle = self._open()
        return tuple(text(lib.mge_session_parameter_name(handle, i)) for i in range(lib.mge_session_parameter_count(handle)))

    def state(self, name: str) -> Any:
        """Returns a copy of a parameter, or of a value of the optimizer, such as "NAME.mean" of adam."""
        out = TensorHandle()
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


def run(model: str | os.PathLike[str] | bytes, inputs: Any = None, *,
        device: str | Context | None = None, **named: Any) -> dict[str, Any]:
    """Loads a model and runs it once: mge.run("model.onnx", x=array)."""
    with Session(model, device=device) as session:
        return session.run(inputs, **named)
