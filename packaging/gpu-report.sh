#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and measures one GPU with the backends of this tree, and writes a report. It lies in the tarball of the
# tests, which is unpacked over the one of MGE.
#
# The report consists of parts. Each is a function part_NAME, which this script runs in a process of its own, so that a limit of
# time can end it. What it prints is its section of the page; its data are the files NAME.json that `measured` writes. Both are there
# as soon as they are known.
# shellcheck disable=SC2317,SC2016,SC2094  # parts are called by name; the page has backquotes; report.json is not read
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mge=$here/bin/mge

# The parts, the most important ones first: name, limit in seconds if there is a budget, title.
parts=(
  "unproven 75 Kernels that few GPUs have run"
  "rates 100 Rates"
  "speed 150 Speed"
  "narrow 120 Speed in 16 bits and TF32"
  "sanitizers 90 Sanitizers"
  "training 75 Training"
  "decoding 45 Decoding"
  "counters 60 Counters of the hardware"
  "entry 20 A run of one operator"
  "networks 120 Networks compared with the CPU"
  "programs 120 Tests of GPUs"
  "kit 300 Conformance kit"
  "onnx 300 Test cases of ONNX"
)

usage() {
  cat <<'TEXT'
usage: gpu-report.sh [options]

Measures one device and tests it: rates of its memory and of products, networks in float32, TF32, float16 and bfloat16, steps of
training, decoding, networks compared with the CPU, the conformance kit, ONNX's test cases, and the sanitizers of the toolkit if
they are installed. Writes a page and its data. If PyTorch is installed and sees the GPU, it runs the same architectures.

  --device NAME   the device (default: gpu0)
  --budget TIME   runs the parts by their importance, each with a limit, until this time is over, such as 90s or 8min. A second
                  call with the same folder goes on where the first one stopped
  --decoder DIR   a folder of a language model, for the part about decoding
  --python FILE   the Python that has PyTorch (default: python3)
  --quick         a sample of the kit, and fewer models
  -o DIR          the folder for report.md, report.json, rates.toml and logs (default: gpu-report)
  -h, --help      this text

Exit codes: 0 all parts ran and passed; 1 some failed; 2 usage; 3 none failed, but the budget was over before all had run; 5 the
device cannot be used.
TEXT
}

usage_error() { echo "error: $1; see gpu-report.sh --help" >&2; exit 2; }

device=gpu0 python=python3 quick=() out=gpu-report budget='' decoder='' part=''
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --device) device=${2:?--device needs a value}; shift ;;
    --budget) budget=${2:?--budget needs a value}; shift ;;
    --decoder) decoder=${2:?--decoder needs a value}; shift ;;
    --python) python=${2:?--python needs a value}; shift ;;
    --quick) quick=(--quick) ;;
    -o) out=${2:?-o needs a value}; shift ;;
    --part) part=${2:?}; shift ;; # of this script itself: runs one part
    *) usage_error "unknown argument $1" ;;
  esac
  shift
done
seconds_left=''
case $budget in
  '') ;;
  *[!0-9]min|*[!0-9]s|min|s) usage_error "--budget $budget is no time such as 90s or 8min" ;;
  *min) seconds_left=$((60 * ${budget%min})) ;;
  *s) seconds_left=${budget%s} ;;
  *) usage_error "--budget $budget is no time such as 90s or 8min" ;;
esac
if [[ -n $decoder && ! -f $decoder/genai_config.json ]]; then usage_error "--decoder $decoder has no genai_config.json"; fi
if ! [[ -x $mge ]]; then
  echo "error: there is no $mge; unpack the tests where mge-...tar.xz was unpacked" >&2
  exit 5
fi
mkdir -p "$out/parts"
out=$(cd "$out" && pwd)
failures=0
page=$out/report.md
data=$out/report.json

# measured NAME COMMAND...: runs a command with --json, and keeps both of its outputs. Returns its exit code.
measured() {
  local name=$1 code=0
  shift
  echo "  $name" >&2
  "$@" --json >"$out/$name.json" 2>"$out/$name.log" || code=$?
  return "$code"
}

