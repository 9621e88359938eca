// SPDX-License-Identifier: Apache-2.0
#include "core/base/contained_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "fmt/format.h"

namespace mge {
namespace {

namespace fs = std::filesystem;

// Both are real paths.
bool IsBelow(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder || path.starts_with(folder + "/");
}

// Adds the real path of a folder and, if that lies in ENTRY/snapshots/REVISION, the path of ENTRY/blobs.
void Allow(const std::string& real, DataFolders& out) {
  if (std::find(out.allowed.begin(), out.allowed.end(), real) != out.allowed.end()) return;
  out.allowed.push_back(real);
  fs::path revision = real;
  while (revision.has_relative_path() && revision.parent_path().filename() != "snapshots") revision = revision.parent_path();
  if (!revision.has_relative_path()) return;
  std::error_code ec;
  const fs::path blobs = revision.parent_path().parent_path() / "blobs";
  if (fs::is_directory(fs::symlink_status(blobs, ec))) out.allowed.push_back(blobs);
}

absl::Status Refuse(const std::string& name, std::string what, std::string fix) {
  return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", name), {.what = std::move(what), .fix = std::move(fix)});
}

// Opens the path without reading. Opening a device may have side effects, and opening a FIFO waits.
Fd Probe(const fs::path& path) { return Fd(open(path.c_str(), O_PATH | O_CLOEXEC)); }

// Returns the file that `name` refers to, without opening it for reading; an invalid descriptor and errno if there is none.
Fd Find(const DataFolders& folders, const fs::path& name) {
  for (const fs::path& path : {name, name.lexically_normal()}) {  // in "a/../x" the folder a need not exist
    for (const std::string& folder : folders.search) {
      Fd found = Probe(folder / path);
      if (found.valid() || errno != ENOENT) return found;
    }
  }
  return Fd();
}

}  // namespace

DataFolders FoldersOf(const std::string& path, int fd) {
  DataFolders out;
  const fs::path given = fs::path(path).parent_path(), itself = PathOfOpenFile(fd);
  std::error_code ec;
  if (IsPipeMemory(fd) || !fs::exists(itself, ec)) return out;
  for (const fs::path& folder : {given.empty() ? fs::path(".") : given, itself.parent_path()}) {
    const std::string real = fs::canonical(folder, ec);
    const bool names_descriptors = real == "/dev" || IsBelow(real, "/proc");  // /dev/stdin
    if (ec || names_descriptors || std::find(out.allowed.begin(), out.allowed.end(), real) != out.allowed.end()) continue;
    out.search.push_back(folder);
    Allow(real, out);
  }
  return out;
}

absl::StatusOr<DataFolders> FoldersAt(const std::string& folder) {
  std::error_code ec;
  const std::string real = fs::canonical(folder, ec);
  if (ec || !fs::is_directory(real, ec)) {
    return Refuse(folder, ec ? ec.message() : "it is not a folder", "name the folder of the model's external data");
  }
  DataFolders out;
  out.search = {folder};
  Allow(real, out);
  return out;
}

absl::StatusOr<RegularFile> OpenContained(const DataFolders& folders, const std::string& name) {
  const std::string home = folders.search.empty() ? std::string() : folders.search.front();
  const std::string put = fmt::format("put the file below '{}' and write its path from there into the model", home);
  if (name.empty() || name.find('\0') != name.npos) return Refuse(name, "the name is empty or holds a zero byte", put);
  if (name.front() == '/') return Refuse(name, "the path is absolute; only paths relative to the model are followed", put);

  const Fd found = Find(folders, name);
  if (!found.valid()) {
    if (errno == ELOOP)
      return Refuse(name, "symbolic links in its path form a loop", "remove the link, or let it name the file");
    return Refuse(name, ErrnoText(errno), errno == ENOENT ? fmt::format("put the file below '{}'", home) : std::string());
  }
  const std::string real = PathOfOpenFile(found.get());
  if (real.empty()) return Refuse(name, "its real path is not known", "mount the file system /proc");
  if (std::none_of(folders.allowed.begin(), folders.allowed.end(), [&](const auto& f) { return IsBelow(real, f); })) {
    return Refuse(name, fmt::format("it leads to '{}', outside of '{}'", real, fmt::join(folders.allowed, "' and '")),
                  fmt::format("copy the file into '{}'", home));
  }
  return ReopenRegularFile(found.get(), name);
}

}  // namespace mge
