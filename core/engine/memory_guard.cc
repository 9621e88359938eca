// SPDX-License-Identifier: Apache-2.0
#include "core/engine/memory_guard.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/engine/instance_queues.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::byte kFill{0xc5};  // repeated, no number that kernels write often

bool IsWhole(std::span<const std::byte> guard) {
  return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == kFill; });
}

}  // namespace

MemoryGuard::MemoryGuard(const Plan& plan, std::span<void* const> bases) : plan_(plan) {
  for (const PlacedBuffer& b : plan.buffers) {
    if (b.bytes == 0) continue;
    auto* begin = static_cast<std::byte*>(bases[plan.arenas[static_cast<size_t>(b.arena)].host_base]) + b.offset;
    const int64_t padding = (kBufferAlignment - b.bytes % kBufferAlignment) % kBufferAlignment;
    buffers_.push_back({&b, {begin - kGuardBytes, kGuardBytes},
                        {begin + b.bytes, static_cast<size_t>(padding + kGuardBytes)}});
  }
  std::stable_sort(buffers_.begin(), buffers_.end(),
                   [](const Watched& a, const Watched& b) { return a.buffer->first < b.buffer->first; });
  alive_.reserve(buffers_.size());
}

void MemoryGuard::BeginRun() {
  alive_.clear();
  next_ = 0;
}

void MemoryGuard::BeforeStep(const Step& step) {
  std::erase_if(alive_, [&](size_t i) { return buffers_[i].buffer->last < step.unit; });
  for (; next_ < buffers_.size() && buffers_[next_].buffer->first <= step.unit; ++next_) {
    std::fill(buffers_[next_].front.begin(), buffers_[next_].front.end(), kFill);
    std::fill(buffers_[next_].behind.begin(), buffers_[next_].behind.end(), kFill);
    alive_.push_back(next_);
  }
}

absl::Status MemoryGuard::AfterStep(const Step& step) const {
  for (size_t i : alive_) {
    const Watched& w = buffers_[i];
    if (!IsWhole(w.front)) return Overwritten(step, w, "in front of", w.front);
    if (!IsWhole(w.behind)) return Overwritten(step, w, "behind", w.behind);
  }
  return absl::OkStatus();
}

absl::Status MemoryGuard::Overwritten(const Step& step, const Watched& watched, const char* side,
                                      std::span<std::byte> guard) const {
  const Unit& unit = plan_.units[static_cast<size_t>(step.unit)];
  const auto changed = std::count_if(guard.begin(), guard.end(), [](std::byte b) { return b != kFill; });
  const PlacedBuffer& b = *watched.buffer;
  return Fail(errors::kKernelFailed,
              fmt::format("kernel {} of device {} wrote outside of its memory", unit.kernel, unit.device),
              {.what = fmt::format("{} of the {} bytes {} the buffer '{}' ({} bytes) were overwritten", changed, guard.size(),
                                   side, b.name, b.bytes),
               .where = UnitPlace(unit),
               .fix = "report it to the author of the backend, who finds it with `mge sdk test`"});
}

}  // namespace mge
