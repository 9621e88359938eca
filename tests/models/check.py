# SPDX-License-Identifier: Apache-2.0
"""Runs real models and the zoo in MGE and in ONNX Runtime: are the outputs the same, and how do times and memory compare?

Exit codes: 0 if all outputs agree and no real model runs a step on the reference evaluators, 77 if something needed is not
available (a skip), 1 otherwise.
"""
import pathlib
import sys
import tempfile

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import rows
import runtimes
from table import Table, geometric_mean, mib, us

SKIP = 77  # ctest's SKIP_RETURN_CODE
LARGEST_ERROR = 1e-4  # of an output's largest value


def error_of(got, expected):
    """Largest difference of two outputs over the largest expected value; infinite if they differ in type or shape."""
    if (got is None) != (expected is None):
        return numpy.inf
    if got is None:
        return 0.0
    a, b = numpy.load(got), numpy.load(expected)
    if a.dtype != b.dtype or a.shape != b.shape:
        return numpy.inf
    if not numpy.issubdtype(a.dtype, numpy.floating):
        return 0.0 if (a == b).all() else numpy.inf
    a, b = a.astype(numpy.float64), b.astype(numpy.float64)
    finite = numpy.isfinite(a) & numpy.isfinite(b)
    if not ((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | finite).all():
        return numpy.inf
    largest = numpy.abs(b[finite]).max(initial=0)
    difference = numpy.abs(a[finite] - b[finite]).max(initial=0)
    return 0.0 if difference == 0 else float(difference / largest) if largest > 0 else numpy.inf


def worst_output(mge, peer, model, inputs, threads):
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        got, expected = mge.outputs(model, inputs, threads, ours), peer.outputs(model, inputs, threads, theirs)
        if len(got) != len(expected):
            return numpy.inf
        return max(map(error_of, got, expected), default=0.0)


class Check:
    def __init__(self, args):
        self.args = args
        self.mge, self.peer = runtimes.Mge(args.build), runtimes.onnxruntime(args.build)
        self.problems = []
        self.speeds = {}  # (real, threads) -> speeds
        print(f"MGE {self.mge.version()} against ONNX Runtime {self.peer.version()}; speed: its time over ours, least of "
              f"{args.rounds} rounds; error: of the largest value")
        self.table = Table([("MODEL", -18), ("THREADS", 7), ("ERROR", 9), ("MGE", 9), ("ORT", 9), ("SPEED", 6), ("MEMORY", 9),
                            ("ORT", 9), ("STEPS", 6), ("REFERENCE", 9)], sys.stdout)

    def row(self, row):
        with row.ready(self.mge.command) as (model, inputs):
            for threads in self.args.threads:
                try:
                    self.measure(row, model, inputs, threads)
                except runtimes.Failed as failed:
                    self.problem(row, threads, str(failed))
                    self.table.row([row.name, threads, "FAILED"])

    def measure(self, row, model, inputs, threads):
        error = worst_output(self.mge, self.peer, model, inputs, threads)
        found = runtimes.interleaved([self.mge, self.peer], self.args.rounds,
                                     lambda runtime: runtime.bench(model, inputs, threads, self.args.seconds))
        for outcomes in found.values():
            if isinstance(outcomes, runtimes.Failed):
                raise outcomes
        ours, theirs = found["mge"], found["onnxruntime"]
        least, peers_least = runtimes.latency(ours)[0], runtimes.latency(theirs)[0]
        speed = peers_least / least
        self.speeds.setdefault((row.real, threads), []).append(speed)
        report = ours[0].report
        self.table.row([row.name, threads, f"{error:.1e}", us(least), us(peers_least), f"{speed:.2f}",
                        mib(runtimes.peak_bytes(ours)), mib(runtimes.peak_bytes(theirs)), report["steps"],
                        report["reference_steps"]])
        if error > LARGEST_ERROR:
            self.problem(row, threads, f"an output is wrong by {error:.1e} of its largest value (allowed: {LARGEST_ERROR:.0e})")
        if row.real and report["reference_steps"]:
            self.problem(row, threads, f"{report['reference_steps']} of {report['steps']} steps run by the reference evaluator; "
                                       f"see `mge plan MODEL --why`")

    def problem(self, row, threads, text):
        self.problems.append(f"{row.name}, {threads} threads: {text}")

    def finish(self):
        for (real, threads), speeds in sorted(self.speeds.items()):
            print(f"geometric mean of the speeds of {len(speeds)} {'real models' if real else 'rows of the zoo'}, {threads} "
                  f"threads: {geometric_mean(speeds):.2f}; least {min(speeds):.2f}")
        for problem in self.problems:
            print(f"FAILED: {problem}", file=sys.stderr)
        return 1 if self.problems else 0


def main():
    parser = rows.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    args = parser.parse_args()
    try:
        chosen = rows.chosen(args)
        check = Check(args)
    except rows.Unavailable as reason:
        print(f"skipped: {reason}")
        return SKIP
    for row in chosen:
        check.row(row)
    return check.finish()


if __name__ == "__main__":
    sys.exit(main())
