# SPDX-License-Identifier: Apache-2.0
# Compiles the SDK's headers in the language versions that authors use, and builds the test of the offsets of tests/abi.
mge_test(sdk LINK mge_sdk)

# mge_abi_rows(NAME HEADER...): derives the function NAME of offsets.h from the headers.
function(mge_abi_rows name)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/sdk/include/mge/ OUTPUT_VARIABLE headers)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} "-DHEADERS=${headers}" -DOUTPUT=${source}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/sdk/offsets.cmake
    DEPENDS ${headers} ${CMAKE_CURRENT_SOURCE_DIR}/sdk/offsets.cmake ${PROJECT_SOURCE_DIR}/sdk/cmake/members.cmake VERBATIM)
  target_sources(test_sdk PRIVATE ${source})
endfunction()
mge_abi_rows(PluginAbi types.h plugin.h transport.h faults.h log_level.h memory_handles.h native_streams.h)
mge_abi_rows(ApplicationAbi types.h mge.h context.h eager.h generate.h virtual_stream.h)
get_property(backends GLOBAL PROPERTY MGE_BACKENDS)
list(TRANSFORM backends REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE quoted)
list(JOIN quoted "," quoted)
target_compile_definitions(test_sdk PRIVATE "MGE_TEST_BACKENDS=${quoted}")
foreach(backend IN LISTS backends)
  add_dependencies(test_sdk mge_backend_${backend})
endforeach()

mge_test(sdk/asserts LINK mge_sdk)

# mge_dialect(NAME SOURCE OPTIONS...): compiles SOURCE with OPTIONS. The test is that it compiles.
function(mge_dialect name source)
  add_library(test_sdk_${name} OBJECT ${source})
  target_link_libraries(test_sdk_${name} PRIVATE mge_sdk)
  # With the undefined-behaviour sanitizer, GCC 12 does not accept the address of a function as a constant.
  target_compile_options(test_sdk_${name} PRIVATE ${ARGN} -Werror -fno-sanitize=undefined)
  add_dependencies(test_sdk test_sdk_${name})
endfunction()
mge_dialect(c99 sdk/strict.c -std=c99 -pedantic)
mge_dialect(cxx17 sdk/strict.cc -std=c++17 -pedantic -fno-exceptions -fno-rtti)
mge_dialect(cxx20 sdk/strict.cc -std=c++20 -pedantic)
mge_dialect(comfort sdk/comfort.cc -std=c++20 -pedantic)
mge_dialect(comfort_bare sdk/comfort.cc -std=c++20 -pedantic -fno-exceptions -fno-rtti)
mge_dialect(application_cxx17 sdk/application.cc -std=c++17 -pedantic)
mge_dialect(application_bare sdk/application.cc -std=c++17 -pedantic -fno-exceptions -fno-rtti)
mge_dialect(application_cxx20 sdk/application.cc -std=c++20 -pedantic)
mge_dialect(no_mistake sdk/mistakes.cc -std=c++20 -pedantic)
get_target_property(headers mge_sdk INTERFACE_INCLUDE_DIRECTORIES)
list(TRANSFORM headers PREPEND -I)

# mge_mistakes(NAME MACROS MESSAGES): tests that mistakes.cc does not compile with MACROS, and that the compiler prints
# MESSAGES in this order.
function(mge_mistakes name macros messages)
  list(TRANSFORM macros PREPEND -D)
  list(JOIN messages ".*assert[a-z]* failed[^\n]*" pattern)
  add_test(NAME sdk/mistakes_${name} COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only ${headers} ${macros}
                                             ${CMAKE_CURRENT_SOURCE_DIR}/sdk/mistakes.cc)
  set_tests_properties(sdk/mistakes_${name} PROPERTIES PASS_REGULAR_EXPRESSION "assert[a-z]* failed[^\n]*${pattern}")
endfunction()
mge_mistakes(described "DESCRIBE_BY_VALUE;WORKSPACE_AS_DOUBLE;SIZE_WITHOUT_PREPACK;QUEUE_WITHOUT_FENCE;NAME_IN_CAPITALS"
             "static void Describe;uint64_t workspace_bytes;Prepack and prepack_bytes;Queue and Fence;kName: 1 to 31")
