// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/growing_pool.h"

#include <algorithm>
#include <iterator>

#include "core/base/exception.h"
#include "core/plugin/memory/pool_util.h"

namespace mge {
namespace {

constexpr uint64_t kLargestGrowth = uint64_t{64} << 20;
constexpr uint64_t kLargestStep = uint64_t{1} << 60;  // limit for a policy's `step`; sums with it do not overflow
constexpr size_t kMore = 6;  // most blocks that one request adds: two ends of a split, twice; the committed memory; itself

}  // namespace

uint64_t GrowingPool::SlabBytes(uint64_t bytes, uint64_t alignment) const {
  return AlignUp(PaddedSize(bytes, alignment, provider_->Alignment()), kDefaultAlignment);
}

GrowingPool::~GrowingPool() {
  Sweep(true);
  for (const std::unique_ptr<mge_slab>& slab : slabs_) provider_->Release(*slab);
}

bool GrowingPool::Stock() noexcept {
  const size_t count = handed_out_ + static_cast<size_t>(recent_count_) + pending_.size() + kMore;
  try {
    if (pending_.capacity() < count) pending_.reserve(2 * count);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return spare_.Stock(count) && spare_by_size_.Stock(count);
}

void GrowingPool::RemoveFree(std::map<uintptr_t, Block>::iterator at) noexcept {
  spare_by_size_.Put(free_by_size_.extract({at->second.bytes, at->first}));
  spare_.Put(free_.extract(at));
}

void GrowingPool::AddFree(uintptr_t address, Block block) noexcept {
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + block.bytes && next->second.slab == block.slab) {
    block.bytes += next->second.bytes;
    auto joined = next++;
    RemoveFree(joined);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second.bytes == address && before->second.slab == block.slab) {
      address = before->first;
      block.bytes += before->second.bytes;
      RemoveFree(before);
    }
  }
  auto node = spare_.Take();
  node.key() = address;
  node.mapped() = block;
  free_.insert(std::move(node));
  auto by_size = spare_by_size_.Take();
  by_size.value() = {block.bytes, address};
  free_by_size_.insert(std::move(by_size));
}

void GrowingPool::Sweep(bool wait) {
  std::erase_if(pending_, [&](const Pending& p) {
    if (!provider_->Reached(p.last_use, wait)) return false;
    AddFree(p.address, p.block);
    return true;
  });
}

void GrowingPool::SettleRecent() {
  for (int i = 0; i < recent_count_; ++i) AddFree(recent_[i].address, recent_[i].block);
  recent_count_ = 0;
}

// Takes the block of recent_ with exactly this size that was released last. Returns false if there is none.
bool GrowingPool::TakeRecent(uint64_t bytes, uint64_t alignment, Piece& out) {
  for (int i = recent_count_; i-- > 0;) {
    const Recent found = recent_[i];
    if (found.block.bytes != bytes || (found.address & (alignment - 1))) continue;
    std::copy(recent_ + i + 1, recent_ + recent_count_, recent_ + i);
    --recent_count_;
    out = {found.block.slab, found.address, bytes};
    return true;
  }
  return false;
}

absl::StatusOr<mge_reservation> GrowingPool::Hand(const Piece& piece) {
  expected_ -= std::min(expected_, piece.bytes);
  ++handed_out_;
  stats_.in_use += piece.bytes;
  stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
  return Reservation(piece, piece.slab);
}

bool GrowingPool::TakeFree(uint64_t bytes, uint64_t alignment, Piece& out) {
  for (auto fit = free_by_size_.lower_bound({bytes, 0}); fit != free_by_size_.end(); ++fit) {
    auto [size, begin] = *fit;
    uintptr_t address = AlignUp(begin, alignment);
    if (address - begin > size - bytes) continue;
    auto at = free_.find(begin);
    const mge_slab* slab = at->second.slab;
    RemoveFree(at);
    if (address > begin) AddFree(begin, {address - begin, slab});
    if (uint64_t rest = begin + size - (address + bytes)) AddFree(address + bytes, {rest, slab});
    out = {slab, address, bytes};
    return true;
  }
  return false;
}

// Takes a part of a pending block: one that the same fence frees before `after`, or if `may_wait` one to wait for. Prefers
// the former, then the smallest. Returns false if there is none.
bool GrowingPool::TakePending(uint64_t bytes, uint64_t alignment, const mge_fence_point* after, bool may_wait, Piece& out) {
  if (!after && !may_wait) return false;
  auto ordered = [&](const Pending& p) {
    return after && after->fence && p.last_use.fence == after->fence && p.last_use.value <= after->value;
  };
  auto best = pending_.end();
  for (auto p = pending_.begin(); p != pending_.end(); ++p) {
    if (p->block.bytes < bytes || p->address % alignment != 0 || !(may_wait || ordered(*p))) continue;
    if (best == pending_.end() || std::pair(!ordered(*p), p->block.bytes) < std::pair(!ordered(*best), best->block.bytes))
      best = p;
  }
  if (best == pending_.end()) return false;
  out = {best->block.slab, best->address, bytes};
  if (!ordered(*best)) out.ready = best->last_use.fence, out.ready_value = best->last_use.value;
  best->address += bytes;
  best->block.bytes -= bytes;
  if (best->block.bytes == 0) pending_.erase(best);
  return true;
}

