# SPDX-License-Identifier: Apache-2.0
"""Small models for the checks."""
import numpy as np
from onnx_model import FLOAT, attribute, data, model_of, node, number, tensor

FLOAT16 = 10


def weights(name, *dims, scale=0.05, seed=1, kind=np.float32):
    """Returns an initializer with random elements."""
    values = (np.random.default_rng(seed).standard_normal(dims) * scale).astype(kind)
    code = {"float32": FLOAT, "float16": FLOAT16}[np.dtype(kind).name]
    return data(5, b"".join(number(1, d) for d in dims) + number(2, code) + data(8, name) + data(9, values.tobytes()))


def one(op, *dims, kind=FLOAT):
    """x -> op -> y."""
    return model_of([node(op, ["x"], ["y"])], {"x": tensor(kind, *dims)}, {"y": tensor(kind, *dims)})


def chain(ops, *dims):
    """x -> op -> ... -> op -> y."""
    names = ["x"] + [f"v{i}" for i in range(len(ops) - 1)] + ["y"]
    nodes = [node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(ops)]
    return model_of(nodes, {"x": tensor(FLOAT, *dims)}, {"y": tensor(FLOAT, *dims)})


def dense(*widths, rows="N", between="Relu"):
    """Products of x[rows, widths[0]] with matrices, with an operator after each but the last."""
    nodes, constants, last = [], [], "x"
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        end = i == len(widths) - 2
        constants.append(weights(f"w{i}", a, b, seed=i + 1))
        nodes.append(node("MatMul", [last, f"w{i}"], ["y" if end else f"m{i}"]))
        last = f"m{i}"
        if not end and between:
            nodes.append(node(between, [last], [f"a{i}"]))
            last = f"a{i}"
    return model_of(nodes, {"x": tensor(FLOAT, rows, widths[0])}, {"y": tensor(FLOAT, rows, widths[-1])}, *constants)


def branches(count, rows, width):
    """Products of x[rows, width] with matrices, which do not depend on each other, and the sum of all their elements."""
    nodes = [node("MatMul", ["x", f"w{i}"], [f"b{i}"]) for i in range(count)]
    nodes += [node("Softmax", [f"b{i}"], [f"s{i}"]) for i in range(count)]
    nodes += [node("ReduceSum", [f"s{i}"], [f"r{i}"]) for i in range(count)]
    nodes.append(node("Sum", [f"r{i}" for i in range(count)], ["y"]))
    return model_of(nodes, {"x": tensor(FLOAT, rows, width)}, {"y": tensor(FLOAT, 1, 1)},
                    *[weights(f"w{i}", width, width, seed=i) for i in range(count)])


def gated(layers, width):
    """Layers of a product and cheap nodes: tanh(p * sigmoid(p)) for each product p."""
    nodes, last = [], "x"
    for i in range(layers):
        end = "y" if i == layers - 1 else f"t{i}"
        nodes += [node("MatMul", [last, f"w{i}"], [f"p{i}"]), node("Sigmoid", [f"p{i}"], [f"s{i}"]),
                  node("Mul", [f"p{i}", f"s{i}"], [f"g{i}"]), node("Tanh", [f"g{i}"], [end])]
        last = end
    return model_of(nodes, {"x": tensor(FLOAT, "N", width)}, {"y": tensor(FLOAT, "N", width)},
                    *[weights(f"w{i}", width, width, scale=0.3, seed=i) for i in range(layers)])


def reduced(ops, *dims):
    """A chain of operators, and the sum of all elements."""
    names = ["x"] + [f"v{i}" for i in range(len(ops))]
    nodes = [node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(ops)] + [node("ReduceSum", [names[-1]], ["y"])]
    return model_of(nodes, {"x": tensor(FLOAT, *dims)}, {"y": tensor(FLOAT, *[1] * len(dims))})


def early_value():
    """y = softmax(softmax(x) w) + softmax(x): the first value is read by the last node, too."""
    nodes = [node("Softmax", ["x"], ["a"]), node("MatMul", ["a", "w"], ["b"]), node("Softmax", ["b"], ["c"]),
             node("Add", ["c", "a"], ["y"])]
    return model_of(nodes, {"x": tensor(FLOAT, 4, 8)}, {"y": tensor(FLOAT, 4, 8)}, weights("w", 8, 8))


def convolutions(side, channels, *outputs):
    """A chain of 3x3 convolutions of x[1, channels, side, side], which pad by 1."""
    nodes, constants, names = [], [], ["x"] + [f"v{i}" for i in range(len(outputs) - 1)] + ["y"]
    for i, (before, after) in enumerate(zip((channels, *outputs), outputs)):
        constants.append(weights(f"w{i}", after, before, 3, 3, seed=i))
        nodes.append(node("Conv", [names[i], f"w{i}"], [names[i + 1]], attribute("pads", "ints", 1, 1, 1, 1)))
    return model_of(nodes, {"x": tensor(FLOAT, 1, channels, side, side)},
                    {"y": tensor(FLOAT, 1, outputs[-1], side, side)}, *constants)
