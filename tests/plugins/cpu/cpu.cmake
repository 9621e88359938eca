# SPDX-License-Identifier: Apache-2.0
mge_operator_test(cpu)
add_dependencies(test_plugins_cpu mge_backend_cpu mge_cli)
target_link_libraries(test_plugins_cpu PRIVATE mge_onnx nlohmann_json::nlohmann_json)
target_compile_definitions(test_plugins_cpu PRIVATE MGE_HAS_ONEDNN=$<AND:$<BOOL:${MGE_ONEDNN}>,$<BOOL:${MGE_ONEDNN_INCLUDE}>>
  MGE_HAS_OPENBLAS=$<BOOL:${MGE_OPENBLAS}>)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/jit_test.cc PROPERTIES
  COMPILE_DEFINITIONS MGE_HAS_XBYAK=$<BOOL:${MGE_XBYAK_INCLUDE}>)
add_test(NAME plugins/cpu/random_chains COMMAND test_plugins_cpu --gtest_filter=Jit.RandomChains*)
set_tests_properties(plugins/cpu/random_chains PROPERTIES LABELS long ENVIRONMENT MGE_TEST_RANDOM_CHAINS=1000)
get_property(compilers GLOBAL PROPERTY MGE_JIT_COMPILERS)
if(compilers)
  list(TRANSFORM compilers PREPEND mge_jit_ OUTPUT_VARIABLE helpers)
  add_dependencies(test_plugins_cpu ${helpers})
endif()
add_test(NAME plugins/cpu/compiled_chains COMMAND test_plugins_cpu --gtest_filter=Compilers.RandomChains*)
set_tests_properties(plugins/cpu/compiled_chains PROPERTIES LABELS long ENVIRONMENT MGE_TEST_COMPILED_CHAINS=1000)
if(TARGET mge_cpu_vec_avx512 AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT MGE_SANITIZE)
  set(objects "$<TARGET_OBJECTS:mge_cpu_vec_avx2>;$<TARGET_OBJECTS:mge_cpu_vec_avx512>")
  add_test(NAME plugins_cpu_vec_isolation COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} "-DOBJECTS=${objects}"
           -P ${CMAKE_CURRENT_SOURCE_DIR}/plugins/cpu/vec_isolation.cmake)
endif()
