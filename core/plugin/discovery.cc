// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/discovery.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/errno_text.h"
#include "core/base/file.h"
#include "core/base/file_trust.h"
#include "core/base/sha256.h"
#include "core/plugin/elf_symbols.h"
#include "core/plugin/search_path.h"
#include "fmt/format.h"
#include "mge/plugin.h"
#include "mge/transport.h"

namespace mge {
namespace {

FileIdentity IdentityOf(const struct stat& st) {
  return {st.st_dev, st.st_ino, static_cast<int64_t>(st.st_size),
          static_cast<int64_t>(st.st_ctim.tv_sec) * 1'000'000'000 + st.st_ctim.tv_nsec};
}

// Returns the path without links, or "" if there is no file.
std::string RealPath(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (!resolved && errno == ENOMEM) throw std::bad_alloc();
  if (!resolved) return {};
  std::string out = resolved;
  std::free(resolved);
  return out;
}

// Returns " (from SETTING)" for the end of a message about a directory, or "".
std::string From(const PluginDirectory& directory) {
  return directory.origin.empty() ? "" : fmt::format(" (from {})", directory.origin);
}

constexpr std::string_view kTrustFix =
    "make root or yourself the owner of it and of the directories above (chown), and remove write permission of group and "
    "others (chmod go-w); below a shared directory such as /tmp, create your own directory";

// Lists the names of the directory's *.so files, sorted so that results do not depend on the file system. Returns 0 or an
// errno.
int LibrariesIn(const std::string& path, std::vector<std::string>& names) {
  DIR* dir = opendir(path.c_str());
  if (!dir && errno == ENOMEM) throw std::bad_alloc();
  if (!dir) return errno;
  while (const dirent* entry = (errno = 0, readdir(dir))) {
    std::string_view name = entry->d_name;
    if (name.ends_with(".so") && !name.starts_with(".")) names.emplace_back(name);
  }
  const int error = errno;
  closedir(dir);
  std::sort(names.begin(), names.end());
  return error;
}

// Applies the user's rules to an open file that has passed all other checks.
void CheckByRules(int fd, const PluginRules& rules, PluginFile& file) {
  if (std::find(rules.skip.begin(), rules.skip.end(), file.name) != rules.skip.end()) {
    return SetVerdict(file, Verdict::kSkipped, VerdictCode::kLeftOut,
                      fmt::format("plugin.skip names backend '{}'", file.name),
                      "to use it, remove it from plugin.skip: `mge env plugin.skip` shows where that is set");
  }
  auto unreadable = [&](const absl::Status& status) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kUnreadable, PartsOf(status).what, "make the file readable for you");
  };
  if (rules.allow) {
    absl::StatusOr<std::string> hash = Sha256OfFile(fd, file.path);
    if (!hash.ok()) return unreadable(hash.status());
    if (!rules.allow->Holds(*hash)) {
      return SetVerdict(
          file, Verdict::kRefused, VerdictCode::kNotAllowed,
          fmt::format("its SHA-256 {} is not on the list of allowed backends '{}'", *hash, rules.allow->path()),
          fmt::format("if you trust it: sha256sum '{}' >> '{}'", file.path, rules.allow->path()));
    }
  }
  if (rules.quarantine.empty()) return;
  absl::StatusOr<std::string> key = BuildOf(fd, file.path, file.build_id);
  if (!key.ok()) return unreadable(key.status());
  if (std::optional<Quarantine::Entry> entry = rules.quarantine.Find(*key)) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kQuarantined, fmt::format("it is in quarantine: {}", entry->reason),
               fmt::format("install another build of it, or try it again with: mge doctor --end-quarantine {}", file.name));
  }
}