# verdict NAME CODE: one line of the page.
verdict() {
  if (($2 == 0)); then
    printf -- '- %s: passed\n' "$1"
  else
    failures=$((failures + 1))
    printf -- '- %s: **failed** (exit code %d): %s\n' "$1" "$2" "$(grep -m1 -E 'error|failed' "$out/$1.log" || echo "see $1.log")"
  fi
}

# number KEY FILE: the first number with this key.
number() { grep -oE "\"$1\": *[0-9.e+-]+" "$2" | head -n 1 | grep -oE '[0-9.e+-]+$' || echo -; }
# rounded KEY FILE: the same, with three digits or all those of its integer part.
rounded() { number "$1" "$2" | awk '{ if ($1 == "-") print; else printf(($1 >= 100 ? "%.0f\n" : "%.3g\n"), $1) }'; }
# ratio A B: A / B with two digits, or -.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf "%.2f", a / b; else print "-" }'; }

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

# of_device KEY: a fact of the device in devices.json.
of_device() {
  awk -F'"' -v want="$device" -v key="$1" '
    $2 == "name" { value = ""; found = $4 == want }
    $2 == "alias" && $4 == want { found = 1 }
    $2 == key { value = $4 }
    found && value != "" { print value; exit }' "$out/devices.json"
}

# write_model FILE NAME [OPTION...]: a model of the zoo.
write_model() { "$mge" zoo "$2" -o "$1" "${@:3}" >/dev/null; }

# ---- the parts