void GrowingPool::AddCommitted(uintptr_t address, Block block) {
  stats_.committed += block.bytes;
  ++stats_.slab_acquires;
  if (block.bytes >= next_growth_ && expected_ == 0) next_growth_ = std::min(next_growth_ * 2, kLargestGrowth);
  AddFree(address, block);
}

// Grows by the request's size, or by `want` bytes if that is more. Uses the range if there is one, else acquires a slab.
absl::Status GrowingPool::GrowBy(uint64_t size, uint64_t alignment, uint64_t want) {
  if (range_) {
    const mge_slab* range = range_->slab();
    const auto base = reinterpret_cast<uintptr_t>(range->address);
    uint64_t tail = 0;  // bytes of the free block that ends at the range's end; it only needs to be extended
    if (auto last = free_.lower_bound(base + range_->end()); last != free_.begin()) {
      --last;
      if (last->second.slab == range && last->first + last->second.bytes == base + range_->end()) tail = last->second.bytes;
    }
    const uintptr_t begin = base + range_->end() - tail;
    const bool aligned = alignment <= range_->granularity() && base % alignment == 0;  // each granule is aligned
    const uint64_t least = aligned ? AlignUp(begin, alignment) - begin + size : SlabBytes(size, alignment);
    MGE_ASSIGN_OR_RETURN(auto piece, range_->Commit(std::max(want, least), want > least ? 0 : tail));
    if (piece) {
      AddCommitted(base + piece->offset, {piece->bytes, range});
      return absl::OkStatus();
    }
  }
  const uint64_t bytes =
      std::max(std::min(want, provider_->Largest() / kDefaultAlignment * kDefaultAlignment), SlabBytes(size, alignment));
  auto slab = std::make_unique<mge_slab>();
  slabs_.reserve(slabs_.size() + 1);  // before Acquire(): if it fails, no slab leaks
  MGE_ASSIGN_OR_RETURN(*slab, provider_->Acquire(bytes));
  slabs_.push_back(std::move(slab));
  AddCommitted(reinterpret_cast<uintptr_t>(slabs_.back()->address), {bytes, slabs_.back().get()});
  return absl::OkStatus();
}

absl::Status GrowingPool::Grow(uint64_t size, uint64_t alignment) {
  const uint64_t bytes = SlabBytes(size, alignment);
  uint64_t want = AlignUp(std::min(policy_.step, kLargestStep), kDefaultAlignment);
  if (range_ || !provider_->Limited()) want = std::max(want, expected_ ? expected_ : next_growth_);
  if (MemoryInfo info = provider_->Info(); info.total_bytes) {
    uint64_t room = info.free_bytes > policy_.keep_free ? info.free_bytes - policy_.keep_free : 0;
    if (bytes > room) GiveBack(0);
    if (want > room) want = 0;
  }
  absl::Status grown = GrowBy(size, alignment, want);
  auto exhausted = [&] { return grown.code() == absl::StatusCode::kResourceExhausted; };
  if (exhausted() && want > 0) grown = GrowBy(size, alignment, 0);
  if (exhausted() && stats_.committed > stats_.in_use) {
    // Cached memory must never be the reason that a request fails.
    Sweep(true);
    GiveBack(0);
    grown = GrowBy(size, alignment, 0);
  }
  return grown;
}

absl::StatusOr<mge_reservation> GrowingPool::Take(uint64_t bytes, uint64_t alignment, const mge_fence_point* after,
                                                  uint32_t flags) {
  CheckRequest(alignment, flags);
  if (bytes == 0) return NoMemory();
  if (bytes > kLargestRequest) return TooLarge(bytes);
  alignment = std::max(alignment, kDefaultAlignment);
  const uint64_t size = AlignUp(bytes, kDefaultAlignment);
  std::lock_guard lock(mutex_);
  if (!Stock()) return OutOfHostMemory();
  Piece out;
  if (TakeRecent(size, alignment, out)) {
    ++stats_.hits;
    return Hand(out);
  }
  SettleRecent();
  Sweep(false);
  if (TakeFree(size, alignment, out) || TakePending(size, alignment, after, flags & MGE_POOL_MAY_WAIT, out)) {
    ++stats_.hits;
    return Hand(out);
  }
  if (flags & MGE_POOL_NO_GROWTH) return GrowthForbidden(name(), bytes);
  absl::Status grown = Grow(size, alignment);
  // Even if growing failed, it may have waited for pending blocks that are free afterwards.
  if (TakeFree(size, alignment, out)) return Hand(out);
  MGE_CHECK(!grown.ok());
  return grown;
}

