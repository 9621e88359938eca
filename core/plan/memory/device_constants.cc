// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/device_constants.h"

#include <algorithm>
#include <cstring>

#include "core/plugin/sync_queue.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status AtUpload(const Device& device, absl::Status status) {
  return status.ok() ? status : AddWhere(std::move(status), fmt::format("device {}, uploading constants", device.name()));
}

// Returns true if a form was packed from this constant. If its source was freed, another constant may have the same address.
bool IsOf(const std::weak_ptr<const void>& made_of, const Tensor& source) {
  return source.owner() && made_of.lock() == source.owner();
}

std::shared_ptr<ConstantBlock> LiveBlock(const std::weak_ptr<ConstantBlock>& known, const Tensor& source) {
  std::shared_ptr<ConstantBlock> block = known.lock();
  return block && IsOf(block->source, source) ? block : nullptr;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ConstantBlock>> ConstantBlock::Acquire(Device& device, uint64_t bytes) {
  MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf());
  std::shared_ptr<ConstantBlock> block(new ConstantBlock(device, *pool));
  MGE_ASSIGN_OR_RETURN(block->memory_, pool->Acquire(bytes, DeviceConstants::AlignmentOn(device)));
  return block;
}

ConstantBlock::~ConstantBlock() {
  if (memory_.address && !device_.Orphaned()) pool_.Release(memory_);
}

uint64_t DeviceConstants::Add(Tensor tensor) {
  uint64_t offset = bytes_;
  bytes_ += Aligned(*device_, static_cast<uint64_t>(tensor.bytes()));
  pieces_.push_back({offset, std::move(tensor)});
  return offset;
}

void DeviceConstants::AddShared(ConstantKey key, Tensor source, Tensor tensor, std::shared_ptr<ConstantBlock> block) {
  bytes_ = Aligned(*device_, static_cast<uint64_t>(key.bytes));
  key_ = std::move(key);
  source_ = std::move(source);
  block_ = std::move(block);
  if (!block_) pieces_.push_back({0, std::move(tensor)});
}

std::shared_ptr<ConstantBlock> SharedConstants::Block(const ConstantKey& key, const Tensor& source) {
  std::lock_guard lock(mutex);
  auto known = blocks.find(key);
  return known == blocks.end() ? nullptr : LiveBlock(known->second, source);
}

// Returns an undefined tensor if the bytes were freed.
Tensor SharedConstants::View(int64_t bytes, const Form& form) {
  std::shared_ptr<const void> owner = form.owner.lock();
  return owner ? Tensor::View(DType::kU8, {bytes}, form.data, std::move(owner)) : Tensor();
}

Tensor SharedConstants::Packed(const ConstantKey& key, const Tensor& source) {
  std::lock_guard lock(packed_mutex_);
  auto known = packed_.find(key);
  return known == packed_.end() || !IsOf(known->second.source, source) ? Tensor() : View(key.bytes, known->second);
}

Tensor SharedConstants::Add(const ConstantKey& key, const Tensor& source, Tensor packed) {
  std::lock_guard lock(packed_mutex_);
  auto gone = [](const Form& f) { return f.owner.expired(); };
  if (packed_.size() >= sweep_at_) {
    std::erase_if(packed_, [&](const auto& p) { return gone(p.second) || p.second.source.expired(); });
    for (auto& [form, alike] : by_bytes_) std::erase_if(alike, gone);
    std::erase_if(by_bytes_, [](const auto& b) { return b.second.empty(); });
    sweep_at_ = 2 * std::max<size_t>(packed_.size(), 32);
  }
  std::vector<Form>& alike = by_bytes_[{key.form, key.bytes}];
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

absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>> constants, SharedConstants* shared,
                       const StopControl* stop, const WhenOver& when_over) {
  auto insist = [&](const Budget& budget, auto request) -> absl::Status {
    for (;;) {
      absl::Status status = request();
      if (status.ok()) return status;
      MGE_RETURN_IF_ERROR(when_over(std::move(status), budget));
    }
  };
  std::unique_lock<std::mutex> lock;
  if (shared) {
    lock = std::unique_lock(shared->mutex);  // prevents two plans from uploading the same constant
    std::erase_if(shared->blocks, [](const auto& known) { return known.second.expired(); });
  }
  std::map<Device*, std::unique_ptr<SyncQueue>> queues;
  std::vector<std::pair<std::weak_ptr<ConstantBlock>*, DeviceConstants*>> fresh;
  for (const auto& c : constants) {
    if (c->bytes_ == 0 || c->block_) continue;
    std::weak_ptr<ConstantBlock>* known = nullptr;
    if (shared && c->key_) {
      known = &shared->blocks[*c->key_];
      if ((c->block_ = LiveBlock(*known, c->source_))) continue;
      auto twin = std::find_if(fresh.begin(), fresh.end(), [&](const auto& f) { return f.first == known; });
      if (twin != fresh.end()) {
        c->block_ = twin->second->block_;
        continue;
      }
    }
    MGE_RETURN_IF_ERROR(insist(c->device_->budget(), [&]() -> absl::Status {
      MGE_ASSIGN_OR_RETURN(c->block_, ConstantBlock::Acquire(*c->device_, c->bytes_));
      return absl::OkStatus();
    }));
    std::unique_ptr<SyncQueue>& queue = queues[c->device_];
    if (!queue) {
      MGE_ASSIGN_OR_RETURN(queue, SyncQueue::Create(*c->device_, MGE_QUEUE_COPY_IN));
    }
    queue->Uses(c->block_);
    for (const ConstantBlock::Piece& piece : c->pieces_) {
      absl::Status uploaded = insist(c->device_->budget(MGE_MEMORY_PINNED), [&] {
        return queue->Upload(static_cast<char*>(c->address()) + piece.offset, piece.tensor.data(),
                             static_cast<size_t>(piece.tensor.bytes()), stop);
      });
      MGE_RETURN_IF_ERROR(AtUpload(*c->device_, std::move(uploaded)));
    }
    if (known) fresh.emplace_back(known, c.get());
  }
  for (auto& [device, queue] : queues) MGE_RETURN_IF_ERROR(AtUpload(*device, queue->Finish(stop)));
  for (auto& [known, c] : fresh) {
    c->block_->source = c->source_.owner();
    *known = c->block_;
  }
  for (const auto& c : constants) {
    c->pieces_.clear();
    c->source_ = {};
  }
  return absl::OkStatus();
}

}  // namespace mge
