// SPDX-License-Identifier: Apache-2.0
#include "core/cli/input_path.h"

#include <unistd.h>

#include <cstdint>
#include <map>

#include "core/base/input_file.h"
#include "fmt/format.h"

namespace mge::cli {

std::string ReopenablePath(const std::string& path) {
  static auto& pipes = *new std::map<std::string, RegularFile>;  // by path; open until the process ends
  const std::string name = path == "-" ? "/dev/stdin" : path;
  auto known = pipes.find(name);
  if (known == pipes.end()) {
    if (!NamesPipe(name)) return name;
    absl::StatusOr<RegularFile> file = OpenInput(name, INT64_MAX);
    if (!file.ok()) return name;
    known = pipes.emplace(name, *std::move(file)).first;
  }
  return fmt::format("/proc/{}/fd/{}", getpid(), known->second.fd.get());
}

std::string ReopenableValue(const std::string& value) {
  const size_t at = value.find('=');
  if (at == std::string::npos || NamesPipe(value)) return ReopenablePath(value);
  return value.substr(0, at + 1) + ReopenablePath(value.substr(at + 1));
}

}  // namespace mge::cli
