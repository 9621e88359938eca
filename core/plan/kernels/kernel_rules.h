// SPDX-License-Identifier: Apache-2.0
// The rules by which the kernels of a session are chosen, from the settings select.*.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/env/snapshot.h"
#include "core/graph/graph.h"
#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

// The choice of the kernels of convolutions on GPUs.
struct GpuConvolutions {
  int32_t mode = MGE_SELECT_HEURISTIC;    // MGE_SELECT_...
  uint64_t workspace_limit = UINT64_MAX;  // bytes per kernel
};

// Immutable while programs use it.
struct KernelRules {
  std::optional<int32_t> mode = {};  // MGE_SELECT_..., set by the user; nullopt: the mode of each device's backend
  uint64_t require = 0;              // attributes that every chosen kernel must have
  uint64_t forbid = 0;               // attributes that no chosen kernel may have
  bool only_deterministic = false;   // an operator whose only kernels are not deterministic is an error
  bool may_measure = true;           // false: uses times of the tuning cache and measures none
  bool only_replayed = false;        // planning fails if the selection file has no entry for a problem
  std::optional<GpuConvolutions> gpu_convolutions = {};  // nullopt: they are chosen like other kernels
  std::vector<std::string> texts = {};                   // the rules as text, with the settings they come from

  // Returns the rules for these devices. `replay` tells whether there is a selection file (select.replay). Fails with
  // kBadSetting if the strategy contradicts itself.
  static absl::StatusOr<KernelRules> Of(const Snapshot& settings, std::span<Device* const> devices, bool replay);

  // Returns true if one of the nodes is a convolution whose kernels `gpu_convolutions` chooses on this device.
  bool Tunes(const Device& device, const Graph& graph, std::span<const NodeId> nodes) const;

  // Returns the mode (MGE_SELECT_...) by which kernels of the device are chosen. `tuned` is the result of Tunes().
  int32_t ModeOn(const Device& device, bool tuned = false) const;

  // Returns the constraints for kernels of the device: required and forbidden attributes, and the limit of workspaces.
  mge_constraints ConstraintsOn(const Device& device, bool tuned = false) const;
};

}  // namespace mge
