// SPDX-License-Identifier: Apache-2.0
#include "core/plan/device_constants.h"

#include <algorithm>
#include <cstring>

#include "core/plugin/ask.h"

namespace mge {
namespace {

constexpr uint64_t kAlignment = 256;  // what vector loads and copy engines of devices like best
constexpr uint64_t kPiece = 4 << 20;  // one half of the staging memory

// Copies host memory to a device in pieces: while one is on its way, the next one is staged.
class Uploader {
 public:
  explicit Uploader(Device& device) : device_(device), api_(*device.queue_api()) {}
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;
  ~Uploader() {
    // After a failure: what is on its way reads the staging memory.
    mge_error ignored;
    auto signals = [&](mge_error* e) { return api_.signal(queue_, fence_, pieces_, e); };
    if (signalled_ < pieces_ && CallBackend(ignored, signals) == MGE_OK) signalled_ = pieces_;
    auto waits = [&](mge_error* e) { return api_.host_wait(fence_, signalled_, UINT64_MAX, e); };
    if (signalled_) CallBackend(ignored, waits);
    if (queue_) api_.destroy(queue_);
    if (fence_) api_.fence_destroy(fence_);
    if (pool_) pool_->Release(staging_);
  }

  absl::Status SetUp() {
    MGE_ASSIGN_OR_RETURN(Pool * pool, device_.PoolOf(MGE_MEMORY_PINNED));
    MGE_ASSIGN_OR_RETURN(staging_, pool->Acquire(2 * kPiece));
    pool_ = pool;
    MGE_RETURN_IF_ERROR(Call([&](mge_error* e) { return api_.create(device_.handle(), MGE_QUEUE_COPY_IN, &queue_, e); }));
    return Call([&](mge_error* e) { return api_.fence_create(device_.handle(), &fence_, e); });
  }

  absl::Status Copy(char* to, const char* from, uint64_t bytes) {
    while (bytes > 0) {
      uint64_t part = std::min(bytes, kPiece), half = pieces_ % 2 * kPiece;
      if (pieces_ >= 2) MGE_RETURN_IF_ERROR(WaitFor(pieces_ - 1));  // the one that used this half
      std::memcpy(static_cast<char*>(staging_.host_address) + half, from, part);
      MGE_RETURN_IF_ERROR(Call([&](mge_error* e) {
        return api_.copy(queue_, to, static_cast<char*>(staging_.address) + half, part, e);
      }));
      ++pieces_;
      MGE_RETURN_IF_ERROR(Call([&](mge_error* e) { return api_.signal(queue_, fence_, pieces_, e); }));
      signalled_ = pieces_;
      to += part;
      from += part;
      bytes -= part;
    }
    return absl::OkStatus();
  }

  absl::Status Finish() { return WaitFor(pieces_); }

 private:
  absl::Status WaitFor(uint64_t value) {
    return Call([&](mge_error* e) { return api_.host_wait(fence_, value, UINT64_MAX, e); });
  }

  template <typename F>
  absl::Status Call(F&& f) {
    return AskDevice(device_, "uploading constants", f);
  }

  Device& device_;
  const mge_queue_api& api_;
  Pool* pool_ = nullptr;
  mge_reservation staging_ = {};
  mge_queue* queue_ = nullptr;
  mge_fence* fence_ = nullptr;
  uint64_t pieces_ = 0;     // copies that were enqueued
  uint64_t signalled_ = 0;  // of them, those whose end the fence will tell
};

}  // namespace

absl::StatusOr<std::shared_ptr<ConstantBlock>> ConstantBlock::Acquire(Device& device, uint64_t bytes) {
  MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf());
  std::shared_ptr<ConstantBlock> block(new ConstantBlock(device, *pool));
  MGE_ASSIGN_OR_RETURN(block->memory_, pool->Acquire(bytes, kAlignment));
  return block;
}

ConstantBlock::~ConstantBlock() {
  if (memory_.address && !device_.Orphaned()) pool_.Release(memory_);
}

uint64_t DeviceConstants::Add(Tensor tensor) {
  uint64_t offset = bytes_;
  bytes_ += (static_cast<uint64_t>(tensor.bytes()) + kAlignment - 1) / kAlignment * kAlignment;
  pieces_.push_back({offset, std::move(tensor)});
  return offset;
}

absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>> constants, SharedConstants* shared) {
  std::unique_lock<std::mutex> lock;
  if (shared) lock = std::unique_lock(shared->mutex);  // two plans never upload the same
  std::map<Device*, Uploader> uploaders;
  for (const auto& c : constants) {
    if (c->bytes_ == 0) continue;
    std::weak_ptr<ConstantBlock>* known = nullptr;
    if (shared && c->shared_) {
      known = &shared->blocks[{c->device_, c->pieces_.front().tensor.data()}];
      if ((c->block_ = known->lock())) continue;
    }
    MGE_ASSIGN_OR_RETURN(c->block_, ConstantBlock::Acquire(*c->device_, c->bytes_));
    auto [uploader, fresh] = uploaders.try_emplace(c->device_, *c->device_);
    if (fresh) MGE_RETURN_IF_ERROR(uploader->second.SetUp());
    for (const ConstantBlock::Piece& piece : c->pieces_) {
      MGE_RETURN_IF_ERROR(uploader->second.Copy(static_cast<char*>(c->address()) + piece.offset,
                                                static_cast<const char*>(piece.tensor.data()),
                                                static_cast<uint64_t>(piece.tensor.bytes())));
    }
    if (!known) continue;
    c->block_->source = c->pieces_.front().tensor;
    *known = c->block_;
  }
  for (auto& [device, uploader] : uploaders) MGE_RETURN_IF_ERROR(uploader.Finish());
  for (const auto& c : constants) c->pieces_.clear();
  return absl::OkStatus();
}

}  // namespace mge
