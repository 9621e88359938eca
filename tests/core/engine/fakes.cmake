# SPDX-License-Identifier: Apache-2.0
# The asynchronous test backend: tests/async/async.so of the build tree.
add_library(mge_fake_async MODULE core/engine/fakes/async.cc)
target_link_libraries(mge_fake_async PRIVATE mge_sdk)
target_link_options(mge_fake_async PRIVATE -Wl,--build-id)
set_target_properties(mge_fake_async PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME async SKIP_BUILD_RPATH ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/async)
add_dependencies(test_core_engine mge_fake_async)
