// SPDX-License-Identifier: Apache-2.0
// A plan: the steps that compute a graph for one signature of input shapes, with every buffer placed.
// Immutable and shared; what changes during a run belongs to an instance (core/engine/instance.h).
//
// Memory of a run is a list of bases; an operand is an offset into one of them. Every arena (temporaries and workspaces in one
// kind of memory), every graph input and output and every constant in host memory has a base of its own; so have all constants
// together that were uploaded to one device.
//
// Devices without queues work in host memory and in the calling thread. Those with queues have memory of their own: their
// steps are enqueued, copies between memories are steps on copy queues, and fences order what lies on different queues.
//
// A late value is one whose size or kind is known only when it has been computed: a host step makes it, and only host
// steps read it.
// What depends on late values of unknown shape is the continuation: a program of its own, planned when they are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plan/device_constants.h"
#include "core/plan/kernel.h"
#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

class Program;
struct HostStepArgs;

inline constexpr int64_t kBufferAlignment = 64;
inline constexpr int64_t kGuardBytes = kBufferAlignment;
inline constexpr int32_t kCallingThread = -1;  // in place of a queue

// One call, in the order of execution.
struct Step {
  mge_step_fn fn = nullptr;
  const void* args = nullptr;  // owned by the plan
  int32_t unit = -1;           // index into Plan::units
};

// A queue that an instance makes for itself, with a fence of its own.
struct PlanQueue {
  Device* device = nullptr;
  int32_t kind = MGE_QUEUE_COMPUTE;  // MGE_QUEUE_...
  uint64_t signals = 0;              // of one run: its fence grows by so much
};

// A place on a queue that others wait for: values count from 1 in each run.
struct FencePoint {
  int32_t queue = 0;
  uint64_t value = 0;
};

// Consecutive steps on one queue, or in the calling thread.
struct Segment {
  Device* device = nullptr;
  int32_t queue = kCallingThread;
  int32_t first_step = 0;
  int32_t step_count = 0;
  bool capture_safe = false;
  std::vector<FencePoint> host_waits = {};  // of the calling thread, before anything of the segment
  std::vector<FencePoint> waits = {};       // of the queue
  uint64_t signal = 0;                      // value of the queue's fence when the segment is done; 0: nobody asks
};

// Temporaries and workspaces in one kind of memory, or a part of them where the device gives less at once.
struct Arena {
  Device* device = nullptr;  // whose pool it comes from
  int32_t memory_class = MGE_MEMORY_DEVICE;
  uint32_t base = 0;         // what steps and copies of a device are given
  uint32_t host_base = 0;    // what steps in the calling thread are given; equal to base but in pinned memory
  int64_t bytes = 0;
  int64_t lower_bound_bytes = 0;  // no placement can be smaller; of the first part: together with the others
};

// Something that was not taken, and why.
// A candidate that was not chosen, or was refused.
struct Alternative {
  std::string id;
  std::string reason;
  double cost_us = -1;      // estimated; negative: refused, or no estimate
  double measured_us = -1;  // negative: not measured
};

// What is computed together, and the record of how that was decided (for --why).
struct Unit {
  enum class Kind { kKernel, kReference, kHost, kAlias, kReorder, kCopy };
  Kind kind = Kind::kKernel;
  std::vector<std::string> nodes;  // names; empty for what the planner added
  std::vector<std::string> ops;
  std::string main_op;  // the one of `ops` that asks for the most arithmetic; empty for what the planner added
  std::string device;
  std::string queue;   // "compute", "copy in", "copy out"; empty: the calling thread
  std::string placement;  // why on this device, where there was a choice
  std::string kernel;  // the candidate's id
  std::string fusion;  // the claim's name
  std::string reason;  // why this candidate
  uint64_t attributes = 0;
  int64_t workspace_bytes = 0;
  double cost_us = -1;      // estimated
  double measured_us = -1;  // with the strategy profile; negative: it was not
  double flops = -1;        // arithmetic operations that the nodes ask for; negative: known only in the run
  double bytes = -1;        // read and written, each value once; negative: known only in the run
  std::vector<std::string> inputs;  // "x : float32[1,8,4,4] perm(0,2,3,1)"
  std::vector<std::string> outputs;
  std::vector<Alternative> alternatives;
  std::string in_place;  // "over x", or empty
};
std::string_view UnitKindName(Unit::Kind kind);
std::string UnitLabel(const Unit& unit);  // its first node, its operator if that has no name, or "reorder of x"

