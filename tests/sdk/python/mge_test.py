# SPDX-License-Identifier: Apache-2.0
"""The Python package, used as applications do.

TEST_TREE: the build tree. TEST_CASES: ONNX's test cases for single nodes. MGE_VIRTUAL_DEVICES: 2 or more.
"""
import asyncio
import gc
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import numpy as np

import mge
import mge._native as native
from mge import eager

SOURCES = pathlib.Path(__file__).resolve().parents[3]
TREE = pathlib.Path(os.environ["TEST_TREE"])
CASES = pathlib.Path(os.environ["TEST_CASES"])
DIGITS = SOURCES / "packaging" / "digits"
MODEL = DIGITS / "digits.onnx"


def images():
    return np.load(DIGITS / "digits_images.npy").astype(np.float32).reshape(-1, 1, 8, 8)


def labels():
    return np.load(DIGITS / "digits_labels.npy").astype(np.int64)


def python(source, *arguments, **variables):
    """Starts another Python."""
    return subprocess.Popen([sys.executable, "-c", source, *map(str, arguments)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})


def zoo(name, folder, *options):
    path = pathlib.Path(folder) / f"{name}.onnx"
    subprocess.run([TREE / "bin" / "mge", "zoo", name, "-o", path, *options], check=True, capture_output=True)
    return path


class Sessions(unittest.TestCase):
    def test_find_the_digits(self):
        result = mge.run(MODEL, image=images())["probabilities"]
        self.assertGreaterEqual(np.mean(result.argmax(1) == labels()), 0.95)

    def test_describe_themselves(self):
        with mge.Session(MODEL, device="cpu0", threads=1) as session:
            self.assertEqual(session.inputs, (mge.Value("image", "tensor", "float32", ("N", 1, 8, 8)),))
            self.assertEqual(session.outputs[0].shape, ("N", 10))
            self.assertEqual((session.devices, session.threads), (("cpu0",), 1))
            self.assertIn("image: float32['N', 1, 8, 8]", repr(session))
            self.assertIn("cpu.conv", session.plan(image=images()[:1]))
            session.run(image=images())
            self.assertGreater(session.memory().planned_peak_bytes, 0)
            self.assertEqual(session.report("mge.inspect/1")["schema"], "mge.inspect/1")

    def test_take_bytes_lists_and_arrays_of_any_order(self):
        session = mge.Session(MODEL.read_bytes())
        expected = session.run({"image": images()[:2]})["probabilities"]
        fortran = np.asfortranarray(images()[:2])
        every_second = np.repeat(images()[:2], 2, axis=0)[::2]
        for given in (fortran, every_second, images()[:2].tolist()):
            np.testing.assert_array_equal(session.run(image=given)["probabilities"], expected)

    def test_compute_only_the_outputs_that_are_named(self):
        with mge.Session(CASES / "test_top_k" / "model.onnx") as session:
            result = session.run(x=np.array([[0, 1, 2], [5, 4, 3]] * 2, np.float32).reshape(3, 4), k=np.array([2]),
                                 outputs=["indices"])
            self.assertEqual(list(result), ["indices"])
            self.assertEqual(result["indices"].dtype, np.int64)

    def test_take_a_list_of_all_inputs_and_any_name_of_an_input(self):
        with mge.Session(CASES / "test_top_k" / "model.onnx") as session:
            x, k = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([3])
            expected = session.run(x=x, k=k)
            for given in ([x, k], (x, k)):
                np.testing.assert_array_equal(session.run(given)["indices"], expected["indices"])
            with self.assertRaisesRegex(mge.UsageError, r"the list has 1 values, and the inputs are \['x', 'k'\]"):
                session.run([x])
            with self.assertRaisesRegex(mge.UsageError, "in one way"):
                session.run([x], k=k)
        with mge.Session(MODEL) as session:  # a list of one array is the list of inputs, or a batch of images
            expected = session.run(image=images()[:1])["probabilities"]
            for given in ([images()[:1]], (mge.Tensor(images()[:1]),), [images()[0]], images()[:1].tolist()):
                np.testing.assert_array_equal(session.run(given)["probabilities"], expected)
        with self.assertRaisesRegex(mge.InvalidError, "no input 'inputs'"):  # positional only: a model may name an input so
            mge.Session(MODEL).run(inputs=images())

    def test_keep_outputs_alive_without_the_session(self):
        session = mge.Session(MODEL)
        result = session.run(image=images()[:3])["probabilities"]
        copy = result.copy()
        session.close()
        session.close()
        np.testing.assert_array_equal(result, copy)
        with self.assertRaisesRegex(mge.UsageError, "closed"):
            session.run(image=images())
        self.assertEqual(repr(session), "<mge.Session, closed>")

    def test_run_in_several_threads(self):
        session = mge.Session(MODEL)
        expected = session.run(image=images())["probabilities"]
        results = [None] * 4
        def work(i):
            for _ in range(20):
                results[i] = session.run(image=images())["probabilities"]
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        for result in results:
            np.testing.assert_array_equal(result, expected)

    def test_run_in_an_event_loop(self):
        session = mge.Session(MODEL)
        async def work():
            return await asyncio.gather(*[session.run_async(image=images()[i : i + 1]) for i in range(5)])
        results = np.concatenate([r["probabilities"] for r in asyncio.run(work())])
        np.testing.assert_allclose(results, session.run(image=images()[:5])["probabilities"], rtol=1e-4, atol=1e-6)
        with self.assertRaises(mge.UsageError):
            asyncio.run(session.run_async(picture=images()))

    def test_return_strings_sequences_optionals_and_small_floats(self):
        def case(name):
            with mge.Session(CASES / name / "model.onnx") as session:
                files = sorted((CASES / name / "test_data_set_0").glob("input_*.pb"))
                inputs = {v.name: mge.Tensor.read(f) for v, f in zip(session.inputs, files)}
                return next(iter(session.run(inputs).values()))
        self.assertEqual(case("test_strnormalizer_export_monday_casesensintive_upper").tolist(),
                         ["TUESDAY", "WEDNESDAY", "THURSDAY"])
        self.assertEqual(case("test_cast_FLOAT_to_BFLOAT16").itemsize, 2)
        upper = mge.Session(CASES / "test_strnormalizer_export_monday_casesensintive_upper" / "model.onnx")
        given = {upper.inputs[0].name: np.array(["monday", "tuesday", "", "käse"], object)}
        self.assertEqual(next(iter(upper.run(given).values())).tolist()[-1], "KÄSE")


