// SPDX-License-Identifier: Apache-2.0
// A plan: the steps that compute a graph for one signature of input shapes, with every buffer placed.
// Immutable and shared; what changes during a run belongs to an instance (core/engine/instance.h).
//
// Memory of a run is a list of bases; an operand is an offset into one of them. Base 0 is the arena (temporaries and
// workspaces). Every graph input, graph output and constant in use has a base of its own.
// A late value is one whose size or kind is known only when it has been computed: a host step makes it, and only host
// steps read it.
// What depends on late values of unknown shape is the continuation: a program of its own, planned when they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

class Program;
struct HostStepArgs;

inline constexpr uint32_t kArenaBase = 0;
inline constexpr int64_t kBufferAlignment = 64;

// One call, in the order of execution.
struct Step {
  mge_step_fn fn = nullptr;
  const void* args = nullptr;  // owned by the plan
  int32_t unit = -1;           // index into Plan::units
};

// Consecutive steps on one device.
struct Segment {
  Device* device = nullptr;
  int32_t first_step = 0;
  int32_t step_count = 0;
  bool capture_safe = false;
};

// Something that was not taken, and why.
struct Alternative {
  std::string id;
  std::string reason;
};

// What is computed together, and the record of how that was decided (for --why).
struct Unit {
  enum class Kind { kKernel, kReference, kHost, kAlias, kReorder, kCopy };
  Kind kind = Kind::kKernel;
  std::vector<std::string> nodes;  // names; empty for what the planner added
  std::vector<std::string> ops;
  std::string device;
  std::string kernel;  // the candidate's id
  std::string fusion;  // the claim's name
  std::string reason;  // why this candidate
  uint64_t attributes = 0;
  int64_t workspace_bytes = 0;
  double cost_us = -1;
  std::vector<std::string> inputs;  // "x : float32[1,8,4,4] perm(0,2,3,1)"
  std::vector<std::string> outputs;
  std::vector<Alternative> alternatives;
  std::string in_place;  // "over x", or empty
};
std::string_view UnitKindName(Unit::Kind kind);

// A piece of the arena with a life of steps [first, last].
struct PlacedBuffer {
  std::string name;  // of its first value, or "workspace of ..."
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  int64_t offset = 0;
  bool workspace = false;
};

// Where a value is during a run.
struct Location {
  enum class Kind { kSlot, kLate, kContinuation } kind = Kind::kSlot;
  mge_slot slot = {};  // kSlot
  uint32_t index = 0;  // kLate: of the late value; kContinuation: of its output
};

struct BoundValue {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  TensorType type;  // static for tensors in slots
  Location location;
};

struct ConstantBase {
  uint32_t base;
  Tensor tensor;
  bool packed = false;
};

// A constant without plain bytes (strings): a late value that is there from the start.
struct LateConstant {
  uint32_t index;
  Tensor tensor;
};

struct Continuation {
  std::shared_ptr<Program> program;
  std::vector<BoundValue> inputs;
};

struct KernelDeleter {
  const mge_kernel_api* api = nullptr;
  void operator()(mge_kernel* kernel) const { api->destroy(kernel); }
};
using KernelHandle = std::unique_ptr<mge_kernel, KernelDeleter>;

// What an executor keeps with a plan (a store of instances). Destroyed before the plan's kernels.
class PlanAttachment {
 public:
  virtual ~PlanAttachment() = default;
};

class Plan {
 public:
  Device* device = nullptr;  // where the arena lies
  std::vector<Segment> segments;
  std::vector<Step> steps;
  std::vector<Unit> units;

  std::vector<BoundValue> inputs;  // in the graph's order
  std::vector<BoundValue> outputs;
  uint32_t base_count = 1;
  std::vector<ConstantBase> constants;
  std::vector<mge_kernel*> states;     // kernels that want a state per instance, by state index
  std::vector<const mge_kernel_api*> state_apis;
  std::vector<LateConstant> late_constants;
  uint32_t late_count = 0;
  std::unique_ptr<Continuation> continuation;

  int64_t arena_bytes = 0;
  std::vector<PlacedBuffer> buffers;
  int64_t constant_bytes = 0;  // used as they are (mostly views of the model's file)
  int64_t packed_bytes = 0;
  int64_t lower_bound_bytes = 0;
  int reference_steps = 0;
  std::vector<Alternative> dropped_claims;
  std::vector<std::string> pass_log;

  std::vector<KernelHandle> kernels;
  std::vector<std::unique_ptr<std::byte[]>> args;
  std::vector<std::unique_ptr<HostStepArgs>> host_args;
  mutable std::unique_ptr<PlanAttachment> attachment;

  Plan();
  ~Plan();
};

// Bytes that MGE takes from the device for one instance and the packed constants: what a budget is compared with.
int64_t PlannedPeakBytes(const Plan& plan);

// The plan in words. `why` adds alternatives, reasons and buffers.
std::string PlanText(const Plan& plan, bool why);

}  // namespace mge
