# SPDX-License-Identifier: Apache-2.0
# Tests of a GPU of the machine, and benchmarks, which use libmge only. The tarball has them.
mge_test(gpu LINK mge LABELS gpu)
set_target_properties(test_gpu PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # those of the core
add_custom_target(gpu_tests ALL DEPENDS test_gpu bench_run_entry)

# The same on GPUs in software.
foreach(pair IN ITEMS cuda:libcuda.so.1 rocm:libamdhip64.so.5)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 backend)
  list(GET pair 1 driver)
  if(TARGET test_plugins_${backend})
    string(TOUPPER ${backend} upper)
    add_test(NAME gpu/${backend} COMMAND test_gpu)
    set_tests_properties(gpu/${backend} PROPERTIES ENVIRONMENT
      "GPU_TEST_DEVICE=gpu0;MGE_${upper}_DRIVER=${PROJECT_BINARY_DIR}/lib/mge/test/${driver}")
  endif()
endforeach()
