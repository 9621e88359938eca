// SPDX-License-Identifier: Apache-2.0
// What is judged operator by operator: every candidate of every case, by every check of the family `kernel`.
#pragma once

#include "core/conform/check.h"
#include "core/conform/trial.h"
#include "core/ops/op.h"

namespace mge::conform {

// Runs in a child with the device open; what it finds goes to the subject's witness. An error only if it cannot go on.
absl::Status JudgeOperator(Subject& subject, const OpDef& def, bool quick);

// Whether candidates have the same ids in two processes, which are made for that.
absl::Status CheckStableIds(Subject& subject);

// Runs of one kernel at the same time. Broken() if they disturb each other.
absl::Status JudgeTogether(Trial& trial, const Case& c, const Candidate& candidate);

// A run whose input arrives over the queue, long after the launch. NotOffered() without queues.
absl::Status JudgeQueueOrder(Bench& bench, Trial& trial, const Case& c, const Candidate& candidate);
// inputs[0] lie there before, inputs[1] arrive; "" if the result is that of the latter.
absl::Status JudgeQueueOrder(Bench& bench, Trial& trial, const std::vector<Tensor> (&inputs)[2],
                             const std::function<std::string(const RunResult&)>& what_is_wrong);

// One candidate of a case, made and launched with every allocation failing; see SurvivesFailures.
inline double FailureSeconds(bool quick) { return quick ? 0.05 : 0.2; }
inline constexpr const char* kKernelAllocations = "kernel.allocations";
void JudgeAllocations(Bench& bench, const Case& c, const Candidate& candidate, double seconds);

// Broken() if no launch does without memory of the heap. NotOffered() in a program that does not see allocations.
absl::Status JudgeLaunchMemory(Trial& trial, const Case& c);

// Groups of nodes that claims may fuse: offers are checked, and what computes them is judged like an operator.
absl::Status JudgeClaims(Subject& subject, bool quick);

}  // namespace mge::conform
