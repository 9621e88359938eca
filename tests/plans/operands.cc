// SPDX-License-Identifier: Apache-2.0
#include "tests/plans/operands.h"

#include <algorithm>

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

// Returns the places of a unit's inputs, then of its outputs.
std::vector<Location> PlacesOf(const Unit& unit, const void* args) {
  std::vector<Location> out;
  switch (unit.kind) {
    case Unit::Kind::kKernel:
    case Unit::Kind::kReorder: {
      const auto& bound = *static_cast<const plans::BoundOperands*>(args);
      for (uint32_t i = 0; i < bound.inputs + bound.outputs; ++i) out.push_back(At(bound.slots[i]));
      break;
    }
    case Unit::Kind::kReference:
    case Unit::Kind::kHost: {
      const auto& host = *static_cast<const HostStepArgs*>(args);
      for (const auto* operands : {&host.inputs, &host.captures, &host.outputs}) {
        for (const HostOperand& o : *operands) {
          if (o.present) out.push_back(o.location);
        }
      }
      break;
    }
    case Unit::Kind::kAlias:
    case Unit::Kind::kCopy:
      if (unit.queue.empty()) {
        const auto& copy = *static_cast<const CopyStepArgs*>(args);
        out = {At(copy.from), At(copy.to)};
      } else {
        const auto& copy = *static_cast<const QueueCopyArgs*>(args);
        out = {At(copy.from), At(copy.to)};
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
                           [&](const Step& s) { return s.unit == static_cast<int32_t>(unit); });
  if (step == plan.steps.end()) return out;
  const std::vector<Location> places = PlacesOf(u, step->args);
  for (size_t i = 0; i < std::min(places.size(), out.size()); ++i) out[i].place = places[i];
  if (u.workspace_bytes) {
    out.push_back({"", true, At(static_cast<const plans::BoundOperands*>(step->args)->workspace)});
  }
  return out;
}

}  // namespace mge
