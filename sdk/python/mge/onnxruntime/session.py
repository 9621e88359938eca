# SPDX-License-Identifier: Apache-2.0
"""Sessions with the functions of ONNX Runtime's InferenceSession."""
from __future__ import annotations

import io
import json
import os
import threading
import time
import warnings
from typing import Any, BinaryIO, Callable, Iterator, Mapping, Sequence

from .._native import lib
from ..errors import CancelledError
from ..runs import Profile, RunControl
from ..session import Session
from ..tensor import Tensor
from .errors import Fail, InvalidArgument, translated
from .options import RunOptions, SessionOptions, warn_without_effect
from .providers import CPU_PROVIDER, Asked, chosen, provider_of
from .values import IOBinding, NodeArg, OrtValue, plain

_seed: int | None = None


def set_seed(seed: int) -> None:
    """Sets the seed of the random operators of all later runs."""
    global _seed
    _seed = seed


def _varint(stream: BinaryIO) -> int:
    value = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            return value
        value |= (byte[0] & 127) << shift
        shift += 7
        if byte[0] < 128:
            return value


def _fields(stream: BinaryIO, end: int, wanted: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """Yields the wanted fields of a protobuf message that ends at `end`: a number, or where a text or message begins and ends."""
    while stream.tell() < end:
        field, wire = divmod(_varint(stream), 8)
        if wire == 0:
            value: Any = _varint(stream)
        else:
            size = _varint(stream) if wire == 2 else {1: 8, 5: 4}.get(wire, end)
            value = (stream.tell(), stream.tell() + size)
            stream.seek(size, io.SEEK_CUR)
        if field in wanted:
            at = stream.tell()
            yield field, value
            stream.seek(at)


class ModelMetadata:
    """What the author of a model wrote into it."""

    def __init__(self, stream: BinaryIO, custom: Mapping[str, str]) -> None:
        def text(part: tuple[int, int]) -> str:
            stream.seek(part[0])
            return stream.read(part[1] - part[0]).decode("utf-8", "replace")

        end = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        top = dict(_fields(stream, end, (2, 4, 5, 6, 7)))  # of a ModelProto
        graph: dict[int, Any] = {}
        if 7 in top:
            stream.seek(top[7][0])
            graph = dict(_fields(stream, top[7][1], (2, 10)))
        names = {"producer_name": 2, "domain": 4, "description": 6}
        self.producer_name, self.domain, self.description = (text(top[n]) if n in top else "" for n in names.values())
        version = top.get(5, 0)
        self.version = version - (1 << 64) if version >= 1 << 63 else version
        self.graph_name, self.graph_description = (text(graph[n]) if n in graph else "" for n in (2, 10))
        self.custom_metadata_map = dict(custom)


class InferenceSession:
    """A model on devices of MGE, with the functions of ONNX Runtime's class of this name."""

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str], sess_options: SessionOptions | None = None,
                 providers: Asked | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None,
                 **ignored: Any) -> None:
        """`path_or_bytes`: an ONNX file, or its bytes. `providers`: names, or pairs of a name and options, in order of preference;
        without them, the model runs on the default device. Providers that are not available cause a warning; if none is, this
        fails."""
        if not isinstance(path_or_bytes, (str, bytes, bytearray, os.PathLike)):
            raise TypeError(f"a model is given by a path or its bytes, not by a {type(path_or_bytes).__name__}; a ModelProto has "
                            "SerializeToString()")
        self._model = bytes(path_or_bytes) if isinstance(path_or_bytes, bytearray) else path_or_bytes
        self._options = sess_options or SessionOptions()
        self._load(providers, provider_options, list(ignored))

    def _load(self, providers: Asked | None, provider_options: Sequence[Mapping[str, Any]] | None, ignored: Sequence[str]) -> None:
        devices, self._provider_options, unused = chosen(providers, provider_options)
        warn_without_effect("options", [*self._options._without_effect(), *unused, *ignored])
        settings = {"select.deterministic": True} if self._options.use_deterministic_compute else {}
        # Outputs stay where they are computed, so that they can be bound there; run() copies them to the host.
        on_device = bool(devices) and provider_of(devices[0]) != CPU_PROVIDER
        with translated(loading=True):
            self._session = Session(self._model, device=",".join(devices) or None, settings=settings, outputs_on_device=on_device,
                                    threads=self._options.intra_op_num_threads or None)
        self._names = [v.name for v in self._session.outputs]
        self._inputs = {v.name for v in self._session.inputs}
        self._profile = Profile() if self._options.enable_profiling else None
        self._profiling_start = time.time_ns()

    # ---- facts

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(v) for v in self._session.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(v) for v in self._session.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns an empty list: a run cannot replace weights of a model."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        if isinstance(self._model, bytes):
            return ModelMetadata(io.BytesIO(self._model), self._session.metadata)
        with open(self._model, "rb") as stream:
            return ModelMetadata(stream, self._session.metadata)

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        """Returns the providers of the session's devices, in order of preference."""
        return list(dict.fromkeys(provider_of(device) for device in self._session.devices))

    def get_provider_options(self) -> dict[str, dict[str, Any]]:
        """Returns the options that were given, by provider."""
        return {name: self._provider_options.get(name, {}) for name in self.get_providers()}

    def set_providers(self, providers: Asked | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Loads the model again, on other devices."""
        self._load(providers, provider_options, [])

    def disable_fallback(self) -> None:
        """Returns at once: a failed run is never repeated on another device."""

    def enable_fallback(self) -> None:
        """Warns: a failed run is never repeated on another device."""
        warnings.warn("enable_fallback has no effect: MGE never repeats a failed run on another device", stacklevel=2)

    # ---- runs

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        """Runs the model. Returns the named outputs, in this order; all if `output_names` is None or empty."""
        names = list(output_names or self._names)
        feed = {name: value._value if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        results = self._run(names, feed, run_options)
        return [plain(results[name]) for name in names]

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """Runs the model with OrtValue objects, and returns such."""
        names = list(output_names or self._names)
        results = self._run(names, {n: v._value for n, v in input_dict_ort_values.items()}, run_options)
        return [OrtValue(results[name]) for name in names]

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
                  callback: Callable[[list[Any], Any, str], None], user_data: Any = None,
                  run_options: RunOptions | None = None) -> None:
        """Runs the model in a thread, and calls `callback(outputs, user_data, error)` there; `error` is "" if there was none."""
        def work() -> None:
            try:
                outputs, error = self.run(output_names, input_feed, run_options), ""
            except Exception as failure:  # it belongs to the callback
                outputs, error = [], str(failure) or type(failure).__name__
            callback(outputs, user_data, error)

        threading.Thread(target=work, name="mge run_async").start()

    def io_binding(self) -> IOBinding:
        """Returns an object that binds inputs and outputs for run_with_iobinding()."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model with bound inputs and outputs. The outputs that the run makes are in the binding."""
        names = list(iobinding._outputs)
        if not names:
            raise InvalidArgument("no output is bound; call bind_output() or bind_ortvalue_output()")
        iobinding._keep(self._run(names, iobinding._inputs, run_options, iobinding._memory()))

    def _run(self, names: list[str], feed: Mapping[str, Any], options: RunOptions | None,
             out: Mapping[str, Tensor] | None = None) -> dict[str, Any]:
        self._check(names, feed)
        control = self._control_of(options)
        every = names == self._names and not out and control is None
        try:
            with translated():
                return self._session.run(feed) if every else self._session.run(feed, outputs=names, out=out or None, control=control)
        except Fail as error:
            if isinstance(error.__cause__, CancelledError):
                raise Fail(f"Exiting due to terminate flag being set to true. {error}") from error.__cause__
            raise

    def _control_of(self, options: RunOptions | None) -> RunControl | None:
        if options is None:
            plain_run = self._profile is None and _seed is None
            return None if plain_run else RunControl(profile=self._profile, seed=_seed)
        warn_without_effect("run options", options._without_effect())
        control = options._control._open()
        lib.mge_run_control_set_profile(control, None if self._profile is None else self._profile._open())
        if _seed is not None:
            lib.mge_run_control_set_seed(control, _seed)
        return options._control

    def _check(self, names: Sequence[str], feed: Mapping[str, Any]) -> None:
        for name in names:
            if name not in self._names:
                raise InvalidArgument(f"Invalid output name: {name}; the outputs are {self._names}")
        for name in feed:
            if name not in self._inputs:
                raise InvalidArgument(f"Invalid input name: {name}; the inputs are {sorted(self._inputs)}")
        if missing := [v.name for v in self._session.inputs if v.name not in feed and v.kind != "optional"]:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    # ---- profiles

    def get_profiling_start_time_ns(self) -> int:
        """Returns when the profile began, in nanoseconds since 1970."""
        return self._profiling_start

    def end_profiling(self) -> str:
        """Writes the trace of the runs so far for the viewers of Chrome and Perfetto. Returns the name of the file; "" if the
        options do not enable profiling."""
        if self._profile is None:
            return ""
        path = f"{self._options.profile_file_prefix}{time.strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self._profile.report("trace"), file)
        self._profile = None
        return path
