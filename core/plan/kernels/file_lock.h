// SPDX-License-Identifier: Apache-2.0
// Locks between processes, for files that are read, merged and written again.
#pragma once

#include <string>

#include "core/base/file.h"
#include "core/plugin/stop.h"

namespace mge {

// Locks an open file or directory until it is closed. If another process holds the lock, waits up to ten seconds, or until
// `stop` (nullable) is set. Fails with kFileWrite, which names `path`, kCancelled or kTimeout.
absl::Status LockFile(const Fd& fd, const std::string& path, const StopControl* stop);

}  // namespace mge