class Errors(unittest.TestCase):
    def test_have_a_class_and_parts(self):
        with self.assertRaises(mge.FileError) as caught:
            mge.Session("/nowhere.onnx")
        self.assertEqual((caught.exception.id, caught.exception.code, caught.exception.exit_code), (701, 5, 7))
        self.assertIn("Check the path", caught.exception.to_dict()["fix"])
        self.assertIsInstance(caught.exception, OSError)
        self.assertIn("cannot read '/nowhere.onnx'", str(caught.exception))
        session = mge.Session(MODEL)
        with self.assertRaisesRegex(ValueError, "did you mean 'image'"):
            session.run(imag=images())
        with self.assertRaisesRegex(mge.InvalidError, "float64"):
            session.run(image=images().astype(np.float64))
        with self.assertRaisesRegex(mge.UsageError, "strings only"):
            session.run(image=None)
        with self.assertRaisesRegex(mge.UsageError, "these were given"):
            session.plan()
        with self.assertRaises(mge.DeviceError):
            mge.Session(MODEL, device="gpu7")
        with self.assertRaisesRegex(mge.UsageError, "complex256|float128|datetime"):
            mge.Tensor(np.array(["2020-01-01"], "datetime64[D]"))

    def test_end_a_run_that_takes_too_long_or_is_cancelled(self):
        session = mge.Session(MODEL)
        with self.assertRaises(TimeoutError):
            session.run(image=images(), timeout=1e-9)
        control = mge.RunControl()
        control.cancel()
        with self.assertRaises(mge.CancelledError):
            session.run(image=images(), control=control)
        control.reset()
        session.run(image=images(), control=control)
        with self.assertRaises(mge.UsageError):
            session.run(image=images(), control=control, timeout=1)

    def test_of_the_keyboard_end_a_run_and_the_session_stays_usable(self):
        with tempfile.TemporaryDirectory() as folder:
            model = zoo("products", folder, "--batch", "4096")
            process = python(
                "import sys, time, numpy as np, mge\n"
                "s = mge.Session(sys.argv[1], device='host')\n"
                "x = {v.name: np.ones(v.shape, v.dtype) for v in s.inputs}\n"
                "print('begins', flush=True)\n"
                "try:\n"
                "  s.run(x)\n"
                "  print('ended')\n"
                "except KeyboardInterrupt:\n"
                "  print('interrupted', flush=True)\n"
                "try: s.run(x, timeout=0.1)\n"
                "except mge.TimeLimitError: print('usable')\n", model)
            self.assertEqual(process.stdout.readline(), "begins\n")
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(out, "interrupted\nusable\n", err)


