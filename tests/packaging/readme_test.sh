#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme_test.sh BUILD_DIRECTORY: runs every `mge` command of the README in order, and its programs in C, C++ and Python.
# A line with the comment "an error" must fail and print a fix. Every other line must succeed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
export PATH=$build/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
ln -s "$root/packaging" packaging

count=0 failures=0
while IFS= read -r line; do
  count=$((count + 1))
  code=0
  bash -c "${line%%#*}" >out.txt 2>err.txt </dev/null || code=$?
  if [[ $line == *"# an error"* ]]; then
    grep -q '^  fix: ' err.txt && ((code != 0)) && continue
  else
    ((code != 0)) || continue
  fi
  printf 'FAILED (%s): %s\n' "$code" "$line"
  cat out.txt err.txt
  failures=$((failures + 1))
done < <(awk '/^```/ { inside = !inside; next } inside && /^(MGE_[A-Z_]+=[^ ]+ |cat [^ ]+ \| )?mge /' "$root/README.md")

# program LANGUAGE COMPILER...: compiles and runs the README's block of code in that language.
program() {
  count=$((count + 1))
  awk -v begin="\`\`\`$1" '$0 == begin { inside = 1; next } /^```/ { inside = 0 } inside' "$root/README.md" >"program.$1"
  if ! "${@:2}" -Wall -Werror "program.$1" -I"$root/sdk/include" -I"$build/sdk/include" -L"$build/lib" -lmge \
       -Wl,-rpath,"$build/lib" -o "program_$1" || ! "./program_$1" | grep -q '^probability of 0: 0\.'; then
    printf 'FAILED: the program in %s\n' "$1"
    failures=$((failures + 1))
  fi
}
program c cc -std=c99
program cpp c++ -std=c++17

if python3 -c 'import numpy' 2>/dev/null; then
  count=$((count + 1))
  awk '$0 == "```python" { inside = 1; next } /^```/ { if (inside) exit } inside' "$root/README.md" >program.py
  if ! PYTHONPATH=$root/sdk/python MGE_LIBRARY_PATH=$build/lib/libmge.so.0 python3 program.py | grep -q '^\[[0-9]'; then
    echo "FAILED: the program in Python"
    failures=$((failures + 1))
  fi
fi

echo "$count commands, $failures failures"
((count >= 8 && failures == 0))
