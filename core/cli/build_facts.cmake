# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, the source with the facts of build_facts.h: COMPILER, TYPE, and the commit that is checked out in SOURCE. Keeps
# the file if nothing has changed.
set(commit unknown)
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE out RESULT_VARIABLE code
                OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(code EQUAL 0 AND out MATCHES "^[0-9a-f]+$")
  set(commit ${out})
  execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD RESULT_VARIABLE code ERROR_QUIET)
  if(NOT code EQUAL 0)
    string(APPEND commit +)
  endif()
endif()
set(text "#include \"core/cli/build_facts.h\"
namespace mge::cli::build {
const char* const kCommit = \"${commit}\";
const char* const kCompiler = \"${COMPILER}\";
const char* const kType = \"${TYPE}\";
}  // namespace mge::cli::build
")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
