# SPDX-License-Identifier: Apache-2.0
"""Measures speed, start time and memory of MGE, ONNX Runtime and OpenVINO on the same models, and the machine's limits.

Every runtime is called through its C interface in a separate process, so no row contains the cost of Python.
"""
import datetime
import json
import pathlib
import platform
import shlex
import subprocess
import sys

import markdown
import rows
import runtimes
from table import Table, geometric_mean, mib, us


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


class Bench:
    def __init__(self, args, out):
        self.args, self.out = args, out
        self.runtimes = [runtimes.Mge(args.build), runtimes.onnxruntime(args.build), runtimes.openvino(args.build)]
        self.peers = [runtime.name for runtime in self.runtimes[1:]]
        self.failures = {}  # (model, runtime) -> the first error
        roof = subprocess.run([args.build / "tests" / "bench_roof", *map(str, args.threads)], check=True, capture_output=True)
        command = shlex.join(["packaging/bench.sh"] + sys.argv[3:])  # after the two folders, which packaging/bench.sh adds
        self.report = {"schema": "mge.peers/1", "date": datetime.date.today().isoformat(), "command": command,
                       "processor": processor(), "roof": json.loads(roof.stdout), "rounds": args.rounds,
                       "seconds": args.seconds, "versions": {r.name: r.version() for r in self.runtimes}, "rows": [], "starts": []}

    def head(self):
        print(self.report["processor"] + "; " + ", ".join(f"{k} {v}" for k, v in self.report["versions"].items()), file=self.out)
        for roof in self.report["roof"]:
            print(f"roof, {roof['threads']} threads: {roof['gflops']:.0f} GFLOP/s in float32, {roof['read_gb_per_s']:.1f} GB/s read "
                  f"from memory", file=self.out)

    def speeds(self, chosen):
        print(f"\nOne run: least and median of {self.args.rounds} rounds; speed: the peer's least time over MGE's", file=self.out)
        columns = [("MODEL", -18), ("THREADS", 7)]
        for name in ["mge"] + self.peers:
            columns += [(name.upper(), 11), ("MEDIAN", 8)]
        table = Table(columns + [("VS " + name.upper(), 14) for name in self.peers], self.out)
        for row in chosen:
            with row.ready(self.runtimes[0].command) as (model, inputs):
                for threads in self.args.threads:
                    found = runtimes.interleaved(self.runtimes, self.args.rounds,
                                                 lambda runtime: runtime.bench(model, inputs, threads, self.args.seconds))
                    self.add_speed(table, row, threads, found)

    def add_speed(self, table, row, threads, found):
        entry = {"model": row.name, "real": row.real, "threads": threads, "runtimes": {}, "speed": {}}
        cells = [row.name, threads]
        for name, outcomes in found.items():
            if isinstance(outcomes, runtimes.Failed):
                entry["runtimes"][name] = {"failed": str(outcomes)}
                self.failures.setdefault((row.name, name), str(outcomes))
                cells += ["failed", "-"]
                continue
            least, median = runtimes.latency(outcomes)
            entry["runtimes"][name] = {"min_us": least, "median_us": median, "peak_rss_bytes": runtimes.peak_bytes(outcomes)}
            cells += [us(least), us(median)]
        for name in self.peers:
            both = [entry["runtimes"][n].get("min_us") for n in (name, "mge")]
            if all(both):
                entry["speed"][name] = both[0] / both[1]
            cells.append(f"{entry['speed'][name]:.2f}" if name in entry["speed"] else "-")
        table.row(cells)
        self.report["rows"].append(entry)

    def means(self):
        print(file=self.out)
        self.report["geometric_means"] = []
        for real in (True, False):
            for threads in self.args.threads:
                for name in self.peers:
                    speeds = [r["speed"][name] for r in self.report["rows"]
                              if r["real"] == real and r["threads"] == threads and name in r["speed"]]
                    if not speeds:
                        continue
                    mean = {"real": real, "threads": threads, "peer": name, "rows": len(speeds), "speed": geometric_mean(speeds),
                            "least": min(speeds)}
                    self.report["geometric_means"].append(mean)
                    print(f"geometric mean of {len(speeds)} {'real models' if real else 'rows of the zoo'}, {threads} threads, "
                          f"against {name}: {mean['speed']:.2f}; least {mean['least']:.2f}", file=self.out)

    def starts(self, chosen):
        threads = max(self.args.threads)
        print(f"\nStart of the process to the first result, {threads} threads: least of {self.args.rounds} rounds; and peak memory of "
              f"the runs above", file=self.out)
        columns = [("MODEL", -18)] + [(r.name.upper(), 11) for r in self.runtimes] + [("MGE/ORT", 8)]
        table = Table(columns + [(r.name.upper(), 11) for r in self.runtimes], self.out)
        for row in chosen:
            with row.ready(self.runtimes[0].command) as (model, inputs):
                found = runtimes.interleaved(self.runtimes, self.args.rounds, lambda r: r.first(model, inputs, threads))
            entry = {"model": row.name, "real": row.real, "threads": threads, "runtimes": {}}
            for name, outcomes in found.items():
                if isinstance(outcomes, runtimes.Failed):
                    entry["runtimes"][name] = {"failed": str(outcomes)}
                    self.failures.setdefault((row.name, name), str(outcomes))
                else:
                    entry["runtimes"][name] = {"first_result_ms": min(o.first_ms for o in outcomes)}
            firsts = {name: values.get("first_result_ms") for name, values in entry["runtimes"].items()}
            if firsts["mge"] and firsts["onnxruntime"]:
                entry["ratio"] = firsts["mge"] / firsts["onnxruntime"]
            self.report["starts"].append(entry)
            table.row([row.name] + [us(f * 1000) if f else "failed" for f in firsts.values()] +
                      [f"{entry['ratio']:.2f}" if "ratio" in entry else "-"] +
                      [mib(peak) if peak else "-" for peak in self.peaks(row.name, threads)])

    def finish(self):
        """Prints the failures. Returns 1 if MGE failed; a peer may refuse a model."""
        for (model, name), text in self.failures.items():
            print(f"FAILED: {model} in {name}: {text}", file=sys.stderr)
        return 1 if any(name == "mge" for _, name in self.failures) else 0

    def peaks(self, model, threads):
        for row in self.report["rows"]:
            if (row["model"], row["threads"]) == (model, threads):
                return [values.get("peak_rss_bytes") for values in row["runtimes"].values()]


def main():
    parser = rows.parser(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    args.rounds, args.seconds = (2, 0.3) if args.quick else (5, 1.0)
    out = sys.stderr if args.json or args.markdown else sys.stdout
    try:
        chosen = rows.chosen(args)
        bench = Bench(args, out)
    except rows.Unavailable as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 5
    chosen = [row for row in chosen if not args.quick or row.batch == 1]
    bench.head()
    bench.speeds(chosen)
    bench.means()
    bench.starts(chosen)
    if args.json:
        json.dump(bench.report, sys.stdout, indent=2)
        print()
    if args.markdown:
        print("\n".join(markdown.lines(bench.report)))
    return bench.finish()


if __name__ == "__main__":
    sys.exit(main())
