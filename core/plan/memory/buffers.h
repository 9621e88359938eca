// SPDX-License-Identifier: Apache-2.0
// Buffers: the memory of each item and workspace of a plan.
//
// Two buffers may use the same bytes if their lives, counted in units, do not overlap. This keeps the arena far smaller than
// the sum of all values. Algorithm:
//   1. Visits the units in order. An alias uses the buffer of its input, an update that of its target. An output overwrites
//      an input if the kernel allows the pair, the sizes are equal and this unit is the last reader. Any other output gets a
//      new buffer.
//   2. Marks the buffers that several queues may use. Their lives are extended at both ends, so that a copy can run before
//      the unit that needs it.
//   3. Moves outputs from the arena to the caller's memory: those that the calling thread computes, and those that the
//      caller wants on a device or in page-locked memory.
//   4. Places the buffers of each arena with the offset planner (place.h) or the sharing planner (share.h), at multiples of
//      the alignment that the devices whose kernels use the arena require.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/kernels/prepare.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// Memory for one item, or for several items one after the other.
struct Buffer {
  enum class Where { kArena, kOutput, kBase, kDynamic } where = Where::kArena;
  int32_t space = kHostSpace;
  uint32_t base = 0;        // kOutput, kBase
  uint32_t queue_base = 0;  // kOutput, kBase: base for steps on queues if it differs; 0: `base`
  uint32_t dynamic = 0;     // kDynamic: index
  int64_t bytes = 0;
  int32_t first = 0;  // first and last unit that use it, both included
  int32_t last = 0;
  int32_t arena = 0;  // kArena: index into MemoryPlan::arenas
  int64_t offset = 0;
  std::string name = {};
  bool workspace = false;
  // True: units of several queues use it, or a queue uses it in host memory, or its device has several compute queues.
  bool shared = false;
};

// A copy into an output's memory after all units. The source is an input, a constant, or a value that no step can write
// there.
struct OutputCopy {
  int32_t output;  // index into MemoryPlan::outputs
  int32_t item;    // index into Schedule::items; -1: the constant `value`
  ValueId value;
};

// The memory of a schedule: a place for each value that is not a constant.
struct MemoryPlan {
  std::vector<Buffer> buffers;
  std::vector<int32_t> item_buffers;  // buffer of each item
  std::vector<int32_t> workspaces;    // buffer of each unit's workspace; -1: it has none
  struct Pack {
    size_t operand;  // an input of the unit that is a state
    int32_t buffer;  // its packed form
  };
  std::vector<std::vector<Pack>> packs;  // by unit: states that are packed before the unit's kernel runs
  struct StateBuffer {
    ValueId value;
    uint32_t base;
  };
  std::vector<StateBuffer> states;                // bases of the session's states
  std::vector<RandomBase> random;                 // one for each queue with random kernels
  std::vector<mge_slot> random_slots;             // by unit: its key and counter; zero for units without random numbers
  std::vector<std::string> in_place;              // by unit: "y over x", or empty
  std::vector<BoundValue> inputs, outputs;        // in the graph's order
  std::vector<OutputCopy> output_copies;          // in the order of the outputs
  std::map<ValueId, uint32_t> dynamic_constants;  // dynamic values that hold a constant without plain bytes
  std::vector<Arena> arenas;                      // one for each space, then further parts
  std::vector<PlacedBuffer> placed;               // buffers in arenas
  std::vector<int32_t> placed_from;               // their indices in `buffers`
  uint32_t base_count = 0;                        // bases of arenas, inputs and outputs
  uint32_t dynamic_count = 0;

  const Buffer& BufferOf(int32_t item) const { return buffers[item_buffers[item]]; }
  // Returns the slot of a buffer for a step on a queue, or for a step in the calling thread. It must not be a dynamic value.
  mge_slot SlotOf(const Buffer& buffer, bool on_queue) const;
  // Returns the location of a buffer for a step in the calling thread.
  Location LocationOf(const Buffer& buffer) const;
};

// Returns the memory of the schedule. Fails with kOverBudget if the buffers take more than 2^60 bytes, or if one is larger
// than the device can allocate. Fails if `stop` (nullable) is set.
absl::StatusOr<MemoryPlan> AssignBuffers(const Graph& graph, const Cover& cover, const Schedule& schedule,
                                         const PreparedKernels& kernels, const PlanContext& context,
                                         const StopControl* stop);

// Returns true if the kernel of a group reads input k, a state, in packed form. The host packs it before each use.
bool PacksState(const Graph& graph, const Group& group, const mge_prepared& prepared, size_t k);

// Returns true for a tensor of known size whose elements are plain bytes. Other values are dynamic values.
bool HasSlot(const Value& value);

}  // namespace mge
