# SPDX-License-Identifier: Apache-2.0
"""Where models come from, and how large they may be. The environment is that of mge_test."""
import pathlib
import tempfile
import unittest

import numpy as np

import mge
from onnx_model import FLOAT, external_tensor, model_of, node, tensor

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx"


class Models(unittest.TestCase):
    def test_are_read_from_objects_with_read(self):
        image = np.zeros((1, 1, 8, 8), np.float32)
        expected = mge.Session(DIGITS).run(image)
        with open(DIGITS, "rb") as file:
            session = mge.Session(file)
        for name, array in session.run(image).items():
            np.testing.assert_array_equal(array, expected[name])

    def test_may_have_hundreds_of_inputs_and_outputs(self):
        for count in (17, 100, 600):  # the caches of a language model are two inputs and two outputs for each layer
            nodes = [node("Neg", [f"x{i}"], [f"y{i}"]) for i in range(count)]
            types = ({f"{side}{i}": tensor(FLOAT, 2) for i in range(count)} for side in "xy")
            session = mge.Session(model_of(nodes, *types))
            inputs = {f"x{i}": np.array([i, -i], np.float32) for i in range(count)}
            for _ in range(3):
                out = session.run(inputs)
                for i in range(count):
                    np.testing.assert_array_equal(out[f"y{i}"], [-i, i])

    def test_have_external_data_in_memory_or_in_a_folder(self):
        two = tensor(FLOAT, 2)
        model = model_of([node("Add", ["x", "w"], ["y"])], {"x": two}, {"y": two}, external_tensor("w", FLOAT, [2], "w.bin"))
        data, x = np.array([1, 2], np.float32), np.array([10, 20], np.float32)
        with self.assertRaisesRegex(mge.Error, "w.bin"):
            mge.Session(model)
        np.testing.assert_array_equal(mge.Session(model, files={"w.bin": data.tobytes()}).run(x)["y"], [11, 22])
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "w.bin").write_bytes(data.tobytes())
            np.testing.assert_array_equal(mge.Session(model, data_folder=folder).run(x)["y"], [11, 22])


if __name__ == "__main__":
    unittest.main()
