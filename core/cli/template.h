// SPDX-License-Identifier: Apache-2.0
// The files of plugins/null, from which `mge sdk new` creates a project. The build embeds them (template.cmake).
#pragma once

#include <span>
#include <string_view>

namespace mge::cli {

struct TemplateFile {
  std::string_view path;  // within the project
  std::string_view text;
};

std::span<const TemplateFile> TemplateFiles();

}  // namespace mge::cli
