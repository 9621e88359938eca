// SPDX-License-Identifier: Apache-2.0
// Host memory for constants in few large blocks. A product with few rows reads all weights once, so its time is that of reading
// memory: the system may back a large block with huge pages, which are read faster and cost fewer page faults.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/base/tensor.h"
#include "core/plugin/devices.h"

namespace mge {

// Gives out parts of blocks of one device's host memory. A block lives as long as one of its parts. Not thread-safe.
class HostBlocks {
 public:
  explicit HostBlocks(Device& device) : device_(device) {}

  // Notes that Allocate() will be called for these bytes, so that blocks get no larger than needed.
  void Expect(int64_t bytes) { expected_ += Rounded(bytes); }

  // Creates a tensor of bytes with the alignment of the device's operands, from its host allocator. Fails as that does.
  absl::StatusOr<Tensor> Allocate(int64_t bytes);

 private:
  int64_t Rounded(int64_t bytes) const;

  Device& device_;
  int64_t expected_ = 0;
  Tensor block_;
  int64_t used_ = 0;
};

// Asks the system to back memory with huge pages. A hint, of which no failure matters.
void AdviseHugePages(void* address, int64_t bytes);

}  // namespace mge
