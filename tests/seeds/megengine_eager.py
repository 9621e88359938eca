# SPDX-License-Identifier: Apache-2.0
"""MegEngine's page of variables: eager mode, choice of kernels, generated kernels."""
import json
import shutil

import models
from mxnet_execution import kernels, profiled
from onnx_model import FLOAT, model_of, node, tensor
from product import DIGITS, GPU, MIB, VIRTUAL, Skip, expect
from table import check

# ---- eager mode: swaps, drops, recomputation

EVICT = """
def refused(call):
    try:
        call()
        return ""
    except mge.Error as error:
        return str(error)

a = eager.tensor(np.linspace(-1, 1, 1 << 20, dtype=np.float32), device="virtual0")
b = eager.ops.Neg(a)
eager.synchronize()
"""


def evict(p, program, **variables):
    p.need("virtual")
    return p.python(EVICT + program, **VIRTUAL, **variables)


@check("MEGENGINE_ENABLE_SWAP")
def swap(p):
    program = """
error = refused(b.swap_out)
eager.synchronize()
tell(error=error, state=b.state, live=eager.report()["live_bytes"], right=bool(np.array_equal(b.numpy(), -a.numpy())))
"""
    on, off = (evict(p, program, MEGENGINE_ENABLE_SWAP=n) for n in (1, 0))
    expect((on.state, on.live, on.error) == ("swapped", 4 * MIB, "") and "E0207" in off.error, f"{on.facts}, {off.facts}")
    expect(on.right and off.right and off.live == 8 * MIB, "right values, and no memory less with 0")
    return "1 - a tensor leaves the device (4 MiB less) and comes back; 0 - E0207"


DROP = """
error = refused(b.drop)
eager.synchronize()
state = b.state
right = bool(np.array_equal(b.numpy(), -a.numpy()))
tell(error=error, state=state, right=right, again=eager.report()["recomputations"])
"""


@check("MEGENGINE_ENABLE_DROP")
def drop(p):
    on, off = (evict(p, DROP, MEGENGINE_ENABLE_DROP=n, MEGENGINE_RECORD_COMPUTING_PATH=1) for n in (1, 0))
    expect((on.state, on.again, on.right) == ("dropped", 1, True) and "E0207" in off.error, f"{on.facts}, {off.facts}")
    return "1 - a tensor is dropped and computed again; 0 - E0207"


@check("MEGENGINE_RECORD_COMPUTING_PATH")
def record(p):
    on, off = (evict(p, DROP, MEGENGINE_ENABLE_DROP=1, MEGENGINE_RECORD_COMPUTING_PATH=n) for n in (1, 0))
    expect((on.state, on.again) == ("dropped", 1) and (off.state, off.again) == ("ready", 0), f"{on.facts}, {off.facts}")
    expect("record_computing_path" in off.err, f"the drop warns: {off.err}")
    return "1 - a dropped tensor is computed again; 0 - the drop warns and does nothing"


CHAIN = """
def chain(sizes):
    kept = [eager.tensor(np.linspace(-1, 1, sizes[0], dtype=np.float32), device="virtual0")]
    for _ in sizes[1:]:
        kept.append(eager.ops.Sin(kept[-1]))
    eager.synchronize()
    return kept

try:
    kept = chain([1 << 19] * 20)
    expected = np.linspace(-1, 1, 1 << 19, dtype=np.float32)
    for _ in range(19):
        expected = np.sin(expected)
    report = eager.report()
    tell(evictions=report["evictions"], peak=report["peak_bytes"],
         right=bool(np.allclose(kept[19].numpy(), expected, atol=1e-5)))
except mge.OutOfMemoryError as error:
    tell(error=str(error))
"""


def evictions(p, **variables):
    """Keeps 20 tensors of 2 MiB."""
    p.need("virtual")
    return p.python(CHAIN, **{**VIRTUAL, **variables}).facts


@check("MEGENGINE_DTR_AUTO_DROP")
def auto_drop(p):
    on, off = (evictions(p, MGE_VIRTUAL_MEMORY_BYTES="24MiB", MEGENGINE_DTR_AUTO_DROP=n) for n in (1, 0))
    expect(on.get("evictions", 0) > 0 and on["right"] and "error" in off, f"{on}, {off}")
    return f"40 MiB of tensors on a device of 24: 1 - {on['evictions']} evictions, right values; 0 - out of memory"


