// SPDX-License-Identifier: Apache-2.0
// Schedule: the units of a plan in the order of execution, and the values that they read and write.
//
// A group may read a value in another layout, or in the memory of another device, than the one in which its producer writes
// it. Reorders and copies bring it there, and several groups may share their results. Algorithm:
//   1. Adds an item for each input of the graph, and for each state in the memory of the first device.
//   2. Visits the groups in topological order. For each operand finds the item with the layout and memory that the group
//      reads. If there is none, adds the units that create it (transfers.h). Then adds the group's unit, with a new item for
//      each output.
//   3. Does the same for the outputs of the graph and for the inputs of the continuation. Both are plain and in host memory,
//      except outputs that the caller wants on a device.
//   4. Spreads the kernels over the compute queues of their devices, and those without queues over lanes (lanes.h).
#pragma once

#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/cover.h"
#include "core/plan/kernels/choose.h"
#include "core/plan/plan.h"
#include "core/plan/plan_context.h"

namespace mge {

inline constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();  // the time after the last unit

inline constexpr int32_t kHostSpace = 0;

// A memory that holds items: host memory (index kHostSpace), or the memory of one device.
struct Space {
  Device* device = nullptr;  // owner of the pool for the arena
  int32_t memory_class = MGE_MEMORY_DEVICE;
  uint64_t alignment = kBufferAlignment;  // the largest of the devices that work in it
};

// A value in one layout and one space. One unit writes it, and other units read it.
struct Item {
  ValueId value = kNone;
  mge_layout layout = PlainLayout();
  int32_t space = kHostSpace;
  Device* device = nullptr;        // of the unit that writes it, of a state, or of an input's memory; nullptr: host
  int32_t made_by = -1;            // unit that writes it; -1: an input of the graph, or a state
  int32_t last_use = -1;           // unit, or kEnd
  std::vector<int32_t> uses = {};  // units that read it, and kEnd
  bool pinned = false;             // an input that the caller provides in page-locked memory
};

// A group, or a reorder or copy that the planner added, with its operands.
struct PlannedUnit {
  Unit::Kind kind = Unit::Kind::kKernel;
  Device* device = nullptr;
  int32_t queue = kCallingThread;       // index into Schedule::queues, or kCallingThread
  int32_t lane = 0;                     // kCallingThread: kernels of one lane run one after the other (lanes.h)
  const Group* group = nullptr;         // nullptr: the planner added the unit
  const GroupChoice* choice = nullptr;  // nullptr if there is no group
  std::vector<int32_t> inputs;          // items; -1: a constant operand
  std::vector<int32_t> outputs;
  mge_layout from = {}, to = {};  // layouts of an added unit
  OwnedCandidate candidate;       // kKernel, kReorder
  std::string reason;             // reason for an added unit
  std::string copy_name;          // kCopy: "copy to host"
  double copy_us = -1;            // kCopy: estimated time
  bool peer = false;              // kCopy: the source is the memory of another device

  bool OnQueue() const { return queue != kCallingThread; }
  bool HasKernel() const { return kind == Unit::Kind::kKernel || kind == Unit::Kind::kReorder; }
  const mge_layout& InputLayout(size_t k) const { return choice ? choice->inputs[k] : from; }
  const mge_layout& OutputLayout(size_t k) const { return choice ? choice->outputs[k] : to; }
};

// The result of ScheduleUnits(). Its units point to the groups and choices of a ChosenKernels, which must outlive it.
struct Schedule {
  std::vector<PlannedUnit> units;  // in the order of execution
  std::vector<Item> items;
  std::unordered_map<ValueId, std::vector<int32_t>> versions;  // items of a value; the first is the one its producer writes
  std::vector<Space> spaces;
  std::vector<PlanQueue> queues;  // without signals
  IoPlaces places;                // as the caller provides inputs and wants outputs
  // By output: the item that a unit writes to the caller's memory on a device; -1: the output is computed in host memory.
  // Empty: all are.
  std::vector<int32_t> device_outputs;

  // Returns the space in which the device's units work. The device must have a unit.
  int32_t SpaceOf(const Device& device) const;
  // Returns the item of the value that is plain and in host memory. There must be one.
  int32_t HostItem(ValueId v) const;
};

// Returns the schedule of all groups, with the reorders and copies between them. `places` must be on devices with queues of
// the context. A constant, deferred or dynamic output is computed in host memory, wherever the caller wants it. Fails with
// kKernelFailed if a backend has no reorder for a layout that it offers, or an invalid link. Fails if `stop` (nullable) is set.
absl::StatusOr<Schedule> ScheduleUnits(const Graph& graph, const ChosenKernels& chosen, const PlanContext& context,
                                       const IoPlaces& places, const StopControl* stop);

// Returns the bytes of an item, which must be a tensor of known size.
int64_t ItemBytes(const Graph& graph, const Item& item);

// Returns the name of the unit's queue or, without a queue, of its lane.
std::string QueueOrLane(const Schedule& schedule, const PlannedUnit& unit);

// Returns the node of a unit, or the value of an added unit, for messages.
std::string PlaceOf(const Graph& graph, const Schedule& schedule, const PlannedUnit& unit);

}  // namespace mge
