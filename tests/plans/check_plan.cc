// SPDX-License-Identifier: Apache-2.0
#include "tests/plans/check_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "tests/plans/operands.h"

namespace mge {
namespace {

// Bytes that a step reads or writes. `memory` is the index of an arena, or -1 - base for the memory of one value.
struct Access {
  int64_t memory, begin, end;
  bool written;
  std::string name;
  bool Overlaps(const Access& other) const { return memory == other.memory && begin < other.end && other.begin < end; }
};

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan), end_(plan.units.size()) {
    while (end_ > 0 && plan.units[end_ - 1].kernel == "copy") --end_;
  }

  std::vector<std::string> Run() {
    CheckBuffers();
    for (size_t i = 0; i < plan_.units.size(); ++i) accesses_.push_back(AccessesOf(i));
    CheckValues();
    OrderSegments();
    CheckOrder();
    if (!plan_.accesses.empty()) CheckOperations();
    return std::move(faults_);
  }

 private:
  template <typename... Args>
  void Fault(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void CheckBuffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const PlacedBuffer& a = plan_.buffers[i];
      if (a.offset < 0 || a.offset + a.bytes > plan_.arenas[static_cast<size_t>(a.arena)].bytes) {
        Fault("the buffer of {} is not within its arena", a.name);
      }
      if (static_cast<uint64_t>(a.offset) % plan_.arenas[static_cast<size_t>(a.arena)].alignment) {
        Fault("the buffer of {} is not aligned", a.name);
      }
      for (size_t k = 0; k < i; ++k) {
        const PlacedBuffer& b = plan_.buffers[k];
        const bool alive = a.first <= b.last && b.first <= a.last;
        const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        if (alive && overlap && a.arena == b.arena) Fault("the buffers of {} and {} overlap", a.name, b.name);
        if (plan_.red_zones && a.arena == b.arena) CheckRedZones(a, b);
      }
    }
  }

  // Red zones are filled before the first step that uses a buffer, in the order of execution, and checked until its last step.
  void CheckRedZones(const PlacedBuffer& a, const PlacedBuffer& b) {
    if (a.bytes == 0 || b.bytes == 0 || a.first_step < 0 || b.first_step < 0) return;
    const bool at_once = a.first_step <= b.last_step && b.first_step <= a.last_step;
    const bool overlap = a.offset - kRedZoneBytes < b.offset + b.bytes + kRedZoneBytes &&
                         b.offset - kRedZoneBytes < a.offset + a.bytes + kRedZoneBytes;
    if (at_once && overlap) Fault("the red zones of {} and {} overlap while both are checked", a.name, b.name);
  }

  // Checks an operand in the memory of the device that runs the unit.
  void CheckAlignment(size_t unit, const UnitOperand& o, const mge_slot& slot) {
    auto check = [&](const Device& device, uint64_t memory_alignment) {
      if (device.name() != plan_.units[unit].device) return;
      const uint64_t alignment = device.BufferAlignment();
      if (memory_alignment % alignment || slot.offset % alignment) Fault("unit {} uses '{}' unaligned", unit, o.name);
    };
    for (const Arena& a : plan_.arenas) {
      if (a.base == slot.base && a.memory_class == MGE_MEMORY_DEVICE) check(*a.device, a.alignment);
    }
    for (const auto& c : plan_.device_constants) {
      if (c->base() == slot.base) check(c->device(), DeviceConstants::AlignmentOn(c->device()));
    }
  }

  // Returns the bytes that a unit uses in arenas and outputs.
  std::vector<Access> AccessesOf(size_t unit) {
    std::vector<Access> out;
    for (const UnitOperand& o : OperandsOf(plan_, unit)) {
      if (!o.place || o.place->kind != Location::Kind::kSlot) continue;
      const mge_slot& slot = o.place->slot;
      CheckAlignment(unit, o, slot);
      auto arena = std::find_if(plan_.arenas.begin(), plan_.arenas.end(),
                                [&](const Arena& a) { return a.base == slot.base || a.host_base == slot.base; });
      if (arena == plan_.arenas.end()) {
        const int64_t memory = -1 - static_cast<int64_t>(slot.base);
        out.push_back({memory, 0, 1, o.written, o.name});
        continue;
      }
      const int64_t index = arena - plan_.arenas.begin(), offset = static_cast<int64_t>(slot.offset);
      const auto now = static_cast<int32_t>(std::min(unit, end_));
      auto buffer = std::find_if(plan_.buffers.begin(), plan_.buffers.end(), [&](const PlacedBuffer& b) {
        return b.arena == index && b.offset == offset && b.first <= now && now <= b.last && b.workspace == o.name.empty();
      });
      if (buffer != plan_.buffers.end()) {
        out.push_back({index, offset, offset + buffer->bytes, o.written, o.name});
      } else {
        Fault("unit {} uses '{}' in an arena where no buffer is alive", unit, o.name);
      }
    }
    return out;
  }

  // Returns the value whose bytes the named value has: a view has those of its input.
  std::string Root(std::string name) const {
    for (auto at = views_.find(name); at != views_.end(); at = views_.find(name)) name = at->second;
    return name;
  }

  // Runs the steps in order, and remembers which value each range holds.
  void CheckValues() {
    std::vector<Access> held;
    for (size_t i = 0; i < plan_.units.size(); ++i) {
      if (plan_.units[i].kind == Unit::Kind::kAlias) {
        const std::vector<UnitOperand> operands = OperandsOf(plan_, i);
        if (!operands[0].place) views_[operands[1].name] = operands[0].name;
      }
      for (const Access& read : accesses_[i]) {
        if (read.written || read.memory < 0) continue;
        auto same = [&](const Access& h) {
          return h.memory == read.memory && h.begin == read.begin && Root(h.name) == Root(read.name);
        };
        if (std::none_of(held.begin(), held.end(), same)) Fault("unit {} reads '{}', which is not there", i, read.name);
      }
      for (const Access& write : accesses_[i]) {
        if (!write.written) continue;
        std::erase_if(held, [&](const Access& h) { return h.Overlaps(write); });
        held.push_back(write);
      }
    }
  }

  // Finds, for each segment, the segments that have ended when it starts.
  void OrderSegments() {
    using Set = std::set<size_t>;
    std::map<std::pair<int32_t, uint64_t>, size_t> signals;  // (queue, value) to segment
    std::map<int32_t, size_t> last;                          // last segment of each queue
    std::vector<Set> over(plan_.segments.size());            // segments that have ended when a segment has ended
    Set known;                                               // by the calling thread
    before_.resize(plan_.segments.size());
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Segment& segment = plan_.segments[s];
      auto wait = [&](const FencePoint& p, Set& by) {
        auto at = signals.find({p.queue, p.value});
        if (at == signals.end()) return Fault("segment {} waits for a signal that nothing has enqueued", s);
        by.insert(over[at->second].begin(), over[at->second].end());
      };
      for (const FencePoint& p : segment.host_waits) wait(p, known);
      Set& before = before_[s] = known;
      if (segment.queue != kCallingThread) {
        if (auto at = last.find(segment.queue); at != last.end())
          before.insert(over[at->second].begin(), over[at->second].end());
        for (const FencePoint& p : segment.waits) wait(p, before);
        last[segment.queue] = s;
      }
      over[s] = before;
      over[s].insert(s);
      if (segment.queue == kCallingThread) known.insert(s);
      if (segment.signal) signals[{segment.queue, segment.signal}] = s;
    }
    for (auto [queue, s] : last) {
      if (!plan_.segments[s].signal) Fault("the last segment of queue {} does not signal", queue);
    }
  }

  void CheckOrder() {
    std::map<size_t, size_t> segment_of;  // by unit
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Segment& segment = plan_.segments[s];
      for (int32_t i = 0; i < segment.step_count; ++i) {
        segment_of[static_cast<size_t>(plan_.steps[static_cast<size_t>(segment.first_step + i)].unit)] = s;
      }
    }
    for (auto [later, s] : segment_of) {
      for (auto [earlier, t] : segment_of) {
        if (earlier >= later || s == t || before_[s].contains(t)) continue;
        CheckApart(earlier, later);
      }
    }
  }

  // Checks that variables order the steps without queues. Those steps may run on several threads.
  void CheckOperations() {
    std::vector<std::set<size_t>> before(plan_.steps.size());  // by step: steps that have ended when it starts
    std::vector<bool> on_queue(plan_.steps.size(), false);
    for (const Segment& segment : plan_.segments) {
      if (segment.queue == kCallingThread) continue;
      std::fill_n(on_queue.begin() + segment.first_step, segment.step_count, true);
    }
    auto have_common = [](const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
      return std::any_of(a.begin(), a.end(), [&](int32_t v) { return std::find(b.begin(), b.end(), v) != b.end(); });
    };
    for (size_t later = 0; later < before.size(); ++later) {
      const StepAccess& l = plan_.accesses[later];
      for (size_t earlier = 0; earlier < later; ++earlier) {
        const StepAccess& e = plan_.accesses[earlier];
        if (!have_common(e.writes, l.writes) && !have_common(e.writes, l.reads) && !have_common(e.reads, l.writes)) continue;
        before[later].insert(earlier);
        before[later].insert(before[earlier].begin(), before[earlier].end());
      }
      for (size_t earlier = 0; earlier < later; ++earlier) {
        if (on_queue[later] || on_queue[earlier] || before[later].contains(earlier)) continue;
        CheckApart(static_cast<size_t>(plan_.steps[earlier].unit), static_cast<size_t>(plan_.steps[later].unit));
      }
    }
  }

  // Reports bytes that one of two units writes and the other one uses.
  void CheckApart(size_t earlier, size_t later) {
    for (const Access& a : accesses_[earlier]) {
      for (const Access& b : accesses_[later]) {
        if ((a.written || b.written) && a.Overlaps(b)) {
          Fault("unit {} ('{}') does not wait for unit {} ('{}')", later, b.name, earlier, a.name);
        }
      }
    }
  }

  const Plan& plan_;
  size_t end_;  // number of units without the final copies of outputs, which have one time, the end
  std::vector<std::string> faults_;
  std::vector<std::vector<Access>> accesses_;  // by unit
  std::map<std::string, std::string> views_;   // view to its input
  std::vector<std::set<size_t>> before_;       // by segment: segments that have ended when it starts
};

}  // namespace

std::vector<std::string> FaultsOf(const Plan& plan) { return Checker(plan).Run(); }

}  // namespace mge
