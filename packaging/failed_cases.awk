# SPDX-License-Identifier: Apache-2.0
# Prints the failed cases of one test: "failed: TEST CASE (PRESET)", then the first 15 lines of the message, indented.
# Input: the test's report by GoogleTest or, where there is none, the report of all tests by ctest.
# Variables: test, the test's name in ctest; preset.

function decoded(text) {
  gsub(/&lt;/, "<", text)
  gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text)
  gsub(/&apos;/, "'", text)
  gsub(/&#x0A;/, "\n", text)
  gsub(/&#x0D;/, "", text)
  gsub(/&#x09;/, "\t", text)
  gsub(/\[NON-XML-CHAR-0x[0-9A-F]+\](\[[0-9;]*m)?/, "", text)
  gsub(/&amp;/, "\\&", text)
  return text
}

function attribute(name) {
  if (!match($0, " " name "=\"[^\"]*")) return ""
  return decoded(substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3))
}

function title(name) {
  print "failed: " test (name == "" ? "" : " " name) " (" preset ")"
  shown = 0
}

function show(text,  lines, i, n) {
  n = split(text, lines, "\n")
  for (i = 1; i <= n && shown < 15; ++i) {
    print "    " lines[i]
    ++shown
  }
}

# GoogleTest: a case with one or more <failure>, whose messages are attributes and repeated as text.
/^ *<testcase name=.* classname="/ && !output { name = attribute("classname") "." attribute("name"); titled = 0 }
/^ *<failure message=".+" type=""><!\[CDATA\[/ && !output {
  if (!titled++) title(name)
  show(attribute("message"))
}

# ctest: the output of a test. Of a binary that died, it ends within the output of a case.
/^\t<testcase / { wanted = attribute("name") == test && attribute("status") == "fail" }
wanted && sub(/^\t\t<system-out>/, "") { output = 1; kept = 0; running = ""; found = 0 }
output {
  last = sub(/<\/system-out>$/, "")
  line = decoded($0)
  if (line ~ /^\[ RUN      \] /) {
    running = substr(line, 14)
    kept = 0
  } else if (running != "" && index(line, "[  FAILED  ] " running) == 1) {
    finish()
  } else if (running != "" && index(line, "[       OK ] " running) == 1) {
    running = ""
    kept = 0
  } else if (!last || line != "") {
    text[++kept] = line
  }
  if (last) {
    if (running != "" || !found) finish()
    output = wanted = 0
  }
}

# Prints the case that is running: the first lines of its output. Without a case, prints the last lines.
function finish(  i) {
  title(running)
  for (i = running == "" && kept > 15 ? kept - 14 : 1; i <= kept; ++i) show(text[i])
  running = ""
  kept = 0
  found = 1
}
