// SPDX-License-Identifier: Apache-2.0
// A plan: the steps that compute a graph for one signature of input shapes, with an offset for every buffer.
// A plan is immutable and shared. State that changes during a run belongs to an instance (core/engine/instance.h).
//
// The memory of a run is a list of base addresses. An operand is an offset from one base. Each arena (temporaries and
// workspaces in one kind of memory), graph input and graph output has a base. So has each constant in host memory, and each
// block of constants in a device's memory.
//
// A device without queues works in host memory and in the calling thread. A device with queues has its own memory. Its steps
// are enqueued, copies between memories are steps on copy queues, and fences order steps on different queues.
//
// A caller may provide inputs and outputs in the memory of a device. This memory is a base for the steps of that device, and
// nothing is copied. The places of inputs and outputs belong to the plan's signature.
//
// A dynamic value is a value whose size or kind is known only after it has been computed. Host steps write and read late
// values. Nodes that need a dynamic value of unknown shape form the continuation, a separate program that is planned during
// the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shared_list.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/kernel/kernel.h"
#include "core/plan/memory/device_constants.h"
#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

class Communicator;  // core/plan/communicator.h
class Program;
class StateMemory;  // core/plan/memory/state_memory.h
struct HostStepArgs;

inline constexpr int64_t kBufferAlignment = 64;             // least alignment of a buffer, bytes
inline constexpr int64_t kRedZoneBytes = kBufferAlignment;  // size of the red zone in front of a buffer (Plan::red_zones)
inline constexpr int32_t kCallingThread = -1;               // in place of a queue

// One call of a function. Plan::steps holds them in the order of execution.
struct Step {
  mge_step_fn fn = nullptr;
  const void* args = nullptr;  // owned by the plan
  int32_t unit = -1;           // index into Plan::units
};

// A queue that each instance creates, together with one fence.
struct PlanQueue {
  Device* device = nullptr;
  int32_t kind = MGE_QUEUE_COMPUTE;  // MGE_QUEUE_...
  uint64_t signals = 0;              // number of signals in one run, by which the fence grows
  int32_t index = 0;                 // number of the queue among those of its device and kind
};
// Returns the name of a queue: "compute", "compute 1" (the second one), "copy in", "copy out", "communication".
std::string QueueName(const PlanQueue& queue);

// A point on a queue that another queue or the calling thread waits for. Values count from 1 in each run.
struct FencePoint {
  int32_t queue = 0;
  uint64_t value = 0;
};

// Consecutive steps on one queue, or in the calling thread. Either all steps are capture-safe or none is.
struct Segment {
  Device* device = nullptr;
  int32_t queue = kCallingThread;
  int32_t first_step = 0;
  int32_t step_count = 0;
  bool capture_safe = false;
  // Points that the calling thread waits for before it starts the segment. They include the points for which the queues of
  // those points have waited: a failure there need not reach the later point.
  std::vector<FencePoint> host_waits = {};
  std::vector<FencePoint> waits = {};  // points that the queue waits for
  uint64_t signal = 0;                 // value of the queue's fence when the segment is done; 0: no signal
  std::string cut = {};  // why it does not continue the segment before it on its queue; empty: there is none before it
  std::vector<uint32_t> bases = {};  // bases of inputs and outputs of the plan that its steps use
};

// The variables of the dependency engine that one step reads and writes. They stand for the plan's buffers.
struct StepAccess {
  std::vector<int32_t> reads = {}, writes = {};  // each variable once
};

// The memory of temporaries and workspaces in one kind of memory. If one allocation of the device is too small, there are
// several arenas, called parts.
struct Arena {
  Device* device = nullptr;  // owner of the pool that provides the memory
  int32_t memory_class = MGE_MEMORY_DEVICE;
  uint32_t base = 0;       // base for steps and copies of a device
  uint32_t host_base = 0;  // base for steps in the calling thread; differs from `base` only in pinned memory
  int64_t bytes = 0;
  int64_t lower_bound_bytes = 0;          // the most bytes alive at one time; the first part holds the bound of all parts
  uint64_t alignment = kBufferAlignment;  // of the arena and of each buffer in it: the largest of the devices that use it
  // The match range of the sharing planner, which placed the buffers. nullopt: the offset planner placed them.
  std::optional<int64_t> match_range = {};
};

