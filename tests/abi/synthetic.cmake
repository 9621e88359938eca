# SPDX-License-Identifier: Apache-2.0
# Writes plugin.h as another version of it would be, under the same header hash, so that a host loads what is built from it.
#   older: structs lack their last members, as if these had been added later
#   older_tables: like older, but structs with the newest tables and layouts keep all members
#   newer: every struct that begins with its size has two more members, and the minor version is higher
# Run with -DHEADER=... -DAGE=older|older_tables|newer -DOUTPUT=...
file(READ ${HEADER} text)
# Replaces characters that have a meaning in CMake lists. Comments contain semicolons, too.
string(REPLACE "[" "<" text "${text}")
string(REPLACE "]" ">" text "${text}")
string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" "" text "${text}")
string(REPLACE ";" "%" text "${text}")

# The last members of each struct that may be missing in an older backend.
set(older_mge_host 3)          # allocate, release, ready_made
set(older_mge_layout 2)        # the opaque ones
set(older_mge_value 1)         # version
set(older_mge_device_info 3)   # memory_total, driver, max_allocation
set(older_mge_link 1)
set(older_mge_device_api 2)    # status, link
set(older_mge_reservation 2)   # ready
set(older_mge_pool_stats 4)
set(older_mge_plan_summary 3)  # budget, pressure
set(older_mge_reserve_decision 2)
set(older_mge_pool_api 1)      # set_policy
set(older_mge_memory_api 6)    # stream-ordered release, virtual memory
set(older_mge_queue_api 5)     # capture and peers
set(older_mge_problem 1)       # write_modes
set(older_mge_candidate 4)     # layouts, in place
set(older_mge_prepared 4)      # prepack, state, forms
set(older_mge_binding 2)       # layouts
set(older_mge_run 2)           # parallel_for
set(older_mge_choice 1)
set(older_mge_strategy_api 2)  # flags, mode
set(older_mge_plugin 4)        # strategy, extension, layout, profile
if(AGE STREQUAL "older_tables")
  foreach(whole IN ITEMS plugin candidate layout)
    unset(older_mge_${whole})
  endforeach()
endif()

string(REGEX MATCHALL "struct [a-z_]+ {[^}]*}" structs "${text}")
set(changed 0)
foreach(struct IN LISTS structs)
  string(REGEX MATCH "struct ([a-z_]+) {([^}]*)}" _ "${struct}")
  set(name ${CMAKE_MATCH_1})
  set(body "${CMAKE_MATCH_2}")
  set(before "${body}")
  if(AGE STREQUAL "newer" AND body MATCHES "^[ \n]*uint32_t struct_size%")
    string(APPEND body "  uint64_t newer_number%\n  void* newer_pointer%\n")
  elseif(AGE MATCHES "^older" AND DEFINED older_${name})
    foreach(i RANGE 1 ${older_${name}})
      string(REGEX REPLACE "[^%]*%[ \n]*$" "" body "${body}")
    endforeach()
    string(APPEND body "\n")
  endif()
  if(NOT body STREQUAL before)
    math(EXPR changed "${changed} + 1")
    string(REPLACE "struct ${name} {${before}}" "struct ${name} {${body}}" text "${text}")
  endif()
endforeach()
if(changed LESS 10)
  message(FATAL_ERROR "${AGE}: only ${changed} structs changed; has the form of plugin.h changed?")
endif()
if(AGE STREQUAL "newer")
  string(REGEX MATCH "#define MGE_ABI_MINOR ([0-9]+)" _ "${text}")
  math(EXPR minor "${CMAKE_MATCH_1} + 1")
  string(REGEX REPLACE "#define MGE_ABI_MINOR [0-9]+" "#define MGE_ABI_MINOR ${minor}\n#define MGE_TEST_NEWER 1" text "${text}")
endif()
string(REPLACE "<std" "@std" text "${text}")
string(REGEX REPLACE "<([^>\n]*)>" "[\\1]" text "${text}")
string(REPLACE "@std" "<std" text "${text}")
string(REPLACE "%" ";" text "${text}")
file(WRITE ${OUTPUT}.new "${text}")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
