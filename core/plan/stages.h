// SPDX-License-Identifier: Apache-2.0
// The stages of planning, in the order in which BuildPlan calls them after the cover. Each fills its part of the draft.
#pragma once

#include "core/base/status.h"
#include "core/plan/draft.h"

namespace mge {

// A candidate and layouts for every group: by estimated cost, or by measured one with the strategy PROFILE.
absl::Status ChooseKernels(Planning& p);

// The units in order, with reorders where layouts differ and copies between memories; who reads what, and until when.
absl::Status ScheduleUnits(Planning& p);

// Prepares the kernels: exact workspace, packed forms, state. Returns false if some cannot be prepared: the context
// remembers them, and the caller plans anew without them.
absl::StatusOr<bool> PrepareKernels(Planning& p);

// A buffer for every item and workspace, in place where that is safe, and an offset in its arena for each. kOverBudget for
// more bytes than there are addresses.
absl::Status AssignBuffers(Planning& p);

// Packs the constants that kernels want in a form of their own.
absl::Status PackConstants(Planning& p);

// The steps, with their arguments, and the record of each unit for --why.
absl::Status BindSteps(Planning& p);
void RecordUnit(const Planning& p, Draft& draft);

// Everything that lies in devices' own memories is there from now on.
absl::Status UploadConstants(Planning& p);

// Cuts the steps into segments, with the waits and signals that order those on different queues.
void FormSegments(Planning& p);

// A body of a control-flow node as a program, with captures that are constants here built in. A body whose nodes do not fit
// the shapes keeps the error for the run that takes it.
absl::StatusOr<BodyProgram> MakeBody(const Planning& p, const Graph& body, const Node& node);

// The program of the deferred nodes, if there are any.
absl::Status MakeContinuation(Planning& p);

}  // namespace mge
