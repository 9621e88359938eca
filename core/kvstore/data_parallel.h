// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: one session per device, a replica, trains on a part of each batch. The replicas sum their gradients
// within their plans, so that all make the same update, and their parameters stay equal. If a launcher started several
// processes, the replicas are the devices of all of them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/engine/session.h"
#include "core/train/training.h"

namespace mge {

// Creates the model of a replica: a training step that works with the others as described.
using MakeReplica = std::function<absl::StatusOr<onnx::Model>(const ReplicaExchange& exchange)>;

// Lets replicas run `session`, one on each device in the list of its options. `session` has the training step of one device,
// whose inputs and outputs stay those of the caller. With one device and one process, the session trains alone. `facts` are
// lines "name: value" that all processes must share. Fails with kBadSetting if the options contradict data parallelism, with
// kRankFailed if the processes differ or do not come together, and with the errors of sessions and devices.
absl::Status TrainOnReplicas(Session& session, const SessionOptions& options, MakeReplica make, std::string facts = {});

}  // namespace mge
