// SPDX-License-Identifier: Apache-2.0
// Replaces loops by copies of their bodies, one per iteration, whose operators have gradients.
#pragma once

#include <span>
#include <vector>

#include "core/ops/function_body.h"

namespace mge {

// The iterations of a loop.
class Unrolled {
 public:
  // `states` are the values that pass from iteration to iteration, before the first one. `f` and `body` must outlive this
  // object.
  Unrolled(FunctionBody& f, const Graph& body, std::vector<ValueId> states)
      : f_(f), body_(body), states_(std::move(states)) {}

  // Adds one iteration. The body reads `before`, the states, `after`, and what it captures. Returns its outputs. Fails with
  // kUnsupportedFeature if the loop has too many nodes.
  absl::StatusOr<std::vector<ValueId>> Add(std::vector<ValueId> before, const std::vector<ValueId>& after = {});
  // Sets the states of the next iteration: outputs of the body from `first` on.
  void Pass(const std::vector<ValueId>& outputs, size_t first);
  const std::vector<ValueId>& states() const { return states_; }

 private:
  FunctionBody& f_;
  const Graph& body_;
  std::vector<ValueId> states_;
  int64_t nodes_ = 0;
};

// Returns an error if the body reads or returns other values than tensors.
absl::Status RequireTensors(const FunctionBody& f, const Graph& body);

// Adds the values along a new axis as output `output` of the node. Fails with kUnsupportedFeature if there are none.
absl::Status StackResult(FunctionBody& f, int output, const std::vector<ValueId>& values, int64_t axis);

}  // namespace mge
