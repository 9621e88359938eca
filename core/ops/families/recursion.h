// SPDX-License-Identifier: Apache-2.0
// Adds the steps of a sequence to a function's body, one after the other.
#pragma once

#include <functional>
#include <vector>

#include "core/ops/function_body.h"

namespace mge {

// A computation over the steps of sequences, which passes states from step to step.
struct Recursion {
  // The values that a step reads: the states, the step's part of each sequence, and values that are the same in all steps.
  struct Now {
    ExpressionBuilder& b;
    std::vector<Term> states, parts, constants;
  };
  std::vector<ValueId> states;     // initial values
  std::vector<ValueId> sequences;  // [steps, ...]
  std::vector<ValueId> constants = {};
  int64_t steps = 0;
  bool reversed = false;  // begins with the last step
  // Adds the nodes of a step. Returns the new states, then the step's part of each result.
  std::function<std::vector<Term>(const Now&)> step = {};

  struct Results {
    std::vector<ValueId> states;     // after the last step
    std::vector<ValueId> sequences;  // [steps, ...]
  };
  // Adds the nodes of all steps, or a Scan if there are many. `steps` must be positive.
  Results AddTo(FunctionBody& f) const;
};

}  // namespace mge
