// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/device_links.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/plugin/abi_call.h"
#include "core/plugin/device_link.h"

namespace mge {
namespace {

constexpr size_t kLongestName = 64;

// Returns the direct link, or nullopt if there is none.
absl::StatusOr<std::optional<mge_link>> LinkBetween(Device& from, Device& to, bool between_gpus) {
  if (&from == &to || !from.queue_api() || !to.queue_api()) return std::nullopt;
  if (!between_gpus && from.Is(MGE_DEVICE_GPU) && to.Is(MGE_DEVICE_GPU)) return std::nullopt;
  mge_link link = {};
  MGE_ASSIGN_OR_RETURN(const bool direct, DirectLink(from, to, link));
  return direct ? std::optional(link) : std::nullopt;
}

}  // namespace

absl::StatusOr<DeviceLinks> LinksOf(std::span<Device* const> devices, bool between_gpus) {
  const size_t n = devices.size();
  DeviceLinks out = {LinkMatrix(n), std::vector<bool>(n * n, false)};
  std::vector<std::optional<double>> speeds(n * n);  // in GB/s; 0: unknown; nullopt: of class 1
  double slowest = 0;
  for (size_t i = 0; i < n * n; ++i) {
    MGE_ASSIGN_OR_RETURN(const std::optional<mge_link> link, LinkBetween(*devices[i / n], *devices[i % n], between_gpus));
    out.direct[i] = link.has_value();
    if (!link || CopyText(link->name, kLongestName) == "PCIe") continue;
    speeds[i] = std::max(link->bandwidth_gb_s, 0.0);
    if (*speeds[i] > 0 && (slowest == 0 || *speeds[i] < slowest)) slowest = *speeds[i];
  }
  auto class_of = [&](size_t from, size_t to) {
    const std::optional<double>& speed = speeds[from * n + to];
    if (!speed) return 1.f;
    return *speed > 0 ? 1 + static_cast<float>(std::round(*speed / slowest)) : 2.f;
  };
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) out.classes.At(i, j) = i == j ? 0 : std::min(class_of(i, j), class_of(j, i));
  }
  return out;
}

}  // namespace mge
