// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: one session per device, a replica, trains on a part of each batch. The replicas sum their gradients
// within their plans, so that all make the same update, and their parameters stay equal.
#pragma once

#include <functional>
#include <memory>

#include "core/engine/session.h"
#include "core/train/training.h"

namespace mge {

// Creates the model of a replica: a training step that sums with this function.
using MakeReplica = std::function<absl::StatusOr<onnx::Model>(const SumOverReplicas& sum)>;

// Lets replicas run `session`, one on each device in the list of its options. `session` has the training step of one device,
// whose inputs and outputs stay those of the caller. Fails with kBadSetting if the options contradict data parallelism, and
// with the errors of sessions and devices.
absl::Status TrainOnReplicas(Session& session, const SessionOptions& options, MakeReplica make);

}  // namespace mge
