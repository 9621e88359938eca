#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD_DIRECTORY: installs MGE, moves the tree, and uses it: runs the command, builds an application and
# a backend with CMake and with pkg-config, and copies a backend into the plugin directory.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_tree=$(cd "$here/../.." && pwd)
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022

step() { printf '== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }
# Runs a command with only those variables of the caller's environment that a compiler needs.
clean() { env -i PATH="$PATH" HOME="$work" LC_ALL=C "$@"; }

step "install, then move"
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; fail "cmake --install"; }
mv "$work/first" "$work/moved"
tree=$work/moved
for file in bin/mge lib/libmge.so lib/libmge.so.0 include/mge/mge.h include/mge/mge.hpp include/mge/plugin.h \
            include/mge/plugin.hpp include/mge/float16.hpp include/mge/types.h include/mge/abi_hash.h lib/mge/plugins/mge_null.so \
            lib/mge/plugins/mge_cpu.so lib/mge/mge-worker lib/cmake/mge/mgeConfig.cmake lib/pkgconfig/mge.pc lib/pkgconfig/mge-cpp.pc lib/pkgconfig/mge-plugin.pc \
            share/mge/digits/digits.onnx share/mge/mge.toml share/man/man1/mge.1 include/mge/plugin/backend.hpp \
            share/bash-completion/completions/mge share/zsh/site-functions/_mge share/fish/vendor_completions.d/mge.fish \
            share/mge/sdk/README.md share/mge/sdk/examples/relu/relu.cc; do
  [[ -e $tree/$file ]] || fail "$file is not installed"
done
named=$(grep -rlF -e "$build" -e "$work/first" -e "$source_tree" "$tree" || true)
[[ -z $named ]] || fail "these name the place where they were built: $named"

step "what the libraries export and need"
foreign=$(nm -D --defined-only "$tree/lib/libmge.so.0" | awk '$2 != "A" && $3 !~ /^mge_/ { print $3 }')
[[ -z $foreign ]] || fail "libmge.so.0 exports more than mge_*: $(head -5 <<<"$foreign")"
readelf -d "$tree/lib/libmge.so.0" >"$work/dynamic"
grep -q 'SONAME.*\[libmge\.so\.0\]' "$work/dynamic" || fail "libmge.so.0 has another SONAME"
if grep -qE 'NEEDED.*(dnnl|blas|cuda|proto(buf|c))' "$work/dynamic"; then fail "libmge.so.0 needs a vendor's library"; fi
for file in "$tree"/bin/mge "$tree"/lib/libmge.so.0 "$tree"/lib/mge/mge-conform "$tree"/lib/mge/mge-worker "$tree"/lib/mge/plugins/*.so; do
  # shellcheck disable=SC2016  # the linker's word, not ours
  if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -vq '\[\$ORIGIN[^:]*\]'; then fail "$file looks for libraries elsewhere"; fi
done
for backend in "$tree"/lib/mge/plugins/*.so; do
  symbols=$(nm -D --defined-only "$backend" | awk '{ print $3 }')
  entry=mge_plugin_query
  [[ $backend != */mge_mpi.so ]] || entry=mge_transport_query
  [[ $symbols == "$entry" ]] || fail "$backend exports: $symbols"
done

step "the command, where it is now"
clean "$tree/bin/mge" version
clean "$tree/bin/mge" plugins --json >"$work/plugins.json"
for name in null cpu; do
  grep -q "$tree/lib/mge/plugins/mge_$name.so" "$work/plugins.json" || fail "mge plugins does not find $name"
done
clean "$tree/bin/mge" demo >"$work/demo.txt" 2>&1 || { cat "$work/demo.txt"; fail "mge demo"; }
clean "$tree/bin/mge" zoo bert-tiny -o "$work/bert.onnx" >"$work/zoo.txt" 2>&1 || { cat "$work/zoo.txt"; fail "mge zoo"; }
clean MGB_CONV_PROFILING_TIMEOUT=60 MEGENGINE_EXECUTION_STRATEGY=PROFILE MGE_LOG_LEVEL=debug "$tree/bin/mge" plan \
  "$work/bert.onnx" >"$work/timed.txt" 2>&1 || { cat "$work/timed.txt"; fail "mge plan with times"; }
grep -q "are timed in '$tree/lib/mge/mge-worker'" "$work/timed.txt" || fail "kernels are not timed in mge-worker"

