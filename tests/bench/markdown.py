# SPDX-License-Identifier: Apache-2.0
"""The result of bench.py (schema mge.peers/1) as a table in Markdown. `markdown.py FILE.json` prints that of a file."""
import datetime
import json
import sys

from table import us

NAMES = {"mge": "MGE", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def lines(report):
    """Yields the lines of the table: a model and a number of threads a row, with the time of each runtime and MGE's speed."""
    names = list(report["versions"])
    peers = [name for name in names if name != "mge"]
    heads = ["model", "threads"] + [NAMES.get(name, name) for name in names] + ["speed against " + NAMES.get(p, p) for p in peers]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in report["rows"]:
        times = [row["runtimes"].get(name, {}).get("min_us") for name in names]
        cells = [row["model"], str(row["threads"])] + [us(time) if time else "failed" for time in times]
        cells += [f"{row['speed'][peer]:.2f}" if peer in row["speed"] else "-" for peer in peers]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    for mean in report.get("geometric_means", []):
        models = f"{mean['rows']} {'real models' if mean['real'] else 'models of the zoo'}"
        yield (f"- {models}, {mean['threads']} thread{'s' if mean['threads'] > 1 else ''}, against "
               f"{NAMES.get(mean['peer'], mean['peer'])}: geometric mean {mean['speed']:.2f}, lowest {mean['least']:.2f}")
    versions = ", ".join(f"{NAMES.get(name, name)} {version}" for name, version in report["versions"].items())
    day = report.get("date", datetime.date.today().isoformat())
    yield ""
    yield f"Measured on {day} by `{report.get('command', 'packaging/bench.sh --markdown')}`; {report['processor']}; {versions}."


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print("\n".join(lines(json.load(file))))


if __name__ == "__main__":
    main()
