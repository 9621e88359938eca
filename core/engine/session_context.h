// SPDX-License-Identifier: Apache-2.0
// The context in which a session plans: its devices and settings.
#pragma once

#include <memory>

#include "core/engine/runtime.h"
#include "core/engine/session.h"
#include "core/plan/plan_context.h"

namespace mge {

// Returns the context of a session with these options and settings, on the devices that the runtime found for them. Fails
// with kDeviceUnusable, and with kBadSetting if settings contradict each other.
absl::StatusOr<std::shared_ptr<const PlanContext>> MakePlanContext(Runtime& runtime, const SessionOptions& options,
                                                                   std::shared_ptr<const Snapshot> settings,
                                                                   const Resolution& found);

}  // namespace mge
