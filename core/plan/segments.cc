// SPDX-License-Identifier: Apache-2.0
#include "core/plan/segments.h"

#include <algorithm>

namespace mge {
namespace {

constexpr size_t kHostLane = 0;  // lane q + 1 is queue q

// For each lane, the latest unit that is known to have ended; -1: none.
using Clock = std::vector<int32_t>;

void Join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

struct UnitWaits {
  Clock host;   // units that the calling thread waits for, per lane; empty: none
  Clock queue;  // units that the unit's queue waits for, per lane; empty: none
};

class Segmenter {
 public:
  Segmenter(const Schedule& schedule, const MemoryPlan& memory, const BoundSteps& bound, const PlanContext& context)
      : schedule_(schedule),
        memory_(memory),
        bound_(bound),
        context_(context),
        lanes_(schedule.queues.size() + 1),
        known_(lanes_, Clock(lanes_, -1)),
        touched_(memory.buffers.size(), Clock(lanes_, -1)),
        written_(memory.buffers.size(), Clock(lanes_, -1)),
        fresh_(memory.buffers.size(), true),
        waits_(bound.units.size()),
        over_(bound.units.size()),
        asked_(bound.units.size(), false),
        out_{{}, schedule.queues} {}

  Segments Run() {
    for (size_t u = 0; lanes_ > 1 && u < bound_.units.size(); ++u) {
      if (HasStep(u)) Order(static_cast<int32_t>(u));
    }
    Cut();
    return std::move(out_);
  }

 private:
  // Returns true if unit u is in the schedule. The others are copies into outputs.
  bool IsPlanned(size_t u) const { return u < schedule_.units.size(); }
  // Returns true if unit u has a step. An alias has none, except an alias of a constant, which is copied.
  bool HasStep(size_t u) const {
    return !IsPlanned(u) || schedule_.units[u].kind != Unit::Kind::kAlias || schedule_.units[u].inputs[0] < 0;
  }
  size_t LaneOf(size_t u) const { return IsPlanned(u) ? static_cast<size_t>(schedule_.units[u].queue + 1) : kHostLane; }
  const Backend& BackendOf(size_t lane) const { return schedule_.queues[lane - 1].device->backend(); }

  // Returns the units on which unit u depends: the writers of its inputs, and the units that used the memory that it writes.
  Clock Needs(int32_t u) {
    Clock needs(lanes_, -1);
    if (!IsPlanned(u)) {
      const OutputCopy& copy = memory_.output_copies[static_cast<size_t>(u) - schedule_.units.size()];
      if (copy.item >= 0) Join(needs, written_[memory_.item_buffers[copy.item]]);
      return needs;
    }
    const PlannedUnit& d = schedule_.units[u];
    for (int32_t item : d.inputs) {
      if (item >= 0) Join(needs, written_[memory_.item_buffers[item]]);
    }
    for (int32_t item : d.outputs) JoinOverwritten(needs, memory_.item_buffers[item]);
    if (int32_t workspace = memory_.workspaces[u]; workspace >= 0) JoinOverwritten(needs, workspace);
    for (const MemoryPlan::Pack& pack : memory_.packs[u]) JoinOverwritten(needs, pack.buffer);
    return needs;
  }

  void JoinOverwritten(Clock& needs, int32_t buffer) {
    Join(needs, touched_[buffer]);
    const Buffer& b = memory_.buffers[buffer];
    if (!fresh_[buffer] || b.where != Buffer::Where::kArena) return;
    fresh_[buffer] = false;
    for (int32_t other : started_) {  // buffers that had this memory before
      const Buffer& o = memory_.buffers[other];
      if (o.space == b.space && o.offset < b.offset + b.bytes && b.offset < o.offset + o.bytes) Join(needs, touched_[other]);
    }
    started_.push_back(buffer);
  }

  void Touch(int32_t u, size_t lane) {
    if (!IsPlanned(u)) return;
    const PlannedUnit& d = schedule_.units[u];
    for (int32_t item : d.inputs) {
      if (item >= 0) touched_[memory_.item_buffers[item]][lane] = u;
    }
    for (int32_t item : d.outputs) {
      int32_t b = memory_.item_buffers[item];
      touched_[b][lane] = u;
      written_[b].assign(lanes_, -1);  // the writer has waited for all earlier users
      written_[b][lane] = u;
    }
    if (int32_t workspace = memory_.workspaces[u]; workspace >= 0) touched_[workspace][lane] = u;
    for (const MemoryPlan::Pack& pack : memory_.packs[u]) touched_[pack.buffer][lane] = u;
  }

