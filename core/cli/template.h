// SPDX-License-Identifier: Apache-2.0
// The files of plugins/null, which `mge sdk new` makes a project of; embedded when the command is built (template.cmake).
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
