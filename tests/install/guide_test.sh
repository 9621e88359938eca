#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# guide_test.sh BUILD_DIRECTORY: installs MGE, moves the tree, and runs all shell commands of the SDK's guide in order.
# Then builds each example against the installed tree.
set -euo pipefail
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
step() { printf '== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

step "install, then move"
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { cat "$work/install.log"; fail "cmake --install"; }
mv "$work/first" "$work/moved"
tree=$work/moved
clean() { env -i PATH="$tree/bin:$PATH" HOME="$work" LC_ALL=C "$@"; }

step "the guide, command by command"
guide=$tree/share/mge/sdk/README.md
awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$guide" >"$work/guide.sh"
[[ $(grep -c . "$work/guide.sh") -ge 10 ]] || fail "the guide has hardly any commands"
mkdir "$work/stranger"
(cd "$work/stranger" && clean bash -euxo pipefail "$work/guide.sh") >"$work/guide.log" 2>&1 ||
  { tail -60 "$work/guide.log"; fail "the guide"; }
if grep -n 'warning:' "$work/guide.log"; then fail "what the guide builds has warnings"; fi
grep -Eq 'accepted +[^ ]*/build/mge_mydev\.so' "$work/guide.log" || fail "mge plugins does not show the new backend as accepted"
grep -q 'mydev\.relu' "$work/guide.log" || fail "mge plan does not name the kernel of the new backend"
[[ -n $(ls "$work/stranger/mydev/report") ]] || fail "there is no report"

step "the project's own tests"
(cd "$work/stranger/mydev" && clean cmake --workflow --preset release) >"$work/workflow.log" 2>&1 ||
  { tail -40 "$work/workflow.log"; fail "the tests of the new project"; }
for test in accepted conformance; do
  grep -q "mydev/$test" "$work/workflow.log" || fail "the new project has no test '$test'"
done

step "a name that no device can have does not compile"
sed -i 's/"mydev"/"mydexx"/' "$work/stranger/mydev/plugin.cc"
if (cd "$work/stranger/mydev" && clean cmake --build --preset release) >"$work/bad.log" 2>&1; then
  fail "a class that ends in x compiles"
fi
grep -q 'kClasses' "$work/bad.log" || { tail -20 "$work/bad.log"; fail "the compiler does not say what is wrong with the name"; }

for example in "$tree"/share/mge/sdk/examples/*/; do
  name=$(basename "$example")
  [[ $name != application ]] || continue
  step "example $name, against the installed tree"
  if ! { clean cmake -S "$example" -B "$work/$name" -DCMAKE_BUILD_TYPE=Release && clean cmake --build "$work/$name"; } \
    >"$work/example.log" 2>&1; then
    cat "$work/example.log"
    fail "example $name"
  fi
  part=(--quick)
  if [[ $name == layouts ]]; then part=(--only GlobalAveragePool); fi # it has no kernel of the quick form
  clean mge sdk test "${part[@]}" "$work/$name/mge_example_$name.so" >"$work/kit.log" 2>&1 ||
    { cat "$work/kit.log"; fail "the conformance kit on example $name"; }
  clean MGE_PLUGIN_PATH="$work/$name" mge devices | grep -q "example_${name}0" || fail "mge devices does not list example $name"
done

step "the applications, against the installed tree"
if ! { clean cmake -S "$tree/share/mge/sdk/examples/application" -B "$work/application" && clean cmake --build "$work/application"; } \
  >"$work/application.log" 2>&1; then
  cat "$work/application.log"
  fail "the applications"
fi
digits=$tree/share/mge/digits
clean "$work/application/run" "$digits/digits.onnx" "$digits/digits_images.npy" | grep -q '^largest: 7 2 4 6' ||
  fail "the application 'run' does not recognise the digits"
