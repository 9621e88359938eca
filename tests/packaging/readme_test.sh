#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# readme_test.sh BUILD_DIRECTORY: runs every `mge` command of the README in order.
# A line with the comment "an error" must fail and print a fix. Every other line must succeed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export PATH=$1/bin:$PATH
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

echo "$count commands, $failures failures"
((count >= 8 && failures == 0))
