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
//   3. Adds each unit to the last segment of its queue. It starts a new segment at each wait, after each unit that others
//      wait for, where steps begin or cease to be capture-safe, and behind a step of the calling thread that it needs. Units
//      of other queues in between do not matter: the steps are moved together.
// If the two queues belong to different backends, the calling thread waits in place of the queue. A wait of the calling
// thread includes all queues on which the awaited unit depends, because devices need not pass failures on.
#pragma once

#include <vector>

#include "core/plan/bind.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// The segments of a plan with their steps, and its queues with the number of their signals.
struct Segments {
  std::vector<Segment> segments;  // in the order of the steps
  std::vector<Step> steps;        // in the order of execution
  std::vector<PlanQueue> queues;
};

// Returns the segments of `bound.steps`.
Segments FormSegments(const Schedule& schedule, const MemoryPlan& memory, const BoundSteps& bound,
                      const PlanContext& context);

}  // namespace mge
