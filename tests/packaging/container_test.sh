#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages and the container of packaging/container, and uses it: its user is not root, oneDNN computes, and
# Python works. Where no Docker runs, the steps of the Dockerfile are carried out in a folder that debootstrap makes.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cleanup() {
  awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/self/mounts | tac | xargs -r umount --lazy
  rm -rf --one-file-system "$work"
}
fail() { printf 'FAILED: %s\n' "$@"; exit 1; }
skip() { echo "skipped: $1"; exit 77; }

file=$root/packaging/container/Dockerfile
if docker info >/dev/null 2>&1; then
  use=docker
else
  use=debootstrap
  ((EUID == 0)) || skip "no Docker runs here, and debootstrap needs root"
  command -v debootstrap >/dev/null || skip "no Docker runs here, and debootstrap is not installed"
  if [[ -z ${MGE_CONTAINER_TEST:-} ]]; then  # mounts end with this process
    unshare --mount true 2>/dev/null || skip "no Docker runs here, and this system allows no mounts"
    MGE_CONTAINER_TEST=1 exec unshare --mount --propagation private bash "${BASH_SOURCE[0]}"
  fi
fi
command -v patchelf >/dev/null || skip "patchelf is not installed"
work=$(mktemp -d)
trap cleanup EXIT
"$root/packaging/deb.sh" --no-install --output "$work/dist"
mkdir "$work/models"
cp "$root/packaging/digits/digits.onnx" "$work/models/"
chmod -R a+rX "$work/dist" "$work/models"

# instructions: the Dockerfile's instructions, one a line, without comments.
instructions() { sed -e '/^#/d' -e ':next; /\\$/ { N; s/\\\n *//; b next }' "$file"; }

# steps TREE: carries out the instructions that make the image.
steps() {
  local tree=$1 line rest mirror suite
  while IFS= read -r line; do
    rest=${line#* }
    case $line in
      "FROM debian:"*-slim)
        suite=${rest#debian:}; suite=${suite%-slim}
        # The mirror that this machine uses.
        mirror=$(sed -n 's/^\(URIs: \|deb \)\(http[^ ]*\/debian\)\/*\( .*\)*$/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} \
          2>/dev/null | head -n 1 || true)
        debootstrap --variant=minbase "$suite" "$tree" "${mirror:-http://deb.debian.org/debian}" >"$work/log" 2>&1 ||
          { tail -n 3 "$work/log"; skip "debootstrap cannot make a folder with Debian $suite"; }
        cp /etc/resolv.conf "$tree/etc/"
        mount -t proc proc "$tree/proc"
        ;;
      ARG\ *) eval "arguments+=($rest)" ;;
      RUN\ *)
        if [[ $rest == "--mount=type=bind,target="* ]]; then
          rest=${rest#*target=}
          mkdir -p "$tree/${rest%% *}"
          mount --bind "$work/dist" "$tree/${rest%% *}"
          rest=${rest#* }
        fi
        chroot "$tree" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "${proxies[@]}" "${arguments[@]}" \
          sh -c "$rest" >"$work/log" 2>&1 || { tail -n 30 "$work/log"; fail "RUN $rest"; }
        ;;
      USER\ *) user=$rest ;;
      WORKDIR\ *) folder=$rest ;;
      ENTRYPOINT\ *) mapfile -t entry < <(words "$rest") ;;
      CMD\ *) mapfile -t command < <(words "$rest") ;;
      "") ;;
      *) fail "this test does not know the instruction $line" ;;
    esac
  done < <(instructions)
}
# words LIST: the words of a list such as ["a", "b"], one a line.
words() { tr -d '[]' <<<"$1" | tr ',' '\n' | sed 's/^ *"//; s/" *$//'; }
arguments=() entry=() command=() user=root folder=/
mapfile -t proxies < <(env | grep -iE '^(http|https|no)_proxy=' || true)

# contained [PROGRAM ARGUMENT...]: runs the entry and the default command, or the program, in the container.
if [[ $use == docker ]]; then
  docker build --quiet -f "$file" -t mge-test "$work/dist" >/dev/null || fail "docker build"
  contained() {
    local options=()
    if (($#)); then options=(--entrypoint "$1"); fi
    docker run --rm --network none --read-only --tmpfs /tmp -v "$work/models:/models" "${options[@]}" mge-test "${@:2}"
  }
else
  tree=$work/image
  steps "$tree"
  mount --bind "$work/models" "$tree$folder"
  contained() {
    if ((!$#)); then set -- "${entry[@]}" "${command[@]}"; fi
    # shellcheck disable=SC2016  # for the shell in the folder
    chroot --userspec="$user" "$tree" env -i PATH=/usr/bin:/bin HOME="/var/lib/$user" sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
  }
fi

contained >"$work/log" 2>&1 || { cat "$work/log"; fail "the default command"; }
grep -q onednn "$work/log" || { cat "$work/log"; fail "oneDNN is not used"; }
[[ $(contained id -u) != 0 ]] || fail "the container's user is root"
contained mge run digits.onnx >"$work/log" 2>&1 || { cat "$work/log"; fail "mge run"; }
contained python3 -c 'import mge, numpy; print(mge.Session("digits.onnx").run(numpy.zeros((1, 1, 8, 8), "float32")))' ||
  fail "Python"
if contained touch /usr/bin/new 2>/dev/null; then fail "the user may write to /usr/bin"; fi
if [[ $use == debootstrap ]]; then
  echo "the image has $(du -smx "$tree" | cut -f 1) MiB"
fi
echo "the container works"
