# SPDX-License-Identifier: Apache-2.0
"""Objects of the package that are closed, or used by several threads while one closes them. The environment is that of mge_test."""
import gc
import pathlib
import subprocess
import sys
import threading
import unittest

import numpy as np

import mge
from mge import _handles, eager

MODEL = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx"
IMAGE = np.zeros((1, 1, 8, 8), np.float32)


def closed(made):
    made.close()
    return made


def closed_sessions():
    """Returns a session that has run, so that it has all that a session can have, and was closed."""
    session = mge.Session(MODEL)
    session.run(IMAGE)
    return closed(session)


async def awaited(session):
    return await session.run_async(image=IMAGE)


def run_async(session):
    import asyncio

    return asyncio.run(awaited(session))


# For each class: how to make a closed object, and a call of each function and attribute. A class without close() is listed with
# an object whose constructor did not run: that is what a failed constructor leaves.
SESSION_CALLS = {
    "run": lambda s: s.run(IMAGE), "run_async": run_async, "plan": lambda s: s.plan(IMAGE),
    "report": lambda s: s.report("mge.inspect/1"), "memory": lambda s: s.memory(), "devices": lambda s: s.devices,
    "threads": lambda s: s.threads, "metadata": lambda s: s.metadata, "example_inputs": lambda s: s.example_inputs(),
    "read_input": lambda s: s.read_input("image", "x.npy"), "read_output": lambda s: s.read_output("probabilities", "x.npy"),
    "enqueue": lambda s: s.enqueue(IMAGE), "states": lambda s: list(s.states)}
