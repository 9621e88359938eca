// SPDX-License-Identifier: Apache-2.0
#include "tests/plans/print_plan.h"

#include <algorithm>
#include <vector>

#include "core/plan/bodies.h"
#include "core/plan/program.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "tests/plans/operands.h"

namespace mge {
namespace {

const std::vector<std::string> kUsual = {"units", "buffers", "arenas", "constants", "claims"};

// A writer of the sections of one plan.
class Printer {
 public:
  Printer(const Plan& plan, std::string indent) : plan_(plan), indent_(std::move(indent)), bases_(plan.base_count) {
    NameBases();
  }

  std::string Print(std::span<const std::string> shown) {
    for (const std::string& section : shown) {
      if (section == "units") Section(section, &Printer::Units);
      if (section == "why") Section(section, &Printer::Why);
      if (section == "work") Section(section, &Printer::Work);
      if (section == "segments") Section(section, &Printer::Segments);
      if (section == "buffers") Section(section, &Printer::Buffers);
      if (section == "arenas") Section(section, &Printer::Arenas);
      if (section == "constants") Section(section, &Printer::Constants);
      if (section == "memory") Section(section, &Printer::Memory);
      if (section == "claims") Section(section, &Printer::Claims);
    }
    for (const BodyPlans& body : PlansOfBodies(plan_, /*make=*/true)) {
      Line(body.path + (body.plans.empty() ? ": " + body.reason : ":"));
      for (const auto& nested : body.plans) out_ += Printer(*nested, indent_ + "  ").Print(shown);
    }
    return std::move(out_);
  }

 private:
  void Line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out_ += indent_ + text + "\n";
  }

  // Writes a section. Writes nothing if it has no line.
  void Section(const std::string& name, void (Printer::*write)()) {
    std::string before = std::exchange(out_, {});
    indent_ += "  ";
    (this->*write)();
    indent_.resize(indent_.size() - 2);
    std::string lines = std::exchange(out_, std::move(before));
    if (lines.empty()) return;
    Line(name + ":");
    out_ += lines;
  }

  // ---- places

  std::string ArenaName(size_t a) const {
    const Arena& arena = plan_.arenas[a];
    if (arena.memory_class == MGE_MEMORY_PINNED) return "pinned";
    const auto first = plan_.arenas.begin();
    const auto part = std::count_if(first, first + static_cast<int64_t>(a), [&](const Arena& other) {
      return other.device == arena.device && other.memory_class == arena.memory_class;
    });
    return part ? fmt::format("{}/{}", arena.device->name(), part + 1) : arena.device->name();
  }

  // Returns "const", or "const 1" if there are several. One that a kernel packed is "packed".
  std::string NameOf(const ConstantBase& c) const {
    return fmt::format("{}{}", c.packed ? "packed" : "const", Number(&c - plan_.constants.data(), plan_.constants.size()));
  }
  std::string NameOf(const DeviceConstants& c) const {
    auto at = std::find_if(plan_.device_constants.begin(), plan_.device_constants.end(),
                           [&](const auto& other) { return other.get() == &c; });
    return fmt::format("{} const{}", c.device().name(),
                       Number(at - plan_.device_constants.begin(), plan_.device_constants.size()));
  }
  static std::string Number(int64_t number, size_t count) { return count > 1 ? fmt::format(" {}", number) : ""; }

  void NameBases() {
    for (const BoundValue& v : plan_.inputs) {
      if (v.location.kind == Location::Kind::kSlot) bases_[v.location.slot.base] = bases_[v.queue_base] = "input";
    }
    for (size_t i = 0; i < plan_.outputs.size(); ++i) {
      const Location& at = plan_.outputs[i].location;
      if (at.kind != Location::Kind::kSlot) continue;
      bases_[at.slot.base] = bases_[plan_.outputs[i].queue_base] =
          "output" + Number(static_cast<int64_t>(i), plan_.outputs.size());
    }
    for (const StateBase& s : plan_.state_values) bases_[s.base] = "state";
    for (const ConstantBase& c : plan_.constants) bases_[c.base] = NameOf(c);
    for (const auto& c : plan_.device_constants) bases_[c->base()] = NameOf(*c) + (c->single() ? "" : "+");
    for (size_t a = 0; a < plan_.arenas.size(); ++a) {
      bases_[plan_.arenas[a].base] = bases_[plan_.arenas[a].host_base] = ArenaName(a) + "+";
    }
  }

  std::string PlaceOf(const mge_slot& slot) const {
    const std::string& base = bases_[slot.base];
    return base.ends_with('+') ? fmt::format("{}{}", base, slot.offset) : base;
  }
  std::string PlaceOf(const Location& location) const {
    switch (location.kind) {
      case Location::Kind::kSlot: return PlaceOf(location.slot);
      case Location::Kind::kDynamic: return fmt::format("dynamic {}", location.index);
      case Location::Kind::kContinuation: return fmt::format("continuation {}", location.index);
    }
    return "?";
  }

  // ---- units

  static std::string KernelOf(const Unit& u) {
    switch (u.kind) {
      case Unit::Kind::kReference: return "REFERENCE " + u.main_op;
      case Unit::Kind::kHost: return "host " + u.main_op;
      case Unit::Kind::kAlias: return "view " + u.main_op;
      default: return u.kernel;
    }
  }

