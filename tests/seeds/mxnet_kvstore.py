# SPDX-License-Identifier: Apache-2.0
"""MXNet's page of variables: data communication between the replicas of a training."""
import json

import numpy as np

import models
from product import DIGITS, expect
from table import check

TRAIN = ("train", DIGITS / "digits.onnx", "--input", f"image={DIGITS / 'digits_images.npy'}", "--input",
         f"labels={DIGITS / 'digits_labels.npy'}", "--batch", 16, "--data-parallel", "--json")

# A training step on the given devices, whose gradient has 512 x 512 elements.
STEP = """
with mge.Trainer("m.onnx", loss="mse", device=sys.argv[1], data_parallel=True, threads=1) as trainer:
    x = np.linspace(-1, 1, 8 * 512, dtype=np.float32).reshape(8, 512)
    losses = [trainer.step(x=x, labels=x, learning_rate=0.1) for _ in range(2)]
    tell(threads=threads(), losses=losses)
"""
ELEMENTS = 512 * 512


def step(p, devices="cpu0,virtual0", count=1, **variables):
    """Trains on the host and on virtual GPUs, so that no backend can sum for all."""
    p.need("virtual")
    p.write("m.onnx", models.dense(512, 512))
    return p.python(STEP, devices, MGE_VIRTUAL_DEVICES=count, **{"MGE_THREADS": 1, **variables})


@check("MXNET_KVSTORE_REDUCTION_NTHREADS")
def reduction_threads(p):
    for _ in range(4):  # a busy machine may end the step before all threads have begun
        seen = {n: step(p, MXNET_KVSTORE_REDUCTION_NTHREADS=n, MXNET_KVSTORE_BIGARRAY_BOUND=1) for n in (1, 4, 8)}
        counts = {n: run.threads for n, run in seen.items()}
        if counts[8] >= counts[4] + 3 and counts[4] >= counts[1] + 2:
            break
    expect(counts[8] >= counts[4] + 3 and counts[4] >= counts[1] + 2, f"threads of the process: {counts}")
    expect(len({tuple(run.losses) for run in seen.values()}) == 1, "the same bits with any number")
    return f"threads of a training on cpu0 and virtual0, whose gradients the host sums: {counts}; equal losses"


@check("MXNET_KVSTORE_BIGARRAY_BOUND")
def big_array(p):
    for _ in range(4):  # as above
        seen = {n: step(p, MXNET_KVSTORE_REDUCTION_NTHREADS=6, MXNET_KVSTORE_BIGARRAY_BOUND=n).threads
                for n in (ELEMENTS, ELEMENTS + 1)}
        if seen[ELEMENTS] - seen[ELEMENTS + 1] >= 3:
            break
    expect(seen[ELEMENTS] - seen[ELEMENTS + 1] >= 3, f"threads: {seen}")
    return f"threads for a gradient of {ELEMENTS} elements, with 6 threads of the reduction: {seen}"


@check("MXNET_KVSTORE_BIGARRAY_BOUND", "servers")
def big_array_servers(p):
    help_text = p.mge("train", "--help").out
    expect("server" in help_text, "mge train can use servers, over which big arrays are partitioned")
    return "mge train has servers"


def trained(p, devices, *options, **variables):
    p.need("virtual")
    names = ",".join(f"virtual{i}" for i in range(devices))
    return p.mge(*TRAIN, "--device", names, *options, MGE_VIRTUAL_DEVICES=devices, **variables)


@check("MXNET_KVSTORE_USETREE")
def tree(p):
    off, on = (trained(p, 2, "--set", "log.level=info", MXNET_KVSTORE_USETREE=n) for n in (0, 1))
    expect("trees of links sum the gradients" in on.err and "collectives of backend" in off.err, f"{off.err}; {on.err}")
    losses = [run.json["epochs"][0]["loss"] for run in (off, on)]
    expect(np.isclose(*losses, rtol=1e-5), f"losses: {losses}")
    return f"1 - trees of links sum the gradients; 0 - the collectives of the backend; losses {losses}"


TREES = {"MXNET_KVSTORE_USETREE": 1, "MXNET_KVSTORE_LOGTREE": 1}


def trees(p, **variables):
    """Returns the leaves of the reduction trees of four devices that are connected alike."""
    links = p.write("links.csv", "\n".join(",".join("0" if i == j else "2" for j in range(4)) for i in range(4)))
    err = trained(p, 4, MGE_VIRTUAL_LINKS=links, **TREES, **variables).err
    return [line.rpartition("|")[2].strip() for line in err.splitlines() if "Tree " in line]


