# SPDX-License-Identifier: Apache-2.0
"""MXNet's page of variables: memory, engine, profiler, kernels, messages."""
import json
import re

import numpy as np

import models
from mxnet import ASYNC
from onnx_model import FLOAT, data, model_of, node, number, tensor
from product import DIGITS, GPU, MIB, expect
from table import check

def planned(p, model, device="cpu0", **variables):
    """Returns the planned peak of a model in bytes."""
    return p.mge("memory", model, "--json", "--device", device, **variables).json["planned_peak_bytes"]


# ---- memory


@check("MXNET_EXEC_ENABLE_INPLACE")
def inplace(p):
    model = p.write("m.onnx", models.chain(["Softmax", "Transpose", "Exp"] * 3, 64, 64))
    on, off = (planned(p, model, MXNET_EXEC_ENABLE_INPLACE=n, NNVM_EXEC_MATCH_RANGE=0) for n in (1, 0))
    expect(off > on, f"planned peak: {on} with, {off} without")
    return f"planned peak of a chain: {on} bytes with 1, {off} with 0"


@check("NNVM_EXEC_MATCH_RANGE")
def match_range(p):
    widths = (512, 64, 512, 128, 768, 96, 1024)
    model = p.write("m.onnx", models.dense(*widths, rows=256, between="Softmax"))
    seen = [planned(p, model, NNVM_EXEC_MATCH_RANGE=n, MXNET_EXEC_ENABLE_INPLACE=0) for n in (0, 1, 2, 16)]
    expect(seen == sorted(seen, reverse=True) and seen[0] > seen[-1], f"a larger range never needs more memory: {seen}")
    return f"planned peak: {seen} bytes for 0, 1, 2 and 16"


@check("MXNET_EXEC_NUM_TEMP")
def workspaces(p):
    p.need("virtual")
    model = p.write("m.onnx", models.branches(4, 512, 512))

    def lanes(count, workers):
        out = p.mge("plan", model, "--device", "gpu0", MGE_VIRTUAL_COMPUTE_QUEUES=4, MXNET_GPU_WORKER_NTHREADS=workers,
                    MXNET_EXEC_NUM_TEMP=count, **GPU).out
        arena = re.search(r"arena of (\d+) bytes in memory of virtual0", out)
        return len(set(re.findall("virtual0, (compute.*)", out))), int(arena[1])

    seen = [lanes(n, 4) for n in (1, 2, 4)]
    expect([count for count, _ in seen] == [1, 2, 4] and seen[0][1] < seen[2][1], f"lanes, bytes: {seen}")
    expect(lanes(4, 1) == seen[0], "no more lanes than MXNET_GPU_WORKER_NTHREADS")
    return f"lanes and bytes of the plan of 4 branches: {seen} for 1, 2 and 4; with MXNET_GPU_WORKER_NTHREADS=1 as for 1"


# Allocates tensors one after the other, deletes each, and tells the bytes that the device then lacks.
USED = """
begin, used = free(), []
for size in sys.argv[1:]:
    t = mge.Tensor.empty((int(size),), "uint8", device="gpu0")
    during = begin - free()
    del t
    used.append([during, begin - free()])
tell(used=used)
"""


def used(p, *sizes, driver=None, **variables):
    """Returns the bytes that the device lacks while each tensor lives, and after it is deleted."""
    device = {"MGE_CUDA_DRIVER": driver} if driver else GPU
    return p.python(USED, *sizes, **device, **variables).used


@check("MXNET_GPU_MEM_POOL_TYPE")
def pool_type(p):
    p.need("virtual")
    seen = {kind: used(p, 5000, MXNET_GPU_MEM_POOL_TYPE=kind)[0] for kind in ("Naive", "Round", "Unpooled")}
    expect(seen == {"Naive": [5000, 5000], "Round": [8192, 8192], "Unpooled": [5000, 0]}, f"bytes for 5000: {seen}")
    return "5000 bytes take 5000 (Naive), 8192 (Round), and nothing after their end (Unpooled)"


