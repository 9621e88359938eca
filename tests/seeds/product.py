# SPDX-License-Identifier: Apache-2.0
"""The product as a user meets it: the command `mge`, and Python programs, each with its own environment and folder."""
import functools
import json
import os
import pathlib
import subprocess
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
DIGITS = SOURCES / "packaging" / "digits"
_SECONDS = 120  # patience with one program; it says that something hangs
_FOREIGN = ("MGE_", "MXNET_", "MGB_", "MEGENGINE_", "NNVM_", "GE_", "RUNTIME_OVERRIDE", "CUDA_BIN_PATH", "OMP_", "DNNL_", "ONEDNN_")

# The first lines of each program. tell() prints what the check reads.
_PRELUDE = """
import json, os, sys, time
import numpy as np
import mge
from mge import eager

def tell(**facts):
    print(json.dumps(facts), flush=True)

def threads():
    counts = []
    while len(counts) < 8 or len(set(counts[-8:])) > 1:  # one that ends is counted for a moment
        counts.append(len(os.listdir("/proc/self/task")))
        time.sleep(0.03)
    return counts[-1]

def free(device=0):
    return mge.gpu_memory_info(device)[0]
"""

MIB = 1 << 20
VIRTUAL = {"MGE_VIRTUAL_DEVICES": 1}
GPU = {**VIRTUAL, "MGE_VIRTUAL_GPU": 1}  # gpu0 is a GPU in software


class Skip(Exception):
    """The check needs something that this build lacks."""


def expect(condition, what):
    """Fails the check unless the condition holds. `what` was to be seen."""
    if not condition:
        raise AssertionError(what)


class Result:
    """What a program printed."""

    def __init__(self, out, err, code):
        self.out, self.err, self.code = out, err, code

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def facts(self):
        """All that the program told."""
        merged = {}
        for line in self.out.splitlines():
            if line.startswith("{"):
                merged.update(json.loads(line))
        return merged

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        facts = self.facts
        if name not in facts:
            raise AssertionError(f"the program did not tell '{name}', but {facts}")
        return facts[name]


class Product:
    """An installed or built tree, and a folder for the files of one check."""

    def __init__(self, prefix, folder):
        self.prefix, self.folder = pathlib.Path(prefix).resolve(), pathlib.Path(folder)
        self.library = self.prefix / "lib" / "libmge.so.0"

    # ---- what the build has

    def need(self, *parts):
        """Skips the check unless the build has all parts: a backend, or "software CUDA", a driver in software."""
        for part in parts:
            if part == "software CUDA":
                if not self.cuda_driver.exists() or not self._plugin("cuda").exists():
                    raise Skip("the build has no backend cuda, or not its driver in software")
            elif part == "oneDNN":
                if not self.has_onednn:
                    raise Skip("the backend cpu is built without oneDNN")
            elif not self._plugin(part).exists():
                raise Skip(f"the build has no backend {part}")

    def _plugin(self, backend):
        return self.prefix / "lib" / "mge" / "plugins" / f"mge_{backend}.so"

    @property
    def cuda_driver(self):
        return self.prefix / "lib" / "mge" / "test" / "libcuda.so.1"

    @functools.cached_property
    def has_onednn(self):
        return "cpu.onednn " in self.mge("env").out and "switched off by" in self.mge(
            "plan", DIGITS / "digits.onnx", "--why", "--device", "cpu0", MGE_CPU_ONEDNN=0).out

    # ---- programs

    def environment(self, variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        packages = self.prefix / "lib" / "python3" / "dist-packages"
        kept.update(HOME=str(home), XDG_CACHE_HOME=str(home / "cache"), MGE_LIBRARY_PATH=str(self.library),
                    PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="1", PYTHONPATH=str(packages if packages.exists() else SOURCES / "sdk" / "python"))
        kept.update({name: str(value) for name, value in variables.items()})
        return {name: value for name, value in kept.items() if variables.get(name, "") is not None}

    def start(self, command, **variables):
        """Starts a program in the folder of the check. A variable that is None is not set."""
        return subprocess.Popen([str(part) for part in command], cwd=self.folder, env=self.environment(variables), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def _result(self, command, code, variables):
        process = self.start(command, **variables)
        try:
            out, err = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"no end within {_SECONDS} s: {err[-400:]}") from None
        if code is not None and process.returncode != code:
            raise AssertionError(f"exit code {process.returncode}, not {code}: {(err or out).strip()[-600:]}")
        return Result(out, err, process.returncode)

    def mge(self, *arguments, code=0, **variables):
        """Runs the command. `code`: the expected exit code; None: any."""
        return self._result([self.prefix / "bin" / "mge", *arguments], code, variables)

    def python(self, source, *arguments, code=0, **variables):
        """Runs a program after the lines above. `code` as for mge()."""
        return self._result([sys.executable, "-c", _PRELUDE + source, *arguments], code, variables)

    # ---- files

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
