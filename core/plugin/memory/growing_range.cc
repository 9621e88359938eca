// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/growing_range.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "core/plugin/memory/pool_util.h"

namespace mge {
namespace {

// Addresses need almost no memory, but a driver may keep tables for them, so their number is limited.
constexpr uint64_t kAddressesPerByte = 16;
constexpr uint64_t kMaxAddresses = uint64_t{1} << 44;
constexpr uint64_t kAddressesOfUnknown = uint64_t{1} << 40;

}  // namespace

std::unique_ptr<GrowingRange> GrowingRange::Reserve(SlabProvider* provider) {
  const uint64_t granularity = provider->RangeGranularity();
  if (granularity == 0) return nullptr;
  uint64_t total = provider->Info().total_bytes;
  uint64_t bytes = total == 0                                  ? kAddressesOfUnknown
                   : total > kMaxAddresses / kAddressesPerByte ? kMaxAddresses
                                                               : total * kAddressesPerByte;
  absl::StatusOr<mge_slab> range = provider->ReserveRange(AlignUp(bytes, granularity));
  if (!range.ok()) return nullptr;
  return std::unique_ptr<GrowingRange>(new GrowingRange(provider, *range, granularity));
}

GrowingRange::~GrowingRange() {
  uint64_t begin = 0;
  for (auto [offset, bytes] : holes_) {
    if (offset > begin) provider_->Decommit(range_, begin, offset - begin);
    begin = offset + bytes;
  }
  if (end_ > begin) provider_->Decommit(range_, begin, end_ - begin);
  provider_->ReleaseRange(range_);
}

absl::StatusOr<std::optional<GrowingRange::Piece>> GrowingRange::Commit(uint64_t bytes, uint64_t tail) {
  const uint64_t whole = AlignUp(bytes, granularity_);
  auto fit = holes_.end();
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second >= whole && (fit == holes_.end() || hole->second < fit->second)) fit = hole;
  }
  if (fit != holes_.end()) {
    const Piece piece = {fit->first, whole};
    MGE_RETURN_IF_ERROR(provider_->Commit(range_, piece.offset, piece.bytes));
    auto hole = holes_.extract(fit);
    hole.key() += whole;
    hole.mapped() -= whole;
    if (hole.mapped() > 0) holes_.insert(std::move(hole));
    return piece;
  }
  const Piece piece = {end_, AlignUp(bytes - std::min(tail, bytes - 1), granularity_)};
  if (piece.bytes > range_.bytes - end_) return std::nullopt;
  MGE_RETURN_IF_ERROR(provider_->Commit(range_, piece.offset, piece.bytes));
  end_ += piece.bytes;
  return piece;
}

GrowingRange::Piece GrowingRange::Decommit(uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t begin = AlignUp(offset, granularity_);
  const uint64_t end = (offset + bytes) & ~(granularity_ - 1);
  if (begin >= end) return {begin, 0};
  std::map<uint64_t, uint64_t>::iterator hole;
  try {
    hole = holes_.emplace(begin, end - begin).first;
  } catch (const std::bad_alloc&) {
    return {begin, 0};
  }
  provider_->Decommit(range_, begin, end - begin);
  if (auto next = std::next(hole); next != holes_.end() && next->first == end) {
    hole->second += next->second;
    holes_.erase(next);
  }
  if (hole != holes_.begin()) {
    if (auto before = std::prev(hole); before->first + before->second == begin) {
      before->second += hole->second;
      holes_.erase(hole);
      hole = before;
    }
  }
  if (hole->first + hole->second == end_) {
    end_ = hole->first;
    holes_.erase(hole);
  }
  return {begin, end - begin};
}

}  // namespace mge