# use WHAT APPLICATION BACKEND: runs the application, which uses cpu0 for the digits and BACKEND for a Relu.
use() {
  clean MGE_PLUGIN_PATH="$(dirname "$3")" "$2" "$tree/share/mge/digits" "$here/project/relu.onnx" outside0 ||
    fail "$1: the application"
}

step "an application and a backend, by CMake"
clean cmake -S "$here/project" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$tree" -DCMAKE_BUILD_TYPE=Release >"$work/cmake.log" 2>&1 ||
  { cat "$work/cmake.log"; fail "find_package(mge)"; }
clean cmake --build "$work/cmake" >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; fail "building by CMake"; }
use CMake "$work/cmake/app" "$work/cmake/mge_outside.so"

step "an application in C alone, by CMake"
mkdir "$work/plain"
cat >"$work/plain/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(plain LANGUAGES C)
find_package(mge CONFIG REQUIRED)
add_executable(plain ${source})
target_link_libraries(plain PRIVATE mge::mge)
CMAKE
if ! { clean cmake -S "$work/plain" -B "$work/plain/build" -DCMAKE_PREFIX_PATH="$tree" -Dsource="$here/project/app.c" &&
  clean cmake --build "$work/plain/build"; } >"$work/plain.log" 2>&1; then
  cat "$work/plain.log"
  fail "an application in C alone"
fi

step "version ranges of find_package"
mkdir "$work/version"
cat >"$work/version/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(version LANGUAGES C)
find_package(mge ${want} CONFIG)
if(NOT mge_FOUND STREQUAL expected)
  message(FATAL_ERROR "mge ${want}: ${mge_FOUND}")
endif()
CMAKE
for pair in 0.1:1 0.2:0 1.0:0; do
  clean cmake -S "$work/version" -B "$work/version/${pair%:*}" -DCMAKE_PREFIX_PATH="$tree" -Dwant="${pair%:*}" \
    -Dexpected="${pair#*:}" >"$work/version.log" 2>&1 || { cat "$work/version.log"; fail "asking for version ${pair%:*}"; }
done

if command -v pkg-config >/dev/null; then
  step "applications in C and C++ and a backend, by pkg-config"
  export PKG_CONFIG_PATH=$tree/lib/pkgconfig
  [[ $(pkg-config --modversion mge) == 0.1.* ]] || fail "pkg-config: version of mge"
  mkdir "$work/pc"
  # shellcheck disable=SC2046  # flags are words
  cc -std=c99 -Wall -Wextra -Werror $(pkg-config --cflags mge) "$here/project/app.c" -o "$work/pc/app" \
    $(pkg-config --libs mge) -Wl,-rpath,"$(pkg-config --variable=libdir mge)" || fail "building by pkg-config: app.c"
  # shellcheck disable=SC2046  # the standard comes from pkg-config
  c++ -Wall -Wextra -Werror $(pkg-config --cflags mge-cpp) "$here/project/app.cc" -o "$work/pc/app_cc" \
    $(pkg-config --libs mge-cpp) -Wl,-rpath,"$(pkg-config --variable=libdir mge)" || fail "building by pkg-config: app.cc"
  # shellcheck disable=SC2046
  c++ -std=c++20 -O1 $(pkg-config --cflags mge-plugin) "$here/project/backend.cc" -o "$work/pc/mge_outside.so" \
    $(pkg-config --libs mge-plugin) || fail "building by pkg-config: backend.cc"
  use pkg-config "$work/pc/app" "$work/pc/mge_outside.so"
  use "pkg-config, C++" "$work/pc/app_cc" "$work/pc/mge_outside.so"
else
  step "no pkg-config here: its part is left out"
fi

step "a backend dropped in"
if clean "$tree/bin/mge" run "$here/project/relu.onnx" --device outside0 >"$work/run.txt" 2>&1; then
  fail "outside0 runs without its backend"
fi
cp "$work/cmake/mge_outside.so" "$tree/lib/mge/plugins/"
clean MGE_DEFAULT_DEVICE=outside0 "$tree/bin/mge" run "$here/project/relu.onnx" >"$work/run.txt" 2>&1 ||
  { cat "$work/run.txt"; fail "mge run on a backend that was dropped in"; }
grep -q outside0 "$work/run.txt" || fail "mge run does not say that it ran on outside0"
echo "all well"
