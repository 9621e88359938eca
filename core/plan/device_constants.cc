// SPDX-License-Identifier: Apache-2.0
#include "core/plan/device_constants.h"

#include <algorithm>
#include <cstring>

#include "core/plugin/sync_queue.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status AtUpload(const Device& device, absl::Status status) {
  return status.ok() ? status : AddWhere(std::move(status), fmt::format("device {}, uploading constants", device.name()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<ConstantBlock>> ConstantBlock::Acquire(Device& device, uint64_t bytes) {
  MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf());
  std::shared_ptr<ConstantBlock> block(new ConstantBlock(device, *pool));
  MGE_ASSIGN_OR_RETURN(block->memory_, pool->Acquire(bytes, DeviceConstants::kAlignment));
  return block;
}

ConstantBlock::~ConstantBlock() {
  if (memory_.address && !device_.Orphaned()) pool_.Release(memory_);
}

uint64_t DeviceConstants::Add(Tensor tensor) {
  uint64_t offset = bytes_;
  bytes_ += Aligned(static_cast<uint64_t>(tensor.bytes()));
  pieces_.push_back({offset, std::move(tensor)});
  return offset;
}

bool SharedConstants::Holds(const Device& device, const Tensor& constant) {
  std::lock_guard lock(mutex);
  auto known = blocks.find({&device, constant.data(), constant.bytes()});
  return known != blocks.end() && !known->second.expired();
}

Tensor SharedConstants::Packed(const std::string& kernel, Tensor packed) {
  std::lock_guard lock(packed_mutex_);
  std::vector<Form>& forms = packed_[{kernel, packed.bytes()}];
  std::erase_if(forms, [](const Form& f) { return f.owner.expired(); });
  for (const Form& f : forms) {
    std::shared_ptr<const void> owner = f.owner.lock();
    if (!owner || std::memcmp(f.data, packed.data(), static_cast<size_t>(packed.bytes())) != 0) continue;
    return Tensor::View(packed.dtype(), packed.shape(), f.data, std::move(owner));
  }
  forms.push_back({packed.owner(), packed.data()});
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
  if (shared) lock = std::unique_lock(shared->mutex);  // two plans never upload the same
  std::map<Device*, std::unique_ptr<SyncQueue>> queues;
  std::vector<std::pair<std::weak_ptr<ConstantBlock>*, DeviceConstants*>> fresh;
  for (const auto& c : constants) {
    if (c->bytes_ == 0) continue;
    std::weak_ptr<ConstantBlock>* known = nullptr;
    if (shared && c->shared_) {
      const Tensor& tensor = c->pieces_.front().tensor;
      known = &shared->blocks[{c->device_, tensor.data(), tensor.bytes()}];
      if ((c->block_ = known->lock())) continue;
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
    c->block_->source = c->pieces_.front().tensor;
    *known = c->block_;
  }
  for (const auto& c : constants) c->pieces_.clear();
  return absl::OkStatus();
}

}  // namespace mge
