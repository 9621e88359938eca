# SPDX-License-Identifier: Apache-2.0
# Builds the asynchronous test backend, tests/async/async.so of the build tree.
add_library(mge_fake_async MODULE core/engine/fakes/async.cc)
target_link_libraries(mge_fake_async PRIVATE mge_sdk)
target_link_options(mge_fake_async PRIVATE -Wl,--build-id)
set_target_properties(mge_fake_async PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME async SKIP_BUILD_RPATH ON
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/async)
add_dependencies(test_core_engine mge_fake_async)

# mge_engine_fake(NAME SOURCE DEFINITIONS...): builds tests/engine_fakes/NAME.so.
function(mge_engine_fake name source)
  add_library(mge_fake_${name} MODULE core/engine/fakes/${source})
  target_compile_definitions(mge_fake_${name} PRIVATE ${ARGN})
  target_link_libraries(mge_fake_${name} PRIVATE mge_sdk)
  target_link_options(mge_fake_${name} PRIVATE -Wl,--build-id)
  set_target_properties(mge_fake_${name} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} SKIP_BUILD_RPATH ON
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/engine_fakes)
  add_dependencies(test_core_engine mge_fake_${name})
endfunction()

# Kernels that differ in speed and correctness.
mge_engine_fake(tuner tuner.cc)
mge_engine_fake(tuner_own tuner.cc TUNER_OWN TUNER_NAME="tuner_own")
mge_engine_fake(tuner_wraps tuner.cc TUNER_WRAPS TUNER_NAME="tuner_wraps")
mge_engine_fake(tuner_profile tuner.cc TUNER_MODE=MGE_SELECT_PROFILE TUNER_NAME="tuner_profile")
mge_engine_fake(tuner_repeats tuner.cc TUNER_MODE=MGE_SELECT_REPRODUCIBLE TUNER_NAME="tuner_repeats")
mge_engine_fake(tuner_stuck tuner.cc TUNER_STUCK TUNER_NAME="tuner_stuck")
mge_engine_fake(tuner_gpu tuner.cc TUNER_GPU TUNER_NAME="tuner_gpu")
# Backends with their own layout.
mge_engine_fake(sealed sealed.cc)
mge_engine_fake(sealed_by_cost sealed.cc SEALED_BY_COST SEALED_NAME="sealed_by_cost")
mge_engine_fake(sealed_dear sealed.cc SEALED_BY_COST SEALED_REORDER_US=60 SEALED_NAME="sealed_dear")
# Operators whose results ONNX does not define for all data.
mge_engine_fake(edges edges.cc)
# Steps that throw across the boundary.
mge_engine_fake(throwing throwing.cc THROWING_NAME="throwing")
mge_engine_fake(throwing_queues throwing.cc THROWING_QUEUES THROWING_NAME="throwing_queues")
add_dependencies(test_core_engine mge_fake_cuda mge_fake_rocm)  # of core/plugin
add_dependencies(test_core_engine mge_worker_tool)
add_dependencies(test_core_cli mge_fake_tuner mge_fake_tuner_stuck)
