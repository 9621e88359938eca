# SPDX-License-Identifier: Apache-2.0
# Tests of a GPU of the machine, and benchmarks, which use libmge only. The tarball has them.
mge_test(gpu LINK mge LABELS gpu)
set_tests_properties(gpu PROPERTIES RUN_SERIAL ON)  # it compares the memory of the device in use
set_target_properties(test_gpu PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # those of the core
add_custom_target(gpu_tests ALL DEPENDS test_gpu bench_run_entry)

# The same on GPUs in software.
foreach(pair IN ITEMS cuda:rocm:libcuda.so.1 rocm:cuda:libamdhip64.so.5)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 backend)
  list(GET pair 1 other)  # gpu0 must not be a real GPU
  list(GET pair 2 driver)
  if(TARGET test_plugins_${backend})
    string(TOUPPER ${backend} upper)
    add_test(NAME gpu/${backend} COMMAND test_gpu)
    set_tests_properties(gpu/${backend} PROPERTIES ENVIRONMENT
      "GPU_TEST_DEVICE=gpu0;MGE_PLUGIN_SKIP=${other};MGE_${upper}_DRIVER=${PROJECT_BINARY_DIR}/lib/mge/test/${driver}")
  endif()
endforeach()
