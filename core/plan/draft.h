// SPDX-License-Identifier: Apache-2.0
// The draft of a plan: what the stages of planning (stages.h) hand from one to the next.
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
#include "core/plan/layout.h"
#include "core/plan/plan.h"
#include "core/plan/program.h"

namespace mge {

inline constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();  // read after the last unit

inline constexpr int32_t kHostSpace = 0;

// Memory that items lie in: the host's, which is the first, or that of one device.
struct Space {
  Device* device = nullptr;  // of the host's: where its arena comes from
  int32_t memory_class = MGE_MEMORY_DEVICE;
};

// A value in one layout and one space: what a unit writes and others read.
struct Item {
  ValueId value = kNone;
  mge_layout layout = PlainLayout();
  int32_t space = kHostSpace;
  Device* device = nullptr;  // whose unit made it; nullptr: an input of the graph
  int32_t made_by = -1;   // unit; -1: an input of the graph
  int32_t last_use = -1;  // unit, or kEnd
  int32_t buffer = -1;
  std::vector<int32_t> uses = {};  // units, and kEnd
};

// Memory that one or several items occupy, one after the other.
struct Buffer {
  enum class Where { kArena, kOutput, kBase, kLate } where = Where::kArena;
  int32_t space = kHostSpace;
  uint32_t base = 0;   // kOutput, kBase
  uint32_t late = 0;   // kLate: index
  int64_t bytes = 0;
  int32_t first = 0;   // units of its life, both included
  int32_t last = 0;
  int32_t arena = 0;  // kArena, once placed: index into the plan's
  int64_t offset = 0;
  std::string name = {};
  bool workspace = false;
  bool shared = false;  // units of several queues touch it, or one that is not the calling thread writes it for the host
};

// A unit while it is planned.
struct Draft {
  Unit unit;
  Device* device = nullptr;
  int32_t queue = kCallingThread;       // index into the plan's
  const Group* group = nullptr;         // nullptr: the planner added it
  const GroupChoice* choice = nullptr;  // where there is a group
  std::vector<int32_t> inputs;          // items; -1: a constant operand
  std::vector<int32_t> outputs;
  mge_layout from = {}, to = {};        // kReorder
  OwnedCandidate candidate;             // kKernel, kReorder
  mge_prepared prepared = {};           // kKernel, kReorder
  std::vector<mge_in_place> in_place;
  int32_t workspace_buffer = -1;
  uint32_t state_index = 0;
  bool peer = false;                    // kCopy: from the memory of another device
};

// A copy into an output's memory at the end: of an input, a constant, or what another output has already.
struct OutputCopy {
  int32_t output;
  int32_t item;  // -1: the constant `value`
  ValueId value;
};

// One planning. Stages fill it from top to bottom.
struct Planning {
  Planning(const Graph& graph, std::span<const InputType> inputs, std::shared_ptr<const PlanContext> context);

  Graph graph;
  std::span<const InputType> input_types;
  std::shared_ptr<const PlanContext> context;
  std::shared_ptr<Plan> plan;
  const StopControl* stop = nullptr;  // of the run that the plan is for
  const std::function<bool()>* make_room = nullptr;  // of BuildPlan(); nullptr in an attempt
  int64_t denied_bytes = 0;          // of constants that the host memory's limit left no room to compute
  std::vector<int32_t> uses;         // of each value
  Cover cover;
  std::vector<NodeId> deferred;      // of the cover, sorted
  std::vector<GroupChoice> choices;  // of each group
  std::vector<Draft> drafts;         // one for each unit, in the order of execution
  std::vector<Item> items;
  std::unordered_map<ValueId, std::vector<int32_t>> versions;  // items of a value, the made one first
  std::vector<Space> spaces;
  std::vector<Buffer> buffers;
  std::vector<OutputCopy> output_copies;
  std::map<std::pair<ValueId, int32_t>, mge_slot> raw_constants;  // (value, space)
  std::map<std::pair<size_t, size_t>, mge_slot> packed;           // (draft, operand)
  std::map<ConstantKey, mge_slot> packed_forms;                   // those that have a name

  const Value& value(ValueId v) const { return graph.value(v); }
  bool IsConstant(ValueId v) const { return value(v).role == Role::kConstant; }
  bool IsDeferred(ValueId v) const;  // made by the continuation
  // A tensor of known size and plain memory; anything else that a host step makes is late.
  bool HasSlot(ValueId v) const;
  int32_t HostItem(ValueId v) const;  // plain, in host memory; -1: there is none
  int64_t ItemBytes(const Item& item) const;
  int32_t SpaceOf(Device& device);    // where the device's units work
  bool OnQueue(const Draft& d) const { return d.queue != kCallingThread; }
  // As a step on a queue or in the calling thread sees it.
  mge_slot SlotOf(const Buffer& buffer, bool on_queue) const;
  mge_slot SlotOf(const Draft& d, int32_t item) const { return SlotOf(buffers[items[item].buffer], OnQueue(d)); }
  // A budget has refused memory for constants: OK if something was given up for them and it may be asked again.
  absl::Status MakeRoom(absl::Status over, const Budget& budget) const;
  absl::Status CheckStop() const { return stop ? stop->CheckStop() : absl::OkStatus(); }
  std::string Place(const Draft& draft) const;  // for messages: node, or value

  // The slot of a constant as it is, in that space.
  mge_slot RawConstant(ValueId v, int32_t space = kHostSpace);
  // A new constant of the plan; `packed` if a kernel made it of one of the model's.
  mge_slot AddConstant(Tensor tensor, int32_t space, bool packed);
  // The same for one that plans share: it has a base of its own, and is uploaded unless its block is there already.
  mge_slot AddSharedConstant(ConstantKey key, const Tensor& source, Tensor tensor, std::shared_ptr<ConstantBlock> block);
  // The same for one without plain bytes (strings).
  Location LateConstant(ValueId v);
  // Where a step of the core finds a value.
  HostOperand OperandOf(ValueId v);
};

// The form into which the kernel of a draft packs its operand k, a constant. Without a name it is the kernel's own.
ConstantKey PackedKey(const Planning& p, const Draft& d, size_t k);

}  // namespace mge
