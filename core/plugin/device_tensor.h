// SPDX-License-Identifier: Apache-2.0
// Tensors in the memory of a device, or in page-locked host memory.
//
// A tensor that lies in memory of a device owns a DeviceMemory. Only code that has checked DeviceMemory::OnHost() may access
// its elements. Every other tensor lies in plain host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/plugin/device.h"
#include "mge/memory_handles.h"

namespace mge {

// The memory of a tensor on a device. Tensors share it, and the last one releases it.
class DeviceMemory {
 public:
  // Creates a tensor with undefined elements in memory of the device's pool. `memory_class` is MGE_MEMORY_DEVICE, or
  // MGE_MEMORY_PINNED for host memory that the device's copy queues can access. The tensor keeps the device and `keep`
  // (optional), its runtime, alive. Fails with kInvalidTensor for strings, with kDeviceUnusable for page-locked memory of a
  // device without queues, and with errors of the pool.
  static absl::StatusOr<Tensor> Create(Device& device, int32_t memory_class, DType dtype, Shape shape,
                                       std::shared_ptr<const void> keep);

  // Creates a tensor that uses memory of the caller. `address` is valid on the device; for page-locked memory it is also the
  // host's address. `release` is called once the last tensor is destroyed, also if this function fails. Fails with
  // kInvalidTensor if the size or the alignment is wrong.
  static absl::StatusOr<Tensor> Wrap(Device& device, int32_t memory_class, DType dtype, Shape shape, void* address,
                                     uint64_t bytes, std::function<void()> release, std::shared_ptr<const void> keep);

  // Creates a tensor that uses memory of the caller on the device, from `offset` on. `handle` is the driver's object for that
  // memory. `release` is called like that of Wrap(). Fails with kDeviceUnusable if the backend cannot use handles, with
  // kInvalidTensor if the size or the alignment is wrong, and with errors of the backend.
  static absl::StatusOr<Tensor> WrapHandle(Device& device, DType dtype, Shape shape, void* handle, uint64_t offset,
                                           uint64_t bytes, std::function<void()> release, std::shared_ptr<const void> keep);

  // Returns the memory of the tensor, or nullptr if it is plain host memory.
  static const DeviceMemory* Of(const Tensor& tensor) { return tensor.device_memory(); }
  // Returns whether the host may access the elements.
  static bool OnHost(const Tensor& tensor) {
    const DeviceMemory* memory = Of(tensor);
    return !memory || memory->on_host();
  }

  Device& device() const { return *device_; }
  bool pinned() const { return memory_class_ == MGE_MEMORY_PINNED; }
  bool on_host() const { return pinned() || device_->Is(MGE_DEVICE_HOST_ACCESSIBLE); }
  // Returns the address by which queues of the device access the byte at `data`, an address within the tensor.
  void* QueueAddress(const void* data) const {
    return static_cast<char*>(queue_address_) + (static_cast<const char*>(data) - static_cast<const char*>(address_));
  }

  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

 private:
  DeviceMemory(Device& device, int32_t memory_class) : device_(device.shared_from_this()), memory_class_(memory_class) {}
  // Creates the tensor of memory of the caller. Fails with kInvalidTensor if the size or the alignment is wrong.
  static absl::StatusOr<Tensor> ViewOfCallers(std::unique_ptr<DeviceMemory> memory, DType dtype, Shape shape,
                                              uint64_t bytes);
  static Tensor View(std::unique_ptr<DeviceMemory> memory, DType dtype, Shape shape);

  std::shared_ptr<const void> keep_;  // destroyed last
  std::shared_ptr<Device> device_;
  int32_t memory_class_;
  void* address_ = nullptr;                          // of the tensor; in page-locked memory the host's address
  void* queue_address_ = nullptr;                    // of the same byte for queues of the device
  Pool* pool_ = nullptr;                             // nullptr: not from a pool
  mge_reservation reservation_ = {};                 // from pool_
  std::shared_ptr<std::byte> host_;                  // memory of a device without queues
  std::function<void()> release_ = {};               // for memory of the caller
  const mge_memory_handles_api* handles_ = nullptr;  // nullptr: no memory by its handle
  mge_slab slab_ = {};                               // from handles_
};

// Copies the elements of `from` into the memory of `to`, which has the same type and shape. Each may be in host memory or on
// any device. Waits until the copy is done. Fails with kInvalidTensor if types or shapes differ, or with an error of a
// device.
absl::Status CopyTensor(const Tensor& from, Tensor& to);

// Returns a tensor in plain host memory with the elements of `from`: a copy, or `from` itself if it lies there.
absl::StatusOr<Tensor> ToHost(const Tensor& from);

}  // namespace mge
