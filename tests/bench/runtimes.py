# SPDX-License-Identifier: Apache-2.0
"""Runs MGE and its peers as processes. Each measurement is a separate process, so that it cannot affect the next one."""
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import rows


@dataclasses.dataclass
class Outcome:
    report: dict     # what the process printed as JSON
    first_ms: float  # from the start of the process to the first thing that it prints


class Failed(Exception):
    """A runtime refused a model or failed. The text is the beginning of its error."""


def run(command):
    """Runs `command` and waits for it."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=errors)
        first = process.stdout.read(1)
        first_ms = (time.perf_counter() - begin) * 1000
        text = first + process.stdout.read()
        if process.wait():
            errors.seek(0)
            lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
            raise Failed("; ".join(lines[:2]) or f"exit code {process.returncode}")
    at = text.find(b"{")
    return Outcome(json.loads(text[at:]) if at >= 0 else {}, first_ms)


def input_options(inputs):
    return [part for name, file in inputs.items() for part in ("--input", f"{name}={file}")]


class Mge:
    name = "mge"

    def __init__(self, build):
        self.command = build / "bin" / "mge"

    def version(self):
        return run([self.command, "version", "--json"]).report.get("version", "")

    def bench(self, model, inputs, threads, seconds):
        return run([self.command, "bench", model, "--json", "--threads", threads, "--seconds", seconds, *input_options(inputs)])

    def first(self, model, inputs, threads):
        return run([self.command, "run", model, "--quiet", "--threads", threads, *input_options(inputs)])

    def outputs(self, model, inputs, threads, folder):
        """Returns the files of the outputs in the model's order; None for an output that is not a tensor."""
        done = run([self.command, "run", model, "--json", "--threads", threads, "--output-dir", folder, *input_options(inputs)])
        return [output.get("file") for output in done.report["outputs"]]


class Peer:
    """A runtime from a wheel that is installed in this Python environment."""

    def __init__(self, build, name, pattern):
        self.name = name
        found = importlib.util.find_spec(name)
        libraries = sorted(pathlib.Path(found.submodule_search_locations[0]).glob(pattern)) if found else []
        if not libraries:
            raise rows.Unavailable(f"the package {name} is not installed, or holds no {pattern}")
        self.command = [build / "tests" / "bench_peer", name, libraries[0]]

    def version(self):
        return importlib.metadata.version(self.name)

    def bench(self, model, inputs, threads, seconds):
        return run([*self.command, model, "--threads", threads, "--seconds", seconds, *input_options(inputs)])

    def first(self, model, inputs, threads):
        return self.bench(model, inputs, threads, 0)

    def outputs(self, model, inputs, threads, folder):
        done = run([*self.command, model, "--threads", threads, "--seconds", 0, "--output-dir", folder, *input_options(inputs)])
        return [file and os.path.join(folder, file) for file in done.report["outputs"]]


def onnxruntime(build):
    return Peer(build, "onnxruntime", "capi/libonnxruntime.so.*")


def openvino(build):
    return Peer(build, "openvino", "libs/libopenvino_c.so*")


def interleaved(runtimes, rounds, measure):
    """Calls measure(runtime) for each runtime in turn, `rounds` times, each round beginning with another one.

    Returns {runtime's name: [Outcome of each round], or the Failed of its first failure}.
    """
    found = {runtime.name: [] for runtime in runtimes}
    for r in range(rounds):
        shift = r % len(runtimes)
        for runtime in runtimes[shift:] + runtimes[:shift]:
            if isinstance(found[runtime.name], Failed):
                continue
            try:
                found[runtime.name].append(measure(runtime))
            except Failed as failed:
                found[runtime.name] = failed
    return found


def peak_bytes(outcomes):
    """Largest resident size of a process in any round."""
    return max(outcome.report["peak_rss_bytes"] for outcome in outcomes)


def latency(outcomes):
    """Least of the rounds' minima and median of their medians, in microseconds."""
    reports = [outcome.report["latency_us"] for outcome in outcomes]
    return min(r["min"] for r in reports), statistics.median(r["p50"] for r in reports)
