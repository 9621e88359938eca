# SPDX-License-Identifier: Apache-2.0
# The simulated cluster, and the program simulate_training, which prints the efficiency of training on it.
set(simulated ${CMAKE_CURRENT_SOURCE_DIR}/core/kvstore/simulated)
target_sources(test_core_kvstore PRIVATE ${simulated}/cluster.cc)
add_executable(simulate_training EXCLUDE_FROM_ALL ${simulated}/efficiency.cc ${simulated}/cluster.cc)
target_link_libraries(simulate_training PRIVATE mge_kvstore)
target_include_directories(simulate_training PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(simulate_training PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
