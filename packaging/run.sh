#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a model that runs: installs what is missing, builds, runs `mge demo`.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/run.sh [options] [MGE ARGUMENT...]

Installs the missing packages of packaging/dependencies.txt, builds the preset `release` into build/release, and
runs `build/release/bin/mge demo`: a small network reads handwritten digits on the best device found.
Arguments that follow are given to `mge` instead of `demo`, for example: packaging/run.sh devices

  --no-install   install nothing; take what is there
  --build-only   build, run nothing
  -j, --jobs N   compilers at a time (default: one a core, less where memory is short)
  -h, --help     this text

Exit codes: 0 all well; 1 the build failed; 2 usage; 5 packages are missing and cannot be installed; else mge's own.
TEXT
}

build_only=no
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --no-install) install_packages=no ;;
    --build-only) build_only=yes ;;
    -j|--jobs) jobs=$(value_of "$@"); shift ;;
    --jobs=*) jobs=${1#*=} ;;
    --) shift; break ;;
    -*) fail 2 "unknown option $1" "see packaging/run.sh --help" ;;
    *) break ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"

ensure_packages build
# Tests need more packages; a tree that was configured with them by test.sh keeps them.
if [[ -f $root/build/release/CMakeCache.txt ]]; then configure release; else configure release -DMGE_TESTS=OFF; fi
build release product
if [[ $build_only == yes ]]; then exit 0; fi
if ((!$#)); then set -- demo; fi
exec "$root/build/release/bin/mge" "$@"
