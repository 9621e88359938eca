#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# copyright.sh FILE: writes the file `copyright` of the Debian packages: MGE's licence, and the statements of the libraries whose
# headers are compiled in, from the packages that they came from.
set -eu
here=$(dirname "$0")
file=$1
{
  cat <<'TEXT'
MGE (Modular Graph Engine) has the licence Apache-2.0. On Debian systems, the
text of this licence is in /usr/share/common-licenses/Apache-2.0.

Parts of the following libraries are compiled in. Each statement comes from
the Debian package of the library.
TEXT
  awk '/^\[/ { inside = $0 == "[build]" } inside && $1 ~ /-dev$/ { print $1 }' "$here/../dependencies.txt" |
    while read -r package; do
      statement=/usr/share/doc/$package/copyright
      if [ -f "$statement" ]; then
        printf '\n---- %s ----\n\n' "$package"
        cat "$statement"
      fi
    done
} >"$file"
