# SPDX-License-Identifier: Apache-2.0
"""MegEngine's page of variables."""
import re
import shutil
import subprocess

import numpy as np

import models
from mxnet import GPU, kernels, profiled
from mxnet_kvstore import trained
from onnx_model import FLOAT, model_of, node, tensor
from product import DIGITS, SOURCES, Skip, expect
from table import check

MIB = 1 << 20
VIRTUAL = {"MGE_VIRTUAL_DEVICES": 1}


# ---- devices


@check("MGE_DEFAULT_DEVICE")
def default_device(p):
    p.need("virtual")
    model = p.write("m.onnx", models.one("Relu", 2, 3))
    seen = p.python("""
seen = {}
for name in sys.argv[1:]:
    os.environ["MGE_DEFAULT_DEVICE"] = name
    with mge.Runtime() as runtime:
        session = mge.Session("m.onnx", runtime=runtime)
        session.run(np.ones((2, 3), np.float32))
        seen[name] = session.devices[0]
tell(seen=seen)
""", "cpux", "cpu0:1", "cpu:default", "multithread2:0", "multithread:default:2", "gpux", "gpu1", "gpu(1)", "gpu0,cpu0", "xpux",
                    MGE_VIRTUAL_DEVICES=2, MGE_VIRTUAL_GPU=1, MGE_PLUGIN_SKIP="cuda,rocm").seen
    expect({seen[n] for n in ("gpu1", "gpu(1)")} == {"virtual1"} and seen["gpux"] == seen["gpu0,cpu0"] == "virtual0", f"{seen}")
    expect(seen["cpux"].startswith("cpu"), f"{seen}")
    for name in ("rocm0", "atlas0", "cambricon0", "frob"):
        refused = p.mge("run", model, code=None, MGE_DEFAULT_DEVICE=name, MGE_PLUGIN_SKIP="rocm")
        expect(refused.code != 0 and name in refused.err, f"{name} is an error with the reason: {refused.err}")
    return f"device of a session: {seen}; rocm0, atlas0 and cambricon0 are errors with the reason"


HOST = """
import mge
size = int(sys.argv[1])
try:
    y = mge.Session(f"m{size}.onnx", device="virtual0").run(np.ones(size, np.float32))["y"]
    tell(result=float(y.sum()))
except mge.Error as error:
    tell(result=str(error))
"""
BROKEN = {"MGE_VIRTUAL_FAULT": "kernel@1+=fail", **VIRTUAL}  # no kernel of the device works


@check("MEGENGINE_HOST_COMPUTE")
def host_compute(p):
    p.need("virtual")
    for size in (7, 8):
        p.write(f"m{size}.onnx", models.chain(["Neg", "Abs"], size))
    seen = [p.python(HOST, size, MEGENGINE_HOST_COMPUTE=on, **BROKEN).result for on, size in ((1, 7), (1, 8), (0, 7))]
    expect(seen[0] == 7 and all("E05" in str(text) for text in seen[1:]), f"{seen}")
    return "on a device without working kernels: 1 - a model of 7 elements runs, one of 8 does not; 0 - none"


HOST_EAGER = """
try:
    a = eager.tensor(np.array([2, 3], np.float32), device="virtual0")
    tell(result=eager.ops.Add(eager.ops.Mul(a, a), a).numpy().tolist())
except mge.Error as error:
    tell(result=str(error))
"""


@check("MEGENGINE_HOST_COMPUTE", "eager mode")
def host_compute_eager(p):
    p.need("virtual")
    on, off = (p.python(HOST_EAGER, MEGENGINE_HOST_COMPUTE=n, **BROKEN).result for n in (1, 0))
    expect(on == [6, 12] and "E05" in str(off), f"{on}; {off}")
    return "eager operators of 2 elements work on a device without working kernels with 1, not with 0"


# ---- messages and checks


def lines(p, **variables):
    """Returns how many messages a run writes that starts a backend (info) and watches an unknown value (warning)."""
    model = p.folder / "m.onnx"
    if not model.exists():
        p.write("m.onnx", models.one("Relu", 2, 3))
    err = p.mge("run", model, "--device", "cpu0", MGE_DEBUG_WATCH_VALUE=9999, **variables).err
    return sum(line.startswith("mge: ") for line in err.splitlines())


@check("MEGENGINE_LOGGING_LEVEL")
def logging_level(p):
    seen = {level: lines(p, MEGENGINE_LOGGING_LEVEL=level) for level in ("DEBUG", "INFO", "WARNING", "ERROR")}
    expect(seen["DEBUG"] >= seen["INFO"] > seen["WARNING"] > seen["ERROR"] == 0, f"messages: {seen}")
    return f"messages of a run that warns: {seen}"


