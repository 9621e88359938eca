// SPDX-License-Identifier: Apache-2.0
// The stages of planning, in the order in which BuildPlan() calls them after the cover.
// Each stage fills its part of PlanBuilder. The stages run in one thread. An error leaves the PlanBuilder unusable.
#pragma once

#include "core/base/status.h"
#include "core/plan/plan_builder.h"

namespace mge {

// Chooses a candidate and layouts for every group. The strategy PROFILE compares measured times, the others estimated costs.
absl::Status ChooseKernels(PlanBuilder& p);

// Puts the units in order. Adds reorders where layouts differ, and copies between memories. Records the uses of each item.
absl::Status ScheduleUnits(PlanBuilder& p);

// Prepares the kernels of the planned units, which sets their exact workspace, packed forms and state. An estimate of the
// workspace is not enough to place buffers, so this stage runs before AssignBuffers().
// Algorithm: calls prepare() once per kernel or reorder, in the order of the planned units. If the backend returns
// MGE_UNIMPLEMENTED, adds the kernel to PlanContext::unable and continues with the next unit. Returns false if there was
// such a kernel. The caller then discards this PlanBuilder and starts again; CandidatesOf() leaves out the kernels that were
// added. Each attempt adds at least one kernel, so the attempts end. Other errors are returned with the place of the node.
absl::StatusOr<bool> PrepareKernels(PlanBuilder& p);

// Gives every item and workspace a buffer, and every buffer an offset in its arena.
// Two buffers may use the same bytes if their lives, counted in units, do not overlap. This keeps the arena far smaller than
// the sum of all values. Algorithm:
//   1. Visits the units in order. An alias uses the buffer of its input. An output overwrites an input if the kernel allows
//      the pair, the sizes are equal and this unit is the last reader. Any other output gets a new buffer.
//   2. Marks the buffers that several queues use. Their lives are extended at both ends, so that a copy can run before the
//      unit that needs it.
//   3. Moves outputs of the graph that the calling thread computes from the arena to the caller's memory.
//   4. Places the buffers of each arena with PlaceIntervals() (place.h).
// Fails with kOverBudget if the buffers take more than 2^60 bytes, or if one is larger than the device can allocate.
absl::Status AssignBuffers(PlanBuilder& p);

// Packs the constants for which a kernel asks for its own form.
absl::Status PackConstants(PlanBuilder& p);

// Creates the steps with their arguments, and the record of each unit for --why.
absl::Status BindSteps(PlanBuilder& p);
// Fills the description of a unit: nodes, operands, kernel, work.
void DescribeUnit(const PlanBuilder& p, PlannedUnit& planned);

// Uploads the plan's constants to the devices that have memory of their own. Returns when the uploads have ended.
absl::Status UploadConstants(PlanBuilder& p);

// Cuts the steps into segments, and adds the waits and signals that order segments on different queues.
// A device runs the steps of one queue in order, but steps on two queues have no order. Each wait costs time, so this stage
// leaves out waits that earlier waits imply. Algorithm: vector clocks (C. J. Fidge, 1988; F. Mattern, 1989), with one entry
// per queue and one for the calling thread.
//   1. For each unit, finds the latest unit of each queue on which it depends. A unit depends on the writers of its inputs,
//      and on every earlier unit that used the memory that it writes.
//   2. Drops each dependency that the clock of the unit's queue covers. For each remaining one adds a wait, and joins the
//      clock of the unit that is waited for.
//   3. Starts a new segment at each wait, at each change of queue or device, and after each unit that others wait for.
// If the two queues belong to different backends, the calling thread waits in place of the queue.
void FormSegments(PlanBuilder& p);

// Creates the program of a body of a control-flow node. Captures that are constants in this graph become constants of the
// body. If the body's nodes do not fit the shapes, the program holds the error, and only a run that enters the body fails.
absl::StatusOr<BodyProgram> MakeBody(const PlanBuilder& p, const Graph& body, const Node& node);

// Creates the program of the deferred nodes, if there are any.
absl::Status MakeContinuation(PlanBuilder& p);

}  // namespace mge
