// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/search_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/base/file.h"
#include "core/base/file_trust.h"
#include "core/base/status.h"
#include "core/plugin/needed.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kMostLinks = 40;  // the limit of the Linux kernel
constexpr size_t kMostLibraries = 256;

// Returns the reason if another user could write a file or directory, else "". The path must hold no symbolic link.
std::string WhyOthersMayWrite(const std::string& at) {
  Fd fd(open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return fd.valid() ? WhyNotTrusted(fd.get()) : fmt::format("'{}' cannot be opened", at);
}

// Returns the reason if another user could decide what an absolute path leads to, else "". Walks the path like the kernel
// does. Checks each directory that holds a symbolic link of the path, and the end of the path, or its last existing
// directory.
std::string WhyOthersMayPut(const std::string& path) {
  std::string at = "/";
  std::vector<std::string> todo;  // components, last first
  auto push = [&](std::string_view text) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('/', begin), text.size());
      parts.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    todo.insert(todo.end(), parts.rbegin(), parts.rend());
  };
  push(path);
  for (int links = 0; !todo.empty();) {
    std::string part = std::move(todo.back());
    todo.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      at.resize(std::max<size_t>(at.rfind('/'), 1));
      continue;
    }
    std::string next = fmt::format("{}{}{}", at, at.ends_with('/') ? "" : "/", part);
    struct stat st;
    if (lstat(next.c_str(), &st) != 0) break;
    if (!S_ISLNK(st.st_mode)) {
      at = std::move(next);
      continue;
    }
    if (std::string why = WhyOthersMayWrite(at); !why.empty()) return why;
    char target[PATH_MAX];
    const ssize_t size = readlink(next.c_str(), target, sizeof(target));
    if (++links > kMostLinks || size <= 0 || size == sizeof(target)) {
      return fmt::format("'{}' is a symbolic link that cannot be resolved", next);
    }
    if (target[0] == '/') at.resize(1);
    push({target, static_cast<size_t>(size)});
  }
  return WhyOthersMayWrite(at);
}

// Returns the absolute path of "/opt/lib", "$ORIGIN/lib" or "${ORIGIN}/lib". Returns nullopt for a relative path and for
// other variables, whose meaning depends on the working directory or the machine.
std::optional<std::string> Resolved(const std::string& text, const std::string& origin) {
  std::string_view rest = text;
  std::string out;
  for (std::string_view word : {"$ORIGIN", "${ORIGIN}"}) {
    if (!rest.starts_with(word)) continue;
    rest.remove_prefix(word.size());
    out = origin;
    break;
  }
  if (!rest.starts_with('/') && (out.empty() || !rest.empty())) return std::nullopt;
  if (rest.find('$') != rest.npos) return std::nullopt;
  return out.append(rest);
}

// Returns the path at which an object in the directory `origin` finds a library by $ORIGIN. Returns "" if it finds the
// library in another way or not at all.
std::string FoundByOrigin(const ElfNeeds& needs, const std::string& origin, const std::string& name) {
  if (name.find('/') != name.npos) return name.starts_with('$') ? Resolved(name, origin).value_or("") : "";
  for (const ElfSearchPath& path : needs.paths) {
    for (const std::string& element : ElementsOf(path)) {
      std::optional<std::string> place = Resolved(element, origin);
      if (!place) continue;
      std::string candidate = fmt::format("{}/{}", *place, name);
      if (access(candidate.c_str(), F_OK) == 0) return element.starts_with('$') ? candidate : "";
    }
  }
  return {};
}

SearchVerdict Relative(const std::string& file, std::string reason) {
  return {
      VerdictCode::kSearchPath, std::move(reason),
      fmt::format("link it with -Wl,-rpath,'$ORIGIN' or without an rpath (in CMake set BUILD_WITH_INSTALL_RPATH, "
                  "because CMake pads a path that it replaces at installation with colons), or correct the file: patchelf "
                  "--set-rpath '$ORIGIN' '{}'",
                  EscapeControl(file))};
}

SearchVerdict Writable(std::string reason) {
  return {VerdictCode::kUntrusted, std::move(reason),
          "remove write permission of group and others (chmod go-w) and make root or yourself the owner (chown), or link "
          "the backend without that directory"};
}

// A directory in which the dynamic linker looks for libraries. If `any_machine` is false, only some processors use it.
struct Place {
  std::string directory;
  bool any_machine = true;
};

