#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tests that the installed package `onnx` generates, as folders that `mge check` reads.

    python3 tests/onnx_suite/generate_cases.py DIR
    python3 tests/onnx_suite/generate_cases.py DIR --list tests/onnx_suite/sample.txt --archive tests/onnx_suite/sample.tar.gz

The tests go to DIR/onnx-VERSION/KIND/NAME, which holds model.onnx and test_data_set_N. KIND is node or simple. The version is part of
the path because the rows of core/cli/onnx_gaps.txt name it where the expected values of versions differ. --archive writes the same
files to a .tar.gz instead, for the tests of this folder.
"""
import argparse
import fnmatch
import gzip
import io
import pathlib
import sys
import tarfile
import warnings

import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import model, node


def to_proto(value, declared):
    """Returns the message of one input or output of a test."""
    kind = declared.type.WhichOneof("value")
    if isinstance(value, TensorProto):
        return value
    if kind == "sequence_type":
        return numpy_helper.from_list(value, declared.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, declared.name)
    return numpy_helper.from_array(value, declared.name)


def files_of(case):
    """Yields the path below the test's folder and the bytes of each file."""
    yield "model.onnx", case.model.SerializeToString()
    graph = case.model.graph
    for i, (inputs, outputs) in enumerate(case.data_sets):
        for kind, values, declared in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for j, value in enumerate(values):
                yield f"test_data_set_{i}/{kind}_{j}.pb", to_proto(value, declared[j]).SerializeToString()


def collect():
    """Returns all tests whose models the package holds itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about divisions by zero in the tests
        cases = node.collect_testcases() + model.collect_testcases()
    return {case.name: case for case in cases if case.kind in ("node", "simple")}


def read_patterns(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def main():
    parser = argparse.ArgumentParser(description="Writes the tests that the installed package onnx generates.")
    parser.add_argument("dir", type=pathlib.Path, help="folder to write; ignored with --archive")
    parser.add_argument("--list", type=pathlib.Path, metavar="FILE", help="names of tests with * and ?, one per line, ! before those to leave out; default: all")
    parser.add_argument("--archive", type=pathlib.Path, metavar="FILE", help="write a .tar.gz instead of folders")
    args = parser.parse_args()
    cases = collect()
    names = sorted(cases)
    if args.list:
        lines = read_patterns(args.list)
        patterns = [line for line in lines if not line.startswith("!")]
        excluded = [line[1:] for line in lines if line.startswith("!")]
        unknown = [p for p in patterns if not fnmatch.filter(cases, p)]
        if unknown:
            sys.exit(f"onnx {onnx.__version__} has no test named {', '.join(unknown)}")
        names = [name for name in names if any(fnmatch.fnmatchcase(name, p) for p in patterns)
                 and not any(fnmatch.fnmatchcase(name, p) for p in excluded)]
    root = "onnx-" + ".".join(onnx.__version__.split(".")[:2])
    content = ((f"{root}/{cases[name].kind}/{name}/{path}", data) for name in names for path, data in files_of(cases[name]))
    if args.archive:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for path, data in content:
                entry = tarfile.TarInfo(path)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        args.archive.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    else:
        for path, data in content:
            target = args.dir / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    print(f"{len(names)} tests of onnx {onnx.__version__} written to {args.archive or args.dir}")


if __name__ == "__main__":
    main()
