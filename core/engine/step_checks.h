// SPDX-License-Identifier: Apache-2.0
// The work before and after each step of a run that settings of debugging ask for: red zones, dumps, checks of a
// value, messages about collectives.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/red_zones.h"
#include "core/engine/value_dump.h"
#include "core/engine/value_reader.h"
#include "core/engine/value_watch.h"
#include "core/env/snapshot.h"
#include "core/plan/plan.h"

namespace mge {

// The checks of one instance. Used for one run at a time, by one thread. A step must have ended, also on its queue, before
// AfterStep() and before the next BeforeStep().
class StepChecks {
 public:
  // Returns nullptr if there is nothing to check. `bases` and `dynamic` are those of the instance, which must outlive the
  // result, like the plan.
  static absl::StatusOr<std::unique_ptr<StepChecks>> Create(const Plan& plan, const Snapshot& settings, const Logger& logger,
                                                            std::span<void* const> bases,
                                                            std::span<const HostValue> dynamic);

  // Starts a run. `stop` must live until the run ends.
  void BeginRun(const StopControl& stop);
  absl::Status BeforeStep(const Step& step);
  absl::Status AfterStep(const Step& step);
  // Waits, after a failed run, at most `patience` for copies of the checks. Returns false if they have not ended.
  bool Over(std::chrono::nanoseconds patience);

 private:
  StepChecks(const Plan& plan, const Snapshot& settings, const Logger& logger, std::span<void* const> bases,
             std::span<const HostValue> dynamic);

  const Plan& plan_;
  const Logger logger_;
  const bool logs_collectives_;
  ValueReader reader_;
  std::unique_ptr<RedZones> red_zones_;  // nullable, as the others
  std::unique_ptr<ValueDump> dump_;
  std::unique_ptr<ValueWatch> watch_;
};

}  // namespace mge