// A candidate or claim that was refused or not chosen, with the reason.
struct Alternative {
  std::string id;
  std::string reason;
  double cost_us = -1;      // estimated; negative: refused, or no estimate
  double measured_us = -1;  // negative: not measured
};

// A group of nodes computed together, or a reorder or copy that the planner added. Holds the reasons for --why.
struct Unit {
  enum class Kind { kKernel, kReference, kHost, kAlias, kReorder, kCopy, kCollective };
  Kind kind = Kind::kKernel;
  std::vector<std::string> nodes;  // names; empty for what the planner added
  std::vector<std::string> ops;
  std::string main_op;  // the element of `ops` with the most arithmetic; empty for units that the planner added
  std::string device;
  std::string queue;      // QueueName(); empty: the calling thread
  std::string placement;  // the reason for this device; empty if there was no choice
  std::string kernel;     // the candidate's id
  std::string fusion;     // the claim's name
  std::string reason;     // the reason for this candidate
  uint64_t attributes = 0;
  int64_t workspace_bytes = 0;
  double cost_us = -1;              // estimated
  double measured_us = -1;          // measured by the strategy PROFILE; negative: not measured
  double flops = -1;                // arithmetic operations of the nodes; negative: known only during a run
  double bytes = -1;                // bytes read and written, each value counted once; negative: known only during a run
  std::vector<std::string> inputs;  // "x : float32[1,8,4,4] perm(0,2,3,1)"
  std::vector<std::string> outputs;
  std::vector<int32_t> input_ids, output_ids;  // ids of the values `inputs` and `outputs`, see RecordedValue
  std::vector<Alternative> alternatives;
  std::string in_place;  // "y over x", one pair per output that overwrites an input; may be empty
};
std::string_view UnitKindName(Unit::Kind kind);
// Returns the name of the unit's first node, or its main operator if that node has no name, or "reorder of x".
std::string UnitLabel(const Unit& unit);

// A range of an arena that is in use from unit `first` to unit `last`, both included.
struct PlacedBuffer {
  std::string name;  // name of its first value, or "workspace of ..."
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  int64_t offset = 0;
  bool workspace = false;
  int32_t arena = 0;
  // Indices into Plan::steps of the first and the last step that reads or writes it, if the plan has red zones; else -1.
  // Units of several queues do not run in the order of their numbers.
  int32_t first_step = -1, last_step = -1;
};

// The place of a value during a run.
struct Location {
  enum class Kind { kSlot, kDynamic, kContinuation } kind = Kind::kSlot;
  mge_slot slot = {};  // kSlot
  uint32_t index = 0;  // kDynamic: index of the dynamic value; kContinuation: index of the continuation's output
};

// Returns the address of the slot in a run.
inline void* Address(const mge_run* run, const mge_slot& slot) {
  return static_cast<char*>(run->bases[slot.base]) + slot.offset;
}

// A value in one layout and one memory, or a constant. Recorded on request, for dumps and checks of single values.
struct RecordedValue {
  int32_t id = -1;  // of the value in the planned graph; all versions of a value have the same id
  std::string name;
  TensorType type;
  mge_layout layout = {};
  Device* device = nullptr;  // owner of memory that the host cannot access; nullptr: host memory
  Location location = {};
  int64_t bytes = 0;      // in its layout; 0 for a dynamic value
  Tensor constant = {};   // defined: the value is this constant and has no location
  int32_t last_read = 0;  // last unit that reads it; larger than any unit for outputs
};
// The values of a unit as indices into Plan::values. Views have no step: the unit that writes the bytes has them, too.
struct RecordedUnit {
  std::vector<int32_t> inputs, outputs;
};

// The memory in which the caller of a run provides an input or wants an output.
struct IoPlace {
  Device* device = nullptr;  // nullptr: plain host memory
  bool pinned = false;       // true: page-locked host memory that the device's copy queues can access
  bool on_device() const { return device && !pinned; }
  bool operator==(const IoPlace&) const = default;
};

// The places of a plan's inputs and outputs, in the graph's order. An empty list stands for plain host memory.
struct IoPlaces {
  std::vector<IoPlace> inputs, outputs;
  IoPlace input(size_t i) const { return inputs.empty() ? IoPlace() : inputs[i]; }
  IoPlace output(size_t i) const { return outputs.empty() ? IoPlace() : outputs[i]; }
};

