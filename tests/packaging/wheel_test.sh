#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the wheel and installs it into an environment of its own: the command, the package and oneDNN run without the tree,
# load no library of the machine that the wheel brings, and the SDK in it builds a backend. The wheels of GPU backends add them,
# and find the libraries of NVIDIA's wheels. A damaged installation and an old system are named.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v patchelf >/dev/null; then echo "skipped: patchelf is not installed"; exit 77; fi
if ! "$root/build/wheel-tools/bin/auditwheel" --version >/dev/null 2>&1 &&
   ! /usr/bin/python3 -m pip download --quiet --no-deps --dest "$work" auditwheel >/dev/null 2>&1; then
  echo "skipped: pip cannot download auditwheel"; exit 77
fi
fail() { printf 'FAILED: %s\n' "$@"; exit 1; }

"$root/packaging/wheel.sh" --no-install --output "$work/dist"
wheel=$(echo "$work"/dist/mge-*.whl)
bytes=$(stat -c %s "$wheel")
if ((bytes > 45 << 20)); then fail "the wheel has $bytes bytes, more than 45 MiB"; fi

# NumPy is that of the system, so that no network is needed.
/usr/bin/python3 -m venv --system-site-packages "$work/some folder"
bin="$work/some folder/bin"
"$bin/python" -m pip --quiet --disable-pip-version-check install --no-index "$wheel"
clean=(env -i HOME="$work" PATH=/usr/bin:/bin)
cd "$work"

"${clean[@]}" "$bin/python" "$bin/mge" demo
[[ $("${clean[@]}" "$bin/python" -m mge version) == "mge "* ]] || fail "python -m mge version"
code=0; "${clean[@]}" "$bin/python" -m mge run missing.onnx 2>/dev/null || code=$?
((code == 7)) || fail "python -m mge returns $code for a missing file"

cat >run.py <<'PYTHON'
import mge, numpy as np, pathlib
digits = pathlib.Path(mge.__file__).parent / "share" / "mge" / "digits"
session = mge.Session(digits / "digits.onnx")
assert session.compiled
images = np.load(digits / "digits_images.npy")
session.run(image=images)
assert "onednn" in session.plan(image=images), session.plan(image=images)
print(open("/proc/self/maps").read())
PYTHON
maps=$("${clean[@]}" "$bin/python" run.py)
libraries=$(grep -oE '/[^ ].*\.so[.0-9]*$' <<<"$maps" | sort -u)
grep -q "/mge/lib/libdnnl\.so" <<<"$libraries" || fail "oneDNN is not the wheel's:" "$libraries"
prefix=$("${clean[@]}" "$bin/python" -c 'import mge, pathlib; print(pathlib.Path(mge.__file__).parent)')
foreign=$("${clean[@]}" ldd "$prefix"/bin/mge "$prefix"/lib/mge/mge-* "$prefix"/lib/*.so.* "$prefix"/lib/mge/plugins/*.so |
  awk -v here="$work/some folder/" '$2 == "=>" && index($0, here) == 0 && $1 !~ /^lib(c|m|dl|rt|pthread|z|stdc\+\+|gcc_s)\.so/' | sort -u)
[[ -z $foreign ]] || fail "libraries from outside:" "$foreign"
foreign=$(grep -F "$root/" <<<"$libraries" || true)
[[ -z $foreign ]] || fail "libraries of the tree:" "$foreign"

# The licence of each library in the wheel.
for package in libdnnl2 libopenblas0-pthread libgomp1 libgfortran5 libre2 libfmt libnettle; do
  compgen -G "$work/some folder/lib/python3*/site-packages/mge-*.dist-info/licenses/$package*.txt" >/dev/null ||
    fail "the wheel lacks the licence of $package"
done

"${clean[@]}" "$bin/python" "$bin/mge" sdk new mydev "$work/mydev"
cmake -S "$work/mydev" -B "$work/mydev/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$work/mydev/build" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

# A C program against the library in the wheel.
printf '#include <mge/mge.h>\nint main(void) { return mge_version() == 0; }\n' >main.c
flags=$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs mge)  # quoted for a shell
eval "cc main.c $flags '-Wl,-rpath,$prefix/lib' -o main"
"${clean[@]}" ./main

