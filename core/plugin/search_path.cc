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
#include "core/base/status.h"
#include "core/plugin/needed.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kMostLinks = 40;        // as the kernel
constexpr size_t kMostLibraries = 256;

// Why somebody else could put a file into this directory, which is reached without links, or replace it if it is a file.
std::string WhyOthersMayWrite(const std::string& at) {
  Fd fd(open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  return fd.valid() ? WhyNotTrusted(fd.get()) : fmt::format("'{}' cannot be looked at", at);
}

// The same of an absolute path as the kernel walks it: where it ends, or where it ends as long as the rest is not made, and
// wherever a link on the way lies.
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
      return fmt::format("'{}' is a link without an end", next);
    }
    if (target[0] == '/') at.resize(1);
    push({target, static_cast<size_t>(size)});
  }
  return WhyOthersMayWrite(at);
}

// An absolute path for "/opt/lib", "$ORIGIN/lib" and "${ORIGIN}/lib"; nothing for what the working directory, or the
// machine, would decide.
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

// Where an object in `origin` finds a library by $ORIGIN; "" if it is found otherwise, or not.
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

SearchJudgement Relative(const std::string& file, std::string reason) {
  return {VerdictCode::kSearchPath, std::move(reason),
          fmt::format("link it with -Wl,-rpath,'$ORIGIN' or with no path at all (in CMake: BUILD_WITH_INSTALL_RPATH, for a "
                      "path that is replaced at installation is padded by a colon), or mend it: patchelf --set-rpath "
                      "'$ORIGIN' '{}'",
                      EscapeControl(file))};
}

SearchJudgement Writable(std::string reason) {
  return {VerdictCode::kUntrusted, std::move(reason),
          "take write permission from group and others (chmod go-w), chown it to root or to yourself, or link the backend "
          "without that directory"};
}

// A directory in which libraries are looked for. What lies in one for some machines alone may not be taken.
struct Place {
  std::string directory;
  bool any_machine = true;
};

// One element of a list: the directory, and those below it that glibc prefers on a machine that can.
void AddPlaces(const std::string& directory, std::vector<Place>& places) {
  places.push_back({directory});
  if (access((directory + "/glibc-hwcaps").c_str(), F_OK) != 0) return;
  for (std::string_view machine : {"x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    places.push_back({fmt::format("{}/glibc-hwcaps/{}", directory, machine), false});
  }
}

// A file, and where the RPATH of those that load it has its libraries looked for.
struct Loaded {
  std::string file;
  std::vector<Place> inherited = {};
};

// One file; `libraries` gets those that it would load from a place of its own, or of those that load it.
SearchJudgement JudgeOne(const Loaded& loaded, bool first, std::vector<Loaded>& libraries) {
  const std::string& file = loaded.file;
  const std::string it = first ? "it" : fmt::format("the library '{}', which it loads,", EscapeControl(file));
  absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(file);
  if (!needs.ok()) {
    if (!first) return {};  // the dynamic linker will say why it cannot be loaded
    const ErrorParts parts = PartsOf(needs.status());
    return {VerdictCode::kDamaged, parts.what.empty() ? ErrorTitle(needs.status()) : parts.what, "install it again"};
  }
  if (!needs->beyond.empty()) {
    return {VerdictCode::kDamaged, fmt::format("{} has more than {}", it, needs->beyond), "install it again"};
  }
  const std::string origin = file.substr(0, file.rfind('/'));
  bool runpath = false;  // then no RPATH counts
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
        return Relative(file, fmt::format("{} looks for libraries where the working directory or the machine decides: '{}' "
                                          "in its {} '{}' begins with neither '/' nor '$ORIGIN', or holds another variable",
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
    bool over = path;  // a name with a slash is looked for nowhere
    for (size_t i = 0; i < searched.size() && !(over && searched[i].any_machine); ++i) {
      std::string candidate = fmt::format("{}/{}", searched[i].directory, name);
      if (access(candidate.c_str(), F_OK) != 0) continue;
      over |= searched[i].any_machine;
      found.push_back(std::move(candidate));
    }
    for (std::string& library : found) {
      if (std::string why = WhyOthersMayPut(library); !why.empty()) {
        return Writable(fmt::format("{} needs the library '{}', which others may replace: {}", it, EscapeControl(library),
                                    why));
      }
      libraries.push_back({std::move(library), passed_on});  // as it is named: that is where its own $ORIGIN is
    }
  }
  return {};
}

}  // namespace

SearchJudgement JudgeSearchPath(const std::string& file) {
  std::vector<Loaded> todo = {{file}};
  std::set<std::filesystem::path> seen;  // two libraries may need each other
  for (size_t i = 0; i < todo.size() && i < kMostLibraries; ++i) {
    std::error_code ec;
    if (!seen.insert(std::filesystem::canonical(todo[i].file, ec)).second || ec) continue;
    std::vector<Loaded> libraries;
    SearchJudgement judgement = JudgeOne(todo[i], i == 0, libraries);
    if (judgement.code != VerdictCode::kOk) return judgement;
    todo.insert(todo.end(), libraries.begin(), libraries.end());
  }
  return {};
}

std::vector<std::string> LibrariesBeside(const std::string& file) {
  std::error_code ec;
  std::vector<std::filesystem::path> found = {std::filesystem::canonical(file, ec)};
  for (size_t i = 0; i < found.size() && i < kMostLibraries; ++i) {
    absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(found[i]);
    if (!needs.ok()) continue;  // the dynamic linker will say why it cannot be loaded
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
