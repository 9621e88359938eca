#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and measures one GPU with the backends of this tree, and writes a report. It lies at the root of the tarball.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mge=$here/bin/mge

usage() {
  cat <<'TEXT'
usage: gpu-report.sh [options]

Runs the conformance kit, ONNX's test cases, the tests of GPUs, networks compared with the CPU, and benchmarks on one device,
measures the rates of its memory and of products, and writes a page and its data. If PyTorch is installed and sees the GPU,
it runs the same architectures.

  --device NAME   the device (default: gpu0)
  --python FILE   the Python that has PyTorch (default: python3)
  --quick         a sample of the kit, and fewer models
  -o DIR          the folder for report.md, report.json, rates.toml and logs (default: gpu-report)
  -h, --help      this text

Exit codes: 0 all tests passed; 1 some failed; 2 usage; 5 the device cannot be used.
TEXT
}

device=gpu0 python=python3 quick=() out=gpu-report
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --device) device=${2:?--device needs a value}; shift ;;
    --python) python=${2:?--python needs a value}; shift ;;
    --quick) quick=(--quick) ;;
    -o) out=${2:?-o needs a value}; shift ;;
    *) echo "error: unknown argument $1; see gpu-report.sh --help" >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
failures=0
page=$out/report.md
data=$out/report.json
first=yes

# add KEY FILE: adds the JSON text of a file to the data. A file without JSON text becomes null.
add() {
  local text=null
  if [[ $(head -c 1 "$2" 2>/dev/null) == '{' ]]; then text=$(<"$2"); fi
  if [[ $first == no ]]; then printf ',\n' >>"$data"; fi
  printf '"%s": %s' "$1" "$text" >>"$data"
  first=no
}

# measured NAME COMMAND...: runs a command with --json, keeps both of its outputs, and adds the data. Returns its exit code.
measured() {
  local name=$1 code=0
  shift
  echo "  $name" >&2
  "$@" --json >"$out/$name.json" 2>"$out/$name.log" || code=$?
  add "$name" "$out/$name.json"
  return "$code"
}

# verdict NAME CODE: one line of the page.
verdict() {
  if (($2 == 0)); then
    printf -- '- %s: passed\n' "$1" >>"$page"
  else
    failures=$((failures + 1))
    printf -- '- %s: **failed** (exit code %d): %s\n' "$1" "$2" "$(grep -m1 -E 'error|failed' "$out/$1.log" || echo "see $1.log")" >>"$page"
  fi
}

# number KEY FILE: the first number with this key.
number() { grep -oE "\"$1\": *[0-9.e+-]+" "$2" | head -n 1 | grep -oE '[0-9.e+-]+$' || echo -; }
# rounded KEY FILE: the same, with three digits or all those of its integer part.
rounded() { number "$1" "$2" | awk '{ if ($1 == "-") print; else printf(($1 >= 100 ? "%.0f\n" : "%.3g\n"), $1) }'; }

