// SPDX-License-Identifier: Apache-2.0
// Holds the draft of a plan against the memory limits of its devices, or what they have where none is set, before anything is
// packed or computed.
#pragma once

#include <functional>
#include <span>

#include "core/plan/draft.h"

namespace mge {

// Whose budget host tensors of work on the device count against.
Device& HostMemoryOf(const Planning& p, Device& device);

// After the buffers have their places. kOverBudget with the planned peak, the largest buffers and the smallest limit that
// would do.
absl::Status CheckMemoryLimits(Planning& p);

// `over`: memory for the plan's constants was refused by a budget. kOverBudget then says the same as above; another error stays
// as it is.
absl::Status NameConstants(absl::Status over, const Plan& plan, const Budget& budget);

// `over`: an arena or output of a run was refused by a budget, of which the run holds `taken` bytes already. kOverBudget then
// says the same as above of its plan; another error stays as it is.
absl::Status NamePlan(absl::Status over, const Plan& plan, const Budget& budget, uint64_t taken);

// `over`: so many bytes were refused that no plan knows of: what a host step makes as it runs.
absl::Status NameLate(absl::Status over, const Plan& plan, const Budget& budget, uint64_t bytes);

// The same error with the largest batch that fits, found by planning: `check` plans for other inputs and answers as
// CheckMemoryLimits. Where the model's first dimensions are fixed, the error stays as it is.
absl::Status NameLargestBatch(absl::Status over, const Graph& graph, std::span<const InputType> inputs,
                              const std::function<absl::Status(std::span<const InputType>)>& check);

}  // namespace mge
