// SPDX-License-Identifier: Apache-2.0
// The constants of a plan in a device's own memory. PackConstants() collects them, and they are uploaded once. Plans of
// one session share large constants and packed constants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/plugin/device.h"
#include "core/plugin/stop.h"

namespace mge {

// The least size, in bytes, of a constant that has its own block, so that plans can share it.
inline constexpr uint64_t kSharedConstantBytes = 64 << 10;

// A block of a device's memory that holds constants. Owns the memory and returns it to the pool. The device must outlive it.
class ConstantBlock {
 public:
  // Constants to upload, with their offsets in the block.
  struct Piece {
    uint64_t offset;
    Tensor tensor;
  };
  static absl::StatusOr<std::shared_ptr<ConstantBlock>> Acquire(Device& device, uint64_t bytes);
  ~ConstantBlock();
  ConstantBlock(const ConstantBlock&) = delete;
  ConstantBlock& operator=(const ConstantBlock&) = delete;
  const mge_reservation& memory() const { return memory_; }
  std::weak_ptr<const void> source;  // owner of a shared constant's bytes; while it lives, their address is not reused

 private:
  ConstantBlock(Device& device, Pool& pool) : device_(device), pool_(pool) {}
  Device& device_;
  Pool& pool_;
  mge_reservation memory_ = {};
};

// The identity of a constant that plans share: device, address in host memory, and packed form.
struct ConstantKey {
  const Device* device;
  const void* source;
  int64_t bytes;          // size in that form
  std::string form = {};  // element of mge_prepared.prepack_forms; empty: not packed
  auto operator<=>(const ConstantKey&) const = default;
};

// The constants that plans of a session have uploaded or packed. Holds weak references: a constant is freed with the last
// plan that uses it. Safe on any thread.
class SharedConstants {
 public:
  std::mutex mutex;                                            // guards blocks
  std::map<ConstantKey, std::weak_ptr<ConstantBlock>> blocks;  // blocks in devices' memory

  // Returns the block that holds `source`, a constant whose bytes begin at key.source, or nullptr if there is none.
  std::shared_ptr<ConstantBlock> Block(const ConstantKey& key, const Tensor& source);

  // Returns the packed form of such a constant in host memory, or an undefined tensor if no plan has it.
  Tensor Packed(const ConstantKey& key, const Tensor& source);
  // Adds a packed form, so that other plans find it. If a plan already has a form with the same bytes, returns that one,
  // else `packed`. Keys alone do not find all equal forms. A constant that planning computes has a new address each time. A
  // kernel may give its form no name; key.form is then the kernel's id.
  Tensor Add(const ConstantKey& key, const Tensor& source, Tensor packed);

 private:
  // A packed form in host memory. Does not own it.
  struct Form {
    std::weak_ptr<const void> source, owner;
    const void* data;
  };
  static Tensor View(int64_t bytes, const Form& form);
  std::mutex packed_mutex_;
  std::map<ConstantKey, Form> packed_;
  std::map<std::pair<std::string, int64_t>, std::vector<Form>> by_bytes_;  // by name of the form and number of bytes
  size_t sweep_at_ = 64;  // size of packed_ at which expired forms are removed
};

// Callback for a request of memory that a budget refused. Returns OK to try again, else the error to return.
using WhenOver = std::function<absl::Status(absl::Status failed, const Budget& budget)>;

// The constants behind one base of a run.
class DeviceConstants {
 public:
  // Returns the alignment of constants on a device: the device's own, but at least 256, which suits vector loads and copy
  // engines.
  static uint64_t AlignmentOn(const Device& device) { return std::max<uint64_t>(256, device.BufferAlignment()); }
  // Returns true if a constant of that many bytes has its own block, which plans can share. A packed constant must have a
  // named form for that.
  static bool IsShared(uint64_t bytes, bool packed, bool named) {
    return bytes >= kSharedConstantBytes && (!packed || named);
  }
  // Returns the bytes that a constant takes in a block.
  static uint64_t Aligned(const Device& device, uint64_t bytes) {
    const uint64_t alignment = AlignmentOn(device);
    return (bytes + alignment - 1) / alignment * alignment;
  }

  DeviceConstants(Device* device, uint32_t base) : device_(device), base_(base) {}
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;

  // Adds a constant and returns its offset from the base. Must be called before UploadAll().
  uint64_t Add(Tensor tensor);
  // Sets the only constant of a base that plans share. `source` is the model's constant. `tensor` holds the bytes to upload.
  // If the constant is on the device already, `block` holds it and `tensor` is undefined.
  void AddShared(ConstantKey key, Tensor source, Tensor tensor, std::shared_ptr<ConstantBlock> block);

  Device& device() const { return *device_; }
  bool shared() const { return key_.has_value(); }                // true: holds one constant, which plans share
  uint32_t base() const { return base_; }                         // index of the base in a run
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }  // alignment included
  // Returns the address on the device, or nullptr before the upload.
  void* address() const { return block_ ? block_->memory().address : nullptr; }
  // Returns the bytes that the pool reserved, or 0 before the upload.
  uint64_t held_bytes() const { return block_ ? block_->memory().bytes : 0; }

 private:
  friend absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>>, SharedConstants*, const StopControl*,
                                const WhenOver&);
  Device* device_;
  uint32_t base_;
  std::optional<ConstantKey> key_;
  Tensor source_;
  uint64_t bytes_ = 0;
  std::vector<ConstantBlock::Piece> pieces_;
  std::shared_ptr<ConstantBlock> block_;
};

// Allocates memory from the devices' pools and copies the constants there through page-locked memory. Skips constants that
// another plan has uploaded. Releases the tensors. `shared` and `stop` may be null. Holds shared->mutex during the upload.
absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>> constants, SharedConstants* shared,
                       const StopControl* stop, const WhenOver& when_over);

}  // namespace mge