mge_mistakes(offered "OFFER_BY_VALUE;PREPACK_OF_CONSTANTS;STAMP_WITHOUT_QUEUE;CLASS_THAT_ENDS_IN_X"
             "static void Offer;mge::Result Prepack;Stamp: ;the last not x")
mge_mistakes(made MAKE_WITHOUT_CANDIDATE "static mge::KernelPtr Make")
mge_mistakes(captured CAPTURE_WITHOUT_RECORD "names a class Record")
add_test(NAME sdk/application_with_backend COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only ${headers}
                                           -include mge/plugin.hpp ${CMAKE_CURRENT_SOURCE_DIR}/sdk/application.cc)
find_program(MGE_CLANG NAMES clang++-14 clang++)
if(MGE_CLANG)
  foreach(options IN ITEMS "" "-fno-exceptions;-fno-rtti")
    string(MAKE_C_IDENTIFIER "sdk/comfort_clang${options}" name)
    add_test(NAME ${name} COMMAND ${MGE_CLANG} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Werror ${headers} ${options}
                                  ${CMAKE_CURRENT_SOURCE_DIR}/sdk/comfort.cc)
  endforeach()
  add_test(NAME sdk/application_clang COMMAND ${MGE_CLANG} -std=c++17 -fsyntax-only -Wall -Wextra -Wpedantic -Werror ${headers}
                                              ${CMAKE_CURRENT_SOURCE_DIR}/sdk/application.cc)
endif()

# The examples: backends, in a directory that only the tests search, and applications.
get_property(listed GLOBAL PROPERTY MGE_BACKENDS)
mge_test(sdk/examples LINK mge_onnx mge_plugin)
block(SCOPE_FOR VARIABLES)
  set(MGE_BACKEND_DIRECTORY ${PROJECT_BINARY_DIR}/tests/examples)
  foreach(example IN ITEMS relu fusion layouts parts driver)
    add_subdirectory(${PROJECT_SOURCE_DIR}/sdk/examples/${example} ${CMAKE_CURRENT_BINARY_DIR}/examples/${example})
    add_dependencies(test_sdk_examples mge_backend_example_${example} mge_cli)
  endforeach()
  add_dependencies(test_core_api mge_backend_example_driver)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/examples)
  add_subdirectory(${PROJECT_SOURCE_DIR}/sdk/examples/application ${folder}/application)
  get_property(programs DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/examples/application PROPERTY BUILDSYSTEM_TARGETS)
  foreach(program IN LISTS programs ITEMS example_handles)
    target_compile_options(${program} PRIVATE -pedantic -Werror)
    add_dependencies(test_sdk_examples ${program})
  endforeach()
  target_compile_definitions(test_sdk_examples PRIVATE MGE_EXAMPLES="${folder}")
endblock()
foreach(backend IN ITEMS cpu virtual)
  if(TARGET mge_backend_${backend})
    add_dependencies(test_sdk_examples mge_backend_${backend})
  endif()
endforeach()
set_property(GLOBAL PROPERTY MGE_BACKENDS ${listed})

# The Python package, with its compiled module if that was built, and without. Debian's Python has the NumPy of
# dependencies.txt. A library with a sanitizer cannot be loaded into it.
find_program(MGE_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(MGE_PYTHON AND NOT MGE_SANITIZE)
  set(without "import sys$<SEMICOLON> sys.modules['mge._compiled'] = None$<SEMICOLON> import unittest$<SEMICOLON> unittest.main(None)")
  set(modules mge_test models_test runs_test handles_test process_test values_test random_test bench_test data_test memory_test
            pages_test onnxruntime_test generate_test embeddings_test fit_test)
  add_test(NAME sdk/python COMMAND ${MGE_PYTHON} -W error::ResourceWarning -m unittest ${modules}
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/sdk/python)
  add_test(NAME sdk/python_without_compiled_module COMMAND ${MGE_PYTHON} -c ${without} mge_test models_test runs_test handles_test values_test memory_test generate_test
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/sdk/python)
  set_tests_properties(sdk/python sdk/python_without_compiled_module PROPERTIES ENVIRONMENT
    "PYTHONPATH=${PROJECT_SOURCE_DIR}/sdk/python;PYTHONDONTWRITEBYTECODE=1;MGE_VIRTUAL_DEVICES=2;TEST_TREE=${PROJECT_BINARY_DIR};\
MGE_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/libmge.so.0;TEST_CASES=/usr/share/libonnx-testdata/data/node")
endif()
