// SPDX-License-Identifier: Apache-2.0
// The outputs of one run on their way to the caller: the memory that the run writes, and where the caller wants the results.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plan/plan.h"

namespace mge {

class Runtime;  // core/engine/runtime.h

// Used by one run.
class RunOutputs {
 public:
  // `given` are the caller's outputs. They must outlive this object. `created` is the memory of those that are not
  // defined.
  RunOutputs(const std::shared_ptr<Runtime>& runtime, std::span<HostValue> given, const IoPlace& created)
      : runtime_(runtime), given_(given), created_(created) {}

  // Returns the outputs that a run of the plan with these inputs writes. An output with the memory of an input is computed
  // elsewhere, unless the plan can write it there. Creates those on devices, and those in page-locked memory whose size is
  // known. Fails with an error of the memory's pool.
  absl::StatusOr<std::span<HostValue>> ForPlan(const Plan& plan, std::span<const HostValue> inputs);
  // Returns all outputs of the graph, for a run that creates them in host memory. `places` are the indices of the caller's
  // outputs; empty: all of them.
  std::span<HostValue> InHostMemory(const Graph& graph, std::span<const int> places);

  // After the run: moves the results that were computed elsewhere to the caller's outputs. Returns the bytes that it copied.
  // Fails with kBadInput if memory of the caller does not fit.
  absl::StatusOr<uint64_t> Deliver();

 private:
  // A result that is computed in other memory than the caller wants.
  struct Move {
    size_t from, to;          // indices into computed_ and given_
    IoPlace place;            // of a tensor that is not given
    const std::string* name;  // of the output
  };
  absl::StatusOr<Tensor> Create(DType dtype, const Shape& shape, const IoPlace& place, const std::string& name) const;
  absl::StatusOr<uint64_t> DeliverOne(const Move& move);

  const std::shared_ptr<Runtime>& runtime_;
  const std::span<HostValue> given_;
  const IoPlace created_;
  std::vector<HostValue> computed_;  // empty: the run writes given_
  std::vector<Move> moves_;
};

}  // namespace mge