  void Units() {
    for (size_t i = 0; i < plan_.units.size(); ++i) {
      const Unit& u = plan_.units[i];
      std::vector<std::string> in, out;
      std::string workspace;
      for (const UnitOperand& o : OperandsOf(plan_, i)) {
        const std::string place = o.place ? fmt::format("[{}]", PlaceOf(*o.place)) : "";
        if (o.name.empty()) {
          workspace = fmt::format("  workspace{} {} bytes", place, u.workspace_bytes);
        } else {
          (o.written ? out : in).push_back(o.name + place);
        }
      }
      std::string line =
          fmt::format("{:<2} {:<13} {:<14} {} -> {}", i, u.queue.empty() ? u.device : u.device + " " + u.queue, KernelOf(u),
                      fmt::join(in, ", "), fmt::join(out, ", "));
      if (!u.in_place.empty()) line += fmt::format("  in place: {}", u.in_place);
      line += workspace;
      if (!u.fusion.empty()) line += fmt::format("  {} of {}", u.fusion, fmt::join(u.ops, "+"));
      Line(line);
    }
    for (const BoundValue& v : plan_.outputs) {
      if (v.location.kind != Location::Kind::kSlot) Line(fmt::format("output {}[{}]", v.name, PlaceOf(v.location)));
    }
  }

  void Why() {
    for (const std::string& text : plan_.report.kernel_rules) Line(text);
    for (size_t i = 0; i < plan_.units.size(); ++i) {
      const Unit& u = plan_.units[i];
      std::string line = fmt::format("{:<2} {} on {}: {}", i, KernelOf(u), u.device, u.reason);
      if (!u.placement.empty()) line += "; there because " + u.placement;
      if (u.cost_us >= 0) line += fmt::format("; estimated {:g} us", u.cost_us);
      Line(line);
      for (const Alternative& a : u.alternatives) Line(fmt::format("   not {}: {}", a.id, a.reason));
    }
  }

  void Work() {
    for (size_t i = 0; i < plan_.units.size(); ++i) {
      const Unit& u = plan_.units[i];
      Line(fmt::format("{:<2} {}: {:g} operations, {:g} bytes", i, KernelOf(u), u.flops, u.bytes));
    }
  }

  // ---- queues

  std::string NameOfQueue(int32_t queue) const {
    if (queue == kCallingThread) return "calling thread";
    const PlanQueue& q = plan_.queues[static_cast<size_t>(queue)];
    return fmt::format("{} {}", q.device->name(), QueueName(q));
  }

  void Segments() {
    for (const Segment& s : plan_.segments) {
      std::string line = NameOfQueue(s.queue) + ":";
      const Step* step = plan_.steps.data() + s.first_step;
      const int32_t first = step->unit, last = step[s.step_count - 1].unit;
      if (first == last) {
        line += fmt::format(" unit {}", first);
      } else if (last - first + 1 == s.step_count) {
        line += fmt::format(" units {}..{}", first, last);
      } else {
        line += " units";
        for (int32_t i = 0; i < s.step_count; ++i) line += fmt::format("{}{}", i ? ", " : " ", step[i].unit);
      }
      auto waits = [&](const std::vector<FencePoint>& points, std::string_view who) {
        for (const FencePoint& p : points) line += fmt::format("; {} for {} = {}", who, NameOfQueue(p.queue), p.value);
      };
      waits(s.host_waits, "calling thread waits");
      waits(s.waits, "queue waits");
      if (s.signal) line += fmt::format("; signals {}", s.signal);
      if (s.capture_safe) line += "; capture-safe";
      if (!s.cut.empty()) line += "; cut because " + s.cut;
      Line(line);
    }
  }

  // ---- memory

  void Buffers() {
    for (const PlacedBuffer& b : plan_.buffers) {
      Line(fmt::format("{}+{}: {}, {} bytes, alive in units {}..{}", ArenaName(static_cast<size_t>(b.arena)), b.offset,
                       b.name, b.bytes, b.first, b.last));
    }
  }

  void Arenas() {
    for (size_t a = 0; a < plan_.arenas.size(); ++a) {
      const Arena& arena = plan_.arenas[a];
      if (arena.bytes == 0) continue;
      const std::string by = arena.match_range ? fmt::format(", shared with match range {}", *arena.match_range) : "";
      Line(fmt::format("{}: {} bytes, lower bound {}{}", ArenaName(a), arena.bytes, arena.lower_bound_bytes, by));
    }
  }

  void Constants() {
    for (const ConstantBase& c : plan_.constants) {
      Line(fmt::format("{}: {} bytes in host memory", NameOf(c), c.tensor.bytes()));
    }
    for (const auto& c : plan_.device_constants) {
      Line(fmt::format("{}: {} bytes uploaded{}", NameOf(*c), c->bytes(),
                       c->single() ? ", one constant that plans share" : ""));
    }
    for (const DynamicConstant& c : plan_.dynamic_constants) {
      Line(fmt::format("dynamic {}: {} elements", c.index, c.tensor.elements()));
    }
  }

  void Memory() {
    for (const MemoryNeed& n : plan_.needs) {
      Line(fmt::format("{}: arena {}, constants {}, outputs {}; in use {}; largest: {}", n.device->name(), n.arena,
                       n.constants, n.outputs, n.in_use, n.largest));
    }
  }

  void Claims() {
    for (const Alternative& a : plan_.report.dropped_claims) Line(fmt::format("not {}: {}", a.id, a.reason));
  }

  const Plan& plan_;
  std::string indent_;
  std::vector<std::string> bases_;  // names of the bases; one that ends with '+' is followed by an offset
  std::string out_;
};

}  // namespace

std::string PrintPlan(const Plan& plan, std::span<const std::string> shown) {
  return Printer(plan, "").Print(shown.empty() ? std::span<const std::string>(kUsual) : shown);
}

}  // namespace mge
