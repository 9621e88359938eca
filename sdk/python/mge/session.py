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
import weakref
from collections.abc import Mapping as AnyMapping
from collections.abc import MutableMapping as AnyMutableMapping
from typing import Any, BinaryIO, Callable, ClassVar, Iterator, Mapping, Sequence

from ._call import new_call
from ._handles import Closable, FenceHandle, Handle, SessionHandle, TensorHandle, pointers
from ._inbox import Progress, inbox_of
from ._native import (ExampleOptions, MemoryFacts, ModelFile, ModelSource, RunOptions, SessionOptions, ValueFacts, lib,
                      take_text, text, texts)
from ._pages import PlanText, framed_or_none
from .context import Context
from .errors import CancelledError, Error, UsageError, raise_for
from .runs import POLL_SECONDS, EnqueuedRun, Memory, Profile, RunControl, control_of
from .runtime import Runtime, Settings, default_runtime, setting_texts
from .tensor import Tensor, dtype_name, tensor_of
from .values import KINDS, Value, handles_of, memory_of, to_value, written

# Runs that take longer wait in a thread of their own, so that Ctrl-C ends them.
_LONG_SECONDS = 0.1
_CLOSE_POLL_SECONDS = 0.001


@dataclasses.dataclass(frozen=True)
class MemoryUse:
    """Memory in bytes of the latest plan, as planned and as measured, its steps, and how many operations of the engine ran them in
    the latest run. A notebook shows a picture of the buffers, as long as the session lives."""

    planned_peak_bytes: int
    measured_peak_bytes: int
    constant_bytes: int
    steps: int
    reference_steps: int
    staged_bytes: int
    engine_operations: int
    _session: ClassVar[Callable[[], "Session | None"]] = staticmethod(lambda: None)  # Session.memory() sets its own

    def _repr_html_(self) -> str | None:
        session = self._session()
        return None if session is None else framed_or_none(lambda: str(session.report("memory.html")))

    def __getstate__(self) -> dict[str, int]:
        return dataclasses.asdict(self)


