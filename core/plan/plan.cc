// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.h"

#include <algorithm>
#include <map>

#include "core/base/status.h"
#include "core/plan/host_step.h"
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

// Where a plan's memory lies if not all of it is the host's.
std::string MemoryText(const Plan& plan) {
  std::string out;
  for (const Arena& a : plan.arenas) {
    out += fmt::format("arena of {} bytes in {}memory of {} (lower bound {})\n", a.bytes,
                       a.memory_class == MGE_MEMORY_PINNED ? "page-locked host " : "", a.device->name(),
                       a.lower_bound_bytes);
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
    Lose(std::move(kernels), std::move(args), std::move(device_constants));
  }
  attachment.reset();
}

std::string_view UnitKindName(Unit::Kind kind) {
  switch (kind) {
    case Unit::Kind::kKernel: return "kernel";
    case Unit::Kind::kReference: return "REFERENCE";
    case Unit::Kind::kHost: return "host";
    case Unit::Kind::kAlias: return "view";
    case Unit::Kind::kReorder: return "reorder";
    case Unit::Kind::kCopy: return "copy";
  }
  return "?";
}

int64_t PlannedPeakBytes(const Plan& plan) { return plan.arena_bytes + plan.packed_bytes + plan.uploaded_bytes; }

std::string DeviceText(const Plan& plan) {
  std::vector<std::string> names;
  for (const Unit& u : plan.units) {
    if (u.kind == Unit::Kind::kKernel && std::find(names.begin(), names.end(), u.device) == names.end()) {
      names.push_back(u.device);
    }
  }
  return names.empty() ? plan.device->name() : Join(names, "+");
}

mge_plan_summary SummaryOf(const Plan& plan, const Arena& arena) {
  mge_plan_summary summary = {};
  summary.struct_size = sizeof(summary);
  summary.concurrency = 1;
  summary.arena_bytes = static_cast<uint64_t>(arena.bytes);
  for (const auto& constants : plan.device_constants) {
    if (&constants->device() == arena.device) summary.constant_bytes += static_cast<uint64_t>(constants->bytes());
  }
  for (const PlacedBuffer& b : plan.buffers) {
    if (!b.workspace || &plan.arenas[static_cast<size_t>(b.arena)] != &arena) continue;
    summary.workspace_bytes = std::max(summary.workspace_bytes, static_cast<uint64_t>(b.bytes));
  }
  return summary;
}

std::string PlanText(const Plan& plan, bool why) {
  std::string out;
  auto line = [&](const std::string& text) { out += EscapeControl(text) + "\n"; };
  const size_t views = plan.units.size() - plan.steps.size();
  line(fmt::format("device {}: {} steps{}, arena {} bytes (lower bound {}), packed constants {} bytes, constants in place {} "
                   "bytes",
                   DeviceText(plan), plan.steps.size(), views ? fmt::format(" and {} views, which take none", views) : "",
                   plan.arena_bytes, plan.lower_bound_bytes, plan.packed_bytes, plan.constant_bytes));
  if (!plan.queues.empty()) out += MemoryText(plan);
  for (const std::string& text : plan.guard) {
    if (why) line(text);
  }
  for (size_t i = 0; i < plan.units.size(); ++i) {
    const Unit& u = plan.units[i];
    std::string what = u.fusion.empty() ? Join(u.ops, "+") : fmt::format("{}({})", u.fusion, Join(u.ops, "+"));
    if (what.empty()) what = UnitKindName(u.kind);
    std::string head = fmt::format("{:4} {:<9} {:<28} {}", i, UnitKindName(u.kind), what, u.kernel);
    if (!u.in_place.empty()) head += fmt::format("  in place: {}", u.in_place);
    if (!plan.queues.empty()) head += fmt::format("  on {}{}{}", u.device, u.queue.empty() ? "" : ", ", u.queue);
    line(head);
    line(fmt::format("       {} -> {}", Join(u.inputs, ", "), Join(u.outputs, ", ")));
    if (!why) continue;
    if (!u.nodes.empty()) line(fmt::format("       nodes:   {}", Join(u.nodes, ", ")));
    std::string reason = fmt::format("       on {}: {}", u.device, u.reason);
    if (!u.placement.empty()) reason += fmt::format("; there because {}", u.placement);
    if (u.cost_us >= 0) reason += fmt::format("; estimated {:.2f} us", u.cost_us);
    if (u.measured_us >= 0) reason += fmt::format("; measured {:.2f} us", u.measured_us);
    if (u.workspace_bytes) reason += fmt::format("; workspace {} bytes", u.workspace_bytes);
    if (u.attributes) reason += fmt::format("; {}", AttributeText(u.attributes));
    line(reason);
    for (const Alternative& a : u.alternatives) line(fmt::format("       not {}: {}", a.id, a.reason));
  }
  if (plan.continuation) {
    line(fmt::format("then {} nodes whose shapes are known only in the run; they are planned there",
                     plan.continuation->program->graph().node_count()));
  }
  if (!why) return out;
  for (const Alternative& a : plan.dropped_claims) line(fmt::format("dropped fusion {}: {}", a.id, a.reason));
  for (const std::string& text : plan.pass_log) line(fmt::format("pass {}", text));
  for (const PlacedBuffer& b : plan.buffers) {
    line(fmt::format("buffer {:>10} +{:<10} steps {}..{}  {}", b.offset, b.bytes, b.first, b.last, b.name));
  }
  return out;
}

}  // namespace mge