# The wheels of the GPU backends.
for backend in cuda rocm; do
  extra=$(compgen -G "$work/dist/mge_backend_$backend-*.whl" || true)
  if [[ -z $extra ]]; then echo "backend $backend is not built here: its wheel is not tested"; continue; fi
  "$bin/python" -m pip --quiet --disable-pip-version-check install --no-index "$extra"
  plugin=$prefix/lib/mge/plugins/mge_$backend.so
  "${clean[@]}" "$bin/python" "$bin/mge" plugins --json >plugins.json || fail "mge plugins with $backend"
  "$bin/python" - "$backend" "$plugin" <<'PYTHON' || fail "mge plugins: $(<plugins.json)"
import json, os, sys
rows = [row for row in json.load(open("plugins.json"))["plugins"] if os.path.basename(row["path"]) == f"mge_{sys.argv[1]}.so"]
assert [os.path.realpath(row["path"]) for row in rows] == [os.path.realpath(sys.argv[2])], rows
assert rows[0]["verdict"] in ("accepted", "loaded"), rows
PYTHON
  code=0; text=$("${clean[@]}" "$bin/python" "$bin/mge" run "$prefix/share/mge/digits/digits.onnx" --device "${backend}0" 2>&1) || code=$?
  if ((code != 0)) && [[ $text != *driver* || $text != *"  fix: "* ]]; then fail "the reason why ${backend}0 cannot run: $text"; fi
  if ldd "$plugin" | grep -E 'cublas|cudnn|nvrtc|nccl|rocblas|MIOpen|libcuda|hip'; then fail "mge_$backend.so needs a vendor's library"; fi
  if unzip -l "$extra" | grep '\.so' | grep -v "mge_$backend\.so"; then fail "the wheel of $backend has other libraries"; fi
done

# NVIDIA's libraries lie where its wheels have them. A driver and a compiler in software stand for the vendor's.
software=$root/build/release/lib/mge/test/libcuda.so.1
if [[ -f $prefix/lib/mge/plugins/mge_cuda.so && -f $software ]]; then
  site=${prefix%/mge}
  mkdir -p "$site/nvidia/cu13/lib" driver
  cp "$software" driver/
  echo "int mge_no_function_of_nvrtc;" | cc -shared -fPIC -x c - -Wl,-soname,libnvrtc.so.13 -o "$site/nvidia/cu13/lib/libnvrtc.so.13"
  "$bin/python" "$bin/mge" zoo tiny-ops -o tiny.onnx >/dev/null 2>&1
  text=$("${clean[@]}" LD_LIBRARY_PATH="$work/driver" "$bin/python" "$bin/mge" plan tiny.onnx --device cuda0 --why 2>&1)
  grep -q "NVRTC cannot be used: .*$site/nvidia/cu13/lib/libnvrtc.so.13" <<<"$text" ||
    fail "the library in the folder of NVIDIA's wheels is not opened:" "$text"
  rm -r "$site/nvidia"
else
  echo "no backend cuda or no driver in software: the search for NVIDIA's wheels is not tested"
fi

# An old system, and an incomplete installation.
info=$(echo "${prefix%/mge}"/mge-*.dist-info)
cp "$info/WHEEL" kept
sed -i 's/manylinux_2_36/manylinux_2_99/' "$info/WHEEL"
code=0; text=$("${clean[@]}" "$bin/python" "$bin/mge" version 2>&1) || code=$?
[[ $code == 1 && $text == "mge: this system has glibc "*"needs glibc 2.99 or newer"*"  fix: "* ]] || fail "an old system ($code): $text"
cp kept "$info/WHEEL"
library=$(compgen -G "$prefix/lib/libfmt.so.*" | head -n 1)
mv "$library" kept
incomplete() {
  code=0; text=$("${clean[@]}" "$@" 2>&1) || code=$?
  [[ $code == 1 && $text == *"installed package is incomplete: $library is missing"*"  fix: install it again"* ]] ||
    fail "$* without a library ($code): $text"
}
incomplete "$bin/python" "$bin/mge" version
incomplete "$bin/python" -m mge version
incomplete "$bin/python" -c 'import mge'
mv kept "$library"
"${clean[@]}" "$bin/python" "$bin/mge" version >/dev/null || fail "the mended installation"
echo "the wheel works"
