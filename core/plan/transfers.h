// SPDX-License-Identifier: Apache-2.0
// A schedule while it is created, with the reorders and copies that bring a value to the layout and memory of its reader.
#pragma once

#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/status.h"
#include "core/plan/schedule.h"

namespace mge {

// A schedule to which units are added. The graph and the context must outlive it.
class ScheduleBuilder {
 public:
  ScheduleBuilder(const Graph& graph, const PlanContext& context);

  const Schedule& schedule() const { return schedule_; }
  // Sets the last use of each item and returns the schedule. Must be the last call.
  Schedule Finish();

  // Adds an input of the graph, which the caller provides in that place.
  void AddInput(ValueId v, const IoPlace& place);
  // Returns an item for an output that the caller wants in the memory of `device`. A unit writes that memory directly. If no
  // unit can, because the value is an input, another output or a view of one, or because of red zones, adds a copy within
  // the device. Fails like TransferTo().
  absl::StatusOr<int32_t> DeviceOutput(ValueId v, Device& device);
  // Sets Schedule::device_outputs and Schedule::places.
  void SetOutputs(std::vector<int32_t> device_outputs, IoPlaces places);
  // Adds an item of v and returns its index. Unit number `unit` writes it; -1 is an input of the graph.
  int32_t AddItem(ValueId v, const mge_layout& layout, int32_t space, Device* device, int32_t unit);
  // Adds a unit that reads the items unit.inputs.
  void AddUnit(PlannedUnit unit);
  // Marks the item as used after the last unit.
  void KeepToEnd(int32_t item) { schedule_.items[item].uses.push_back(kEnd); }
  // Returns the space in which the device's units work. Adds it if it is new.
  int32_t SpaceOf(Device& device);
  // Returns the index of the device's queue of that kind (MGE_QUEUE_...). Adds the queue if it is new.
  int32_t QueueOf(Device& device, int32_t kind);

  // Returns the item that holds v in that layout, in the memory in which `reader` works. If there is none, adds the units
  // that create it. Returns -1 for a constant. A copy between two devices is direct if their link allows it, else it goes
  // through the host. Fails with kKernelFailed if a backend has no reorder or an invalid link.
  absl::StatusOr<int32_t> TransferTo(ValueId v, const mge_layout& layout, Device& reader);

 private:
  const Item& item(int32_t id) const { return schedule_.items[id]; }
  int32_t AddTransfer(PlannedUnit unit, int32_t space);
  absl::StatusOr<int32_t> Reorder(int32_t source, const mge_layout& layout, Device& device);
  int32_t Copy(int32_t source, int32_t space, const Device& reader, std::string_view way, double us);
  absl::StatusOr<int32_t> Cross(int32_t source, int32_t space, Device& reader);
  int32_t Stage(int32_t source);
  PlannedUnit Between(Unit::Kind kind, int32_t source, Device& device) const;
  bool IsCallers(int32_t id);
  int32_t RootOf(int32_t id);
  std::string SpaceName(int32_t space) const;

  const Graph& graph_;
  const PlanContext& context_;
  Schedule schedule_;
  std::vector<int32_t> roots_;         // by item: the result of RootOf(), or -1
  std::unordered_set<int32_t> taken_;  // items in the caller's memory of outputs on devices
};

}  // namespace mge