class Tensors(unittest.TestCase):
    def test_share_the_memory_of_arrays(self):
        array = np.arange(6, dtype=np.int32).reshape(2, 3)
        tensor = mge.Tensor(array)
        array[0, 0] = 7
        self.assertEqual(np.asarray(tensor)[0, 0], 7)
        self.assertEqual((tensor.shape, tensor.dtype, tensor.device, tensor.nbytes), ((2, 3), "int32", "", 24))
        self.assertEqual(repr(tensor), "<mge.Tensor int32[2, 3]>")
        self.assertEqual((tensor.size, tensor.page_locked), (6, False))
        self.assertEqual(np.asarray(mge.Tensor(np.float32(3))).shape, ())
        self.assertEqual(np.asarray(mge.Tensor(np.empty((0, 2), np.float32))).shape, (0, 2))

    def test_are_shared_by_dlpack_both_ways(self):
        array = np.arange(4, dtype=np.float32)
        tensor = mge.Tensor.from_dlpack(array)
        self.assertEqual(tensor.address, array.ctypes.data)
        back = np.from_dlpack(tensor)
        self.assertEqual(back.ctypes.data, array.ctypes.data)
        del tensor
        np.testing.assert_array_equal(back, [0, 1, 2, 3])
        mge.Tensor(array).__dlpack__()  # nobody takes it

    def test_of_dlpack_keep_that_they_must_not_be_written(self):
        frozen = np.arange(3, dtype=np.float32)
        frozen.flags.writeable = False
        for tensor in (mge.Tensor(frozen), mge.eager.tensor(frozen).get()):
            self.assertFalse(np.asarray(tensor).flags.writeable)
            self.assertFalse(np.asarray(mge.Tensor.from_dlpack(tensor)).flags.writeable)
            old = tensor.__dlpack__()  # cannot tell: it is a copy
            self.assertIn('"dltensor"', repr(old))
            with self.assertRaises(BufferError):
                tensor.__dlpack__(copy=False)
        np.testing.assert_array_equal(np.from_dlpack(mge.eager.tensor(frozen)), frozen)

    def test_of_dlpack_keep_the_array_whose_memory_they_share(self):
        for version in (None, (1, 0)):
            array = np.arange(100_000, dtype=np.float32)
            alive = weakref.ref(array)

            class Source:
                def __init__(self, tensor):
                    self.tensor = tensor

                def __dlpack__(self, **_):
                    return self.tensor.__dlpack__(max_version=version)

                def __dlpack_device__(self):
                    return 1, 0

            shared = mge.Tensor.from_dlpack(Source(mge.Tensor(array)))
            del array
            gc.collect()
            self.assertIsNotNone(alive())
            np.testing.assert_array_equal(shared, np.arange(100_000))
            shared.close()
            gc.collect()
            self.assertIsNone(alive())
        empty = mge.Tensor.from_dlpack(mge.Tensor(np.empty((3, 0), np.float32)))
        self.assertEqual(empty.shape, (3, 0))

    def test_are_copied_by_dlpack_on_request(self):
        array = np.arange(4, dtype=np.float32)
        tensor, there = mge.Tensor(array), mge.Tensor(array, device="virtual0")
        self.assertIn("dltensor_versioned", repr(tensor.__dlpack__(max_version=(1, 0))))
        for source, options in ((tensor, {"copy": True}), (there, {"dl_device": (1, 0)})):
            class Wanted:
                def __dlpack__(self, **version):
                    return source.__dlpack__(**version, **options)

                def __dlpack_device__(self):
                    return 1, 0

            copy = mge.Tensor.from_dlpack(Wanted())
            self.assertNotEqual(copy.address, tensor.address)
            np.testing.assert_array_equal(copy, array)
        with self.assertRaises(BufferError):
            there.__dlpack__(dl_device=(1, 0), copy=False)
        with self.assertRaises(BufferError):
            tensor.__dlpack__(dl_device=(2, 0))
        with self.assertRaises(mge.UsageError):
            tensor.__dlpack__(stream=1)

    def test_are_written_and_read(self):
        with tempfile.TemporaryDirectory() as folder:
            mge.Tensor(np.eye(2, dtype=np.float16)).write(f"{folder}/x.npy")
            np.testing.assert_array_equal(mge.Tensor.read(f"{folder}/x.npy"), np.eye(2))
            np.testing.assert_array_equal(mge.Tensor.read(pathlib.Path(folder, "x.npy").read_bytes()), np.eye(2))

    def test_stay_on_their_device(self):
        session = mge.Session(MODEL, device="virtual0", outputs_on_device=True)
        on_device = mge.Tensor(images()[:2], device="virtual0")
        self.assertEqual(on_device.device, "virtual0")
        result = session.run(image=on_device)["probabilities"]
        self.assertEqual((result.device, result.shape), ("virtual0", (2, 10)))
        expected = mge.run(MODEL, image=images()[:2])["probabilities"]
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
        self.assertEqual(session.memory().staged_bytes, 0)
        self.assertEqual(session.memory().engine_operations, 1)


