# SPDX-License-Identifier: Apache-2.0
# Reads the structs of plugin.h and types.h and writes a source with the size of each and the offset of each member, so that
# no second list of them exists. Run with -DHEADERS=... -DOUTPUT=...
set(rows "")
foreach(header IN LISTS HEADERS)
  file(READ ${header} text)
  # What means something in a CMake list must not stand in one; comments hold semicolons, too.
  string(REPLACE "[" "<" text "${text}")
  string(REPLACE "]" ">" text "${text}")
  string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
  string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
  string(REGEX MATCHALL "typedef struct [a-z_]+ { [^}]* } [a-z_]+;" structs "${text}")
  string(REPLACE ";" "%" structs "${structs}")  # one string; structs end with "} name%"
  string(REGEX MATCHALL "typedef struct [a-z_]+ { [^}]* }" structs "${structs}")
  foreach(struct IN LISTS structs)
    string(REGEX MATCH "typedef struct ([a-z_]+) {(.*)}" _ "${struct}")
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
file(WRITE ${OUTPUT}.new "// Derived from plugin.h and types.h.
#include <cstddef>

#include \"mge/plugin.h\"
#include \"tests/sdk/offsets.h\"

const std::vector<AbiRow>& AbiRows() {
  static const std::vector<AbiRow> rows = {
${rows}  };
  return rows;
}
")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
