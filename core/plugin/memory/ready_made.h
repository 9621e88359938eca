// SPDX-License-Identifier: Apache-2.0
// What the host offers to a backend that wraps a ready-made part in one of its own: pools, reserve policies, strategy.
#pragma once

#include "mge/plugin.h"

namespace mge {

// The same for every backend, and without state. Pools work over the provider that the host gave to the backend's own pool,
// for the device's fences are known through it: a pool is wrapped, not its provider.
const mge_ready_made* ReadyMade();

}  // namespace mge
