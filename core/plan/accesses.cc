// SPDX-License-Identifier: Apache-2.0
#include "core/plan/accesses.h"

#include <algorithm>

#include "core/plan/memory/arena_history.h"

namespace mge {
namespace {

// Returns the buffers that the steps of unit `u` read and write themselves.
StepAccess UsesOf(const Schedule& schedule, const MemoryPlan& memory, size_t u) {
  StepAccess out;
  auto read = [&](int32_t item) {
    if (item >= 0) out.reads.push_back(memory.item_buffers[item]);
  };
  if (u >= schedule.units.size()) {  // a copy into an output, which no other step uses
    read(memory.output_copies[u - schedule.units.size()].item);
    return out;
  }
  const PlannedUnit& unit = schedule.units[u];
  for (int32_t item : unit.inputs) read(item);
  for (int32_t item : unit.outputs) out.writes.push_back(memory.item_buffers[item]);
  if (int32_t workspace = memory.workspaces[u]; workspace >= 0) out.writes.push_back(workspace);
  for (const MemoryPlan::Pack& pack : memory.packs[u]) out.writes.push_back(pack.buffer);
  return out;
}

class Finder {
 public:
  Finder(const Schedule& schedule, const MemoryPlan& memory) : schedule_(schedule), memory_(memory), history_(memory) {}

  StepAccess AccessOf(size_t u) {
    StepAccess out = UsesOf(schedule_, memory_, u);
    for (size_t i = 0, count = out.writes.size(); i < count; ++i) history_.Use(out.writes[i], out.writes);
    Sort(out.reads);
    Sort(out.writes);
    std::erase_if(out.reads, [&](int32_t v) { return std::binary_search(out.writes.begin(), out.writes.end(), v); });
    return out;
  }

 private:
  static void Sort(std::vector<int32_t>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  const Schedule& schedule_;
  const MemoryPlan& memory_;
  ArenaHistory history_;
};

}  // namespace

void FindLives(const Schedule& schedule, const std::vector<Step>& steps, MemoryPlan& memory) {
  std::vector<int32_t> first(memory.buffers.size(), -1), last(memory.buffers.size(), -1);
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepAccess uses = UsesOf(schedule, memory, static_cast<size_t>(steps[i].unit));
    for (const auto* list : {&uses.reads, &uses.writes}) {
      for (int32_t buffer : *list) {
        if (first[buffer] < 0) first[buffer] = static_cast<int32_t>(i);
        last[buffer] = static_cast<int32_t>(i);
      }
    }
  }
  for (size_t i = 0; i < memory.placed.size(); ++i) {
    memory.placed[i].first_step = first[memory.placed_from[i]];
    memory.placed[i].last_step = last[memory.placed_from[i]];
  }
}

std::vector<StepAccess> FindAccesses(const Schedule& schedule, const MemoryPlan& memory, const std::vector<Step>& steps) {
  Finder finder(schedule, memory);
  std::vector<StepAccess> out;
  out.reserve(steps.size());
  for (const Step& step : steps) out.push_back(finder.AccessOf(static_cast<size_t>(step.unit)));
  return out;
}

}  // namespace mge