// An input or output of the plan, or an input of its continuation.
struct BoundValue {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  TensorType type;  // static for tensors in slots
  Location location;
  IoPlace place = {};         // the memory from which the plan reads it, or to which it writes it
  Device* move_to = nullptr;  // an output that the plan writes to host memory, but that the caller wants on this device
  uint32_t queue_base = 0;    // its base for steps on queues; differs from the location's base only in page-locked memory
  // An output in host memory: its memory may be that of this input, since the step that writes it is the last one that reads
  // that input and can compute in place. -1: there is no such input.
  int32_t over_input = -1;
};

// A constant in host memory.
struct ConstantBase {
  uint32_t base;
  Tensor tensor;
  bool packed = false;
};

// A constant without plain bytes (strings). It is a dynamic value that is set before the first step.
struct DynamicConstant {
  uint32_t index;
  Tensor tensor;
};

// A state of the session that the plan reads or updates. Its memory is behind a base of its own.
struct StateBase {
  std::string name;
  uint32_t base;
  void* address;
};

inline constexpr uint64_t kRandomStateBytes = 2 * sizeof(uint64_t);  // a key and a counter

// The random numbers of one kernel in a run: counters of Philox blocks, which the run sets.
struct RandomStep {
  uint64_t blocks;  // number of blocks that one run draws
  uint64_t offset;  // place of the key and the counter in RandomBase, in bytes
};

// The memory with the keys and counters of the kernels of one device. Each run writes it before its first step.
struct RandomBase {
  Device* device = nullptr;
  int32_t queue = kCallingThread;  // the queue of those kernels
  uint32_t base = 0;
  std::vector<RandomStep> steps = {};
};

// A program that a run of the plan may run: a body of control flow within its unit, or the continuation after all units.
struct PlanBody {
  int32_t unit = -1;  // -1: the continuation
  std::string name;   // name of the attribute that holds the body ("then_branch"), or "continuation"
  std::shared_ptr<Program> program;
};

// The program of the nodes whose shapes depend on data, with the values that it reads from this plan.
struct Continuation {
  std::shared_ptr<Program> program;
  std::vector<BoundValue> inputs;
};

// Data that an executor attaches to a plan (a store of instances). The plan owns it and destroys it before its kernels.
class PlanAttachment {
 public:
  virtual ~PlanAttachment() = default;
  // Waits for work that is still on the devices. The plan's destructor calls it. Returns false if a device that does not
  // respond still uses the plan's kernels and memory. The plan then leaks them.
  virtual bool Close() = 0;
  // Returns the bytes of memory kept for the next run. Safe on any thread.
  virtual int64_t IdleBytes() const = 0;
  // Releases that memory. Safe on any thread.
  virtual void GiveUpIdle() = 0;
};

// The bytes that a plan charges to one budget. They stay charged while the plan or its results live.
struct MemoryNeed {
  Device* device;  // owner of the budget
  uint64_t arena = 0, constants = 0, outputs = 0;
  uint64_t in_use = 0;       // bytes that others had charged to the budget when the plan was created
  std::string largest = {};  // the plan's largest buffers as text: "x (8 bytes), y (4 bytes)"
};

// Facts about a plan that no run reads, for listings and tests.
struct PlanReport {
  int64_t arena_bytes = 0;            // sum over all arenas
  int64_t lower_bound_bytes = 0;      // sum over all arenas; no placement can be smaller
  int64_t constant_bytes = 0;         // constants in host memory that are not packed (mostly views of the model's file)
  int64_t packed_bytes = 0;           // packed constants in host memory
  int64_t uploaded_bytes = 0;         // constants in devices' memory, packed or not
  int64_t uploaded_packed_bytes = 0;  // those of them that are packed, without padding
  // Measured growth of the devices' budgets while constants were packed and uploaded. Exact if no other thread planned or
  // ran on those devices meanwhile.
  int64_t measured_constant_bytes = 0;
  int reference_steps = 0;
  int rebound_kernels = 0;               // kernels derived from those of another plan, for other shapes
  SharedList<std::string> kernel_rules;  // attributes that settings require of kernels or forbid, and the like
  SharedList<Alternative> dropped_claims;
  SharedList<std::string> pass_log;
  std::string ranges = {};   // the sizes for which the decisions were made: "attention_mask[1,65..80]"; empty: one size
  std::string why_own = {};  // why the plan is for one size only, or when such a plan follows; empty: no ranges, or not yet
};

