#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the wheel and installs it into an environment of its own: the command, the package and oneDNN run without the tree,
# load no library of the machine that the wheel brings, and the SDK in it builds a backend.
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
echo "the wheel works"
