#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the tarball and uses it from a folder with a space in its name: it loads no library of the machine but the C
# library, runs a model, and gpu-report.sh tests and measures a virtual device.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v patchelf >/dev/null; then echo "skipped: patchelf is not installed"; exit 77; fi

"$root/packaging/tarball.sh" --no-install --output "$work/mge.tar.xz"
bytes=$(stat -c %s "$work/mge.tar.xz")
if ((bytes > 50 << 20)); then echo "FAILED: the tarball has $bytes bytes, more than 50 MiB"; exit 1; fi
mkdir "$work/some folder"
tar -C "$work/some folder" -xf "$work/mge.tar.xz"
cd "$work/some folder"/mge-*
clean=(env -i HOME="$work" PATH=/usr/bin:/bin)

bytes=$(stat -c %s lib/mge/plugins/mge_cuda.so 2>/dev/null || echo 0)
if ((bytes > 30 << 20)); then echo "FAILED: mge_cuda.so has $bytes bytes, more than 30 MiB"; exit 1; fi
foreign=$("${clean[@]}" ldd bin/mge lib/mge/mge-conform lib/mge/mge-worker lib/mge/test/* lib/libdnnl.so.* lib/mge/plugins/*.so |
  awk -v here="$PWD/" '$2 == "=>" && index($0, here) == 0 && $1 !~ /^lib(c|m|dl|rt|pthread)\.so/ { print $1, $3 }')
if [[ -n $foreign ]]; then printf 'FAILED: libraries from outside:\n%s\n' "$foreign"; exit 1; fi
"${clean[@]}" bin/mge demo
"${clean[@]}" bin/mge doctor
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