# kit_on OPERATOR...: the options of a kit that runs these operators only; with --quick, those that its form has.
kit_on() {
  local op
  if ((${#quick[@]})); then set -- MatMul Softmax; fi
  kit_options=("${quick[@]}")
  for op in "$@"; do kit_options+=(--only "$op"); done
}

part_unproven() {
  local code=0
  kit_on ConvWeightGradient ConvTranspose ReduceSum ReduceMean QLinearConv QLinearMatMul LayerNormalization Softmax
  measured unproven "$mge" sdk test "$plugin" --jobs 8 --timeout 20 "${kit_options[@]}" || code=$?
  verdict unproven "$code"
}

# measure_rate NAME MODEL BATCH WORK TYPE [VARIABLE...]: measures a model of the zoo with inputs on the device. Sets `rate` to
# WORK * BATCH per microsecond, or to nothing if the model fails.
measure_rate() {
  local name=$1 file=$out/$1.onnx code=0
  rate=
  write_model "$file" "$2" --batch "$3" --type "$5"
  measured "$name" env "${@:6}" "$mge" bench "$file" --device "$device" --io device || code=$?
  rm -f "$file"
  if ((code)); then
    verdict "$name" "$code"
    return
  fi
  rate=$(awk -v us="$(number min "$out/$name.json")" -v work="$(($3 * $4))" 'BEGIN { if (us > 0) printf "%.4g", work / us / 1e6 }')
}

# show_rate TEXT UNIT [SETTING]: a line of the table, and one of `settings`.
show_rate() {
  printf '| %s | %s %s |\n' "$1" "${rate:--}" "$2"
  if [[ -n ${3:-} && -n $rate ]]; then settings+="$3 = $rate"$'\n'; fi
}

# measure_products [SUFFIX TEXT [VARIABLE...]]: measures products of every type with these variables.
measure_products() {
  local suffix=${1:-} text=${2:-}
  measure_rate "products-f32$suffix" products "$rows" "$operations" float32 "${@:3}"
  show_rate "float32 products$text" TFLOP/s "${suffix:+compute_tflop_s}"
  measure_rate "products-f16$suffix" products "$rows" "$operations" float16 "${@:3}"
  show_rate "float16 products$text" TFLOP/s "${suffix:+$matrix_setting}"
  if [[ $has_narrow == yes ]]; then
    measure_rate "products-bf16$suffix" products "$rows" "$operations" bfloat16 "${@:3}"
    show_rate "bfloat16 products$text" TFLOP/s
    measure_rate "products-tf32$suffix" products "$rows" "$operations" float32 "${@:3}" MGE_SELECT_TENSOR_CORE_CONVERSION=1
    show_rate "float32 products in TF32$text" TFLOP/s
  fi
}

part_rates() {
  # The planner estimates the times of the backend's own kernels, so the settings need their rates.
  local own=() millions=128 rows=8192
  matrix_setting='' settings=''
  case $backend in
    cuda) own=(MGE_CUDA_CUBLASLT=off) matrix_setting=matrix_tflop_s ;;
    rocm) own=(MGE_ROCM_ROCBLAS=off) ;;
  esac
  if ((${#quick[@]})); then millions=1 rows=1; fi
  local bytes=$((2 * 4 << 20))               # of the model `stream` for each million
  local operations=$((8 * 2 * 2048 * 2048))  # of the model `products` for each row
  printf '| | measured |\n|---|---|\n'
  measure_rate stream stream "$millions" $((1000 * bytes)) float32
  show_rate "memory" GB/s memory_gb_s
  measure_products -own ", own kernels" "${own[@]}"
  if ((${#own[@]})); then
    measure_products
    local trial=
    if ((${#quick[@]})); then trial=$'\n# Measured with --quick on little data: only to try this file.'; fi
    printf '# Rates of %s, for the estimates of the planner.%s\n[%s]\n%s' "$device" "$trial" "$backend" "$settings" \
      >"$out/rates.toml"
    # shellcheck disable=SC2016  # the page has a command in backquotes
    printf '\n`mge --config rates.toml` uses these for its estimates:\n\n```\n%s\n```\n' "$(<"$out/rates.toml")"
  fi
}

# by_torch NAME OPTION...: measures PyTorch, and prints the cells of its ways of execution.
by_torch() {
  local name=$1-torch way file
  file=$out/$name.json
  if [[ -z $no_torch ]]; then
    "$python" "$here/share/mge/bench/torch_peer.py" "${@:2}" --device "$torch_device" >"$file" 2>"$out/$name.log" ||
      echo "  $name failed; see $name.log" >&2
  fi
  for way in eager graph compiled; do printf ' %s |' "$(rounded "${way}_us" "$file" 2>/dev/null || echo -)"; done
}

# best_of CELLS: the lowest number of the cells.
best_of() { awk -F'|' '{ for (i = 1; i <= NF; ++i) if ($i > 0 && (!best || $i + 0 < best)) best = $i + 0; print best + 0 }' <<<"$1"; }

# speed_row MODEL BATCH TYPE [VARIABLE...]: a row of the table: a network on MGE and on PyTorch.
speed_row() {
  local model=$1 batch=$2 type=$3 code name io cells
  name=$model-$batch
  if [[ $type != float32 || $# -gt 3 ]]; then name+=-${type}${4:+-tf32}; fi
  local file=$out/$name.onnx options=(--type "$type") host=$out/$name-host.json on_device=$out/$name-device.json tuned=$out/$name-tuned.json
  if ((batch > 1)); then options+=(--batch "$batch"); fi
  write_model "$file" "$model" "${options[@]}"
  for io in host device; do
    code=0; measured "$name-$io" env "${@:4}" "$mge" bench "$file" --device "$device" --io "$io" --seconds "$seconds" || code=$?
    if ((code)); then failed+=("$name-$io:$code"); fi
  done
  # With kernels chosen by their times, as PyTorch's are.
  code=0
  measured "$name-tuned" env "${@:4}" MGE_SELECT_STRATEGY=profile "$mge" bench "$file" --device "$device" --io device \
    --seconds "$seconds" || code=$?
  if ((code)); then failed+=("$name-tuned:$code"); fi
  rm -f "$file"
  cells=$(by_torch "$name" "$model" --batch "$batch" --type "${4:+tf32}${4:-$type}" --seconds "$seconds")
  printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |%s %s |\n' "$model${4:+ in TF32}$([[ $type == float32 ]] || echo " in $type")" \
    "$batch" "$(rounded p50 "$host")" "$(rounded p50 "$on_device")" "$(rounded p50 "$tuned")" \
    "$(awk -v us="$(number p50 "$tuned")" -v n="$batch" 'BEGIN { if (us > 0) printf "%.0f", 1e6 * n / us; else print "-" }')" \
    "$(rounded first_result_ms "$host")" \
    "$(awk -v x="$(number planned_peak_bytes "$host")" 'BEGIN { printf "%.1f", x / 1048576 }')" \
    "$(awk -v x="$(number measured_peak_bytes "$host")" 'BEGIN { printf "%.1f", x / 1048576 }')" \
    "$cells" "$(ratio "$(best_of "$cells")" "$(number p50 "$tuned")")"
}

# speed_table ROW...: each row has the words of a call of speed_row.
speed_table() {
  local row words entry
  failed=() seconds=2
  if [[ -n $budget ]]; then seconds=0.7; fi
  printf '%s\n%s\n' \
    '| model | batch | latency, inputs on the host (us) | on the device (us) | tuned (us) | images or texts per second | first result (ms) | planned memory (MiB) | measured (MiB) | PyTorch eager (us) | CUDA graph (us) | compiled (us) | speed against PyTorch |' \
    '|---|---|---|---|---|---|---|---|---|---|---|---|---|'
  for row in "$@"; do
    read -ra words <<<"$row"
    speed_row "${words[@]}"
  done
  if ((${#failed[@]})); then
    echo
    for entry in "${failed[@]}"; do verdict "${entry%:*}" "${entry##*:}"; done
  fi
  if [[ -n $no_torch ]]; then printf '\nPyTorch was not measured: %s\n' "$no_torch"; fi
}

part_speed() {
  if ((${#quick[@]})); then
    speed_table "tiny-ops 1 float32"
  else
    speed_table "resnet50 1 float32" "bert-base 1 float32" "resnet50 32 float32" "bert-base 32 float32" "mobilenetv2 1 float32" \
      "mobilenetv2 32 float32"
  fi
}

part_narrow() {
  local rows=() model batch
  if ((${#quick[@]})); then
    rows=("bert-tiny 1 float16")
    if [[ $has_narrow == yes ]]; then rows+=("bert-tiny 1 bfloat16" "bert-tiny 1 float32 MGE_SELECT_TENSOR_CORE_CONVERSION=1"); fi
  else
    for batch in 32 1; do
      for model in bert-base resnet50; do
        rows+=("$model $batch float16")
        if [[ $has_narrow == yes ]]; then
          rows+=("$model $batch bfloat16" "$model $batch float32 MGE_SELECT_TENSOR_CORE_CONVERSION=1")
        fi
      done
    done
  fi
  speed_table "${rows[@]}"
}

part_sanitizers() {
  local tool code
  if ! command -v compute-sanitizer >/dev/null; then
    echo "Not run: compute-sanitizer is not installed; it is part of the CUDA Toolkit."
    return
  fi
  kit_on MatMul Conv LayerNormalization Softmax ReduceSum
  for tool in memcheck racecheck synccheck initcheck; do
    code=0
    compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 "$mge" sdk test "$plugin" --jobs 1 \
      "${kit_options[@]}" >"$out/$tool.log" 2>&1 || code=$?
    verdict "$tool" "$code"
  done
}

# zeros FILE TYPE BYTES SHAPE: an array of zeros in NumPy's format.
zeros() {
  local text="{'descr': '$2', 'fortran_order': False, 'shape': ($4), }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$text" >"$1"
  head -c "$3" /dev/zero >>"$1"
}

part_training() {
  local model=resnet50 batch=32 examples=256 image='3, 224, 224' elements=$((3 * 224 * 224)) code=0 file=$out/train.onnx input us
  local cells=' - | - | - |'
  if ((${#quick[@]})); then
    model=digits batch=16 examples=64 image='1, 8, 8' elements=64
    cp "$here/share/mge/digits/digits.onnx" "$file"
  else
    write_model "$file" "$model" --batch "$batch"
    cells=$(by_torch training "$model" --batch "$batch" --train)
  fi
  printf '%s\n%s\n' '| model | batch | a step (us) | PyTorch eager (us) | compiled (us) | speed against PyTorch |' '|---|---|---|---|---|---|'
  input=$("$mge" inspect "$file" --json | awk -F'"' '$2 == "inputs" { inside = 1 } inside && $2 == "name" { print $4; exit }')
  zeros "$out/images.npy" '<f4' $((examples * elements * 4)) "$examples, $image"
  zeros "$out/labels.npy" '<i8' $((examples * 8)) "$examples,"
  measured training "$mge" train "$file" --input "$input=$out/images.npy" --input "labels=$out/labels.npy" --device "$device" \
    --batch "$batch" --epochs 2 -o "$out/trained.onnx" || code=$?
  rm -f "$file" "$out/images.npy" "$out/labels.npy" "$out/trained.onnx"
  # Of the last epoch: the first one makes the plan.
  us=$(grep -oE '"examples_per_second": *[0-9.e+-]+' "$out/training.json" | tail -n 1 |
    awk -v n="$batch" '{ if ($2 > 0) printf "%.0f", 1e6 * n / $2 }')
  printf '| %s | %s | %s |%s %s |\n' "$model" "$batch" "${us:--}" "$(cut -d'|' -f1,3- <<<"$cells")" \
    "$(ratio "$(best_of "$cells")" "${us:-0}")"
  echo
  verdict training "$code"
}

part_decoding() {
  local code=0
  if [[ -z $decoder ]]; then
    echo "Not run: no folder of a language model was given (--decoder)."
    return
  fi
  measured decoding "$mge" bench "$decoder" --generate --device "$device" || code=$?
  verdict decoding "$code"
  printf '\n```\n%s\n```\n' "$("$mge" bench "$decoder" --generate --device "$device" 2>&1 || true)"
}

part_counters() {
  local file=$out/counters.onnx code=0
  if ! command -v ncu >/dev/null; then
    echo "Not run: ncu (Nsight Compute) is not installed."
    return
  fi
  write_model "$file" bert-base --batch 32 --type float16
  ncu --csv --launch-count 200 --target-processes all \
    --metrics gpu__time_duration.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed,gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed,sm__warps_active.avg.pct_of_peak_sustained_active \
    "$mge" run "$file" --device "$device" >"$out/counters.csv" 2>"$out/counters.log" || code=$?
  rm -f "$file"
  verdict counters "$code"
  # shellcheck disable=SC2016  # the page has backquotes
  printf '\nThe launches of a run of bert-base in float16 are in `counters.csv`; the slowest:\n\n```\n%s\n```\n' \
    "$(grep 'gpu__time_duration' "$out/counters.csv" | sort -t, -k15 -rn | head -n 12 || true)"
}

part_entry() {
  local rounds=50 code=0
  if ((${#quick[@]})); then rounds=1; fi
  write_model "$out/one-op.onnx" one-op
  "$here/lib/mge/test/bench_run_entry" "$out/one-op.onnx" "$rounds" "$device" >"$out/run_entry.log" 2>&1 || code=$?
  rm -f "$out/one-op.onnx"
  verdict run_entry "$code"
  printf '\n```\n%s\n```\n' "$(<"$out/run_entry.log")"
}

part_networks() {
  local model networks=(resnet50 mobilenetv2 bert-base) code
  if ((${#quick[@]})); then networks=(bert-tiny); fi
  for model in "${networks[@]}"; do
    write_model "$out/$model.onnx" "$model"
    code=0; measured "$model-compared-with-cpu0" "$mge" run "$out/$model.onnx" --device "$device" --against cpu0 || code=$?
    rm -f "$out/$model.onnx"
    verdict "$model-compared-with-cpu0" "$code"
  done
}

# The program that CTest runs with the label gpu.
part_programs() {
  local code=0
  GPU_TEST_DEVICE=$device GPU_TEST_MODELS=$here/share/mge/digits "$here/lib/mge/test/test_gpu" >"$out/test_gpu.log" 2>&1 || code=$?
  verdict test_gpu "$code"
}

part_kit() {
  local code=0
  measured kit "$mge" sdk test "${quick[@]}" "$plugin" || code=$?
  verdict kit "$code"
}

part_onnx() {
  local code=0
  measured onnx "$mge" check "$here/share/mge/onnx" --device "$device" || code=$?
  verdict onnx "$code"
  code=0; measured onnx-cpu0 "$mge" check "$here/share/mge/onnx" --device cpu0 || code=$?
  verdict onnx-cpu0 "$code"
  printf -- '- onnx: %s cases passed, %s of them with every step on %s; cpu0 passes %s\n' \
    "$(number passed "$out/onnx.json")" "$(number on_device "$out/onnx.json")" "$device" "$(number passed "$out/onnx-cpu0.json")"
}

# ---- one part, in the process that the other branch starts

if [[ -n $part ]]; then
  backend=$(of_device plugin) capability=$(of_device capability)
  plugin=$here/lib/mge/plugins/mge_$backend.so
  has_narrow=no # tensor cores for bfloat16 and TF32
  if [[ $backend == cuda && ${capability%.*} -ge 8 ]]; then has_narrow=yes; fi
  # The number of the device, for PyTorch, which numbers GPUs from 0, too.
  torch_device=cuda:${device##*[!0-9]} no_torch=
  if ! "$python" -c "import torch; torch.zeros(1, device='$torch_device')" 2>"$out/torch.log"; then
    no_torch=$(tail -n 1 "$out/torch.log")
  fi
  "part_$part"
  exit $((failures > 0))
fi

# ---- all parts

if [[ -z $budget ]]; then rm -f "$out"/parts/*; fi # a call without a budget runs all of them
if ! "$mge" run "$here/share/mge/digits/digits.onnx" --device "$device" >"$out/first.log" 2>&1; then
  cat "$out/first.log" >&2
  echo "error: device $device cannot be used; see above, and \`$mge doctor\`" >&2
  exit 5
fi
measured devices "$mge" devices

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
} >"$out/parts/head.md"

# write_report: the page and the data of all parts that have begun.
write_report() {
  local row name title file
  cp "$out/parts/head.md" "$page"
  for row in "${parts[@]}"; do
    read -r name _ title <<<"$row"
    printf '\n## %s\n\n' "$title"
    if [[ -e $out/parts/$name.md ]]; then cat "$out/parts/$name.md"; else echo "Not run yet."; fi
  done >>"$page"
  {
    printf '{"schema": "mge.gpu-report/1"'
    for file in "$out"/*.json; do
      if [[ $file == "$data" || $(head -c 1 "$file") != '{' ]]; then continue; fi
      printf ',\n"%s": ' "$(basename "$file" .json)"
      cat "$file"
    done
    printf '\n}\n'
  } >"$data"
}

# The parts that have not begun, and then those that a limit ended in an earlier call.
order=()
for begun in no yes; do
  for row in "${parts[@]}"; do
    read -r name limit _ <<<"$row"
    if [[ -e $out/parts/$name.done ]]; then continue; fi
    if [[ -e $out/parts/$name.md ]]; then has_begun=yes; else has_begun=no; fi
    if [[ $has_begun == "$begun" ]]; then order+=("$name $limit"); fi
  done
done
same=(--device "$device" --python "$python" -o "$out" "${quick[@]}")
if [[ -n $budget ]]; then same+=(--budget "$budget"); fi
if [[ -n $decoder ]]; then same+=(--decoder "$(cd "$decoder" && pwd)"); fi
for row in "${order[@]}"; do
  read -r name limit <<<"$row"
  if [[ -n $budget ]]; then
    left=$((seconds_left - SECONDS))
    if ((left < 5)); then break; fi
    limit=$((limit < left ? limit : left))
  else
    limit=0 # none
  fi
  echo "$name" >&2
  code=0
  timeout --kill-after=5 "$limit" "${BASH_SOURCE[0]}" "${same[@]}" --part "$name" >"$out/parts/$name.md" || code=$?
  if ((code == 124 || code == 137)); then
    printf '\nEnded by the limit of %d s; a further call begins this part again.\n' "$limit" >>"$out/parts/$name.md"
  else
    echo "$code" >"$out/parts/$name.done"
    if ((code > 1)); then printf -- '- %s: **failed** (exit code %d)\n' "$name" "$code" >>"$out/parts/$name.md"; fi
  fi
  write_report
done
write_report
cat "$page"
echo "wrote $page and $data" >&2
result=0
for row in "${parts[@]}"; do
  read -r name _ <<<"$row"
  if [[ ! -e $out/parts/$name.done ]]; then
    echo "not run to its end: $name; call again for it" >&2
    if ((result == 0)); then result=3; fi
  elif [[ $(<"$out/parts/$name.done") != 0 ]]; then
    result=1
  fi
done
exit "$result"
