# SPDX-License-Identifier: Apache-2.0
# Every header of core/, sdk/ and plugins/ compiles alone: one source for each, that includes it twice and nothing else.
# The sources are built by the test, not by the build of everything.
function(mge_header_test)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/core/*.h ${PROJECT_SOURCE_DIR}/sdk/include/*.h ${PROJECT_SOURCE_DIR}/sdk/include/*.hpp
       ${PROJECT_SOURCE_DIR}/plugins/*.h)
  set(sources)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" name ${header})
    set(languages cc)
    if(header MATCHES "^sdk/.*\\.h$")
      set(languages cc c)  # the C headers must be C99 too
    endif()
    foreach(language IN LISTS languages)
      set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.${language})
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"@header@\"\n#include \"@header@\"\n" @ONLY)
      list(APPEND sources ${source})
    endforeach()
  endforeach()
  add_library(lint_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(lint_headers PRIVATE mge_sdk)
  target_include_directories(lint_headers PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/sdk/include)
  target_compile_options(lint_headers PRIVATE -O0 -Werror)
  add_test(NAME lint/headers COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target lint_headers)
endfunction()
