#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the archive of packaging/tarball.sh, unpacks it elsewhere, and writes the report of a GPU in software.
#   tarball_test.sh BUILD_TREE
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

[[ $build == "$root/build/release" ]] || { echo "skipped: the script packs build/release"; exit 0; }
"$root/packaging/tarball.sh" --no-build --output "$work/mge.tar.xz"
(($(stat -c %s "$work/mge.tar.xz") < 50 << 20)) || fail "the archive has more than 50 MiB"
mkdir "$work/else where"
tar -C "$work/else where" -xf "$work/mge.tar.xz"
cd "$work/else where/mge"

# No library comes from a package, except for the C library.
foreign=$(LD_LIBRARY_PATH=$PWD/lib/others ldd bin/mge lib/mge/mge-conform lib/mge/plugins/*.so lib/others/*.so.* |
  sed -n 's/.* => \(\/.*\) (0x.*/\1/p' | grep -vF "$PWD/" | sed 's/.*\///' | sort -u |
  grep -vE '^(libc|libm|libdl|librt|libpthread)\.so' || true)
[[ -z $foreign ]] || fail "libraries of this machine are used: $foreign"

./mge run share/mge/digits/digits.onnx --device cpu0 >/dev/null 2>&1 || fail "mge run"
code=0
./gpu-report.sh --device cuda7 >/dev/null 2>"$work/error" || code=$?
[[ $code == 5 ]] || fail "without a device the report ends with $code"
grep -q "device 'cuda7' cannot be used" "$work/error" || fail "the report does not say which device is missing"

export MGE_CUDA_DRIVER=$build/lib/mge/test/libcuda.so.1
./gpu-report.sh --models bert-tiny --batches 1 --seconds 0.1 --output "$work/report" || fail "gpu-report.sh"
grep -q "^Result: passed" "$work/report/gpu-report.md" || fail "the report"
grep -q '"schema": "mge.gpu_report/1"' "$work/report/gpu-report.json" || fail "the report as JSON"
