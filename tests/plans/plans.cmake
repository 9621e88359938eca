# SPDX-License-Identifier: Apache-2.0
# Builds test_plans, and the fake backends of its plans as tests/plan_fakes/NAME.so of the build tree.
mge_test(plans LINK mge_plan)
target_sources(test_plans PRIVATE plans/check_plan.cc plans/make_plan.cc plans/operands.cc plans/print_plan.cc plans/fake/setup.cc)

# mge_plan_fake(NAME DEFINITIONS...): builds the backend NAME, whose devices are NAME0, NAME1...
function(mge_plan_fake name)
  add_library(mge_plan_fake_${name} MODULE plans/fake/backend.cc plans/fake/setup.cc)
  target_compile_definitions(mge_plan_fake_${name} PRIVATE FAKE_NAME="${name}" ${ARGN})
  target_link_libraries(mge_plan_fake_${name} PRIVATE mge_sdk)
  target_link_options(mge_plan_fake_${name} PRIVATE -Wl,--build-id)
  set_target_properties(mge_plan_fake_${name} PROPERTIES PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} SKIP_BUILD_RPATH ON
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/plan_fakes)
  add_dependencies(test_plans mge_plan_fake_${name})
endfunction()

mge_plan_fake(cpu)                # host memory, no queues
mge_plan_fake(dsp FAKE_STRATEGY)  # host memory, and a strategy of its own
mge_plan_fake(acc FAKE_QUEUES)    # own memory and queues
mge_plan_fake(npu FAKE_QUEUES)    # a second backend with queues
