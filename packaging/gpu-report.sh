#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests MGE on a machine with a GPU, and writes one report: gpu-report.md, and gpu-report.json with all details. It is part of
# the archive of packaging/tarball.sh, and runs in its folder.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mge=$here/mge

usage() {
  cat <<'TEXT'
usage: gpu-report.sh [options]

  --device NAME    the device to test (default: gpu0)
  --models LIST    models of `mge zoo` (default: "resnet50 mobilenetv2 bert-base")
  --batches LIST   batch sizes of the benchmarks (default: "1 32")
  --seconds N      measuring time of each benchmark (default: 5)
  --output FOLDER  for gpu-report.md and gpu-report.json (default: the working folder)
  -h, --help       this text

Exit codes: 0 all well; 1 something failed; 2 usage; 5 the device cannot be used.
TEXT
}

device=gpu0 seconds=5 output=$PWD models="resnet50 mobilenetv2 bert-base" batches="1 32"
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --device|--seconds|--output|--models|--batches)
      if (($# < 2)); then echo "error: $1 needs a value" >&2; exit 2; fi
      declare "${1#--}=$2"; shift ;;
    *) echo "error: unknown option $1; see gpu-report.sh --help" >&2; exit 2 ;;
  esac
  shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$output"
report=$output/gpu-report.md
parts=()
failed=0

# part NAME: adds $work/NAME.json, which a command has written, to the JSON report.
part() { if [[ -s $work/$1.json ]]; then parts+=("$1"); fi; }
# value KEY FILE: the first value of a key in a JSON file with one key per line.
value() { sed -n "s/.*\"$1\": *\"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p" "$2" | head -1; }
line() { printf '%s\n' "$*" | tee -a "$report"; }

"$mge" devices --json >"$work/devices.json" 2>"$work/log"
part devices
if ! "$mge" zoo one-op -o "$work/one.onnx" 2>/dev/null || ! "$mge" run "$work/one.onnx" --device "$device" >/dev/null 2>"$work/log"; then
  cat "$work/log" >&2
  exit 5
fi

: >"$report"
line "# MGE on $device"
line
line "$("$mge" --version), $(uname -sr), $(date -u +%Y-%m-%d)"
if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | while read -r text; do line "- $text"; done
fi
line
line '```'
"$mge" devices 2>/dev/null | tee -a "$report"
line '```'
line
line "## Correctness"
line
line "| test | result |"
line "|---|---|"

# The file of the backend whose device this is.
backend=$("$mge" run "$work/one.onnx" --device "$device" 2>&1 >/dev/null | sed -n 's/^ran on \([a-z_]*\)[0-9]*$/\1/p')
if "$mge" sdk test "$here/lib/mge/plugins/mge_$backend.so" --quick --json >"$work/sdk_test.json" 2>"$work/log"; then
  line "| conformance kit of backends | passed |"
else
  failed=1
  line "| conformance kit of backends | failed |"
fi
part sdk_test
if [[ -d $here/onnx ]]; then
  "$mge" check --json -q --device "$device" "$here/onnx" >"$work/onnx.json" 2>"$work/log" || failed=1
  line "| tests of ONNX | $(value passed "$work/onnx.json") passed, $(value failed "$work/onnx.json") failed, $(value unsupported "$work/onnx.json") unsupported |"
  part onnx
fi
for name in $models; do
  "$mge" zoo "$name" -o "$work/$name.onnx" 2>/dev/null
  if "$mge" run "$work/$name.onnx" --device "$device" --compare cpu0 >"$work/text" 2>&1; then
    line "| $name, compared with cpu0 | equal within the tolerance |"
  else
    failed=1
    line "| $name, compared with cpu0 | differs |"
  fi
done

line
line "## Speed and memory"
line
line "| model | batch | p50 in ms | runs per s | first result in ms | device memory in MiB |"
line "|---|---|---|---|---|---|"
for name in $models; do
  for batch in $batches; do
    "$mge" zoo "$name" --batch "$batch" -o "$work/model.onnx" 2>/dev/null
    result=$work/bench_${name}_$batch.json
    if "$mge" bench "$work/model.onnx" --device "$device" --seconds "$seconds" --json >"$result" 2>"$work/log"; then
      line "| $name | $batch | $(awk -v us="$(value p50 "$result")" 'BEGIN { printf "%.3f | %.1f", us / 1000, 1e6 / us }') | $(value first_result_ms "$result" | cut -c1-7) | $(($(value measured_peak_bytes "$result") >> 20)) |"
      part "bench_${name}_$batch"
    else
      failed=1
      line "| $name | $batch | failed: $(head -1 "$work/log") | | | |"
    fi
  done
done

{
  printf '{"schema": "mge.gpu_report/1", "device": "%s", "failed": %s' "$device" "$([[ $failed == 1 ]] && echo true || echo false)"
  for name in "${parts[@]}"; do printf ',\n"%s": ' "$name"; cat "$work/$name.json"; done
  printf '}\n'
} >"$output/gpu-report.json"
line
if ((failed)); then line "Result: failed"; else line "Result: passed"; fi
exit "$failed"
