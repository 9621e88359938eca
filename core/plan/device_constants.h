// SPDX-License-Identifier: Apache-2.0
// The constants of a plan that lie in a device's own memory: collected while steps are bound, uploaded once. Plans of one
// session share the large ones, and what kernels packed in host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/plugin/device.h"
#include "core/plugin/stop.h"

namespace mge {

// From this size on a constant of the model has memory of its own, which plans can share.
inline constexpr uint64_t kSharedConstantBytes = 64 << 10;

// Memory of a device, with constants in it. Borrows the device.
class ConstantBlock {
 public:
  struct Piece {
    uint64_t offset;
    Tensor tensor;
  };
  static absl::StatusOr<std::shared_ptr<ConstantBlock>> Acquire(Device& device, uint64_t bytes);
  ~ConstantBlock();
  ConstantBlock(const ConstantBlock&) = delete;
  ConstantBlock& operator=(const ConstantBlock&) = delete;
  const mge_reservation& memory() const { return memory_; }
  Tensor source;  // of a shared one: its address is the key as long as the block lives

 private:
  ConstantBlock(Device& device, Pool& pool) : device_(device), pool_(pool) {}
  Device& device_;
  Pool& pool_;
  mge_reservation memory_ = {};
};

// What the plans of a session have uploaded and packed. Safe on any thread.
class SharedConstants {
 public:
  using Key = std::tuple<const Device*, const void*, int64_t>;
  std::mutex mutex;
  std::map<Key, std::weak_ptr<ConstantBlock>> blocks;  // by the place in host memory and the bytes

  // Whether this one is on the device already.
  bool Holds(const Device& device, const Tensor& constant);
  // A constant in host memory as `kernel` packed it: what another plan keeps already, if its bytes are the same. (How a kernel
  // packs may depend on anything in its problem, so the bytes alone tell.)
  Tensor Packed(const std::string& kernel, Tensor packed);

 private:
  struct Form {
    std::weak_ptr<const void> owner;
    const void* data;
  };
  std::mutex packed_mutex_;
  std::map<std::pair<std::string, int64_t>, std::vector<Form>> packed_;  // by kernel and bytes
};

// What becomes of a failed request for memory that counts against a budget: OK asks again, anything else is the answer.
using WhenOver = std::function<absl::Status(absl::Status failed, const Budget& budget)>;

// Constants behind one base of a run.
class DeviceConstants {
 public:
  static constexpr uint64_t kAlignment = 256;  // what vector loads and copy engines of devices like best
  // Whether a constant of so many bytes has a block of its own; and the bytes that it takes in any.
  static bool IsShared(uint64_t bytes, bool packed) { return !packed && bytes >= kSharedConstantBytes; }
  static uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  DeviceConstants(Device* device, uint32_t base, bool shared) : device_(device), base_(base), shared_(shared) {}
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;

  // The offset at which it will lie. Before UploadAll() only.
  uint64_t Add(Tensor tensor);

  Device& device() const { return *device_; }
  bool shared() const { return shared_; }                         // one constant of the model, alone
  uint32_t base() const { return base_; }                         // of a run that uses them
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }  // alignment included
  // On the device, once uploaded; and the bytes as its pool rounded them.
  void* address() const { return block_ ? block_->memory().address : nullptr; }
  uint64_t held_bytes() const { return block_ ? block_->memory().bytes : 0; }

 private:
  friend absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>>, SharedConstants*, const StopControl*,
                                const WhenOver&);
  Device* device_;
  uint32_t base_;
  bool shared_;
  uint64_t bytes_ = 0;
  std::vector<ConstantBlock::Piece> pieces_;
  std::shared_ptr<ConstantBlock> block_;
};

// Takes memory from the devices' pools and copies everything there through page-locked memory, but for what another plan has
// uploaded already. `shared` and `stop` may be nullptr. Lets go of the tensors.
absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>> constants, SharedConstants* shared,
                       const StopControl* stop, const WhenOver& when_over);

}  // namespace mge
