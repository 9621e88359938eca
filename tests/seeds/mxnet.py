# SPDX-License-Identifier: Apache-2.0
"""MXNet's page of variables: library and files, threads. mxnet_execution.py and mxnet_kvstore.py have the rest."""
import hashlib
import http.server
import json
import threading
import zipfile

import models
from product import GPU, expect
from table import check

# ---- library and files


@check("MXNET_LIBRARY_PATH")
def library_path(p):
    copy = p.write("copy/libmge_copy.so", p.library.read_bytes())
    program = """
maps = open("/proc/self/maps").read()
tell(copies=maps.count("libmge_copy.so"), others=maps.count("libmge.so"))
"""
    plain = {"MGE_LIBRARY_PATH": None, "LD_LIBRARY_PATH": p.library.parent}
    chosen = p.python(program, MXNET_LIBRARY_PATH=copy, **plain)
    expect(chosen.copies > 0 and chosen.others == 0, f"only the copy is mapped: {chosen.facts}")
    for path, why in (("copy/libmge_copy.so", "absolute"), (p.folder / "none.so", "no such file")):
        other = p.python(program, MXNET_LIBRARY_PATH=path, **plain)
        expect(other.copies == 0 and other.others > 0 and why in other.err, f"{path} is ignored with a warning: {other.err}")
    return "only that library is mapped; a relative and a missing path are ignored with a warning"


def repository(p, content=b"the weights of a model"):
    """Writes a repository with the model `net` and the file `set/file.bin`. Returns the hash of both."""
    sha1 = hashlib.sha1(content).hexdigest()
    p.write("repository/set/file.bin", content)
    archive = p.write(f"repository/gluon/models/net-{sha1[:8]}.zip", b"")
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("net.params", content)
    return sha1


@check("MXNET_HOME")
def home(p):
    sha1 = repository(p)
    program = f"tell(path=str(mge.data.fetch('set/file.bin', sha1={sha1!r})))"
    address = f"file://{p.folder}/repository"
    first = p.python(program, MXNET_HOME=p.folder / "kept", MXNET_GLUON_REPO=address).path
    expect(first == str(p.folder / "kept/set/file.bin"), f"the file lies in MXNET_HOME: {first}")
    again = p.python(program, MXNET_HOME=p.folder / "kept", MXNET_GLUON_REPO="file:///nowhere").path
    default = p.python(program, MXNET_GLUON_REPO=address).path
    expect(again == first and default == str(p.folder / "home/.mxnet/set/file.bin"), f"~/.mxnet by default: {default}")
    return "files lie below it, and are found there again; ~/.mxnet without it"


@check("MXNET_GLUON_REPO")
def gluon_repo(p):
    sha1 = repository(p)
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *rest):
            super().__init__(*rest, directory=str(p.folder / "repository"))

        def log_message(self, form, *rest):
            asked.append(form % rest)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        program = f"tell(path=str(mge.data.fetch_model('net', sha1={sha1!r})))"
        variables = {"MXNET_GLUON_REPO": f"http://127.0.0.1:{server.server_port}/", "MXNET_HOME": p.folder / "kept"}
        path = p.python(program, **variables).path
        p.python(program, **variables)
        expect(len(asked) == 1, f"the second call asks nobody: {asked}")
        p.write(path, b"damaged")
        damaged = p.python(program, **variables)
        expect(len(asked) == 2 and "downloaded again" in damaged.err, f"a damaged file is downloaded again: {damaged.err}")
        wrong = p.python(program.replace(sha1, sha1[:8] + "0" * 32), code=1, MXNET_HOME=p.folder / "other",
                         MXNET_GLUON_REPO=variables["MXNET_GLUON_REPO"])
        expect("sha1" in wrong.err and "InvalidError" in wrong.err, f"a wrong hash is an error: {wrong.err[-300:]}")
        server.shutdown()
    refused = p.python("mge.default_runtime()", code=1, MXNET_GLUON_REPO="zz9")
    expect("MXNET_GLUON_REPO" in refused.err and "https://" in refused.err, f"zz9 is refused: {refused.err[-300:]}")
    return "downloads from there once, checked by hash; 'zz9' is refused with the allowed forms"