# use_from_python VARIABLE FILE: if the system has no such library, uses that of the Python packages that PyTorch comes with.
use_from_python() {
  if [[ -n ${!1:-} ]] || /sbin/ldconfig -p 2>/dev/null | grep "^[[:space:]]*$2 " >/dev/null; then return; fi
  local found
  found=$({ "$python" -c 'import glob, os, sys
print(*[f for p in sys.path for f in glob.glob(os.path.join(p, "nvidia", "*", "lib", sys.argv[1]))], sep="\n")' "$2" 2>/dev/null || true; } | head -n 1)
  if [[ -n $found ]]; then export "$1=$(realpath "$found")"; fi
}
if [[ -z ${MGE_CUDA_DRIVER:-} ]]; then
  use_from_python MGE_CUDA_CUBLASLT libcublasLt.so.13
  use_from_python MGE_CUDA_CUDNN libcudnn.so.9
  use_from_python MGE_CUDA_NVRTC libnvrtc.so.13
  use_from_python MGE_CUDA_NCCL libnccl.so.2
fi

if ! "$mge" run "$here/share/mge/digits/digits.onnx" --device "$device" >"$out/first.log" 2>&1; then
  cat "$out/first.log" >&2
  echo "error: device $device cannot be used; see above, and \`$mge doctor\`" >&2
  exit 5
fi

printf '{"schema": "mge.gpu-report/1",\n' >"$data"
{
  printf '# %s: report of MGE\n\n' "$device"
  "$mge" --version
  printf '\n```\n'
  "$mge" devices
  if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv; fi
  printf '```\n\n'
  # Why libraries of the vendor are not used, without which the device is slower.
  "$mge" plan "$here/share/mge/digits/digits.onnx" --device "$device" --why 2>/dev/null |
    grep -oE '[A-Za-z]+ (cannot be used: |is not used |is switched off ).*' | sort -u | sed 's/^/- /' || true
  printf '\n## Correctness\n\n'
} >"$page"

echo "correctness" >&2
code=0; measured devices "$mge" devices || code=$?
backend=$(awk -F'"' -v want="$device" '
  $2 == "name" { name = $4 }
  $2 == "plugin" { plugin = $4 }
  $2 == "alias" && (name == want || $4 == want) { print plugin; exit }' "$out/devices.json")
capability=$(awk -F'"' -v want="$device" '
  $2 == "name" { name = $4 }
  $2 == "alias" && $4 == want { name = want }
  $2 == "capability" && name == want { print $4; exit }' "$out/devices.json")
code=0; measured kit "$mge" sdk test "${quick[@]}" "$here/lib/mge/plugins/mge_$backend.so" || code=$?
verdict kit "$code"
code=0; measured onnx "$mge" check "$here/share/mge/onnx" --device "$device" || code=$?
verdict onnx "$code"
code=0; measured onnx-cpu0 "$mge" check "$here/share/mge/onnx" --device cpu0 || code=$?
verdict onnx-cpu0 "$code"
printf -- '- onnx: %s cases passed, %s of them with every step on %s; cpu0 passes %s\n' \
  "$(number passed "$out/onnx.json")" "$(number on_device "$out/onnx.json")" "$device" "$(number passed "$out/onnx-cpu0.json")" >>"$page"
# The program that CTest runs with the label gpu.
code=0
GPU_TEST_DEVICE=$device GPU_TEST_MODELS=$here/share/mge/digits "$here/lib/mge/test/test_gpu" >"$out/test_gpu.log" 2>&1 || code=$?
verdict test_gpu "$code"
networks=(resnet50 mobilenetv2 bert-base)
if ((${#quick[@]})); then networks=(bert-tiny); fi
for model in "${networks[@]}"; do
  "$mge" zoo "$model" -o "$out/$model.onnx" >/dev/null
  code=0; measured "$model-compared-with-cpu0" "$mge" run "$out/$model.onnx" --device "$device" --against cpu0 || code=$?
  verdict "$model-compared-with-cpu0" "$code"
  rm -f "$out/$model.onnx"
done

# The number of the device, for PyTorch, which numbers GPUs from 0, too.
torch_device=cuda:${device##*[!0-9]}
no_torch=
if ! "$python" -c "import torch; torch.zeros(1, device='$torch_device')" 2>"$out/torch.log"; then
  no_torch=$(tail -n 1 "$out/torch.log")
fi

# by_torch MODEL BATCH: measures PyTorch, and prints the cells of its ways of execution.
by_torch() {
  local name=$1-$2-torch way cells='' file
  file=$out/$name.json
  if [[ -z $no_torch ]]; then
    "$python" "$here/share/mge/bench/torch_peer.py" "$1" --batch "$2" --device "$torch_device" >"$file" 2>"$out/$name.log" ||
      echo "  $name failed; see $name.log" >&2
    add "$name" "$file"
  fi
  for way in eager graph compiled; do cells+=" $(rounded "${way}_us" "$file" 2>/dev/null) |"; done
  echo "$cells"
}

printf '\n## Speed\n\n' >>"$page"
echo "speed" >&2
models=(resnet50:1 resnet50:32 mobilenetv2:1 mobilenetv2:32 bert-base:1 bert-base:32)
if ((${#quick[@]})); then models=(tiny-ops:1); fi
table=''
for row in "${models[@]}"; do
  model=${row%:*} batch=${row#*:}
  file=$out/$model-$batch.onnx
  options=(-o "$file")
  if ((batch > 1)); then options+=(--batch "$batch"); fi
  "$mge" zoo "$model" "${options[@]}" >/dev/null
  for io in host device; do
    code=0; measured "$model-$batch-$io" "$mge" bench "$file" --device "$device" --io "$io" || code=$?
    if ((code)); then verdict "$model-$batch-$io" "$code"; fi
  done
  # With kernels chosen by their times, as PyTorch's are.
  code=0; measured "$model-$batch-tuned" env MGE_SELECT_STRATEGY=profile "$mge" bench "$file" --device "$device" --io device || code=$?
  if ((code)); then verdict "$model-$batch-tuned" "$code"; fi
  host=$out/$model-$batch-host.json on_device=$out/$model-$batch-device.json tuned=$out/$model-$batch-tuned.json
  by_torch "$model" "$batch" >"$out/cells"
  table+="| $model | $batch | $(rounded p50 "$host") | $(rounded p50 "$on_device") | $(rounded p50 "$tuned") |"
  table+=" $(awk -v us="$(number p50 "$tuned")" -v n="$batch" 'BEGIN { if (us > 0) printf "%.0f", 1e6 * n / us; else print "-" }') |"
  table+=" $(rounded first_result_ms "$host") |"
  table+=" $(awk -v planned="$(number planned_peak_bytes "$host")" -v measured="$(number measured_peak_bytes "$host")" \
    'BEGIN { printf "%.1f | %.1f", planned / 1048576, measured / 1048576 }') |$(<"$out/cells")"
  # How many times as fast as the best way of PyTorch.
  table+=" $(awk -F'|' -v us="$(number p50 "$tuned")" '{
    for (i = 1; i <= NF; ++i) if ($i > 0 && (!best || $i + 0 < best)) best = $i + 0
    if (best && us > 0) printf "%.2f", best / us; else print "-" }' "$out/cells") |"$'\n'
  rm -f "$file"
done
rm -f "$out/cells"
printf '%s\n%s\n%s' \
  '| model | batch | latency, inputs on the host (us) | on the device (us) | tuned (us) | images or texts per second | first result (ms) | planned memory (MiB) | measured (MiB) | PyTorch eager (us) | CUDA graph (us) | compiled (us) | speed against PyTorch |' \
  '|---|---|---|---|---|---|---|---|---|---|---|---|---|' "$table" >>"$page"
"$mge" zoo one-op -o "$out/one-op.onnx" >/dev/null
rounds=50
if ((${#quick[@]})); then rounds=1; fi
code=0; "$here/lib/mge/test/bench_run_entry" "$out/one-op.onnx" "$rounds" "$device" >"$out/run_entry.log" 2>&1 || code=$?
rm -f "$out/one-op.onnx"
verdict run_entry "$code"
# shellcheck disable=SC2016  # the page has backquotes
printf '\nA run of one operator:\n\n```\n%s\n```\n' "$(<"$out/run_entry.log")" >>"$page"
if [[ -n $no_torch ]]; then printf '\nPyTorch was not measured: %s\n' "$no_torch" >>"$page"; fi

# measure_rate NAME MODEL BATCH WORK [VARIABLE...]: measures a model of the zoo with inputs on the device. Sets `rate` to
# WORK * BATCH per microsecond, or to nothing if the model fails.
measure_rate() {
  local name=$1 file=$out/$1.onnx code=0
  rate=
  "$mge" zoo "$2" --batch "$3" -o "$file" >/dev/null
  measured "$name" env "${@:5}" "$mge" bench "$file" --device "$device" --io device || code=$?
  rm -f "$file"
  if ((code)); then
    verdict "$name" "$code"
    return
  fi
  rate=$(awk -v us="$(number min "$out/$name.json")" -v work="$(($3 * $4))" 'BEGIN { if (us > 0) printf "%.4g", work / us / 1e6 }')
}

# show_rate TEXT UNIT [SETTING]: adds a line to `table`, and one to `settings`.
show_rate() {
  table+="| $1 | ${rate:--} $2 |"$'\n'
  if [[ -n ${3:-} && -n $rate ]]; then settings+="$3 = $rate"$'\n'; fi
}

echo "rates" >&2
printf '\n## Rates\n\n' >>"$page"
# The planner estimates the times of the backend's own kernels, so the settings need their rates.
has_narrow=no own=() matrix_setting=
case $backend in
  cuda)
    own=(MGE_CUDA_CUBLASLT=off) matrix_setting=matrix_tflop_s
    if [[ ${capability%.*} -ge 8 ]]; then has_narrow=yes; fi ;; # tensor cores for bfloat16 and TF32
  rocm) own=(MGE_ROCM_ROCBLAS=off) ;;
esac
millions=128 rows=8192
if ((${#quick[@]})); then millions=1 rows=1; fi
bytes=$((2 * 4 << 20))               # of the model `stream` for each million
operations=$((8 * 2 * 2048 * 2048))  # of the models `products-...` for each row
table='' settings=''
measure_rate stream stream "$millions" $((1000 * bytes))
show_rate "memory" GB/s memory_gb_s
# measure_products [SUFFIX TEXT [VARIABLE...]]: measures products of every type with these variables, and adds their lines.
measure_products() {
  local suffix=${1:-} text=${2:-}
  measure_rate "products-f32$suffix" products-f32 "$rows" "$operations" "${@:3}"
  show_rate "float32 products$text" TFLOP/s "${suffix:+compute_tflop_s}"
  measure_rate "products-f16$suffix" products-f16 "$rows" "$operations" "${@:3}"
  show_rate "float16 products$text" TFLOP/s "${suffix:+$matrix_setting}"
  if [[ $has_narrow == yes ]]; then
    measure_rate "products-bf16$suffix" products-bf16 "$rows" "$operations" "${@:3}"
    show_rate "bfloat16 products$text" TFLOP/s
    measure_rate "products-tf32$suffix" products-f32 "$rows" "$operations" "${@:3}" MGE_SELECT_TENSOR_CORE_CONVERSION=1
    show_rate "float32 products in TF32$text" TFLOP/s
  fi
}
measure_products -own ", own kernels" "${own[@]}"
if ((${#own[@]})); then measure_products; fi
printf '| | measured |\n|---|---|\n%s' "$table" >>"$page"
if ((${#own[@]})); then
  trial=
  if ((${#quick[@]})); then trial=$'\n# Measured with --quick on little data: only to try this file.'; fi
  printf '# Rates of %s, for the estimates of the planner.%s\n[%s]\n%s' "$device" "$trial" "$backend" "$settings" \
    >"$out/rates.toml"
  # shellcheck disable=SC2016  # the page has a command in backquotes
  printf '\n`mge --config rates.toml` uses these for its estimates:\n\n```\n%s\n```\n' "$(<"$out/rates.toml")" >>"$page"
fi
printf '\n}\n' >>"$data"
echo "wrote $page and $data" >&2
cat "$page"
exit $((failures > 0))