// Adds a directory, and its glibc-hwcaps subdirectories, which glibc prefers on processors that support them.
void AddPlaces(const std::string& directory, std::vector<Place>& places) {
  places.push_back({directory});
  if (access((directory + "/glibc-hwcaps").c_str(), F_OK) != 0) return;
  for (std::string_view machine : {"x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    places.push_back({fmt::format("{}/glibc-hwcaps/{}", directory, machine), false});
  }
}

// A library, and the directories that it inherits from the RPATH of the objects that load it.
struct Loaded {
  std::string file;
  std::vector<Place> inherited = {};
};

// Checks one object. Adds to `libraries` those that it would load through its own or inherited directories. `first`: the
// object is the backend itself.
SearchVerdict CheckLibrary(const Loaded& loaded, bool first, std::vector<Loaded>& libraries) {
  const std::string& file = loaded.file;
  const std::string it = first ? "it" : fmt::format("the library '{}', which it loads,", EscapeControl(file));
  absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(file);
  if (!needs.ok()) {
    if (!first) return {};  // dlopen() will report why the library cannot be loaded
    const ErrorParts parts = PartsOf(needs.status());
    return {VerdictCode::kDamaged, parts.what.empty() ? ErrorTitle(needs.status()) : parts.what, "install it again"};
  }
  if (!needs->beyond.empty()) {
    return {VerdictCode::kDamaged, fmt::format("{} has more than {}", it, needs->beyond), "install it again"};
  }
  const std::string origin = file.substr(0, file.rfind('/'));
  bool runpath = false;  // if true, the dynamic linker ignores every RPATH
  std::vector<Place> places;
  for (const ElfSearchPath& path : needs->paths) {
    runpath |= path.kind == std::string_view("RUNPATH");
    const std::string whole = EscapeControl(path.text);
    for (const std::string& element : ElementsOf(path)) {
      std::optional<std::string> place = Resolved(element, origin);
      if (element.empty()) {
        return Relative(file, fmt::format("{} looks for libraries in the working directory: its {} '{}' has an empty "
                                          "element",
                                          it, path.kind, whole));
      }
      if (!place) {
        return Relative(file, fmt::format("{} looks for libraries in a directory that depends on the working directory or "
                                          "the machine: '{}' in its {} '{}' begins with neither '/' nor '$ORIGIN', or "
                                          "contains another variable",
                                          it, EscapeControl(element), path.kind, whole));
      }
      AddPlaces(*place, places);
    }
  }
  for (const Place& place : places) {
    if (std::string why = WhyOthersMayPut(place.directory); !why.empty()) {
      return Writable(fmt::format("{} looks for libraries in '{}', where others may put them: {}", it,
                                  EscapeControl(place.directory), why));
    }
  }
  std::vector<Place> passed_on = runpath ? std::vector<Place>() : places;
  passed_on.insert(passed_on.end(), loaded.inherited.begin(), loaded.inherited.end());
  const std::vector<Place>& searched = runpath ? places : passed_on;
  for (const std::string& name : needs->libraries) {
    const bool path = name.find('/') != name.npos;
    std::optional<std::string> there = path ? Resolved(name, origin) : std::nullopt;
    if (path && !there) {
      return Relative(file, fmt::format("{} needs the library '{}', which the dynamic linker takes from the working "
                                        "directory",
                                        it, EscapeControl(name)));
    }
    std::vector<std::string> found;
    if (there) found.push_back(*std::move(there));
    bool over = path;  // a name with a slash is not searched for
    for (size_t i = 0; i < searched.size() && !(over && searched[i].any_machine); ++i) {
      std::string candidate = fmt::format("{}/{}", searched[i].directory, name);
      if (access(candidate.c_str(), F_OK) != 0) continue;
      over |= searched[i].any_machine;
      found.push_back(std::move(candidate));
    }
    for (std::string& library : found) {
      if (std::string why = WhyOthersMayPut(library); !why.empty()) {
        return Writable(
            fmt::format("{} needs the library '{}', which others may replace: {}", it, EscapeControl(library), why));
      }
      libraries.push_back({std::move(library), passed_on});  // links are not resolved, because $ORIGIN refers to this path
    }
  }
  return {};
}

}  // namespace

SearchVerdict CheckSearchPath(const std::string& file) {
  std::vector<Loaded> todo = {{file}};
  std::set<std::filesystem::path> seen;  // two libraries may need each other
  for (size_t i = 0; i < todo.size() && i < kMostLibraries; ++i) {
    std::error_code ec;
    if (!seen.insert(std::filesystem::canonical(todo[i].file, ec)).second || ec) continue;
    std::vector<Loaded> libraries;
    SearchVerdict verdict = CheckLibrary(todo[i], i == 0, libraries);
    if (verdict.code != VerdictCode::kOk) return verdict;
    todo.insert(todo.end(), libraries.begin(), libraries.end());
  }
  return {};
}

std::vector<std::string> LibrariesBeside(const std::string& file) {
  std::error_code ec;
  std::vector<std::filesystem::path> found = {std::filesystem::canonical(file, ec)};
  for (size_t i = 0; i < found.size() && i < kMostLibraries; ++i) {
    absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(found[i]);
    if (!needs.ok()) continue;  // dlopen() will report why the library cannot be loaded
    for (const std::string& name : needs->libraries) {
      std::filesystem::path library = FoundByOrigin(*needs, found[i].parent_path(), name);
      library = library.lexically_normal();
      if (!library.empty() && std::find(found.begin(), found.end(), library) == found.end()) found.push_back(library);
    }
  }
  std::vector<std::string> out;
  for (size_t i = 1; i < found.size(); ++i) out.push_back(found[i].lexically_relative(found[0].parent_path()));
  return out;
}

}  // namespace mge
