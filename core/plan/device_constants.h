// SPDX-License-Identifier: Apache-2.0
// The constants of a plan that lie in a device's own memory: collected while steps are bound, uploaded once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/tensor.h"
#include "core/plugin/device.h"

namespace mge {

// Borrows the device, which must outlive it.
class DeviceConstants {
 public:
  DeviceConstants(Device* device, uint32_t base) : device_(device), base_(base) {}
  ~DeviceConstants();
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;

  // The offset at which it will lie. Before Upload() only.
  uint64_t Add(Tensor tensor);
  // Takes memory from the device's pool and copies everything there through page-locked memory; lets go of the tensors.
  absl::Status Upload();

  Device& device() const { return *device_; }
  uint32_t base() const { return base_; }                         // of a run that uses them
  void* address() const { return reservation_.address; }          // on the device, once uploaded
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }  // alignment included
  uint64_t held_bytes() const { return reservation_.bytes; }      // as the pool rounded them

 private:
  struct Entry {
    uint64_t offset;
    Tensor tensor;
  };
  Device* device_;
  uint32_t base_;
  uint64_t bytes_ = 0;
  std::vector<Entry> entries_;
  Pool* pool_ = nullptr;
  mge_reservation reservation_ = {};
};

}  // namespace mge