@check("RUNTIME_OVERRIDE_LOG_LEVEL")
def override_level(p):
    seen = [lines(p, RUNTIME_OVERRIDE_LOG_LEVEL=n, MEGENGINE_LOGGING_LEVEL="ERROR") for n in range(5)]
    quiet = lines(p, RUNTIME_OVERRIDE_LOG_LEVEL=3, MEGENGINE_LOGGING_LEVEL="DEBUG")
    expect(seen[0] >= seen[1] > seen[2] > seen[3] == seen[4] == quiet, f"messages: {seen}, {quiet}")
    return f"messages for 0 to 4, whatever MEGENGINE_LOGGING_LEVEL is: {seen}"


@check("MGB_DEBUG_VAR_SANITY_CHECK_LOG")
def sanity_check(p):
    model = p.write("m.onnx", models.early_value())
    plan = p.mge("plan", model, "--json", "--device", "cpu0").out
    number = min(int(digits) for digits in re.findall(r'"output_ids":\s*\[\s*(\d+)', plan))
    log = p.mge("run", model, "--device", "cpu0", MGB_DEBUG_VAR_SANITY_CHECK_LOG=number, MEGENGINE_LOGGING_LEVEL="DEBUG").err
    for text in (f"(id {number},", "its bytes are checked after every step", "is unchanged after"):
        expect(text in log, f"'{text}' in the log: {log}")
    unknown = p.mge("run", model, "--device", "cpu0", MGB_DEBUG_VAR_SANITY_CHECK_LOG=9999).err
    expect("9999" in unknown, f"an unknown id is a warning: {unknown}")
    return "logs the address, the writer, each check and the last reader of the value; an unknown id is a warning"


def compiled(p, name, source, *options):
    """Compiles a library."""
    compiler = shutil.which("c++")
    if compiler is None:
        raise Skip("there is no C++ compiler")
    file = p.write(f"{name}.cc", source)
    out = p.folder / f"{name}.so"
    made = subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-O0", *options, file, "-o", out], capture_output=True,
                          text=True)
    expect(made.returncode == 0, made.stderr)
    return out


@check("MGB_LOG_TRT_MEM_ALLOC")
def external_allocations(p):
    source = (SOURCES / "sdk" / "examples" / "relu" / "relu.cc").read_text()
    begin = "  explicit Relu(const mge::Problem& p) : count(p.input(0).elements()) {"
    expect(begin in source, "the example has its kernel")
    allocate = " const mge_host* h = mge::Host(); h->release(h->self, h->allocate(h->self, 12345, 64)); "
    source = source.replace(begin, begin + allocate)
    includes = [f"-I{path}" for path in (p.prefix / "include", p.prefix / "sdk" / "include", SOURCES / "sdk" / "include")
                if path.exists()]
    compiled(p, "mge_example_relu", source, *includes)
    model = p.write("m.onnx", models.one("Relu", 8))
    on, off = (p.mge("run", model, "--device", "example_relu0", MGE_PLUGIN_PATH=p.folder, MGB_LOG_TRT_MEM_ALLOC=n).err
               for n in (1, 0))
    text = "backend example_relu: allocates 12345 bytes of host memory, alignment 64, at 0x"
    expect(text in on and "12345" not in off, f"{on}; {off}")
    return "1 - each block that a backend asks for, with size, alignment and address; 0 - none"


@check("MGB_LOG_TRT_MEM_ALLOC", "device memory")
def external_device_memory(p):
    p.need("software CUDA")
    cudnn = p.prefix / "tests" / "cuda" / "libcudnn.so"
    if not cudnn.exists():
        raise Skip("the build has no library in place of cuDNN")
    model = p.write("m.onnx", models.convolutions(8, 4, 4))
    on, off = (p.mge("run", model, "--device", "cuda0", MGE_CUDA_DRIVER=p.cuda_driver, MGE_CUDA_CUDNN=cudnn,
                     MGB_LOG_TRT_MEM_ALLOC=n).err for n in (1, 0))
    expect("cuDNN" in on and "device memory" in on and "device memory" not in off, f"{on}; {off}")
    return "1 - the device memory that cuDNN takes for its handle; 0 - none"


@check("MGE_MM_OPR_DEBUG")
def collectives(p):
    on, off = (trained(p, 2, MGE_MM_OPR_DEBUG=n).err for n in (1, 0))
    ranks = [f"rank = {i} of 2" for i in (0, 1)]
    expect("collective: executing mge.AllReduce" in on.replace("executing AllReduce", "executing mge.AllReduce") and
           all(rank in on for rank in ranks) and "executing" not in off, f"{on[:400]}")
    return f"1 - {on.count('collective: executing')} lines with operator, rank and key in a training on two devices; 0 - none"


