# SPDX-License-Identifier: Apache-2.0
# Backends built from other versions of the headers, and a comparison of the interfaces with their checked-in descriptions.

set(plugin_h ${PROJECT_SOURCE_DIR}/sdk/include/mge/plugin.h)

# Writes the plugin.h of another age for the backend SOURCE.c into a folder, which is stored in OUTPUT.
function(mge_header_of_age source age output)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/abi/${age}_${source})
  set(${output} ${folder} PARENT_SCOPE)
  set(backend ${CMAKE_CURRENT_SOURCE_DIR}/abi/${source}.c)
  add_custom_command(OUTPUT ${folder}/mge/plugin.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}/mge
    COMMAND ${CMAKE_COMMAND} -DHEADER=${plugin_h} -DSOURCE=${backend} -DAGE=${age} -DOUTPUT=${folder}/mge/plugin.h
            -P ${CMAKE_CURRENT_SOURCE_DIR}/abi/synthetic.cmake
    DEPENDS ${plugin_h} ${backend} ${CMAKE_CURRENT_SOURCE_DIR}/abi/synthetic.cmake
            ${PROJECT_SOURCE_DIR}/sdk/cmake/members.cmake VERBATIM)
endfunction()

# Builds SOURCE_AGE.so from SOURCE.c and the headers of that age, which come before the SDK's in the include path.
function(mge_backend_of_age source age)
  set(name ${source}_${age})
  add_library(mge_${name} MODULE abi/${source}.c)
  if(NOT age STREQUAL "same")
    mge_header_of_age(${source} ${age} folder)
    target_sources(mge_${name} PRIVATE ${folder}/mge/plugin.h)
    target_include_directories(mge_${name} BEFORE PRIVATE ${folder})
  endif()
  target_link_libraries(mge_${name} PRIVATE mge_sdk)
  target_compile_definitions(mge_${name} PRIVATE "BACKEND_NAME=\"${name}\"")
  target_compile_options(mge_${name} PRIVATE -Wno-missing-field-initializers)
  target_link_options(mge_${name} PRIVATE -Wl,--build-id -Wl,-z,defs)
  set_target_properties(mge_${name} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} C_STANDARD 11
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/abi)
  add_dependencies(test_abi mge_${name})
endfunction()

mge_test(abi LINK mge_engine)
foreach(source IN ITEMS relu queues)
  foreach(age IN ITEMS older same newer)
    mge_backend_of_age(${source} ${age})
  endforeach()
endforeach()

# A library whose debug information describes the whole interface of applications and backends.
set(stub ${CMAKE_CURRENT_BINARY_DIR}/abi/interfaces.c)
add_custom_command(OUTPUT ${stub}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/abi
  COMMAND ${CMAKE_COMMAND} -DINCLUDES=${PROJECT_SOURCE_DIR}/sdk/include/mge -DOUTPUT=${stub}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/abi/stub.cmake
  DEPENDS ${PROJECT_SOURCE_DIR}/sdk/include/mge/mge.h ${PROJECT_SOURCE_DIR}/sdk/include/mge/context.h
          ${PROJECT_SOURCE_DIR}/sdk/include/mge/eager.h ${PROJECT_SOURCE_DIR}/sdk/include/mge/generate.h ${plugin_h} ${CMAKE_CURRENT_SOURCE_DIR}/abi/stub.cmake VERBATIM)
foreach(age IN ITEMS "" _newer)
  add_library(mge_interfaces${age} SHARED ${stub})
  target_link_libraries(mge_interfaces${age} PRIVATE mge_sdk)
  target_compile_options(mge_interfaces${age} PRIVATE -g -w -fvisibility=default)
  set_target_properties(mge_interfaces${age} PROPERTIES OUTPUT_NAME mge_interfaces
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/abi/interfaces${age})
  add_dependencies(test_abi mge_interfaces${age})
endforeach()
target_include_directories(mge_interfaces_newer BEFORE PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/abi/newer_relu)
target_sources(mge_interfaces_newer PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/abi/newer_relu/mge/plugin.h)
add_dependencies(test_abi mge)
target_compile_definitions(test_abi PRIVATE MGE_INTERFACES="$<TARGET_FILE:mge_interfaces>")

find_program(MGE_ABIDIFF abidiff)
find_program(MGE_ABIDW abidw)
set(baseline ${CMAKE_CURRENT_SOURCE_DIR}/abi/interfaces.abi)
if(MGE_ABIDIFF AND NOT MGE_SANITIZE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")  # sizes are those of one machine
  add_test(NAME abi/interfaces COMMAND ${MGE_ABIDIFF} ${baseline} $<TARGET_FILE:mge_interfaces>)
  add_test(NAME abi/interfaces_differ COMMAND ${MGE_ABIDIFF} ${baseline} $<TARGET_FILE:mge_interfaces_newer>)
  set_tests_properties(abi/interfaces_differ PROPERTIES WILL_FAIL TRUE)  # the comparison sees a change where there is one
endif()
if(MGE_ABIDW)
  set(write_lists "$<TARGET_FILE:test_sdk> --gtest_filter='*Abi.Is*'; $<TARGET_FILE:test_abi> --gtest_filter='Symbols.*'")
  add_custom_target(mge_abi_baseline
    COMMAND ${MGE_ABIDW} --no-corpus-path --no-comp-dir-path --no-show-locs --out-file ${baseline}
            $<TARGET_FILE:mge_interfaces>
    COMMAND sh -c "{ ${write_lists}; } >/dev/null; true"  # the tests fail if the interface has changed
    COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/tests/plugin_abi.txt ${PROJECT_BINARY_DIR}/tests/application_abi.txt
            ${PROJECT_BINARY_DIR}/tests/libmge_symbols.txt ${CMAKE_CURRENT_SOURCE_DIR}/abi
    COMMENT "writing the descriptions of the interfaces to tests/abi" VERBATIM)
  add_dependencies(mge_abi_baseline mge_interfaces test_sdk test_abi)
endif()

add_test(NAME abi/declarations COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}
         -P ${CMAKE_CURRENT_SOURCE_DIR}/abi/declarations_test.cmake)
add_test(NAME abi/members COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}
         -P ${CMAKE_CURRENT_SOURCE_DIR}/abi/members_test.cmake)
