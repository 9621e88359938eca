// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/device_constants.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "core/base/lazy_bytes.h"
#include "core/graph/graph.h"

namespace mge {
namespace {

// Returns true if a form was made from this constant. If its source was freed, another constant may have the same address.
bool IsOf(const ConstantKey& key, const std::weak_ptr<const void>& made_of, const Tensor& source) {
  return !key.content.empty() || (source.owner() && made_of.lock() == source.owner());
}

bool Expired(const ConstantKey& key, const auto& form, const std::weak_ptr<const void>& source) {
  return form.expired() || (key.content.empty() && source.expired());
}

// Returns a hash of a few pieces of the bytes. A comparison of each form with all others would take quadratic time.
uint64_t SampleOf(const Tensor& tensor) {
  constexpr int64_t kPieces = 32, kPiece = 32;
  const auto* bytes = static_cast<const char*>(tensor.data());
  const int64_t step = std::max(tensor.bytes() / kPieces, kPiece);
  uint64_t hash = 0;
  for (int64_t at = 0; at < tensor.bytes(); at += step) {
    const auto size = static_cast<size_t>(std::min(kPiece, tensor.bytes() - at));
    hash = hash * 0x9e3779b97f4a7c15u + std::hash<std::string_view>()({bytes + at, size});
  }
  return hash;
}

}  // namespace

ConstantReader::ConstantReader(const Graph& graph) {
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (graph.value(v).constant.lazy()) lazy_.push_back(graph.value(v).constant);
  }
  for (const Tensor& tensor : lazy_) tensor.lazy()->AddReader();
}

ConstantReader::~ConstantReader() {
  for (const Tensor& tensor : lazy_) tensor.lazy()->RemoveReader();
}

ConstantKey KeyOf(const Device* device, const Tensor& source, int64_t bytes, std::string form) {
  if (const LazyBytes* lazy = source.lazy()) {
    return {device, lazy->key().empty() ? lazy : nullptr, bytes, std::move(form), lazy->key()};
  }
  return {device, source.data(), bytes, std::move(form)};
}

absl::StatusOr<std::shared_ptr<ConstantBlock>> ConstantBlock::Acquire(Device& device, uint64_t bytes, bool single) {
  MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf());
  std::shared_ptr<ConstantBlock> block(new ConstantBlock(device, *pool, bytes, single));
  MGE_ASSIGN_OR_RETURN(block->memory_, pool->Acquire(bytes, DeviceConstants::AlignmentOn(device)));
  return block;
}

ConstantBlock::~ConstantBlock() {
  if (memory_.address && !device_.Orphaned()) pool_.Release(memory_);
}

absl::Status DeviceConstants::Acquire(const WhenOver& when_over) {
  if (block_ || bytes_ == 0) return absl::OkStatus();
  return Insist(when_over, device_->budget(), [&]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(block_, ConstantBlock::Acquire(*device_, bytes_, single_));
    return absl::OkStatus();
  });
}

PlacedConstant SharedConstants::Find(const ConstantKey& key, const Tensor& source) const {
  std::lock_guard lock(mutex_);
  auto known = placed_.find(key);
  if (known == placed_.end() || !IsOf(key, known->second.source, source)) return {};
  return {known->second.block.lock(), known->second.offset};
}

void SharedConstants::Add(const ConstantKey& key, const Tensor& source, const PlacedConstant& placed) {
  std::lock_guard lock(mutex_);
  if (placed_.size() >= sweep_placed_at_) SweepPlaced();
  placed_.insert_or_assign(key, Known{source.owner(), placed.block, placed.offset});
}

void SharedConstants::RemoveExpired() {
  std::lock_guard lock(mutex_);
  SweepPlaced();
  SweepPacked();
}

void SharedConstants::SweepPlaced() {
  std::erase_if(placed_, [](const auto& p) { return Expired(p.first, p.second.block, p.second.source); });
  sweep_placed_at_ = 2 * std::max<size_t>(placed_.size(), 32);
}

void SharedConstants::SweepPacked() {
  std::erase_if(packed_, [](const auto& p) { return Expired(p.first, p.second.owner, p.second.source); });
  for (auto& [form, alike] : by_bytes_) std::erase_if(alike, [](const Form& f) { return f.owner.expired(); });
  std::erase_if(by_bytes_, [](const auto& b) { return b.second.empty(); });
  sweep_packed_at_ = 2 * std::max<size_t>(packed_.size(), 32);
}

// Returns an undefined tensor if the bytes were freed.
Tensor SharedConstants::View(int64_t bytes, const Form& form) {
  std::shared_ptr<const void> owner = form.owner.lock();
  return owner ? Tensor::View(DType::kU8, {bytes}, form.data, std::move(owner)) : Tensor();
}

Tensor SharedConstants::Packed(const ConstantKey& key, const Tensor& source) {
  std::lock_guard lock(mutex_);
  auto known = packed_.find(key);
  return known == packed_.end() || !IsOf(key, known->second.source, source) ? Tensor() : View(key.bytes, known->second);
}

Tensor SharedConstants::AddPacked(const ConstantKey& key, const Tensor& source, Tensor packed) {
  std::lock_guard lock(mutex_);
  if (packed_.size() >= sweep_packed_at_) SweepPacked();
  std::vector<Form>& alike = by_bytes_[{key.form, key.bytes, SampleOf(packed)}];
  Form found = {{}, packed.owner(), packed.data()};
  bool known = false;
  for (const Form& f : alike) {
    Tensor other = View(key.bytes, f);
    if (!other.defined() || std::memcmp(f.data, packed.data(), static_cast<size_t>(packed.bytes())) != 0) continue;
    found = f;
    packed = std::move(other);
    known = true;
    break;
  }
  if (!known) alike.push_back(found);
  found.source = source.owner();
  packed_.insert_or_assign(key, std::move(found));
  return packed;
}

}  // namespace mge
