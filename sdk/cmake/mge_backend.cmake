# SPDX-License-Identifier: Apache-2.0
# Functions for authors of backends, inside this tree or outside of it.
include_guard(GLOBAL)

# mge_backend(NAME demo [KIND device|transport] [SOURCES a.cc b.cc] [KERNELS kernels vec] [LINK libs]
#             [MISSING "why it cannot be built here"])
#
# Builds mge_demo.so (target mge_backend_demo) in the build folder, or in MGE_BACKEND_DIRECTORY if that is set. KIND: a backend of
# devices (mge/plugin.h; the default), or a transport between processes (mge/transport.h), which has no kernels. The library
#   - exports only its entry point (mge_plugin_query or mge_transport_query), has no undefined symbols, and keeps its static
#     libraries private;
#   - has a build id, and mode 0755 whatever the umask (a host refuses a library, or a folder, that others can write);
#   - is compiled with the SDK's headers and its own folder as include directories.
# SOURCES defaults to every C and C++ source of the folder and of its kernels/. KERNELS are the folders whose files determine
# the results and the speed of kernels; default: kernels/. The build hashes them and writes the header mge_kernel_set.h, which
# defines MGE_KERNEL_SET for the backend's kKernelSet. If MISSING is not empty, nothing is built. Either way the configure step
# prints one line. The global properties MGE_BACKENDS and MGE_TRANSPORTS list what is built.
function(mge_backend)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;KIND;MISSING" "SOURCES;KERNELS;LINK")
  if(NOT arg_NAME MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "mge_backend: NAME \"${arg_NAME}\" must be of a-z, 0-9 and _")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mge_backend(${arg_NAME}): unknown argument \"${arg_UNPARSED_ARGUMENTS}\"")
  endif()
  if(NOT arg_KIND)
    set(arg_KIND device)
  endif()
  if(arg_KIND STREQUAL "device")
    set(map mge_backend.map)
    set(list MGE_BACKENDS)
    set(noun backend)
  elseif(arg_KIND STREQUAL "transport")
    set(map mge_transport.map)
    set(list MGE_TRANSPORTS)
    set(noun transport)
  else()
    message(FATAL_ERROR "mge_backend(${arg_NAME}): KIND \"${arg_KIND}\" is neither device nor transport")
  endif()
  if(arg_MISSING)
    message(STATUS "${noun} ${arg_NAME}: not built: ${arg_MISSING}")
    return()
  endif()
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS
         ${CMAKE_CURRENT_SOURCE_DIR}/*.c ${CMAKE_CURRENT_SOURCE_DIR}/*.cc
         ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.c ${CMAKE_CURRENT_SOURCE_DIR}/kernels/*.cc)
  endif()
  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${map})
  set(target mge_backend_${arg_NAME})
  add_library(${target} MODULE ${arg_SOURCES})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_features(${target} PRIVATE cxx_std_20)
  if(arg_KIND STREQUAL "device")
    mge_kernel_set(${target} ${arg_KERNELS})
  endif()
  if(TARGET mge_sdk)
    target_link_libraries(${target} PRIVATE mge_sdk ${arg_LINK})
  else()
    target_link_libraries(${target} PRIVATE mge::plugin ${arg_LINK})
  endif()
  set(place ${CMAKE_BINARY_DIR})
  if(MGE_BACKEND_DIRECTORY)
    set(place ${MGE_BACKEND_DIRECTORY})
  endif()
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${map} -Wl,-z,defs -Wl,--exclude-libs,ALL -Wl,--build-id)
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME mge_${arg_NAME} SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY ${place}
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${map})
  add_custom_command(TARGET ${target} POST_BUILD COMMAND chmod 0755 $<TARGET_FILE:${target}> VERBATIM)
  file(MAKE_DIRECTORY ${place})
  cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${place} inside)
  while(inside)
    execute_process(COMMAND chmod go-w ${place})
    cmake_path(GET place PARENT_PATH place)
    cmake_path(IS_PREFIX CMAKE_BINARY_DIR ${place} inside)
  endwhile()
  set_property(GLOBAL APPEND PROPERTY ${list} ${arg_NAME})
  message(STATUS "${noun} ${arg_NAME}: built")
endfunction()

# mge_kernel_set(target kernels vec): generates mge_kernel_set.h for a target from all files of these folders.
function(mge_kernel_set target)
  set(folders ${ARGN})
  if(NOT folders)
    set(folders kernels)
  endif()
  set(globs "")
  foreach(folder IN LISTS folders)
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    list(APPEND globs ${folder}/*)
  endforeach()
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${globs})
  list(FILTER files EXCLUDE REGEX "[.]md$")
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mge_kernel_set.cmake)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernel_set/mge_kernel_set.h)
  add_custom_command(OUTPUT ${header} DEPENDS ${files} ${script} VERBATIM COMMENT "Hashing the kernels of ${target}"
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_CURRENT_SOURCE_DIR} "-DFILES=${files}" -DOUTPUT=${header} -P ${script})
  target_sources(${target} PRIVATE ${header})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${target}_kernel_set)
endfunction()

# mge_backend_test(NAME demo): adds tests for a backend outside of MGE's tree: the host accepts the file, and the conformance kit
# passes (mge sdk test --quick). The second is skipped without a device, or without a kernel for an operator of --quick.
# MGE_COMMAND is the mge command to use.
function(mge_backend_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "")
  add_test(NAME ${arg_NAME}/accepted COMMAND ${MGE_COMMAND} plugins)
  set_tests_properties(${arg_NAME}/accepted PROPERTIES
    ENVIRONMENT "MGE_PLUGIN_PATH=$<TARGET_FILE_DIR:mge_backend_${arg_NAME}>"
    PASS_REGULAR_EXPRESSION "accepted +[^\n]*/mge_${arg_NAME}[.]so")
  add_test(NAME ${arg_NAME}/conformance COMMAND ${MGE_COMMAND} sdk test --quick $<TARGET_FILE:mge_backend_${arg_NAME}>)
  set_tests_properties(${arg_NAME}/conformance PROPERTIES SKIP_REGULAR_EXPRESSION ": incomplete\n")
endfunction()
