# SPDX-License-Identifier: Apache-2.0
# One function for who writes a backend, inside this tree or outside of it.
include_guard(GLOBAL)

set(MGE_BACKEND_MAP ${CMAKE_CURRENT_LIST_DIR}/mge_backend.map)

# mge_backend(NAME demo [SOURCES a.cc b.cc] [LINK libs] [MISSING "why it cannot be built here"])
#
# Builds lib/mge/plugins/mge_demo.so in the build tree (target mge_backend_demo), such that
#   - the one exported symbol is mge_plugin_query, nothing is left undefined, static libraries in it stay private;
#   - it carries a build id, and mode 0755 whatever the umask (a host refuses a library, or a folder, that others may write);
#   - it sees the SDK's headers and its own folder.
# SOURCES defaults to every C and C++ source of the folder and of its kernels/. With a non-empty MISSING nothing is built.
# Either way the configure step prints one line, and the property MGE_BACKENDS of the project lists what is built.
function(mge_backend)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;MISSING" "SOURCES;LINK")
  if(NOT arg_NAME MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "mge_backend: NAME \"${arg_NAME}\" must be of a-z, 0-9 and _")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mge_backend(${arg_NAME}): what is \"${arg_UNPARSED_ARGUMENTS}\"?")
  endif()
  if(arg_MISSING)
    message(STATUS "backend ${arg_NAME}: not built: ${arg_MISSING}")
    return()
  endif()
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS
         ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.cc
         ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.c ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cc)
  endif()
  set(target mge_backend_${arg_NAME})
  add_library(${target} MODULE ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_features(${target} PRIVATE cxx_std_20)
  if(TARGET mge::plugin)
    target_link_libraries(${target} PRIVATE mge::plugin ${arg_LINK})
  else()
    target_link_libraries(${target} PRIVATE mge_sdk ${arg_LINK})
  endif()
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${MGE_BACKEND_MAP} -Wl,-z,defs -Wl,--exclude-libs,ALL -Wl,--build-id)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME mge_${arg_NAME} SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/mge/plugins
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${MGE_BACKEND_MAP})
  add_custom_command(TARGET ${target} POST_BUILD COMMAND chmod 0755 $<TARGET_FILE:${target}> VERBATIM)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/mge/plugins)
  foreach(folder IN ITEMS "" /lib /lib/mge /lib/mge/plugins)
    execute_process(COMMAND chmod go-w ${CMAKE_BINARY_DIR}${folder})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY MGE_BACKENDS ${arg_NAME})
  message(STATUS "backend ${arg_NAME}: built")
endfunction()
