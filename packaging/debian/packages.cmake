# SPDX-License-Identifier: Apache-2.0
# The Debian packages that packaging/deb.sh makes by `cpack -G DEB`: names, sections, dependencies, descriptions.
# mge_debian_package(COMPONENT NAME SECTION SUMMARY TEXT): TEXT is the extended description.
function(mge_debian_package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(packages ${CPACK_COMPONENTS_ALL} ${component})
  set(CPACK_COMPONENTS_ALL ${packages} PARENT_SCOPE)
endfunction()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# The maintainer is whoever makes the packages, as Debian's own tools know them.
set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
if(NOT DEFINED ENV{DEBFULLNAME} OR NOT DEFINED ENV{DEBEMAIL})
  set(maintainer "Local build of MGE <mge@mge.invalid>")
endif()
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")

# A version that is not released is newer than the last one: its commit's date and name follow the number.
set(version ${PROJECT_VERSION})
file(STRINGS CHANGELOG.md heading REGEX "^## " LIMIT_COUNT 1)
set(time "")
if(heading MATCHES "not released")
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --abbrev=8 --date=format:%Y%m%d --format=%cd.%h
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD
                  OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(APPEND version "+git${commit}")
endif()
if(NOT time)
  execute_process(COMMAND date -R OUTPUT_VARIABLE time OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
set(CPACK_DEBIAN_PACKAGE_VERSION ${version})

# The packages of the libraries that the CPU backend opens by name. That of oneDNN has its version in its name.
execute_process(COMMAND dpkg-query --show --showformat=\${Depends} libdnnl-dev OUTPUT_VARIABLE depends ERROR_QUIET)
string(REGEX MATCH "libdnnl[0-9.]+" dnnl "${depends}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "libopenblas0-pthread | libopenblas0")
if(dnnl)
  string(PREPEND CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "${dnnl}, ")
endif()

set(CPACK_COMPONENTS_ALL "")
mge_debian_package(library libmge0 libs "runtime for ONNX models with loadable device backends"
"MGE (Modular Graph Engine) runs and trains deep-learning models in the ONNX
format. This package has its library, the backend for the CPU, which is fast
with AVX2, a GPU in software, and the program that measures kernels.
.
oneDNN and OpenBLAS make it faster. Backends for GPUs are in the packages
mge-backend-cuda and mge-backend-rocm.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/debian/triggers ${PROJECT_BINARY_DIR}/debian/shlibs)
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libmge 0 libmge0 (= ${version})\n")

mge_debian_package(development libmge-dev libdevel "runtime for ONNX models (headers and SDK)"
"Headers for programs in C and C++ that use MGE (Modular Graph Engine), and
the SDK for authors of device backends, with its guide, examples and the
reference of the Python package.")
set(CPACK_COMPONENT_DEVELOPMENT_DEPENDS library)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "cmake, pkg-config")

mge_debian_package(tool mge science "runtime for ONNX models (command)"
"The command of MGE (Modular Graph Engine), which runs, trains, inspects,
measures and compares deep-learning models in the ONNX format, and shows for
each step the device, the kernel, the memory, and the reasons.")
set(CPACK_COMPONENT_TOOL_DEPENDS library)
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS "libmge-dev, python3-mge")

mge_debian_package(python python3-mge python "runtime for ONNX models (Python 3)"
"The Python package of MGE (Modular Graph Engine): sessions, training,
language models, single operators with gradients, and data loaders. Its module
mge.onnxruntime runs scripts that are written for ONNX Runtime.")
set(CPACK_COMPONENT_PYTHON_DEPENDS library)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/debian/postinst ${CMAKE_CURRENT_SOURCE_DIR}/debian/prerm)

if(TARGET mge_backend_cuda)
  mge_debian_package(cuda mge-backend-cuda contrib/science "runtime for ONNX models (NVIDIA GPUs)"
"The backend of MGE (Modular Graph Engine) for NVIDIA GPUs since Turing. It
needs NVIDIA's driver, version 580 or later. It opens cuBLASLt, cuDNN, NVRTC
and NCCL of CUDA 13 if they are installed, which make it faster.")
  set(CPACK_COMPONENT_CUDA_DEPENDS library)
  set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS
      "libcuda1 (>= 580), libcublas-13-0, cuda-nvrtc-13-0, libcudnn9-cuda-13, libnccl2")
endif()
if(TARGET mge_backend_rocm)
  mge_debian_package(rocm mge-backend-rocm science "runtime for ONNX models (AMD GPUs)"
"The backend of MGE (Modular Graph Engine) for AMD GPUs. It needs the kernel's
driver amdgpu and the HIP runtime. It opens rocBLAS, MIOpen, hiprtc and RCCL
if they are installed, which make it faster.")
  set(CPACK_COMPONENT_ROCM_DEPENDS library)
  set(CPACK_DEBIAN_ROCM_PACKAGE_SUGGESTS "libamdhip64-5, librocblas0, libhiprtc-builtins5")
endif()
if(TARGET mge_backend_mpi)
  mge_debian_package(mpi mge-transport-mpi science "runtime for ONNX models (training by MPI)"
"The transport of MGE (Modular Graph Engine) for trainings on several
processes and machines that Open MPI starts.")
  set(CPACK_COMPONENT_MPI_DEPENDS library)
  set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
endif()

# The compilers of elementwise chains, which the CPU backend opens if a user asks for one.
if("halide" IN_LIST compilers)
  mge_debian_package(jit_halide mge-jit-halide science "runtime for ONNX models (compiler Halide)"
"Compiles the elementwise chains of MGE (Modular Graph Engine) on the CPU with
Halide, if the setting jit.backend names it.")
  set(CPACK_COMPONENT_JIT_HALIDE_DEPENDS library)
  set(CPACK_DEBIAN_JIT_HALIDE_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_JIT_HALIDE_PACKAGE_DEPENDS libhalide14-0)
endif()
if("mlir" IN_LIST compilers)
  mge_debian_package(jit_mlir mge-jit-mlir science "runtime for ONNX models (compiler MLIR)"
"Compiles the elementwise chains of MGE (Modular Graph Engine) on the CPU with
MLIR, if the setting jit.backend names it.")
  set(CPACK_COMPONENT_JIT_MLIR_DEPENDS library)
  set(CPACK_DEBIAN_JIT_MLIR_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_JIT_MLIR_PACKAGE_DEPENDS "libmlir-15, libllvm15")
endif()

# What every package has beside its files.
configure_file(debian/finish.cmake.in debian/finish.cmake @ONLY)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_BINARY_DIR}/debian/finish.cmake)
