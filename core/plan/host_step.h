// SPDX-License-Identifier: Apache-2.0
// Steps that the core computes itself, with an operator's reference evaluator. These are nodes without a kernel, and
// operators that backends need not implement (control flow, sequences, shape arithmetic). Also copies between slots.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/ops/op.h"
#include "core/plan/plan.h"

namespace mge {

class Program;

// The program of a body of a control-flow node. Captured constants are constants of the program.
struct BodyProgram {
  std::string name;   // name of the attribute: "then_branch"
  const Graph* body;  // the graph in the node's attribute
  std::shared_ptr<Program> program;
  std::vector<int> captures;  // indices of the node's captures that are inputs of the program, in order
};

// An operand of a host step.
struct HostOperand {
  bool present = false;  // false: the operand is absent
  ValueKind kind = ValueKind::kTensor;
  TensorType type;  // static if the location is a slot
  Location location;
};

// The arguments of RunHostStep(). The plan owns them.
struct HostStepArgs {
  Node node;
  std::vector<HostOperand> inputs, outputs, captures;
  std::vector<BodyProgram> bodies;
  std::shared_ptr<PreparedData> prepared = std::make_shared<PreparedData>();
  bool check_inputs = false;  // true: some input types are known only during the run, so the step checks them
};

// The services that a run provides to its host steps. The executor implements it.
class HostStepEnvironment {
 public:
  virtual ~HostStepEnvironment() = default;
  virtual HostAllocator& allocator() = 0;
  // Returns the dynamic value with that index.
  virtual HostValue& dynamic(uint32_t index) = 0;
  virtual absl::Status CheckStop() = 0;
  // Returns the seed for the next random operator of the run.
  virtual uint64_t NextSeed() = 0;
  virtual absl::StatusOr<std::vector<HostValue>> RunBody(const BodyProgram& body, std::vector<HostValue> inputs) = 0;
  // Counts bytes that the calling thread copies between plain host memory and page-locked memory.
  virtual void CountStaged(uint64_t bytes) = 0;
  // Receives the error of a host step that fails.
  virtual void SetError(absl::Status status) = 0;
};

// The mge_run of a host step with its environment. `run` is the first member, so a pointer to it also points to the HostRun.
struct HostRun {
  mge_run run;
  HostStepEnvironment* environment;
};

// Runs a host step. `args` must point to a HostStepArgs and `run` to a HostRun. Passes its error to SetError().
mge_code RunHostStep(const void* args, const mge_run* run);

// The arguments of RunCopyStep(), which copies bytes between two slots in host memory. Threads of the compute pool share
// large copies. `run` must point to a HostRun.
struct CopyStepArgs {
  mge_slot from, to;
  uint64_t bytes;
  bool staged;           // true: one side is page-locked memory for the copy queues, and the bytes are counted
  uint64_t shared_from;  // least number of bytes that threads share
};
inline constexpr uint64_t kSharedCopyBytes = 2 << 20;  // sharing less costs more than it saves
mge_code RunCopyStep(const void* args, const mge_run* run);

// The arguments of RunQueueCopyStep(), which enqueues a copy on the run's queue. The copy is within a device, or between it
// and the host. If `from_device` is not null, it is from that device.
struct QueueCopyArgs {
  mge_slot from, to;
  uint64_t bytes;
  const mge_queue_api* api;
  mge_device* from_device;  // nullptr: no peer copy
  mge_device* to_device;
};
mge_code RunQueueCopyStep(const void* args, const mge_run* run);

// The arguments of RunPackStep(), which packs an input of a kernel: in the calling thread, or on the run's queue.
struct PackStepArgs {
  const mge_kernel_api* api;
  mge_kernel* kernel;
  uint32_t input;
  mge_slot from, to;
};
mge_code RunPackStep(const void* args, const mge_run* run);

}  // namespace mge
