# SPDX-License-Identifier: Apache-2.0
"""Numbers as text, in tables with aligned columns."""
import math


def us(value):
    for limit, unit, scale in ((1e3, "us", 1), (1e6, "ms", 1e3), (math.inf, "s", 1e6)):
        if value < limit:
            return f"{value / scale:.3g} {unit}" if value / scale < 100 else f"{value / scale:.0f} {unit}"


def mib(value):
    return f"{value / 2**20:.0f} MiB"


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


class Table:
    """Prints each row at once, in columns of given widths: [(title, width)]; a negative width aligns to the left."""

    def __init__(self, columns, out):
        self.widths, self.out = [width for _, width in columns], out
        self.row([title for title, _ in columns])

    def row(self, cells):
        text = [f"{cell:<{-w}}" if w < 0 else f"{cell:>{w}}" for cell, w in zip(map(str, cells), self.widths)]
        print(" ".join(text).rstrip(), file=self.out, flush=True)
