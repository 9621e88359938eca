# SPDX-License-Identifier: Apache-2.0
"""The checks of check.py and of the list can fail. run.sh runs this first."""
import hashlib
import pathlib
import tempfile
import unittest
import zipfile

import numpy

import check
import costs
import rows


class ErrorOf(unittest.TestCase):
    def error(self, got, expected):
        with tempfile.TemporaryDirectory() as folder:
            files = [str(pathlib.Path(folder) / name) for name in ("a.npy", "b.npy")]
            for file, value in zip(files, (got, expected)):
                numpy.save(file, value)
            return check.error_of(*files)

    def test_equal_outputs_have_no_error(self):
        x = numpy.array([1.0, numpy.nan, numpy.inf, -3.0], numpy.float32)
        self.assertEqual(self.error(x, x), 0)

    def test_a_difference_counts_by_the_largest_value(self):
        self.assertAlmostEqual(self.error(numpy.array([0.0, 10.5]), numpy.array([0.0, 10.0])), 0.05)

    def test_nan_infinity_and_zero_are_not_tolerated_in_place_of_each_other(self):
        for got, expected in [(numpy.nan, 1.0), (1.0, numpy.nan), (numpy.inf, -numpy.inf), (1.0, numpy.inf), (1e-9, 0.0)]:
            self.assertGreater(self.error(numpy.array([got]), numpy.array([expected])), check.LARGEST_ERROR)

    def test_types_and_shapes_have_to_be_equal(self):
        x = numpy.ones((2, 1), numpy.float32)
        for other in (x.astype(numpy.float64), x.reshape(1, 2)):
            self.assertEqual(self.error(x, other), numpy.inf)

    def test_integers_have_to_be_equal(self):
        self.assertEqual(self.error(numpy.array([1, 2]), numpy.array([1, 3])), numpy.inf)


class List(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list.txt"
            path.write_text(text)
            return rows.real_rows(path)

    def test_every_line_of_the_list_is_read(self):
        found = self.read("# a comment\nwheel p 1.0\nmodel a/b.onnx 00ff\nrun one x=float32[1]\nrun two x=float32[2]\n")
        self.assertEqual([(r.name, r.wheel, r.member, r.sha256, r.inputs) for r in found],
                         [("one", "p 1.0", "a/b.onnx", "00ff", ["x=float32[1]"]), ("two", "p 1.0", "a/b.onnx", "00ff", ["x=float32[2]"])])

    def test_a_line_out_of_place_is_refused(self):
        for text in ("run a x=float32[1]\n", "wheel p 1\nrun a x=float32[1]\n", "wheel p\n", "wheel p 1\nmodel b 0\nrun a\n"):
            with self.assertRaisesRegex(SystemExit, "does not fit here"):
                self.read(text)

    def test_a_file_with_another_hash_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            wheel = pathlib.Path(folder) / "p.whl"
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("m.onnx", b"model")
            row = rows.Row("r", [], "p 1", "m.onnx", "00", file=pathlib.Path(folder) / "cache" / "m.onnx")
            with zipfile.ZipFile(wheel) as archive:
                with self.assertRaisesRegex(SystemExit, "SHA-256"):
                    rows._extract(archive, row)
                self.assertFalse(row.file.exists())
                row.sha256 = hashlib.sha256(b"model").hexdigest()
                rows._extract(archive, row)
            self.assertTrue(rows._is_whole(row))

    def test_inputs_have_the_type_the_shape_and_the_range_that_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            files = rows.make_inputs(["a:0=float32[2,3]{0,1}", "n=int64[]{8000,8000}"], folder)
            a, n = numpy.load(files["a:0"]), numpy.load(files["n"])
        self.assertEqual((a.dtype, a.shape, n.dtype, n.shape, int(n)), (numpy.float32, (2, 3), numpy.int64, (), 8000))
        self.assertTrue(((a >= 0) & (a <= 1)).all())
        with self.assertRaisesRegex(SystemExit, "is not an input"):
            rows.make_inputs(["x=1x2"], "")


class Costs(unittest.TestCase):
    STEP = {"nodes": ["a"], "operators": ["Conv"], "label": "a", "kernel": "slow", "share": 0.5, "call_median_us": 100,
            "estimated_us": 10, "estimate_off": True}

    def plan(self, kernel, us):
        return {"units": [{"nodes": ["a"], "kernel": kernel, "measured_us": us,
                           "alternatives": [{"id": "slow", "measured_us": 100}, {"id": "refused", "measured_us": -1}]}]}

    def test_an_estimate_that_is_off_is_found_where_it_matters(self):
        self.assertEqual(costs.estimates({"steps": [self.STEP]}), {"estimate slow Conv of a": "10 us, took 100 us"})
        for change in ({"estimate_off": False}, {"share": 0.001}, {"call_median_us": 5}, {"estimated_us": None}):
            self.assertEqual(costs.estimates({"steps": [{**self.STEP, **change}]}), {})

    def test_a_choice_is_wrong_if_another_one_is_measured_as_much_faster(self):
        profile = {"steps": [self.STEP]}
        self.assertEqual(costs.choices(profile, self.plan("fast", 50)), {"choice slow Conv of a, not fast": "100 us, 50 us"})
        self.assertEqual(costs.choices(profile, self.plan("fast", 90)), {})
        self.assertEqual(costs.choices(profile, self.plan("slow", 100)), {})

    def test_every_exception_has_a_reason(self):
        self.assertTrue(all(reason for _, reason in costs.exceptions()))


if __name__ == "__main__":
    unittest.main()
