// SPDX-License-Identifier: Apache-2.0
// The constants in a device's own memory, and the table by which the plans of a runtime share them and packed forms.
//
// A large constant has a block of its own. The small constants that a plan adds to a device share a block. A later plan that
// reads one of them uses the same block, so a second signature of inputs, or a second session of the same file, adds no second
// copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/plugin/device.h"

namespace mge {

class Graph;  // core/graph/graph.h

// The least size, in bytes, of a constant that has its own block.
inline constexpr uint64_t kOwnBlockBytes = 64 << 10;

// A block of a device's memory that holds constants. Owns the memory and returns it to the pool. The device must outlive it.
class ConstantBlock {
 public:
  // `single`: the block holds one constant.
  static absl::StatusOr<std::shared_ptr<ConstantBlock>> Acquire(Device& device, uint64_t bytes, bool single);
  ~ConstantBlock();
  ConstantBlock(const ConstantBlock&) = delete;
  ConstantBlock& operator=(const ConstantBlock&) = delete;
  Device& device() const { return device_; }
  bool single() const { return single_; }
  uint64_t bytes() const { return bytes_; }  // as requested; the pool may have reserved more
  const mge_reservation& memory() const { return memory_; }

 private:
  ConstantBlock(Device& device, Pool& pool, uint64_t bytes, bool single)
      : device_(device), pool_(pool), bytes_(bytes), single_(single) {}
  Device& device_;
  Pool& pool_;
  const uint64_t bytes_;
  const bool single_;
  mge_reservation memory_ = {};
};

// The identity of a constant that plans share: device, source, and packed form.
struct ConstantKey {
  const Device* device;      // nullptr: plain host memory
  const void* source;        // its address, or its LazyBytes; nullptr if `content` identifies it
  int64_t bytes;             // size in that form
  std::string form;          // element of mge_prepared.prepack_forms; empty: not packed
  std::string content = {};  // LazyBytes::key(), which sessions of the same file share
  auto operator<=>(const ConstantKey&) const = default;
};

// Returns the key of a form of `source` that has `bytes` bytes.
ConstantKey KeyOf(const Device* device, const Tensor& source, int64_t bytes, std::string form = {});

// A constant in a block.
struct PlacedConstant {
  std::shared_ptr<ConstantBlock> block;  // nullptr: there is none
  uint64_t offset = 0;
};

// Held while a plan of a session packs and uploads its constants, so that no two plans add the same constant. The plans of
// two sessions may do so; SharedConstants keeps one of the forms.
struct ConstantPlacing {
  std::mutex mutex;                                               // guards the members below
  std::set<std::pair<const Device*, std::string>> packs_on_host;  // kernels whose prepack_on is unimplemented
};

// A reader of the lazy constants of a graph while a plan is made: backends see the bytes of all constants.
class ConstantReader {
 public:
  explicit ConstantReader(const Graph& graph);
  ~ConstantReader();
  ConstantReader(const ConstantReader&) = delete;
  ConstantReader& operator=(const ConstantReader&) = delete;

 private:
  std::vector<Tensor> lazy_;
};

// The constants that plans of a runtime have uploaded or packed. Holds weak references: a constant is freed with the last
// plan that uses its block or its form. Safe on any thread.
class SharedConstants {
 public:
  // Returns the place of `source`, a constant whose bytes begin at key.source, in a device's memory.
  PlacedConstant Find(const ConstantKey& key, const Tensor& source) const;
  // Adds an uploaded constant, so that other plans find it.
  void Add(const ConstantKey& key, const Tensor& source, const PlacedConstant& placed);

  // Returns the packed form of such a constant in host memory, or an undefined tensor if no plan has it.
  Tensor Packed(const ConstantKey& key, const Tensor& source);
  // Adds a packed form, so that other plans find it. If a plan already has a form with the same bytes, returns that one,
  // else `packed`. Keys alone do not find all equal forms. A constant that planning computes has a new address each time. A
  // kernel may give its form no name; key.form is then the kernel's id.
  Tensor AddPacked(const ConstantKey& key, const Tensor& source, Tensor packed);

