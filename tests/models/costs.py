# SPDX-License-Identifier: Apache-2.0
"""Compares the cost model with measurements: the planner's estimates with measured times, its choices with the fastest ones.

Runs the real models and the zoo at 1 and 2 threads. An estimate is off if it is wrong by more than 4 times, for a step that takes
more than 1 % of the run and more than 20 us (median of 5 runs). A choice is wrong if another candidate that was offered for the
same step is more than 1.3 times faster, by the times that `select.strategy=profile` measures.
costs.txt lists the exceptions, each with a reason. Leave the machine alone meanwhile.

Exit codes: 0 no finding that is not listed; 1 otherwise; 77 something cannot be had (a skip).
"""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import rows
import runtimes

EXCEPTIONS = pathlib.Path(__file__).resolve().parent / "costs.txt"
SLOWER = 1.3
LEAST_SHARE, LEAST_US = 0.01, 20  # those of core/profile/summary.h, for choices too


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
    """{what is off: by how much}"""
    return {f"estimate {s['kernel']} {'+'.join(s['operators'])} of {s['label']}":
            f"{s['estimated_us']:.0f} us, took {s['call_median_us']:.0f} us"
            for s in steps_that_matter(profile) if s["estimate_off"]}


def choices(profile, measured_plan):
    """{what the heuristic chose and the strategy `profile` did not: their times}"""
    found = {}
    units = {tuple(unit["nodes"]): unit for unit in measured_plan["units"] if unit["nodes"]}
    for step in steps_that_matter(profile):
        unit = units.get(tuple(step["nodes"]))
        if not unit or unit["kernel"] == step["kernel"]:
            continue
        times = {a["id"]: a["measured_us"] for a in unit["alternatives"] if a["measured_us"] > 0}
        chosen, best = times.get(step["kernel"], 0), unit["measured_us"]
        if best > 0 and chosen > SLOWER * best:
            found[f"choice {step['kernel']} {'+'.join(step['operators'])} of {step['label']}, not {unit['kernel']}"] = (
                f"{chosen:.0f} us, {best:.0f} us")
    return found


class Costs:
    def __init__(self, args):
        self.mge = runtimes.Mge(args.build)
        self.threads, self.rounds = args.threads, args.rounds
        self.exceptions = exceptions()
        self.used = set()
        self.wrong = self.steps = 0

    def row(self, row):
        with row.ready(self.mge.command) as (model, inputs):
            self.check(row.name, model, inputs)

    def check(self, name, model, inputs):
        for threads in self.threads:
            findings, steps = self.findings(model, inputs, threads)
            self.steps += steps
            for _ in range(self.rounds - 1):  # what else the machine does is not found again
                if any(not self.reason(name, threads, what) for what in findings):
                    again, _ = self.findings(model, inputs, threads)
                    findings = {what: times for what, times in findings.items() if what in again}
            for what, times in findings.items():
                self.report(name, threads, what, times)

    def findings(self, model, inputs, threads):
        tail = [model, "--json", "--threads", threads, *runtimes.input_options(inputs)]
        profile = runtimes.run([self.mge.command, "profile", "--runs", 5, *tail]).report
        settings = {"MGE_SELECT_STRATEGY": "profile", "MGE_FASTRUN_CACHE_TYPE": "memory"}
        os.environ.update(settings)
        measured = runtimes.run([self.mge.command, "plan", "--why", *tail]).report
        for name in settings:
            del os.environ[name]
        return {**estimates(profile), **choices(profile, measured)}, len(steps_that_matter(profile))

    def reason(self, name, threads, what):
        """Why a finding is listed; empty if it is not."""
        for pattern, reason in self.exceptions:
            if pattern.search(f"{name}, {threads} threads: {what}"):
                self.used.add(pattern)
                return reason
        return ""

    def report(self, name, threads, what, times):
        reason = self.reason(name, threads, what)
        self.wrong += not reason
        print(f"{name}, {threads} threads: {what}: {times}" + (f" (listed: {reason})" if reason else ""), flush=True)

    def finish(self):
        print(f"{self.steps} steps that matter, {self.wrong} findings that are not listed; {len(self.used)} of "
              f"{len(self.exceptions)} exceptions met")
        return 1 if self.wrong else 0


def main():
    parser = rows.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often something must be found to count")
    args = parser.parse_args()
    try:
        chosen = rows.chosen(args)
    except rows.Unavailable as reason:
        print(f"skipped: {reason}")
        return 77
    costs = Costs(args)
    for row in chosen:
        costs.row(row)
    return costs.finish()


if __name__ == "__main__":
    sys.exit(main())
