// SPDX-License-Identifier: Apache-2.0
// Installs backends into a searched directory and removes them. No code of a backend runs.
#pragma once

#include <span>
#include <string>

#include "core/base/status.h"
#include "core/plugin/discovery.h"

namespace mge {

// Copies `file` into the first accepted directory that is writable, under its own name, with mode 0755. Returns the new
// path. The copy is checked under a temporary name and then renamed, so an incomplete or refused file is never visible. An
// existing file of that name is replaced only if it belongs to the same backend. Libraries that the file finds by $ORIGIN
// are not copied and must already be in the directory. Fails with kPluginRefused or kAbiMismatch (with reason and fix),
// kFileAccess or kFileWrite.
absl::StatusOr<std::string> InstallPlugin(const std::string& file, std::span<const PluginDirectory> directories,
                                          uint32_t isa, const PluginRules& rules);

// Removes the first file of the backend `name` in the directories and returns its path. Only a file with the identity note
// of that backend is removed. Fails with kUsage if the name is not valid for a backend, and with kPluginRefused if no file
// has it. Fails with kFileWrite if the file cannot be removed.
absl::StatusOr<std::string> RemovePlugin(const std::string& name, std::span<const PluginDirectory> directories);

}  // namespace mge