# ---- threads

HANG = """
import threading
model = open("m.onnx", "rb").read()
x = np.ones((64, 64), np.float32)
sessions = [mge.Session(model, device="gpu0") for _ in range(2)]
for session in sessions:
    session.run(x)  # one kernel and two copies each
control = mge.RunControl()

def stuck():
    try:
        sessions[0].run(x, control=control)
    except mge.Error:
        pass

thread = threading.Thread(target=stuck)
thread.start()
time.sleep(1.5)  # the first run hangs in its operation
try:
    y = sessions[1].run(x, timeout=float(sys.argv[1]))["y"]
    tell(second="ran")
except mge.Error as error:
    tell(second=type(error).__name__, text=str(error))
os._exit(0)
"""


def second_run(p, seconds, fault, **variables):
    """One operation of the first run never ends. Returns what becomes of the second run."""
    return p.python(HANG, seconds, MGE_VIRTUAL_FAULT=fault, **GPU, **variables).second


@check("MXNET_GPU_WORKER_NTHREADS")
def gpu_worker_threads(p):
    p.need("virtual")
    p.write("m.onnx", models.one("Relu", 64, 64))
    alone = second_run(p, 1, "kernel@3=hang", MXNET_GPU_WORKER_NTHREADS=1)
    beside = second_run(p, 60, "kernel@3=hang", MXNET_GPU_WORKER_NTHREADS=2)
    expect(alone == "TimeLimitError" and beside == "ran", f"with 1 the second run waits ({alone}), with 2 it ends ({beside})")
    return "while a kernel of one run hangs: 1 - a second run never begins; 2 - it ends"


@check("MXNET_GPU_COPY_NTHREADS")
def gpu_copy_threads(p):
    p.need("virtual")
    p.write("m.onnx", models.one("Relu", 64, 64))
    alone = second_run(p, 1, "copy@5=hang", MXNET_GPU_COPY_NTHREADS=1)
    beside = second_run(p, 60, "copy@5=hang", MXNET_GPU_COPY_NTHREADS=2)
    expect(alone == "TimeLimitError" and beside == "ran", f"with 1 the second run waits ({alone}), with 2 it ends ({beside})")
    return "while a copy of one run hangs: 1 - a second run never begins; 2 - it ends"


ASYNC = """
import asyncio
session = mge.Session("m.onnx", device="cpu0", threads=1)
x = np.ones((8, 8), np.float32)
session.run(x)

async def some(count, priority):
    order = []
    async def one(i):
        await session.run_async(x, priority=i if priority else 0)
        order.append(i)
    await asyncio.gather(*[one(i) for i in range(count)])
    return order
"""


@check("MXNET_CPU_WORKER_NTHREADS")
def cpu_worker_threads(p):
    p.write("m.onnx", models.one("Relu", 8, 8))
    program = ASYNC + "asyncio.run(some(4, False))\ntell(threads=threads())"
    seen = [p.python(program, MXNET_CPU_WORKER_NTHREADS=n).threads for n in (1, 2, 5)]
    expect([n - seen[0] for n in seen] == [0, 1, 4], f"one thread more per worker: {seen}")
    unset = p.python(program).threads
    expect(unset == seen[0], f"1 without it: {unset}")
    return f"threads of the process after asynchronous runs: {seen} for 1, 2 and 5"


PRIORITIES = """
import asyncio
light, heavy = (mge.Session(name, device="cpu0", threads=1) for name in ("m.onnx", "heavy.onnx"))
x, order = np.ones((8, 8), np.float32), []
light.run(x), heavy.run(np.ones((1024, 1024), np.float32))

async def one(i):
    await light.run_async(x, priority=i)
    order.append(i)

async def all():
    first = asyncio.ensure_future(heavy.run_async(np.ones((1024, 1024), np.float32), priority=100))
    await asyncio.sleep(0)
    await asyncio.gather(first, *[one(i) for i in (3, 1, 4, 2)])

asyncio.run(all())
tell(order=order)
"""


