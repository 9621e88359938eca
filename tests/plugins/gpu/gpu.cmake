# SPDX-License-Identifier: Apache-2.0
# The test backend of the kernels of plugins/gpu, tests/gpu/mge_emulated.so of the build tree.
add_library(mge_emulated MODULE plugins/gpu/emulated/backend.cc)
target_link_libraries(mge_emulated PRIVATE mge_gpu_ops mge_gpu_emulation)
target_link_options(mge_emulated PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/sdk/cmake/mge_backend.map -Wl,-z,defs
                    -Wl,--build-id)
set_target_properties(mge_emulated PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/gpu)
add_custom_command(TARGET mge_emulated POST_BUILD COMMAND chmod 0755 $<TARGET_FILE:mge_emulated> VERBATIM)

mge_operator_test(gpu)
add_dependencies(test_plugins_gpu mge_emulated)
# The emulator, with kernels written for its tests.
mge_gpu_emulate(plugins/gpu/kernels/machine.cu)
target_sources(test_plugins_gpu PRIVATE plugins/gpu/kernels/machine.cu)
target_link_libraries(test_plugins_gpu PRIVATE mge_gpu_emulation)

# The checkers, built if the tree itself has no sanitizer. They contain the emulator and all kernels.
if(NOT MGE_SANITIZE)
  file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/gpu/kernels/*.cu)
  mge_gpu_emulate(${kernels})
  list(APPEND kernels plugins/gpu/kernels/machine.cu)
  set(emulation ${PROJECT_SOURCE_DIR}/plugins/gpu/emulation)
  set(emulator plugins/gpu/kernels/launches.cc plugins/gpu/kernels/convolution_launches.cc plugins/gpu/kernels/quantized_launches.cc
      ${emulation}/emulator.cc ${emulation}/fiber.cc)

  mge_test(plugins/gpu/overruns LINK mge_sdk)
  set_target_properties(test_plugins_gpu_overruns PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)  # compiled without the sanitizer
  target_sources(test_plugins_gpu_overruns PRIVATE ${kernels} ${emulator})
  target_compile_options(test_plugins_gpu_overruns PRIVATE -g1 -fno-omit-frame-pointer -fsanitize=address)
  target_link_options(test_plugins_gpu_overruns PRIVATE -fsanitize=address)

  # Kernels instrumented for races are linked with the checker's runtime instead of libtsan.
  mge_test(plugins/gpu/races LINK mge_sdk)
  add_library(mge_gpu_race_kernels OBJECT ${kernels})
  target_include_directories(mge_gpu_race_kernels PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(mge_gpu_race_kernels PRIVATE mge_sdk)
  target_compile_options(mge_gpu_race_kernels PRIVATE -O1 -fsanitize=thread)
  target_sources(test_plugins_gpu_races PRIVATE $<TARGET_OBJECTS:mge_gpu_race_kernels> ${emulator} ${emulation}/races.cc)
  target_compile_definitions(mge_gpu_race_kernels PRIVATE MGE_GPU_RACES)
  target_compile_definitions(test_plugins_gpu_races PRIVATE MGE_GPU_RACES)
endif()

# mge_emulating_compiler(cuda nvrtc): a compiler at run time for the tests of a backend.
function(mge_emulating_compiler backend name)
  set(library mge_emulating_${name})
  add_library(${library} MODULE plugins/gpu/run_time_compiler/emulating.cc)
  string(TOUPPER ${name} upper)
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${library} PRIVATE MGE_EMULATING_${upper} MGE_BINARY_DIR="${PROJECT_BINARY_DIR}"
                             MGE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" MGE_CXX="${CMAKE_CXX_COMPILER}")
  target_link_libraries(${library} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(${library} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY
                        ${PROJECT_BINARY_DIR}/tests/${backend})
  add_dependencies(test_plugins_${backend} ${library})
endfunction()
# mge_emulating_collectives(cuda nccl libcuda.so.1): a library of collectives for the tests of a backend.
function(mge_emulating_collectives backend name driver)
  set(library mge_emulating_${name})
  add_library(${library} MODULE plugins/gpu/collectives/emulating.cc ${PROJECT_SOURCE_DIR}/plugins/gpu/software/shared_group.cc)
  target_compile_definitions(${library} PRIVATE MGE_DRIVER="${PROJECT_BINARY_DIR}/lib/mge/test/${driver}")
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${library} PRIVATE mge_sdk ${CMAKE_DL_LIBS})
  target_link_options(${library} PRIVATE -Wl,-z,defs)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY
                        ${PROJECT_BINARY_DIR}/tests/${backend})
  add_dependencies(test_plugins_${backend} ${library})
endfunction()

# mge_gpu_image_tests(cuda CUDA): tests the kernels in the images of a backend. The SDK's headers and those of the core do not
# fit into one program.
function(mge_gpu_image_tests backend world)
  mge_test(plugins/${backend}/images LINK mge_gpu_emulation ${CMAKE_DL_LIBS})
  mge_gpu_embed(test_plugins_${backend}_images ${world})
endfunction()
