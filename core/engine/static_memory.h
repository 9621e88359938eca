// SPDX-License-Identifier: Apache-2.0
// The setting memory.static_policy (GE_USE_STATIC_MEMORY of Ascend GE): which plans share memory, and how.
//
//   policy       plans of fixed shapes   other plans
//   off (0)      own arenas              own arenas
//   static (2)   shared arena            own arenas
//   dynamic (3)  own arenas              memory per run
//   both (4)     returned shared arena   memory per run
//
// A plan has fixed shapes if the model declares the shapes of all its inputs, and no part of it is planned during a run. One with
// collectives has arenas of its own: a rank that holds a shared one would wait for the rank that waits for the arena.
// Memory per run is from the pool "growing", which maps and unmaps pages on devices with virtual memory.
#pragma once

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/shared_arena.h"
#include "core/env/snapshot.h"
#include "core/plan/program.h"

namespace mge {

// Returns whether plans take memory per run.
inline bool TakesPages(StaticMemory policy) { return policy == StaticMemory::kDynamic || policy == StaticMemory::kBoth; }

// Fails with kBadSetting if plans take memory per run, and the user has chosen a pool beside it.
absl::Status CheckPoolSettings(const Snapshot& settings);

// Checks that the devices have the pool that the policy needs. Warns about devices without virtual memory.
absl::Status CheckPools(const Snapshot& settings, std::span<Device* const> devices, const Logger& logger);

// Returns how the arenas of a new plan are provided.
ArenaUse ArenaUseOf(StaticMemory policy, SharedArenas& arenas, const Plan& plan, const Program& program);

}  // namespace mge
