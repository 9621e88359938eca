#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages: each has its files, names what it needs, and passes lintian without an error or a warning.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$@"; exit 1; }
for tool in dpkg-deb patchelf; do
  if ! command -v $tool >/dev/null; then echo "skipped: $tool is not installed"; exit 77; fi
done

"$root/packaging/deb.sh" --no-install --output "$work/dist"
cd "$work/dist"
printf '%s\n' ./*.deb | sed 's|^\./\([^_]*\)_.*|\1|' >"$work/names"
for name in libmge0 libmge-dev mge python3-mge; do
  grep -qx "$name" "$work/names" || fail "there is no package $name"
done

# holds PACKAGE FILE...: FILE is a regular expression.
holds() {
  local file list
  list=$(dpkg-deb --contents ./"$1"_*.deb | awk '{ print $6 }')
  for file in "${@:2}"; do grep -qE "^\./usr/$file$" <<<"$list" || fail "$1 has no file $file"; done
}
field() { dpkg-deb --field ./"$1"_*.deb "$2"; }
folder=lib/$(c++ -print-multiarch)
version=$(field libmge0 Version)
holds libmge0 "$folder/libmge\.so\.0" "$folder/mge/plugins/mge_cpu\.so" "$folder/mge/plugins/mge_virtual\.so" "$folder/mge/mge-worker"
holds libmge-dev include/mge/mge\.h "$folder/libmge\.so" "$folder/cmake/mge/mgeConfig\.cmake" share/mge/sdk/README\.md \
  share/mge/sdk/python/README\.md
holds mge bin/mge share/man/man1/mge\.1\.gz "$folder/mge/mge-conform"
holds python3-mge lib/python3/dist-packages/mge/__init__\.py
while read -r name; do
  holds "$name" "share/doc/$name/copyright" "share/doc/$name/changelog\.gz"
  [[ $name == libmge0 || $(field "$name" Depends) == *"libmge0 (= $version)"* ]] || fail "$name does not need its version of libmge0"
  case $name in mge-backend-*|mge-transport-*) holds "$name" "$folder/mge/plugins/mge_${name##*-}\.so" ;; esac
done <"$work/names"
[[ $(field libmge0 Recommends) == *libdnnl*libopenblas* ]] || fail "libmge0 recommends $(field libmge0 Recommends)"
[[ $(field python3-mge Depends) == *"python3 (>= 3.9), python3-numpy"* ]] || fail "python3-mge needs $(field python3-mge Depends)"
dpkg-deb --fsys-tarfile ./mge_*.deb | tar -xO ./usr/share/doc/mge/changelog.gz | gzip -d >"$work/changelog"
grep -q "^mge ($version) " "$work/changelog" || fail "the changelog has no entry of $version"

if ! command -v lintian >/dev/null; then
  echo "the packages are complete; lintian is not installed, which checks more"
  exit 0
fi
options=()
if ((EUID == 0)); then options=(--allow-root); fi
lintian "${options[@]}" --fail-on error,warning --tag-display-limit 0 ./*.deb || fail "lintian's complaints are above"
echo "the packages are complete and pass lintian"
