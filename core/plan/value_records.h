// SPDX-License-Identifier: Apache-2.0
// Records the place of each value of a plan, for dumps and checks of single values (debug.dump_dir, debug.watch_value).
#pragma once

#include <vector>

#include "core/env/snapshot.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// The members of a plan that hold the records.
struct ValueRecords {
  std::vector<RecordedValue> values;
  std::vector<RecordedUnit> units;
};

// Returns whether the settings ask for records.
bool RecordsValues(const Snapshot& settings);

// Returns a record of each item of the schedule, and of each constant that a unit reads.
ValueRecords RecordValues(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory);

}  // namespace mge
