#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of the zoo against ONNX Runtime: same files, same inputs' shapes, interleaved rounds, ratio of the minima.

    python3 -m venv venv && venv/bin/pip install onnxruntime numpy
    venv/bin/python tests/bench/onnxruntime_ratio.py build/release/bin/mge

Prints one line a model and thread count: MGE's and ONNX Runtime's least and median microseconds, and the ratio of the least
(below 1: MGE is faster), and at the end the time from process start to the first result of a small model.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = ["one-op", "tiny-ops", "tiny-mixed", "eltwise-chain", "bert-tiny", "mobilenetv2", "resnet50", "bert-base"]

PEER = r"""
import json, sys, time
import numpy, onnxruntime
path, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.log_severity_level = 3
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
random = numpy.random.default_rng(1)
kinds = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
values = {}
for i in session.get_inputs():
    shape = [d if isinstance(d, int) else 1 for d in i.shape]
    kind = kinds[i.type]
    values[i.name] = (random.integers(0, 10, shape) if kind is numpy.int64 else random.uniform(-1, 1, shape)).astype(kind)
# Inputs and outputs bound once: the cost of the call is not that of building arrays in Python.
binding = session.io_binding()
for name, value in values.items():
    binding.bind_cpu_input(name, value)
for o in session.get_outputs():
    binding.bind_output(o.name, "cpu")
for _ in range(3):
    session.run_with_iobinding(binding)
us, start = [], time.perf_counter()
while len(us) < 5 or time.perf_counter() - start < seconds:
    t = time.perf_counter()
    session.run_with_iobinding(binding)
    us.append((time.perf_counter() - t) * 1e6)
us.sort()
print(json.dumps({"min": us[0], "p50": us[len(us) // 2]}))
"""

FIRST = r"""
import sys, numpy, onnxruntime
s = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
s.run(None, {i.name: numpy.zeros(i.shape, numpy.float32) for i in s.get_inputs()})
"""


def mge_run(mge, path, threads, seconds):
    out = subprocess.run([mge, "bench", path, "--json", "--threads", str(threads), "--seconds", str(seconds)],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out)["latency_us"]


def peer_run(path, threads, seconds):
    out = subprocess.run([sys.executable, "-c", PEER, path, str(threads), str(seconds)], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def wall(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mge")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.models + ["one-op"]:
            path = os.path.join(folder, name + ".onnx")
            if not os.path.exists(path):
                subprocess.run([args.mge, "zoo", name, "-o", path, "-q"], check=True)
        print(f"{'model':<15}{'threads':>8}{'mge min':>12}{'p50':>12}{'ort min':>12}{'p50':>12}{'ratio':>8}")
        for name in args.models:
            path = os.path.join(folder, name + ".onnx")
            for threads in args.threads:
                ours, theirs = [], []
                for _ in range(args.rounds):
                    ours.append(mge_run(args.mge, path, threads, args.seconds))
                    theirs.append(peer_run(path, threads, args.seconds))
                row = [min(r["min"] for r in ours), statistics.median(r["p50"] for r in ours),
                       min(r["min"] for r in theirs), statistics.median(r["p50"] for r in theirs)]
                print(f"{name:<15}{threads:>8}" + "".join(f"{v:>12.1f}" for v in row) + f"{row[0] / row[2]:>8.2f}", flush=True)
        small = os.path.join(folder, "one-op.onnx")
        ours, theirs = [], []
        for _ in range(10):
            ours.append(wall([args.mge, "run", small, "-q"]))
            theirs.append(wall([sys.executable, "-c", FIRST, small]))
        print(f"process start to first result, one-op: mge {min(ours):.1f} ms, onnxruntime from Python {min(theirs):.1f} ms, "
              f"ratio {min(ours) / min(theirs):.3f}")


if __name__ == "__main__":
    main()