@check("MGB_DUMP_INPUT")
def dump_input(p):
    model = p.write("m.onnx", model_of([node("Add", ["a", "b"], ["y"])], {"a": tensor(FLOAT, 4), "b": tensor(FLOAT, 4)},
                                       {"y": tensor(FLOAT, 4)}))
    counts = {}
    for n in (0, 1):
        folder = p.folder / f"dump{n}"
        folder.mkdir()
        p.mge("run", model, "--device", "cpu0", MGE_DEBUG_DUMP_DIR=folder, MGB_DUMP_INPUT=n)
        counts[n] = sorted(file.name.split("_", 1)[-1] if "inp" not in file.name else file.name.partition("-")[2]
                           for file in folder.iterdir())
    expect(counts[0] == ["y.npy"] and counts[1] == ["inp0_a.npy", "inp1_b.npy", "y.npy"], f"files: {counts}")
    values = [np.load(file) for file in sorted((p.folder / "dump1").iterdir())]
    expect(any(np.allclose(values[i], values[j] + values[k]) for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1))),
           "the files have the values of the run")
    return f"files of a sum beside MGE_DEBUG_DUMP_DIR: {counts}"


# ---- data loaders

LOADER = """
import warnings
warnings.simplefilter("always")

class Items:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.full((512, 512), i, np.float32)

for batch in mge.data.DataLoader(Items(), 4, workers=1):
    tell(shared=open("/proc/self/maps").read().count("memfd:mge.data"), sum=float(batch.sum()))
del batch
"""


@check("MGE_PLASMA_MEMORY")
def plasma_memory(p):
    seen = {n: p.python(LOADER, MGE_PLASMA_MEMORY=n) for n in (100_000_000, MIB, 0)}
    expect([run.shared > 0 for run in seen.values()] == [True, False, False], f"{[run.facts for run in seen.values()]}")
    expect(len({run.sum for run in seen.values()}) == 1, "the same data")
    expect("MGE_PLASMA_MEMORY" in seen[MIB].err and "MGE_PLASMA_MEMORY" not in seen[0].err, f"{seen[MIB].err}")
    return "100000000 - a batch of 4 MiB lies in shared memory; 1 MiB - a warning, and it comes through a pipe; 0 - a pipe"


@check("MGE_DATALOADER_PLASMA_DEBUG")
def plasma_debug(p):
    on, off = (p.python(LOADER, MGE_DATALOADER_PLASMA_DEBUG=n).err for n in (1, 0))
    expect("bytes taken" in on and "given back" in on and "mge.data:" not in off, f"{on}; {off}")
    return "1 - a line on stderr for each use of the shared memory; 0 - none"


# ---- memory of devices and trainings


def trainer(p, model, program, loss="mse", **variables):
    p.write("m.onnx", model)
    return p.python(f"""
x = np.linspace(-1, 1, int(sys.argv[1]) * 16, dtype=np.float32).reshape(-1, 16)
with mge.Trainer("m.onnx", loss="{loss}", device="cpu0") as trainer:
    losses = [trainer.step(x=x, labels=x, learning_rate=0.1) for _ in range(2)]
    plan = trainer.plan({{"x": x, "labels": x, "learning_rate": np.float32(0.1)}})
    use = trainer.memory()
{program}
""", 256, MGE_THREADS=1, **variables)


@check("MEGENGINE_INPLACE_UPDATE")
def inplace_update(p):
    program = "    tell(accumulate=plan.count('Accumulate'), assign=plan.count('mge.Assign'), losses=losses)"
    off, on = (trainer(p, models.dense(16, 64, 16), program, MEGENGINE_INPLACE_UPDATE=n) for n in (0, 1))
    expect(on.accumulate == 2 and off.accumulate == 0 and np.allclose(on.losses, off.losses), f"{off.facts}, {on.facts}")
    return "1 - a kernel adds to each of 2 parameters in its memory (mge.Accumulate); 0 - the new ones are computed"


@check("MEGENGINE_INPLACE_UPDATE", "changed by the program")
def inplace_update_changed(p):
    p.write("m.onnx", models.dense(16, 16))
    run = p.python("""
counts = []
x = np.ones((4, 16), np.float32)
for value in ("0", "1", "0"):
    os.environ["MEGENGINE_INPLACE_UPDATE"] = value
    with mge.Trainer("m.onnx", loss="mse", device="cpu0") as trainer:
        counts.append(trainer.plan({"x": x, "labels": x, "learning_rate": np.float32(0.1)}).count("Accumulate"))
tell(counts=counts)
""")
    expect(run.counts == [0, 1, 0], f"each training obeys: {run.counts}")
    return "trainings that are created after os.environ[...] = '1' and '0' obey"


