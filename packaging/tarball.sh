#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs a build into one archive that runs from any folder, without the packages that it was built with.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/tarball.sh [options]

Builds the preset `release` and packs it: the command, all backends, the shared libraries that they need, ONNX's tests, and
gpu-report.sh, which tests a machine with a GPU. Unpack the archive anywhere and run its `mge`.

  --output FILE  the archive (default: build/mge.tar.xz)
  --no-build     pack what is built
  -j, --jobs N   compilers at a time
  -h, --help     this text

The machine where it runs needs the C library of this one, or a later version.
Exit codes: 0 all well; 1 the build failed; 2 usage.
TEXT
}

output=$root/build/mge.tar.xz
built=no
while (($#)); do
  case $1 in
    -h|--help) usage; exit 0 ;;
    --output) output=$(value_of "$@"); shift ;;
    --output=*) output=${1#*=} ;;
    --no-build) built=yes ;;
    -j|--jobs) jobs=$(value_of "$@"); shift ;;
    --jobs=*) jobs=${1#*=} ;;
    *) fail 2 "unknown option $1" "see packaging/tarball.sh --help" ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"
onnx=/usr/share/libonnx-testdata/data

if [[ $built == no ]]; then
  if [[ -f $root/build/release/CMakeCache.txt ]]; then configure release; else configure release -DMGE_TESTS=OFF; fi
  build release product
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/mge
for component in tool library; do
  cmake --install "$root/build/release" --prefix "$tree" --component "$component" >/dev/null
done
strip --strip-unneeded "$tree/bin/mge" "$tree"/lib/libmge.so.* "$tree/lib/mge/mge-conform" "$tree"/lib/mge/plugins/*.so

# The libraries of other packages, except those of the C library. The CPU backend opens the last two when it needs them.
mkdir "$tree/lib/others"
{
  ldd "$tree/bin/mge" "$tree"/lib/libmge.so.* "$tree/lib/mge/mge-conform" "$tree"/lib/mge/plugins/*.so | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
  ldconfig -p | awk '/libdnnl\.so\.[0-9]+ |libopenblas\.so\.0 / { print $NF }'
} >"$work/needed"
while read -r library; do
  echo "$library"
  ldd "$library" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done <"$work/needed" | sort -u >"$work/all"
while read -r library; do
  name=$(basename "$library")
  case $name in
    libc.so.*|libm.so.*|libdl.so.*|librt.so.*|libpthread.so.*|libresolv.so.*|libmge.so.*) ;;
    *) cp -L "$library" "$tree/lib/others/$name" ;;
  esac
done <"$work/all"

cp "$root/packaging/gpu-report.sh" "$tree/"
cat >"$tree/mge" <<'TEXT'
#!/bin/sh
# Runs the command with the libraries of this folder.
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
LD_LIBRARY_PATH=$here/lib/others${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/bin/mge" "$@"
TEXT
chmod 0755 "$tree/mge" "$tree/gpu-report.sh"
if [[ -d $onnx ]]; then cp -r "$onnx" "$tree/onnx"; else say "no $onnx: the archive has no tests of ONNX"; fi

mkdir -p "$(dirname "$output")"
tar -C "$work" --owner=0 --group=0 -cf - mge | xz -T0 -6 >"$output"
say "wrote $output, $(du -h "$output" | cut -f1)"
