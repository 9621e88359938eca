# SPDX-License-Identifier: Apache-2.0
# Writes a source with the size of each struct, the offset of each member, the value of each constant and the signature of each
# function of an interface. Reads them from the headers, so that no second list exists. Run with
# -DNAME=... -DHEADERS=... -DOUTPUT=...; the source defines the function NAME of offsets.h.
include(${CMAKE_CURRENT_LIST_DIR}/../../sdk/cmake/members.cmake)
set(rows "")
set(functions "")
set(includes "")
foreach(header IN LISTS HEADERS)
  get_filename_component(file ${header} NAME)
  string(APPEND includes "#include \"mge/${file}\"\n")
  file(READ ${header} text)
  # Replaces characters that have a meaning in CMake lists. Comments contain semicolons, too.
  string(REPLACE "[" "<" text "${text}")
  string(REPLACE "]" ">" text "${text}")
  string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
  string(REPLACE ";" "%" text "${text}")
  string(REGEX MATCHALL "#define MGE_[A-Z0-9_]+ +[^ \n\\][^\n]*" defines "${text}")
  foreach(define IN LISTS defines)
    string(REGEX MATCH "#define (MGE_[A-Z0-9_]+) +([^\n]*)" _ "${define}")
    set(name ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2 MATCHES "^[(0-9]" AND NOT name MATCHES "^MGE_VERSION")
      string(APPEND rows "    {\"${name}\", \"=\", static_cast<size_t>(${name})},\n")
    endif()
  endforeach()
  string(REGEX REPLACE "#define [^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
  string(REGEX MATCHALL "MGE_API [^%{}]*\\)%" declarations "${text}")
  foreach(declaration IN LISTS declarations)
    string(REGEX REPLACE "^MGE_API (MGE_NODISCARD )?|%$" "" declaration "${declaration}")
    string(REGEX REPLACE " ([,)])" "\\1" declaration "${declaration}")
    string(APPEND functions "    \"${declaration}\",\n")
  endforeach()
  string(REGEX MATCHALL "enum { [^}]*}" enums "${text}")
  foreach(enum IN LISTS enums)
    string(REGEX MATCHALL "MGE_[A-Z0-9_]+ =" names "${enum}")
    foreach(name IN LISTS names)
      string(REPLACE " =" "" name "${name}")
      string(APPEND rows "    {\"${name}\", \"=\", static_cast<size_t>(${name})},\n")
    endforeach()
  endforeach()
  mge_members(${header} members)
  set(struct "")
  foreach(member IN LISTS members)
    string(REGEX MATCH "^([^|]+)\\|([^|]+)" _ "${member}")
    if(NOT CMAKE_MATCH_1 STREQUAL struct)
      set(struct ${CMAKE_MATCH_1})
      string(APPEND rows "    {\"${struct}\", \"\", sizeof(${struct})},\n")
    endif()
    string(APPEND rows "    {\"${struct}\", \"${CMAKE_MATCH_2}\", offsetof(${struct}, ${CMAKE_MATCH_2})},\n")
  endforeach()
endforeach()
file(WRITE ${OUTPUT}.new "// Derived from the headers of the interface.
#include <cstddef>

${includes}#include \"tests/sdk/offsets.h\"

const Abi& ${NAME}() {
  static const std::vector<AbiRow> rows = {
${rows}  };
  static const std::vector<const char*> functions = {
${functions}  };
  static const Abi abi = {rows, functions};
  return abi;
}
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
