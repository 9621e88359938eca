# SPDX-License-Identifier: Apache-2.0
# Tests of the ROCm backend over a driver in software. Libraries that emulate stand for AMD's.
if(NOT TARGET mge_backend_cpu OR MGE_SANITIZE)  # the runs are many
  return()
endif()
mge_gpu_image_tests(rocm HIP)

mge_test(plugins/rocm LINK mge_engine)
add_dependencies(test_plugins_rocm mge_backend_rocm mge_software_hip mge_backend_cpu mge_cli mge_conform_tool mge_worker_tool)
target_compile_definitions(test_plugins_rocm PRIVATE MGE_CXX="${CMAKE_CXX_COMPILER}")
mge_emulating_compiler(rocm hiprtc)
mge_emulating_collectives(rocm rccl libamdhip64.so.5)
mge_emulating_collectives(rocm rccl_old libamdhip64.so.5)
target_compile_definitions(mge_emulating_rccl_old PRIVATE MGE_OLD)
foreach(library IN ITEMS rocblas miopen)
  set(emulating mge_emulating_${library})
  add_library(${emulating} MODULE plugins/rocm/emulating/${library}.cc)
  target_include_directories(${emulating} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${emulating} PRIVATE MGE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${emulating} PRIVATE mge_sdk ${CMAKE_DL_LIBS})
  set_target_properties(${emulating} PROPERTIES OUTPUT_NAME ${library} LIBRARY_OUTPUT_DIRECTORY
                        ${PROJECT_BINARY_DIR}/tests/rocm)
  add_dependencies(test_plugins_rocm ${emulating})
endforeach()

# The whole conformance kit. In the ordinary run it is that of the CUDA backend, with which ROCm's has all but names in common.
add_test(NAME plugins_rocm/kit COMMAND ${PROJECT_BINARY_DIR}/bin/mge sdk test
         ${PROJECT_BINARY_DIR}/lib/mge/plugins/mge_rocm.so)
set_tests_properties(plugins_rocm/kit PROPERTIES LABELS long
                     ENVIRONMENT MGE_ROCM_DRIVER=${PROJECT_BINARY_DIR}/lib/mge/test/libamdhip64.so.5)
