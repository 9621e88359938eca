// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/install.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/plugin/isa.h"
#include "core/plugin/search_path.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr mode_t kMode = 0755;

absl::Status CannotWrite(const std::string& path, std::string fix = {}) {
  return Fail(errors::kFileWrite, fmt::format("cannot write '{}'", path), {.what = ErrnoText(errno), .fix = std::move(fix)});
}

// Returns the first writable directory that is accepted, without symbolic links.
absl::StatusOr<std::string> Destination(std::span<const PluginDirectory> directories) {
  std::vector<std::string> why;
  for (const PluginDirectory& directory : directories) {
    std::string real;
    PluginFile row = CheckDirectory(directory, &real);
    if (row.verdict == Verdict::kAccepted && access(real.c_str(), W_OK) == 0) return real;
    why.push_back(fmt::format("'{}': {}", directory.path, row.reason.empty() ? ErrnoText(errno) : row.reason));
  }
  return Fail(errors::kFileWrite, "no directory for backends can be written",
              {.what = why.empty() ? "no directory is searched" : fmt::format("{}", fmt::join(why, "; ")),
               .fix = "create one with mode 0755 and add it to MGE_PLUGIN_PATH"});
}

// A temporary file in `directory` with a name that discovery ignores. It is removed unless Keep() is called.
class Temporary {
 public:
  explicit Temporary(const std::string& directory) : path_(directory + "/.mge-install-XXXXXX") {
    fd_ = Fd(mkostemp(path_.data(), O_CLOEXEC));
  }
  ~Temporary() {
    if (fd_.valid() && !path_.empty()) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  void Keep() { path_.clear(); }

 private:
  std::string path_;
  Fd fd_;
};

// Copies a file. `target` is the final name of the copy, for messages.
absl::Status Copy(const RegularFile& from, const std::string& path, int to, const std::string& target) {
  std::vector<std::byte> buffer(1 << 20);
  for (int64_t at = 0; at < from.size;) {
    std::span<std::byte> part(buffer.data(), static_cast<size_t>(std::min<int64_t>(from.size - at, 1 << 20)));
    MGE_RETURN_IF_ERROR(ReadRange(from.fd.get(), at, part, path));
    MGE_RETURN_IF_ERROR(WriteRange(to, at, part, target));
    at += static_cast<int64_t>(part.size());
  }
  if (fchmod(to, kMode) != 0 || fsync(to) != 0) return CannotWrite(target);
  return absl::OkStatus();
}

// Checks that `target` does not exist or is a file of the backend `name`; no other file may be replaced.
absl::Status MayReplace(const std::string& file, const std::string& target, const std::string& name, uint32_t isa) {
  struct stat st;
  if (lstat(target.c_str(), &st) != 0) return absl::OkStatus();
  auto taken = [&](std::string_view what, std::string_view first) {
    return Fail(errors::kPluginRefused, fmt::format("'{}' cannot be installed", file),
                {.what = fmt::format("it is backend '{}', and '{}' already exists{}", name, target, what),
                 .fix = fmt::format("name the file mge_{}.so, or first {}", name, first)});
  };
  if (absl::Status open = OpenRegularFile(target).status(); !open.ok()) {
    return taken(": " + PartsOf(open).what, fmt::format("move '{}' away", target));
  }
  const PluginFile there = VerifyPluginFile(target, isa).file;
  if (there.name == name) return absl::OkStatus();
  if (there.name.empty()) return taken(": " + there.reason, fmt::format("rm '{}'", target));
  return taken(fmt::format(" with backend '{}'", there.name), fmt::format("mge plugins remove '{}'", there.name));
}

// Checks that the libraries which the file finds by $ORIGIN exist in `directory`; they are not copied.
absl::Status HasItsLibraries(const std::string& file, const std::string& directory) {
  std::vector<std::string> missing = LibrariesBeside(file);
  std::erase_if(missing, [&](const std::string& library) {
    return access(fmt::format("{}/{}", directory, library).c_str(), F_OK) == 0;
  });
  if (missing.empty()) return absl::OkStatus();
  const std::string home = file.substr(0, file.rfind('/'));
  return Fail(errors::kPluginRefused, fmt::format("'{}' cannot be installed", file),
              {.what = fmt::format("it finds libraries beside itself ($ORIGIN) that do not exist in '{}': {}", directory,
                                   fmt::join(missing, ", ")),
               .fix = fmt::format("copy them first: cd '{}' && cp -L --parents {} '{}'; or keep all files where they are "
                                  "and add '{}' to MGE_PLUGIN_PATH",
                                  home, fmt::join(missing, " "), directory, home)});
}

absl::Status Refused(const std::string& file, const PluginFile& row) {
  bool abi = row.code == VerdictCode::kAbiMismatch;
  return Fail(abi ? errors::kAbiMismatch : errors::kPluginRefused, fmt::format("'{}' cannot be installed", file),
              {.what = row.reason, .where = std::string(VerdictCodeName(row.code)), .fix = row.fix});
}

}  // namespace

