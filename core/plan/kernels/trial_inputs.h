// SPDX-License-Identifier: Apache-2.0
// Input data for trials of kernels.
//
// Trials time kernels and compare their results with a reference, before any real data is known. The data must therefore be
// valid for every operator. They must not be uniform, since a wrong kernel could then pass. They must be the same on every
// machine, so that results can be repeated. Algorithm: a 64-bit xorshift generator (G. Marsaglia, 2003), seeded by
// TrialFill::seed and the operand's number, gives 8 bits per element. MeasureCandidates() tries one TrialFill after another
// until the operators accept the integers and the results can tell a right kernel from a wrong one.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/cover.h"
#include "core/plan/kernels/trial.h"

namespace mge {

// The kind of values.
struct TrialFill {
  // Ranges of integers. Integers may be indices, divisors or conditions, and operators accept only some values. kBits: 0 and
  // 1. kPositive: 1 to 8. kOnes, kZeros: one value. kWide: the range of the floats, rounded to zero.
  enum class Integers { kBits, kPositive, kOnes, kZeros, kWide };
  Integers integers = Integers::kBits;
  uint64_t seed = 0;
  float reach = 0.5f;     // floats lie between -reach and reach; a negative reach changes their signs
  bool special = false;   // three of four floats are NaN or infinite
  bool positive = false;  // no float is below 0
};

// Returns values for the inputs of a group. Constants of the model keep their values. Fails with kOutOfMemory or
// kOverBudget.
absl::StatusOr<std::vector<TrialInput>> MakeInputs(const Graph& graph, const Group& group, const TrialFill& fill);

}  // namespace mge
