// SPDX-License-Identifier: Apache-2.0
// Discovery: finds the files that may be backends and checks each without running any of its code.
//
// Why: dlopen() runs code of a file with all rights of the process. A file must therefore pass every check before it is
// opened.
//
// Algorithm: for each directory in order, check its owner and mode, then check every *.so in it, sorted by name:
//   1. Resolve symbolic links; the file must stay in its directory.
//   2. Open it; the file and every directory above it must be writable only by root and the current user.
//   3. Read the identity note from the open file (note.h): format, ABI version, instruction sets.
//   4. Check where the dynamic linker would find its libraries (search_path.h).
//   5. Apply the user's rules: plugin.skip, then plugin.allow, then the quarantine.
// Every file gets one verdict (verdict.h). A second path to an accepted library is skipped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plugin/allow_list.h"
#include "core/plugin/note.h"
#include "core/plugin/quarantine.h"
#include "core/plugin/verdict.h"

namespace mge {

// A directory to search, or one file (with any name), and the setting that named it ("built-in", "MGE_PLUGIN_PATH").
struct PluginDirectory {
  std::string path;
  std::string origin;
};

// The user's rules. A file must pass them in addition to all other checks.
struct PluginRules {
  std::vector<std::string> skip = {};   // names of backends
  std::optional<AllowList> allow = {};  // absent: every file is allowed
  Quarantine quarantine = {};
};

// The identity of a file's content. Used to detect that a file was replaced or changed after its check.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t size = 0;
  int64_t changed_ns = 0;  // st_ctim, in nanoseconds
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// A checked file. If it is accepted, `file.path` is absolute and holds no symbolic link.
struct FoundPlugin {
  PluginFile file;
  PluginNote note;
  FileIdentity identity;
};

struct Discovery {
  std::vector<FoundPlugin> accepted;  // in the order of the directories, then by file name
  std::vector<PluginFile> rejected;   // directories that cannot be used and files that are not accepted, in the same order
};

// Checks every *.so of every directory. Subdirectories are not searched. If two paths lead to one library, only the first is
// accepted. All backends with the same name are accepted, because the first may fail to load. `isa` are the instruction sets
// of the machine (HostIsa()). Never fails; may throw std::bad_alloc.
Discovery DiscoverPlugins(std::span<const PluginDirectory> directories, uint32_t isa, const PluginRules& rules = {});

// Checks one file, with any name, like a file of a searched directory.
FoundPlugin VerifyPluginFile(const std::string& path, uint32_t isa, const PluginRules& rules = {});

// Checks a directory itself. kAccepted: its files may be checked, and `*real` (optional) is set to its path without links.
PluginFile CheckDirectory(const PluginDirectory& directory, std::string* real = nullptr);

// Returns the directory mge/plugins beside the library that contains this code, so that a relocated tree works. Returns ""
// if the library's path is unknown.
std::string BuiltInPluginDirectory();

// Returns the identity of the file at a path, or all zeros if there is no file.
FileIdentity IdentityOf(const std::string& path);

}  // namespace mge
