# SPDX-License-Identifier: Apache-2.0
# Tests that every header of core/, sdk/ and plugins/ compiles alone: one source per header includes it twice and nothing
# else. The tests build these sources, the normal build does not. Those of the SDK are what users include; the others take
# minutes, and belong to the long tests.

# mge_headers(TARGET FOLDER ROOT...): adds the headers below FOLDER to TARGET. Include directories are ROOT... and the SDK's.
function(mge_headers all folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/${folder}/*.h ${PROJECT_SOURCE_DIR}/${folder}/*.hpp)
  if(NOT headers)
    return()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name ${header})
    set(languages cc)
    if(header MATCHES "^sdk/.*\\.h$")
      set(languages cc c)  # the C headers must be C99 too
    endif()
    foreach(language IN LISTS languages)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.${language})
      set(path ${PROJECT_SOURCE_DIR}/${header})
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@path@\"\n#include \"@path@\"\n" @ONLY)
      list(APPEND sources ${source})
    endforeach()
  endforeach()
  string(REPLACE "/" "_" target lint_headers_${folder})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${target} PRIVATE mge_sdk)
  target_include_directories(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE -O0 -Werror)
  add_dependencies(${all} ${target})
endfunction()

add_custom_target(lint_headers)
add_custom_target(lint_headers_inside)
mge_headers(lint_headers sdk)
mge_headers(lint_headers_inside core ${PROJECT_SOURCE_DIR})
get_property(backends GLOBAL PROPERTY MGE_BACKENDS)
foreach(backend IN LISTS backends)
  mge_headers(lint_headers_inside plugins/${backend} ${PROJECT_SOURCE_DIR}/plugins/${backend} ${PROJECT_SOURCE_DIR})
endforeach()
if(TARGET mge_backend_mpi)
  mge_headers(lint_headers_inside plugins/mpi ${PROJECT_SOURCE_DIR}/plugins/mpi ${MGE_MPI_INCLUDE})
endif()
mge_headers(lint_headers_inside plugins/gpu/software ${PROJECT_SOURCE_DIR})
add_test(NAME lint/headers COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target lint_headers)
add_test(NAME lint/headers_inside COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target lint_headers_inside)
set_tests_properties(lint/headers_inside PROPERTIES LABELS long)
