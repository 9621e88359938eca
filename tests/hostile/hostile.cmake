# SPDX-License-Identifier: Apache-2.0
# The hostile backend, and the tests that use it.
add_library(mge_hostile MODULE hostile/hostile.cc)
target_link_libraries(mge_hostile PRIVATE mge_sdk)
target_link_options(mge_hostile PRIVATE -Wl,--build-id)
target_compile_options(mge_hostile PRIVATE -fno-sanitize=undefined)  # it goes wrong on purpose
set_target_properties(mge_hostile PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME hostile SKIP_BUILD_RPATH ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/fakes)

mge_test(hostile LINK mge_engine nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
add_dependencies(test_hostile mge_hostile mge_cli mge mge_fake_missing_library mge_fake_missing_in_turn
                 mge_fake_missing_symbol
                 mge_fake_searches mge_fake_gone mge_conform_tool mge_worker_tool mge_backend_null)
if(TARGET mge_backend_virtual)
  add_dependencies(test_hostile mge_backend_virtual)
endif()
