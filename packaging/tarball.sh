#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs a tree that runs from any directory on machines with the same or a newer C library, without installed packages.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/tarball.sh [options]

Builds a preset and writes two files:

  build/mge-VERSION-linux-ARCHITECTURE.tar.xz            the mge command, libmge, all backends, headers, and the shared libraries
                                                         that they need
  build/mge-VERSION-linux-ARCHITECTURE-gpu-tests.tar.xz  gpu-report.sh, which tests and measures a GPU, with its programs and
                                                         ONNX's test cases; unpack it where the first one was unpacked

  -o, --output FILE   the first file to write; the second one lies beside it
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
tests=$work/tests/$name
cmake --install "$root/build/$preset" --prefix "$tree" --strip >/dev/null
rm -f "$tree/lib/mge/plugins/mge_mpi.so"  # it must be built with the Open MPI of the machine, whose mpirun starts it
install -Dsm 755 -t "$tests/lib/mge/test" "$root/build/$preset/tests/test_gpu" "$root/build/$preset/tests/bench_run_entry"

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

# complete TREE LIBRARY...: adds to TREE/lib the libraries that its programs and libraries need, and those that are given. Those
# of $tree are not added again. Then the files of TREE find each other.
complete() {
  local here=$1 own file library
  shift
  mkdir -p "$here/lib"
  mapfile -t own < <(find "$here" -type f \( -path '*/bin/*' -o -path '*/lib/*' \) | while read -r file; do
    if is_elf "$file"; then echo "$file"; fi
  done)
  while read -r library; do
    [[ $library == "$tree"/* || -e $tree/lib/${library##*/} ]] || cp -Ln "$library" "$here/lib"
  done < <(printf '%s\n' "$@"; LD_LIBRARY_PATH=$tree/lib needed "${own[@]}" "$@")
  # DT_RPATH, unlike DT_RUNPATH, also applies to the libraries that a library needs.
  while read -r file; do
    is_elf "$file" || continue
    patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to "$(dirname "$file")" "$here/lib")" "$file"
  done < <(find "$here/bin" "$here/lib" -type f 2>/dev/null)
}
mapfile -t vendor < <(opened)
complete "$tree" "${vendor[@]}"
complete "$tests"

cp "$root/packaging/gpu-report.sh" "$tests/"
install -Dm 755 "$root/tests/bench/torch_peer.py" "$tests/share/mge/bench/torch_peer.py"
cases=$(dpkg -L libonnx-testdata | awk '/\/data\/node$/')
mkdir -p "$tests/share/mge/onnx"
suites=(node simple pytorch-converted pytorch-operator)
if [[ $preset == gpu-* ]]; then suites=(node); fi
for suite in "${suites[@]}"; do cp -r "${cases%/*}/$suite" "$tests/share/mge/onnx/"; done
# archive FOLDER FILE
archive() {
  say "packing $2"
  tar -C "$1" --owner=0 --group=0 --sort=name -c "$name" | xz -T "$jobs" -6 >"$2"
  say "wrote $2 ($(($(stat -c %s "$2") / 1048576)) MiB)"
}
archive "$work" "$output"
archive "$work/tests" "${output%.tar.xz}-gpu-tests.tar.xz"
