# SPDX-License-Identifier: Apache-2.0
"""Sequences, optionals, maps and strings as inputs and outputs. The environment is that of mge_test."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

import mge
from onnx_model import FLOAT, INT4, INT64, STRING, a_map, attribute, data, model, number, sequence, tensor

CASES = pathlib.Path(os.environ["TEST_CASES"])
DIGITS = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx"


def case(name):
    return mge.Session(CASES / name / "model.onnx")


class Sequences(unittest.TestCase):
    def test_are_lists(self):
        session = case("test_identity_sequence")
        self.assertEqual((session.inputs[0].kind, session.inputs[0].parts), ("sequence", "tensor"))
        given = session.read_input("x", CASES / "test_identity_sequence" / "test_data_set_0" / "input_0.pb")
        got = session.run(given)["y"]
        self.assertIsInstance(got, list)
        np.testing.assert_array_equal(np.array(got), np.array(given))
        for other in (tuple(given), [mge.Tensor(part) for part in given], [part.tolist() for part in given]):
            np.testing.assert_array_equal(np.array(session.run(x=other)["y"]), np.array(given))

    def test_may_be_empty_and_have_parts_of_several_shapes(self):
        session = mge.Session(model("SequenceLength", {"parts": sequence(tensor(FLOAT, "n"))}, {"n": tensor(INT64)}))
        self.assertEqual(session.run(parts=[])["n"], 0)
        self.assertEqual(session.run([np.zeros(3, np.float32), [1, 2], np.zeros(0, np.float32)])["n"], 3)

    def test_of_another_type_are_errors(self):
        session = mge.Session(model("SequenceLength", {"parts": sequence(tensor(FLOAT, "n"))}, {"n": tensor(INT64)}))
        with self.assertRaisesRegex(mge.InvalidError, "expected float32, got int64"):
            session.run(parts=[np.array([1])])
        for wrong in (np.zeros(3, np.float32), "text", 7, None, {"a": 1}):
            with self.assertRaisesRegex(mge.InvalidError, "'parts' is a sequence, and .* is none; give a list"):
                session.run(parts=wrong)


class ShortTypes(unittest.TestCase):
    def test_are_those_of_ml_dtypes_or_bits(self):
        to_int4 = data(5, data(1, "to") + number(3, INT4) + number(20, 2))
        cast = mge.Session(model("Cast", {"x": tensor(FLOAT, 2)}, {"y": tensor(INT4)}, to_int4))
        self.assertEqual(cast.outputs[0].dtype, "int4")
        y = cast.run([-1.0, 7.0])["y"]
        self.assertEqual(y.view(np.uint8).tolist(), [15, 7])
        if y.dtype != np.uint8:  # ml_dtypes is installed
            self.assertEqual(y.dtype.name, "int4")
            same = mge.Session(model("Identity", {"x": tensor(INT4, 2)}, {"y": tensor(INT4)}))
            np.testing.assert_array_equal(same.run(y)["y"], y)
            np.testing.assert_array_equal(same.run([-1, 7])["y"], y)


class Optionals(unittest.TestCase):
    def test_are_values_or_none(self):
        get, has = case("test_optional_get_element"), case("test_optional_has_element")
        np.testing.assert_array_equal(get.run(np.arange(4, dtype=np.float32))["output"], np.arange(4))
        name, out = has.inputs[0].name, has.outputs[0].name
        self.assertEqual(has.inputs[0].kind, "optional")
        self.assertTrue(has.run({name: [1, 2, 3, 4]})[out])
        self.assertFalse(has.run({name: None})[out])
        self.assertEqual([v.kind for v in has.inputs], ["optional"])

    def test_hold_sequences_too(self):
        session = case("test_optional_get_element_sequence")
        self.assertEqual(session.inputs[0].parts, "sequence")
        parts = [np.arange(4, dtype=np.int32), np.array([7], np.int32)]
        got = session.run(parts)["output"]
        self.assertEqual([part.tolist() for part in got], [[0, 1, 2, 3], [7]])


class Maps(unittest.TestCase):
    LABELS = mge.Session(model("DictVectorizer", {"m": a_map(STRING, FLOAT)}, {"y": tensor(FLOAT)},
                               attribute("string_vocabulary", "strings", "a", "b", "c"), domain="ai.onnx.ml"))
    NUMBERS = mge.Session(model("DictVectorizer", {"m": a_map(INT64, FLOAT)}, {"y": tensor(FLOAT)},
                                attribute("int64_vocabulary", "ints", 10, 20), domain="ai.onnx.ml"))

    def test_are_dicts(self):
        self.assertEqual(self.LABELS.inputs[0].kind, "map")
        self.assertEqual(self.LABELS.run({"m": {"c": 1.5, "a": 2}})["y"].reshape(-1).tolist(), [2, 0, 1.5])
        self.assertEqual(self.NUMBERS.run(m={20: 3, 10: np.float32(4)})["y"].reshape(-1).tolist(), [4, 3])

    def test_with_wrong_keys_are_errors(self):
        with self.assertRaisesRegex(mge.InvalidError, "all int or all str"):
            self.LABELS.run(m={"a": 1, 2: 2})
        with self.assertRaisesRegex(mge.InvalidError, "takes maps, and list is none"):
            self.LABELS.run(m=[1])

    def zipmap(self, kind):
        labels = ("strings", "no", "yes") if kind == STRING else ("ints", 3, 5)
        return mge.Session(model("ZipMap", {"x": tensor(FLOAT, "n", 2)}, {"z": sequence(a_map(kind, FLOAT))},
                                 attribute("classlabels_" + ("strings" if kind == STRING else "int64s"), *labels),
                                 domain="ai.onnx.ml"))

    def test_of_a_classifier_behave_like_a_list_of_dicts(self):
        x = np.arange(6, dtype=np.float32).reshape(3, 2)
        for kind, keys in ((STRING, ["no", "yes"]), (INT64, [3, 5])):
            session = self.zipmap(kind)
            self.assertEqual((session.outputs[0].kind, session.outputs[0].parts), ("sequence", "map"))
            maps = session.run(x)["z"]
            expected = [dict(zip(keys, row)) for row in x.tolist()]
            self.assertIsInstance(maps, mge.MapSequence)
            self.assertEqual(list(maps), expected)
            self.assertEqual(maps.tolist(), expected)
            self.assertEqual((len(maps), maps[0], maps[-1], maps[1:].tolist()), (3, expected[0], expected[2], expected[1:]))
            self.assertTrue(maps == expected and expected == maps and maps == maps[:] and not maps != expected)
            self.assertFalse(maps == expected[:2] or maps == "text")
            self.assertIn(expected[1], maps)
            self.assertEqual((maps.index(expected[1]), maps.count({})), (1, 0))
            self.assertEqual(list(reversed(maps)), expected[::-1])
            self.assertEqual(json.loads(json.dumps(list(maps)))[0][str(keys[1])], 1)
            self.assertEqual(maps.keys.tolist(), keys)
            np.testing.assert_array_equal(maps.values, x)
            np.testing.assert_array_equal(maps.column(keys[1]), x[:, 1])
            with self.assertRaises(KeyError):
                maps.column("other")
            with self.assertRaises(IndexError):
                maps[3]
            self.assertIn("3 maps", repr(maps))

    def test_of_no_row_are_an_empty_sequence(self):
        self.assertEqual(list(self.zipmap(INT64).run(np.zeros((0, 2), np.float32))["z"]), [])

    def test_of_many_columns_have_dicts(self):
        values = np.arange(200, dtype=np.float32).reshape(2, 100)
        maps = mge.MapSequence(np.arange(100), values)
        self.assertEqual(maps.tolist(), [dict(enumerate(row)) for row in values.tolist()])
        with self.assertRaisesRegex(mge.UsageError, "a column for each key"):
            mge.MapSequence([1], values)


class Strings(unittest.TestCase):
    def test_keep_their_content_in_both_directions(self):
        session = mge.Session(model("Identity", {"x": tensor(STRING, "n", "m")}, {"y": tensor(STRING, "n", "m")}))
        values = np.array([["a", "", "käse"], ["\0x\0", "a", "x" * 1000]], object)
        got = session.run(values)["y"]
        self.assertEqual((got.shape, got.tolist()), ((2, 3), values.tolist()))
        self.assertIs(got[0, 0], got[1, 1])  # equal strings are one object
        np.testing.assert_array_equal(session.run(np.array([["u", "v"]]))["y"], [["u", "v"]])
        np.testing.assert_array_equal(session.run([[b"u", "v"]])["y"], [["u", "v"]])
        self.assertEqual(session.run(np.zeros((0, 3), object))["y"].shape, (0, 3))
        with self.assertRaisesRegex(mge.UsageError, "strings only, and this one holds 7"):
            session.run(np.array([["a", 7]], object))


class Inputs(unittest.TestCase):
    def test_of_a_model_with_one_need_no_name(self):
        session = mge.Session(DIGITS)
        image = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
        expected = session.run(image=image)["probabilities"]
        for given in (image, image.tolist(), mge.Tensor(image), np.asfortranarray(image), image.astype(">f4"), {"image": image}):
            np.testing.assert_array_equal(session.run(given)["probabilities"], expected)
        self.assertIn("cpu.", session.plan(image))
        two = case("test_top_k")
        with self.assertRaisesRegex(mge.UsageError, r"name the inputs \['x', 'k'\]"):
            two.run(np.zeros((3, 4), np.float32))
        with self.assertRaisesRegex(mge.UsageError, "in one way"):
            session.run(image, image=image)

    def test_that_are_wrong_give_the_same_errors_in_any_form_of_the_call(self):
        session = mge.Session(DIGITS)
        image = np.zeros((1, 1, 8, 8), np.float32)
        for wrong, error in ((image.astype(np.float64), "float64"), (image[0], "rank"), (image[:, :, :7], "7")):
            for call in (session._call, None):
                session._call = call
                with self.assertRaisesRegex(mge.InvalidError, error):
                    session.run(wrong)
        with self.assertRaisesRegex(mge.InvalidError, "not given|given"):
            session.run()

    def test_are_generated(self):
        session = mge.Session(DIGITS)
        inputs, report = session.example_inputs(seed=3, shapes={"image": "5x1x8x8"})
        self.assertEqual((inputs["image"].shape, report["schema"]), ((5, 1, 8, 8), "mge.inputs/1"))
        again, _ = session.example_inputs(seed=3, shapes={"image": "5x1x8x8"})
        np.testing.assert_array_equal(inputs["image"], again["image"])
        with self.assertRaisesRegex(mge.UsageError, "no input 'other'"):
            session.example_inputs(given={"other": 1})


class CompiledModule(unittest.TestCase):
    def test_gives_the_results_of_ctypes(self):
        for name, dtype in (("float32", FLOAT), ("int64", INT64), ("uint8", 2), ("bool", 9), ("float16", 10), ("float64", 11)):
            session = mge.Session(model("Identity", {"x": tensor(dtype)}, {"y": tensor(dtype)}))
            if session._call is None:
                self.skipTest("the compiled module is not built")
            for shape in ((), (0,), (3,), (2, 3, 4), (100, 100)):
                x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(name)
                got = session.run(x)["y"]
                np.testing.assert_array_equal(got, x)
                self.assertEqual((got.dtype, got.shape, got.flags.writeable), (x.dtype, x.shape, True))
                self.assertFalse(np.shares_memory(got, x))

    def test_can_be_forbidden(self):
        source = "import sys; sys.modules['mge._compiled'] = None; import mge; print(mge.Session(sys.argv[1]).compiled)"
        ended = subprocess.run([sys.executable, "-c", source, DIGITS], capture_output=True, text=True)
        self.assertEqual((ended.stdout, ended.stderr), ("False\n", ""))


if __name__ == "__main__":
    unittest.main()