@check("MEGENGINE_DTR_EVICTION_THRESHOLD")
def eviction_threshold(p):
    seen = [evictions(p, MEGENGINE_DTR_AUTO_DROP=1, MEGENGINE_DTR_EVICTION_THRESHOLD=n) for n in ("10MiB", "0")]
    without = evictions(p, MEGENGINE_DTR_EVICTION_THRESHOLD="10MiB")
    expect(seen[0]["evictions"] > 0 and seen[0]["peak"] <= 14 * MIB and seen[0]["right"], f"{seen}")
    expect(seen[1]["evictions"] == without["evictions"] == 0, f"{seen}, {without}")
    return f"10 MiB - {seen[0]['evictions']} evictions, peak {seen[0]['peak'] // MIB} MiB of 40; 0 or without AUTO_DROP - none"


@check("MEGENGINE_DTR_EVICTEE_MINIMUM_SIZE")
def evictee_minimum(p):
    seen = {n: evictions(p, MEGENGINE_DTR_AUTO_DROP=1, MEGENGINE_DTR_EVICTION_THRESHOLD="10MiB",
                         MEGENGINE_DTR_EVICTEE_MINIMUM_SIZE=n)["evictions"] for n in ("1MiB", "4MiB")}
    expect(seen["1MiB"] > 0 == seen["4MiB"], f"evictions of tensors of 2 MiB: {seen}")
    return f"evictions of tensors of 2 MiB: {seen}"


AT_RUN_TIME = """
before = eager.report()["evictions"]
os.environ["MEGENGINE_DTR_EVICTION_THRESHOLD"] = "6MiB"
more = [eager.ops.Cos(kept[0]) for _ in range(6)]
eager.synchronize()
tell(before=before, after=eager.report()["evictions"])
"""


@check("MEGENGINE_DTR_EVICTION_THRESHOLD", "changed by the program")
def eviction_threshold_changed(p):
    p.need("virtual")
    run = p.python(CHAIN + AT_RUN_TIME, MEGENGINE_DTR_AUTO_DROP=1, **VIRTUAL)
    expect(run.before == 0 < run.after, f"evictions: {run.facts}")
    return f"evictions before and after os.environ[...] = '6MiB': {run.before}, {run.after}"


# ---- eager mode: the worker

# Calls two operators whose results never come. Tells which calls have returned after some seconds.
CALLS = """
import threading
a = eager.tensor(np.ones(4, np.float32), device="virtual0")
eager.synchronize()
threading.Timer(float(sys.argv[1]), os._exit, [0]).start()
tell(returned="none")
y = eager.ops.Neg(a)
tell(returned="Neg")
z = eager.ops.NonZero(y)
tell(returned="NonZero")
os._exit(0)
"""


@check("MEGENGINE_INTERP_ASYNC_LEVEL")
def async_level(p):
    p.need("virtual")
    error = """
a = eager.tensor(np.ones(4, np.float32), device="cpu0")
try:
    bad = eager.ops.Gather(a, eager.tensor(np.array([7]), device="cpu0"))
    at = "read"
    bad.numpy()
except mge.Error:
    at = "read" if "bad" in globals() else "call"
tell(at=at)
"""
    where = [p.python(error, MEGENGINE_INTERP_ASYNC_LEVEL=n).at for n in (0, 1, 2)]
    expect(where == ["call", "read", "read"], f"the error arrives: {where}")
    seen = [p.python(CALLS, seconds, MGE_VIRTUAL_FAULT="kernel@1=hang", MEGENGINE_INTERP_ASYNC_LEVEL=n, **VIRTUAL).returned
            for n, seconds in ((0, 1), (1, 3), (2, 60))]
    expect(seen == ["none", "Neg", "NonZero"], f"the last call that returns while a kernel hangs: {seen}")
    return "0 - each call waits, and has its error; 1 - only NonZero waits, whose shape depends on data; 2 - none"


