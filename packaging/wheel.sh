#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the Python package with libmge, its backends and the mge command as a wheel for pip.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/wheel.sh [options]

Builds a preset and writes dist/mge-VERSION-py3-none-manylinux_2_36_x86_64.whl: the Python package, libmge, the backends cpu
and virtual with oneDNN and OpenBLAS, the mge command, headers for C and C++, and the licences of everything in it. Each
backend that needs a GPU and is built, cuda or rocm, becomes a wheel of its own, dist/mge_backend_cuda-VERSION-....whl, which
adds its file to the first one. It has no library of the GPU's vendor; pip installs NVIDIA's with mge-backend-cuda[nvidia].
auditwheel checks that the wheels load no other library of the machine than their tag allows.

  -o, --output FOLDER the folder to write to; default: dist
  -p, --preset NAME   the preset to build; default: release. tarball has CUDA code for every generation of GPUs since Turing;
                      release has it for Turing and this machine's GPUs, and later ones compile it when they first run
  --no-install        install no Debian packages; auditwheel and wheel still come from pip
  -j, --jobs N        compilers at a time (default: one a core, less where memory is short)
  -h, --help          this text

Exit codes: 0 all well; 1 the build or the check failed; 2 usage; 5 packages are missing and cannot be installed.
TEXT
}

output=$root/dist
preset=release
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    -o|--output) output=$(value_of "$@"); shift ;;
    -p|--preset) preset=$(value_of "$@"); shift ;;
    --no-install) install_packages=no ;;
    -j|--jobs) jobs=$(value_of "$@"); shift ;;
    --jobs=*) jobs=${1#*=} ;;
    *) fail 2 "unknown argument $1" "see packaging/wheel.sh --help" ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"

ensure_packages build bench tarball
tools=$root/build/wheel-tools
if ! [[ -x $tools/bin/auditwheel ]]; then
  say "making a Python environment with auditwheel in $tools"
  rm -rf "$tools"
  if ! /usr/bin/python3 -m venv "$tools" >&2 || ! "$tools/bin/pip" -q --disable-pip-version-check install auditwheel wheel >&2; then
    rm -rf "$tools"
    fail 5 "auditwheel and wheel could not be installed; the reason is above"
  fi
fi
configure "$preset"
build "$preset" product

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$root/build/$preset/CMakeCache.txt")
glibc=36  # Debian 12 has 2.36
tag=manylinux_2_${glibc}_$(uname -m)

# describe TREE NAME PAGE SUMMARY [LINE OF METADATA...]: writes the description of the wheel whose files are in TREE. PAGE is the
# Markdown file that pip shows.
describe() {
  local info=$1/$2-$version.dist-info
  mkdir -p "$info"
  { printf '%s\n' "Metadata-Version: 2.1" "Name: ${2//_/-}" "Version: $version" "Summary: $4" "License: Apache-2.0" \
      "Requires-Python: >=3.9" "${@:5}" "Description-Content-Type: text/markdown" ""
    cat "$3"; } >"$info/METADATA"
  printf '%s\n' "Wheel-Version: 1.0" "Generator: mge" "Root-Is-Purelib: false" "Tag: py3-none-$tag" >"$info/WHEEL"
  install -Dm 644 "$root/LICENSE" "$info/licenses/LICENSE"
}

# pack TREE: writes the wheel of TREE to $output, and checks it. RECORD, which lists its files, is written by the package wheel.
pack() {
  local file report fits
  rm -rf "$work/packed"
  mkdir "$work/packed"
  "$tools/bin/wheel" pack --dest-dir "$work/packed" "$1" >/dev/null
  file=$(find "$work/packed" -name '*.whl')
  report=$("$tools/bin/auditwheel" show "$file") || fail 1 "auditwheel cannot read $file"
  # auditwheel names the oldest system that the wheel runs on.
  fits=$(tr '\n' ' ' <<<"$report" | sed -n "s/.*platform tag to \"manylinux_2_\([0-9]*\)_.*/\1/p")
  if [[ -z $fits ]] || ((fits > glibc)); then fail 1 "auditwheel says that the wheel does not keep to the tag $tag" "$report"; fi
  mkdir -p "$output"
  mv "$file" "$output/"
  file=$output/${file##*/}
  say "wrote $file ($(($(stat -c %s "$file") / 1048576)) MiB)"
}

# is_elf FILE
is_elf() { [[ $(head -c 4 "$1") == $'\x7fELF' ]]; }

# needed FILE...: the paths of the shared libraries that these files load, except those that every machine of the tag has.
needed() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE '/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libz)\.so\.[0-9]+$' || true
}

# Libraries that backends open by name.
opened() {
  ldconfig -p | awk '/lib(dnnl\.so\.[0-9]+|openblas\.so\.0) / { print $NF }' | sort -u
}

