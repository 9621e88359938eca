# SPDX-License-Identifier: Apache-2.0
# Writes a source with the size of each struct, the offset of each member and the value of each constant of the plugin
# interface. Reads them from the headers, so that no second list exists. Counts the structs with another pattern, too, as
# a check. Run with -DHEADERS=... -DOUTPUT=...
set(rows "")
set(begun 0)
foreach(header IN LISTS HEADERS)
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
    if(CMAKE_MATCH_2 MATCHES "^[(0-9]")
      string(APPEND rows "    {\"${name}\", \"=\", static_cast<size_t>(${name})},\n")
    endif()
  endforeach()
  string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
  string(REGEX MATCHALL "enum { [^}]*}" enums "${text}")
  foreach(enum IN LISTS enums)
    string(REGEX MATCHALL "MGE_[A-Z0-9_]+ =" names "${enum}")
    foreach(name IN LISTS names)
      string(REPLACE " =" "" name "${name}")
      string(APPEND rows "    {\"${name}\", \"=\", static_cast<size_t>(${name})},\n")
    endforeach()
  endforeach()
  string(REGEX MATCHALL "uint32_t struct_size%" sizes "${text}")
  list(LENGTH sizes count)
  math(EXPR begun "${begun} + ${count}")
  string(REGEX MATCHALL "struct [a-z_]+ { [^}]* }" structs "${text}")
  foreach(struct IN LISTS structs)
    string(REGEX MATCH "struct ([a-z_]+) {(.*)}" _ "${struct}")
    set(name ${CMAKE_MATCH_1})
    set(members "${CMAKE_MATCH_2}")
    string(APPEND rows "    {\"${name}\", \"\", sizeof(${name})},\n")
    string(REPLACE "%" ";" members "${members}")
    foreach(member IN LISTS members)
      string(STRIP "${member}" member)
      if(member STREQUAL "")
        continue()
      endif()
      if(member MATCHES "\\(\\*([a-z_0-9]+)\\)")
        set(fields ${CMAKE_MATCH_1})
      else()
        string(REGEX REPLACE "<[^>]*>" "" member "${member}")
        string(REPLACE "," ";" parts "${member}")
        set(fields "")
        foreach(part IN LISTS parts)
          if(part MATCHES "([a-z_0-9]+) *$")
            list(APPEND fields ${CMAKE_MATCH_1})
          endif()
        endforeach()
      endif()
      foreach(field IN LISTS fields)
        string(APPEND rows "    {\"${name}\", \"${field}\", offsetof(${name}, ${field})},\n")
      endforeach()
    endforeach()
  endforeach()
endforeach()
file(WRITE ${OUTPUT}.new "// Derived from the headers of the plugin interface.
#include <cstddef>

#include \"mge/faults.h\"
#include \"mge/log_level.h\"
#include \"mge/plugin.h\"
#include \"tests/sdk/offsets.h\"

const std::vector<AbiRow>& AbiRows() {
  static const std::vector<AbiRow> rows = {
${rows}  };
  return rows;
}

size_t AbiSizedStructs() { return ${begun}; }
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