@check("MEGENGINE_ASYNC_QUEUE_SIZE")
def queue_size(p):
    p.need("virtual")
    program = """
a = eager.tensor(np.ones(4, np.float32), device="virtual0")
for _ in range(60):
    y = eager.ops.Neg(a)
eager.synchronize()
tell(peak=eager.report()["queue_peak"])
"""
    slow = {"MGE_VIRTUAL_FAULT": "kernel@1=slow(2s)", **VIRTUAL}
    seen = {n: p.python(program, MEGENGINE_ASYNC_QUEUE_SIZE=n, **slow).peak for n in (1, 10, 10000)}
    expect(seen[1] == 1 and seen[10] == 10 and seen[10000] > 20, f"{seen}")
    return f"most commands that wait behind a slow kernel: {seen}"


@check("MEGENGINE_CATCH_WORKER_EXEC")
def catch_worker(p):
    program = """
a = eager.tensor(np.ones(4, np.float32), device="cpu0")
bad = eager.ops.Gather(a, eager.tensor(np.array([7]), device="cpu0"))
try:
    bad.numpy()
except mge.Error as error:
    tell(error=str(error))
"""
    on = p.python(program, MEGENGINE_CATCH_WORKER_EXEC=1)
    off = p.python(program, code=-6, MEGENGINE_CATCH_WORKER_EXEC=0)
    expect("E0" in on.error and "Gather" in off.err, f"{on.facts}; {off.err}")
    return "1 - the error arrives at the read; 0 - the process aborts with its message"


# ---- choice of kernels


def measured(p, model, device="cpu0", **variables):
    """Returns how many candidates have a measured time."""
    return p.mge("plan", model, "--why", "--device", device, **variables).out.count("measured ")


@check("MEGENGINE_EXECUTION_STRATEGY")
def strategy(p):
    model = DIGITS / "digits.onnx"
    name = "MEGENGINE_EXECUTION_STRATEGY"
    times = {value: measured(p, model, MGE_FASTRUN_CACHE_TYPE="MEMORY", **{name: value})
             for value in ("HEURISTIC", "PROFILE", "REPRODUCEABLE")}
    expect(times["HEURISTIC"] == times["REPRODUCEABLE"] == 0 < times["PROFILE"], f"timed candidates: {times}")
    refused = p.mge("run", p.write("det.onnx", models.one("Det", 3, 3)), "--device", "host", code=None, **{name: "OPTIMIZED"})
    expect(refused.code != 0 and "E0403" in refused.err, f"OPTIMIZED refuses the reference evaluator: {refused.err}")
    return f"timed candidates: {times}; OPTIMIZED - E0403 where only the reference evaluator has an operator"


@check("MEGENGINE_EXECUTION_STRATEGY", "reproducible kernels")
def strategy_reproducible(p):
    p.need("virtual")
    model = p.write("m.onnx", model_of([node("ReduceSum", ["x"], ["y"])], {"x": tensor(FLOAT, 1 << 20)}, {"y": tensor(FLOAT, 1)}))
    used = {value: kernels(p, model, MEGENGINE_EXECUTION_STRATEGY=value) for value in ("HEURISTIC", "REPRODUCEABLE")}
    expect(any("atomic" in k for k in used["HEURISTIC"]) and not any("atomic" in k for k in used["REPRODUCEABLE"]), f"{used}")
    return f"kernels of a sum: {used}"


@check("MGB_CONV_PROFILING_TIMEOUT")
def profiling_timeout(p):
    p.need("virtual")
    model = p.write("m.onnx", models.convolutions(16, 8, 8))
    common = {"MEGENGINE_EXECUTION_STRATEGY": "PROFILE", "MGE_FASTRUN_CACHE_TYPE": "MEMORY", **VIRTUAL}
    text = "it did not respond within"

    def tell(limit):
        return p.mge("run", model, "--device", "virtual0", MGB_CONV_PROFILING_TIMEOUT=limit, **common).err

    # On a busy machine, an answer may be there before the host begins to wait for it.
    expect(any(text in tell("1e-6") for _ in range(5)), "with 1e-6, no candidate is left out")
    expect(text not in tell("0"), "with 0, a candidate is left out")
    hangs = p.mge("run", model, "--device", "virtual0", code=None, MGB_CONV_PROFILING_TIMEOUT=1,
                  MGE_VIRTUAL_FAULT="kernel@3=hang", **common)
    expect(text in hangs.err, f"a kernel that hangs is left out: {hangs.err}")
    return "1e-6 - all candidates are left out with that reason; 1 - one that hangs is; 0 - no limit"


