# SPDX-License-Identifier: Apache-2.0
# cmake -DNM=nm -DOBJECTS="a.o;b.o" -P vec_isolation.cmake: fails if code for an instruction set defines a weak or unique
# symbol. The linker keeps one copy of such a function for all code, so it would crash a machine without that instruction
# set.
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols RESULT_VARIABLE code)
  if(code)
    message(FATAL_ERROR "${NM} could not read ${object}")
  endif()
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" shared "${symbols}")
  if(shared)
    message(FATAL_ERROR "${object} defines what other objects may share: ${shared}")
  endif()
endforeach()
