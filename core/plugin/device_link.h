// SPDX-License-Identifier: Apache-2.0
// The direct links between devices.
#pragma once

#include "core/plugin/device.h"

namespace mge {

// Returns true and fills `link` if queues of `to` can copy directly from `from`. Both devices are open and have queues. Fails
// with kKernelFailed if the link has unknown flags.
absl::StatusOr<bool> DirectLink(Device& from, Device& to, mge_link& link);

}  // namespace mge