@check("MXNET_KVSTORE_LOGTREE")
def log_tree(p):
    search = {"MXNET_KVSTORE_USETREE": 1, "MXNET_KVSTORE_TREE_BACKTRACK": 0}
    on, off = (trained(p, 2, MXNET_KVSTORE_LOGTREE=n, **search).err for n in (1, 0))
    alone = trained(p, 2, MXNET_KVSTORE_LOGTREE=1).err
    for word in ("Tree 0: ", "Tree 1: ", "W: ", "Links: "):
        expect(word in on and word not in off + alone, f"'{word}' only with 1, and with trees")
    return "1 - the trees, W and Links are printed; 0, or without trees - nothing"


@check("MXNET_KVSTORE_TREE_BACKTRACK")
def backtrack(p):
    golden, other = trees(p, MXNET_KVSTORE_TREE_BACKTRACK=1), trees(p, MXNET_KVSTORE_TREE_BACKTRACK=0)
    expect(golden == ["0 1 2 3", "1 2 3 0", "2 0 1 3", "3 2 0 1"], f"the trees of the search: {golden}")
    expect(other != golden and len(other) == 4, f"Kernighan-Lin gives others: {other}")
    return f"leaves of the trees of 4 devices: {golden} with 1, {other} with 0"


@check("MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY")
def penalty(p):
    seen = trees(p, MXNET_KVSTORE_TREE_BACKTRACK=1, MXNET_KVSTORE_TREE_LINK_USAGE_PENALTY=1.0)
    expect(seen == ["0 1 2 3", "1 0 2 3", "2 0 1 3", "3 0 1 2"], f"the trees of the search: {seen}")
    return f"leaves of the trees with 1.0: {seen}, other than with 0.7"


PLAN = """
devices = "virtual0,virtual1,virtual2,virtual3"
with mge.Trainer("m.onnx", loss="mse", device=devices, data_parallel=True) as trainer:
    x = np.linspace(-1, 1, 8 * 64, dtype=np.float32).reshape(8, 64)
    loss = trainer.step(x=x, labels=x, learning_rate=0.1)
    text = trainer.plan({"x": x, "labels": x, "learning_rate": np.float32(0.1)})
    tell(splits=text.count(" Split "), concats=text.count(" Concat "), loss=loss)
"""


@check("MXNET_KVSTORE_TREE_ARRAY_BOUND")
def tree_array(p):
    p.need("virtual")
    p.write("m.onnx", models.dense(64, 64))
    bound = 64 * 64
    sliced, whole = (p.python(PLAN, MGE_VIRTUAL_DEVICES=4, MXNET_KVSTORE_USETREE=1, MXNET_KVSTORE_TREE_ARRAY_BOUND=n)
                     for n in (bound - 1, bound))
    expect((sliced.splits, sliced.concats, whole.splits, whole.concats) == (1, 1, 0, 0), f"{sliced.facts}, {whole.facts}")
    expect(np.isclose(sliced.loss, whole.loss), "equal losses")
    return f"a gradient of {bound} elements is sliced for the trees with a bound of {bound - 1}, and whole with {bound}"


@check("MXNET_ENABLE_GPU_P2P")
def peer_to_peer(p):
    p.need("virtual")
    seen = []
    for n in (1, 0):
        variables = {"MGE_VIRTUAL_DEVICES": 2, "MGE_VIRTUAL_GPU": 1, "MXNET_ENABLE_GPU_P2P": n}
        run = p.mge("run", DIGITS / "digits.onnx", "--device", "virtual0+virtual1", "--json", "--digest",
                    MXNET_PROFILER_AUTOSTART=1, MXNET_PROFILER_MODE=1, **variables)
        trace = json.loads((p.folder / "profile.json").read_text())["traceEvents"]
        seen.append((sum('"peer copy"' in json.dumps(event) for event in trace), run.json["digest"]))
    expect(seen[0][0] > 0 and seen[1][0] == 0, f"peer copies: {seen}")
    expect(seen[0][1] == seen[1][1], "equal results")
    return f"direct copies between the devices of a model: {seen[0][0]} with 1, none with 0; equal results"


@check("MXNET_ENABLE_GPU_P2P", "data-parallel training")
def peer_to_peer_training(p):
    on, off = (trained(p, 2, "--set", "log.level=info", MGE_VIRTUAL_GPU=1, MXNET_ENABLE_GPU_P2P=n) for n in (1, 0))
    expect("the collectives of backend" in on.err and "the host sums the gradients" in off.err, f"{on.err}; {off.err}")
    losses = [run.json["epochs"][0]["loss"] for run in (on, off)]
    expect(np.isclose(*losses, rtol=1e-5), f"losses: {losses}")
    return f"1 - the collectives of the backend sum the gradients; 0 - the host; losses {losses}"
