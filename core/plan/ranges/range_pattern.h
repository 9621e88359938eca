// SPDX-License-Identifier: Apache-2.0
// A graph after passes with unknown sizes, from which the graphs for a range of sizes are made.
//
// An If whose condition compares sizes, such as "is the text longer than 4096 tokens?", stays in a graph without sizes, and a plan
// with a body serves one size only. The condition is the same for nearly all sizes of a range. So the pattern contains the branch
// that some given sizes select, and serves the sizes that select the same one. Algorithm:
//   1. Runs the passes with unknown sizes.
//   2. Infers the conditions of the remaining Ifs for the given sizes. A condition that is known becomes a constant. The value that
//      computes it becomes an output, so that passes keep it.
//   3. Runs the passes again, and repeats this while branches contain such Ifs.
#pragma once

#include <span>
#include <vector>

#include "core/ops/size_inference.h"
#include "core/plan/passes/specialise.h"

namespace mge {

// The pattern for a set of sizes that vary.
struct RangePattern {
  SpecialisedGraph passed;  // its inputs have kUnknownDim for each size that varies
  // The last outputs of passed.graph are conditions. The pattern serves the sizes for which each of them has this value.
  std::vector<bool> branches = {};

  // Returns whether the sizes of `sized`, an inference over passed.graph, select the branches of the pattern.
  bool Selects(const SizeInference& sized) const;
};

// Makes the pattern of `graph` for inputs of these types, with the branches that `sizes` select. Fails like Specialise().
absl::StatusOr<RangePattern> MakeRangePattern(const Graph& graph, std::span<const InputType> types,
                                              std::span<const InputType> sizes, const PlanContext& context,
                                              const StopControl* stop);

}  // namespace mge
