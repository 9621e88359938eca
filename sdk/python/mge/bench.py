# SPDX-License-Identifier: Apache-2.0
"""Measures the latency of a model through Python, as `mge bench` does without it:

    python -m mge.bench model.onnx
    python -m mge.bench model.onnx --shape x=8x3x224x224 --json
    python -m mge.bench model.onnx --peer onnxruntime

With --peer, runs of both alternate in short turns, and the ratio of the fastest runs is shown: above 1, MGE is faster.
"""
from __future__ import annotations

import argparse
import importlib
import json
import resource
import sys
import time
from typing import Any, Callable, Sequence

from .errors import Error, UsageError
from .session import Session

_TURN_SECONDS = 0.01  # of one library, while it is compared with another


def _pairs(texts: Sequence[str], what: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise UsageError(f"{what} '{name}{equals}{value}' is not of the form NAME={what.upper()}")
    return {name: value for name, _, value in pairs}


def _peer(model: str, threads: int, inputs: dict[str, Any]) -> tuple[str, Callable[[], Any]]:
    """Returns the version of ONNX Runtime and a function that runs the model."""
    try:
        onnxruntime: Any = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise UsageError(f"--peer onnxruntime: {error}; install the package onnxruntime for this Python") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return onnxruntime.__version__, lambda: session.run(None, inputs)


def _measure(functions: Sequence[Callable[[], Any]], seconds: float, runs: int) -> list[list[int]]:
    """Returns the nanoseconds of each run of each function."""
    times: list[list[int]] = [[] for _ in functions]
    clock = time.perf_counter_ns
    end = clock() + int(seconds * 1e9)
    while any(len(t) < runs for t in times) if runs else clock() < end:
        for function, kept in zip(functions, times):
            turn = clock() + int(_TURN_SECONDS * 1e9)
            while True:
                begin = clock()
                function()
                now = clock()
                kept.append(now - begin)
                if now >= turn or (runs and len(kept) >= runs):
                    break
    return times


def _latency(times: list[int]) -> dict[str, float]:
    ordered = sorted(times)
    at = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {name: ordered[min(len(ordered) - 1, int(part * len(ordered)))] / 1000 for name, part in at.items()}


def _text(latency: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2f} us" for name, value in latency.items())


def bench(options: argparse.Namespace) -> dict[str, Any]:
    """Measures, and returns the report "mge.bench_python/1"."""
    begin = time.perf_counter()
    session = Session(options.model, device=options.device, threads=options.threads)
    load = time.perf_counter() - begin
    given = {name: session.read_input(name, path) for name, path in _pairs(options.input, "input").items()}
    inputs, described = session.example_inputs(seed=options.seed, shapes=_pairs(options.shape, "shape"), given=given)
    begin = time.perf_counter()
    session.run(inputs)
    first = load + time.perf_counter() - begin
    functions: list[Callable[[], Any]] = [lambda: session.run(inputs)]
    version = ""
    if options.peer:
        version, peer = _peer(options.model, session.threads, inputs)
        functions.append(peer)
    for function in functions:
        for _ in range(max(1, options.warm)):
            function()
    times = _measure(functions, options.seconds, options.runs)
    memory = session.memory()
    report = {"schema": "mge.bench_python/1", "device": session.devices[0], "threads": session.threads,
              "compiled": session.compiled, "inputs": described["inputs"], "latency_us": _latency(times[0]),
              "runs": len(times[0]), "load_ms": load * 1000, "first_result_ms": first * 1000,
              "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
              "planned_peak_bytes": memory.planned_peak_bytes, "measured_peak_bytes": memory.measured_peak_bytes,
              "steps": memory.steps, "reference_steps": memory.reference_steps}
    if options.peer:
        latency = _latency(times[1])
        report["peer"] = {"name": options.peer, "version": version, "latency_us": latency, "runs": len(times[1]),
                          "ratio": latency["min"] / _latency(times[0])["min"]}
    return report


def _show(report: dict[str, Any]) -> None:
    print(f"device          {report['device']}, {report['threads']} threads")
    print(f"call            {'compiled module' if report['compiled'] else 'ctypes'}")
    print(f"latency         {_text(report['latency_us'])} ({report['runs']} runs)")
    if "peer" in report:
        peer = report["peer"]
        print(f"{peer['name']:<15} {_text(peer['latency_us'])} ({peer['runs']} runs), version {peer['version']}")
        print(f"ratio           {peer['ratio']:.2f}: {peer['name']} / mge, fastest runs")
    print(f"load            {report['load_ms']:.2f} ms, first result after {report['first_result_ms']:.2f} ms")
    print(f"memory          planned {report['planned_peak_bytes'] / 1024:.1f} KiB, measured "
          f"{report['measured_peak_bytes'] / 1024:.1f} KiB; process peak {report['peak_rss_bytes'] / 2**20:.1f} MiB")
    print(f"steps           {report['steps']}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mge.bench", description="Measures the latency of a model through Python.")
    parser.add_argument("model", metavar="MODEL", help="an ONNX file")
    parser.add_argument("--input", metavar="NAME=FILE", nargs="+", default=[], help="inputs from .npy, .npz (FILE.npz:ARRAY) or .pb files")
    parser.add_argument("--shape", metavar="NAME=SHAPE", nargs="+", default=[],
                        help="shapes of generated inputs, such as data=1x3x224x224")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time in seconds, of all libraries together")
    parser.add_argument("--runs", type=int, default=0, help="number of runs to measure, instead of --seconds")
    parser.add_argument("--warm", type=int, default=10, help="number of runs before measuring, at least 1")
    parser.add_argument("--device", default=None, help="such as gpu0,cpu0")
    parser.add_argument("--threads", type=int, default=0, help="threads of a run; default: the runtime's setting")
    parser.add_argument("--peer", choices=["onnxruntime"], help="runs the model there, too, in turns")
    parser.add_argument("--json", action="store_true", help="prints the report as JSON")
    options = parser.parse_args(arguments)
    try:
        report = bench(options)
    except Error as error:
        print(f"mge: {error}", file=sys.stderr)
        return error.exit_code
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        _show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