CLASSES = {
    mge.Session: (closed_sessions, SESSION_CALLS),
    mge.Trainer: (lambda: closed(mge.Trainer(MODEL)), {
        **SESSION_CALLS, "step": lambda t: t.step(image=IMAGE, labels=np.array([1]), learning_rate=0.1),
        "evaluate": lambda t: t.evaluate(image=IMAGE, labels=np.array([1])), "evaluation": lambda t: t.evaluation,
        "fit": lambda t: t.fit([{"image": IMAGE, "labels": np.array([1])}], learning_rate=0.1), "part": lambda t: t.part(4),
        "steps_done": lambda t: t.steps_done, "gradients": lambda t: t.gradients,
        "parameters": lambda t: t.parameters, "save": lambda t: t.save("/tmp/x.onnx"),
        "save_checkpoint": lambda t: t.save_checkpoint("/tmp/x.ckpt"),
        "load_checkpoint": lambda t: t.load_checkpoint("/tmp/x.ckpt")}),
    mge.Runtime: (lambda: closed(mge.Runtime()), {
        "set": lambda r: r.set("seed", 1), "get": lambda r: r.get("seed"),
        "set_default_device": lambda r: r.set_default_device("cpu0"),
        "set_execution_strategy": lambda r: r.set_execution_strategy("heuristic"),
        "report": lambda r: r.report("mge.env/1"), "devices": lambda r: r.devices(),
        "model_report": lambda r: r.model_report(MODEL), "collective_id": lambda r: r.collective_id("cpu0")}),
    mge.Tensor: (lambda: closed(mge.Tensor(IMAGE)), {
        "shape": lambda t: t.shape, "dtype": lambda t: t.dtype, "device": lambda t: t.device, "address": lambda t: t.address,
        "context": lambda t: t.context, "page_locked": lambda t: t.page_locked, "size": lambda t: t.size,
        "nbytes": lambda t: t.nbytes, "numpy": lambda t: t.numpy(), "to_host": lambda t: t.to_host(),
        "to": lambda t: t.to("cpu0"), "write": lambda t: t.write("/tmp/x.npy"), "__len__": len, "__array__": np.asarray,
        "__dlpack__": lambda t: t.__dlpack__(), "__dlpack_device__": lambda t: t.__dlpack_device__(),
        "run": lambda t: mge.Session(MODEL).run(t)}),
    mge.RunControl: (lambda: mge.RunControl.__new__(mge.RunControl), {
        "cancel": lambda c: c.cancel(), "reset": lambda c: c.reset(), "overdue": lambda c: c.overdue(),
        "run": lambda c: mge.Session(MODEL).run(IMAGE, control=c)}),
    mge.Profile: (lambda: mge.Profile.__new__(mge.Profile), {
        "reset": lambda p: p.reset(), "report": lambda p: p.report(), "control": lambda p: mge.RunControl(profile=p),
        "plan": lambda p: mge.Session(MODEL).plan(IMAGE, profile=p)}),
    mge.EnqueuedRun: (lambda: mge.EnqueuedRun.__new__(mge.EnqueuedRun), {
        "wait": lambda r: r.wait(), "result": lambda r: r.result(), "after": lambda r: mge.Session(MODEL).enqueue(IMAGE, after=[r])}),
    mge.Generator: (lambda: mge.Generator.__new__(mge.Generator), {
        "vocabulary": lambda g: g.vocabulary, "max_length": lambda g: g.max_length, "end_tokens": lambda g: g.end_tokens,
        "device": lambda g: g.device, "cache_bytes_per_token": lambda g: g.cache_bytes_per_token,
        "weight_bytes": lambda g: g.weight_bytes, "sampling": lambda g: g.sampling, "sequence": lambda g: g.sequence,
        "append": lambda g: g.append([1]), "set_source": lambda g: g.set_source(), "next": lambda g: g.next(), "logits": lambda g: g.logits(),
        "rewind": lambda g: g.rewind(0), "tokens": lambda g: next(g.tokens()), "generate": lambda g: next(g.generate("a"))}),
    mge.Batch: (lambda: mge.Batch.__new__(mge.Batch), {
        "add": lambda b: b.add([1]), "step": lambda b: b.step(), "tokens": lambda b: b.tokens(0), "remove": lambda b: b.remove(0)}),
    eager.Eager: (lambda: eager.Eager.__new__(eager.Eager), {
        "tensor": lambda e: e.tensor([1.0]), "apply": lambda e: e.apply("Relu", [1.0]), "synchronize": lambda e: e.synchronize(),
        "report": lambda e: e.report()}),
    eager.EagerTensor: (lambda: eager.EagerTensor(eager._default(), None), {
        "shape": lambda t: t.shape, "dtype": lambda t: t.dtype, "device": lambda t: t.device, "context": lambda t: t.context,
        "state": lambda t: t.state,
        "__dlpack__": lambda t: t.__dlpack__(), "__dlpack_device__": lambda t: t.__dlpack_device__(),
        "numpy": lambda t: t.numpy(), "get": lambda t: t.get(), "item": lambda t: t.item(), "wait": lambda t: t.wait(),
        "drop": lambda t: t.drop(), "swap_out": lambda t: t.swap_out(), "swap_in": lambda t: t.swap_in(), "__len__": len,
        "__array__": np.asarray, "__add__": lambda t: t + 1, "__neg__": lambda t: -t, "__matmul__": lambda t: t @ t,
        "apply": lambda t: eager.ops.Relu(t)}),
    eager.GradientTape: (lambda: eager.GradientTape.__new__(eager.GradientTape), {
        "__enter__": lambda t: t.__enter__(), "__exit__": lambda t: t.__exit__(),
        "watch": lambda t: t.watch(eager.tensor([1.0])),
        "gradient": lambda t: t.gradient(eager.tensor([1.0]), [eager.tensor([1.0])])}),
}
ALLOWED = {"close", "closed", "ops",  # of closed objects
           "empty", "read", "from_dlpack",  # class methods
           "tokenizer", "encode", "decode", "chat_prompt",  # which read files of the folder only
           "inputs", "outputs", "compiled", "quiet", "deliver"}  # what Python has itself


def owners(cls=_handles.Owner):
    for sub in cls.__subclasses__():
        yield sub
        yield from owners(sub)


