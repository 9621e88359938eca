# SPDX-License-Identifier: Apache-2.0
"""Runs into memory of the program, streams of the program, and the progress of loads. The environment is that of mge_test."""
import asyncio
import contextlib
import ctypes as c
import io
import unittest

import numpy as np

import mge
from mge._native import lib
from mge.values import memory_of
from mge_test import MODEL, images
from onnx_model import FLOAT, INT64, STRING, model, model_of, node, tensor

RELU = model("Relu", {"x": tensor(FLOAT, "n")}, {"y": tensor(FLOAT, "n")})
TWO = model_of([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["z"])], {"x": tensor(FLOAT, "n")},
               {"y": tensor(FLOAT, "n"), "z": tensor(FLOAT, "n")})


def numbers(*values):
    return np.array(values, np.float32)


class GivenMemory(unittest.TestCase):
    def test_receives_an_output_without_a_copy(self):
        out = np.empty((48, 10), np.float32)
        address = out.ctypes.data
        with mge.Session(MODEL) as session:
            wanted = session.run(image=images())["probabilities"]
            self.assertEqual(lib.mge_tensor_address(memory_of("probabilities", out, session.outputs[0])), address)
            for _ in range(3):
                out[:] = 0
                result = session.run(image=images(), out={"probabilities": out})
                self.assertIs(result["probabilities"], out)
                self.assertEqual(out.ctypes.data, address)
                np.testing.assert_array_equal(out, wanted)

    def test_may_be_a_tensor_of_the_host_or_of_a_device(self):
        with mge.Session(RELU, device="virtual0", outputs_on_device=True) as session:
            for place in ("cpu", "virtual0", "cpu_pinned(virtual0)"):
                out = mge.Tensor.empty((2,), device=place)
                address = out.address
                self.assertIs(session.run(numbers(-1, 2), out={"y": out})["y"], out, place)
                self.assertEqual(out.address, address)
                self.assertEqual(out.to_host().numpy().tolist(), [0, 2])

    def test_may_be_that_of_some_outputs(self):
        out = np.empty(2, np.float32)
        with mge.Session(TWO) as session:
            result = session.run(numbers(-1, 2), out={"z": out})
            self.assertIs(result["z"], out)
            self.assertEqual((result["y"].tolist(), out.tolist()), ([0, 2], [1, -2]))
            self.assertEqual(list(session.run(numbers(3, 4), outputs=["z"], out={"z": out})), ["z"])
            self.assertEqual(out.tolist(), [-3, -4])

    def test_has_the_shape_of_the_output_even_if_only_the_run_determines_it(self):
        with mge.Session(model("NonZero", {"x": tensor(FLOAT, "n")}, {"y": tensor(INT64, 1, "m")})) as session:
            out = np.zeros((1, 2), np.int64)
            self.assertIs(session.run(numbers(0, 5, 0, 6), out={"y": out})["y"], out)
            self.assertEqual(out.tolist(), [[1, 3]])
            with self.assertRaisesRegex(mge.InvalidError, r"output 'y' does not fit(.|\n)*expected int64\[1,1\], got int64\[1,2\]"):
                session.run(numbers(0, 5), out={"y": out})

    def test_receives_the_output_of_an_asynchronous_run(self):
        out = np.zeros(2, np.float32)

        async def run(session):
            return await session.run_async(numbers(-1, 2), out={"y": out})

        with mge.Session(RELU) as session:
            self.assertIs(asyncio.run(run(session))["y"], out)
        self.assertEqual(out.tolist(), [0, 2])

    def test_receives_the_output_of_an_enqueued_run(self):
        with mge.Session(RELU, device="virtual0") as session:
            out = mge.Tensor.empty((2,), device="virtual0")
            run = session.enqueue(numbers(-1, 2), out={"y": out})
            self.assertIs(run.result()["y"], out)
            self.assertEqual(run.outputs["y"].address, out.address)
            self.assertEqual(out.to_host().numpy().tolist(), [0, 2])
            with self.assertRaisesRegex(mge.Error, "output 'y' of an enqueued run is in plain host memory"):
                session.enqueue(numbers(-1, 2), out={"y": np.zeros(2, np.float32)})

    def test_that_does_not_fit_is_an_error_that_names_the_output(self):
        read_only = np.zeros(2, np.float32)
        read_only.flags.writeable = False
        x = numbers(1, 2)
        with mge.Session(RELU) as session:
            for out, message in (({"z": x}, r"out\['z'\]: the run computes the outputs \['y'\]"),
                                 ({"y": [0, 0]}, r"out\['y'\] is a list; give a NumPy array or an mge.Tensor"),
                                 ({"y": np.zeros(2)}, r"out\['y'\] has elements of type float64, and the output has float32"),
                                 ({"y": read_only}, r"out\['y'\] is read-only"),
                                 ({"y": np.zeros(4, np.float32)[::2]}, r"out\['y'\] is not C-contiguous"),
                                 ({"y": np.zeros(3, np.float32)}, r"'y'"),
                                 ({"y": mge.Tensor(np.zeros(2, np.int32))}, r"'y'")):
                with self.assertRaisesRegex(mge.Error, message):
                    session.run(x, out=out)
            with self.assertRaisesRegex(mge.Error, "output 'y' is given the memory of input 'x'"):
                both = np.zeros(3, np.float32)
                session.run(both[:2], out={"y": both[1:]})
        with mge.Session(model("Identity", {"x": tensor(STRING, "n")}, {"y": tensor(STRING, "n")})) as session:
            with self.assertRaisesRegex(mge.UsageError, "the output has strings"):
                session.run(np.array(["a"], object), out={"y": np.array([""], object)})


