#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the scripts of packaging/ and tests/models/run.sh: options, missing packages, missing root privileges, missing
# apt, and the counting of results. Fake commands replace apt-get and others; nothing is installed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect WHAT EXPECTED ACTUAL
expect() {
  if [[ $2 != "$3" ]]; then
    printf 'FAILED: %s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

# contains WHAT PART TEXT
contains() {
  if [[ $3 != *"$2"* ]]; then
    printf 'FAILED: %s\n  wanted in it: %s\n  got: %s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
  fi
}

# run COMMAND...: stores the exit code in $code and the output in $text.
run() { code=0; text=$("$@" 2>&1 </dev/null) || code=$?; }

# fake NAME [LINE...]: creates a command in front of PATH that writes its arguments to $work/calls and runs the LINEs.
fake() {
  { echo "#!$BASH"; echo "echo \"$1 \$*\" >>'$work/calls'"; printf '%s\n' "${@:2}"; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

fresh() {
  rm -rf "${work:?}/bin" "$work/calls"
  mkdir -p "$work/bin"
  touch "$work/calls"
  local tool
  for tool in awk bash cat dirname env nproc sed; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
}

# in_common SCRIPT: runs SCRIPT after common.sh, with only the fake commands in PATH.
in_common() { run env -i PATH="$work/bin" "$BASH" -c "set -euo pipefail; source '$root/packaging/common.sh'; $1"; }

for script in run.sh test.sh tarball.sh wheel.sh deb.sh; do
  run "$root/packaging/$script" --help
  expect "$script --help" 0 "$code"
  contains "$script --help" "usage: packaging/$script" "$text"
  for bad in "--bogus" "--jobs=0" "--jobs" "-j x"; do
    # shellcheck disable=SC2086  # an option and its value
    run "$root/packaging/$script" $bad
    expect "$script $bad" 2 "$code"
    contains "$script $bad" "error: " "$text"
  done
done

run "$root/packaging/gpu-report.sh" --help
expect "gpu-report.sh --help" 0 "$code"
contains "gpu-report.sh --help" "usage: gpu-report.sh" "$text"
run "$root/packaging/gpu-report.sh" --bogus
expect "gpu-report.sh --bogus" 2 "$code"
contains "gpu-report.sh --bogus" "error: " "$text"

run "$root/packaging/gpu-report.sh"
expect "gpu-report.sh without MGE" 5 "$code"
contains "gpu-report.sh without MGE" "error: there is no $root/packaging/bin/mge; unpack the tests where" "$text"

for script in packaging/bench.sh tests/models/run.sh; do
  run "$root/$script" --help
  expect "$script --help" 0 "$code"
  contains "$script --help" "usage: $script" "$text"
  for bad in "--bogus" "--only" "--cache" "--build"; do
    run "$root/$script" "$bad"
    expect "$script $bad" 2 "$code"
    contains "$script $bad" "error: " "$text"
  done
done

# The Python environment of the other runtimes is created once. If that fails, the models are skipped and the benchmark
# fails, both with the reason.
fresh
for tool in cut flock ln mkdir rm sha256sum tail touch; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
fake python3 'echo "no network at all"; exit 1'
offline() { run env -i PATH="$work/bin" HOME="$work" "$BASH" "$root/$1" --build "$work" --cache "$work/cache"; }
for script in packaging/bench.sh tests/models/run.sh; do
  offline "$script"
  expect "$script --build without the programs" 1 "$code"
  contains "$script --build without the programs" "ninja -C $work bench_" "$text"
done
mkdir -p "$work/tests"
cp "$work/bin/python3" "$work/tests/bench_peer"
cp "$work/bin/python3" "$work/tests/bench_roof"
offline tests/models/run.sh
expect "models without peers" 77 "$code"
contains "models without peers: the reason" "skipped: the packages of packaging/peers.txt cannot be installed: no network at all" "$text"
offline packaging/bench.sh
expect "bench.sh without peers" 5 "$code"
contains "bench.sh without peers: the reason" "no network at all" "$text"
contains "bench.sh without peers: what to do" "--python" "$text"
# shellcheck disable=SC2016  # expanded by the fake command
fake python3 'mkdir -p "$3/bin"; ln -s "'"$work"'/bin/environment" "$3/bin/python"'
fake environment
offline tests/models/run.sh
expect "models with peers" 0 "$code"
contains "models with peers: checked" "tests/models/check.py $work $work/cache" "$(tail -n 1 "$work/calls")"
offline packaging/bench.sh
expect "bench.sh with peers" 0 "$code"
contains "bench.sh with peers: measured" "tests/bench/bench.py $work $work/cache" "$(tail -n 1 "$work/calls")"
expect "the environment is made once" 1 "$(grep -c 'environment -m pip install' "$work/calls")"

fresh
in_common 'packages build'
expect "packages build" 0 "$code"
contains "packages build" "cmake" "$text"
expect "no comments, no groups among the packages" "" "$(grep -E '[][# ]' <<<"$text" || true)"
in_common 'packages nonsense'
expect "an unknown group" 1 "$code"

# Everything is installed: neither apt-get nor sudo is called.
fresh
fake dpkg-query 'printf installed'
fake apt-get 'exit 1'
in_common 'ensure_packages build test'
expect "all installed" 0 "$code"
expect "all installed: silent" "" "$text"
expect "all installed: apt-get is left alone" "" "$(grep apt-get "$work/calls" || true)"

# Not Debian.
fresh
in_common 'ensure_packages build'
expect "no apt" 5 "$code"
contains "no apt: names the packages" "libabsl-dev" "$text"
contains "no apt: says what to do" "--no-install" "$text"
in_common 'install_packages=no; ensure_packages build'
expect "--no-install" 0 "$code"

# A package is missing: the script calls apt-get as root, uses sudo otherwise, and prints the command if there is no sudo.
fresh
# shellcheck disable=SC2016  # expanded by the fake command
fake dpkg-query '[[ ${!#} == cmake ]] && exit 1; printf installed'
fake apt-get
in_common 'ensure_packages build'
if ((EUID == 0)); then
  expect "root: installs" 0 "$code"
  contains "root: what is missing only" "install --yes --no-install-recommends cmake" "$(tail -n 1 "$work/calls")"
  expect "root: no update where the lists do" "" "$(grep update "$work/calls" || true)"
  fake apt-get "[[ \$* != *update* ]] || touch '$work/updated'" "[[ -f $work/updated ]]"
  ln -s "$(command -v touch)" "$work/bin/touch"
  in_common 'ensure_packages build'
  expect "root: old lists are fetched again" 0 "$code"
  fake apt-get 'exit 100'
  in_common 'ensure_packages build'
  expect "root: no network" 5 "$code"
  contains "root: no network: says what to do" "apt-get install --no-install-recommends cmake" "$text"
else
  expect "user: no sudo" 5 "$code"
  contains "user: the command for root" "apt-get install --no-install-recommends cmake" "$text"
  # shellcheck disable=SC2016
  fake sudo 'exec "${@:2}"'
  in_common 'ensure_packages build'
  expect "user: with sudo" 0 "$code"
fi

# Results: one binary with a failure and a skip, one that died in its third case, one script, one that did not run.
results=$work/results
mkdir -p "$results"
cat >"$results/ctest.xml" <<XML
<testsuite name="x" tests="5">
	<testcase name="core/base" classname="core/base" time="0.1" status="fail">
	<testcase name="core/plan" classname="core/plan" time="0.1" status="fail">
		<failure message=""/>
		<system-out>[ RUN      ] P.a
plan_test.cc:7: Failure
[  FAILED  ] P.a (0 ms)
[ RUN      ] P.b
quiet
[       OK ] P.b (0 ms)
[ RUN      ] P.c
terminate called: &lt;x&gt; &amp;&amp; &quot;y&quot;
</system-out>
	</testcase>
	<testcase name="core/ops" classname="core/ops" time="0.1" status="run"/>
	<testcase name="packaging/scripts" classname="x" time="0.1" status="run"/>
	<testcase name="gpu" classname="x" time="0.1" status="notrun"/>
	<testcase name="cli/help" classname="x" time="0.1" status="fail">
		<failure message=""/>
		<system-out>$(seq -f 'line %g' 20)</system-out>
	</testcase>
</testsuite>
XML
cat >"$results/test_core_base.xml" <<'XML'
<testsuites tests="4" failures="1" disabled="1" errors="0" time="0." name="AllTests">
  <testsuite name="A" tests="4" failures="1" disabled="1" skipped="1" errors="0">
    <testcase name="a" status="run" result="completed" />
    <testcase name="b/0" value_param="&quot;v&quot;" status="run" result="completed" time="0." classname="A">
      <failure message="base_test.cc:12&#x0A;wanted: &lt;x &amp; y&gt;" type=""><![CDATA[base_test.cc:12
wanted: <x & y>]]></failure>
      <failure message="base_test.cc:13&#x0A;second" type=""><![CDATA[base_test.cc:13
second]]></failure>
    </testcase>
    <testcase name="c" status="run" result="skipped">
      <skipped message="no GPU"/>
    </testcase>
    <testcase name="DISABLED_d" status="notrun" result="suppressed" />
  </testsuite>
</testsuites>
XML
for name in test_core_ops test_core_ops_1; do
  printf '<testsuites tests="2" failures="0" disabled="0" errors="0">\n<testcase name="x"/>\n<testcase name="y"/>\n' \
    >"$results/$name.xml"
done
run bash -c "set -euo pipefail; source '$root/packaging/common.sh'; count_results '$results' release
             echo \$passed \$failed \$skipped; printf '%s' \"\$failures\""
expect "results" "6 3 3" "$(head -n 1 <<<"$text")"
expect "each failed case, with the start of its message or the end of its output" 'failed: core/base A.b/0 (release)
    base_test.cc:12
    wanted: <x & y>
    base_test.cc:13
    second
failed: core/plan P.a (release)
    plan_test.cc:7: Failure
failed: core/plan P.c (release)
    terminate called: <x> && "y"
failed: cli/help (release)
'"$(seq -f '    line %g' 6 20)" "$(tail -n +2 <<<"$text")"

# test.sh as a whole, in a temporary tree, with a fake ctest that runs the script $work/outcome.
fresh
tree=$work/tree
mkdir -p "$tree/packaging"
cp "$root"/packaging/{common.sh,failed_cases.awk,test.sh,dependencies.txt} "$tree/packaging/"
for tool in grep mkdir rm; do ln -s "$(command -v "$tool")" "$work/bin/$tool"; done
fake dpkg-query 'printf installed'
fake apt-get 'exit 1'
fake cmake
# shellcheck disable=SC2016
fake ctest 'while (($#)); do [[ $1 == --output-junit ]] && out=$2; shift; done' \
  "source '$work/outcome'"
whole() { run env -i PATH="$work/bin" "$BASH" "$tree/packaging/test.sh" --jobs 2 "$@"; }

# shellcheck disable=SC2016
printf '%s\n' 'echo "<testcase name=\"a\" x=\"\" status=\"run\">" >"$out"' >"$work/outcome"
whole
expect "test.sh, all well" 0 "$code"
expect "test.sh: the last line" "1 passed, 0 failed, 0 skipped" "$(tail -n 1 <<<"$text")"
expect "test.sh: long forms are left out" 1 "$(grep -c 'ctest .*--label-exclude ^long\$' "$work/calls")"
whole --sanitize
expect "test.sh: both presets count" "2 passed, 0 failed, 0 skipped" "$(tail -n 1 <<<"$text")"
: >"$work/calls"
whole --full
expect "test.sh --full: all presets count" "4 passed, 0 failed, 0 skipped" "$(tail -n 1 <<<"$text")"
expect "test.sh --full: long forms run" "" "$(grep label-exclude "$work/calls" || true)"
expect "test.sh --full: what the real models need is installed" 1 "$(grep -c 'dpkg-query .* python3-venv$' "$work/calls")"

# shellcheck disable=SC2016
printf '%s\n' "cp '$results/ctest.xml' \"\$out\"" 'exit 8' >"$work/outcome"
ln -s "$(command -v cp)" "$work/bin/cp"
whole
expect "test.sh: failed tests" 1 "$code"
expect "test.sh: the failed cases are above the last line" '    line 20
2 passed, 3 failed, 1 skipped' "$(tail -n 2 <<<"$text")"

# shellcheck disable=SC2016
printf '%s\n' 'echo "<testcase name=\"a\" x=\"\" status=\"notrun\">" >"$out"' \
  'echo "<system-out>Unable to find executable: test_a</system-out>" >>"$out"' 'exit 8' >"$work/outcome"
whole
contains "test.sh: a binary that is missing is named" 'failed: ctest (release)
    exit code 8, but no test in its report failed
    Unable to find executable: test_a
0 passed' "$text"
expect "test.sh: a binary that is missing fails" 1 "$code"
expect "test.sh: a binary that is missing counts" "0 passed, 1 failed, 1 skipped" "$(tail -n 1 <<<"$text")"
: >"$work/outcome"
whole
expect "test.sh: no results at all" 1 "$code"

if command -v shellcheck >/dev/null; then
  run shellcheck -x -P "$root" "$root"/packaging/*.sh "$root"/.ci/run "$root"/tests/packaging/*.sh
  expect "shellcheck" "" "$text"
fi

echo "$failures failures"
((failures == 0))
