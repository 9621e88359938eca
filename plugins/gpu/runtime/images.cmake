# SPDX-License-Identifier: Apache-2.0
# Script: writes the table of kernel images.
#   COMPILER COMPILER_FLAGS  C++ compiler, which expands the macros of the kernel files
#   KERNELS IMAGES           the .cu files, and their images in the same order
#   TEMPLATE OUTPUT          images.cc.in and the result
set(data "")
set(images "")
set(kernels "")
set(index 0)
foreach(file image IN ZIP_LISTS KERNELS IMAGES)
  get_filename_component(id ${file} NAME_WE)
  execute_process(COMMAND ${COMPILER} ${COMPILER_FLAGS} -E -P -x c++ ${file} OUTPUT_VARIABLE text RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "cannot preprocess ${file}")
  endif()
  # Each kernel became an entry of the emulation's list (GPU_ENTRY in emulation/device.h).
  string(REGEX MATCHALL "emulation::Kernel [A-Za-z0-9_]+_kernel = {\"[A-Za-z0-9_]+\"" entries "${text}")
  foreach(entry IN LISTS entries)
    string(REGEX REPLACE ".*\"(.*)\"" "\\1" name "${entry}")
    list(APPEND kernels "    {\"${name}\", ${index}}")
  endforeach()
  string(APPEND data "extern \"C\" const char mge_image_${id}[];\n"
    "asm(\".pushsection .rodata\\n.balign 64\\n.global mge_image_${id}\\n.hidden mge_image_${id}\\n"
    "mge_image_${id}:\\n.incbin \\\"${image}\\\"\\n.popsection\");\n")
  list(APPEND images "    {\"${id}\", mge_image_${id}}")
  math(EXPR index "${index} + 1")
endforeach()
list(SORT kernels COMPARE STRING)
list(JOIN images ",\n" MGE_IMAGES)
list(JOIN kernels ",\n" MGE_IMAGE_KERNELS)
set(MGE_IMAGE_DATA "${data}")
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