// A plan (see the top of this file). The destructor waits for devices that still use its memory.
class Plan {
 public:
  // Returns whether its runs must not overlap with each other: they update states, or exchange data with other ranks.
  bool RunsAlone() const { return !state_values.empty() || !communicators.empty(); }

  Device* device = nullptr;  // the first device in the order of preference
  std::vector<Segment> segments;
  std::vector<PlanQueue> queues;  // empty: all steps run in the calling thread
  std::vector<Step> steps;
  size_t own_steps = 0;  // number of steps whose kernels and arguments no other plan shares
  SharedList<Unit> units;
  // By step, if steps are operations of the engine. Empty: a run calls all steps itself.
  std::vector<StepAccess> accesses;
  int32_t access_variables = 0;  // number of variables in `accesses`
  int32_t operation_steps = 1;   // the most steps of one operation

  std::string part;                // name of the program in messages; empty: a whole model
  std::vector<BoundValue> inputs;  // in the graph's order
  std::vector<BoundValue> outputs;
  uint32_t base_count = 0;
  std::vector<ConstantBase> constants;
  std::vector<std::unique_ptr<DeviceConstants>> device_constants;
  std::vector<mge_kernel*> states;  // kernels that need a state per instance, by state index
  std::vector<const mge_kernel_api*> state_apis;
  std::vector<StateBase> state_values;                       // states of the session, which outlive the plan
  std::shared_ptr<StateMemory> state_memory;                 // their memory; nullptr: there are none
  std::vector<RandomBase> random;                            // one per device and queue with random kernels
  std::vector<std::shared_ptr<Communicator>> communicators;  // those of the plan's collectives
  std::vector<DynamicConstant> dynamic_constants;
  uint32_t dynamic_count = 0;
  std::unique_ptr<Continuation> continuation;
  std::vector<PlanBody> bodies;  // for reports, in the order of units; the continuation last

  std::vector<Arena> arenas;
  bool new_arenas = true;  // false: an earlier plan had the same
  // True: each buffer of an arena lies between two red zones that no kernel may write. The zone in front has kRedZoneBytes.
  // The zone behind has kRedZoneBytes plus the padding to a multiple of kBufferAlignment. Outputs are computed in arenas
  // too.
  bool red_zones = false;
  SharedList<PlacedBuffer> buffers;
  std::vector<RecordedValue> values;         // empty unless RecordsValues() (value_records.h)
  std::vector<RecordedUnit> recorded_units;  // by unit; the units that only copy outputs are missing
  std::vector<MemoryNeed> needs;             // one per budget
  PlanReport report;

  std::vector<KernelHandle> kernels;
  std::unique_ptr<std::byte[]> args;  // the arguments of all steps but host steps, in one block
  std::vector<std::unique_ptr<HostStepArgs>> host_args;
  std::vector<std::shared_ptr<const void>> shared;  // what else the steps use: kernels and arguments of other plans
  mutable std::unique_ptr<PlanAttachment> attachment;

  Plan();
  ~Plan();
};

// Returns the bytes of memory that a plan and the plans of its bodies keep for their next runs. Safe on any thread.
int64_t IdleBytes(const Plan& plan);
// Releases that memory. Safe on any thread.
void GiveUpIdle(const Plan& plan);

// Returns the bytes of device and host memory for one instance, packed constants and uploaded constants.
int64_t PlannedPeakBytes(const Plan& plan);

// Returns the devices of the plan's kernels and reference steps, those of its bodies included: "gpu0+gpu1".
std::string DeviceText(const Plan& plan);

// Returns the summary of the plan for the reserve policy of the arena's device. It covers all arenas in the same memory.
mge_plan_summary SummaryOf(const Plan& plan, const Arena& arena);

// Measured times of one step.
struct StepTime {
  double median_us = 0;  // time of one call
  double share = 0;      // all calls, as a fraction of the run's time
  double calls = 1;      // number of calls in one run
  bool off = false;      // true: the step takes a notable share, and its estimate is wrong
};
// Returns the times of a unit of a plan or of a body's plan, or nullopt if it was not measured.
using StepTimes = std::function<std::optional<StepTime>(const Plan& plan, int32_t unit)>;

// Returns the plan and the plans of its bodies as text. `why` adds alternatives, reasons and buffers. `times` (optional)
// adds measured times.
std::string PlanText(const Plan& plan, bool why, const StepTimes& times = nullptr);

}  // namespace mge
