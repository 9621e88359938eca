#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures MGE beside ONNX Runtime and OpenVINO on this machine: the yardstick of every claim of speed.
set -euo pipefail
# shellcheck source=packaging/peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/peers.sh"

usage() {
  cat <<TEXT
usage: packaging/bench.sh [options]

Builds MGE, makes a Python environment with the peers of packaging/peers.txt, and runs the zoo and the real models of
tests/models/models.txt in each runtime at 1 and 2 threads, in interleaved rounds. Prints times, speeds as ratios, the time
from process start to the first result, peak memory, and the machine's measured roof. Leave the machine alone meanwhile.

  --quick           fewer and shorter rounds, and the zoo at batch 1 only
  --json            prints the result as JSON to stdout (schema mge.peers/1), and the tables to stderr
  --markdown        prints the result as a table for the README to stdout, and the tables to stderr
  --only TEXT       only the rows with TEXT in their names
  --build FOLDER    use what is built there (default: build the preset \`release\`)
  --cache FOLDER    where the models and the Python environment are kept (default: $peers_cache)
  --python FILE     a Python with the packages of packaging/peers.txt (default: an environment in the cache)
  --no-install      install no packages of Debian; take what is there
  -j, --jobs N      compilers at a time (default: one a core, less where memory is short)
  -h, --help        this text

Exit codes: 0 all well; 1 a build failed, or MGE failed to run a model; 2 usage; 5 something is missing and cannot be installed.
TEXT
}

folder='' options=()
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --quick|--json|--markdown) options+=("$1") ;;
    --only) value=$(value_of "$@"); options+=("$1" "$value"); shift ;;
    --build) folder=$(value_of "$@"); shift ;;
    --cache) peers_cache=$(value_of "$@"); shift ;;
    --python) peers_python=$(value_of "$@"); shift ;;
    --no-install) install_packages=no ;;
    -j|--jobs) jobs=$(value_of "$@"); shift ;;
    --jobs=*) jobs=${1#*=} ;;
    *) fail 2 "unknown argument $1" "see packaging/bench.sh --help" ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"

folder=$(peers_build "$folder" bench_peer bench_roof)
peers_environment || fail 5 "$peers_reason" "fix: make a network reachable, or name a Python that has the packages with --python"
export PYTHONDONTWRITEBYTECODE=1
exec "$peers_python" "$root/tests/bench/bench.py" "$folder" "$peers_cache" "${options[@]}"
