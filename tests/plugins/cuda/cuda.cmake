# SPDX-License-Identifier: Apache-2.0
# Tests of the CUDA backend over a driver in software. Libraries that record their calls or emulate stand for NVIDIA's.
if(NOT TARGET mge_backend_cpu OR MGE_SANITIZE)  # the runs are many
  return()
endif()
mge_gpu_image_tests(cuda CUDA)

mge_test(plugins/cuda LINK mge_engine mge_kvstore mge_onnx nlohmann_json::nlohmann_json)
file(GLOB zoo CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/cli/zoo/*.cc)
target_sources(test_plugins_cuda PRIVATE ${zoo})
target_compile_definitions(test_plugins_cuda PRIVATE MGE_CXX="${CMAKE_CXX_COMPILER}")
add_dependencies(test_plugins_cuda mge_backend_cuda mge_software_cuda mge_backend_cpu mge_cli mge_conform_tool mge_worker_tool)
set_tests_properties(plugins_cuda PROPERTIES ENVIRONMENT
                     GTEST_FILTER=-*OfLargeModels*:ChainBytes.*:*EveryCall.ThatFails*:*WholeConformanceKit*:*Chains.OfTheConformanceKit*)
add_test(NAME plugins_cuda/large COMMAND test_plugins_cuda)
set_tests_properties(plugins_cuda/large PROPERTIES LABELS long ENVIRONMENT
                     GTEST_FILTER=*OfLargeModels*:ChainBytes.*:*Chains.OfTheConformanceKit*)
# The kit's checks run two at a time, one for each processor.
add_test(NAME plugins_cuda/kit COMMAND test_plugins_cuda)
set_tests_properties(plugins_cuda/kit PROPERTIES ENVIRONMENT GTEST_FILTER=*WholeConformanceKit* PROCESSORS 2)
# Each call fails once, also in the ordinary run. With two devices that is true of the long form only.
add_test(NAME plugins_cuda/every_call COMMAND test_plugins_cuda)
set_tests_properties(plugins_cuda/every_call PROPERTIES ENVIRONMENT
                     "GTEST_FILTER=*EveryCall.ThatFails*;MGE_TEST_EVERY_CALL=1")
add_test(NAME plugins_cuda/every_call_of_two_devices COMMAND test_plugins_cuda)
set_tests_properties(plugins_cuda/every_call_of_two_devices PROPERTIES LABELS long ENVIRONMENT
                     "GTEST_FILTER=*EveryCall.OfTwo*;MGE_TEST_EVERY_CALL=1")
foreach(age IN ITEMS "" _old)
  mge_emulating_compiler(cuda nvrtc${age})
  mge_emulating_collectives(cuda nccl${age} libcuda.so.1)
endforeach()
get_property(has_cudnn GLOBAL PROPERTY MGE_CUDNN)
set(recordings cublaslt cublaslt_old)
if(has_cudnn)
  list(APPEND recordings cudnn cudnn_old)
endif()
foreach(recording IN LISTS recordings)
  string(REPLACE "_old" "" folder ${recording})
  add_library(mge_recording_${recording} MODULE plugins/cuda/${folder}/recording.cc)
  target_include_directories(mge_recording_${recording} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(mge_recording_${recording} SYSTEM PRIVATE ${MGE_CUDA_INCLUDE})
  target_compile_definitions(mge_recording_${recording} PRIVATE MGE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(mge_recording_${recording} PRIVATE mge_sdk ${CMAKE_DL_LIBS})
  set_target_properties(mge_recording_${recording} PROPERTIES OUTPUT_NAME ${recording} LIBRARY_OUTPUT_DIRECTORY
                        ${PROJECT_BINARY_DIR}/tests/cuda)
  add_dependencies(test_plugins_cuda mge_recording_${recording})
endforeach()
set_target_properties(mge_recording_cublaslt PROPERTIES OUTPUT_NAME cublasLt)
# Libraries of versions that the backend does not support.
foreach(old IN ITEMS emulating_nvrtc emulating_nccl recording_cublaslt recording_cudnn)
  if(TARGET mge_${old}_old)
    target_compile_definitions(mge_${old}_old PRIVATE MGE_OLD)
  endif()
endforeach()
if(has_cudnn)
  # Plans of the true cuDNN, which needs no GPU. The SDK's headers and those of the core do not fit into one program.
  file(GLOB sources CONFIGURE_DEPENDS plugins/cuda/plans/*_test.cc ${PROJECT_SOURCE_DIR}/plugins/cuda/cudnn_*.cc
       ${PROJECT_SOURCE_DIR}/plugins/gpu/runtime/vendor_library.cc ${PROJECT_SOURCE_DIR}/plugins/gpu/support/layout.cc)
  list(FILTER sources EXCLUDE REGEX cudnn_device.cc)
  add_executable(test_plugins_cuda_plans ${sources})
  target_include_directories(test_plugins_cuda_plans PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(test_plugins_cuda_plans SYSTEM PRIVATE ${MGE_CUDA_INCLUDE})
  target_link_libraries(test_plugins_cuda_plans PRIVATE mge_sdk GTest::gtest_main ${CMAKE_DL_LIBS})
  target_compile_definitions(test_plugins_cuda_plans PRIVATE MGE_BINARY_DIR="${PROJECT_BINARY_DIR}"
                             MGE_CUDA_LIBRARIES="${MGE_CUDA_INCLUDE}/../lib")
  set_target_properties(test_plugins_cuda_plans PROPERTIES CXX_VISIBILITY_PRESET hidden
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(test_plugins_cuda_plans test_plugins_cuda)
  add_test(NAME plugins_cuda_plans COMMAND test_plugins_cuda_plans)
endif()

# Code for the tensor cores of capability 8.0, which the ordinary build of the backend may lack.
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/gpu/kernels/*_mma.cu)
file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/gpu/port.h ${PROJECT_SOURCE_DIR}/plugins/gpu/kernels/*.h)
set(images "")
foreach(kernel IN LISTS kernels)
  get_filename_component(id ${kernel} NAME_WE)
  set(image ${PROJECT_BINARY_DIR}/tests/cuda/${id}_80.fatbin)
  add_custom_command(OUTPUT ${image} DEPENDS ${kernel} ${headers} VERBATIM COMMENT "Building ${id}.cu for capability 8.0"
    COMMAND ${MGE_NVCC} -fatbin -gencode=arch=compute_80,code=sm_80 -diag-suppress 186 -Werror all-warnings
            -ccbin ${CMAKE_CXX_COMPILER} -std=c++20 -O3 -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/sdk/include -o ${image}
            ${kernel})
  list(APPEND images ${image})
endforeach()
add_custom_target(test_images_80 DEPENDS ${images})
add_dependencies(test_plugins_cuda_images test_images_80)