# licences FOLDER LIBRARY...: copies the copyright file of the Debian package of each library, and those of the libraries whose
# headers are compiled in, with the texts of licences that they refer to.
licences() {
  local folder=$1 package common
  shift
  mkdir -p "$folder"
  { for library in "$@"; do dpkg -S "$(realpath "$library")" 2>/dev/null || dpkg -S "${library##*/}" | head -n 1; done |
      sed 's/:.*//'
    packages build | grep -- '-dev$'; } | sort -u | while read -r package; do
    cp "/usr/share/doc/$package/copyright" "$folder/$package.txt"
  done
  grep -oh '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$folder"/*.txt | sort -u | while read -r common; do
    if [[ -f $common ]]; then cp -L "$common" "$folder/"; fi
  done
}

# The package's folder is the prefix of the installation, so that everything finds everything as in any other.
tree=$work/mge-$version
prefix=$tree/mge
cmake --install "$root/build/$preset" --prefix "$prefix" --strip >/dev/null
cp -r "$prefix"/lib/python3/dist-packages/mge/. "$prefix/"
rm -rf "$prefix/lib/python3" "$prefix"/share/{man,bash-completion,zsh,fish} "$prefix/lib/mge/plugins/mge_null.so"
rm -f "$prefix/lib/mge/plugins/mge_mpi.so" # it must be built with the Open MPI of the machine, whose mpirun starts it
rm -f "$prefix/lib/mge/libmge_text.so"     # in Python, the package tokenizers serves
# Wheels have no symbolic links. A linker reads the name of the library in libmge.so.
find "$prefix/lib" -maxdepth 1 -name 'libmge.so*' -type l -delete
mv "$prefix/lib/libmge.so.$version" "$prefix/lib/libmge.so.0"
echo 'INPUT(libmge.so.0)' >"$prefix/lib/libmge.so"
sed -i "s/libmge\.so\.${version//./\\.}/libmge.so.0/g" "$prefix"/lib/cmake/mge/mgeTargets*.cmake
install -Dm 755 /dev/stdin "$tree/mge-$version.data/scripts/mge" <<'PYTHON'
#!python
"""The mge command of the package, which is found without importing it."""
import importlib.util
import os
import sys

folder = os.path.dirname(importlib.util.find_spec("mge").origin)
sys.path.append(folder)
import _installed

reason = _installed.problem(folder)
if reason:
    sys.exit(f"mge: {reason}")
os.execv(os.path.join(folder, "bin", "mge"), ["mge"] + sys.argv[1:])
PYTHON

mkdir "$work/backends"
find "$prefix/lib/mge/plugins" -name '*.so' ! -name mge_cpu.so ! -name mge_virtual.so -exec mv -t "$work/backends" {} +
mapfile -t own < <(find "$prefix" -type f | while read -r file; do if is_elf "$file"; then echo "$file"; fi; done)
mapfile -t vendor < <(opened)
((${#vendor[@]} == 2)) || fail 5 "oneDNN and OpenBLAS are not installed" "fix: install libdnnl-dev and libopenblas0-pthread"
mapfile -t libraries < <({ printf '%s\n' "${vendor[@]}"; needed "${own[@]}" "${vendor[@]}"; } | grep -v "^$prefix/" | sort -u)
for library in "${libraries[@]}"; do install -m 755 "$(realpath "$library")" "$prefix/lib/${library##*/}"; done
# DT_RPATH, unlike DT_RUNPATH, also applies to the libraries that a library needs.
for file in "${own[@]}" "${libraries[@]/#*\//$prefix/lib/}"; do
  strip --strip-unneeded "$file"
  patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to "$(dirname "$file")" "$prefix/lib")" "$file"
done
licences "$tree/mge-$version.dist-info/licenses" "${libraries[@]}"
describe "$tree" mge "$root/sdk/python/README.md" "A runtime for ONNX models with backends as shared objects" "Requires-Dist: numpy"
pack "$tree"

# NVIDIA's wheels, which pip installs beside the package: the folders of their libraries, and what the extra `nvidia` requires.
# The plugin opens these libraries by name, so that its RUNPATH finds them.
site="\$ORIGIN/../../../.."
declare -A folders=([cuda]="$site/nvidia/cu13/lib:$site/nvidia/cudnn/lib:$site/nvidia/nccl/lib")
cuda_extras=("Provides-Extra: nvidia")
for requirement in "nvidia-cublas >=13,<14" "nvidia-cuda-nvrtc >=13,<14" "nvidia-cudnn-cu13 >=9.8,<10" "nvidia-nccl-cu13 >=2.14,<3"; do
  cuda_extras+=("Requires-Dist: $requirement; extra == \"nvidia\"")
done

for backend in cuda rocm; do
  [[ -f $work/backends/mge_$backend.so ]] || continue
  tree=$work/mge_backend_$backend-$version
  file=$tree/mge/lib/mge/plugins/mge_$backend.so
  install -Dm 755 "$work/backends/mge_$backend.so" "$file"
  if [[ -n ${folders[$backend]:-} ]]; then patchelf --set-rpath "${folders[$backend]}" "$file"; fi
  extras=()
  if [[ $backend == cuda ]]; then extras=("${cuda_extras[@]}"); fi
  describe "$tree" "mge_backend_$backend" "$root/plugins/$backend/README.md" "The backend $backend of the package mge" \
    "Requires-Dist: mge ==$version" "${extras[@]}"
  pack "$tree"
done
