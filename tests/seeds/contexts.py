# SPDX-License-Identifier: Apache-2.0
"""The page of mxnet.context, as Python programs use it."""
from product import expect
from table import check

GPUS = {"MGE_VIRTUAL_DEVICES": 3, "MGE_VIRTUAL_GPU": 1}


def holds(p, program, *devices, **variables):
    """Runs a program of assertions."""
    p.need(*devices)
    p.python(program, **(GPUS if devices else {}), **variables)


@check("mxnet.context.Context")
def context(p):
    holds(p, """
a = np.ones((2, 3), np.float32)
assert mge.Context(mge.gpu(2)) == mge.gpu(2) == mge.Context("gpu", 2) and repr(mge.gpu(2)) == "gpu(2)"
with mge.Context(mge.gpu(2)):
    inside = mge.Tensor(a)
    with mge.cpu():
        assert mge.Tensor(a).context == mge.cpu(0)
    assert mge.Tensor(a).context == mge.gpu(2)
assert inside.context == mge.gpu(2) and np.array_equal(inside, a)
try:
    with mge.gpu(1):
        raise ValueError
except ValueError:
    assert mge.current_context() == mge.cpu(0)
""", "virtual")
    wrong = p.python("mge.Context('tpu', 0)", code=1)
    expect("tpu" in wrong.err, f"an unknown type is an error: {wrong.err[-300:]}")
    return "the page's examples; scopes nest and end with an exception; an unknown type is an error"


@check("mxnet.context.Context.device_type")
def device_type(p):
    holds(p, """
assert (mge.current_context().device_type, mge.gpu(1).device_type, mge.cpu_pinned().device_type) == ("cpu", "gpu", "cpu_pinned")
try:
    mge.gpu(1).device_type = "cpu"
    assert False
except AttributeError:
    pass
""")
    return "'cpu', 'gpu', 'cpu_pinned'; it cannot be written"


@check("mxnet.context.Context.empty_cache")
def empty_cache(p):
    p.need("virtual")
    program = """
kept = mge.Tensor(np.arange(1000, dtype=np.float32), device=mge.gpu(0))
begin = free()
arr = mge.Tensor.empty((16 << 20,), "uint8", device=mge.gpu(0))
del arr
cached = begin - free()
mge.gpu(0).empty_cache()
tell(cached=cached, after=begin - free(), kept=bool(np.array_equal(kept, np.arange(1000))))
"""
    run = p.python(program, MXNET_GPU_MEM_POOL_TYPE="Naive", **GPUS)
    expect(run.cached == 16 << 20 and run.after <= 0 and run.kept, f"{run.facts}")
    return "16 MiB of a deleted tensor stay until then; a live tensor keeps its elements"


@check("mxnet.context.cpu")
def cpu(p):
    holds(p, """
a = np.ones((2, 3), np.float32)
with mge.cpu():
    assert mge.Tensor(a).context == eager.tensor(a).context == mge.cpu(0)
    assert eager.tensor(a).device == "cpu0"
assert mge.Tensor(a, device=mge.cpu()).context == mge.cpu()
""", "virtual")
    return "cpu(0); tensors and eager tensors lie there"


@check("mxnet.context.cpu_pinned")
def cpu_pinned(p):
    holds(p, """
a = np.ones((2, 3), np.float32)
for t in (mge.Tensor(a, device=mge.cpu_pinned()), eager.tensor(a, device=mge.cpu_pinned()).get()):
    assert t.page_locked and t.context == mge.cpu_pinned(0) and np.array_equal(t, a)
with mge.cpu_pinned():
    assert mge.Tensor(a).page_locked
assert not mge.Tensor(a).page_locked
""", "virtual")
    return "tensors and eager tensors lie in page-locked memory, also those of a scope"


@check("mxnet.context.cpu_pinned", "copies")
def cpu_pinned_copies(p):
    import models
    p.need("virtual")
    p.write("m.onnx", models.one("Relu", 512, 512))
    run = p.python("""
session = mge.Session("m.onnx", device=mge.gpu(0), outputs_on_device=True)
a = np.ones((512, 512), np.float32)
session.run(a)
plain = session.memory().staged_bytes
session.run(mge.Tensor(a, device=mge.cpu_pinned()))
tell(plain=plain, pinned=session.memory().staged_bytes - plain)
""", **GPUS)
    expect(run.plain > 0 and run.pinned == 0, f"staged bytes: {run.facts}")
    return f"bytes that a run copies to page-locked memory first: {run.plain} from plain memory, 0 from there"


@check("mxnet.context.current_context")
def current_context(p):
    holds(p, """
import threading
assert mge.current_context() == mge.cpu(0)
with mge.Context("gpu", 1):
    assert mge.current_context() == mge.gpu(1)
    others = []
    thread = threading.Thread(target=lambda: others.append(mge.current_context()))
    thread.start(), thread.join()
    assert others == [mge.cpu(0)]
assert mge.current_context() == mge.cpu(0)
""", "virtual")
    holds(p, "assert mge.current_context() == mge.gpu(1)", "virtual", MGE_DEFAULT_DEVICE="gpu1")
    return "cpu(0), that of the scope, of each thread; gpu(1) with MGE_DEFAULT_DEVICE=gpu1"


@check("mxnet.context.gpu")
def gpu(p):
    import models
    p.write("m.onnx", models.one("Relu", 2, 3))
    holds(p, """
a = np.ones((2, 3), np.float32)
with mge.gpu(1):
    inside = [mge.Tensor(a), mge.Tensor.empty((2, 3)), eager.tensor(a)]
    assert mge.Session("m.onnx").devices == ("virtual1",)
outside = [mge.Tensor(a, device=mge.gpu(1)), eager.tensor(a, device=mge.gpu(1)), mge.Tensor(a).to(mge.gpu(1))]
for t in inside + outside:
    assert t.context.device_id == 1 and t.context.device_type in ("gpu", "virtual"), t.context
assert mge.Session("m.onnx", device=mge.gpu(2)).devices == ("virtual2",)
""", "virtual")
    return "tensors, eager tensors and sessions lie there, in a scope and by device="


@check("mxnet.context.gpu_memory_info")
def gpu_memory_info(p):
    holds(p, """
assert mge.gpu_memory_info(0) == (64 << 20, 64 << 20), mge.gpu_memory_info(0)
t = mge.Tensor.empty((8 << 20,), "uint8", device=mge.gpu(0))
free, total = mge.gpu_memory_info(0)
assert total == 64 << 20 and free <= 56 << 20 and mge.gpu_memory_info(1)[0] == total
try:
    mge.gpu_memory_info(7)
    assert False
except mge.DeviceError as error:
    assert "gpu(7)" in str(error), error
""", "virtual", MGE_VIRTUAL_MEMORY_BYTES="64MiB")
    return "(free, total) of each GPU; an error for one that does not exist"


@check("mxnet.context.num_gpus")
def num_gpus(p):
    p.need("virtual")
    none = p.python("tell(count=mge.num_gpus())", MGE_CUDA_DRIVER="/nowhere/libcuda.so.1", MGE_PLUGIN_SKIP="cuda,rocm").count
    three = p.python("tell(count=mge.num_gpus())", MGE_PLUGIN_SKIP="cuda,rocm", **GPUS).count
    expect((none, three) == (0, 3), f"{none}, {three}")
    return "0 without a GPU, no exception; 3 with three virtual ones"