// A piece of an arena with a life of units [first, last].
struct PlacedBuffer {
  std::string name;  // of its first value, or "workspace of ..."
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  int64_t offset = 0;
  bool workspace = false;
  int32_t arena = 0;
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

// A constant in host memory.
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

// A program that a run of the plan may run: a body of control flow, within its unit; or the continuation, after all units.
struct PlanBody {
  int32_t unit = -1;  // -1: the continuation
  std::string name;   // of the attribute that holds it, "then_branch"; "continuation"
  std::shared_ptr<Program> program;
};

struct Continuation {
  std::shared_ptr<Program> program;
  std::vector<BoundValue> inputs;
};

// What an executor keeps with a plan (a store of instances). Destroyed before the plan's kernels.
class PlanAttachment {
 public:
  virtual ~PlanAttachment() = default;
  // Asked before the plan goes: false if a device that does not answer still works with its kernels and memory, which then
  // have to stay.
  virtual bool Close() = 0;
  // Bytes of memory that is kept for the next run, and that goes with GiveUpIdle(). Both on any thread.
  virtual int64_t IdleBytes() const = 0;
  virtual void GiveUpIdle() = 0;
};

// What a plan takes of one budget, for as long as it or its results live.
struct MemoryNeed {
  Device* device;  // whose budget it is
  uint64_t arena = 0, constants = 0, outputs = 0;
  uint64_t in_use = 0;       // of that budget by others, when the plan was made
  std::string largest = {};  // of its buffers, in words
};

class Plan {
 public:
  Device* device = nullptr;  // the one preferred
  std::vector<Segment> segments;
  std::vector<PlanQueue> queues;  // empty: everything happens in the calling thread
  std::vector<Step> steps;
  std::vector<Unit> units;

  std::vector<BoundValue> inputs;  // in the graph's order
  std::vector<BoundValue> outputs;
  uint32_t base_count = 0;
  std::vector<ConstantBase> constants;
  std::vector<std::unique_ptr<DeviceConstants>> device_constants;
  std::vector<mge_kernel*> states;     // kernels that want a state per instance, by state index
  std::vector<const mge_kernel_api*> state_apis;
  std::vector<LateConstant> late_constants;
  uint32_t late_count = 0;
  std::unique_ptr<Continuation> continuation;
  std::vector<PlanBody> bodies;  // for reports, in the order of units; the continuation last

  std::vector<Arena> arenas;
  // Around each buffer of an arena lie guards that nobody may write: kGuardBytes in front, and as many or a little more behind,
  // up to a multiple of kBufferAlignment. Outputs are computed in arenas, too.
  bool guarded = false;
  int64_t arena_bytes = 0;        // of all arenas
  int64_t lower_bound_bytes = 0;
  std::vector<PlacedBuffer> buffers;
  std::vector<MemoryNeed> needs;  // of each budget
  int64_t constant_bytes = 0;  // used as they are (mostly views of the model's file)
  int64_t packed_bytes = 0;    // of packed ones in host memory
  int64_t uploaded_bytes = 0;  // in memory of devices, packed or not
  // By how much the budgets of its devices grew while constants were packed and uploaded: measured, not planned. Exact while
  // nobody else plans or runs on those devices.
  int64_t measured_constant_bytes = 0;
  int reference_steps = 0;
  std::vector<std::string> guard;  // which kernels were not to be taken, and by which setting
  std::vector<Alternative> dropped_claims;
  std::vector<std::string> pass_log;

  std::vector<KernelHandle> kernels;
  std::vector<std::unique_ptr<std::byte[]>> args;
  std::vector<std::unique_ptr<HostStepArgs>> host_args;
  mutable std::unique_ptr<PlanAttachment> attachment;

  Plan();
  ~Plan();
};

// Bytes of memory that a plan and the plans within it keep for their next runs; and gives that memory back. Any thread.
int64_t IdleBytes(const Plan& plan);
void GiveUpIdle(const Plan& plan);

// Bytes that MGE takes from its devices for one instance, packed and uploaded constants: what budgets are compared with.
int64_t PlannedPeakBytes(const Plan& plan);

// The devices that do its work, "gpu0+gpu1": those of its kernels and of steps by reference, in the plans within it as well.
std::string DeviceText(const Plan& plan);

// What the reserve policy of an arena's device is told of the plan, all arenas in the same memory included.
mge_plan_summary SummaryOf(const Plan& plan, const Arena& arena);

// What was measured of a step.
struct StepTime {
  double median_us = 0;  // of one call
  double share = 0;      // of the run, all calls
  double calls = 1;      // in a run
  bool off = false;      // the step matters, and its estimate is wrong
};
// For a unit of a plan, bodies' plans included; none if it was not measured.
using StepTimes = std::function<std::optional<StepTime>(const Plan& plan, int32_t unit)>;

// The plan in words, with those of its bodies. `why` adds alternatives, reasons and buffers; `times` (nullable) what was
// measured.
std::string PlanText(const Plan& plan, bool why, const StepTimes& times = nullptr);

}  // namespace mge
