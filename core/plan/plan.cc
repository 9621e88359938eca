// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <algorithm>
#include <map>

#include "core/base/duration_text.h"
#include "core/base/status.h"
#include "core/plan/bodies.h"
#include "core/plan/communicator.h"
#include "core/plan/host_step.h"
#include "core/plan/memory/state_memory.h"
#include "core/plan/program.h"
#include "core/plugin/unfinished.h"
#include "fmt/format.h"
#include "mge/plugin/attributes.hpp"

namespace mge {
namespace {

std::string Join(const std::vector<std::string>& items, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += between;
    out += items[i];
  }
  return out;
}

// Returns one line per arena and per device with constants, for a plan that uses queues.
std::string MemoryText(const Plan& plan) {
  std::string out;
  for (const Arena& a : plan.arenas) {
    out +=
        fmt::format("arena of {} bytes in {}memory of {} (lower bound {})\n", a.bytes,
                    a.memory_class == MGE_MEMORY_PINNED ? "page-locked host " : "", a.device->name(), a.lower_bound_bytes);
  }
  std::map<std::string, int64_t> uploaded;
  for (const auto& c : plan.device_constants) uploaded[c->device().name()] += c->bytes();
  for (const auto& [device, bytes] : uploaded) out += fmt::format("constants of {} bytes uploaded to {}\n", bytes, device);
  return out;
}

}  // namespace

Plan::Plan() = default;

Plan::~Plan() {
  if (attachment && !attachment->Close()) {
    for (const PlanQueue& queue : queues) queue.device->Abandon();
    Leak(std::move(kernels), std::move(args), std::move(device_constants), std::move(communicators),
         std::move(state_memory));
  }
  attachment.reset();
}

std::string QueueName(const PlanQueue& queue) {
  static constexpr std::string_view kKinds[] = {"compute", "copy in", "copy out", "communication"};
  const std::string_view kind = kKinds[queue.kind];
  return queue.index ? fmt::format("{} {}", kind, queue.index) : std::string(kind);
}

std::string_view UnitKindName(Unit::Kind kind) {
  switch (kind) {
    case Unit::Kind::kKernel: return "kernel";
    case Unit::Kind::kReference: return "REFERENCE";
    case Unit::Kind::kHost: return "host";
    case Unit::Kind::kAlias: return "view";
    case Unit::Kind::kReorder: return "reorder";
    case Unit::Kind::kCopy: return "copy";
    case Unit::Kind::kCollective: return "collective";
  }
  return "?";
}

std::string UnitLabel(const Unit& unit) {
  if (!unit.nodes.empty()) return unit.nodes.front().empty() ? unit.main_op : unit.nodes.front();
  const std::string kind(UnitKindName(unit.kind));
  return unit.inputs.empty() ? kind : fmt::format("{} of {}", kind, unit.inputs[0].substr(0, unit.inputs[0].find(" : ")));
}

int64_t IdleBytes(const Plan& plan) {
  int64_t bytes = plan.attachment ? plan.attachment->IdleBytes() : 0;
  for (const PlanBody& body : plan.bodies) bytes += body.program->IdleBytes();
  return bytes;
}

void GiveUpIdle(const Plan& plan) {
  if (plan.attachment) plan.attachment->GiveUpIdle();
  for (const PlanBody& body : plan.bodies) {
    for (const auto& nested : body.program->plans()) GiveUpIdle(*nested);
  }
}

int64_t PlannedPeakBytes(const Plan& plan) {
  return plan.report.arena_bytes + plan.report.packed_bytes + plan.report.uploaded_bytes;
}

namespace {

// Adds the devices of a plan's kernels and reference steps, and those of the most recent plan of each body.
void AddWorkers(const Plan& plan, std::vector<std::string>& names) {
  for (const Unit& u : plan.units) {
    const bool works =
        u.kind == Unit::Kind::kKernel || u.kind == Unit::Kind::kReference || u.kind == Unit::Kind::kCollective;
    if (works && std::find(names.begin(), names.end(), u.device) == names.end()) names.push_back(u.device);
  }
  for (const PlanBody& body : plan.bodies) {
    if (std::shared_ptr<const Plan> recent = body.program->recent()) AddWorkers(*recent, names);
  }
}

}  // namespace

