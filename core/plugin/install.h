// SPDX-License-Identifier: Apache-2.0
// Puts backends into a directory that is searched, and takes them out again. Nothing is opened.
#pragma once

#include <span>
#include <string>

#include "core/base/status.h"
#include "core/plugin/discovery.h"

namespace mge {

// Copies `file` into the first directory that is accepted and can be written, under its own name, with mode 0755, and
// answers the new path. The copy is judged before it gets its name: it is there whole and accepted, or not at all. A file of
// that name is replaced if it is of the same backend, and else kept. Nothing else is copied: the libraries that it finds by
// $ORIGIN are to be there. kPluginRefused with reason and fix, kFileAccess, kFileWrite.
absl::StatusOr<std::string> InstallPlugin(const std::string& file, std::span<const PluginDirectory> directories,
                                          uint32_t isa, const PluginRules& rules);

// Removes the file of the backend `name` that comes first in the directories, and answers its path. Only a file that carries
// a backend's identity note is ever removed. kUsage if no backend can have this name, kPluginRefused if no file there does,
// kFileWrite.
absl::StatusOr<std::string> RemovePlugin(const std::string& name, std::span<const PluginDirectory> directories);

}  // namespace mge
