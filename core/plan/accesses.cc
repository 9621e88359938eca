// SPDX-License-Identifier: Apache-2.0
#include "core/plan/accesses.h"

#include <algorithm>

namespace mge {
namespace {

class Finder {
 public:
  Finder(const Schedule& schedule, const MemoryPlan& memory)
      : schedule_(schedule), memory_(memory), started_(memory.buffers.size(), false) {}

  StepAccess AccessOf(size_t u) {
    StepAccess out;
    auto read = [&](int32_t item) {
      if (item >= 0) out.reads.push_back(memory_.item_buffers[item]);
    };
    if (u >= schedule_.units.size()) {  // a copy into an output, which no other step uses
      read(memory_.output_copies[u - schedule_.units.size()].item);
    } else {
      const PlannedUnit& unit = schedule_.units[u];
      for (int32_t item : unit.inputs) read(item);
      for (int32_t item : unit.outputs) out.writes.push_back(memory_.item_buffers[item]);
      if (int32_t workspace = memory_.workspaces[u]; workspace >= 0) out.writes.push_back(workspace);
      for (const MemoryPlan::Pack& pack : memory_.packs[u]) out.writes.push_back(pack.buffer);
    }
    for (size_t i = 0, count = out.writes.size(); i < count; ++i) AddOverwritten(out.writes[i], out.writes);
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

  // Adds the buffers that had the memory of `buffer` before, if this is its first use.
  void AddOverwritten(int32_t buffer, std::vector<int32_t>& writes) {
    const Buffer& b = memory_.buffers[buffer];
    if (started_[buffer] || b.where != Buffer::Where::kArena) return;
    started_[buffer] = true;
    for (int32_t other : order_) {
      const Buffer& o = memory_.buffers[other];
      if (o.arena == b.arena && o.offset < b.offset + b.bytes && b.offset < o.offset + o.bytes) writes.push_back(other);
    }
    order_.push_back(buffer);
  }

  const Schedule& schedule_;
  const MemoryPlan& memory_;
  std::vector<bool> started_;
  std::vector<int32_t> order_;  // buffers in arenas, in the order of their first use
};

}  // namespace

std::vector<StepAccess> FindAccesses(const Schedule& schedule, const MemoryPlan& memory, const std::vector<Step>& steps) {
  Finder finder(schedule, memory);
  std::vector<StepAccess> out;
  out.reserve(steps.size());
  for (const Step& step : steps) out.push_back(finder.AccessOf(static_cast<size_t>(step.unit)));
  return out;
}

}  // namespace mge
