# SPDX-License-Identifier: Apache-2.0
"""Holds the cost model to the truth: the planner's estimates against measured times, its choices against measured ones.

Runs the real models and the zoo at 1 and 2 threads. An estimate is off if it is wrong by more than 4 times, for a step that takes
more than 1 % of the run and more than 20 us (median of 5 runs). A choice is wrong if another candidate that was offered for the
same step is more than 1.3 times faster, by the times that `select.strategy=profile` measures.
costs.txt lists the exceptions, each with a reason. Leave the machine alone meanwhile.

Exit codes: 0 no finding that is not listed; 1 otherwise; 77 something cannot be had (a skip).
"""
import argparse
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import rows
import runtimes

EXCEPTIONS = pathlib.Path(__file__).resolve().parent / "costs.txt"
SLOWER = 1.3
LEAST_SHARE, LEAST_US = 0.01, 20


def exceptions():
    """[(pattern of a finding, reason)]"""
    found = []
    for line in EXCEPTIONS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, reason = line.split("  # ", 1)
            found.append((re.compile(pattern.strip()), reason.strip()))
    return found


def steps_that_matter(report):
    """A profile's steps with a kernel of a backend, which take a part of the run worth a better choice."""
    return [s for s in report["steps"] if s["share"] > LEAST_SHARE and s["call_median_us"] > LEAST_US and s["estimated_us"] is not None]


def estimates(profile):
    for step in steps_that_matter(profile):
        if step["estimate_off"]:
            yield (f"estimate {step['kernel']} {'+'.join(step['operators'])} of {step['label']}: {step['estimated_us']:.0f} us, "
                   f"took {step['call_median_us']:.0f} us")


def choices(profile, measured_plan):
    """Compares kernels that the heuristic chose with those that the strategy `profile` chose for the same nodes."""
    units = {tuple(unit["nodes"]): unit for unit in measured_plan["units"] if unit["nodes"]}
    for step in steps_that_matter(profile):
        unit = units.get(tuple(step["nodes"]))
        if not unit or unit["kernel"] == step["kernel"]:
            continue
        times = {a["id"]: a["measured_us"] for a in unit["alternatives"] if a["measured_us"] > 0}
        chosen, best = times.get(step["kernel"], 0), unit["measured_us"]
        if best > 0 and chosen > SLOWER * best:
            yield (f"choice {step['kernel']} {'+'.join(step['operators'])} of {step['label']}: {chosen:.0f} us, "
                   f"{unit['kernel']} {best:.0f} us")


class Costs:
    def __init__(self, args):
        self.mge = runtimes.Mge(args.build)
        self.threads = args.threads
        self.exceptions = exceptions()
        self.used = set()
        self.wrong = self.steps = 0

    def row(self, row):
        with row.ready(self.mge.command) as (model, inputs):
            self.check(row.name, model, inputs)

    def check(self, name, model, inputs):
        for threads in self.threads:
            tail = [model, "--json", "--threads", threads, *runtimes.input_options(inputs)]
            profile = runtimes.run([self.mge.command, "profile", "--runs", 5, *tail]).report
            os.environ["MGE_SELECT_STRATEGY"] = "profile"
            measured = runtimes.run([self.mge.command, "plan", "--why", *tail]).report
            del os.environ["MGE_SELECT_STRATEGY"]
            self.steps += len(steps_that_matter(profile))
            for finding in [*estimates(profile), *choices(profile, measured)]:
                self.report(f"{name}, {threads} threads: {finding}")

    def report(self, finding):
        for i, (pattern, reason) in enumerate(self.exceptions):
            if pattern.search(finding):
                self.used.add(i)
                print(f"listed: {finding} ({reason})", flush=True)
                return
        self.wrong += 1
        print(finding, flush=True)

    def finish(self):
        print(f"{self.steps} steps that matter, {self.wrong} findings that are not listed; {len(self.used)} of "
              f"{len(self.exceptions)} exceptions met")
        return 1 if self.wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    args = parser.parse_args()
    try:
        real = rows.real_rows()
        rows.fetch(real, args.cache)
    except rows.Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    costs = Costs(args)
    for row in real + rows.zoo_rows():
        if args.only in row.name:
            costs.row(row)
    return costs.finish()


if __name__ == "__main__":
    sys.exit(main())