absl::StatusOr<std::string> InstallPlugin(const std::string& file, std::span<const PluginDirectory> directories,
                                          uint32_t isa, const PluginRules& rules) {
  MGE_ASSIGN_OR_RETURN(RegularFile source, OpenRegularFile(file));
  std::string base = file.substr(file.rfind('/') + 1);
  if (!base.ends_with(".so") || base.starts_with(".")) {
    return Fail(errors::kPluginRefused, fmt::format("'{}' cannot be installed", file),
                {.what = "the name of a backend's file must end with .so", .fix = "rename it to mge_NAME.so"});
  }
  MGE_ASSIGN_OR_RETURN(std::string directory, Destination(directories));
  const std::string target = directory + "/" + base;
  Temporary copy(directory);
  if (copy.fd() < 0) return CannotWrite(copy.path());
  MGE_RETURN_IF_ERROR(Copy(source, file, copy.fd(), target));
  PluginFile row = VerifyPluginFile(copy.path(), isa, rules).file;
  if (row.verdict != Verdict::kAccepted) {
    for (std::string* text : {&row.reason, &row.fix}) {  // name the user's file and not the temporary copy
      if (size_t at = text->find(copy.path()); at != text->npos) text->replace(at, copy.path().size(), file);
    }
    return Refused(file, row);
  }
  MGE_RETURN_IF_ERROR(HasItsLibraries(file, directory));
  PluginDirectory there = {directory, ""};
  for (const FoundPlugin& other : DiscoverPlugins(std::span(&there, 1), isa, {}).accepted) {
    if (other.note.name != row.name || other.file.path == target) continue;
    return Fail(errors::kPluginRefused, fmt::format("'{}' cannot be installed", file),
                {.what = fmt::format("backend '{}' is already installed as '{}'", row.name, other.file.path),
                 .fix = fmt::format("mge plugins remove {}", row.name)});
  }
  MGE_RETURN_IF_ERROR(MayReplace(file, target, row.name, isa));
  if (rename(copy.path().c_str(), target.c_str()) != 0) return CannotWrite(target);
  copy.Keep();
  return target;
}

absl::StatusOr<std::string> RemovePlugin(const std::string& name, std::span<const PluginDirectory> directories) {
  MGE_RETURN_IF_ERROR(CheckBackendName(name));
  for (const PluginDirectory& directory : directories) {
    std::string real;
    if (CheckDirectory(directory, &real).verdict != Verdict::kAccepted) continue;
    Discovery found = DiscoverPlugins(std::span(&directory, 1), HostIsa());
    std::vector<PluginFile> files;
    for (FoundPlugin& f : found.accepted) files.push_back(std::move(f.file));
    files.insert(files.end(), found.rejected.begin(), found.rejected.end());
    for (const PluginFile& file : files) {
      if (file.name != name) continue;
      if (unlink(file.path.c_str()) != 0) return CannotWrite(file.path, "ask the owner of the directory");
      return file.path;
    }
  }
  return Fail(errors::kPluginRefused, fmt::format("no backend '{}' is installed", name),
              {.what = "no file in the searched directories has this name", .fix = "see `mge plugins`"});
}

}  // namespace mge