  // Removes the entries of constants that were freed. Allocates nothing.
  void RemoveExpired();

 private:
  void SweepPlaced();
  void SweepPacked();

  // A constant in a device's memory. Does not own it.
  struct Known {
    std::weak_ptr<const void> source;  // owner of the constant's bytes; while it lives, their address is not reused
    std::weak_ptr<ConstantBlock> block;
    uint64_t offset;
  };
  // A packed form in host memory. Does not own it.
  struct Form {
    std::weak_ptr<const void> source, owner;
    const void* data;
  };
  static Tensor View(int64_t bytes, const Form& form);
  mutable std::mutex mutex_;  // guards the members below
  std::map<ConstantKey, Known> placed_;
  std::map<ConstantKey, Form> packed_;
  // By name of the form, number of bytes, and a hash of some of the bytes.
  std::map<std::tuple<std::string, int64_t, uint64_t>, std::vector<Form>> by_bytes_;
  size_t sweep_placed_at_ = 64, sweep_packed_at_ = 64;  // sizes at which expired entries are removed
};

// Callback for a request of memory that a budget refused. Returns OK to try again, else the error to return.
using WhenOver = std::function<absl::Status(absl::Status failed, const Budget& budget)>;

// Calls `request`, which returns a status, until it succeeds or `when_over` returns an error.
template <typename F>
absl::Status Insist(const WhenOver& when_over, const Budget& budget, F&& request) {
  for (;;) {
    absl::Status status = request();
    if (status.ok()) return status;
    MGE_RETURN_IF_ERROR(when_over(std::move(status), budget));
  }
}

// The constants behind one base of a plan's runs: a block that the plan adds, or that another plan has added.
class DeviceConstants {
 public:
  // Returns the alignment of constants on a device: the device's own, but at least 256, which suits vector loads and copy
  // engines.
  static uint64_t AlignmentOn(const Device& device) { return std::max<uint64_t>(256, device.BufferAlignment()); }
  // Returns true if a constant of that many bytes has its own block. A packed constant needs a named form for that.
  static bool HasOwnBlock(uint64_t bytes, bool packed, bool named) { return bytes >= kOwnBlockBytes && (!packed || named); }
  // Returns the bytes that a constant takes in a block.
  static uint64_t Aligned(const Device& device, uint64_t bytes) {
    const uint64_t alignment = AlignmentOn(device);
    return (bytes + alignment - 1) / alignment * alignment;
  }

  DeviceConstants(Device* device, uint32_t base, bool single) : device_(device), base_(base), single_(single) {}
  DeviceConstants(std::shared_ptr<ConstantBlock> block, uint32_t base)
      : device_(&block->device()), base_(base), single_(block->single()), bytes_(block->bytes()), block_(std::move(block)) {}
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;

  // Makes room for a constant and returns its offset from the base. Must be called before Acquire().
  uint64_t Add(uint64_t bytes) { return std::exchange(bytes_, bytes_ + Aligned(*device_, bytes)); }
  // Allocates the block, if there is none and a constant was added.
  absl::Status Acquire(const WhenOver& when_over);

  Device& device() const { return *device_; }
  bool single() const { return single_; }                                 // true: holds one constant
  uint32_t base() const { return base_; }                                 // index of the base in a run
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }          // alignment included
  const std::shared_ptr<ConstantBlock>& block() const { return block_; }  // nullptr before Acquire()
  // Returns the address on the device, or nullptr before Acquire().
  void* address() const { return block_ ? block_->memory().address : nullptr; }
  // Returns the bytes that the pool reserved, or 0 before Acquire().
  uint64_t held_bytes() const { return block_ ? block_->memory().bytes : 0; }

 private:
  Device* device_;
  uint32_t base_;
  bool single_;
  uint64_t bytes_ = 0;
  std::shared_ptr<ConstantBlock> block_;
};

}  // namespace mge