@check("MGB_PROFILE_ONLY_WAIT")
def only_wait(p):
    p.need("virtual")
    model = p.write("m.onnx", models.dense(64, 64, 64, 64, 64, rows=8, between="Softmax"))
    options = {"MXNET_PROFILER_AUTOSTART": 1, "MXNET_PROFILER_MODE": 1, **GPU}
    seen = [[e["name"] for e in profiled(p, model, "--device", "gpu0", MGB_PROFILE_ONLY_WAIT=n, **options) if e.get("cat") == "step"]
            for n in (0, 1)]
    expect(0 < len(seen[1]) < len(seen[0]) and any("copy" in name for name in seen[1]), f"{seen}")
    return f"steps in profile.json: {len(seen[0])} with 0; {len(seen[1])} with 1, copies and steps that wait for another queue"


@check("MGE_FASTRUN_CACHE_TYPE")
def cache_type(p):
    model = DIGITS / "digits.onnx"
    seen = {}
    for kind in ("FILE", "MEMORY"):
        variables = {"MGE_FASTRUN_CACHE_TYPE": kind, "MGE_FASTRUN_CACHE_DIR": p.folder / kind}
        p.mge("run", model, "--device", "cpu0", MEGENGINE_EXECUTION_STRATEGY="PROFILE", **variables)
        stored = measured(p, model, MEGENGINE_EXECUTION_STRATEGY="HEURISTIC_PROFILE", **variables)
        files = len(list((p.folder / kind).rglob("*"))) if (p.folder / kind).exists() else 0
        seen[kind] = (files, stored)
    expect(min(seen["FILE"]) > 0 and seen["MEMORY"] == (0, 0), f"files, and times that the next process finds: {seen}")
    return f"files, and times that the next process finds: {seen}"


@check("MGE_FASTRUN_CACHE_DIR")
def cache_dir(p):
    model = DIGITS / "digits.onnx"
    profile = {"MEGENGINE_EXECUTION_STRATEGY": "PROFILE"}
    p.mge("run", model, "--device", "cpu0", MGE_FASTRUN_CACHE_DIR=p.folder / "cache", **profile)
    expect(any((p.folder / "cache").iterdir()), "the folder has files")
    refused = p.mge("run", model, "--device", "cpu0", MGE_FASTRUN_CACHE_DIR="/proc/nowhere", **profile).err
    expect("/proc/nowhere" in refused, f"a folder that cannot be written is a warning: {refused}")
    return "files lie there; a folder that cannot be written is a warning"


@check("MGE_FASTRUN_CACHE_DIR", "home folder")
def cache_dir_home(p):
    p.mge("run", DIGITS / "digits.onnx", "--device", "cpu0", MGE_FASTRUN_CACHE_DIR="~/frx", MEGENGINE_EXECUTION_STRATEGY="PROFILE")
    expect((p.folder / "home/frx").exists() and not (p.folder / "~").exists(), "~ is the home folder")
    return "~ is the home folder"


# ---- generated kernels


def generated(p, *arguments, nvrtc=True, **variables):
    """Runs the command on a GPU in software, with a library in place of NVRTC."""
    p.need("software CUDA")
    library = p.prefix / "tests" / "cuda" / "libnvrtc.so"
    if not library.exists():
        raise Skip("the build has no library in place of NVRTC")
    model = p.folder / "m.onnx"
    if not model.exists():
        p.mge("zoo", "eltwise-chain", "-o", model)
    if nvrtc:
        variables["MGE_CUDA_NVRTC"] = library if nvrtc is True else nvrtc
    command, *rest = arguments
    return p.mge(command, model, "--device", "cuda0", *rest, code=None, MGE_CUDA_DRIVER=p.cuda_driver, **variables)


