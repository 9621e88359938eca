// SPDX-License-Identifier: Apache-2.0
// Host memory for constants in few large blocks. A product with few rows reads all weights once, so its time is that of reading
// memory: the system may back a large block with huge pages, which are read faster and cost fewer page faults.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/base/tensor.h"
#include "core/plugin/devices.h"

namespace mge {

// Gives out parts of blocks. A block lives as long as one of its parts. Not thread-safe.
class HostBlocks {
 public:
  // Notes that Allocate() will be called for these bytes, so that blocks get no larger than needed.
  void Expect(int64_t bytes, const Device& device) { expected_ += Rounded(bytes, device); }

  // Creates a tensor of bytes with the alignment of the device's operands, from its host allocator. Fails as that does.
  absl::StatusOr<Tensor> Allocate(int64_t bytes, Device& device);

 private:
  static int64_t Rounded(int64_t bytes, const Device& device);

  int64_t expected_ = 0;
  const Device* device_ = nullptr;  // that of the block
  Tensor block_;
  int64_t used_ = 0;
};

// Asks the system to back memory with huge pages. A hint, of which no failure matters.
void AdviseHugePages(void* address, int64_t bytes);

}  // namespace mge
