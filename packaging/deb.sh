#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages, for the version of Debian or Ubuntu on which it runs.
set -euo pipefail
# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  cat <<'TEXT'
usage: packaging/deb.sh [options]

Builds a preset and writes dist/*.deb: libmge0 (the library, the backends cpu and virtual), mge (the command),
libmge-dev (headers, SDK), python3-mge, and mge-backend-cuda, mge-backend-rocm and mge-transport-mpi if they are built.
They need each other: install them together, with `apt install ./dist/*.deb`.

  -o, --output FOLDER the folder to write to; default: dist
  -p, --preset NAME   the preset to build; default: release. tarball has CUDA code for every generation of GPUs since Turing
  --no-install        install no packages that the build needs; take what is there
  -j, --jobs N        compilers at a time (default: one a core, less where memory is short)
  -h, --help          this text

DEBFULLNAME and DEBEMAIL name the maintainer, as for Debian's own tools.
Exit codes: 0 all well; 1 the build failed; 2 usage; 5 packages are missing and cannot be installed.
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
    *) fail 2 "unknown argument $1" "see packaging/deb.sh --help" ;;
  esac
  shift
done
jobs=${jobs:-$(default_jobs)}
positive --jobs "$jobs"

ensure_packages build tarball
folder=$root/build/$preset
libraries=lib/$(c++ -print-multiarch)
configure "$preset" "-DCMAKE_INSTALL_LIBDIR=$libraries"
trap 'configure "$preset" 2>/dev/null' EXIT # other scripts install to lib
build "$preset" product
say "packing"
umask 022
rm -rf "$folder/packages"
if ! cpack --config "$folder/CPackConfig.cmake" -G DEB -B "$folder/packages" >"$folder/cpack.log" 2>&1; then
  cat "$folder/cpack.log" >&2
  fail 1 "cpack could not make the packages" "log: $folder/cpack.log"
fi
# CPack gives a library scripts that call ldconfig. The trigger of the package does that.
package=$(echo "$folder"/packages/libmge0_*.deb)
dpkg-deb --raw-extract "$package" "$folder/packages/libmge0"
rm "$folder"/packages/libmge0/DEBIAN/post{inst,rm}
dpkg-deb --root-owner-group --build "$folder/packages/libmge0" "$package" >/dev/null
mkdir -p "$output"
for package in "$folder"/packages/*.deb; do
  say "wrote $output/${package##*/} ($(($(stat -c %s "$package") / 1024)) KiB)"
  mv "$package" "$output/"
done
