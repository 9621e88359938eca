// SPDX-License-Identifier: Apache-2.0
// Steps that the core computes itself by an operator's reference evaluator: what no backend claimed, and what no backend
// should have to repeat (control flow, sequences, shape arithmetic).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/plan.h"

namespace mge {

class Program;

// The body of a control-flow node, with captured constants built in.
struct BodyProgram {
  std::string name;                // of the attribute: "then_branch"
  const Graph* body;               // as the node's attribute holds it
  std::shared_ptr<Program> program;
  std::vector<int> captures;       // which of the node's captures are inputs of the program, in order
};

struct HostOperand {
  bool present = false;
  ValueKind kind = ValueKind::kTensor;
  TensorType type;  // static for a slot
  Location location;
};

struct HostStepArgs {
  Node node;
  std::vector<HostOperand> inputs, outputs, captures;
  std::vector<BodyProgram> bodies;
  bool check_inputs = false;  // some types are known only in the run: they are judged there
};

// What a host step needs of the run that it is part of. The executor implements it.
class HostStepEnvironment {
 public:
  virtual ~HostStepEnvironment() = default;
  virtual HostAllocator& allocator() = 0;
  virtual HostValue& late(uint32_t index) = 0;
  virtual absl::Status CheckStop() = 0;
  virtual uint64_t NextSeed() = 0;
  virtual absl::StatusOr<std::vector<HostValue>> RunBody(const BodyProgram& body, std::vector<HostValue> inputs) = 0;
  // Where a failing host step leaves its error.
  virtual void SetError(absl::Status status) = 0;
};

// A run as host steps see it: `run` comes first, so that a pointer to it is a pointer to the whole.
struct HostRun {
  mge_run run;
  HostStepEnvironment* environment;
};

// The function of every host step; args is a HostStepArgs.
mge_code RunHostStep(const void* args, const mge_run* run);

// Copies bytes between two slots.
struct CopyStepArgs {
  mge_slot from, to;
  uint64_t bytes;
};
mge_code RunCopyStep(const void* args, const mge_run* run);

// Enqueues a copy on the run's queue: within a device, between it and the host, or from a peer if devices are named.
struct QueueCopyArgs {
  mge_slot from, to;
  uint64_t bytes;
  const mge_queue_api* api;
  mge_device* from_device;  // nullptr: no peer copy
  mge_device* to_device;
};
mge_code RunQueueCopyStep(const void* args, const mge_run* run);

}  // namespace mge
