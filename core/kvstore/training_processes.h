// SPDX-License-Identifier: Apache-2.0
// The processes of one data-parallel training: which they are, and that they train the same.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/engine/process_group.h"
#include "core/engine/runtime.h"
#include "core/onnx/reader.h"
#include "core/plan/communicator.h"

namespace mge {

// Returns the place of this process in a data-parallel training, by the settings kvstore.type and collective.launcher. Fails
// with kBadSetting.
absl::StatusOr<Launch> LaunchOfTraining(const Runtime& runtime, const Snapshot& settings);

// Returns the time that a process waits for the others: collective.timeout_seconds. Its default is longer until the first step
// has ended, because processes plan and compile in it.
std::chrono::nanoseconds PatienceOf(const Snapshot& settings, bool first_step);

// Returns facts of a model that all processes must share, as lines "name: value".
absl::StatusOr<std::string> ModelFacts(const onnx::Model& model);

// Returns the id of the group of devices whose backend connects the processes, without MPI: the setting collective.id, or what
// rank 0 creates and hands out over TCP (id_store.h). Fails with kBadSetting if the address or port of rank 0 is unknown.
absl::StatusOr<CollectiveId> IdWithoutMpi(const Launch& launch, const Snapshot& settings, const Environment& environment,
                                          const std::string& facts,
                                          const std::function<absl::StatusOr<CollectiveId>()>& create);
// Returns the error of devices that nothing connects with other processes.
absl::Status NoTransport(const Launch& launch, const std::string& device);

// Compares the facts of all processes. Fails with kRankFailed, and names the first line that differs and the processes.
absl::Status CompareFacts(ProcessGroup& group, const std::string& facts, std::chrono::nanoseconds limit);
// Returns a text that names the first line that differs between the facts of two processes, or "" if they are equal.
std::string FirstDifference(const std::string& first, const std::string& first_name, const std::string& other,
                            const std::string& other_name);

}  // namespace mge