@check("MXNET_GPU_MEM_POOL_RESERVE")
def pool_reserve(p):
    p.need("virtual")
    unit = 64 << 10
    seen = [used(p, 500 * unit, 350 * unit, MXNET_GPU_MEM_POOL_TYPE="Naive", MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE=1,
                 MXNET_GPU_MEM_POOL_RESERVE=n, MGE_VIRTUAL_MEMORY_BYTES=1000 * unit)[1][0] // unit for n in (5, 20)]
    expect(seen == [850, 350], f"units in use: {seen}")
    return "of 1000 units, 500 cached and 350 requested: 5 - 850 are held; 20 - the cache is released first, 350 are"


@check("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF")
def round_cutoff(p):
    p.need("virtual")
    seen = [used(p, 5 * MIB, 33 * MIB, MXNET_GPU_MEM_POOL_TYPE="Round", MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF=n)
            for n in (24, 20)]
    held = [[row[0][0] // MIB, (row[1][0] - row[0][1]) // MIB] for row in seen]
    expect(held == [[8, 48], [5, 33]], f"MiB for 5 and 33: {held}")
    return "5 and 33 MiB take 8 and 48 with 24, 5 and 33 with 20"


@check("MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "cuda")
def round_cutoff_cuda(p):
    p.need("software CUDA")
    seen = [used(p, size * MIB, driver=p.cuda_driver, MXNET_GPU_MEM_POOL_TYPE="Round")[0][0] // MIB for size in (1, 16)]
    expect(seen == [1, 16], f"MiB for 1 and 16: {seen}")
    return "1 and 16 MiB take 1 and 16"


LARGE = {"MXNET_GPU_MEM_POOL_TYPE": "Naive"}


@check("MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE")
def large_round(p):
    p.need("virtual")
    size = 2 * MIB + 1
    seen = [used(p, size, MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE=n, **LARGE)[0][0] for n in (2 * MIB, 1, 16 * MIB)]
    expect(seen == [4 * MIB, size, size], f"bytes for {size}: {seen}")
    return f"{size} bytes take {seen} with 2 MiB, 1 and 16 MiB"


@check("MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "cuda")
def large_round_cuda(p):
    p.need("software CUDA")
    seen = [used(p, size * MIB, driver=p.cuda_driver, **LARGE)[0][0] // MIB for size in (2, 5, 16)]
    expect(seen == [2, 6, 16], f"MiB for 2, 5 and 16: {seen}")
    return "2, 5 and 16 MiB take 2, 6 and 16"


# ---- engine


def operations(p, model, *options, **variables):
    report = p.mge("run", model, "--json", *options, **variables).json
    return report["engine_operations"], report["steps"]


@check("MXNET_ENGINE_TYPE")
def engine_type(p):
    model = p.write("m.onnx", models.one("Relu", 8, 8))
    steps = operations(p, p.write("c.onnx", models.dense(8, 8, 8, rows=8, between="Softmax")), MXNET_ENGINE_TYPE="NaiveEngine")
    expect(steps[0] == steps[1] > 1, f"NaiveEngine runs step after step: {steps}")
    program = ASYNC + "asyncio.run(some(4, False))\ntell(threads=threads())"
    seen = {kind: p.python(program, MXNET_ENGINE_TYPE=kind).threads
            for kind in ("NaiveEngine", "ThreadedEngine", "ThreadedEnginePerDevice", "")}
    expect(seen["ThreadedEngine"] - seen["NaiveEngine"] >= 16, f"ThreadedEngine has 16 workers: {seen}")
    expect(seen["NaiveEngine"] < seen["ThreadedEnginePerDevice"] == seen[""], f"empty is the default: {seen}")
    refused = p.mge("run", model, code=None, MXNET_ENGINE_TYPE="QuickEngine")
    expect(refused.code != 0 and "ThreadedEnginePerDevice" in refused.err, f"others are refused: {refused.err}")
    return f"threads after asynchronous runs: {seen}; NaiveEngine runs one operation per step"


@check("MXNET_EXEC_BULK_EXEC_INFERENCE")
def bulk_inference(p):
    model = p.write("m.onnx", models.dense(8, 8, 8, rows=8, between="Softmax"))
    one, each = (operations(p, model, MXNET_EXEC_BULK_EXEC_INFERENCE=n) for n in (1, 0))
    expect(one[0] == 1 and each[0] == each[1] > 1, f"operations and steps: {one}, {each}")
    return f"a run of {each[1]} steps has 1 operation of the engine with 1, and {each[0]} with 0"


BULK = """
with mge.Trainer("m.onnx", loss="mse", device="cpu0") as trainer:
    trainer.step(x=np.ones((4, 8), np.float32), labels=np.ones((4, 8), np.float32), learning_rate=0.1)
    use = trainer.memory()
    tell(operations=use.engine_operations, steps=use.steps)
"""


def training_operations(p, **variables):
    p.write("m.onnx", models.dense(8, 16, 16, 8, between="Softmax"))
    run = p.python(BULK, **variables)
    return run.operations, run.steps


@check("MXNET_EXEC_BULK_EXEC_TRAIN")
def bulk_train(p):
    one, each = (training_operations(p, MXNET_EXEC_BULK_EXEC_TRAIN=n) for n in (1, 0))
    expect(one[0] == 1 and each[0] == each[1] > 1, f"operations and steps: {one}, {each}")
    return f"a training step of {each[1]} steps has 1 operation of the engine with 1, and {each[0]} with 0"


@check("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN")
def bulk_train_steps(p):
    seen = {n: training_operations(p, MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN=n) for n in (15, 5, 1, 0)}
    steps = seen[15][1]
    expect(all(count == -(-steps // max(n, 1)) for n, (count, _) in seen.items()), f"operations and steps: {seen}")
    return f"operations of the {steps} steps of a training: {({n: count for n, (count, _) in seen.items()})}"


# ---- profiler


def profiled(p, model, *options, **variables):
    """Returns the events of profile.json, or None if it is not written."""
    file = p.folder / "profile.json"
    file.unlink(missing_ok=True)
    p.mge("run", model, *options, **variables)
    return json.loads(file.read_text())["traceEvents"] if file.exists() else None


@check("MXNET_PROFILER_AUTOSTART")
def profiler_autostart(p):
    model = p.write("m.onnx", models.one("Softmax", 8, 8))
    on, off = (profiled(p, model, MXNET_PROFILER_AUTOSTART=n) for n in (1, 0))
    expect(off is None and any("Softmax" in e["name"] for e in on), "profile.json has the operators with 1, and is not there with 0")
    p.python("mge.Session('m.onnx').run(np.ones((8, 8), np.float32))", MXNET_PROFILER_AUTOSTART=1)
    expect((p.folder / "profile.json").exists(), "profile.json is there at the end of Python, too")
    return f"1 - profile.json with {len(on)} events, also of Python; 0 - no file"


@check("MXNET_PROFILER_MODE")
def profiler_mode(p):
    p.need("virtual")
    model = p.write("m.onnx", models.one("Softmax", 8, 8))
    seen = []
    for mode in (0, 1):
        events = profiled(p, model, "--device", "gpu0", MXNET_PROFILER_AUTOSTART=1, MXNET_PROFILER_MODE=mode, **GPU)
        seen.append(sum(e.get("cat") == "step" for e in events))
    expect(0 < seen[0] < seen[1], f"steps in the file: {seen}")
    return f"steps in profile.json: {seen[0]} with 0, {seen[1]} with 1, which has the copies"


@check("MXNET_PROFILER_MODE", "eager operators")
def profiler_mode_eager(p):
    found = []
    for mode in (0, 1):
        p.python("eager.ops.Softmax(eager.tensor(np.ones((8, 8), np.float32), device='cpu0')).numpy()",
                 MXNET_PROFILER_AUTOSTART=1, MXNET_PROFILER_MODE=mode)
        file = p.folder / "profile.json"
        found.append(file.exists() and "Softmax" in file.read_text())
    expect(found == [False, True], f"eager operators in the file: {found}")
    return "operators of eager mode are in profile.json with 1, not with 0"


# ---- kernels


def why(p, model, device="gpu0", **variables):
    return p.mge("plan", model, "--why", "--device", device, MGE_FASTRUN_CACHE_TYPE="MEMORY", **GPU, **variables).out


def kernels(p, model, device="gpu0", **variables):
    """Returns the kernels of a plan."""
    found = []

    def search(value):
        if isinstance(value, dict):
            if value.get("kind") == "kernel" and value.get("kernel"):
                found.append(value["kernel"])
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                search(part)

    search(p.mge("plan", model, "--json", "--device", device, **GPU, **variables).json)
    expect(found, "the plan has kernels")
    return found


@check("MXNET_CUDNN_AUTOTUNE_DEFAULT")
def autotune(p):
    p.need("virtual")
    model = DIGITS / "digits.onnx"
    timed = [why(p, model, MXNET_CUDNN_AUTOTUNE_DEFAULT=n).count("measured ") for n in (0, 1, 2)]
    refused = [why(p, model, MXNET_CUDNN_AUTOTUNE_DEFAULT=n, MGE_SELECT_WORKSPACE_BYTES=0).count("workspace up to 0 bytes")
               for n in (0, 1, 2)]
    expect(timed[0] == 0 and timed[1] > 0 and timed[2] > 0, f"timed candidates: {timed}")
    expect(refused == [1, 1, 0], f"plans with a limit of the workspace: {refused}")
    return f"timed candidates of convolutions: {timed} for 0, 1 and 2; 0 and 1 keep a limit of the workspace"


def halfs():
    return model_of([node("MatMul", ["x", "w"], ["y"])], {"x": tensor(models.FLOAT16, 64, 128)},
                    {"y": tensor(models.FLOAT16, 64, 64)}, models.weights("w", 128, 64, kind=np.float16))


@check("MXNET_CUDA_ALLOW_TENSOR_CORE")
def tensor_core(p):
    p.need("virtual")
    model = p.write("m.onnx", halfs())
    on, off = (kernels(p, model, MXNET_CUDA_ALLOW_TENSOR_CORE=n) for n in (1, 0))
    expect("gpu.matmul.mma" in on and "gpu.matmul.mma" not in off, f"{on}, {off}")
    return f"a product of float16 is {on[-1]} with 1, {off[-1]} with 0"


CONVERSION = "MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION"


@check(CONVERSION)
def conversion(p):
    p.need("virtual")
    model = p.write("m.onnx", models.dense(64, 256, rows=64))
    off, on = (kernels(p, model, **{CONVERSION: n}) for n in (0, 1))
    forbidden = kernels(p, model, MXNET_CUDA_ALLOW_TENSOR_CORE=0, **{CONVERSION: 1})
    expect("gpu.matmul.tf32" in on and "gpu.matmul.tf32" not in off + forbidden, f"{off}, {on}, {forbidden}")
    return f"a product of float32 is {on[-1]} with 1, {off[-1]} with 0 or without tensor cores"


@check(CONVERSION, "RNN")
def conversion_rnn(p):
    p.need("virtual")
    hidden = number(3, 64) + number(20, 2)
    lstm = data(1, b"".join([data(1, i) for i in ("x", "w", "r")] + [data(2, o) for o in ("", "y")] + [
        data(4, "LSTM"), data(5, data(1, "hidden_size") + hidden)]))
    model = p.write("m.onnx", model_of([lstm], {"x": tensor(FLOAT, 8, 16, 64)}, {"y": tensor(FLOAT, 1, 16, 64)},
                                       models.weights("w", 1, 256, 64), models.weights("r", 1, 256, 64, seed=2)))
    off, on = (kernels(p, model, **{CONVERSION: n}) for n in (0, 1))
    expect(on != off and any("tf32" in k for k in on), f"{off}, {on}")
    return f"an LSTM of float32 uses {on} with 1, {off} with 0"


@check("MXNET_MKLDNN_ENABLED")
def mkldnn(p):
    p.need("oneDNN")
    model = p.write("m.onnx", models.convolutions(56, 64, 64))
    on, off = (kernels(p, model, "cpu0", MXNET_MKLDNN_ENABLED=n) for n in (1, 0))
    expect(any("onednn" in k for k in on) and not any("onednn" in k for k in off), f"{on}, {off}")
    return f"a convolution is {on[-1]} with 1, {off[-1]} with 0"


@check("MXNET_MKLDNN_CACHE_NUM")
def mkldnn_cache(p):
    p.need("oneDNN")
    model = p.write("m.onnx", models.convolutions(32, 16, 32, 48, 64))
    seen = {}
    for n in (-1, 3, 2, 0):  # two sessions plan the same convolutions; oneDNN reports each primitive that it creates
        out = p.mge("run", model, "--device", "cpu0", "--against", "cpu0", "--threads", 1, DNNL_VERBOSE=2, ONEDNN_VERBOSE=2,
                    MXNET_MKLDNN_CACHE_NUM=n).out
        seen[n] = sum("create:" in line and ",convolution," in line for line in out.splitlines())
    expect(seen[-1] == seen[3] == 3 and seen[2] == seen[0] == 6, f"created primitives: {seen}")
    return f"primitives that two sessions with the same 3 convolutions create: {seen}"


@check("MXNET_ENFORCE_DETERMINISM")
def determinism(p):
    p.need("virtual")
    model = p.write("m.onnx", model_of([node("ReduceSum", ["x"], ["y"])], {"x": tensor(FLOAT, 1 << 20)},
                                       {"y": tensor(FLOAT, 1)}))
    off, on = (kernels(p, model, MXNET_ENFORCE_DETERMINISM=n) for n in (0, 1))
    expect(any("atomic" in k for k in off) and not any("atomic" in k for k in on), f"{off}, {on}")
    expect("deterministic" in why(p, model, MXNET_ENFORCE_DETERMINISM=1), "mge plan --why has the reason")
    return f"a sum is {off[-1]} with 0, {on[-1]} with 1"


@check("MXNET_BACKWARD_DO_MIRROR")
def mirror(p):
    program = """
with mge.Trainer("m.onnx", loss="mse", device="cpu0") as trainer:
    x = np.linspace(-1, 1, 1024 * 64, dtype=np.float32).reshape(1024, 64)
    losses = [trainer.step(x=x, labels=x, learning_rate=1) for _ in range(3)]
    tell(losses=losses, peak=trainer.memory().measured_peak_bytes)
"""
    p.write("m.onnx", models.gated(6, 64))
    off, on = (p.python(program, MXNET_BACKWARD_DO_MIRROR=n, MGE_THREADS=1) for n in (0, 1))
    expect(np.allclose(on.losses, off.losses, rtol=1e-5) and len(set(off.losses)) == 3, f"losses: {on.losses}, {off.losses}")
    expect(on.peak < 0.7 * off.peak, f"30 % less memory: {off.peak}, {on.peak}")
    return f"peak of a training step: {off.peak} bytes with 0, {on.peak} with 1, equal losses"


# ---- messages

SPARSE = "fallback: the sparse tensor 'w' is made dense"


def sparse_model():
    values = data(1, number(1, 2) + number(2, FLOAT) + data(8, "w") + data(9, np.array([5, 7], "<f4").tobytes()))
    places = data(2, number(1, 2) + number(2, 7) + data(8, "i") + data(9, np.array([1, 3], "<i8").tobytes()))
    return model_of([node("Add", ["x", "w"], ["y"])], {"x": tensor(FLOAT, 4)}, {"y": tensor(FLOAT, 4)},
                    data(15, values + places + number(3, 4)))


@check("MXNET_STORAGE_FALLBACK_LOG_VERBOSE")
def fallback_log(p):
    model = p.write("m.onnx", sparse_model())
    counts = {n: p.mge("run", model, "--against", "cpu0", "--device", "host", MXNET_STORAGE_FALLBACK_LOG_VERBOSE=n).err.count(SPARSE)
              for n in ("1", "0")}
    expect(counts == {"1": 1, "0": 0}, f"messages of two sessions: {counts}")
    return "the message that a sparse tensor is made dense: once with 1, never with 0"


@check("MXNET_STORAGE_FALLBACK_LOG_VERBOSE", "default")
def fallback_log_default(p):
    count = p.mge("run", p.write("m.onnx", sparse_model()), "--device", "host").err.count(SPARSE)
    expect(count == 1, f"messages at the default level of the log: {count}")
    return "the message is shown where nothing is set, too"