  void Order(int32_t u) {
    size_t lane = LaneOf(u);
    Clock needs = Needs(u);
    // If the calling thread knows that a unit has ended, all that it enqueues later may assume so too.
    Clock& known = known_[lane];
    if (lane != kHostLane) Join(known, known_[kHostLane]);
    for (size_t m = 1; m < lanes_; ++m) {
      if (m == lane || needs[m] <= known[m]) continue;
      bool by_host = lane == kHostLane || &BackendOf(lane) != &BackendOf(m);  // fences are per backend
      Clock& waits = by_host ? waits_[u].host : waits_[u].queue;
      if (waits.empty()) waits.assign(lanes_, -1);
      waits[m] = needs[m];
      asked_[needs[m]] = true;
      if (by_host) Join(known_[kHostLane], over_[needs[m]]);
      Join(known, over_[needs[m]]);
    }
    known[lane] = u;
    over_[u] = known;
    if (lane == kHostLane) known_[kHostLane][kHostLane] = u;
    Touch(u, lane);
  }

  // Cuts the steps into segments. A segment begins at a wait and ends at a unit that others wait for.
  void Cut() {
    std::vector<int32_t> last(lanes_, -1);
    for (size_t u = 0; u < bound_.units.size(); ++u) {
      if (HasStep(u)) last[LaneOf(u)] = static_cast<int32_t>(u);
    }
    for (size_t m = 1; m < lanes_; ++m) {
      if (last[m] >= 0) asked_[last[m]] = true;  // the end of a run waits for all queues
    }
    std::vector<uint64_t> value(bound_.units.size(), 0);  // fence value of the signal after each unit
    bool open = false;
    for (size_t i = 0; i < bound_.steps.size(); ++i) {
      int32_t u = bound_.steps[i].unit;
      size_t lane = LaneOf(u);
      int32_t queue = static_cast<int32_t>(lane) - 1;
      Device* device = IsPlanned(u) ? schedule_.units[u].device : &HostStepDevice(context_);
      bool waits = !waits_[u].host.empty() || !waits_[u].queue.empty();
      if (!open || waits || out_.segments.back().queue != queue || out_.segments.back().device != device) {
        Segment s;
        s.device = device;
        s.queue = queue;
        s.first_step = static_cast<int32_t>(i);
        s.capture_safe = lane != kHostLane;
        s.host_waits = Points(waits_[u].host, value);
        s.waits = Points(waits_[u].queue, value);
        out_.segments.push_back(std::move(s));
        open = true;
      }
      Segment& s = out_.segments.back();
      ++s.step_count;
      s.capture_safe &= (bound_.units[u].attributes & MGE_KERNEL_CAPTURE_SAFE) != 0;
      if (lane != kHostLane && asked_[u]) {
        value[u] = s.signal = ++out_.queues[queue].signals;
        open = false;
      }
    }
  }

  std::vector<FencePoint> Points(const Clock& waits, const std::vector<uint64_t>& value) const {
    std::vector<FencePoint> points;
    for (size_t m = 1; m < waits.size(); ++m) {
      if (waits[m] >= 0) points.push_back({static_cast<int32_t>(m) - 1, value[waits[m]]});
    }
    return points;
  }

  const Schedule& schedule_;
  const MemoryPlan& memory_;
  const BoundSteps& bound_;
  const PlanContext& context_;
  size_t lanes_;
  std::vector<Clock> known_;    // units known to have ended, per lane
  std::vector<Clock> touched_;  // per buffer: the latest unit of each lane that read or wrote it
  std::vector<Clock> written_;  // per buffer: the unit that wrote it last
  std::vector<bool> fresh_;     // buffers that no unit has written yet
  std::vector<int32_t> started_;
  std::vector<UnitWaits> waits_;
  std::vector<Clock> over_;  // units known to have ended when the unit has ended
  std::vector<bool> asked_;  // units that others wait for
  Segments out_;
};

}  // namespace

Segments FormSegments(const Schedule& schedule, const MemoryPlan& memory, const BoundSteps& bound,
                      const PlanContext& context) {
  return Segmenter(schedule, memory, bound, context).Run();
}

}  // namespace mge
