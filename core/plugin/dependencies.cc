// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/dependencies.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/file_trust.h"
#include "core/base/status.h"
#include "core/plugin/needed.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the path of a library in the dynamic linker's cache, or "". The cache holds each path as a text that ends with 0.
std::string PathInCache(std::string_view cache, const std::string& name) {
  const std::string end = "/" + name + std::string(1, '\0');
  const size_t at = cache.find(end);
  if (at == cache.npos) return {};
  const size_t begin = cache.rfind('\0', at) + 1;
  return std::string(cache.substr(begin, at + end.size() - 1 - begin));
}

std::string Find(const std::string& name, const std::vector<std::string>& directories, std::string_view cache) {
  if (name.find('/') != name.npos) return access(name.c_str(), F_OK) == 0 ? name : std::string();
  for (const std::string& directory : directories) {
    if (std::string path = directory + "/" + name; access(path.c_str(), F_OK) == 0) return path;
  }
  const std::string path = PathInCache(cache, name);
  return !path.empty() && access(path.c_str(), F_OK) == 0 ? path : std::string();
}

}  // namespace

std::string WhyDependenciesFail(const std::string& file) {
  const absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(file);
  if (!needs.ok()) return {};  // discovery reports it
  std::vector<std::string> directories;
  for (std::string directory : needs->directories) {
    for (std::string_view origin : {"$ORIGIN", "${ORIGIN}"}) {
      if (directory.starts_with(origin)) directory.replace(0, origin.size(), file.substr(0, file.rfind('/')));
    }
    directories.push_back(std::move(directory));
  }
  for (const char* directory : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) directories.emplace_back(directory);
  std::ifstream in("/etc/ld.so.cache", std::ios::binary);
  const std::string cache((std::istreambuf_iterator<char>(in)), {});
  for (const std::string& name : needs->libraries) {
    const std::string path = Find(name, directories, cache);
    if (path.empty()) {
      return fmt::format(
          "it needs the library {}, which is neither in its {} nor in the system's directories: install it, or "
          "name its directory in LD_LIBRARY_PATH",
          EscapeControl(name), needs->kind.empty() ? "RUNPATH" : needs->kind);
    }
    std::error_code ignored;
    const std::string real = std::filesystem::canonical(path, ignored).string();
    const Fd fd(open(real.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    const std::string why = fd.valid() ? WhyNotTrusted(fd.get()) : "it cannot be opened";
    if (!why.empty()) return fmt::format("it needs the library '{}': {}", EscapeControl(real), why);
  }
  return {};
}

}  // namespace mge
