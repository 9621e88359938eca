// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/kernel_rules.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/kernel/operator_query.h"
#include "core/plan/memory/memory_capacity.h"
#include "fmt/format.h"
#include "mge/plugin/attributes.hpp"

namespace mge {
namespace {

// Sets the choice of GPU convolutions. A reproducible strategy stays, since it forbids times.
void SetConvolutions(const Snapshot& settings, KernelRules& out) {
  const ConvAutotune autotune = settings.Get<kSelectConvAutotune>();
  GpuConvolutions chosen;
  if (autotune != ConvAutotune::kOff) chosen.mode = MGE_SELECT_PROFILE;
  if (autotune != ConvAutotune::kFastest) {
    chosen.workspace_limit = static_cast<uint64_t>(settings.Get<kSelectWorkspaceBytes>().count);
  }
  if (out.mode == MGE_SELECT_REPRODUCIBLE) chosen.mode = MGE_SELECT_REPRODUCIBLE;
  out.gpu_convolutions = chosen;
  out.texts.push_back(fmt::format(
      "convolutions on GPUs are chosen by {}{} ({}: {})",
      chosen.mode == MGE_SELECT_PROFILE     ? "time"
      : chosen.mode == MGE_SELECT_HEURISTIC ? "estimate"
                                            : "the reproducible strategy, which forbids times",
      chosen.workspace_limit == UINT64_MAX ? "" : fmt::format(", workspace up to {} bytes", chosen.workspace_limit),
      kSelectConvAutotune.key, settings.OriginOf<kSelectConvAutotune>().Describe()));
}

// Sets the mode that the user has chosen, if any.
absl::Status SetMode(const Snapshot& settings, std::span<Device* const> devices, bool replay, KernelRules& out) {
  const Flags<Strategy> strategy = settings.Get<kSelectStrategy>();
  const bool profile = strategy.Has(Strategy::kProfile);
  if (strategy.Has(Strategy::kReproducible)) {
    if (profile && !replay) {
      return Fail(errors::kBadSetting, "select.strategy = profile_reproducible needs a selection file",
                  {.what = "the strategy REPRODUCIBLE does not permit a choice by time",
                   .where = settings.OriginOf<kSelectStrategy>().Describe(),
                   .fix = "set select.replay to a file of select.record, or set select.strategy = reproducible"});
    }
    out.only_replayed = profile;
    out.mode = MGE_SELECT_REPRODUCIBLE;
  } else if (profile) {
    out.mode = MGE_SELECT_PROFILE;
    // PROFILE and HEURISTIC together: use stored times if there are some, else the heuristic. Measure none.
    out.may_measure = !strategy.Has(Strategy::kHeuristic);
  } else if (strategy.Has(Strategy::kHeuristic) && settings.IsSet<kSelectStrategy>()) {
    out.mode = MGE_SELECT_HEURISTIC;
  } else {
    for (const Device* device : devices) {
      const int32_t mode = out.ModeOn(*device);
      if (mode == MGE_SELECT_HEURISTIC) continue;
      out.texts.push_back(
          fmt::format("kernels of {} are chosen by {}: its backend's default, as select.strategy names no mode",
                      device->name(), mode == MGE_SELECT_PROFILE ? "profile" : "reproducible"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelRules> KernelRules::Of(const Snapshot& settings, std::span<Device* const> devices, bool replay) {
  KernelRules out;
  auto say = [&](std::string_view what, uint64_t attributes, std::string_view key, const Origin& origin) {
    out.texts.push_back(fmt::format("{} of kernels: {} ({}: {})", what, AttributeText(attributes), key, origin.Describe()));
  };
  auto require = [&](uint64_t attributes, std::string_view key, const Origin& origin) {
    out.require |= attributes;
    say("required", attributes, key, origin);
  };
  auto forbid = [&](uint64_t attributes, std::string_view key, const Origin& origin) {
    out.forbid |= attributes;
    say("not allowed", attributes, key, origin);
  };
  MGE_RETURN_IF_ERROR(SetMode(settings, devices, replay, out));
  const Origin& strategy = settings.OriginOf<kSelectStrategy>();
  if (out.mode == MGE_SELECT_REPRODUCIBLE) require(MGE_KERNEL_DETERMINISTIC, kSelectStrategy.key, strategy);
  if (settings.IsSet<kSelectConvAutotune>()) SetConvolutions(settings, out);
  if (settings.Get<kSelectDeterministic>()) {
    out.only_deterministic = true;
    require(MGE_KERNEL_DETERMINISTIC, kSelectDeterministic.key, settings.OriginOf<kSelectDeterministic>());
  }
  if (settings.Get<kSelectStrategy>().Has(Strategy::kOptimized)) forbid(MGE_KERNEL_REFERENCE, kSelectStrategy.key, strategy);
  if (!settings.Get<kSelectTensorCore>()) {
    forbid(MGE_KERNEL_TENSOR_CORE | MGE_KERNEL_REDUCED_PRECISION, kSelectTensorCore.key,
           settings.OriginOf<kSelectTensorCore>());
  } else if (!settings.Get<kSelectTensorCoreConversion>()) {
    forbid(MGE_KERNEL_REDUCED_PRECISION, kSelectTensorCoreConversion.key, settings.OriginOf<kSelectTensorCoreConversion>());
  }
  return out;
}

bool KernelRules::Tunes(const Device& device, const Graph& graph, std::span<const NodeId> nodes) const {
  return gpu_convolutions && device.Is(MGE_DEVICE_GPU) &&
         std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).def->Is(kConvolution); });
}

int32_t KernelRules::ModeOn(const Device& device, bool tuned) const {
  if (tuned) return gpu_convolutions->mode;
  const mge_strategy_api* own = device.strategy_api();
  return mode.value_or(own ? own->mode : MGE_SELECT_HEURISTIC);
}

mge_constraints KernelRules::ConstraintsOn(const Device& device, bool tuned) const {
  const bool repeats = ModeOn(device, tuned) == MGE_SELECT_REPRODUCIBLE;
  uint64_t workspace = tuned ? gpu_convolutions->workspace_limit : UINT64_MAX;
  if (device.description().max_allocation) workspace = std::min(workspace, static_cast<uint64_t>(LargestPiece(device)));
  return {sizeof(mge_constraints), 0, require | (repeats ? MGE_KERNEL_DETERMINISTIC : 0), forbid, workspace};
}

}  // namespace mge
