// SPDX-License-Identifier: Apache-2.0
// The log of fallbacks: work that runs in a slower way than a user may expect (log.storage_fallback).
#pragma once

#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/plan/plan.h"

namespace mge {

struct PlanContext;  // core/plan/plan_context.h

// Logs each message once. Thread-safe.
class FallbackLog {
 public:
  // `operators` is the level of messages about operators. Those about the storage of tensors are warnings.
  FallbackLog(Logger logger, LogLevel operators) : logger_(logger), operators_(operators) {}

  // Logs a message about the storage of a tensor.
  void LogStorage(std::string message) { Log(LogLevel::kWarning, std::move(message)); }
  // Logs the operators of a plan that run on a device other than the first ones, by the reference evaluator, or on a
  // converted layout.
  void Log(std::span<const Unit> units, const PlanContext& context);

 private:
  void Log(LogLevel level, std::string message);

  const Logger logger_;
  const LogLevel operators_;
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace mge
