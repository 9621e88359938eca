# SPDX-License-Identifier: Apache-2.0
"""`python -m mge`: the mge command of the tree that the package lies in."""
import os
import sys

from ._native import prefixes

for _prefix in prefixes():
    _command = _prefix / "bin" / "mge"
    if _command.is_file():
        os.execv(_command, ["mge", *sys.argv[1:]])
sys.exit("mge: the command is not installed beside the package; install the Debian package mge, or the wheel, which has it")