class States(AnyMutableMapping[str, Any]):
    """The values that stay in a session from run to run, by name: the parameters of a Trainer, and values of its optimizer, such as
    "NAME.mean" of adam. Reading one copies it to an array, and assignment copies an array to it. A parameter of 16 bits is the
    rounding of the state "NAME.master": assign both."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def _names(self) -> list[str]:
        handle = self._session._open()
        return [text(lib.mge_session_state_name(handle, i)) for i in range(lib.mge_session_state_count(handle))]

    def _read(self, name: str) -> TensorHandle:
        out = TensorHandle()
        raise_for(lib.mge_session_read_state(self._session._open(), name.encode(), c.byref(out)))
        return out

    def __getitem__(self, name: str) -> Any:
        return to_value(self._read(name))

    def __setitem__(self, name: str, value: Any) -> None:
        session = self._session._open()
        handle = value._open() if isinstance(value, Tensor) else tensor_of(value, lib.mge_tensor_dtype(self._read(name)))
        raise_for(lib.mge_session_write_state(session, name.encode(), handle))

    def __delitem__(self, name: str) -> None:
        raise UsageError(f"the state '{name}' belongs to the model; it can be changed, but not removed")

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return int(lib.mge_session_state_count(self._session._open()))


class Session(Closable):
    """A model, loaded from a file, from bytes, or from an object with read(). Its functions may be called from any thread."""

    _runtime: Runtime
    _arguments: dict[str, Any] | None = None  # of the constructor, for copies
    _call: Any = None  # the compiled form of run(), for a call with arrays only
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    def __init__(self, model: str | os.PathLike[str] | bytes | BinaryIO, *, device: str | Context | None = None,
                 threads: int | None = None, settings: Settings | None = None, outputs: Sequence[str] | None = None,
                 outputs_on_device: bool = False, skip: Sequence[str] = (), runtime: Runtime | None = None,
                 data_folder: str | os.PathLike[str] | None = None, files: Mapping[str, bytes] | None = None,
                 progress: Callable[[str, int, int], None] | None = None) -> None:
        """`device`: "gpu0,cpu0" is an order of preference, "gpu0+cpu0" splits the model. `threads`: of its runs; by default those
        of the runtime's settings. `settings`: dynamic ones for this session. `outputs`: names of values that replace the model's
        outputs. `outputs_on_device`: runs return mge.Tensor objects in the memory of the device instead of arrays. The model's
        external data is in `files`, by name, or in `data_folder`, or in the folder of the model's file. `progress(stage, done, total)`
        is called while the model is loaded, and while runs plan: in a thread of Python, or by the call that loads or runs."""
        self._load(model, device, threads, settings, outputs, outputs_on_device, skip, runtime, None, data_folder, files, progress)
        self._arguments = dict(device=device, threads=threads, settings=settings, outputs=outputs,
                               outputs_on_device=outputs_on_device, skip=skip, data_folder=data_folder, files=files)
        if not outputs_on_device and self._runtime.quiet:
            self._call = new_call(self._open(), self.inputs, self.outputs)

    def _load(self, model: Any, device: Any, threads: int | None, settings: Any, outputs: Any, outputs_on_device: bool, skip: Any,
              runtime: Any, training: Any, data_folder: Any, files: Any, progress: Any) -> None:
        handle = SessionHandle()
        self._begin(runtime or default_runtime(), outputs_on_device)
        options = SessionOptions(threads=threads or 0, outputs_on_device=int(outputs_on_device))
        self._progress = None if progress is None else Progress(progress)
        if self._progress is not None:
            options.progress_inbox = self._progress.handle
        if device is not None:
            options.device = str(device).encode()
        options.skip, options.skip_count = texts(skip)
        options.settings, options.setting_count = texts(setting_texts(settings))
        if outputs is not None:
            options.outputs, options.output_count = texts(outputs)
        if training is not None:
            options.training = c.pointer(training)
        if data_folder is not None:
            options.data_folder = os.fspath(data_folder).encode()
        source = ModelSource(file_size=c.sizeof(ModelFile))
        if hasattr(model, "read"):
            model = model.read()
        if isinstance(model, (bytes, bytearray, memoryview)):
            model = bytes(model)
            source.data, source.size = model, len(model)
        else:
            source.path = os.fspath(model).encode()
        pieces = {name: bytes(data) for name, data in (files or {}).items()}
        source.file_count = len(pieces)
        source.files = (ModelFile * len(pieces))(*[ModelFile(name.encode(), data, len(data)) for name, data in pieces.items()])
        handle.keeps = (model, pieces)  # outlive the session
        self._model = model if isinstance(model, bytes) else os.path.abspath(os.fspath(model))
        try:
            raise_for(lib.mge_session_load_from(self._runtime._open(), c.byref(source), c.byref(options), c.byref(handle)))
        finally:
            self._deliver()
        self._own(handle)

    @classmethod
    def _of(cls, handle: SessionHandle, runtime: Runtime, outputs_on_device: bool) -> "Session":
        """Returns an object for a session of the library."""
        session = cls.__new__(cls)
        session._begin(runtime, outputs_on_device)
        session._own(handle)
        return session

    def _begin(self, runtime: Runtime, outputs_on_device: bool) -> None:
        self._runtime = runtime
        self._on_device = outputs_on_device
        self._progress: Progress | None = None
        self._last_seconds = float("inf")
        self._running: list[int] = []  # the threads that are in a run
        self._process = os.getpid()

    def _own(self, handle: SessionHandle) -> None:
        self.inputs = _values(handle, lib.mge_session_input_count(handle), lib.mge_session_input)
        self.outputs = _values(handle, lib.mge_session_output_count(handle), lib.mge_session_output)
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

    def __reduce__(self) -> Any:
        """A copy, also in another process, loads the model again: from its bytes or from the path of its file. It uses the default
        runtime of its process, and has no `progress`."""
        self._open()
        if self._arguments is None:
            raise UsageError("the evaluation of a trainer cannot be copied; copy the trainer, and take the copy's")
        arguments = {**self._arguments}
        if arguments["device"] is not None:
            arguments["device"] = str(arguments["device"])
        return _load_copy, (type(self), self._model, arguments, self._states_to_copy())

    def _states_to_copy(self) -> dict[str, Any]:
        return {}

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

    @property
    def states(self) -> States:
        """The values that stay in the session from run to run."""
        return States(self)

    def _deliver(self) -> None:
        """Calls the functions of the program with the messages and the progress that have come so far."""
        self._runtime.deliver()
        if self._progress is not None:
            self._progress.deliver()

    # ---- runs

    def run(self, inputs: Any = None, /, *, out: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None,
            control: RunControl | None = None, timeout: float | None = None, seed: int | None = None, stream: int | None = None,
            **named: Any) -> dict[str, Any]:
        """Runs the model. `inputs`: a mapping from names to values, a list of all values in the order of the model, or the value
        of a model's only input; or name them, as in run(x=array). Values are arrays, mge.Tensor objects, which may lie on the
        session's device, lists for sequences, dicts for maps, None for an empty optional. Returns the outputs by name. `outputs`:
        only these are computed. `out`: memory for outputs, by name, to which the run writes: C-contiguous arrays of the output's
        type and shape, or mge.Tensor objects; the same objects are returned. One may be an input, too, which the result then
        replaces: the cache of a decoder stays where it is. `timeout`: limit in seconds. `stream`: a stream of
        the program on the session's first device, as an int such as torch's `cuda_stream` (0: the default stream); the run begins
        when the work on it has ended. Ctrl-C cancels the run."""
        call = self._call
        if (call is not None and out is None and outputs is None and control is None and timeout is None and seed is None
                and stream is None):
            result = call(inputs, named)
            if result is not NotImplemented:
                return result  # type: ignore[no-any-return]
        self._open()
        handles = handles_of(self._given(inputs, named), self._declared)
        names = self._names if outputs is None else list(outputs)
        memory = self._memory_of(out, names)
        control = control_of(control, timeout, seed)
        begin = time.monotonic()
        try:
            main = threading.main_thread()
            # The main thread counts as dead when functions of atexit run: then Python starts no thread.
            if self._last_seconds < _LONG_SECONDS or threading.current_thread() is not main or not main.is_alive():
                return self._run(handles, names, control, memory, stream)
            control = control or RunControl()
            with concurrent.futures.ThreadPoolExecutor(1) as worker:
                future = worker.submit(self._run, handles, names, control, memory, stream)
                try:
                    while True:
                        try:
                            return future.result(POLL_SECONDS)
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
            self._deliver()

    def enqueue(self, inputs: Any = None, /, *, out: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None,
                control: RunControl | None = None, after: Sequence[EnqueuedRun] = (), stream: int | None = None,
                **named: Any) -> EnqueuedRun:
        """Starts a run without waiting for devices. `after`: runs that must have ended before this one begins; the device waits for
        them. `stream`: as for run(); work that comes on it later waits for the run. The other arguments are those of run(); `out`
        has memory of devices, or page-locked. A model that is not computed by the queues of devices alone runs to its end."""
        session = self._open()
        handles = handles_of(self._given(inputs, named), self._declared)
        names = self._names if outputs is None else list(outputs)
        given, options, fence = pointers(list(handles.values())), RunOptions(), FenceHandle()
        options.input_names, _ = texts(handles)
        options.output_names, _ = texts(names)
        if control is not None:
            options.control = control._open()
        fences = [run._open() for run in after]
        options.after, options.after_count = pointers(fences), len(fences)
        options.native_stream = _native_stream(stream)
        memory = self._memory_of(out, names)
        results = memory.results(names)
        try:
            raise_for(lib.mge_session_run(session, given, len(handles), results, len(names), options, c.byref(fence)))
        finally:
            self._deliver()
        return EnqueuedRun(fence, memory.handles_of(names, results), memory, (session, handles), self._on_device)

    def _memory_of(self, out: Mapping[str, Any] | None, names: Sequence[str]) -> Memory:
        declared = {v.name: v for v in self.outputs}
        for name in out or ():
            if name not in names:
                raise UsageError(f"out['{name}']: the run computes the outputs {list(names)}")
        return Memory({name: (data, memory_of(name, data, declared[name])) for name, data in (out or {}).items()})

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

    def _run(self, handles: Mapping[str, Handle], names: Sequence[str], control: RunControl | None, memory: Memory,
             stream: int | None) -> dict[str, Any]:
        running, me = self._running, threading.get_ident()
        running.append(me)  # before the handle is taken: close() sees one of the two
        try:
            session, options = self._open(), None
            if control is not None or stream is not None:
                options = RunOptions(control=control and control._open(), native_stream=_native_stream(stream))
            results = memory.results(names)
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
        return memory.values(memory.handles_of(names, results), self._on_device)

    async def run_async(self, inputs: Any = None, /, *, out: Mapping[str, Any] | None = None, timeout: float | None = None,
                        seed: int | None = None, priority: int = 0, **named: Any) -> dict[str, Any]:
        """Runs without blocking the event loop. `out`: as for run(). Cancelling the task cancels the run; closing the session does
        not."""
        session = self._open()
        memory = self._memory_of(out, self._names)
        handles = self._in_order(handles_of(self._given(inputs, named), self._declared))
        control = RunControl(timeout=timeout, seed=seed, priority=priority)
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[dict[str, Any]]" = loop.create_future()

        def finish(error: Error | None, outputs: list[TensorHandle]) -> None:
            if future.done():
                return
            try:
                if error is not None:
                    raise error
                future.set_result(memory.values(dict(zip(self._names, outputs)), self._on_device))
            except Exception as caught:  # the caller's task gets it
                future.set_exception(caught)

        inbox_of(loop).start(session, pointers(handles), len(handles), memory.results(self._names), len(self._names),
                             control._open(), (handles, memory), finish)
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

    def example_inputs(self, *, seed: int = 0, shapes: Mapping[str, str] | None = None, variant: int = 0,
                       given: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        """Generates inputs, to try or to time the model: those that are not `given`. `shapes`: of some, such as {"x":
        "1x3x224x224"}; other unknown dimensions are chosen to match. `variant`: 0, floats in [-1, 1); 1, in (0, 1]; 2, all are 1.
        Returns the inputs and the report "mge.inputs/1" on them."""
        session, options, out = self._open(), ExampleOptions(seed=seed, variant=variant), c.c_void_p()
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

    def read_output(self, name: str, path: str | os.PathLike[str]) -> Any:
        """Reads a value of an output from a file, as read_input does: what a run should return."""
        if name not in self._names:
            raise UsageError(f"the model has no output '{name}'; its outputs are {self._names}")
        session, out = self._open(), TensorHandle()
        raise_for(lib.mge_session_read_output(session, self._names.index(name), os.fspath(path).encode(), c.byref(out)))
        return to_value(out)

    # ---- reports

    def plan(self, inputs: Any = None, /, *, why: bool = False, profile: Profile | None = None, **named: Any) -> PlanText:
        """Returns the plan for inputs of these shapes as text: devices, kernels, memory. `why` adds reasons, `profile` the times that
        it has measured. A notebook shows a picture of it; html() returns that."""
        self._open()  # a closed session is an error before wrong inputs
        handles = self._in_order(handles_of(self._given(inputs, named), self._declared))

        def shown(form: bytes) -> str:
            session, given, out = self._open(), pointers(handles), c.c_void_p()
            if profile is None:
                raise_for(lib.mge_session_plan(session, given, len(handles), form, int(why), c.byref(out)))
            else:
                raise_for(lib.mge_session_plan_measured(session, given, len(handles), profile._open(), form, int(why),
                                                        c.byref(out)))
            return take_text(out)

        return PlanText._of(shown(b"text"), lambda: shown(b"html"))

    def report(self, schema: str) -> Any:
        """Returns facts: "mge.inspect/1" (the model) or "mge.memory/1". "memory.html" is a page for a browser, as text."""
        out = c.c_void_p()
        raise_for(lib.mge_session_report(self._open(), schema.encode(), c.byref(out)))
        return take_text(out) if schema == "memory.html" else json.loads(take_text(out))

    def memory(self) -> MemoryUse:
        facts = MemoryFacts()
        raise_for(lib.mge_session_memory(self._open(), c.byref(facts)))
        use = MemoryUse(**{f.name: getattr(facts, f.name) for f in dataclasses.fields(MemoryUse)})
        object.__setattr__(use, "_session", weakref.ref(self))
        return use


def _load_copy(kind: Any, model: Any, arguments: Mapping[str, Any], states: Mapping[str, Any]) -> Any:
    session = kind(model, **arguments)
    for name, value in states.items():
        session.states[name] = value
    return session


def _native_stream(stream: int | None) -> int | None:
    """Returns a stream as the library knows it: other libraries call the default stream 0, which there means no stream."""
    return 1 if stream == 0 else stream


def _values(session: Handle, count: int, describe: Any) -> tuple[Value, ...]:
    """Returns the inputs or the outputs, which `describe` describes."""
    values = []
    for i in range(count):
        facts = ValueFacts()
        raise_for(describe(session, i, c.byref(facts)))
        shape = None
        if facts.rank >= 0:
            names = [text(facts.dim_names[axis]) for axis in range(facts.rank)]
            shape = tuple(facts.dims[axis] if facts.dims[axis] >= 0 else names[axis] or None for axis in range(facts.rank))
        values.append(Value(text(facts.name), KINDS[facts.kind], dtype_name(facts.dtype), shape, KINDS[facts.part_kind]))
    return tuple(values)


def run(model: str | os.PathLike[str] | bytes, inputs: Any = None, /, *, device: str | Context | None = None,
        **named: Any) -> dict[str, Any]:
    """Loads a model and runs it once: mge.run("model.onnx", x=array)."""
    with Session(model, device=device) as session:
        return session.run(inputs, **named)
