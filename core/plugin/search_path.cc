// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/search_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "core/base/file.h"
#include "core/base/file_trust.h"
#include "core/base/status.h"
#include "core/plugin/needed.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the reason if another user could put a file into the directory, else "".
std::string WhyOthersMayWrite(std::filesystem::path directory) {
  std::error_code ec;
  std::filesystem::path real;
  while ((real = std::filesystem::canonical(directory, ec)).empty()) {
    if (std::filesystem::is_symlink(directory, ec)) {
      return fmt::format("'{}' is a symbolic link that cannot be resolved", EscapeControl(directory.string()));
    }
    directory = directory.parent_path();
  }
  const Fd fd(open(real.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return fd.valid() ? WhyNotTrusted(fd.get()) : fmt::format("'{}' cannot be opened", EscapeControl(real.string()));
}

// Returns the absolute path of "/opt/lib", "$ORIGIN/lib" or "${ORIGIN}/lib". Returns nullopt for a relative path and for
// other variables, whose meaning depends on the working directory or the machine.
std::optional<std::string> Resolved(std::string_view text, const std::string& origin) {
  std::string out;
  for (std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
    if (!text.starts_with(word)) continue;
    text.remove_prefix(word.size());
    out = origin;
    break;
  }
  if (!text.starts_with('/') && (out.empty() || !text.empty())) return std::nullopt;
  if (text.find('$') != text.npos) return std::nullopt;
  return out.append(text);
}

std::string DirectoryOf(const std::string& file) { return file.substr(0, file.rfind('/')); }

SearchVerdict Relative(const std::string& file, std::string reason) {
  return {
      VerdictCode::kSearchPath, std::move(reason),
      fmt::format("link it with -Wl,-rpath,'$ORIGIN' or without an rpath (in CMake set BUILD_WITH_INSTALL_RPATH, "
                  "because CMake pads a path that it replaces at installation with colons), or correct the file: patchelf "
                  "--set-rpath '$ORIGIN' '{}'",
                  EscapeControl(file))};
}

}  // namespace

SearchVerdict CheckSearchPath(const std::string& file) {
  const absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(file);
  if (!needs.ok()) {
    const ErrorParts parts = PartsOf(needs.status());
    return {VerdictCode::kDamaged, parts.what.empty() ? ErrorTitle(needs.status()) : parts.what, "install it again"};
  }
  const std::string origin = DirectoryOf(file);
  std::vector<std::string> directories;
  for (const std::string& element : needs->directories) {
    const std::optional<std::string> directory = Resolved(element, origin);
    if (!directory) {
      return Relative(file, fmt::format("it looks for libraries in a directory that depends on the working directory or the "
                                        "machine: '{}' in its {} '{}' begins with neither '/' nor '$ORIGIN', or contains "
                                        "another variable",
                                        EscapeControl(element), needs->kind, EscapeControl(needs->Text())));
    }
    directories.push_back(*directory);
  }
  for (const std::string& name : needs->libraries) {
    if (name.find('/') != name.npos && !Resolved(name, origin)) {
      return Relative(file,
                      fmt::format("it needs the library '{}', which the dynamic linker takes from the working directory",
                                  EscapeControl(name)));
    }
  }
  for (const std::string& directory : directories) {
    if (std::string why = WhyOthersMayWrite(directory); !why.empty()) {
      return {VerdictCode::kUntrusted,
              fmt::format("it looks for libraries in '{}', where others may put them: {}", EscapeControl(directory), why),
              "remove write permission of group and others (chmod go-w) and make root or yourself the owner (chown), or "
              "link the backend without that directory"};
    }
  }
  return {};
}

std::vector<std::string> LibrariesBeside(const std::string& file) {
  std::error_code ec;
  const std::string origin = DirectoryOf(std::filesystem::canonical(file, ec));
  const absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(file);
  std::vector<std::string> out;
  if (!needs.ok()) return out;  // dlopen() will report why the library cannot be loaded
  for (const std::string& name : needs->libraries) {
    for (const std::string& element : needs->directories) {
      const std::filesystem::path library = fmt::format("{}/{}", Resolved(element, origin).value_or(""), name);
      if (access(library.c_str(), F_OK) != 0) continue;
      if (element.starts_with('$')) out.push_back(library.lexically_normal().lexically_relative(origin));
      break;
    }
  }
  return out;
}

}  // namespace mge