void GrowingPool::Expect(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  expected_ = bytes;
}

void GrowingPool::Release(const mge_reservation& reservation, const mge_fence_point* last_use) {
  if (!reservation.token) return;
  const auto* slab = reinterpret_cast<const mge_slab*>(static_cast<uintptr_t>(reservation.token));
  auto address = reinterpret_cast<uintptr_t>(reservation.address);
  std::lock_guard lock(mutex_);
  --handed_out_;
  stats_.in_use -= reservation.bytes;
  const mge_fence_point until = LastUseOf(reservation, last_use);
  if (until.fence && !provider_->Reached(until, false)) {
    pending_.push_back({address, {reservation.bytes, slab}, until});
    return;
  }
  if (recent_count_ == kRecent) {
    AddFree(recent_[0].address, recent_[0].block);
    std::copy(recent_ + 1, recent_ + kRecent, recent_);
    --recent_count_;
  }
  recent_[recent_count_++] = {address, {reservation.bytes, slab}};
}

void GrowingPool::GiveBackOfRange(uint64_t retain) {
  const auto base = reinterpret_cast<uintptr_t>(range_->slab()->address);
  // Decommits the largest blocks first, and the last one only as far as needed, from its end. Each rest is smaller than its
  // block, so the loop ends.
  std::pair<uint64_t, uintptr_t> last = {UINT64_MAX, UINTPTR_MAX};
  for (auto next = free_by_size_.lower_bound(last); next != free_by_size_.begin(); next = free_by_size_.lower_bound(last)) {
    last = *std::prev(next);
    if (stats_.committed <= retain || !Stock()) return;
    auto [bytes, address] = last;
    auto at = free_.find(address);
    if (at->second.slab != range_->slab()) continue;
    const uint64_t granules = (address + bytes - base) & ~(range_->granularity() - 1);  // end of the block's last granule
    const uint64_t excess = std::min(AlignUp(stats_.committed - retain, range_->granularity()), granules);
    const uintptr_t cut = std::max(address, base + granules - excess);
    GrowingRange::Piece gone = range_->Decommit(cut - base, address + bytes - cut);
    if (gone.bytes == 0) continue;
    RemoveFree(at);
    const uintptr_t begin = base + gone.offset, end = begin + gone.bytes;
    if (begin > address) AddFree(address, {begin - address, range_->slab()});
    if (address + bytes > end) AddFree(end, {address + bytes - end, range_->slab()});
    stats_.committed -= gone.bytes;
    ++stats_.slab_releases;
  }
}

void GrowingPool::GiveBack(uint64_t retain) {
  SettleRecent();
  if (range_) GiveBackOfRange(retain);
  std::sort(slabs_.begin(), slabs_.end(), [](const auto& a, const auto& b) { return a->bytes > b->bytes; });
  std::erase_if(slabs_, [&](const std::unique_ptr<mge_slab>& slab) {
    auto at = free_.find(reinterpret_cast<uintptr_t>(slab->address));
    bool whole = at != free_.end() && at->second.slab == slab.get() && at->second.bytes == slab->bytes;
    if (!whole || stats_.committed <= retain) return false;
    RemoveFree(at);
    stats_.committed -= slab->bytes;
    ++stats_.slab_releases;
    provider_->Release(*slab);
    return true;
  });
}

void GrowingPool::Trim(int32_t how) {
  std::lock_guard lock(mutex_);
  Sweep(false);
  GiveBack(how == MGE_TRIM_EXCESS ? policy_.retain : 0);
}

uint64_t GrowingPool::Footprint(std::span<const PoolRequest> requests) const {
  uint64_t bytes = 0;
  for (const PoolRequest& r : requests) {
    bytes =
        range_ ? AlignUp(bytes, r.alignment) + AlignUp(r.bytes, kDefaultAlignment) : bytes + SlabBytes(r.bytes, r.alignment);
  }
  return range_ ? AlignUp(bytes, range_->granularity()) : bytes;
}

mge_pool_stats GrowingPool::Stats() const {
  std::lock_guard lock(mutex_);
  mge_pool_stats stats = stats_;
  stats.over_budget = over_budget();
  if (!free_by_size_.empty()) stats.largest_free = free_by_size_.rbegin()->first;
  for (int i = 0; i < recent_count_; ++i) stats.largest_free = std::max(stats.largest_free, recent_[i].block.bytes);
  return stats;
}

void GrowingPool::SetPolicy(const mge_reserve_decision& decision) {
  std::lock_guard lock(mutex_);
  policy_ = decision;
}

}  // namespace mge
