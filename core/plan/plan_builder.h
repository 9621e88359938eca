// SPDX-License-Identifier: Apache-2.0
// A plan while it is built: the data that the stages of planning (stages.h) pass to each other.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/plan/cover.h"
#include "core/plan/host_step.h"
#include "core/plan/layout/layout_choice.h"
#include "core/plan/plan.h"
#include "core/plan/program.h"

namespace mge {

inline constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();  // the time after the last unit

inline constexpr int32_t kHostSpace = 0;

// A memory that holds items: host memory (index kHostSpace), or the memory of one device.
struct Space {
  Device* device = nullptr;  // owner of the pool for the arena
  int32_t memory_class = MGE_MEMORY_DEVICE;
};

// A value in one layout and one space. One unit writes it, and other units read it.
struct Item {
  ValueId value = kNone;
  mge_layout layout = PlainLayout();
  int32_t space = kHostSpace;
  Device* device = nullptr;  // device of the unit that writes it; nullptr: an input of the graph
  int32_t made_by = -1;      // unit that writes it; -1: an input of the graph
  int32_t last_use = -1;     // unit, or kEnd
  int32_t buffer = -1;
  std::vector<int32_t> uses = {};  // units that read it, and kEnd
};

// Memory for one item, or for several items one after the other.
struct Buffer {
  enum class Where { kArena, kOutput, kBase, kDynamic } where = Where::kArena;
  int32_t space = kHostSpace;
  uint32_t base = 0;     // kOutput, kBase
  uint32_t dynamic = 0;  // kDynamic: index
  int64_t bytes = 0;
  int32_t first = 0;  // first and last unit that use it, both included
  int32_t last = 0;
  int32_t arena = 0;  // kArena: index into Plan::arenas, valid after AssignBuffers()
  int64_t offset = 0;
  std::string name = {};
  bool workspace = false;
  bool shared = false;  // true: units of several queues use it, or a queue uses it in host memory
};

// A unit while it is planned.
struct PlannedUnit {
  Unit unit;
  Device* device = nullptr;
  int32_t queue = kCallingThread;       // index into Plan::queues, or kCallingThread
  const Group* group = nullptr;         // nullptr: the planner added the unit
  const GroupChoice* choice = nullptr;  // nullptr if there is no group
  std::vector<int32_t> inputs;          // items; -1: a constant operand
  std::vector<int32_t> outputs;
  mge_layout from = {}, to = {};  // kReorder
  OwnedCandidate candidate;       // kKernel, kReorder
  mge_prepared prepared = {};     // kKernel, kReorder
  std::vector<mge_in_place> in_place;
  int32_t workspace_buffer = -1;
  uint32_t state_index = 0;
  bool peer = false;  // kCopy: the source is the memory of another device
};

// A copy into an output's memory after all units. The source is an input, a constant, or a value that no step can write
// there.
struct OutputCopy {
  int32_t output;  // index into Plan::outputs
  int32_t item;    // index into PlanBuilder::items; -1: the constant `value`
  ValueId value;
};

// The state of creating one plan. The stages fill it from top to bottom. Used by one thread.
struct PlanBuilder {
  PlanBuilder(const Graph& graph, std::span<const InputType> inputs, std::shared_ptr<const PlanContext> context);

  Graph graph;
  std::span<const InputType> input_types;
  std::shared_ptr<const PlanContext> context;
  std::shared_ptr<Plan> plan;
  const StopControl* stop = nullptr;                      // stop flag of the run that waits for the plan; nullable
  const std::function<bool()>* reclaim_memory = nullptr;  // argument of BuildPlan()
  int64_t denied_bytes = 0;   // bytes of constants that were not folded because of the host memory's limit
  std::vector<int32_t> uses;  // number of uses, by value
  Cover cover;
  std::vector<NodeId> deferred;            // cover.deferred, sorted by id
  std::vector<GroupChoice> choices;        // one for each group
  std::vector<PlannedUnit> planned_units;  // one for each unit, in the order of execution
  std::vector<Item> items;
  std::unordered_map<ValueId, std::vector<int32_t>> versions;  // items of a value; the first is the one its producer writes
  std::vector<Space> spaces;
  std::vector<Buffer> buffers;
  std::vector<OutputCopy> output_copies;
  std::map<std::pair<ValueId, int32_t>, mge_slot> raw_constants;  // (value, space)
  std::map<std::pair<size_t, size_t>, mge_slot> packed;           // (planned unit, operand)
  std::map<ConstantKey, mge_slot> packed_forms;                   // packed constants whose form has a name

  const Value& value(ValueId v) const { return graph.value(v); }
  bool IsConstant(ValueId v) const { return value(v).role == Role::kConstant; }
  // Returns true if the continuation computes the value.
  bool IsDeferred(ValueId v) const;
  // Returns true for a tensor of known size whose elements are plain bytes. Other values are dynamic values.
  bool HasSlot(ValueId v) const;
  // Returns the item of the value that is plain and in host memory, or -1 if there is none.
  int32_t HostItem(ValueId v) const;
  int64_t ItemBytes(const Item& item) const;
  // Returns the space in which the device's units work. Adds it if it is new.
  int32_t SpaceOf(Device& device);
  bool OnQueue(const PlannedUnit& d) const { return d.queue != kCallingThread; }
  // Returns the slot of a buffer for a step on a queue, or for a step in the calling thread.
  mge_slot SlotOf(const Buffer& buffer, bool on_queue) const;
  mge_slot SlotOf(const PlannedUnit& d, int32_t item) const { return SlotOf(buffers[items[item].buffer], OnQueue(d)); }
  // Handles `over`, the refusal of memory for constants by `budget`. Returns OK if memory was released and the caller should
  // try again, else the error with the plan's needs.
  absl::Status ReclaimMemory(absl::Status over, const Budget& budget) const;
  absl::Status CheckStop() const { return stop ? stop->CheckStop() : absl::OkStatus(); }
  // Returns the node of a planned unit, or the value of an added unit, for messages.
  std::string Place(const PlannedUnit& planned) const;

  // Returns the slot of a constant in its plain form, in that space. Adds it to the plan at the first call.
  mge_slot RawConstant(ValueId v, int32_t space = kHostSpace);
  // Adds a constant to the plan and returns its slot. `packed`: a kernel packed it from a constant of the model.
  mge_slot AddConstant(Tensor tensor, int32_t space, bool packed);
  // Adds a constant that plans share and returns its slot. It has its own base. If `block` is not nullptr, the constant is
  // on the device already, else UploadConstants() uploads `tensor`.
  mge_slot AddSharedConstant(ConstantKey key, const Tensor& source, Tensor tensor, std::shared_ptr<ConstantBlock> block);
  // Adds a constant without plain bytes (strings) and returns its location.
  Location DynamicConstant(ValueId v);
  // Returns the operand by which a host step reads or writes the value.
  HostOperand OperandOf(ValueId v);
};

// Returns the key of the packed form of operand k, a constant, for the kernel of a planned unit. If the kernel gives the
// form no name, ConstantKey::form is empty.
ConstantKey PackedKey(const PlanBuilder& p, const PlannedUnit& d, size_t k);

}  // namespace mge
