# SPDX-License-Identifier: Apache-2.0
"""MegEngine's page of variables: devices, messages, data loaders, memory. megengine_eager.py has the rest."""
import re
import shutil
import subprocess

import numpy as np

import models
from mxnet_kvstore import trained
from onnx_model import FLOAT, model_of, node, tensor
from product import MIB, SOURCES, VIRTUAL, Skip, expect
from table import check

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
    changed = p.python("""
for value in ("0", "1", "0"):
    os.environ["MGB_LOG_TRT_MEM_ALLOC"] = value
    print(f"now {value}", file=sys.stderr, flush=True)
    mge.Session("m.onnx", device="example_relu0").run(np.ones(8, np.float32))
""", MGE_PLUGIN_PATH=p.folder).err.split("now ")
    expect(["12345" in part for part in changed[1:]] == [False, True, False], f"{changed}")
    return "1 - each block that a backend asks for, with size, alignment and address; 0 - none; sessions obey os.environ"


@check("MGB_LOG_TRT_MEM_ALLOC", "device memory")
def external_device_memory(p):
    p.need("software CUDA")
    cudnn = p.prefix / "tests" / "cuda" / "libcudnn.so"
    if not cudnn.exists():
        raise Skip("the build has no library in place of cuDNN")
    model = p.write("m.onnx", models.convolutions(8, 4, 4))
    on, off = (p.mge("run", model, "--device", "cuda0", MGE_CUDA_DRIVER=p.cuda_driver, MGE_CUDA_CUDNN=cudnn,
                     MGB_LOG_TRT_MEM_ALLOC=n).err for n in (1, 0))
    expect("cudnnCreate takes" in on and "cudnnCreate" not in off, f"{on}; {off}")
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
    copy = 4 * (16 * 1024 + 1024 * 1024 + 1024 * 16)  # bytes of the parameters
    p.write("m.onnx", models.dense(16, 1024, 1024, 16))
    peaks = {}
    for optimizer in ('momentum=0.9', 'optimizer="adam"'):
        program = f"""
x = np.ones((1, 16), np.float32)
with mge.Trainer("m.onnx", loss="mse", {optimizer}, device="cpu0") as trainer:
    losses = [trainer.step(x=x, labels=x, learning_rate=0.01) for _ in range(3)]
    tell(peak=trainer.memory().measured_peak_bytes, losses=losses)
"""
        off, on = (p.python(program, MGE_THREADS=1, MEGENGINE_INPLACE_UPDATE=n) for n in (0, 1))
        expect(np.allclose(on.losses, off.losses, rtol=1e-4), f"equal losses: {off.losses}, {on.losses}")
        expect(on.peak <= off.peak - 0.9 * copy, f"one copy of {copy} bytes less: {off.peak}, {on.peak}")
        peaks[optimizer] = [off.peak, on.peak]
    return f"peak of a training step with {copy} bytes of parameters, 0 and 1: {peaks}"


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


@check("MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE", "static storage")
def static_storage(p):
    p.write("m.onnx", models.dense(64, 256, 256, 64))
    program = """
session = mge.Session("m.onnx", device="cpu0")
for rows in json.loads(sys.argv[1]):
    session.run(np.ones((rows, 64), np.float32))
tell(planned=session.memory().planned_peak_bytes)
"""
    on = p.python(program, "[3200]", MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE=1).planned
    off = p.python(program, "[3000, 3100, 3200]", MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE=0).planned
    expect(on < 0.97 * off, f"planned for 3200 rows: {off} with 0, {on} with 1")
    return f"planned for 3200 rows: {on} bytes with 1; {off} with 0, after other numbers of rows, for a range of them"


@check("MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE", "larger batch")
def static_shape_batch(p):
    p.write("m.onnx", models.dense(64, 256, 256, 64))
    program = """
session = mge.Session("m.onnx", device="cpu0")
largest = 0
for rows in range(2000, 4000, 100):
    try:
        if os.environ["MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE"] == "1":
            session = mge.Session("m.onnx", device="cpu0")
        session.run(np.ones((rows, 64), np.float32))
        largest = rows
    except mge.Error:
        break
tell(largest=largest)
"""
    on, off = (p.python(program, MGE_MEMORY_LIMIT="cpu0=7900000", MEGENGINE_INPUT_NODE_USE_STATIC_SHAPE=n).largest for n in (1, 0))
    expect(on > off, f"rows that fit into a limit: {off} with 0, {on} with 1")
    return f"rows that fit into a limit: {off} with 0, {on} with 1"


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
            for n in ("0", "b:8000000")}
    expect(held["b:8000000"] - held["0"] >= 7, f"{held}")
    return f"MiB held after a run: {held}"
