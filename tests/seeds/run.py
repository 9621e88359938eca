# SPDX-License-Identifier: Apache-2.0
"""Checks from outside what each name of the seed pages does, and prints the table `name | verdict | what was seen`.

    /usr/bin/python3 tests/seeds/run.py --prefix build/release [--only REGEX]

It fails if a name of tests/core/env/seed_names.txt has no check, if a check fails, and if a check that gaps.txt lists passes.
"""
import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sdk" / "python")]

import ascend  # noqa: E402
import contexts  # noqa: E402
import megengine  # noqa: E402
import megengine_eager  # noqa: E402
import mxnet  # noqa: E402
import mxnet_execution  # noqa: E402
import mxnet_kvstore  # noqa: E402
from product import Product, Skip  # noqa: E402
from table import CHECKS, read_gaps  # noqa: E402

NAMES = HERE.parent / "core" / "env" / "seed_names.txt"
MODULES = (mxnet, mxnet_execution, mxnet_kvstore, contexts, megengine, megengine_eager, ascend)  # in the order of the table
WORKERS = 2


def names():
    return [line for line in NAMES.read_text().split("\n") if line and not line.startswith("#")]


def verdict_of(check, prefix, gaps):
    """Runs a check. Returns its verdict and what was seen, in one line."""
    gap = gaps.get(check.title)
    with tempfile.TemporaryDirectory(prefix="mge-seeds-") as folder:
        try:
            seen = check.run(Product(prefix, folder))
        except Skip as reason:
            return "skipped", str(reason)
        except Exception as error:  # of the check or of the product: both are a failure
            text = " ".join(f"{'' if isinstance(error, AssertionError) else type(error).__name__ + ': '}{error}".split())
            return ("gap", gap) if gap else ("FAILED", text)
    return ("FAILED", f"gaps.txt lists it, and it passes: {seen}") if gap else ("works", seen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, help="a built or an installed tree")
    parser.add_argument("--only", default="", help="a regular expression for the names of the checks")
    parser.add_argument("--times", action="store_true", help="also print the seconds of each check")
    options = parser.parse_args()
    if not (pathlib.Path(options.prefix) / "bin" / "mge").exists():
        parser.error(f"{options.prefix}/bin/mge does not exist; build it, or give another --prefix")
    gaps = read_gaps(HERE / "gaps.txt")
    titles = {check.title for check in CHECKS}
    bad = [f"{name} has no check" for name in names() if name not in {check.name for check in CHECKS}]
    bad += [f"gaps.txt: there is no check '{title}'" for title in gaps if title not in titles]
    counts = {}

    def run(check):
        begin = time.monotonic()
        return (*verdict_of(check, options.prefix, gaps), time.monotonic() - begin)

    chosen = [check for check in CHECKS if re.search(options.only, check.title)]
    print("name | verdict | what was seen\n--- | --- | ---")
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for check, (verdict, seen, seconds) in zip(chosen, pool.map(run, chosen)):
            print(f"{check.title} | {verdict} | {seen}" + (f" | {seconds:.1f} s" if options.times else ""), flush=True)
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == "FAILED":
                bad.append(f"{check.title}: {seen}")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())) or "no check has such a name")
    for line in bad:
        print(f"error: {line}", file=sys.stderr)
    return 1 if bad or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
