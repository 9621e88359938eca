# SPDX-License-Identifier: Apache-2.0
# mge_embed_digits(mge_cli): puts the network, the images and the labels of this folder into a target as constants,
# for the functions that core/cli/demo_data.h declares.
function(mge_embed_digits target)
  set(folder ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(text "// Generated from packaging/digits.\n#include \"core/cli/demo_data.h\"\n\nnamespace mge::cli {\nnamespace {\n\n")
  set(functions "")
  foreach(pair IN ITEMS Model:digits.onnx Images:digits_images.npy Labels:digits_labels.npy)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${file})
    file(READ ${folder}/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    # Aligned as a mapped file is, so that the weights can be used where they are.
    string(APPEND text "alignas(64) constexpr unsigned char k${name}[] = {${bytes}};\n")
    string(APPEND functions "std::span<const unsigned char> Demo${name}() { return k${name}; }\n")
  endforeach()
  string(APPEND text "\n}  // namespace\n\n${functions}\n}  // namespace mge::cli\n")
  set(source ${CMAKE_CURRENT_BINARY_DIR}/demo_data.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE ${source})
endfunction()
