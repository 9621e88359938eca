// SPDX-License-Identifier: Apache-2.0
// Locks between processes, for what is read, merged and written again.
#pragma once

#include <string>

#include "core/base/file.h"
#include "core/plugin/stop.h"

namespace mge {

// Locks an open file or directory until it is closed. Waits for another holder: ten seconds, or until `stop` (nullable) says
// that nobody waits any more. kFileWrite names `path`; kCancelled, kTimeout.
absl::Status LockFile(const Fd& fd, const std::string& path, const StopControl* stop);

}  // namespace mge
