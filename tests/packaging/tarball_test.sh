#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the tarballs and uses them from a folder with a space in its name: the first one loads no library of the machine but
# the C library and runs a model; with the second one, gpu-report.sh tests and measures a virtual device.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v patchelf >/dev/null; then echo "skipped: patchelf is not installed"; exit 77; fi

"$root/packaging/tarball.sh" --no-install --output "$work/mge.tar.xz"
bytes=$(stat -c %s "$work/mge.tar.xz")
if ((bytes > 45 << 20)); then echo "FAILED: the tarball has $bytes bytes, more than 45 MiB"; exit 1; fi
mkdir "$work/some folder"
tar -C "$work/some folder" -xf "$work/mge.tar.xz"
cd "$work/some folder"/mge-*
clean=(env -i HOME="$work" PATH=/usr/bin:/bin)

bytes=$(stat -c %s lib/mge/plugins/mge_cuda.so 2>/dev/null || echo 0)
if ((bytes > 30 << 20)); then echo "FAILED: mge_cuda.so has $bytes bytes, more than 30 MiB"; exit 1; fi
# own FILE...: fails if the files load a library from outside of the folder.
own() {
  local foreign
  foreign=$("${clean[@]}" ldd "$@" |
    awk -v here="$PWD/" '$2 == "=>" && index($0, here) == 0 && $1 !~ /^lib(c|m|dl|rt|pthread)\.so/ { print $1, $3 }')
  if [[ -n $foreign ]]; then printf 'FAILED: libraries from outside:\n%s\n' "$foreign"; exit 1; fi
}
own bin/mge lib/mge/mge-conform lib/mge/mge-worker lib/libdnnl.so.* lib/mge/plugins/*.so
if [[ -e gpu-report.sh || -e share/mge/onnx ]]; then echo "FAILED: the first tarball has the tests of GPUs"; exit 1; fi
"${clean[@]}" bin/mge demo
"${clean[@]}" bin/mge doctor

tar -C .. -xf "$work/mge-gpu-tests.tar.xz"
own lib/mge/test/*
# A Python in which PyTorch seems to see the GPU.
cat >"$work/python" <<'PYTHON'
#!/bin/sh
case "$1" in *torch_peer.py) echo '{"schema": "mge.torch/1", "eager_us": 12.5, "compiled_us": 7.25}' ;; esac
PYTHON
chmod +x "$work/python"
"${clean[@]}" MGE_VIRTUAL_DEVICES=1 ./gpu-report.sh --device virtual0 --quick --python "$work/python" -o "$work/report"
grep -q -- '- kit: passed' "$work/report/report.md"
grep -q -- '- onnx: passed' "$work/report/report.md"
grep -q -- '- test_gpu: passed' "$work/report/report.md"
grep -q -- '- run_entry: passed' "$work/report/report.md"
grep -q '| 12.5 | - | 7.25 |' "$work/report/report.md"
python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == "mge.gpu-report/1" and report["tiny-ops-1-torch"]["eager_us"] == 12.5' "$work/report/report.json"
code=0; "${clean[@]}" ./gpu-report.sh --device gpu9 -o "$work/none" >"$work/none.log" 2>&1 || code=$?
if ((code != 5)); then echo "FAILED: exit code $code without the device"; cat "$work/none.log"; exit 1; fi