class Progress(unittest.TestCase):
    def test_of_a_load_and_of_planning_comes_in_a_thread_of_python(self):
        stages = {}

        def show(stage, done, total):
            stages[stage] = (done, total)

        with mge.Session(MODEL, progress=show) as session:
            self.assertEqual(stages["read"], (1, 1))
            self.assertIn("optimize", stages)
            session.run(image=images(), timeout=60)
        self.assertIn("kernels", stages)
        self.assertTrue(all(done == total for done, total in stages.values()), stages)

    def test_functions_that_raise_do_not_end_the_load(self):
        def fail(stage, done, total):
            raise ValueError("no progress")

        with contextlib.redirect_stderr(io.StringIO()) as printed:
            with mge.Trainer(MODEL, progress=fail) as trainer:
                self.assertTrue(trainer.parameters)
        self.assertIn("no progress", printed.getvalue())


class VirtualStream(c.Structure):
    """A stream for virtual devices (mge/virtual_stream.h) that does all work at once, and counts it."""

    _Work = c.CFUNCTYPE(None, c.c_void_p)
    _Append = c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_void_p, c.c_void_p)
    _fields_ = [("struct_size", c.c_size_t), ("state", c.c_void_p), ("append", _Append)]

    def __init__(self):
        self.count = 0
        super().__init__(c.sizeof(type(self)), None, self._Append(self._do))

    def _do(self, state, work, argument):
        self.count += 1
        self._Work(work)(argument)
        return 0


class Streams(unittest.TestCase):
    def test_order_runs_with_the_work_of_the_program(self):
        stream = VirtualStream()
        with mge.Session(RELU, device="virtual0") as session:
            self.assertEqual(session.run(numbers(-1, 2), stream=c.addressof(stream))["y"].tolist(), [0, 2])
            self.assertEqual(stream.count, 1)  # the run followed it
            run = session.enqueue(numbers(-3, 4), stream=c.addressof(stream))
            self.assertEqual(run.result()["y"].tolist(), [0, 4])
            self.assertGreater(stream.count, 2)  # and it followed the run

    def test_are_refused_by_a_device_without_queues(self):
        with mge.Session(RELU, device="cpu0") as session, self.assertRaisesRegex(mge.Error, "cannot be ordered with a stream"):
            session.run(numbers(1), stream=1)

    def test_of_the_producer_are_waited_for_when_a_tensor_is_shared(self):
        asked = {}

        class Producer:
            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, **options):
                asked.update(options)
                raise ValueError("enough")

        with self.assertRaisesRegex(ValueError, "enough"):
            mge.Tensor.from_dlpack(Producer(), device="virtual0")
        self.assertEqual(asked["stream"], 1)


if __name__ == "__main__":
    unittest.main()
