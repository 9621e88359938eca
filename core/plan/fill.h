// SPDX-License-Identifier: Apache-2.0
// Data that kernels are tried on: seeded, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/cover.h"
#include "core/plan/trial.h"

namespace mge {

struct TrialFill {
  // Integers may be indices, divisors or conditions, of which operators accept only some. kPositive takes them from 1 to 8,
  // kWide from as far as the floats.
  enum class Integers { kBits, kPositive, kOnes, kZeros, kWide };
  Integers integers = Integers::kBits;
  uint64_t seed = 0;
  float reach = 0.5f;    // floats lie between it and its negative; a negative one mirrors them
  bool special = false;  // three floats of four are not a number, or infinite
  bool positive = false;  // no float is below 0
};

// Values for the inputs of a group; its constants are as they are.
absl::StatusOr<std::vector<TrialInput>> MakeInputs(const Graph& graph, const Group& group, const TrialFill& fill);

}  // namespace mge
