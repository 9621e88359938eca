// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/pool.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <utility>

#include "core/base/byte_size.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/plugin/memory/bucket_pool.h"
#include "core/plugin/memory/growing_pool.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

constexpr std::string_view kPoolNames[] = {"naive", "round", "unpooled", "growing"};
constexpr uint64_t kMinPage = 32;

uint64_t Exactly(uint64_t bytes, const PoolOptions&) { return bytes; }

uint64_t RoundUp(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

absl::Status BadNumber(std::string_view what, uint64_t value, std::string allowed) {
  return Fail(errors::kBadSetting, fmt::format("the memory pool does not support a {} of {}", what, value),
              {.what = std::move(allowed)});
}

}  // namespace

uint64_t Pool::Footprint(std::span<const PoolRequest> requests) const {
  uint64_t bytes = 0;
  for (const PoolRequest& r : requests) bytes += r.bytes;
  return bytes;
}

void Pool::TakeAgain(uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                     absl::StatusOr<mge_reservation>& taken) {
  if (budget_) budget_->Press(this, Footprint(bytes), taken, [&] { return Take(bytes, alignment, after, flags); });
  if (!taken.ok() && IsOverBudget(taken.status())) over_budget_.fetch_add(1, std::memory_order_relaxed);
}

std::span<const std::string_view> PoolNames() { return kPoolNames; }

mge_pool_stats NoStats() {
  mge_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  stats.presence = MGE_POOL_STATS_ALL;
  return stats;
}

uint64_t NaiveRound(uint64_t bytes, const PoolOptions& options) {
  uint64_t size = std::max(bytes, options.page_bytes);
  return size > options.large_round_bytes ? RoundUp(size, options.large_round_bytes) : size;
}

uint64_t LogRound(uint64_t bytes, const PoolOptions& options) {
  int bits = std::max(static_cast<int>(std::bit_width(bytes - 1)), 1);
  if (bits > options.linear_cutoff) return RoundUp(bytes, uint64_t{1} << options.linear_cutoff);
  return uint64_t{1} << std::max(bits, static_cast<int>(std::bit_width(options.page_bytes)) - 1);
}

absl::StatusOr<std::unique_ptr<Pool>> MakePool(std::string_view name, const PoolOptions& options, SlabProvider* provider) {
  if (name == "growing") return std::make_unique<GrowingPool>(provider);
  if (name == "unpooled") return std::make_unique<BucketPool>(kPoolNames[2], Exactly, false, options, provider);
  if (options.page_bytes < kMinPage) {
    return BadNumber("page", options.page_bytes, fmt::format("the minimum is {}", kMinPage));
  }
  if (name == "naive") {
    if (options.large_round_bytes == 0) return BadNumber("rounding of large sizes", 0, "it must be above 0");
    return std::make_unique<BucketPool>(kPoolNames[0], NaiveRound, true, options, provider);
  }
  if (name == "round") {
    if (!std::has_single_bit(options.page_bytes)) {
      return BadNumber("page", options.page_bytes, "for the pool 'round' it must be a power of two");
    }
    int least = std::max(20, static_cast<int>(std::bit_width(options.page_bytes)) - 1);
    if (options.linear_cutoff < least || options.linear_cutoff > 34) {
      return BadNumber("linear cutoff", static_cast<uint64_t>(std::max(options.linear_cutoff, 0)),
                       fmt::format("it must be within {}..34", least));
    }
    return std::make_unique<BucketPool>(kPoolNames[1], LogRound, true, options, provider);
  }
  return Fail(
      errors::kBadSetting, fmt::format("there is no memory pool '{}'", name),
      {.what = fmt::format("the pools are {}.{}", fmt::join(kPoolNames, ", "), DidYouMean(Nearest(name, kPoolNames)))});
}

// ---------------------------------------------------------------- reserve policies

absl::StatusOr<ReservePolicy> ReservePolicy::Parse(std::string_view text) {
  ReservePolicy policy;
  if (text.empty() || text == "none") return policy;
  if (text == "all") {
    policy.kind_ = Kind::kAll;
    return policy;
  }
  constexpr std::string_view kPercentPrefix = "percent:", kBytesPrefix = "bytes:";
  if (text.starts_with(kPercentPrefix)) {
    std::string_view number = text.substr(kPercentPrefix.size());
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), policy.amount_);
    if (error == std::errc() && end == number.data() + number.size() && policy.amount_ <= 100) {
      policy.kind_ = Kind::kPercent;
      return policy;
    }
  }
  if (text.starts_with(kBytesPrefix)) {
    if (std::optional<int64_t> bytes = ParseByteSize(text.substr(kBytesPrefix.size()))) {
      policy.kind_ = Kind::kBytes;
      policy.amount_ = static_cast<uint64_t>(*bytes);
      return policy;
    }
  }
  return Fail(errors::kBadSetting, fmt::format("there is no reserve policy '{}'", EscapeControl(text)),
              {.what = "the policies are percent:N (0..100), bytes:SIZE (such as 64MiB), all, none"});
}

mge_reserve_decision ReservePolicy::Decide(const mge_plan_summary& plan) const {
  mge_reserve_decision out = {};
  out.struct_size = sizeof(out);
  switch (kind_) {
    case Kind::kNone: break;
    case Kind::kPercent: out.keep_free = PercentOf(plan.memory_total, amount_); break;
    case Kind::kBytes: out.initial = out.retain = amount_; break;
    case Kind::kAll: {
      uint64_t keep =
          plan.memory_free < uint64_t{2} << 30 ? uint64_t{225} << 20 : std::max(uint64_t{300} << 20, plan.memory_free / 20);
      out.initial = plan.memory_free > keep ? plan.memory_free - keep : 0;
      out.retain = UINT64_MAX;
      break;
    }
  }
  return out;
}

std::string ReservePolicy::ToString() const {
  switch (kind_) {
    case Kind::kNone: return "none";
    case Kind::kPercent: return fmt::format("percent:{}", amount_);
    case Kind::kBytes: return fmt::format("bytes:{}", amount_);
    case Kind::kAll: return "all";
  }
  return "none";
}

}  // namespace mge