@check("MXNET_CPU_PRIORITY_NTHREADS", "order")
def cpu_priority_order(p):
    p.write("m.onnx", models.one("Relu", 8, 8))
    p.write("heavy.onnx", models.dense(*[1024] * 12, rows=1024, between=""))  # about a second
    order = p.python(PRIORITIES, MXNET_CPU_PRIORITY_NTHREADS=1).order
    expect(order == [4, 3, 2, 1], f"order of the priorities 3, 1, 4 and 2 behind a long run: {order}")
    return f"runs with the priorities 3, 1, 4 and 2 behind a long run end in the order {order}"


@check("MXNET_CPU_PRIORITY_NTHREADS")
def cpu_priority_threads(p):
    p.write("m.onnx", models.one("Relu", 8, 8))
    program = ASYNC + "asyncio.run(some(8, True))\ntell(threads=threads())"
    seen = [p.python(program, MXNET_CPU_PRIORITY_NTHREADS=n).threads for n in (1, 2, 4)]
    expect([n - seen[0] for n in seen] == [0, 1, 3], f"one thread more per worker: {seen}")
    return f"threads of the process after runs with priorities: {seen} for 1, 2 and 4"


def most_threads(trace, label):
    """Returns the most threads that took part in a step whose label begins so, over all runs of a trace."""
    most, workers = 1, set()
    for event in trace["traceEvents"]:
        if event.get("cat") == "step":
            workers = set()
        if event.get("cat") == "work" and event["name"].startswith(label):
            workers.add(event["tid"])
            most = max(most, len(workers) + 1)
    return most


def bench_threads(p, label, model, **variables):
    """Returns the most threads that took part in a step in several hundred runs."""
    p.mge("bench", model, "--runs", 200, "--device", "cpu0", MXNET_PROFILER_AUTOSTART=1, MXNET_PROFILER_MODE=3, **variables)
    return most_threads(json.loads((p.folder / "profile.json").read_text()), label)


@check("MXNET_CPU_NNPACK_NTHREADS")
def nnpack_threads(p):
    model = p.write("m.onnx", models.convolutions(48, 16, 64))
    own = {"MGE_THREADS": 4, "MGE_CPU_ONEDNN": 0, "MGE_CPU_OPENBLAS": 0}
    seen = [bench_threads(p, "Conv", model, MXNET_CPU_NNPACK_NTHREADS=n, **own) for n in (1, 2)]
    expect(seen == [1, 2], f"threads of a convolution: {seen}")
    return f"threads of a convolution: {seen} for 1 and 2"


FORK = """
import asyncio
def asynchronous():
    async def one():
        await session.run_async(x)
    asyncio.run(one())
session = mge.Session("m.onnx", device="cpu0", threads=1)
x = np.ones((8, 8), np.float32)
asynchronous()
pid = os.fork()
if pid == 0:
    asynchronous()
    tell(child=threads())
    os._exit(0)
os.waitpid(pid, 0)
tell(parent=threads())
"""


@check("MXNET_MP_WORKER_NTHREADS")
def forked_worker_threads(p):
    p.write("m.onnx", models.one("Relu", 8, 8))
    seen = [p.python(FORK, MXNET_MP_WORKER_NTHREADS=n, MXNET_CPU_WORKER_NTHREADS=3) for n in (1, 2, 4)]
    children, parents = [s.child for s in seen], [s.parent for s in seen]
    expect([n - children[0] for n in children] == [0, 1, 3], f"one thread more per worker in the child: {children}")
    expect(len(set(parents)) == 1, f"the parent is not affected: {parents}")
    return f"threads of a forked child: {children} for 1, 2 and 4; of the parent: {parents[0]}"


