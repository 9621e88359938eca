// SPDX-License-Identifier: Apache-2.0
#include "core/plan/segments.h"

#include <algorithm>
#include <string>

#include "core/plan/memory/arena_history.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr size_t kHostLane = 0;  // lane q + 1 is queue q
constexpr int32_t kNobody = -1;

// For each lane, the latest unit that is known to have ended; -1: none.
using Clock = std::vector<int32_t>;

void Merge(Clock& clock, const Clock& other) {
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
        history_(memory),
        waits_(bound.units.size()),
        over_(bound.units.size()),
        asked_by_(bound.units.size(), kNobody),
        after_host_(bound.units.size(), -1),
        out_{{}, {}, schedule.queues} {}

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
      if (copy.item >= 0) Merge(needs, written_[memory_.item_buffers[copy.item]]);
      return needs;
    }
    const PlannedUnit& d = schedule_.units[u];
    for (int32_t item : d.inputs) {
      if (item >= 0) Merge(needs, written_[memory_.item_buffers[item]]);
    }
    for (int32_t item : d.outputs) JoinOverwritten(needs, memory_.item_buffers[item]);
    if (int32_t workspace = memory_.workspaces[u]; workspace >= 0) JoinOverwritten(needs, workspace);
    for (const MemoryPlan::Pack& pack : memory_.packs[u]) JoinOverwritten(needs, pack.buffer);
    return needs;
  }

  void JoinOverwritten(Clock& needs, int32_t buffer) {
    Merge(needs, touched_[buffer]);
    before_.clear();
    history_.Use(buffer, before_);
    for (int32_t other : before_) Merge(needs, touched_[other]);
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
    Clock& known = known_[lane];
    if (lane != kHostLane) {
      // If the calling thread knows that a unit has ended, all that it enqueues later may assume so too.
      const Clock& host = known_[kHostLane];
      bool helps = false;
      for (size_t m = 1; m < lanes_; ++m) helps |= m != lane && needs[m] > known[m] && needs[m] <= host[m];
      after_host_[u] = helps ? std::max(learned_, needs[kHostLane]) : needs[kHostLane];
      if (helps) Merge(known, host);
    }
    const Clock host_knew = known_[kHostLane];
    for (size_t m = 1; m < lanes_; ++m) {
      if (m == lane || needs[m] <= known[m]) continue;
      bool by_host = lane == kHostLane || &BackendOf(lane) != &BackendOf(m);  // fences are per backend
      Clock& waits = by_host ? waits_[u].host : waits_[u].queue;
      if (waits.empty()) waits.assign(lanes_, -1);
      waits[m] = needs[m];
      asked_by_[needs[m]] = static_cast<int32_t>(by_host ? kHostLane : lane);
      if (by_host) {
        Merge(known_[kHostLane], over_[needs[m]]);
        learned_ = u;
      }
      Merge(known, over_[needs[m]]);
    }
    // The calling thread also looks at the signals for which the awaited queues have waited: their failures may stop there.
    for (size_t m = 1; m < lanes_ && !waits_[u].host.empty(); ++m) {
      if (m != lane && known_[kHostLane][m] > host_knew[m]) waits_[u].host[m] = known_[kHostLane][m];
    }
    known[lane] = u;
    over_[u] = known;
    Touch(u, lane);
  }

  // Adds the steps to segments, then moves the steps of each segment together.
  void Cut() {
    std::vector<int32_t> last(lanes_, -1);
    for (size_t u = 0; u < bound_.units.size(); ++u) {
      if (HasStep(u)) last[LaneOf(u)] = static_cast<int32_t>(u);
    }
    for (size_t m = 1; m < lanes_; ++m) {
      if (last[m] >= 0) asked_by_[last[m]] = static_cast<int32_t>(kHostLane);  // the end of a run waits for all queues
    }
    std::vector<uint64_t> value(bound_.units.size(), 0);  // fence value of the signal after each unit
    std::vector<int32_t> latest(lanes_, -1);              // latest segment of each lane
    std::vector<std::vector<Step>> steps;                 // by segment
    for (const Step& step : bound_.steps) {
      const int32_t u = step.unit;
      const size_t lane = LaneOf(u);
      const int32_t before = latest[lane];
      const std::string cut = before < 0 ? "" : WhyCut(u, out_.segments[before], steps[before]);
      if (before < 0 || !cut.empty()) {
        Segment s;
        s.device = DeviceOf(u);
        s.queue = static_cast<int32_t>(lane) - 1;
        s.capture_safe = IsCaptureSafe(u);
        s.host_waits = Points(waits_[u].host, value);
        s.waits = Points(waits_[u].queue, value);
        if (lane != kHostLane) s.cut = cut;
        latest[lane] = static_cast<int32_t>(out_.segments.size());
        out_.segments.push_back(std::move(s));
        steps.emplace_back();
      }
      Segment& s = out_.segments[latest[lane]];
      steps[latest[lane]].push_back(step);
      if (lane == kHostLane) continue;
      AddBases(u, s.bases);
      if (asked_by_[u] != kNobody) value[u] = s.signal = ++out_.queues[s.queue].signals;
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      out_.segments[i].first_step = static_cast<int32_t>(out_.steps.size());
      out_.segments[i].step_count = static_cast<int32_t>(steps[i].size());
      out_.steps.insert(out_.steps.end(), steps[i].begin(), steps[i].end());
    }
  }

  Device* DeviceOf(size_t u) const { return IsPlanned(u) ? schedule_.units[u].device : &HostStepDevice(context_); }
  bool IsCaptureSafe(size_t u) const {
    return LaneOf(u) != kHostLane && (bound_.units[u].attributes & MGE_KERNEL_CAPTURE_SAFE) != 0;
  }
  std::string LaneName(size_t lane) const {
    if (lane == kHostLane) return "the calling thread";
    const PlanQueue& queue = schedule_.queues[lane - 1];
    return fmt::format("{} {}", queue.device->name(), QueueName(queue));
  }

  // Returns the reason why unit u cannot be added to the latest segment of its lane, or "". For the calling
  // thread, any text means that it cannot.
  std::string WhyCut(int32_t u, const Segment& s, const std::vector<Step>& steps) const {
    if (LaneOf(u) == kHostLane) {
      const bool joins = waits_[u].host.empty() && s.device == DeviceOf(u) && &s == &out_.segments.back();
      return joins ? "" : "order";
    }
    const int32_t before = steps.back().unit;
    const std::string name = UnitLabel(bound_.units[u]);
    for (size_t m = 1; m < lanes_; ++m) {
      const UnitWaits& w = waits_[u];
      const bool waits = (!w.host.empty() && w.host[m] >= 0) || (!w.queue.empty() && w.queue[m] >= 0);
      if (waits) return fmt::format("{} waits for {}", name, LaneName(m));
    }
    if (s.signal) {
      return fmt::format("{} waits for {}", LaneName(static_cast<size_t>(asked_by_[before])),
                         UnitLabel(bound_.units[before]));
    }
    if (after_host_[u] >= steps.front().unit) return fmt::format("{} needs a step of the calling thread", name);
    if (s.capture_safe == IsCaptureSafe(u)) return "";
    return fmt::format("{} is not capture-safe", s.capture_safe ? name : UnitLabel(bound_.units[before]));
  }

  // Adds the bases of inputs and outputs of the plan that unit u uses. They may change with every run.
  void AddBases(int32_t u, std::vector<uint32_t>& bases) const {
    auto add = [&](int32_t item) {
      if (item < 0) return;
      const Buffer& b = memory_.BufferOf(item);
      const bool changes = b.where == Buffer::Where::kBase || b.where == Buffer::Where::kOutput;
      if (changes && std::find(bases.begin(), bases.end(), b.base) == bases.end()) bases.push_back(b.base);
    };
    for (int32_t item : schedule_.units[u].inputs) add(item);
    for (int32_t item : schedule_.units[u].outputs) add(item);
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
  int32_t learned_ = -1;        // the latest unit for which the calling thread has waited
  std::vector<Clock> touched_;  // per buffer: the latest unit of each lane that read or wrote it
  std::vector<Clock> written_;  // per buffer: the unit that wrote it last
  ArenaHistory history_;
  std::vector<int32_t> before_;
  std::vector<UnitWaits> waits_;
  std::vector<Clock> over_;  // units known to have ended when the unit has ended
  // By unit: the last lane that waits for it, or kNobody.
  std::vector<int32_t> asked_by_;
  // By unit of a queue: the latest unit of the calling thread that must come before it; -1: none.
  std::vector<int32_t> after_host_;
  Segments out_;
};

}  // namespace

Segments FormSegments(const Schedule& schedule, const MemoryPlan& memory, const BoundSteps& bound,
                      const PlanContext& context) {
  return Segmenter(schedule, memory, bound, context).Run();
}

}  // namespace mge
