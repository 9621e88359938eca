# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: checks by the name that they prove, and the known gaps."""

CHECKS = []


class Check:
    """`title`: the name, or "NAME, part" for one of several checks of a name."""

    def __init__(self, name, part, run):
        self.name, self.run = name, run
        self.title = f"{name}, {part}" if part else name


def check(name, part=""):
    """Adds a function to the table. It gets a Product, and returns what was seen or raises."""
    def add(run):
        CHECKS.append(Check(name, part, run))
        return run
    return add


def read_gaps(path):
    """Returns the reasons of the known gaps by title. A line is `title | reason`."""
    gaps = {}
    for line in path.read_text().split("\n"):
        if not line or line.startswith("#"):
            continue
        title, separator, reason = (part.strip() for part in line.partition("|"))
        if not separator or not reason:
            raise SystemExit(f"{path}: '{line}' has no reason; write 'title | reason'")
        gaps[title] = reason
    return gaps
