# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What bench.sh and tests/models/run.sh share: the virtual environment with the runtimes that MGE is compared with.

# shellcheck source=packaging/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Outside of the tree: the environment and the models. Removing it is always safe.
peers_cache=${XDG_CACHE_HOME:-$HOME/.cache}/mge
peers_python=

# peers_environment: sets $peers_python to a Python with the packages of peers.txt, unless --python named one.
# Returns 1 and sets $peers_reason if there is none and none can be made.
peers_environment() {
  [[ -z $peers_python ]] || return 0
  local folder log
  folder=$peers_cache/peers-$(sha256sum "$root/packaging/peers.txt" | cut -c 1-16)
  log=$folder.log
  mkdir -p "$peers_cache"
  exec {peers_lock}>"$folder.lock"
  flock "$peers_lock"
  if [[ ! -f $folder/complete ]]; then
    say "making a Python environment with ONNX Runtime and OpenVINO in $folder"
    rm -rf "$folder"
    if ! python3 -m venv "$folder" >"$log" 2>&1 ||
       ! "$folder/bin/python" -m pip install --disable-pip-version-check -r "$root/packaging/peers.txt" >>"$log" 2>&1; then
      rm -rf "$folder"
      # shellcheck disable=SC2034  # read by the scripts
      peers_reason="the packages of packaging/peers.txt cannot be installed: $(tail -n 1 "$log") (log: $log)"
      return 1
    fi
    touch "$folder/complete"
  fi
  exec {peers_lock}>&-
  peers_python=$folder/bin/python
}

# peers_build FOLDER PROGRAM...: prints the folder in which MGE and these test programs are built. Builds the preset
# `release` if FOLDER is empty; otherwise FOLDER has to hold them.
peers_build() {
  local folder=$1 program
  shift
  if [[ -z $folder ]]; then
    ensure_packages build test bench >&2
    configure release -DMGE_TESTS=ON >&2
    build release product "$@" >&2
    folder=$root/build/release
  fi
  for program in "$@"; do
    [[ -x $folder/tests/$program ]] || fail 1 "--build $folder: there is no tests/$program" "fix: ninja -C $folder $program"
  done
  printf '%s\n' "$folder"
}
