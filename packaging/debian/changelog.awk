# SPDX-License-Identifier: Apache-2.0
# Writes packaging/CHANGELOG.md in the format of Debian's changelog.
#   awk -v version=V -v date=DATE -v maintainer='NAME <MAIL>' -f changelog.awk CHANGELOG.md
# A heading has the date of its version, as in "## 0.1 (2026-11-27)". The version that is not released yet is V of DATE, which has
# the form of `date -R`. A bullet or a paragraph becomes an item, wrapped at 78 columns.
function begin(number, stability, time) {
  finish()
  printf "%smge (%s) %s; urgency=medium\n\n", begun ? "\n" : "", number, stability
  begun = 1
  when = time
}
function finish() {
  item()
  if (begun) printf "\n -- %s  %s\n", maintainer, when
}
function item(    words, n, i, line) {
  n = split(text, words, /[ \t]+/)
  line = "  *"
  for (i = 1; i <= n; ++i) {
    if (words[i] == "") continue
    if (length(line) + 1 + length(words[i]) > 78) { print line; line = "   " }
    line = line " " words[i]
  }
  if (n) print line
  text = ""
}
# Returns a date such as 2026-11-27 in the form of `date -R`.
function long_date(short,    command, out) {
  command = "LC_ALL=C date -u -R -d " short
  command | getline out
  close(command)
  return out
}
/^## .*\(not released\)/ { begin(version, "UNRELEASED", date); next }
/^## [0-9.]+ \([0-9-]+\)$/ { day = $3; gsub(/[()]/, "", day); begin($2, "unstable", long_date(day)); next }
/^## / { print "changelog.awk: the heading \"" $0 "\" has neither a date nor \"(not released)\"" >"/dev/stderr"; failed = 1; exit 1 }
!begun { next }
/^- / { item(); sub(/^- /, "") }
/^$/ { item(); next }
{ text = text " " $0 }
END { if (!failed) finish() }
