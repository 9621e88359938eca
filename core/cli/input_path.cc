// SPDX-License-Identifier: Apache-2.0
#include "core/cli/input_path.h"

#include <unistd.h>

#include <cstdint>
#include <map>

#include "core/base/input_file.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

bool NamesADescriptor(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

}  // namespace

std::string ReopenablePath(const std::string& path) {
  static auto& pipes = *new std::map<std::string, RegularFile>;  // by path; open until the process ends
  if (!NamesADescriptor(path)) return path;
  const std::string name = path == "-" ? "/dev/stdin" : path;
  auto known = pipes.find(name);
  if (known == pipes.end()) {
    absl::StatusOr<RegularFile> file = OpenInput(name, INT64_MAX);
    if (!file.ok() || !IsPipeMemory(file->fd.get())) return name;
    known = pipes.emplace(name, *std::move(file)).first;
  }
  return fmt::format("/proc/{}/fd/{}", getpid(), known->second.fd.get());
}

std::string ReopenableValue(const std::string& value) {
  const size_t at = value.find('=');
  if (NamesADescriptor(value) || at == std::string::npos) return ReopenablePath(value);
  return value.substr(0, at + 1) + ReopenablePath(value.substr(at + 1));
}

}  // namespace mge::cli
