# SPDX-License-Identifier: Apache-2.0
"""python -m mge.bench. The environment is that of mge_test."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

MODEL = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx"


def bench(*arguments):
    return subprocess.run([sys.executable, "-m", "mge.bench", *map(str, arguments)], capture_output=True, text=True)


class Bench(unittest.TestCase):
    def test_reports_what_mge_bench_does(self):
        ended = bench(MODEL, "--runs", 50, "--device", "cpu0", "--threads", 1, "--shape", "image=3x1x8x8", "--json")
        report = json.loads(ended.stdout)
        self.assertEqual((ended.returncode, ended.stderr, report["schema"]), (0, "", "mge.bench_python/1"))
        self.assertEqual((report["device"], report["threads"], report["runs"]), ("cpu0", 1, 50))
        self.assertEqual(report["inputs"][0]["shape"], [3, 1, 8, 8])
        latency = [report["latency_us"][name] for name in ("min", "p50", "p90", "p99")]
        self.assertEqual(latency, sorted(latency))
        self.assertGreater(latency[0], 0)
        self.assertGreater(report["first_result_ms"], report["load_ms"])
        self.assertGreater(min(report[name] for name in ("peak_rss_bytes", "planned_peak_bytes", "steps")), 0)

    def test_prints_a_table_and_takes_inputs_from_files(self):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/image.npy", np.zeros((2, 1, 8, 8), np.float32))
            ended = bench(MODEL, "--seconds", 0.05, "--input", f"image={folder}/image.npy")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        for word in ("device ", "call ", "latency ", "load ", "memory ", "steps "):
            self.assertIn("\n" + word, "\n" + ended.stdout)

    def test_ends_with_the_exit_codes_of_mge(self):
        for arguments, code, text in ((["/nowhere.onnx"], 7, "error[E0701]"), ([MODEL, "--device", "gpu9"], 5, "gpu9"),
                                      ([MODEL, "--shape", "image"], 2, "NAME=SHAPE"), ([], 2, "usage")):
            ended = bench(*arguments)
            self.assertEqual(ended.returncode, code)
            self.assertIn(text, ended.stderr)
            self.assertEqual(ended.stdout, "")

    def test_needs_the_peer_that_it_is_asked_for(self):
        ended = bench(MODEL, "--peer", "onnxruntime", "--runs", 5)
        if ended.returncode == 0:
            self.assertIn("onnxruntime", ended.stdout)
        else:
            self.assertEqual(ended.returncode, 2)
            self.assertIn("install the package onnxruntime", ended.stderr)


if __name__ == "__main__":
    unittest.main()
