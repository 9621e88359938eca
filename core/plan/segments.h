// SPDX-License-Identifier: Apache-2.0
// Cuts the steps into segments, and adds the waits and signals that order segments on different queues.
//
// A device runs the steps of one queue in order, but steps on two queues have no order. Each wait costs time, so this stage
// leaves out waits that earlier waits imply. Algorithm: vector clocks (C. J. Fidge, 1988; F. Mattern, 1989), with one entry
// per queue and one for the calling thread.
//   1. For each unit, finds the latest unit of each queue on which it depends. A unit depends on the writers of its inputs,
//      and on every earlier unit that used the memory that it writes.
//   2. Drops each dependency that the clock of the unit's queue covers. For each remaining one adds a wait, and joins the
//      clock of the unit that is waited for.
//   3. Starts a new segment at each wait, at each change of queue or device, and after each unit that others wait for.
// If the two queues belong to different backends, the calling thread waits in place of the queue.
#pragma once

#include <vector>

#include "core/plan/bind.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// The segments of a plan, and its queues with the number of their signals.
struct Segments {
  std::vector<Segment> segments;  // in the order of the steps
  std::vector<PlanQueue> queues;
};

// Returns the segments of the steps.
Segments FormSegments(const Schedule& schedule, const MemoryPlan& memory, const BoundSteps& bound,
                      const PlanContext& context);

}  // namespace mge
