#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu_report_test.sh BUILD_DIRECTORY DEVICE: installs MGE into a folder with a space in its name, and runs gpu-report.sh there.
# DEVICE is that of the machine (skips if there is none), or "software": a driver in software, for which the script's every
# step must work, too.
set -euo pipefail
build=$1 device=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }
if ! cases=$(dpkg -L libonnx-testdata 2>/dev/null | awk '/\/data\/node$/'); then echo "skipped: no libonnx-testdata"; exit 77; fi

tree="$work/some folder"
cmake --install "$build" --prefix "$tree" >"$work/install.log" || { cat "$work/install.log"; fail "cmake --install"; }
install -D "$root/packaging/gpu-report.sh" "$tree/gpu-report.sh"
install -D "$root/tests/bench/torch_peer.py" "$tree/share/mge/bench/torch_peer.py"
install -D -t "$tree/lib/mge/test" "$build/tests/test_gpu" "$build/tests/bench_run_entry"
mkdir -p "$tree/share/mge/onnx/node"
cp -r "$cases"/test_{add,conv,matmul,maxpool,softmax}* "$tree/share/mge/onnx/node/"
# A Python in which PyTorch seems to see the GPU.
cat >"$work/python" <<'PYTHON'
#!/bin/sh
case "$1" in *torch_peer.py) echo '{"schema": "mge.torch/1", "eager_us": 1000000000, "compiled_us": 2000000000}' ;; esac
PYTHON
chmod +x "$work/python"

variables=() newer=()
case $device in
  software)
    device=gpu0 variables=(MGE_CUDA_DRIVER="$build/lib/mge/test/libcuda.so.1")
    # Its capability is 9.0.
    newer=('| bfloat16 products, own kernels | [0-9.e+-]* TFLOP/s |' '| float32 products in TF32 | [0-9.e+-]* TFLOP/s |' \
      '| bert-tiny in bfloat16 | 1 | ' '| bert-tiny in TF32 | 1 | ' '| float16 products, own kernels | [0-9.e+-]* TFLOP/s |') ;;
  virtual0) variables=(MGE_VIRTUAL_DEVICES=1) newer=('| float16 products | \|| float16 products, own kernels | [0-9.e+-]* TFLOP/s |') ;;
esac
# report CODE OPTION...: runs the script, which must end with CODE.
report() {
  local code=0 wanted=$1
  shift
  env "${variables[@]}" "$tree/gpu-report.sh" --device "$device" --quick --python "$work/python" -o "$work/report" "$@" \
    >"$work/report.log" 2>&1 || code=$?
  if ((code == 5)); then cat "$work/report.log"; echo "skipped: no device $device"; exit 77; fi
  if ((code != wanted)); then cat "$work/report.log"; fail "gpu-report.sh $*: exit code $code in place of $wanted"; fi
}
report 2 --budget 8
# A budget that is over at once leaves a page that says what did not run; the next call goes on.
report 3 --budget 1s
grep -q 'Not run yet' "$work/report/report.md" || fail "the page does not say what did not run"
grep -q 'not run to its end: kit' "$work/report.log" || fail "the script does not say what did not run"
report 0 --budget 900s
before=$(stat -c %Y "$work/report/stream.json")
report 0 --budget 900s
[[ $(stat -c %Y "$work/report/stream.json") == "$before" ]] || fail "a second call runs again what was done"

page=$work/report/report.md
for line in '- kit: passed' '- onnx: passed' '- onnx: [0-9]* cases passed, [1-9][0-9]* of them with every step on ' '- test_gpu: passed' '- run_entry: passed' '- bert-tiny-compared-with-cpu0: passed' '| memory | [0-9.e+-]* GB/s |' \
  '- unproven: passed' '- training: passed' '| bert-tiny in float16 | 1 | ' "${newer[@]}" '| 1000000000 | - | 2000000000 | [0-9]*.[0-9]* |'; do
  grep -q -- "$line" "$page" || { cat "$page"; fail "the page has no line '$line'"; }
done
python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert report["schema"] == "mge.gpu-report/1" and report["stream"]["latency_us"]["min"] > 0, report' "$work/report/report.json"
# The planner takes the measured rates of backends that have such settings.
if [[ -e $work/report/rates.toml ]]; then
  grep -q '^memory_gb_s = [0-9]' "$work/report/rates.toml" || fail "rates.toml has no rate of the memory"
  MGE_ENV_STRICT=1 env "${variables[@]}" "$tree/bin/mge" run "$tree/share/mge/digits/digits.onnx" --device "$device" \
    --config "$work/report/rates.toml" >/dev/null || fail "rates.toml"
fi
