# SPDX-License-Identifier: Apache-2.0
"""Ascend GE's page of GE_USE_STATIC_MEMORY, and the two options with its meaning."""
import models
from product import GPU, expect
from table import check

OPS = ["Relu", "Softmax", "Tanh", "Softmax"]

# Runs the models whose files are named, one after the other, twice. Tells the MiB that the device then lacks.
HELD = """
settings = dict(pair.split("=") for pair in sys.argv[2].split(",") if pair)
total = mge.gpu_memory_info(0)[1]
sessions = [(mge.Session(name, device="gpu0", settings=settings), rows) for name, rows in
            (pair.split("=") for pair in sys.argv[1].split(","))]
results = []
for _ in range(2):
    for session, rows in sessions:
        for n in rows.split("+"):
            x = np.linspace(-1, 1, int(n) * 1024, dtype=np.float32).reshape(-1, 1024)
            results.append(float(session.run(x)["y"].sum()))
tell(held=round((total - mge.gpu_memory_info(0)[0]) / 2**20), results=results)
"""


def held(p, what, settings="", mode=None):
    """Returns the MiB that are held after the runs."""
    p.need("virtual")
    for name, rows in (("small.onnx", 256), ("large.onnx", 768), ("open.onnx", "N")):
        p.write(name, models.reduced(OPS, rows, 1024))
    run = p.python(HELD, what, settings, GE_USE_STATIC_MEMORY=mode, **GPU)
    half = len(run.results) // 2
    expect(run.results[:half] == run.results[half:], f"the second round has the results of the first one: {run.results}")
    return run.held


FIXED = "small.onnx=256,large.onnx=768"
OPEN = "open.onnx=256+768+512"


@check("GE_USE_STATIC_MEMORY", "fixed shapes")
def fixed(p):
    seen = {mode: held(p, FIXED, mode=mode) for mode in ("0", "1", "2")}
    alone = held(p, "large.onnx=768", mode="2")
    expect(seen["1"] == seen["2"] < seen["0"], f"1 is 2, and needs less than 0: {seen}")
    expect(seen["0"] - seen["2"] > 0, f"the small model's memory is saved: {seen}, the large model alone {alone}")
    return f"MiB held by two models: {seen}; by the larger one alone: {alone}"


@check("GE_USE_STATIC_MEMORY", "variable shapes")
def variable(p):
    seen = {mode: held(p, OPEN, mode=mode) for mode in ("0", "3", "4")}
    expect(seen["3"] == seen["4"] < seen["0"], f"the memory of one size serves the others: {seen}")
    return f"MiB held after runs with three sizes: {seen}"


@check("GE_USE_STATIC_MEMORY", "both")
def both(p):
    seen = {mode: held(p, FIXED + "," + OPEN, mode=mode) for mode in ("0", "2", "3", "4")}
    expect(seen["4"] < seen["3"] < seen["0"] and seen["4"] < seen["2"] < seen["0"], f"MiB held: {seen}")
    return f"MiB held by models with fixed and with variable shapes: {seen}"


CONCURRENT = """
import threading
first, second = (mge.Session(name, device="gpu0") for name in ("small.onnx", "large.onnx"))
a, b = np.ones((64, 1024), np.float32), np.ones((192, 1024), np.float32)
control = mge.RunControl()

def stuck():
    try:
        first.run(a, control=control)
    except mge.Error:
        pass

threading.Thread(target=stuck, daemon=True).start()
time.sleep(3)  # the first run hangs in its kernel
try:
    second.run(b)
    tell(second="ran")
except mge.Error as error:
    tell(second=str(error))
os._exit(0)
"""


@check("GE_USE_STATIC_MEMORY", "concurrent runs")
def concurrent(p):
    p.need("virtual")
    p.write("small.onnx", models.reduced(OPS, 64, 1024))
    p.write("large.onnx", models.reduced(OPS, 192, 1024))
    seen = {mode: p.python(CONCURRENT, MGE_VIRTUAL_FAULT="kernel@1=hang", GE_USE_STATIC_MEMORY=mode, **GPU).second
            for mode in ("0", "2", "4")}
    expect(seen["0"] == "ran" and all("E0207" in seen[mode] for mode in ("2", "4")), f"{seen}")
    return "a run while another is in progress: E0207 with 2 and 4, which names the shared memory; runs with 0"


def conflict(p, name):
    p.need("virtual")
    p.write("small.onnx", models.reduced(OPS, 64, 1024))
    program = f"mge.Session('small.onnx', device='gpu0', settings={{'{name}': '0'}})"
    refused = p.python(program, code=1, GE_USE_STATIC_MEMORY=2, **GPU)
    expect("E0202" in refused.err and "GE_USE_STATIC_MEMORY is 2" in refused.err, f"a conflict: {refused.err[-400:]}")
    p.python(program.replace("'0'", "'2'"), GE_USE_STATIC_MEMORY=2, **GPU)


def option(name):
    def run(p):
        seen = {mode: held(p, FIXED, settings=f"{name}={mode}") for mode in ("0", "2")}
        expect(seen["2"] < seen["0"], f"MiB held: {seen}")
        conflict(p, name)
        out = p.mge("env", "--json", "--set", f"{name}=2").out
        expect(name in out, "the command line takes it, too")
        return f"MiB held by two models with the session's setting: {seen}; a variable with another value is an error"
    return run


for title in ("ge.exec.staticMemoryPolicy", "static_memory_policy"):
    check(title)(option(title))
