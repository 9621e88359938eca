// SPDX-License-Identifier: Apache-2.0
// Finds the files that may be backends, and judges each without running any of its code.
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

// A directory to search, or one file to take whatever its name; and who named it ("built-in", "MGE_PLUGIN_PATH").
struct PluginDirectory {
  std::string path;
  std::string origin;
};

// What a user lets in beyond what every file must pass.
struct PluginRules {
  std::vector<std::string> skip = {};   // names of backends
  std::optional<AllowList> allow = {};  // absent: every file
  Quarantine quarantine = {};
};

// What tells whether a file is still the one that was judged.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t size = 0;
  int64_t changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// A file that passed: `file.path` is absolute and holds no symbolic link.
struct FoundPlugin {
  PluginFile file;
  PluginNote note;
  FileIdentity identity;
};

struct Discovery {
  std::vector<FoundPlugin> accepted;  // in order: directories as given, then file names
  std::vector<PluginFile> rejected;   // directories that cannot be used, and files, in the same order
};

// Judges every *.so of every directory; no recursion. Of two paths to one file the first in order is taken; of backends with
// one name all are, for the first may not load. `isa` is what the machine offers (HostIsa()).
Discovery DiscoverPlugins(std::span<const PluginDirectory> directories, uint32_t isa, const PluginRules& rules = {});

// The verdict on one file, whatever its name, as DiscoverPlugins gives it to those of a directory.
FoundPlugin JudgePluginFile(const std::string& path, uint32_t isa, const PluginRules& rules = {});

// The verdict on a directory itself: kAccepted if its files may be looked at. `real` (nullable) is then its path without links.
PluginFile JudgeDirectory(const PluginDirectory& directory, std::string* real = nullptr);

// mge/plugins beside the library that holds this code, so that a moved tree works; empty if its place is not known.
std::string BuiltInPluginDirectory();

// The identity of the file behind a path; all zero if there is none.
FileIdentity IdentityOf(const std::string& path);

}  // namespace mge
