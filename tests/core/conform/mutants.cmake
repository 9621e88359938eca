# SPDX-License-Identifier: Apache-2.0
# The backend of tests/core/conform/mutants and its mutants: tests/mutants/NAME.so of the build tree. Compiled once; a variant
# is one small C file more.
set(mutants_dir ${CMAKE_CURRENT_LIST_DIR}/mutants)
add_library(mge_mutant OBJECT ${mutants_dir}/backend.cc)
target_link_libraries(mge_mutant PRIVATE mge_sdk)
target_compile_options(mge_mutant PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)

file(STRINGS ${mutants_dir}/mutants.txt rows REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${mutants_dir}/mutants.txt)
foreach(row IN LISTS rows)
  string(REGEX MATCH "^[a-z_]+" name "${row}")
  add_library(mge_mutant_${name} MODULE ${mutants_dir}/variant.c $<TARGET_OBJECTS:mge_mutant>)
  target_compile_definitions(mge_mutant_${name} PRIVATE MUTANT_NAME="${name}")
  set(map ${PROJECT_SOURCE_DIR}/sdk/cmake/mge_backend.map)
  if(name STREQUAL "second_export")
    target_compile_definitions(mge_mutant_${name} PRIVATE MUTANT_SECOND_EXPORT)
    set(map ${mutants_dir}/second.map)
  endif()
  target_link_libraries(mge_mutant_${name} PRIVATE mge_sdk Threads::Threads)
  target_link_options(mge_mutant_${name} PRIVATE -Wl,--version-script=${map} -Wl,--build-id)
  set_target_properties(mge_mutant_${name} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/mutants)
  add_dependencies(test_core_conform mge_mutant_${name})
endforeach()
add_dependencies(test_core_conform mge_backend_null mge_fake_tuner_wraps)
foreach(backend IN ITEMS cpu virtual)
  if(TARGET mge_backend_${backend})
    add_dependencies(test_core_conform mge_backend_${backend})
  endif()
endforeach()
# Every mutant; by default a few of them are judged.
add_test(NAME core/conform/mutants COMMAND test_core_conform --gtest_also_run_disabled_tests --gtest_filter=*DISABLED_*)
set_tests_properties(core/conform/mutants PROPERTIES LABELS long TIMEOUT 900)
