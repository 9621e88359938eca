# SPDX-License-Identifier: Apache-2.0
"""`python -m mge.onnxruntime SCRIPT [ARGUMENT...]`, or `-m MODULE`: runs a script whose libraries import onnxruntime, on MGE."""
import os
import runpy
import sys

from . import install

_USAGE = "usage: python -m mge.onnxruntime SCRIPT [ARGUMENT...]\n       python -m mge.onnxruntime -m MODULE [ARGUMENT...]"


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(f"{_USAGE}\n\nRuns a script or module in which `import onnxruntime` imports mge.onnxruntime.")
        return
    if not arguments or arguments == ["-m"]:
        sys.exit(f"mge.onnxruntime: name a script\n{_USAGE}")
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not os.path.isfile(arguments[0]):
        sys.exit(f"mge.onnxruntime: there is no script '{arguments[0]}'\n{_USAGE}")
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
