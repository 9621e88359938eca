# SPDX-License-Identifier: Apache-2.0
"""Checks of an installation by pip. This file imports nothing of the package, so that the script `mge` can use it alone."""
from __future__ import annotations

import os
import pathlib
import re


def problem(folder: str | os.PathLike[str]) -> str | None:
    """Returns why the package in `folder` cannot run on this machine, with what to do, or None. Checks what pip has recorded: the
    oldest C library that the wheel runs with, and its shared libraries. Returns None for a package that pip did not install."""
    place = pathlib.Path(folder).resolve().parent
    for info in place.glob("mge-*.dist-info"):
        return _old_system(info / "WHEEL") or _missing_file(place, info / "RECORD")
    return None


def _old_system(wheel: pathlib.Path) -> str | None:
    tag = re.search(r"^Tag: .*manylinux_(\d+)_(\d+)_(\w+)$", _text(wheel), re.MULTILINE)
    if not tag:
        return None
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        numbers = [int(part) for part in version.split(".")[:2]]
    except (ValueError, OSError):
        name, numbers = "", []
    if name == "glibc" and numbers >= [int(tag[1]), int(tag[2])]:
        return None
    here = f"{name} {version}" if numbers else "another C library"
    return (f"this system has {here}, but the package needs glibc {tag[1]}.{tag[2]} or newer, as Debian 12 and Ubuntu 24.04 have\n"
            "  fix: use a newer system or a container, or build MGE here (packaging/wheel.sh)")


def _missing_file(place: pathlib.Path, record: pathlib.Path) -> str | None:
    for line in _text(record).splitlines():
        name = line.split(",")[0]
        if re.search(r"^mge/(bin/|lib/.*\.so)", name) and not (place / name).is_file():
            return (f"the installed package is incomplete: {place / name} is missing\n"
                    "  fix: install it again (pip install --force-reinstall --no-deps, and the file of the wheel)")
    return None


def _text(file: pathlib.Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
