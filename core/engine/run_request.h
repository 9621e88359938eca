// SPDX-License-Identifier: Apache-2.0
// A run that a caller asks for: Session::Submit().
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/base/tensor.h"

namespace mge {

class RunFence;  // core/engine/run_fence.h

struct RunRequest {
  std::span<const HostValue> inputs;  // in the model's order
  // One per element of `places`. A defined tensor is memory of the caller for that result; the run creates the others.
  std::span<HostValue> outputs;
  // The indices of the outputs to compute, each once. Nodes that they do not need are skipped. Empty: all outputs.
  std::span<const int> places = {};
  // Runs that must have ended before this one begins. If one of them fails, so does this one.
  std::span<const std::shared_ptr<RunFence>> after = {};
  // True: the request returns when the results are there. False: it returns as soon as the work is enqueued on the devices.
  bool wait = true;
};

// A request that owns what it names, for Session::Post().
struct OwnedRunRequest {
  std::vector<HostValue> inputs, outputs;
  std::vector<int> places = {};
  std::vector<std::shared_ptr<RunFence>> after = {};
};

}  // namespace mge