class Contexts(unittest.TestCase):
    def test_nest(self):
        self.assertEqual(mge.current_context(), mge.cpu(0))
        with mge.cpu_pinned(0) as outer:
            with mge.gpu(1):
                self.assertEqual(mge.current_context(), mge.gpu(1))
            self.assertEqual(mge.current_context(), outer)
        self.assertEqual(str(mge.current_context()), "cpu(0)")
        self.assertEqual(mge.Context.parse("gpu(1)"), mge.gpu(1))

    def test_say_where_tensors_and_sessions_are_made(self):
        program = """
import numpy as np, mge
from mge import eager
second = mge.Context(mge.gpu(1))
assert second == mge.gpu(1) and second is not mge.gpu(1)
a = np.arange(6, dtype=np.float32).reshape(2, 3)
for device in (mge.gpu(1), "gpu(1)", "virtual1"):
    t = mge.Tensor(a, device=device)
    assert (t.device, t.context.device_id, np.array_equal(t, a)) == ("virtual1", 1, True), (t, t.context)
for device in (mge.cpu_pinned(1), "cpu_pinned(1)"):
    t = mge.Tensor(a, device=device)
    assert t.context == mge.cpu_pinned(1) and np.array_equal(t, a), t.context
assert mge.Tensor(a).context == mge.Tensor(a, device=mge.cpu()).context == mge.cpu(0)
assert mge.Tensor(a).to(mge.gpu(0)).device == "virtual0"
with mge.gpu(0):
    assert mge.Tensor.empty((2,)).device == mge.Tensor(a).device == "virtual0"
    assert mge.Session(MODEL).devices == ("virtual0",)
    assert eager.tensor(a).context.device_id == 0
    with mge.cpu():
        assert mge.Tensor(a).device == ""
    strings = mge.Tensor(np.array(["x"]))
    assert strings.context == mge.cpu(0)
assert mge.Tensor.empty((2,)).device == ""
locked = eager.tensor(a, device=mge.cpu_pinned())
assert locked.get().context == mge.cpu_pinned(0) and np.array_equal(locked, a)
assert np.array_equal(eager.ops.Neg(locked), -a)
assert mge.current_context() == mge.cpu(0)
"""
        subprocess.run([sys.executable, "-c", f"MODEL = {str(MODEL)!r}\n{program}"], check=True, timeout=60,
                       env={**os.environ, "MGE_VIRTUAL_GPU": "1", "MGE_VIRTUAL_DEVICES": "2"})

    def test_list_devices(self):
        devices = {d.name: d for d in mge.devices()}
        self.assertEqual((devices["cpu0"].backend, devices["cpu0"].gpu_name, devices["cpu0"].limit_bytes), ("cpu", "", None))
        self.assertTrue(devices["cpu0"].usable)
        self.assertEqual(mge.num_gpus(), sum(d.usable and d.gpu_name != "" for d in devices.values()))
        mge.cpu().empty_cache()
        with self.assertRaises(mge.DeviceError):
            mge.gpu_memory_info(99)

    def test_runtimes_tell_about_models_that_they_do_not_load(self):
        with mge.Runtime() as runtime:
            self.assertEqual(runtime.model_report(MODEL)["schema"], "mge.model/1")
            self.assertTrue(runtime.model_report(MODEL, "mge.nodes/1")["nodes"])
            with self.assertRaises(mge.FileError):
                runtime.model_report("/nowhere/model.onnx")

    def test_runtimes_make_ids_of_groups(self):
        with mge.Runtime() as runtime:
            self.assertNotEqual(runtime.collective_id("virtual0"), runtime.collective_id("virtual0"))
            with self.assertRaises(mge.Error):
                runtime.collective_id("gpu99")

    def test_runtimes_tell_the_value_of_a_setting_by_any_of_its_names(self):
        with mge.Runtime({"data.shared_memory_bytes": "1MB", "debug.collectives": True}) as runtime:
            for name, value in (("data.shared_memory_bytes", "1000000"), ("MGE_PLASMA_MEMORY", "1000000"), ("debug.collectives", "1")):
                self.assertEqual(runtime.get(name), value)
            with self.assertRaisesRegex(mge.UsageError, "data.home"):
                runtime.get("data.hom")

    def test_have_settings_of_their_runtime(self):
        messages = []
        with mge.Runtime({"log.level": "debug"}, log=lambda level, text: messages.append(text)) as runtime:
            runtime.set_execution_strategy("reproducible")
            runtime.set_default_device("host")
            self.assertEqual(mge.Session(MODEL, runtime=runtime).devices, ("host",))
            runtime.set("MGE_RUN_TIMEOUT_SECONDS", 1e-9)
            with self.assertRaises(mge.TimeLimitError):
                mge.Session(MODEL, runtime=runtime).run(image=images())
        with self.assertRaisesRegex(mge.UsageError, "select.strategi"):
            mge.Runtime({"select.strategi": "profile"})


