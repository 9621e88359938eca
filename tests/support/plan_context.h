// SPDX-License-Identifier: Apache-2.0
// Contexts of planning for tests that have no session.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/env/registry.h"
#include "core/plan/plan_context.h"
#include "gtest/gtest.h"

namespace mge {

// Returns a snapshot of the defaults and these settings, or nullptr for a bad setting.
inline std::shared_ptr<const Snapshot> SettingsWith(std::vector<Assignment> settings = {}) {
  auto registry = Registry::Create({.call = std::move(settings)}, Logger(LogLevel::kSilent));
  if (registry.ok()) return (*registry)->snapshot();
  ADD_FAILURE() << FormatError(registry.status());
  return nullptr;
}

// Returns a context with these settings and services. It has no devices.
inline PlanContext ContextWith(std::vector<Assignment> settings = {}, PlanServices services = {}) {
  PlanContext out;
  out.settings = SettingsWith(std::move(settings));
  out.services = std::make_shared<const PlanServices>(std::move(services));
  return out;
}

}  // namespace mge