std::string DeviceText(const Plan& plan) {
  std::vector<std::string> names;
  AddWorkers(plan, names);
  // The plan has only host steps, or no steps.
  if (names.empty() && !plan.units.empty()) names.push_back(plan.units.front().device);
  return names.empty() ? plan.device->name() : Join(names, "+");
}

mge_plan_summary SummaryOf(const Plan& plan, const Arena& arena) {
  mge_plan_summary summary = {};
  summary.struct_size = sizeof(summary);
  summary.concurrency = 1;
  auto same = [&](const Arena& other) { return other.device == arena.device && other.memory_class == arena.memory_class; };
  for (const Arena& other : plan.arenas) {
    if (same(other)) summary.arena_bytes += static_cast<uint64_t>(other.bytes);
  }
  for (const auto& constants : plan.device_constants) {
    if (&constants->device() == arena.device) summary.constant_bytes += static_cast<uint64_t>(constants->bytes());
  }
  for (const PlacedBuffer& b : plan.buffers) {
    if (!b.workspace || !same(plan.arenas[static_cast<size_t>(b.arena)])) continue;
    summary.workspace_bytes = std::max(summary.workspace_bytes, static_cast<uint64_t>(b.bytes));
  }
  return summary;
}

namespace {

// A writer of the text of a plan. The plans of its bodies have more indentation.
class PlanWriter {
 public:
  PlanWriter(bool why, const StepTimes& times) : why_(why), times_(times) {}
  void Write(const Plan& plan);
  std::string Take() { return std::move(out_); }

 private:
  void Line(const std::string& text) { out_ += indent_ + EscapeControl(text) + "\n"; }
  void WriteHead(const Plan& plan);
  void WriteUnit(const Plan& plan, size_t index);
  void WriteWhy(const Unit& unit);
  void WriteTime(const Plan& plan, int32_t unit);
  void WriteBody(const BodyPlans& body);
  void WriteSegments(const Plan& plan);

