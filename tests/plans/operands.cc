// SPDX-License-Identifier: Apache-2.0
#include "tests/plans/operands.h"

#include <algorithm>

#include "core/plan/collective_step.h"
#include "core/plan/host_step.h"
#include "tests/plans/fake/setup.h"

namespace mge {
namespace {

Location At(const mge_slot& slot) { return {.kind = Location::Kind::kSlot, .slot = slot}; }

// Returns the name in "x : float32[4] perm(1,0)", with the layout.
std::string NameOf(const std::string& text) {
  const size_t type = text.find(" : "), layout = text.find("] ", type);
  return text.substr(0, type) + (layout == std::string::npos ? "" : text.substr(layout + 1));
}

// The places of a unit's first inputs, and of its outputs. The target of an update is its last input and has no place of its
// own.
struct Places {
  std::vector<Location> in, out;
};

Places PlacesOf(const Unit& unit, const void* args) {
  Places out;
  switch (unit.kind) {
    case Unit::Kind::kKernel:
    case Unit::Kind::kReorder: {
      const auto& bound = *static_cast<const plans::BoundOperands*>(args);
      for (uint32_t i = 0; i < bound.inputs; ++i) out.in.push_back(At(bound.slots[i]));
      for (uint32_t i = 0; i < bound.outputs; ++i) out.out.push_back(At(bound.slots[bound.inputs + i]));
      break;
    }
    case Unit::Kind::kReference:
    case Unit::Kind::kHost: {
      const auto& host = *static_cast<const HostStepArgs*>(args);
      auto add = [](const std::vector<HostOperand>& operands, std::vector<Location>& places) {
        for (const HostOperand& o : operands) {
          if (o.present) places.push_back(o.location);
        }
      };
      add(host.inputs, out.in);
      add(host.captures, out.in);
      add(host.outputs, out.out);
      break;
    }
    case Unit::Kind::kCollective: {
      const auto& collective = *static_cast<const CollectiveStepArgs*>(args);
      for (uint32_t i = 0; i < collective.operands; ++i) out.in.push_back(At(collective.list()[i].from));
      for (uint32_t i = 0; i < collective.operands; ++i) out.out.push_back(At(collective.list()[i].to));
      break;
    }
    case Unit::Kind::kAlias:
    case Unit::Kind::kCopy:
      if (unit.queue.empty()) {
        const auto& copy = *static_cast<const CopyStepArgs*>(args);
        out = {{At(copy.from)}, {At(copy.to)}};
      } else {
        const auto& copy = *static_cast<const QueueCopyArgs*>(args);
        out = {{At(copy.from)}, {At(copy.to)}};
      }
      break;
  }
  return out;
}

}  // namespace

std::vector<UnitOperand> OperandsOf(const Plan& plan, size_t unit) {
  const Unit& u = plan.units[unit];
  std::vector<UnitOperand> out;
  for (const std::string& text : u.inputs) out.push_back({NameOf(text), false, std::nullopt});
  for (const std::string& text : u.outputs) out.push_back({NameOf(text), true, std::nullopt});
  auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                           [&](const Step& s) { return s.unit == static_cast<int32_t>(unit) && s.fn != RunPackStep; });
  if (step == plan.steps.end()) return out;
  const Places places = PlacesOf(u, step->args);
  for (size_t i = 0; i < std::min(places.in.size(), u.inputs.size()); ++i) out[i].place = places.in[i];
  for (size_t i = 0; i < std::min(places.out.size(), u.outputs.size()); ++i) out[u.inputs.size() + i].place = places.out[i];
  for (const Step& s : plan.steps) {
    if (s.unit != static_cast<int32_t>(unit) || s.fn != RunPackStep) continue;
    const auto& pack = *static_cast<const PackStepArgs*>(s.args);  // the kernel reads the packed form of this operand
    out[pack.input].place = At(pack.from);
  }
  if (u.workspace_bytes) {
    out.push_back({"", true, At(static_cast<const plans::BoundOperands*>(step->args)->workspace)});
  }
  return out;
}

}  // namespace mge