// Checks one file. `real_directory` must hold no symbolic link.
FoundPlugin CheckFile(const std::string& real_directory, const std::string& name, uint32_t isa, const PluginRules& rules) {
  FoundPlugin found;
  PluginFile& file = found.file;
  file.path = real_directory + (real_directory.ends_with('/') ? "" : "/") + name;
  std::string real = RealPath(file.path);
  if (real.empty()) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kUnreadable, fmt::format("it cannot be found: {}", ErrnoText(errno)),
               "remove the dangling link");
    return found;
  }
  if (real.substr(0, real.rfind('/')) != (real_directory == "/" ? "" : real_directory)) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kLinkOutside,
               fmt::format("it is a symbolic link to '{}', outside of its directory", real),
               "put the file itself here, or add its own directory to MGE_PLUGIN_PATH");
    return found;
  }
  file.path = real;
  absl::StatusOr<RegularFile> open = OpenRegularFile(real);
  if (!open.ok()) {
    ErrorParts parts = PartsOf(open.status());
    SetVerdict(file, Verdict::kRefused, VerdictCode::kUnreadable,
               parts.what.empty() ? ErrorTitle(open.status()) : parts.what,
               "replace it by a regular file that you can read");
    return found;
  }
  if (std::string why = WhyNotTrusted(open->fd.get()); !why.empty()) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kUntrusted, why, std::string(kTrustFix));
    return found;
  }
  struct stat st;
  if (fstat(open->fd.get(), &st) == 0) found.identity = IdentityOf(st);

  NoteReading reading = ReadNote(open->fd.get());
  file.build_id = reading.build_id;
  found.note = reading.note;
  const PluginNote& note = found.note;
  if (reading.code == VerdictCode::kNoNote) {
    SetVerdict(file, Verdict::kSkipped, reading.code, reading.reason,
               "move it to another directory; if it is a backend, add MGE_BACKEND(...) of mge/plugin.hpp (in C: "
               "MGE_PLUGIN_NOTE) to one of its sources");
    return found;
  }
  if (reading.code != VerdictCode::kOk && reading.code != VerdictCode::kBadNote) {
    SetVerdict(file, Verdict::kRefused, reading.code, reading.reason,
               "replace it by a backend that is built for this machine");
    return found;
  }
  if (reading.code == VerdictCode::kBadNote) {
    SetVerdict(file, Verdict::kRefused, reading.code, reading.reason, "build it again with MGE_PLUGIN_NOTE of the SDK");
    return found;
  }
  file.name = note.name;
  file.version = note.version;
  file.classes = note.classes;
  file.abi = fmt::format("{}.{}", note.abi_major, note.abi_minor);
  if (std::string why = WhyAbiDiffers(note); !why.empty()) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kAbiMismatch, why,
               note.abi_major > MGE_ABI_MAJOR || note.abi_minor_min > MGE_ABI_MINOR
                   ? "install the MGE that it was built for, or a build of it for this one"
                   : "build it again with the SDK of this host, or install the MGE that it was built for");
    return found;
  }
  if (std::string why = WhyIsaIsMissing(note, isa); !why.empty()) {
    SetVerdict(file, Verdict::kRefused, VerdictCode::kIsaMissing, std::move(why),
               "install a build of it for this processor");
    return found;
  }
  if (SearchVerdict search = CheckSearchPath(file.path); search.code != VerdictCode::kOk) {
    SetVerdict(file, Verdict::kRefused, search.code, std::move(search.reason), std::move(search.fix));
    return found;
  }
  SetVerdict(file, Verdict::kAccepted, VerdictCode::kOk, "");
  CheckByRules(open->fd.get(), rules, file);
  if (file.verdict != Verdict::kAccepted) return found;
  file.warning =
      MoreThanOneExport(file.path, note.is_transport ? MGE_TRANSPORT_QUERY_SYMBOL : MGE_PLUGIN_QUERY_SYMBOL).value_or("");
  return found;
}

