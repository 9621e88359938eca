// SPDX-License-Identifier: Apache-2.0
// The table through which a backend can use the host's ready-made pools, reserve policies and strategy inside its own ones.
#pragma once

#include "mge/plugin.h"

namespace mge {

// Returns the table. It is stateless, the same for every backend, and valid until the process ends. A pool created through
// it requires the slab provider that the host gave to the backend's own pool, because that provider knows the device's
// fences. A backend can therefore wrap a pool, but not the provider.
const mge_ready_made* ReadyMade();

}  // namespace mge