class Eager(unittest.TestCase):
    DEVICES = ("cpu0", "virtual0")

    @staticmethod
    def waves(*shape, seed=1):
        return np.sin(np.arange(np.prod(shape)) * 1.7 + seed).astype(np.float32).reshape(shape)

    def test_runs_operators(self):
        x, w = self.waves(3, 4), self.waves(4, 5, seed=2)
        for device in self.DEVICES:
            a, b = eager.tensor(x, device=device), eager.tensor(w, device=device)
            np.testing.assert_allclose(eager.ops.MatMul(a, b), x @ w, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(eager.apply("Relu", a), np.maximum(x, 0))
            np.testing.assert_allclose(eager.ops.Clip(a, None, np.float32(0.5)), np.minimum(x, 0.5))
            np.testing.assert_allclose(eager.ops.ReduceSum(a, [1], keepdims=0), x.sum(1), rtol=1e-5, atol=1e-6)
            left, right = eager.ops.Split(a, axis=1, num_outputs=2)
            np.testing.assert_array_equal(right, x[:, 2:])
            self.assertEqual((left.shape, left.dtype, left.device), ((3, 2), "float32", device))
            values, indices = eager.ops.TopK(a, [2], outputs=2)
            np.testing.assert_array_equal(indices.numpy(), np.argsort(-x, axis=1)[:, :2])
            self.assertEqual(values.numpy().shape, (3, 2))
            image = eager.tensor(self.waves(1, 2, 5, 5), device=device)
            y = eager.ops.Conv(image, eager.tensor(self.waves(3, 2, 3, 3), device=device), pads=[1, 1, 1, 1], auto_pad="NOTSET")
            self.assertEqual(y.numpy().shape, (1, 3, 5, 5))

    def test_uses_the_device_of_the_context(self):
        with mge.cpu():
            self.assertEqual(eager.tensor([1.0]).device, "cpu0")
        self.assertEqual(eager.ops.RandomUniform(shape=[4], device="virtual0").device, "virtual0")

    def test_has_arithmetic(self):
        x = self.waves(2, 3)
        a = eager.tensor(x, device="cpu0")
        np.testing.assert_allclose((2 * a + 1 - a / 2).numpy(), 2 * x + 1 - x / 2, rtol=1e-6)
        np.testing.assert_allclose(((1 - a) @ self.waves(3, 2)).numpy(), (1 - x) @ self.waves(3, 2), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose((x + a).numpy(), x + x)
        np.testing.assert_allclose((-a).numpy(), -x)
        whole = eager.tensor(np.array([1, 2]), device="cpu0")
        np.testing.assert_array_equal((whole * 3).numpy(), [3, 6])
        with self.assertRaisesRegex(mge.UsageError, "0.5 is not a value of the tensor's type int64"):
            whole * 0.5
        with self.assertRaises(mge.Error):
            a + whole  # types are not converted

    def test_arrays_are_copied_and_results_are_not_written(self):
        x = np.ones(3, np.float32)
        a = eager.tensor(x, device="cpu0")
        x[:] = 5
        y = a.numpy()
        np.testing.assert_array_equal(y, 1)
        with self.assertRaises(ValueError):
            y[0] = 2
        del a
        np.testing.assert_array_equal(y, 1)

    def test_reports_errors_in_the_call_or_where_the_result_is_read(self):
        a = eager.tensor(self.waves(2, 3), device="cpu0")
        with self.assertRaisesRegex(mge.InvalidError, r"eager operator MatMul\(float32\[2,3\], float32\[2,3\]\)"):
            eager.ops.MatMul(a, a)
        with self.assertRaisesRegex(mge.UnsupportedError, "MatMull"):
            eager.ops.MatMull(a, a)
        with self.assertRaisesRegex(mge.UsageError, "attribute alpha has the type dict"):
            eager.ops.LeakyRelu(a, alpha={})
        bad = eager.ops.Gather(a, np.array([7]))
        later = eager.ops.Relu(bad)
        with self.assertRaisesRegex(mge.InvalidError, "index 7"):
            bad.numpy()
        with self.assertRaisesRegex(mge.InvalidError, "which an earlier operator failed to compute"):
            later.numpy()
        self.assertEqual(later.state, "failed")
        np.testing.assert_allclose(eager.ops.Neg(a), -self.waves(2, 3))
        eager.synchronize()
        with mge.Runtime({"eager.async_level": 0}) as runtime:
            serial = eager.Eager(runtime=runtime)
            with self.assertRaisesRegex(mge.InvalidError, "index 7"):
                serial.ops.Gather(serial.tensor([1.0], device="cpu0"), np.array([7]))

    def test_computes_gradients(self):
        x, w = self.waves(5, 3), self.waves(3, 2, seed=3)
        for device in self.DEVICES:
            a, b = eager.tensor(x, device=device), eager.tensor(w, device=device)
            with eager.GradientTape() as tape:
                tape.watch(b)
                loss = eager.ops.ReduceMean(eager.ops.Tanh(a @ b), keepdims=0)
            gradient, none = tape.gradient(loss, [b, a])
            expected = x.T @ (1 - np.tanh(x @ w) ** 2) / 10
            np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-4, atol=1e-6)
            self.assertIsNone(none)  # it was not watched

    def test_learns_the_digits(self):
        x, y = images().reshape(-1, 64)[:500], labels()[:500]
        rate = 1 / float(np.square(x).sum(1).mean()) * 4
        w = eager.tensor(np.zeros((64, 10), np.float32), device="cpu0")
        data, target = eager.tensor(x, device="cpu0"), eager.tensor(y, device="cpu0")
        for _ in range(100):
            with eager.GradientTape() as tape:
                tape.watch(w)
                loss = eager.ops.SoftmaxCrossEntropyLoss(data @ w, target)
            w = w - tape.gradient(loss, [w])[0] * rate
        self.assertLess(loss.item(), 0.5)
        self.assertGreater(np.mean((data @ w).numpy().argmax(1) == y), 0.9)

    def test_drops_swaps_and_evicts(self):
        settings = {"eager.drop": 1, "eager.record_computing_path": 1, "eager.swap": 1, "eager.dtr_minimum_bytes": 0}
        with mge.Runtime(settings) as runtime:
            e = eager.Eager(runtime=runtime)
            x = e.tensor(self.waves(1000), device="virtual0")
            y = e.ops.Neg(x)
            y.drop()
            e.synchronize()
            self.assertEqual(y.state, "dropped")
            np.testing.assert_array_equal(y.numpy(), -self.waves(1000))
            y.swap_out()
            e.synchronize()
            self.assertEqual(y.state, "swapped")
            y.swap_in()
            e.synchronize()
            self.assertEqual(y.state, "ready")
            np.testing.assert_array_equal(y.numpy(), -self.waves(1000))
            report = e.report()
            self.assertEqual([report[k] for k in ("drops", "recomputations", "swaps_out", "swaps_in")], [1, 1, 1, 1])
        with self.assertRaisesRegex(mge.UsageError, "eager.drop"):
            eager.ops.Neg(eager.tensor([1.0], device="cpu0")).drop()
        with mge.Runtime({"eager.dtr_auto_drop": 1, "eager.dtr_threshold_bytes": "400KB"}) as runtime:
            runtime.set("eager.dtr_minimum_bytes", 1000)
            e = eager.Eager(runtime=runtime)
            chain = [e.tensor(self.waves(10000), device="cpu0")]
            for _ in range(50):
                chain.append(e.ops.Sin(chain[-1]))
            for i in (50, 25, 1):
                want = self.waves(10000)
                for _ in range(i):
                    want = np.sin(want)
                np.testing.assert_allclose(chain[i].numpy(), want, rtol=1e-4, atol=1e-6)
            report = e.report()
            self.assertGreater(report["recomputations"], 0)
            self.assertLessEqual(report["peak_bytes"], 480000)


class Libraries(unittest.TestCase):
    def test_are_those_of_the_environment(self):
        show = "import mge; print([l.split()[-1] for l in open('/proc/self/maps') if 'libmge' in l][0])"
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(TREE / "lib" / "libmge.so.0", f"{folder}/libother.so")
            for variable in ("MGE_LIBRARY_PATH", "MXNET_LIBRARY_PATH"):
                variables = {"MGE_LIBRARY_PATH": "", variable: f"{folder}/libother.so"}
                out, err = python("import mge._native; print(mge._native.lib._name)", **variables).communicate()
                self.assertEqual((out, err), (f"{folder}/libother.so\n", ""))
        for path, why in (("libmge.so.0", "no absolute path"), ("/nowhere/libmge.so.0", "no such file")):
            out, err = python(show, MGE_LIBRARY_PATH=path, LD_LIBRARY_PATH=str(TREE / "lib")).communicate()
            self.assertIn("libmge.so", out)
            self.assertIn(why, err)

    def test_have_the_structs_and_functions_of_the_header(self):
        headers = [(SOURCES / "sdk/include/mge" / name).read_text() for name in ("mge.h", "context.h", "eager.h", "generate.h")]
        header = re.sub(r"/\*.*?\*/", "", "".join(headers), flags=re.DOTALL)
        for name, struct in (("runtime_options", native.RuntimeOptions), ("training_options", native.TrainingOptions),
                             ("session_options", native.SessionOptions), ("memory_facts", native.MemoryFacts),
                             ("device_facts", native.DeviceFacts), ("run_options", native.RunOptions),
                             ("example_options", native.ExampleOptions),
                             ("context", native.Context), ("attribute", native.Attribute),
                             ("eager_operator", native.EagerOperator), ("model_file", native.ModelFile), ("value_facts", native.ValueFacts),
                             ("model_source", native.ModelSource), ("generator_options", native.GeneratorOptions),
                             ("generator_facts", native.GeneratorFacts), ("sampling", native.Sampling)):
            body = re.search(rf"typedef struct mge_{name} {{(.*?)}} mge_{name};", header, re.DOTALL).group(1)
            members = []
            for declaration in body.split(";"):
                pointer = re.search(r"\(\*(\w+)\)\(", declaration)
                members += [pointer.group(1)] if pointer else re.findall(r"(\w+)(?:\[\d+\])?(?=\s*(?:,|$))", declaration)
            self.assertEqual([field[0] for field in struct._fields_], members, name)
        for parameters in (group for group in native._FUNCTIONS.values()):
            for name, types in parameters.items():
                declared = re.search(rf"\bmge_{name}\((.*?)\);", header, re.DOTALL).group(1)
                count = 0 if declared.strip() == "void" else declared.count(",") + 1
                self.assertEqual(len(types), count, name)

    def test_print_nothing_when_they_are_imported(self):
        self.assertEqual(python("import mge").communicate(), ("", ""))


if __name__ == "__main__":
    unittest.main()
