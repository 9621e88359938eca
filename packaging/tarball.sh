#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs a tree that runs from any directory on machines with the same or a newer C library, without installed packages.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/tarball.sh [options]

Builds a preset and writes build/mge-VERSION-linux-ARCHITECTURE.tar.xz: the mge command, libmge, all backends, headers,
the shared libraries that they need, ONNX's test cases, and gpu-report.sh with its programs, which tests and measures a GPU.

  -o, --output FILE   the file to write
  -p, --preset NAME   the preset to build: tarball (default) has CUDA code for every generation of GPUs since Turing,
                      release for the ordinary build's only, gpu-90 for capability 9.0 only and without AMD's GPUs: a small
                      file to test and measure such a GPU, with ONNX's cases of single operators only
  --no-install        install nothing; take what is there
  -j, --jobs N        compilers at a time (default: one a core, less where memory is short)
  -h, --help          this text

Exit codes: 0 all well; 1 the build failed; 2 usage; 5 packages are missing and cannot be installed.
TEXT
}

output=
preset=tarball
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    -o|--output) output=$(value_of "$@"); shift ;;
    -p|--preset) preset=$(value_of "$@"); shift ;;
    --no-install) install_packages=no ;;
    -j|--jobs) jobs=$(value_of "$@"); shift ;;
    --jobs=*) jobs=${1#*=} ;;
    *) fail 2 "unknown argument $1" "see packaging/tarball.sh --help" ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"

ensure_packages build test tarball
configure "$preset" -DMGE_TESTS=ON
build "$preset" product gpu_tests

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$root/build/$preset/CMakeCache.txt")
name=mge-$version-linux-$(uname -m)
tree=$work/$name
output=${output:-$root/build/$name.tar.xz}
say "packing $output"
cmake --install "$root/build/$preset" --prefix "$tree" --strip >/dev/null
rm -f "$tree/lib/mge/plugins/mge_mpi.so"  # it must be built with the Open MPI of the machine, whose mpirun starts it

install -Dsm 755 -t "$tree/lib/mge/test" "$root/build/$preset/tests/test_gpu" "$root/build/$preset/tests/bench_run_entry"

# is_elf FILE
is_elf() { [[ $(head -c 4 "$1") == $'\x7fELF' ]]; }

# needed FILE...: the paths of the shared libraries that these files load, except those of the C library, which must match the
# machine's dynamic linker.
needed() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv)\.so\.[0-9]+$' || true
}

# Libraries that backends open by name, if they are installed: their packages need not be there.
opened() {
  ldconfig -p | awk '/lib(dnnl\.so\.[0-9]+|openblas\.so\.0) / { print $NF }' | sort -u
}

mapfile -t own < <(find "$tree" -type f \( -path '*/bin/*' -o -path '*/lib/*' \) | while read -r file; do
  if is_elf "$file"; then echo "$file"; fi
done)
mapfile -t vendor < <(opened)
libraries=$tree/lib
while read -r library; do
  [[ $library == "$tree"/* ]] || cp -Ln "$library" "$libraries/"
done < <(printf '%s\n' "${vendor[@]}"; needed "${own[@]}" "${vendor[@]}")
# DT_RPATH, unlike DT_RUNPATH, also applies to the libraries that a library needs.
while read -r file; do
  is_elf "$file" || continue
  patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to "$(dirname "$file")" "$libraries")" "$file"
done < <(find "$tree/bin" "$tree/lib" -type f)

cp "$root/packaging/gpu-report.sh" "$tree/"
install -Dm 755 "$root/tests/bench/torch_peer.py" "$tree/share/mge/bench/torch_peer.py"
cases=$(dpkg -L libonnx-testdata | awk '/\/data\/node$/')
mkdir -p "$tree/share/mge/onnx"
suites=(node simple pytorch-converted pytorch-operator)
if [[ $preset == gpu-* ]]; then suites=(node); fi
for suite in "${suites[@]}"; do cp -r "${cases%/*}/$suite" "$tree/share/mge/onnx/"; done
tar -C "$work" --owner=0 --group=0 --sort=name -c "$name" | xz -T "$jobs" -6 >"$output"
say "wrote $output ($(($(stat -c %s "$output") / 1048576)) MiB)"
