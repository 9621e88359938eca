# SPDX-License-Identifier: Apache-2.0
"""mge.onnxruntime, used as scripts use ONNX Runtime: a test for each documented call.

TEST_TREE: the build tree. MGE_VIRTUAL_DEVICES: 2 or more.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

import mge
import mge.onnxruntime as ort
import onnx_model as onnx
from mge.onnxruntime import errors
from mge_test import DIGITS, MODEL, images, labels

VIRTUAL = "VirtualExecutionProvider"
CPU = "CPUExecutionProvider"


def session(*providers, options=None):
    return ort.InferenceSession(str(MODEL), options, providers=list(providers) or [CPU])


def adder():
    """Returns the bytes of a model with two inputs and an output: y = a + b."""
    shape = onnx.tensor(onnx.FLOAT, "n")
    return onnx.model("Add", {"a": shape, "b": shape}, {"y": shape})


class Sessions(unittest.TestCase):
    def test_find_the_digits(self):
        probabilities, = session().run(None, {"image": images()})
        self.assertGreaterEqual(np.mean(probabilities.argmax(1) == labels()), 0.95)

    def test_are_made_of_paths_and_bytes(self):
        for model in (str(MODEL), pathlib.Path(MODEL), MODEL.read_bytes(), bytearray(MODEL.read_bytes())):
            self.assertEqual(ort.InferenceSession(model).get_inputs()[0].name, "image")
        with self.assertRaisesRegex(TypeError, "SerializeToString"):
            ort.InferenceSession(object())

    def test_describe_inputs_outputs_and_the_model(self):
        s = session()
        image, = s.get_inputs()
        self.assertEqual((image.name, image.type, image.shape), ("image", "tensor(float)", ["N", 1, 8, 8]))
        self.assertEqual([o.name for o in s.get_outputs()], ["probabilities"])
        self.assertEqual(s.get_overridable_initializers(), [])
        facts = s.get_modelmeta()
        self.assertEqual((facts.graph_name, facts.version, facts.domain), ("digits", 0, ""))
        self.assertIn("train.py", facts.producer_name)
        self.assertIn("Handwritten digits", facts.graph_description)
        self.assertEqual(facts.custom_metadata_map, {})

    def test_describe_the_types_of_values(self):
        model = onnx.model("SequenceConstruct", {"x": onnx.tensor(onnx.INT64, 2)}, {"y": onnx.sequence(onnx.tensor(onnx.INT64))})
        s = ort.InferenceSession(model)
        self.assertEqual([s.get_inputs()[0].type, s.get_outputs()[0].type], ["tensor(int64)", "seq(tensor(int64))"])
        part, = s.run(None, {"x": np.array([3, 4])})[0]
        self.assertEqual(part.tolist(), [3, 4])

    def test_return_the_named_outputs_in_order(self):
        shape = onnx.tensor(onnx.FLOAT, 2)
        nodes = [onnx.node("Neg", ["x"], ["a"]), onnx.node("Abs", ["x"], ["b"])]
        s = ort.InferenceSession(onnx.model_of(nodes, {"x": shape}, {"a": shape, "b": shape}))
        x = np.array([-1, 2], np.float32)
        self.assertEqual([v.tolist() for v in s.run(["b", "a"], {"x": x})], [[1, 2], [1, -2]])
        self.assertEqual([v.tolist() for v in s.run(["b"], {"x": x})], [[1, 2]])
        self.assertEqual([v.tolist() for v in s.run([], {"x": x})], [[1, -2], [1, 2]])

    def test_refuse_wrong_names_types_and_shapes(self):
        s = session()
        with self.assertRaisesRegex(errors.InvalidArgument, "Invalid output name: none"):
            s.run(["none"], {"image": images()})
        with self.assertRaisesRegex(errors.InvalidArgument, "Invalid input name: none"):
            s.run(None, {"image": images(), "none": images()})
        with self.assertRaisesRegex(ValueError, r"Required inputs \(\['image'\]\) are missing"):
            s.run(None, {})
        with self.assertRaisesRegex(errors.InvalidArgument, "float64"):
            s.run(None, {"image": images().astype(np.float64)})
        with self.assertRaisesRegex(errors.InvalidArgument, "dimension 2 is 4"):
            s.run(None, {"image": images()[:, :, :4]})

    def test_raise_the_exceptions_of_onnx_runtime_while_they_load(self):
        with self.assertRaises(errors.NoSuchFile) as caught:
            ort.InferenceSession("missing.onnx")
        self.assertIsInstance(caught.exception.__cause__, mge.FileError)
        with self.assertRaises(errors.InvalidProtobuf):
            ort.InferenceSession(b"no model")
        x = onnx.tensor(onnx.FLOAT, 2)
        with self.assertRaises(errors.NotImplemented):
            ort.InferenceSession(onnx.model("NoSuchOperator", {"x": x}, {"y": x})).run(None, {"x": np.zeros(2, np.float32)})
        with self.assertRaises(errors.InvalidGraph):
            ort.InferenceSession(onnx.model_of([onnx.node("Neg", ["nowhere"], ["y"])], {"x": x}, {"y": x}))

    def test_run_in_a_thread_and_call_back(self):
        done, got = threading.Event(), []
        session().run_async(None, {"image": images()}, lambda *values: (got.append(values), done.set()), "mine")
        self.assertTrue(done.wait(60))
        (outputs, data, error), = got
        self.assertEqual((outputs[0].shape, data, error), ((len(images()), 10), "mine", ""))

        done.clear()
        session().run_async(None, {}, lambda *values: (got.append(values), done.set()))
        self.assertTrue(done.wait(60))
        self.assertIn("Required inputs", got[1][2])


class Providers(unittest.TestCase):
    def test_are_the_devices_of_the_machine(self):
        self.assertEqual(ort.get_available_providers()[-1], CPU)
        self.assertIn(VIRTUAL, ort.get_available_providers())
        self.assertIn("CUDAExecutionProvider", ort.get_all_providers())
        self.assertEqual(ort.get_device(), "GPU" if any(d.gpu_name for d in mge.devices() if d.usable) else "CPU")

    def test_choose_the_device_of_a_session(self):
        s = session((VIRTUAL, {"device_id": 1}), CPU)
        self.assertEqual((s._session.devices[0], s.get_providers()), ("virtual1", [VIRTUAL, CPU]))
        self.assertEqual(s.get_provider_options()[VIRTUAL], {"device_id": "1"})
        there, here = s.run(None, {"image": images()})[0], session().run(None, {"image": images()})[0]
        self.assertIsInstance(there, np.ndarray)
        np.testing.assert_allclose(there, here, atol=1e-5)
        s.set_providers([CPU])
        self.assertEqual(s.get_providers(), [CPU])

    def test_take_options_beside_their_names(self):
        s = ort.InferenceSession(str(MODEL), providers=[VIRTUAL], provider_options=[{"device_id": 1}])
        self.assertEqual(s._session.devices, ("virtual1",))
        with self.assertRaisesRegex(ValueError, "give as many"):
            ort.InferenceSession(str(MODEL), providers=[VIRTUAL], provider_options=[])

    def test_that_are_missing_cause_a_warning_if_another_is_there_and_else_an_error(self):
        with self.assertWarnsRegex(UserWarning, "not available: NoneExecutionProvider"):
            self.assertEqual(session("NoneExecutionProvider", CPU).get_providers(), [CPU])
        with self.assertRaisesRegex(ValueError, "no provider of"):
            session("NoneExecutionProvider")

    def test_never_fall_back(self):
        s = session()
        s.disable_fallback()
        with self.assertWarnsRegex(UserWarning, "never repeats"):
            s.enable_fallback()


class Options(unittest.TestCase):
    def test_set_threads_and_the_deterministic_choice_of_kernels(self):
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.use_deterministic_compute = 1, True
        s = session(options=options)
        self.assertIs(s.get_session_options(), options)
        self.assertEqual(s._session.threads, 1)

    def test_without_effect_are_named_by_one_warning(self):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_free_dimension_override_by_name("N", 4)
        self.assertEqual(options.get_session_config_entry("session.intra_op.allow_spinning"), "0")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session(options=options)
        warning, = caught
        for part in ("graph_optimization_level", "execution_mode", "log_severity_level=3", "allow_spinning=0", "dimension N=4"):
            self.assertIn(part, str(warning.message))
        self.assertEqual(warning.filename, __file__)

    def test_that_would_change_results_are_errors(self):
        options = ort.SessionOptions()
        for call in (lambda: options.add_session_config_entry("session.set_denormal_as_zero", "1"),
                     lambda: options.register_custom_ops_library("ops.so"), lambda: options.add_initializer("w", None),
                     lambda: options.add_external_initializers([], []),
                     lambda: setattr(options, "optimized_model_filepath", "out.onnx"),
                     lambda: ort.RunOptions().add_active_adapter(None)):
            with self.assertRaises(errors.NotImplemented):
                call()
        with self.assertRaisesRegex(AttributeError, "intra_op_threads"):
            options.intra_op_threads = 1

    def test_usual_ones_cause_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            session(options=ort.SessionOptions()).run(None, {"image": images()}, ort.RunOptions())

    def test_of_runs_end_them(self):
        s, options = session(), ort.RunOptions()
        options.terminate = True
        with self.assertRaisesRegex(errors.Fail, "terminate flag"):
            s.run(None, {"image": images()}, options)
        options.terminate = False
        self.assertEqual(len(s.run(None, {"image": images()}, run_options=options)), 1)

    def test_of_runs_without_effect_are_named(self):
        options = ort.RunOptions()
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self.assertEqual(options.get_run_config_entry("memory.enable_memory_arena_shrinkage"), "cpu:0")
        with self.assertWarnsRegex(UserWarning, "arena_shrinkage"):
            session().run(None, {"image": images()}, options)

    def test_write_a_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "p_")
            s = session(options=options)
            s.run(None, {"image": images()})
            s.run(None, {"image": images()}, ort.RunOptions())
            self.assertGreater(s.get_profiling_start_time_ns(), 0)
            path = s.end_profiling()
            self.assertTrue(path.startswith(options.profile_file_prefix))
            self.assertIn("Gemm", json.dumps(json.loads(pathlib.Path(path).read_text())))
        self.assertEqual(session().end_profiling(), "")

    def test_seed_makes_random_operators_repeat(self):
        x = onnx.tensor(onnx.FLOAT, 8)
        s = ort.InferenceSession(onnx.model("RandomNormalLike", {"x": x}, {"y": x}))
        self.addCleanup(setattr, sys.modules["mge.onnxruntime.session"], "_seed", None)
        results = []
        for seed in (5, 5, 6):
            ort.set_seed(seed)
            results.append(s.run(None, {"x": np.zeros(8, np.float32)})[0].tolist())
        self.assertEqual(results[0], results[1])
        self.assertNotEqual(results[0], results[2])


class Values(unittest.TestCase):
    def test_share_arrays_and_describe_themselves(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        value = ort.OrtValue.ortvalue_from_numpy(array)
        self.assertEqual((value.shape(), value.data_type(), value.element_type(), value.device_name()),
                         ([2, 3], "tensor(float)", 1, "cpu"))
        self.assertEqual((value.has_value(), value.is_tensor(), value.is_tensor_sequence(), value.is_sparse_tensor()),
                         (True, True, False, False))
        self.assertEqual((value.data_ptr(), value.tensor_size_in_bytes()), (array.ctypes.data, 24))
        value.update_inplace(np.ones((2, 3), np.float32))
        self.assertEqual(array.sum(), 6)
        self.assertEqual(np.from_dlpack(value).tolist(), array.tolist())
        self.assertEqual(ort.OrtValue.from_dlpack(array).data_ptr(), array.ctypes.data)
        words = ort.OrtValue.ortvalue_from_numpy(np.array(["a", "bc"]))
        self.assertEqual((words.data_type(), words.numpy().tolist(), words.shape()), ("tensor(string)", ["a", "bc"], [2]))

    def test_are_made_of_shapes_and_bits(self):
        for kind in (np.float32, "float32", 1):
            self.assertEqual(ort.OrtValue.ortvalue_from_shape_and_type([2, 3], kind).data_type(), "tensor(float)")
        bits = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), 16)
        self.assertEqual((bits.shape(), bits.numpy().view(np.uint16).tolist()), ([1], [0x3F80]))
        with self.assertRaisesRegex(errors.InvalidArgument, "element type 99"):
            ort.OrtValue.ortvalue_from_shape_and_type([1], 99)

    def test_lie_on_devices(self):
        value = ort.OrtValue.ortvalue_from_numpy(np.ones(4, np.float32), "virtual", 1)
        self.assertEqual((value.device_name(), value.numpy().tolist()), ("virtual", [1] * 4))
        value.update_inplace(np.zeros(4, np.float32))
        self.assertEqual(value.numpy().sum(), 0)

    def test_are_inputs_and_outputs_of_runs(self):
        s = ort.InferenceSession(adder())
        a, b = np.ones(3, np.float32), ort.OrtValue.ortvalue_from_numpy(np.full(3, 2, np.float32))
        self.assertEqual(s.run(None, {"a": a, "b": b})[0].tolist(), [3] * 3)
        y, = s.run_with_ort_values(None, {"a": b, "b": b})
        self.assertEqual((type(y), y.numpy().tolist()), (ort.OrtValue, [4] * 3))


class Bindings(unittest.TestCase):
    def test_bind_arrays_and_memory_at_addresses(self):
        s = ort.InferenceSession(adder(), providers=[CPU])
        a, b, y = np.ones(3, np.float32), np.full(3, 2, np.float32), np.zeros(3, np.float32)
        binding = s.io_binding()
        binding.bind_cpu_input("a", a)
        binding.bind_input("b", "cpu", 0, np.float32, b.shape, b.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
        binding.synchronize_inputs()
        s.run_with_iobinding(binding)
        binding.synchronize_outputs()
        self.assertEqual(y.tolist(), [3] * 3)
        self.assertEqual(binding.get_outputs()[0].data_ptr(), y.ctypes.data)
        with self.assertRaisesRegex(ValueError, "shape and element_type are needed"):
            binding.bind_output("y", buffer_ptr=y.ctypes.data)

    def test_leave_outputs_on_the_device(self):
        s = ort.InferenceSession(adder(), providers=[VIRTUAL])
        value = ort.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32), "virtual", 0)
        binding = s.io_binding()
        binding.bind_ortvalue_input("a", value)
        binding.bind_ortvalue_input("b", value)
        binding.bind_output("y", "virtual")
        s.run_with_iobinding(binding)
        y, = binding.get_outputs()
        self.assertEqual((y.device_name(), y.numpy().tolist()), ("virtual", [2] * 3))
        binding.clear_binding_outputs()
        binding.bind_output("y")
        s.run_with_iobinding(binding, ort.RunOptions())
        self.assertEqual(binding.get_outputs()[0].device_name(), "cpu")
        self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), [2] * 3)

    def test_write_to_bound_values(self):
        s = ort.InferenceSession(adder(), providers=[VIRTUAL])
        binding, y = s.io_binding(), ort.OrtValue.ortvalue_from_shape_and_type([3], np.float32, "virtual", 0)
        for name in ("a", "b"):
            binding.bind_cpu_input(name, np.ones(3, np.float32))
        binding.bind_ortvalue_output("y", y)
        s.run_with_iobinding(binding)
        self.assertEqual(y.numpy().tolist(), [2] * 3)

    def test_refuse_unknown_names_and_runs_without_outputs(self):
        s = ort.InferenceSession(adder())
        binding = ort.IOBinding(s)
        with self.assertRaisesRegex(errors.InvalidArgument, "no input 'none'"):
            binding.bind_cpu_input("none", np.ones(1))
        with self.assertRaisesRegex(errors.InvalidArgument, "no output 'none'"):
            binding.bind_output("none")
        with self.assertRaisesRegex(errors.InvalidArgument, "no output is bound"):
            s.run_with_iobinding(binding)
        binding.bind_output("y")
        binding.bind_cpu_input("a", np.ones(1, np.float32))
        binding.clear_binding_inputs()
        with self.assertRaisesRegex(ValueError, "Required inputs"):
            s.run_with_iobinding(binding)


class Libraries(unittest.TestCase):
    SCRIPT = ("import sys\n"
              "import onnxruntime as ort\n"
              "from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument\n"
              "from onnxruntime.capi import _pybind_state\n"
              "assert ort.__name__ == 'mge.onnxruntime' and ort.get_version_string() == ort.__version__\n"
              "assert 'MGE' in ort.get_build_info() and issubclass(InvalidArgument, Exception)\n"
              "s = ort.InferenceSession(sys.argv[1])\n"
              "print(__name__, s.get_inputs()[0].name, sys.argv[2])\n")

    def run_python(self, *arguments, folder=None):
        run = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, cwd=folder)
        return run.returncode, run.stdout.strip(), run.stderr

    def test_that_import_onnxruntime_get_ours(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script.py"
            script.write_text(self.SCRIPT)
            code, out, error = self.run_python("-m", "mge.onnxruntime", script, MODEL, "more")
            self.assertEqual((code, out), (0, "__main__ image more"), error)
            code, out, error = self.run_python("-m", "mge.onnxruntime", "-m", "script", MODEL, "more", folder=folder)
            self.assertEqual((code, out), (0, "__main__ image more"), error)
        code, _, error = self.run_python("-m", "mge.onnxruntime", "missing.py")
        self.assertEqual(code, 1)
        self.assertIn("there is no script 'missing.py'", error)
        self.assertIn("usage:", self.run_python("-m", "mge.onnxruntime")[2])
        self.assertIn("SCRIPT", self.run_python("-m", "mge.onnxruntime", "--help")[1])

    def test_may_call_what_has_nothing_to_do_here(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ort.preload_dlls()
            ort.disable_telemetry_events()
        with self.assertWarnsRegex(UserWarning, "MGE_LOG_LEVEL"):
            ort.set_default_logger_severity(3)


if __name__ == "__main__":
    unittest.main()