@check("MEGENGINE_INPLACE_UPDATE", "memory")
def inplace_update_memory(p):
    program = "    tell(peak=use.measured_peak_bytes)"
    off, on = (trainer(p, models.dense(16, 512, 16), program, MEGENGINE_INPLACE_UPDATE=n).peak for n in (0, 1))
    expect(on <= off - 16 * 512 * 4, f"one copy of the parameters less: {off}, {on}")
    return f"peak of a training step: {off} bytes with 0, {on} with 1"


SUBLINEAR = """
x = np.linspace(-1, 1, 512 * 64, dtype=np.float32).reshape(512, 64)
with mge.Trainer("m.onnx", loss="mse", device="cpu0") as trainer:
    losses = [trainer.step(x=x, labels=x, learning_rate=0.01) for _ in range(2)]
    use = trainer.memory()
    tell(peak=use.measured_peak_bytes, steps=use.steps, losses=losses)
"""
WIDTHS = (64, 96, 160, 96, 224, 64, 192, 96, 128, 256, 64, 160, 96, 64)


def sublinear(p, on=1, **variables):
    """Trains a network of unequal layers. Returns its peak, its steps and its losses."""
    p.write("m.onnx", models.dense(*WIDTHS, rows=512, between="Tanh"))
    run = p.python(SUBLINEAR, MGE_TRAIN_SUBLINEAR=on, MGE_THREADS=1, **variables)
    return run.peak, run.steps, run.losses


SEARCH = "MGB_SUBLINEAR_MEMORY_"


@check(SEARCH + "THRESH_NR_TRY")
def sublinear_tries(p):
    whole = sublinear(p, on=0)
    seen = {n: sublinear(p, **{SEARCH + "THRESH_NR_TRY": n}) for n in (0, 10, 100)}
    peaks = {n: peak for n, (peak, _, _) in seen.items()}
    expect(len(set(peaks.values())) > 1, f"other numbers find other plans: {peaks}")
    expect(max(peaks.values()) < whole[0] and all(np.allclose(run[2], whole[2], rtol=1e-4) for run in seen.values()),
           f"less memory than {whole[0]}, equal losses: {peaks}")
    return f"peak of a training step: {peaks} bytes, {whole[0]} without"


@check(SEARCH + "THRESH_NR_TRY", "never worse")
def sublinear_more_tries(p):
    peaks = [sublinear(p, **{SEARCH + "THRESH_NR_TRY": n})[0] for n in (0, 10, 30, 100)]
    expect(peaks == sorted(peaks, reverse=True), f"more tries never give a worse plan: {peaks}")
    return f"peak of a training step: {peaks} bytes for 0, 10, 30 and 100"


@check(SEARCH + "GENETIC_NR_ITER")
def sublinear_generations(p):
    seen = {n: sublinear(p, **{SEARCH + "GENETIC_NR_ITER": n, SEARCH + "THRESH_NR_TRY": 0})[0] for n in (0, 30)}
    expect(seen[30] < seen[0], f"generations find a better plan: {seen}")
    return f"peak of a training step: {seen} bytes"


@check(SEARCH + "GENETIC_POOL_SIZE")
def sublinear_population(p):
    seen = {n: sublinear(p, **{SEARCH + "GENETIC_NR_ITER": 5, SEARCH + "GENETIC_POOL_SIZE": n, SEARCH + "THRESH_NR_TRY": 0})[:2]
            for n in (1, 50)}
    expect(seen[1] != seen[50], f"another pool gives another plan: {seen}")
    return f"peak and steps of a training step: {seen}"


@check(SEARCH + "LOWER_BOUND_MB")
def sublinear_bound(p):
    seen = {n: sublinear(p, **{SEARCH + "LOWER_BOUND_MB": n})[:2] for n in (0, 1000)}
    expect(seen[1000][1] < seen[0][1] and seen[1000][0] > seen[0][0], f"a bound saves steps for memory: {seen}")
    return f"peak and steps of a training step: {seen}"


COUNTER = """
#include <dlfcn.h>
#include <pthread.h>
static int created;
extern "C" int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* s) {
  __atomic_fetch_add(&created, 1, __ATOMIC_RELAXED);
  return reinterpret_cast<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>(
      dlsym(RTLD_NEXT, "pthread_create"))(t, a, f, s);
}
extern "C" int created_threads() { return created; }
"""


