# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What run.sh and test.sh share: messages, the packages of dependencies.txt, configuring and building a preset.

# Exit codes of the scripts, as those of `mge`: 1 a build or test failed, 2 usage, 5 something is missing.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
install_packages=yes
jobs=

# Paths below the tree are hashed as relative ones, so that a second clone or worktree finds what the first has compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

if [[ -t 2 && -z ${NO_COLOR:-} ]]; then bold=$'\e[1m' plain=$'\e[0m'; else bold='' plain=''; fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*" >&2; }

# fail CODE TITLE [LINE...]
fail() {
  local code=$1
  printf '%serror:%s %s\n' "$bold" "$plain" "$2" >&2
  shift 2
  if (($#)); then printf '  %s\n' "$@" >&2; fi
  exit "$code"
}

# packages GROUP...: the names in dependencies.txt, one a line.
packages() {
  local group
  for group in "$@"; do
    awk -v want="[$group]" '
      { sub(/#.*/, ""); $1 = $1 }
      /^\[/ { found = found || $0 == want; inside = $0 == want; next }
      inside && NF { print $1 }
      END { exit !found }' "$root/packaging/dependencies.txt" ||
      fail 1 "packaging/dependencies.txt has no group [$group]"
  done
}

# missing NAME...: those that dpkg does not know as installed. Needs neither root nor network.
missing() {
  local name state
  for name in "$@"; do
    state=$(dpkg-query --show --showformat '${db:Status-Status}' "$name" 2>/dev/null) || state=
    [[ $state == installed* ]] || echo "$name"
  done
}

# ensure_packages GROUP...: installs what is missing; says what to do where that is not possible.
ensure_packages() {
  [[ $install_packages == yes ]] || return 0
  local wanted absent run=() command
  wanted=$(packages "$@")
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail 5 "this is not a Debian system: packages cannot be installed here" \
      "needed:" "${wanted//$'\n'/ }" \
      "fix: install the like of these by other means, then run the same command with --no-install"
  fi
  # shellcheck disable=SC2086  # names hold no blanks
  absent=$(missing $wanted)
  [[ -n $absent ]] || return 0
  absent=${absent//$'\n'/ }
  command="apt-get update && apt-get install --no-install-recommends $absent"

  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      fail 5 "packages are missing, and installing them needs root" "fix: as root, run" "  $command"
    fi
    run=(sudo)
    if [[ ! -t 0 ]]; then run+=(-n); fi
  fi
  run+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  say "installing: $absent"
  # Package lists are fetched only where the ones at hand do not do.
  # shellcheck disable=SC2086
  if ! "${run[@]}" install --yes --no-install-recommends $absent >/dev/null 2>&1; then
    if ! "${run[@]}" update >&2 ||
       ! "${run[@]}" install --yes --no-install-recommends $absent >&2; then
      fail 5 "packages could not be installed; the reason is above" "fix: as root, run" "  $command"
    fi
  fi
}

# How many compilers to run at a time: one a core, and 1.5 GiB of memory for each.
default_jobs() {
  local cores memory
  cores=$(nproc)
  # Where /proc is not to be seen, the cores decide.
  memory=$(awk '/^MemAvailable:/ { print int($2 / (1536 * 1024)) }' /proc/meminfo 2>/dev/null) || memory=
  if ((${memory:-cores} < cores)); then cores=$memory; fi
  echo $((cores > 0 ? cores : 1))
}

# configure PRESET [CMAKE OPTION...]: quiet unless it fails; says which backends are built.
configure() {
  local preset=$1 log=$root/build/$1/configure.log
  shift
  mkdir -p "${log%/*}"
  # A tree that was moved or copied has a cache that points elsewhere.
  if [[ -f $root/build/$preset/CMakeCache.txt ]] &&
     ! grep -qx "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$root/build/$preset/CMakeCache.txt"; then
    rm -rf "$root/build/$preset/CMakeCache.txt" "$root/build/$preset/CMakeFiles"
  fi
  if ! (cd "$root" && cmake --preset "$preset" "$@") >"$log" 2>&1; then
    cat "$log" >&2
    fail 1 "cmake could not configure the preset '$preset'" "log: $log"
  fi
  sed -n 's/^-- \(backend .*\)/    \1/p' "$log" >&2
}

# build PRESET [TARGET...]: ninja's progress goes to the terminal.
build() {
  local preset=$1 target options=()
  shift
  for target in "$@"; do options+=(--target "$target"); done
  say "building $preset"
  cmake --build "$root/build/$preset" --parallel "$jobs" "${options[@]}" >&2 ||
    fail 1 "the build of the preset '$preset' failed; the compiler's message is above"
}

# value_of OPTION VALUE...: the value; a usage error where there is none.
value_of() {
  if (($# < 2)) || [[ -z $2 ]]; then fail 2 "$1 needs a value" "see --help"; fi
  echo "$2"
}

positive() { [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || fail 2 "$1 must be a whole number from 1 to 9999, not '$2'"; }

# The results so far. failures describes the failed cases; each line of it ends with a newline.
passed=0 failed=0 skipped=0 failures=

# add_failures TEST PRESET REPORT: adds the failed cases of the test in that report to $failures.
add_failures() {
  local text
  text=$(awk -v test="$1" -v preset="$2" -f "$root/packaging/failed_cases.awk" "$3")
  failures+=${text:+$text$'\n'}
}

# count_results DIRECTORY PRESET: adds the results that ctest and GoogleTest left in the directory.
# A test that died counts as one failure, however many cases it had passed.
count_results() {
  local name status xml cases bad idle found
  while IFS=$'\t' read -r name status; do
    cases=0 bad=0 idle=0 found=no
    for xml in "$1/test_${name//\//_}.xml" "$1/test_${name//\//_}"_[0-9]*.xml; do
      [[ -f $xml ]] || continue
      found=yes
      cases=$((cases + $(grep -c '<testcase ' "$xml" || true)))
      bad=$((bad + $(sed -n 's/^<testsuites .* failures="\([0-9]*\)".*/\1/p' "$xml")))
      idle=$((idle + $(grep -cE '<skipped |status="notrun"' "$xml" || true)))
      add_failures "$name" "$2" "$xml"
    done
    if [[ $status == fail ]] && ((bad == 0)); then add_failures "$name" "$2" "$1/ctest.xml"; fi
    if [[ $found == no ]]; then
      case $status in
        run) passed=$((passed + 1)) ;;
        disabled|notrun) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
      esac
    else
      if [[ $status == fail ]] && ((bad == 0)); then bad=1 cases=$((cases + 1)); fi
      passed=$((passed + cases - bad - idle)) failed=$((failed + bad)) skipped=$((skipped + idle))
    fi
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([^"]*\)".*/\1\t\2/p' "$1/ctest.xml")
}
