# SPDX-License-Identifier: Apache-2.0
# Builds test_growth with counted copies of the layers that plan. The linker takes no object from their libraries, since the
# copies define all their symbols.
if(MGE_SANITIZE)
  return()
endif()
file(GLOB_RECURSE counted CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/graph/*.cc ${PROJECT_SOURCE_DIR}/core/kernel/*.cc
     ${PROJECT_SOURCE_DIR}/core/plan/*.cc)
add_library(mge_counted OBJECT EXCLUDE_FROM_ALL ${counted})
mge_unity(mge_counted)
target_link_libraries(mge_counted PRIVATE mge_plan)
target_compile_options(mge_counted PRIVATE -O1 -fsanitize-coverage=trace-pc)
mge_test(growth LINK mge_counted mge_plan)
target_sources(test_growth PRIVATE growth/count_blocks.cc)
add_dependencies(test_growth mge_plan_fake_cpu mge_plan_fake_acc)
