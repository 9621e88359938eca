# SPDX-License-Identifier: Apache-2.0
"""Small models for tests, in the encoding of protobuf."""


def number(field, value):
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    size, length = b"", len(value)
    while True:
        size += bytes([length & 127 | (128 if length > 127 else 0)])
        length >>= 7
        if not length:
            return bytes([field << 3 | 2]) + size + value


FLOAT, INT64, STRING, INT4 = 1, 7, 8, 22


def tensor(kind, *dims):
    """Returns a type: of a tensor of any rank if there are no dimensions."""
    shape = data(2, b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims))
    return data(1, number(1, kind) + (shape if dims else b""))


def a_map(keys, values):
    return data(5, number(1, keys) + data(2, tensor(values)))


def sequence(of):
    return data(4, data(1, of))


def attribute(name, kind, *values):
    field = {"ints": 8, "strings": 9}[kind]
    return data(5, data(1, name) + b"".join(number(field, v) if kind == "ints" else data(field, v) for v in values)
                + number(20, {"ints": 7, "strings": 8}[kind]))


def node(op, inputs, outputs, *attributes, domain=""):
    return data(1, b"".join([data(1, i) for i in inputs] + [data(2, o) for o in outputs] + [data(4, op), *attributes,
                                                                                            data(7, domain)]))


def model_of(nodes, inputs, outputs, *initializers):
    """Returns a model. `inputs` and `outputs` map names to types."""
    def values(field, rows):
        return b"".join(data(field, data(1, name) + data(2, kind)) for name, kind in rows.items())
    graph = b"".join(nodes) + data(2, "g") + b"".join(initializers) + values(11, inputs) + values(12, outputs)
    opsets = data(8, data(1, "") + number(2, 16)) + data(8, data(1, "ai.onnx.ml") + number(2, 3))
    return number(1, 8) + data(7, graph) + opsets


def model(op, inputs, outputs, *attributes, domain=""):
    """Returns a model of one node."""
    return model_of([node(op, inputs, outputs, *attributes, domain=domain)], inputs, outputs)


def external_tensor(name, kind, dims, location):
    """Returns an initializer whose elements are in a file."""
    entry = data(1, "location") + data(2, location)
    return data(5, b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + data(13, entry) + number(14, 1))
