# SPDX-License-Identifier: Apache-2.0
# mge_embed_template(mge_cli): embeds the files of plugins/null into a target. Generates the function declared in template.h.
function(mge_embed_template target)
  set(folder ${PROJECT_SOURCE_DIR}/plugins/null)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*)
  list(FILTER files EXCLUDE REGEX "^build/")
  set(rows "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${file})
    file(READ ${folder}/${file} text)
    string(APPEND rows "    {\"${file}\", R\"file(${text})file\"},\n")
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/template_files.cc)
  file(WRITE ${source}.new "// Generated from plugins/null.
#include \"core/cli/template.h\"

namespace mge::cli {

std::span<const TemplateFile> TemplateFiles() {
  static constexpr TemplateFile files[] = {
${rows}  };
  return files;
}

}  // namespace mge::cli
")
  file(COPY_FILE ${source}.new ${source} ONLY_IF_DIFFERENT)
  target_sources(${target} PRIVATE ${source})
endfunction()
