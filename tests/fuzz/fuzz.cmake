# SPDX-License-Identifier: Apache-2.0
# mge_fuzz(onnx LINK mge_onnx): fuzz_onnx of onnx_fuzz.cc; its corpus is a test.
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

# Changed models of ONNX's tests: some ten thousands in every run, minutes of them in the long one.
add_executable(fuzz_mutants fuzz/mutants.cc fuzz/mutator.cc fuzz/proto_tree.cc)
target_include_directories(fuzz_mutants PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(fuzz_mutants PRIVATE mge_onnx)
set_target_properties(fuzz_mutants PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
add_test(NAME fuzz/mutants COMMAND fuzz_mutants --count=50000)
add_test(NAME fuzz/mutants_long COMMAND fuzz_mutants --seconds=300 --seed=2)
set_tests_properties(fuzz/mutants_long PROPERTIES LABELS long)
