// SPDX-License-Identifier: Apache-2.0
#include "core/engine/red_zones.h"

#include <algorithm>
#include <array>

#include "core/base/errors.h"
#include "core/engine/instance_queues.h"
#include "core/plan/program.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::byte kFill{0xc5};  // a pattern that kernels rarely write

using Guard = std::array<std::byte, kRedZoneBytes + kBufferAlignment>;  // size of the largest red zone

}  // namespace

absl::StatusOr<std::unique_ptr<RedZones>> RedZones::Create(const Plan& plan, std::span<void* const> bases) {
  std::unique_ptr<RedZones> out(new RedZones(plan));
  for (const Arena& arena : plan.arenas) {
    out->queues_.emplace_back();
    if (arena.memory_class == MGE_MEMORY_PINNED || !HasQueues(*arena.device)) continue;
    MGE_ASSIGN_OR_RETURN(out->queues_.back(), SyncQueue::Create(*arena.device));
  }
  for (const PlacedBuffer& b : plan.buffers) {
    if (b.bytes == 0 || b.first_step < 0) continue;
    const auto arena = static_cast<size_t>(b.arena);
    auto* begin = static_cast<std::byte*>(bases[plan.arenas[arena].host_base]) + b.offset;
    const int64_t padding = (kBufferAlignment - b.bytes % kBufferAlignment) % kBufferAlignment;
    out->buffers_.push_back({&b,
                             out->queues_[arena].get(),
                             {begin - kRedZoneBytes, kRedZoneBytes},
                             {begin + b.bytes, static_cast<size_t>(padding + kRedZoneBytes)}});
  }
  std::stable_sort(out->buffers_.begin(), out->buffers_.end(),
                   [](const Watched& a, const Watched& b) { return a.buffer->first_step < b.buffer->first_step; });
  out->alive_.reserve(out->buffers_.size());
  return out;
}

void RedZones::BeginRun(const StopControl& stop) {
  stop_ = &stop;
  alive_.clear();
  next_ = 0;
}

absl::Status RedZones::BeforeStep(const Step& step) {
  const auto number = static_cast<int32_t>(&step - plan_.steps.data());
  std::erase_if(alive_, [&](size_t i) { return buffers_[i].buffer->last_step < number; });
  for (; next_ < buffers_.size() && buffers_[next_].buffer->first_step <= number; ++next_) {
    const Watched& w = buffers_[next_];
    MGE_RETURN_IF_ERROR(Fill(w, w.before));
    MGE_RETURN_IF_ERROR(Fill(w, w.after));
    alive_.push_back(next_);
  }
  return absl::OkStatus();
}

absl::Status RedZones::AfterStep(const Step& step) {
  for (size_t i : alive_) {
    const Watched& w = buffers_[i];
    MGE_RETURN_IF_ERROR(Look(step, w, "in front of", w.before));
    MGE_RETURN_IF_ERROR(Look(step, w, "behind", w.after));
  }
  return absl::OkStatus();
}

bool RedZones::Over(std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  bool over = true;
  for (const auto& queue : queues_) over &= !queue || queue->Over(end - std::chrono::steady_clock::now());
  return over;
}

absl::Status RedZones::Fill(const Watched& watched, std::span<std::byte> zone) const {
  if (!watched.queue) {
    std::fill(zone.begin(), zone.end(), kFill);
    return absl::OkStatus();
  }
  Guard fill;
  fill.fill(kFill);
  MGE_RETURN_IF_ERROR(watched.queue->Upload(zone.data(), fill.data(), zone.size(), stop_));
  return watched.queue->Finish(stop_);
}

absl::Status RedZones::Look(const Step& step, const Watched& watched, const char* side, std::span<std::byte> zone) const {
  Guard copy;
  std::span<const std::byte> seen = zone;
  if (watched.queue) {
    MGE_RETURN_IF_ERROR(watched.queue->Download(copy.data(), zone.data(), zone.size(), stop_));
    seen = std::span(copy).first(zone.size());
  }
  const auto changed = std::count_if(seen.begin(), seen.end(), [](std::byte b) { return b != kFill; });
  if (changed == 0) return absl::OkStatus();
  const Unit& unit = plan_.units[static_cast<size_t>(step.unit)];
  const PlacedBuffer& b = *watched.buffer;
  return Fail(errors::kKernelFailed,
              fmt::format("kernel {} of device {} wrote outside of its memory", unit.kernel, unit.device),
              {.what = fmt::format("{} of the {} bytes {} the buffer '{}' ({} bytes) were overwritten", changed, seen.size(),
                                   side, b.name, b.bytes),
               .where = UnitPlace(unit),
               .fix = "report it to the author of the backend, who can find it with `mge sdk test`"});
}

}  // namespace mge
