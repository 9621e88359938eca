# SPDX-License-Identifier: Apache-2.0
# mge_fuzz(onnx LINK mge_onnx): builds fuzz_onnx from onnx_fuzz.cc and adds a test that runs its corpus.
function(mge_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_executable(fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${name}_fuzz.cc)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(fuzz_${name} PRIVATE ${arg_LINK})
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
  if(MGE_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz/${name} COMMAND fuzz_${name} -runs=0 ${corpus})
  else()
    target_sources(fuzz_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/replay.cc)
    add_test(NAME fuzz/${name} COMMAND fuzz_${name} ${corpus})
  endif()
endfunction()

mge_fuzz(onnx LINK mge_onnx)
mge_fuzz(npy LINK mge_onnx)

# Mutants of the models of ONNX's tests: thousands in the normal test, minutes in the long one.
find_package(fmt REQUIRED)
add_library(fuzz_mutator STATIC fuzz/mutants.cc fuzz/mutator.cc fuzz/proto_tree.cc)
target_include_directories(fuzz_mutator PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(fuzz_mutator PUBLIC fmt::fmt)
function(mge_mutants name count)
  target_link_libraries(${name} PRIVATE fuzz_mutator)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  string(REGEX REPLACE "^fuzz_" "fuzz/" test ${name})
  add_test(NAME ${test} COMMAND ${name} --count=${count})
  add_test(NAME ${test}_long COMMAND ${name} --seconds=300 --seed=2)
  set_tests_properties(${test}_long PROPERTIES LABELS long)
endfunction()

add_executable(fuzz_mutants fuzz/mutants_run.cc)
target_link_libraries(fuzz_mutants PRIVATE mge_onnx)
mge_mutants(fuzz_mutants 50000)

# fuzz_devices uses the public API, and the command's sources that generate inputs and compare results.
if(TARGET mge_backend_cpu)
  find_package(CLI11 REQUIRED)
  set(command ${PROJECT_SOURCE_DIR}/core/cli)
  add_executable(fuzz_devices fuzz/mutants_devices.cc ${command}/arguments.cc ${command}/common.cc ${command}/compare.cc
                              ${command}/input_path.cc ${command}/inputs.cc ${command}/terminal.cc)
  target_link_libraries(fuzz_devices PRIVATE mge mge_sdk mge_base CLI11::CLI11 nlohmann_json::nlohmann_json)
  add_dependencies(fuzz_devices mge_backend_cpu)
  mge_mutants(fuzz_devices 5000)
endif()