@check(SEARCH + "WORKERS")
def sublinear_workers(p):
    library = compiled(p, "counter", COUNTER, "-ldl")
    p.write("m.onnx", models.dense(*WIDTHS, rows=512, between="Tanh"))
    program = SUBLINEAR + "import ctypes\ntell(created=ctypes.CDLL(None).created_threads())"
    seen = {n: p.python(program, MGE_TRAIN_SUBLINEAR=1, MGE_THREADS=1, LD_PRELOAD=library, **{SEARCH + "WORKERS": n})
            for n in (1, 2, 5)}
    created = {n: run.created for n, run in seen.items()}
    expect(created[1] < created[2] < created[5] and (created[5] - created[1]) == 4 * (created[2] - created[1]), f"{created}")
    expect(len({run.peak for run in seen.values()}) == 1, "the same plan for any number")
    return f"threads that the process created: {created}; the same plan"


@check("MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE")
def static_shape(p):
    p.write("m.onnx", models.dense(8, 8))
    program = """
session = mge.Session("m.onnx", device="cpu0")
session.run(np.ones((4, 8), np.float32))
try:
    tell(second=list(session.run(np.ones((5, 8), np.float32))["y"].shape))
except mge.Error as error:
    tell(second=str(error))
"""
    on, off = (p.python(program, MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE=n).second for n in (1, 0))
    expect("E0307" in on and "[4,8]" in on and "[5,8]" in on and off == [5, 8], f"{on}; {off}")
    return "a run with another batch: 1 - E0307 with both shapes; 0 - it runs"


@check("MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE", "larger batch")
def static_shape_memory(p):
    p.write("m.onnx", models.dense(64, 256, 256, 64))
    program = """
session = mge.Session("m.onnx", device="cpu0")
for rows in (64, 256):
    try:
        session = session if rows == 64 else mge.Session("m.onnx", device="cpu0")
        session.run(np.ones((rows, 64), np.float32))
        tell(peak=session.memory().planned_peak_bytes)
    except mge.Error as error:
        tell(error=str(error))
"""
    on, off = (p.python(program, MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE=n).peak for n in (1, 0))
    expect(on < off, f"planned peak: {off} with 0, {on} with 1")
    return f"planned peak: {off} bytes with 0, {on} with 1"


# Runs a model and tells what the device then lacks.
RESERVED = """
total = mge.gpu_memory_info(0)[1]
mge.Session("m.onnx", device=sys.argv[1]).run(np.ones((8, 8), np.float32))
held = total - free()
mge.gpu(0).empty_cache()
tell(total=total, held=held, after=total - free())
"""


@check("MGB_CUDA_RESERVE_MEMORY")
def cuda_reserve(p):
    p.need("software CUDA")
    p.write("m.onnx", models.one("Relu", 8, 8))
    seen = {n: p.python(RESERVED, "cuda0", MGE_CUDA_DRIVER=p.cuda_driver, MGB_CUDA_RESERVE_MEMORY=n).facts
            for n in ("0", "1", "b:100000000")}
    held = {n: facts["held"] // MIB for n, facts in seen.items()}
    expect(held["1"] > seen["1"]["total"] // MIB // 2 and 95 <= held["b:100000000"] < 120 and held["0"] < 20, f"{held}")
    expect(all(facts["after"] < 20 * MIB for facts in seen.values()), f"empty_cache returns it: {seen}")
    return f"MiB held after a run: {held}; empty_cache returns them"


@check("MGB_ROCM_RESERVE_MEMORY")
def rocm_reserve(p):
    driver = next(iter((p.prefix / "lib" / "mge" / "test").glob("libamdhip64.so*")), None)
    if driver is None or not (p.prefix / "lib" / "mge" / "plugins" / "mge_rocm.so").exists():
        raise Skip("the build has no backend rocm, or not its driver in software")
    p.write("m.onnx", models.one("Relu", 8, 8))
    held = {n: p.python(RESERVED, "rocm0", MGE_ROCM_DRIVER=driver, MGB_ROCM_RESERVE_MEMORY=n).held // MIB
            for n in ("0", "b:100000000")}
    expect(held["b:100000000"] - held["0"] >= 90, f"{held}")
    return f"MiB held after a run: {held}"


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
    err = {n: p.mge("run", model, "--device", "virtual0", MGB_CONV_PROFILING_TIMEOUT=n, **common).err for n in ("1e-6", "0")}
    expect(text in err["1e-6"] and text not in err["0"], f"{err}")
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
        p.mge("run", model, "--device", "cpu0", MGB_JIT_BACKEND=name)
        return f"{name} compiles the kernels of fused operators"
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