DECODE = """
import threading, types
sys.modules["cv2"] = types.SimpleNamespace(setNumThreads=lambda n: open("opencv", "w").write(str(n)))
together = threading.Barrier(4)

class Items:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        try:
            together.wait(float(sys.argv[1]))
        except threading.BrokenBarrierError:
            return np.array([0, threading.current_thread() is threading.main_thread()])
        return np.array([1, 0])

rows = next(iter(mge.data.DataLoader(Items(), 8, workers=1)))
tell(four=bool(rows[:, 0].all()), main=bool(rows[:, 1].all()), opencv=open("opencv").read())
"""


@check("MXNET_MP_OPENCV_NUM_THREADS")
def opencv_threads(p):
    none, four = p.python(DECODE, 0.2, MXNET_MP_OPENCV_NUM_THREADS=0), p.python(DECODE, 60, MXNET_MP_OPENCV_NUM_THREADS=4)
    expect(none.main and not none.four and none.opencv == "0", f"0: the main thread of the worker: {none.facts}")
    expect(four.four and four.opencv == "4", f"4: four items at the same time: {four.facts}")
    return "0 - items in the worker's main thread; 4 - four items at the same time; OpenCV is told the number"


@check("MXNET_CPU_PARALLEL_COPY_SIZE")
def parallel_copy(p):
    count = 300_000
    model = p.write("m.onnx", models.one("Identity", count))
    seen = [bench_threads(p, "copy", model, MGE_THREADS=2, MXNET_CPU_PARALLEL_COPY_SIZE=n) for n in (count + 1, count)]
    expect(seen == [1, 2], f"threads of a copy of {count} elements: {seen}")
    return f"threads of a copy of {count} elements: 1 if it is {count + 1}, 2 if it is {count}"


# Runs an operator of 64 elements until the other threads of the process have gone to sleep 20 times, or some hundred times. A
# thread that nobody wakes never goes to sleep again.
WAKES = """
def sleeps():
    total = 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            status = open(f"/proc/self/task/{task}/status").read()
            total += int(status.split("\\nvoluntary_ctxt_switches:")[1].split()[0])
    return total

session = mge.Session("m.onnx", device="cpu0", threads=2)
x = np.ones(64, np.float32)
session.run(x)
time.sleep(0.3)
begin, runs = sleeps(), 0
while runs < int(sys.argv[1]) and sleeps() - begin < 20:
    session.run(x)
    runs += 1
    time.sleep(0.003)
tell(wakes=sleeps() - begin)
"""


def tuning(name):
    def run(p):
        p.write("m.onnx", models.one("Exp", 64))
        tuned = {value: p.python(WAKES, 100, MGE_THREADS=2, **{name: value}).wakes for value in ("1", "float32")}
        others = {value: p.python(WAKES, 5000, MGE_THREADS=2, **{name: value}).wakes for value in ("0", "int32")}
        expect(max(tuned.values()) < 10, f"measured times forbid a second thread for 64 elements: {tuned}")
        expect(min(others.values()) >= 20, f"types that are not tuned always use all threads: {others}")
        return f"wakes of the second thread by Exp of 64 elements: {tuned}, {others}"
    return run


for alias in ("MXNET_USE_OPERATOR_TUNING", "MXNET_ENABLE_OPERATOR_TUNING"):
    check(alias)(tuning(alias))


@check("MXNET_USE_NUM_CORES_OPERATOR_TUNING")
def tuning_cores(p):
    model = p.write("m.onnx", models.one("Exp", 2_000_000))
    common = {"MGE_THREADS": 2, "MXNET_USE_OPERATOR_TUNING": 1}
    alone = bench_threads(p, "Exp", model, MXNET_USE_NUM_CORES_OPERATOR_TUNING=1, **common)
    free = bench_threads(p, "Exp", model, MXNET_USE_OPERATOR_TUNING=0, MGE_THREADS=2)
    expect((alone, free) == (1, 2), f"threads of 2 million elements: {alone}, without tuning {free}")
    return "1 - tuned operators never use a second thread; without tuning they do"
