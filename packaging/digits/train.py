#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the classifier of handwritten digits that `mge demo` runs, and writes it as ONNX.

    python3 -m venv VENV && VENV/bin/pip install -r requirements.txt
    VENV/bin/python train.py            # writes the three data files beside this script

The network is small enough that its gradients are written out below in NumPy. The data are the 1797 images of
8x8 pixels that scikit-learn carries. A fixed seed decides everything; another BLAS may still round differently.
"""

import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

SEED = 20
EPOCHS = 60
BATCH = 32
HELD_OUT = 450  # never seen in training; the shipped images are its first ones
SHIPPED = 48
RATE = 2e-3


def patches(x):
    """[N,C,H,W] -> [N,H,W,C*9]: the 3x3 neighbourhoods, zero outside of the image."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h, w, c * 9)


class Conv:
    """3x3 convolution that keeps the size, followed by Relu."""

    def __init__(self, rng, cin, cout):
        scale = np.sqrt(2.0 / (cin * 9))
        self.params = [rng.normal(0, scale, (cout, cin, 3, 3)).astype(np.float32), np.zeros(cout, np.float32)]

    def forward(self, x):
        weight, bias = self.params
        self.shape, self.cols = x.shape, patches(x)
        y = self.cols @ weight.reshape(len(weight), -1).T + bias
        self.mask = y > 0
        return (y * self.mask).transpose(0, 3, 1, 2)

    def backward(self, dy):
        weight, _ = self.params
        dy = dy.transpose(0, 2, 3, 1) * self.mask
        flat = dy.reshape(-1, len(weight))
        self.grads = [(flat.T @ self.cols.reshape(len(flat), -1)).reshape(weight.shape), flat.sum(0)]
        n, c, h, w = self.shape
        dcols = (dy @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, 3, 3)
        dx = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                dx[:, :, i:i + h, j:j + w] += dcols[..., i, j].transpose(0, 3, 1, 2)
        return dx[:, :, 1:-1, 1:-1]


class Pool:
    """2x2 maximum with stride 2."""

    params, grads = [], []

    def forward(self, x):
        n, c, h, w = x.shape
        tiles = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        self.shape, self.best = x.shape, tiles.argmax(-1)
        return tiles.max(-1)

    def backward(self, dy):
        n, c, h, w = self.shape
        tiles = (np.arange(4) == self.best[..., None]) * dy[..., None]
        return tiles.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(self.shape)


class Linear:
    """Flatten, then a matrix."""

    def __init__(self, rng, cin, cout):
        self.params = [rng.normal(0, np.sqrt(1.0 / cin), (cin, cout)).astype(np.float32), np.zeros(cout, np.float32)]

    def forward(self, x):
        self.shape, self.x = x.shape, x.reshape(len(x), -1)
        return self.x @ self.params[0] + self.params[1]

    def backward(self, dy):
        self.grads = [self.x.T @ dy, dy.sum(0)]
        return (dy @ self.params[0].T).reshape(self.shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def predict(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return softmax(x)


def shifted(rng, x):
    """Every image moved by up to one pixel each way."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    dy, dx = rng.integers(0, 3, (2, len(x)))
    return np.stack([p[:, i:i + 8, j:j + 8] for p, i, j in zip(padded, dy, dx)])


def train(rng, images, labels):
    layers = [Conv(rng, 1, 16), Pool(), Conv(rng, 16, 32), Linear(rng, 32 * 16, 10)]
    slots = [(layer, k) for layer in layers for k in range(len(layer.params))]
    first = [np.zeros_like(layer.params[k]) for layer, k in slots]
    second = [np.zeros_like(layer.params[k]) for layer, k in slots]
    step, steps = 0, EPOCHS * (len(images) // BATCH)
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            picked = order[start:start + BATCH]
            probabilities = predict(layers, shifted(rng, images[picked]))
            grad = (probabilities - np.eye(10, dtype=np.float32)[labels[picked]]) / BATCH
            for layer in reversed(layers):
                grad = layer.backward(grad)
            step += 1
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for (layer, k), m, v in zip(slots, first, second):  # Adam
                g = layer.grads[k]
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                layer.params[k] -= (rate * (m / (1 - 0.9**step)) /
                                    (np.sqrt(v / (1 - 0.999**step)) + 1e-8)).astype(np.float32)
    return layers


def export(layers, accuracy, path):
    conv1, _, conv2, gemm = layers
    names = ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "gemm.weight", "gemm.bias"]
    values = conv1.params + conv2.params + gemm.params
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", names[0], names[1]], ["conv1"], "conv1", **conv),
        helper.make_node("Relu", ["conv1"], ["relu1"], "relu1"),
        helper.make_node("MaxPool", ["relu1"], ["pool1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["pool1", names[2], names[3]], ["conv2"], "conv2", **conv),
        helper.make_node("Relu", ["conv2"], ["relu2"], "relu2"),
        helper.make_node("Flatten", ["relu2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", names[4], names[5]], ["logits"], "gemm"),
        helper.make_node("Softmax", ["logits"], ["probabilities"], "softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])],
        [numpy_helper.from_array(np.ascontiguousarray(v, np.float32), n) for n, v in zip(names, values)],
        doc_string="Handwritten digits, 8x8 pixels from 0 (paper) to 1 (ink). "
                   f"{accuracy:.2%} of {HELD_OUT} held-out images are right.")
    model = helper.make_model(graph, producer_name="mge/packaging/digits/train.py", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output-dir", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    out = parser.parse_args().output_dir

    rng = np.random.default_rng(SEED)
    data = load_digits()
    order = rng.permutation(len(data.images))
    images = (data.images[order][:, None] / 16).astype(np.float32)
    labels = data.target[order].astype(np.int64)
    test_x, test_y, train_x, train_y = images[:HELD_OUT], labels[:HELD_OUT], images[HELD_OUT:], labels[HELD_OUT:]

    layers = train(rng, train_x, train_y)
    right = int((predict(layers, test_x).argmax(-1) == test_y).sum())
    print(f"held-out images: {right} of {HELD_OUT} right ({right / HELD_OUT:.2%})")

    export(layers, right / HELD_OUT, out / "digits.onnx")
    np.save(out / "digits_images.npy", test_x[:SHIPPED])
    np.save(out / "digits_labels.npy", test_y[:SHIPPED])


if __name__ == "__main__":
    main()
