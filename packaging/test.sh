#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the tests. The output ends with the failed cases and their messages. The last line is
# "N passed, N failed, N skipped" over everything that ran.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/test.sh [options]

Installs the missing packages of packaging/dependencies.txt, builds, and runs the tests:

  (default)      every test of the preset `release`; under 30 minutes on two cores, from nothing
  --sanitize     the same, then the unit tests of core/ with address and undefined-behaviour sanitizers (preset `asan`)
  --full         all tests of `release`, `minimal`, `asan` and `tsan`, and the long forms (label `long`), which
                 download the models of tests/models once

  --only REGEX   only the tests whose names match, in each preset
  --no-install   install nothing; take what is there
  -j, --jobs N   compilers and tests at a time (default: one a core, less where memory is short)
  -h, --help     this text

A test is a case of GoogleTest, or one entry of ctest where that is something else. Failed ones are listed at the end
with the first lines of their messages. Results as XML are left in build/PRESET/results. Tests that need what is not
here (a GPU, extra data) skip and say why.
Exit codes: 0 all well; 1 a build or a test failed; 2 usage; 5 packages are missing and cannot be installed.
TEXT
}

mode=default
only=
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --sanitize) mode=sanitize ;;
    --full) mode=full ;;
    --only) only=$(value_of "$@"); shift ;;
    --no-install) install_packages=no ;;
    -j|--jobs) jobs=$(value_of "$@"); shift ;;
    --jobs=*) jobs=${1#*=} ;;
    *) fail 2 "unknown argument $1" "see packaging/test.sh --help" ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"

# run_tests PRESET [CTEST OPTION...]
run_tests() {
  local preset=$1 results=$root/build/$1/results options=(--timeout 900) before=$failed code=0
  shift
  if [[ $mode != full ]]; then options+=(--label-exclude '^long$'); fi
  if [[ -n $only ]]; then options+=(--tests-regex "$only"); fi
  rm -rf "$results"
  mkdir -p "$results"
  say "testing $preset"
  GTEST_OUTPUT="xml:$results/" ctest --test-dir "$root/build/$preset" --parallel "$jobs" --output-on-failure \
    --output-junit "$results/ctest.xml" --test-output-truncation middle "${options[@]}" "$@" || code=$?
  [[ -f $results/ctest.xml ]] || fail 1 "ctest could not run the tests of the preset '$preset'"
  count_results "$results" "$preset"
  # What ctest holds against us and its report does not show, such as a binary that is not there.
  if ((code != 0 && failed == before)); then
    failed=$((failed + 1))
    failures+="failed: ctest ($preset)"$'\n'"    exit code $code, but no test in its report failed"$'\n'
    failures+=$(sed -n 's/.*<system-out>\(Unable to find [^<]*\).*/    \1/p' "$results/ctest.xml")$'\n'
  fi
}

groups=(build test)
if [[ $mode == full ]]; then groups+=(bench jit); fi
ensure_packages "${groups[@]}"
configure release -DMGE_TESTS=ON
build release
run_tests release

if [[ $mode == sanitize ]]; then
  configure asan -DMGE_TESTS=ON
  build asan core_tests
  run_tests asan --label-regex '^core$'
fi
if [[ $mode == full ]]; then
  for preset in minimal asan tsan; do
    configure "$preset" -DMGE_TESTS=ON
    build "$preset"
    run_tests "$preset"
  done
fi

printf '%s' "$failures"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
