// SPDX-License-Identifier: Apache-2.0
#include "core/plan/device_constants.h"

#include <algorithm>
#include <cstring>

#include "core/plugin/guard.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr uint64_t kAlignment = 256;  // what vector loads and copy engines of devices like best
constexpr uint64_t kPiece = 8 << 20;  // one half of the staging memory

// Copies host memory to a device in pieces: while one is on its way, the next one is staged.
class Uploader {
 public:
  explicit Uploader(Device& device) : device_(device), api_(*device.queue_api()) {}
  ~Uploader() {
    if (pieces_) WaitFor(pieces_).IgnoreError();  // after a failure: what is on its way reads the staging memory
    if (queue_) api_.destroy(queue_);
    if (fence_) api_.fence_destroy(fence_);
    if (pool_) pool_->Release(staging_);
  }

  absl::Status SetUp(uint64_t bytes) {
    piece_ = std::min(bytes, kPiece);
    MGE_ASSIGN_OR_RETURN(Pool * pool, device_.PoolOf(MGE_MEMORY_PINNED));
    MGE_ASSIGN_OR_RETURN(staging_, pool->Acquire(2 * piece_));
    pool_ = pool;
    MGE_RETURN_IF_ERROR(Call([&](mge_error* e) { return api_.create(device_.handle(), MGE_QUEUE_COPY_IN, &queue_, e); }));
    return Call([&](mge_error* e) { return api_.fence_create(device_.handle(), &fence_, e); });
  }

  absl::Status Copy(char* to, const char* from, uint64_t bytes) {
    while (bytes > 0) {
      uint64_t part = std::min(bytes, piece_), half = pieces_ % 2 * piece_;
      if (pieces_ >= 2) MGE_RETURN_IF_ERROR(WaitFor(pieces_ - 1));  // the one that used this half
      std::memcpy(static_cast<char*>(staging_.host_address) + half, from, part);
      MGE_RETURN_IF_ERROR(Call([&](mge_error* e) {
        return api_.copy(queue_, to, static_cast<char*>(staging_.address) + half, part, e);
      }));
      ++pieces_;
      MGE_RETURN_IF_ERROR(Call([&](mge_error* e) { return api_.signal(queue_, fence_, pieces_, e); }));
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
    mge_error error;
    mge_code code = CallBackend(error, f);
    return StatusOfBackend(code, error, fmt::format("device {}: uploading constants", device_.name()));
  }

  Device& device_;
  const mge_queue_api& api_;
  Pool* pool_ = nullptr;
  mge_reservation staging_ = {};
  mge_queue* queue_ = nullptr;
  mge_fence* fence_ = nullptr;
  uint64_t piece_ = 0;
  uint64_t pieces_ = 0;
};

}  // namespace

DeviceConstants::~DeviceConstants() {
  if (pool_) pool_->Release(reservation_);
}

uint64_t DeviceConstants::Add(Tensor tensor) {
  uint64_t offset = bytes_;
  bytes_ += (static_cast<uint64_t>(tensor.bytes()) + kAlignment - 1) / kAlignment * kAlignment;
  entries_.push_back({offset, std::move(tensor)});
  return offset;
}

absl::Status DeviceConstants::Upload() {
  if (bytes_ == 0) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Pool * pool, device_->PoolOf());
  MGE_ASSIGN_OR_RETURN(reservation_, pool->Acquire(bytes_, kAlignment));
  pool_ = pool;
  Uploader uploader(*device_);
  MGE_RETURN_IF_ERROR(uploader.SetUp(bytes_));
  for (const Entry& entry : entries_) {
    MGE_RETURN_IF_ERROR(uploader.Copy(static_cast<char*>(reservation_.address) + entry.offset,
                                      static_cast<const char*>(entry.tensor.data()),
                                      static_cast<uint64_t>(entry.tensor.bytes())));
  }
  MGE_RETURN_IF_ERROR(uploader.Finish());
  entries_.clear();
  return absl::OkStatus();
}

}  // namespace mge