  const bool why_;
  const StepTimes& times_;
  std::string indent_, out_;
};

void PlanWriter::WriteHead(const Plan& plan) {
  const size_t views = plan.units.size() - plan.steps.size();
  Line(
      fmt::format("device {}: {} steps{}, arena {} bytes (lower bound {}), packed constants {} bytes, constants in place {} "
                  "bytes",
                  DeviceText(plan), plan.steps.size(), views ? fmt::format(" and {} views (no memory, no time)", views) : "",
                  plan.report.arena_bytes, plan.report.lower_bound_bytes,
                  plan.report.packed_bytes + plan.report.uploaded_packed_bytes, plan.report.constant_bytes));
  if (!plan.report.ranges.empty()) {
    Line(fmt::format("for a range of sizes, {}; sizes below are the largest ones", plan.report.ranges));
  }
  if (why_ && !plan.report.why_own.empty())
    Line(fmt::format("for these sizes only{} {}", plan.report.ranges.empty() ? ":" : "", plan.report.why_own));
  if (!plan.queues.empty()) out_ += MemoryText(plan);
  for (const std::string& text : plan.report.kernel_rules) {
    if (why_) Line(text);
  }
}

void PlanWriter::WriteUnit(const Plan& plan, size_t index) {
  const Unit& u = plan.units[index];
  std::string what = u.fusion.empty() ? Join(u.ops, "+") : fmt::format("{}({})", u.fusion, Join(u.ops, "+"));
  if (what.empty()) what = UnitKindName(u.kind);
  std::string head = fmt::format("{:4} {:<9} {:<28} {}", index, UnitKindName(u.kind), what, u.kernel);
  if (!u.in_place.empty()) head += fmt::format("  in place: {}", u.in_place);
  if (!plan.queues.empty()) head += fmt::format("  on {}{}{}", u.device, u.queue.empty() ? "" : ", ", u.queue);
  Line(head);
  Line(fmt::format("       {} -> {}", Join(u.inputs, ", "), Join(u.outputs, ", ")));
  if (why_) WriteWhy(u);
  if (times_) WriteTime(plan, static_cast<int32_t>(index));
}

void PlanWriter::WriteWhy(const Unit& u) {
  if (!u.nodes.empty()) Line(fmt::format("       nodes:   {}", Join(u.nodes, ", ")));
  if (!u.output_ids.empty()) {
    Line(fmt::format("       values:  {} -> {}", fmt::join(u.input_ids, ", "), fmt::join(u.output_ids, ", ")));
  }
  std::string reason = fmt::format("       on {}: {}", u.device, u.reason);
  if (!u.placement.empty()) reason += fmt::format("; there because {}", u.placement);
  if (u.cost_us >= 0) reason += fmt::format("; estimated {}", DurationText(u.cost_us));
  if (u.measured_us >= 0) reason += fmt::format("; measured {}", DurationText(u.measured_us));
  if (u.workspace_bytes) reason += fmt::format("; workspace {} bytes", u.workspace_bytes);
  if (u.attributes) reason += fmt::format("; {}", AttributeText(u.attributes));
  Line(reason);
  for (const Alternative& a : u.alternatives) Line(fmt::format("       not {}: {}", a.id, a.reason));
}

void PlanWriter::WriteTime(const Plan& plan, int32_t unit) {
  const double estimated = plan.units[static_cast<size_t>(unit)].cost_us;
  std::optional<StepTime> time = times_(plan, unit);
  if (!time) return;
  std::string text = fmt::format("       time: {} in the run", DurationText(time->median_us));
  if (estimated >= 0) text += fmt::format(", estimated {}", DurationText(estimated));
  text += fmt::format("; {:.1f} % of it", time->share * 100);
  if (time->calls != 1) text += fmt::format(", {:g} calls", time->calls);
  if (time->off) {
    const bool more = time->median_us > estimated;
    text += fmt::format("  <-- OFF: {:.1f} times {} than estimated",
                        more ? time->median_us / estimated : estimated / time->median_us, more ? "longer" : "shorter");
  }
  Line(text);
}

void PlanWriter::WriteBody(const BodyPlans& body) {
  for (const auto& nested : body.plans) {
    Line(fmt::format("     {}:", body.path));
    indent_ += "       ";
    Write(*nested);
    indent_.resize(indent_.size() - 7);
  }
  if (body.plans.empty()) {
    Line(fmt::format("     {}, {} nodes: {}", body.path, body.body->program->graph().node_count(), body.reason));
  }
}

// Writes the segments of a plan with queues: "segment on acc0, compute: steps 2..4, captured; cut here because ...".
void PlanWriter::WriteSegments(const Plan& plan) {
  for (const Segment& s : plan.segments) {
    if (s.queue == kCallingThread) continue;
    std::vector<std::string> steps;
    for (int32_t i = s.first_step; i < s.first_step + s.step_count; ++i) {
      steps.push_back(std::to_string(plan.steps[static_cast<size_t>(i)].unit));
    }
    std::string text =
        fmt::format("segment on {}, {}: {} {}{}", s.device->name(), QueueName(plan.queues[static_cast<size_t>(s.queue)]),
                    steps.size() == 1 ? "step" : "steps", Join(steps, " "), s.capture_safe ? ", capture-safe" : "");
    if (!s.cut.empty()) text += fmt::format("; begins here because {}", s.cut);
    Line(text);
  }
}

void PlanWriter::Write(const Plan& plan) {
  WriteHead(plan);
  const std::vector<BodyPlans> bodies = PlansOfBodies(plan, /*make=*/true);
  auto body = bodies.begin();
  for (size_t i = 0; i < plan.units.size(); ++i) {
    WriteUnit(plan, i);
    for (; body != bodies.end() && body->body->unit == static_cast<int32_t>(i); ++body) WriteBody(*body);
  }
  for (; body != bodies.end(); ++body) WriteBody(*body);
  if (!why_) return;
  WriteSegments(plan);
  for (const Alternative& a : plan.report.dropped_claims) Line(fmt::format("dropped fusion {}: {}", a.id, a.reason));
  for (const std::string& text : plan.report.pass_log) Line(fmt::format("pass {}", text));
  for (const PlacedBuffer& b : plan.buffers) {
    Line(fmt::format("buffer {:>10} +{:<10} steps {}..{}  {}", b.offset, b.bytes, b.first, b.last, b.name));
  }
}

}  // namespace

std::string PlanText(const Plan& plan, bool why, const StepTimes& times) {
  PlanWriter writer(why, times);
  writer.Write(plan);
  return writer.Take();
}

}  // namespace mge