@check("CUDA_BIN_PATH")
def cuda_bin_path(p):
    p.need("software CUDA")
    (p.folder / "toolkit/lib64").mkdir(parents=True)
    (p.folder / "toolkit/bin").mkdir()
    (p.folder / "toolkit/lib64/libnvrtc.so.13").symlink_to(p.prefix / "tests" / "cuda" / "libnvrtc.so")
    seen = {path: "gpu.compiled_chain" in generated(p, "plan", nvrtc=False, CUDA_BIN_PATH=path and p.folder / path).out
            for path in ("", "toolkit", "toolkit/bin")}
    expect(seen == {"": False, "toolkit": True, "toolkit/bin": True}, f"chains are compiled: {seen}")
    return "NVRTC is found in the folder of the toolkit, and beside that of nvcc"


@check("MGB_JIT_BACKEND")
def jit_backend(p):
    works = generated(p, "plan", MGB_JIT_BACKEND="NVRTC")
    missing = generated(p, "run", nvrtc="/nowhere/libnvrtc.so.13", MGB_JIT_BACKEND="NVRTC")
    expect("gpu.compiled_chain" in works.out and missing.code == 5 and "/nowhere" in missing.err, f"{works.err}; {missing.err}")
    return "NVRTC compiles chains; a missing one is an error with the reason"


@check("MGB_JIT_BACKEND", "values")
def jit_backend_values(p):
    model = p.write("m.onnx", models.one("Relu", 4))
    refused = p.mge("run", model, "--device", "cpu0", code=None, MGB_JIT_BACKEND="FROB")
    expect(refused.code != 0 and "MGB_JIT_BACKEND" in refused.err and "NVRTC" in refused.err, f"{refused.err}")
    return "a wrong value is refused with the allowed ones"


def jit_compiler(name):
    def run(p):
        model = p.write("m.onnx", models.chain(["Tanh", "Sigmoid", "Tanh"], 64))
        cpu = next(d for d in json.loads(p.mge("devices", "--json").out)["devices"] if d["name"] == "cpu0")
        if name.lower() in cpu["properties"]["compilers"].split():
            p.mge("run", model, "--device", "cpu0", MGB_JIT_BACKEND=name)
            plan = p.mge("plan", model, "--device", "cpu0", MGB_JIT_BACKEND=name).out
            expect(f"cpu.elementwise.{name.lower()}" in plan, f"{plan}")
            return f"{name} compiles the code of fused operators"
        missing = p.mge("run", model, "--device", "cpu0", code=None, MGB_JIT_BACKEND=name)
        expect(missing.code == 5 and f"mge-jit-{name.lower()}" in missing.err, f"{missing.err}")
        return f"an error names the package of {name}, which is not installed"
    return run


for value in ("HALIDE", "MLIR"):
    check("MGB_JIT_BACKEND", value)(jit_compiler(value))


@check("MGB_JIT_KEEP_INTERM")
def keep_files(p):
    folder = p.folder / "jit"
    none = generated(p, "run", MGB_JIT_WORKDIR=folder)
    expect(none.code == 0 and not folder.exists(), f"without it no file is written: {none.err}")
    generated(p, "run", MGB_JIT_WORKDIR=folder, MGB_JIT_KEEP_INTERM=1)
    kinds = sorted({file.suffix for file in folder.iterdir()})
    expect(kinds == [".cu", ".cubin"], f"files: {kinds}")
    return "1 - source and code of each kernel are kept; 0 - no file"


@check("MGB_JIT_WORKDIR")
def work_dir(p):
    folder = p.folder / "new/jit"
    generated(p, "run", MGB_JIT_WORKDIR=folder, MGB_JIT_KEEP_INTERM=1)
    expect(any(folder.iterdir()) and folder.stat().st_mode & 0o777 == 0o700, "the folder is created for its owner")
    unset = generated(p, "run", MGB_JIT_KEEP_INTERM=1, TMPDIR=p.folder).err
    expect("are kept in " in unset, f"a message names the folder: {unset}")
    named = unset.split("are kept in ")[1].split()[0]
    shutil.rmtree(named)
    return "files lie there; without it in a new folder, which a message names"