// Adds a checked file to the result. Skips it if an earlier file is the same library.
void Enter(Discovery& out, FoundPlugin found) {
  PluginFile& file = found.file;
  if (file.verdict != Verdict::kAccepted) return out.rejected.push_back(std::move(file));
  auto same_file = [&](const FoundPlugin& other) {
    return (other.identity.device == found.identity.device && other.identity.inode == found.identity.inode) ||
           (!file.build_id.empty() && other.file.build_id == file.build_id);
  };
  auto twin = std::find_if(out.accepted.begin(), out.accepted.end(), same_file);
  if (twin != out.accepted.end() && twin->file.path == file.path) return;  // the same path was named twice
  if (twin != out.accepted.end()) {
    SetVerdict(file, Verdict::kSkipped, VerdictCode::kDuplicateFile,
               fmt::format("it is the same library as '{}', which comes first", twin->file.path), "remove one of the two");
    out.rejected.push_back(std::move(file));
  } else {
    out.accepted.push_back(std::move(found));
  }
}

}  // namespace

FileIdentity IdentityOf(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 ? IdentityOf(st) : FileIdentity{};
}

FoundPlugin VerifyPluginFile(const std::string& path, uint32_t isa, const PluginRules& rules) {
  std::string real = RealPath(path);
  if (real.empty()) real = path;  // CheckFile() reports the reason
  size_t slash = real.rfind('/');
  return CheckFile(real.substr(0, std::max<size_t>(slash, 1)), real.substr(slash + 1), isa, rules);
}

PluginFile CheckDirectory(const PluginDirectory& directory, std::string* real) {
  PluginFile row;
  row.path = directory.path;
  const std::string from = From(directory);
  if (!directory.path.starts_with('/')) {
    SetVerdict(row, Verdict::kRefused, VerdictCode::kDirectoryNotAbsolute,
               directory.path.empty() ? fmt::format("the name of the directory is empty{}", from)
                                      : fmt::format("the directory is not absolute{}", from),
               "write an absolute path, which begins with /");
    return row;
  }
  absl::StatusOr<Fd> open = OpenDirectory(directory.path);
  std::string resolved = RealPath(directory.path);
  if (!open.ok() || resolved.empty()) {
    SetVerdict(row, Verdict::kSkipped, VerdictCode::kDirectoryMissing,
               fmt::format("the directory does not exist or cannot be opened{}", from),
               "create it, or remove it from the list");
    return row;
  }
  if (std::string why = WhyNotTrusted(open->get()); !why.empty()) {
    SetVerdict(row, Verdict::kRefused, VerdictCode::kUntrusted, why + from, std::string(kTrustFix));
    return row;
  }
  SetVerdict(row, Verdict::kAccepted, VerdictCode::kOk, "");
  if (real) *real = std::move(resolved);
  return row;
}

Discovery DiscoverPlugins(std::span<const PluginDirectory> directories, uint32_t isa, const PluginRules& rules) {
  Discovery out;
  std::vector<std::string> searched;
  for (const PluginDirectory& directory : directories) {
    struct stat st;
    if (directory.path.starts_with('/') && stat(directory.path.c_str(), &st) == 0 && !S_ISDIR(st.st_mode)) {
      Enter(out, VerifyPluginFile(directory.path, isa, rules));
      continue;
    }
    std::string real;
    PluginFile row = CheckDirectory(directory, &real);
    if (row.verdict != Verdict::kAccepted) {
      out.rejected.push_back(std::move(row));
      continue;
    }
    // A directory that is named twice is searched once, so that its files are not reported as duplicates.
    if (std::find(searched.begin(), searched.end(), real) != searched.end()) continue;
    searched.push_back(real);
    std::vector<std::string> names;
    if (int error = LibrariesIn(real, names); error != 0) {
      SetVerdict(row, Verdict::kRefused, VerdictCode::kUnreadable,
                 fmt::format("its files cannot be listed: {}{}", ErrnoText(error), From(directory)),
                 "make it readable for you, or remove it from the list");
      out.rejected.push_back(std::move(row));
    }
    for (const std::string& name : names) Enter(out, CheckFile(real, name, isa, rules));
  }
  return out;
}

std::string BuiltInPluginDirectory() {
  static constexpr char kHere = 0;
  Dl_info info = {};
  if (!dladdr(&kHere, &info) || !info.dli_fname) return {};
  std::string library = RealPath(info.dli_fname);
  if (library.empty()) return {};
  return library.substr(0, library.rfind('/')) + "/mge/plugins";
}

}  // namespace mge
