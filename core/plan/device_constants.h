// SPDX-License-Identifier: Apache-2.0
// The constants of a plan that lie in a device's own memory: collected while steps are bound, uploaded once. Plans of one
// session share the large ones, and what kernels packed.
#pragma once

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
  std::weak_ptr<const void> source;  // of a shared one: as long as it lives, no other constant lies at its place

 private:
  ConstantBlock(Device& device, Pool& pool) : device_(device), pool_(pool) {}
  Device& device_;
  Pool& pool_;
  mge_reservation memory_ = {};
};

// A constant of the model as plans share it: by its place in host memory, and by the form into which a kernel packs it.
struct ConstantKey {
  const Device* device;
  const void* source;
  int64_t bytes;          // in that form
  std::string form = {};  // mge_prepared.prepack_forms; empty: as it is
  auto operator<=>(const ConstantKey&) const = default;
};

// The constants that plans of a session have uploaded and packed. Holds none of them: each goes with the last plan that uses
// it. Safe on any thread.
class SharedConstants {
 public:
  std::mutex mutex;
  std::map<ConstantKey, std::weak_ptr<ConstantBlock>> blocks;  // in memory of devices

  // The block of a device with `source`, a constant whose bytes begin at key.source; nullptr if there is none.
  std::shared_ptr<ConstantBlock> Block(const ConstantKey& key, const Tensor& source);

  // Host memory with the packed form of such a constant; undefined if no plan has it.
  Tensor Packed(const ConstantKey& key, const Tensor& source);
  // Keeps a packed form for other plans to find. Returns the one that they have already if its bytes are the same: a
  // constant that was computed while a plan was made lies at another place each time, and a kernel may promise nothing of
  // its form (key.form is then its id).
  Tensor Add(const ConstantKey& key, const Tensor& source, Tensor packed);

 private:
  struct Form {
    std::weak_ptr<const void> source, owner;
    const void* data;
  };
  static Tensor View(int64_t bytes, const Form& form);
  std::mutex packed_mutex_;
  std::map<ConstantKey, Form> packed_;
  std::map<std::pair<std::string, int64_t>, std::vector<Form>> by_bytes_;  // by form and bytes
  size_t sweep_at_ = 64;  // forms at which those that are gone are looked for
};

// What becomes of a failed request for memory that counts against a budget: OK asks again, anything else is the answer.
using WhenOver = std::function<absl::Status(absl::Status failed, const Budget& budget)>;

// Constants behind one base of a run.
class DeviceConstants {
 public:
  static constexpr uint64_t kAlignment = 256;  // what vector loads and copy engines of devices like best
  // Whether a constant of so many bytes has a block of its own, as other plans can find it; and the bytes that it takes in
  // any. A packed one needs the name of its form.
  static bool IsShared(uint64_t bytes, bool packed, bool named) {
    return bytes >= kSharedConstantBytes && (!packed || named);
  }
  static uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  DeviceConstants(Device* device, uint32_t base) : device_(device), base_(base) {}
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;

  // The offset at which it will lie. Before UploadAll() only.
  uint64_t Add(Tensor tensor);
  // The only one of a base that plans share. `source` is the model's constant; `tensor` is what to upload, undefined if
  // `block` is on the device already.
  void AddShared(ConstantKey key, Tensor source, Tensor tensor, std::shared_ptr<ConstantBlock> block);

  Device& device() const { return *device_; }
  bool shared() const { return key_.has_value(); }                // one constant of the model, alone
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
  std::optional<ConstantKey> key_;
  Tensor source_;
  uint64_t bytes_ = 0;
  std::vector<ConstantBlock::Piece> pieces_;
  std::shared_ptr<ConstantBlock> block_;
};

// Takes memory from the devices' pools and copies everything there through page-locked memory, but for what another plan has
// uploaded already. `shared` and `stop` may be nullptr. Lets go of the tensors.
absl::Status UploadAll(std::span<const std::unique_ptr<DeviceConstants>> constants, SharedConstants* shared,
                       const StopControl* stop, const WhenOver& when_over);

}  // namespace mge
