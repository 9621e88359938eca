# SPDX-License-Identifier: Apache-2.0
"""The lines for embedding models and re-rankers in the README of the Python package."""
import pathlib
import tempfile
import types
import unittest

import numpy as np

import mge
from onnx_model import FLOAT, INT64, data, model_of, node, number, tensor

WORDS = {"": 0, "sun": 1, "moon": 2, "star": 3}
TABLE = np.array([[9, 9], [1, 0], [0, 1], [2, 2]], np.float32)
README = pathlib.Path(mge.__file__).resolve().parent.parent / "README.md"


def lines_of_readme():
    block = README.read_text("utf-8").split("<!-- tests/sdk/python/embeddings_test.py runs these lines -->")[1]
    return block.split("```python\n")[1].split("```")[0]


class Tokenizer:
    """Splits at spaces; a pair of texts is one row."""

    def __init__(self):
        self.pads = False

    @classmethod
    def from_file(cls, file):
        assert pathlib.Path(file).name == "tokenizer.json"
        return cls()

    def enable_padding(self):
        self.pads = True

    def encode_batch(self, texts):
        rows = [[WORDS[word] for part in ([text] if isinstance(text, str) else text) for word in part.split()] for text in texts]
        length = max(map(len, rows)) if self.pads else 0
        return [types.SimpleNamespace(ids=row + [0] * (length - len(row)), type_ids=[0] * length,
                                      attention_mask=[1] * len(row) + [0] * (length - len(row))) for row in rows]


def write_model(file):
    """Writes a model whose hidden states are rows of a table, and whose logits are the sum of all hidden numbers."""
    raw = data(5, number(1, 4) + number(1, 2) + number(2, FLOAT) + data(8, "table") + data(9, TABLE.tobytes()))
    axes = data(5, number(1, 2) + number(2, INT64) + data(8, "axes") + data(9, np.array([1, 2]).tobytes()))
    keep = data(5, data(1, "keepdims") + number(3, 0) + number(20, 2))
    nodes = [node("Gather", ["table", "input_ids"], ["last_hidden_state"]),
             node("ReduceSum", ["last_hidden_state", "axes"], ["sums"], keep),
             node("Unsqueeze", ["sums", "one"], ["logits"]), node("Identity", ["attention_mask"], ["mask"])]
    one = data(5, number(1, 1) + number(2, INT64) + data(8, "one") + data(9, np.array([1]).tobytes()))
    file.write_bytes(model_of(nodes, {"input_ids": tensor(INT64, "B", "T"), "attention_mask": tensor(INT64, "B", "T")},
                              {"last_hidden_state": tensor(FLOAT, "B", "T", 2), "logits": tensor(FLOAT, "B", 1),
                               "mask": tensor(INT64, "B", "T")}, raw, axes, one))


class LinesOfTheReadme(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        write_model(pathlib.Path(folder.name) / "model.onnx")
        module = types.SimpleNamespace(Tokenizer=Tokenizer)
        self.names = {"mge": mge, "np": np, "tokenizers": module, "folder": folder.name}
        exec(compile(lines_of_readme(), str(README), "exec"), self.names)
        self.addCleanup(self.names["session"].close)

    def test_embed_texts_of_different_lengths(self):
        vectors = self.names["embed"](["sun", "sun moon", "star star moon"])
        half = np.sqrt(0.5)
        np.testing.assert_allclose(vectors[:2], [[1, 0], [half, half]], atol=1e-6)
        np.testing.assert_allclose(vectors[2], np.array([4, 5]) / np.sqrt(41), atol=1e-6)

    def test_rank_texts(self):
        self.assertEqual(self.names["rank"]("sun", ["moon", "star"]), ["star", "moon"])


if __name__ == "__main__":
    unittest.main()