class ClosedObjects(unittest.TestCase):
    def test_raise_in_every_function(self):
        for cls, (make, calls) in CLASSES.items():
            for name, call in calls.items():
                with self.subTest(cls=cls.__name__, name=name):
                    with self.assertRaisesRegex(mge.ClosedError, "is closed"):
                        call(make())

    def test_are_all_in_the_table(self):
        for cls in owners():
            if cls is _handles.Closable:
                continue
            with self.subTest(cls=cls.__name__):
                functions = {name for name in dir(cls) if not name.startswith("_")} - ALLOWED
                self.assertLessEqual(functions, CLASSES[cls][1].keys())

    def test_may_be_closed_again_and_say_so(self):
        for cls in (mge.Session, mge.Trainer, mge.Runtime, mge.Tensor):
            made = CLASSES[cls][0]()
            made.close()
            self.assertTrue(made.closed)
            with self.assertRaises(mge.ClosedError):
                made.__enter__()
            if cls is not mge.Runtime:
                self.assertIn("closed", repr(made))

    def test_leave_the_memory_that_others_share(self):
        tensor = mge.Tensor(np.arange(1000, dtype=np.float32))
        array = tensor.numpy()
        capsule = np.from_dlpack(tensor)
        tensor.close()
        gc.collect()
        np.testing.assert_array_equal(array, np.arange(1000))
        np.testing.assert_array_equal(capsule, np.arange(1000))
        with mge.Runtime() as runtime:
            session = mge.Session(MODEL, runtime=runtime)
        session.run(IMAGE)
        with self.assertRaises(mge.ClosedError):
            mge.Session(MODEL, runtime=runtime)

    def test_of_a_default_runtime_are_replaced(self):
        mge.default_runtime().close()
        self.assertFalse(mge.default_runtime().closed)
        mge.Session(MODEL).run(IMAGE)


class Threads(unittest.TestCase):
    def test_may_run_a_session_while_another_closes_it(self):
        for compiled in (True, False):
            for _ in range(20):
                session = mge.Session(MODEL, threads=1)
                if not compiled:
                    session._call = None
                ended = []

                def work():
                    try:
                        while True:
                            session.run(image=IMAGE)
                    except BaseException as error:
                        ended.append(error)

                threads = [threading.Thread(target=work) for _ in range(4)]
                for thread in threads: thread.start()
                session.close()
                for thread in threads: thread.join()
                self.assertEqual({type(error) for error in ended}, {mge.ClosedError})

    def test_that_run_a_session_are_waited_for_by_close(self):
        session = mge.Session(MODEL, device="host", threads=1)
        batch = np.zeros((300, 1, 8, 8), np.float32)
        begun, ended = threading.Event(), []

        def work():
            begun.set()
            session.run(image=batch)
            ended.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
        while not session._running and not ended:
            pass
        session.close()
        thread.join()
        self.assertEqual(ended, [True])

    def test_may_close_tensors_that_others_use(self):
        for _ in range(200):
            tensor = mge.Tensor(np.zeros((64, 64), np.float32))

            def work():
                try:
                    while True:
                        tensor.numpy().sum(), tensor.shape, tensor.nbytes
                except mge.ClosedError:
                    pass

            thread = threading.Thread(target=work)
            thread.start()
            tensor.close()
            thread.join()

    def test_may_end_in_many_contexts(self):
        source = ("import mge, threading\n"
                  "def enter():\n"
                  "  for _ in range(10000): mge.cpu().__enter__()\n"
                  "thread = threading.Thread(target=enter)\n"
                  "thread.start(); thread.join(); enter()\n"
                  "print(mge.current_context())\n")
        ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "cpu(0)\n", ""))

    def test_leave_only_contexts_of_their_own(self):
        context = mge.cpu()
        context.__enter__()
        errors = []

        def leave():
            try:
                context.__exit__()
            except mge.UsageError as error:
                errors.append(error)

        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        self.assertEqual(len(errors), 1)
        context.__exit__()


if __name__ == "__main__":
    unittest.main()
