// SPDX-License-Identifier: Apache-2.0
// The memory of one software GPU: a fixed amount, at addresses that the host cannot access (address.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::software {

// A range of addresses with inaccessible pages before and after it. Its last owner unmaps it.
class Mapping {
 public:
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  // Returns null if the system has no more memory.
  static std::shared_ptr<Mapping> Make(uint64_t bytes);

  char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  friend class Memory;
  Mapping(char* data, uint64_t bytes, uint64_t mapped) : data_(data), bytes_(bytes), mapped_(mapped) {}
  char* data_;
  uint64_t bytes_;
  uint64_t mapped_;              // bytes without the inaccessible pages
  std::vector<bool> committed_;  // of a range, per granule; guarded by Memory
  bool range_ = false;
};

// A reference that keeps a mapping alive while work uses it, even if its memory is freed.
using Pin = std::shared_ptr<const Mapping>;

// The allocator of a device. [any]
class Memory {
 public:
  static constexpr uint64_t kGranularity = 64 << 10;  // of ranges

  // With `poison`, new memory contains 0xff bytes, which are NaN in every floating type. Otherwise zeros.
  Memory(uint64_t capacity, bool poison) : capacity_(capacity), poison_(poison) {}

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const;

  // Fails with MGE_RESOURCE_EXHAUSTED above the capacity. The address is page-aligned.
  Result Allocate(uint64_t bytes, void** out);
  // Frees memory or a range. Running work that uses it is not affected; later work that uses it fails.
  void Free(const void* address);

  // Reserves addresses without memory, to be freed by Free(). Bytes and offsets are multiples of kGranularity.
  Result Reserve(uint64_t bytes, void** out);
  Result Commit(const void* range, uint64_t offset, uint64_t bytes);
  void Decommit(const void* range, uint64_t offset, uint64_t bytes);

  // Returns the mapping of `bytes` bytes at a device address, or null unless all of them are memory of this device.
  Pin Find(const void* address, uint64_t bytes) const;

 private:
  Result CheckRoom(uint64_t bytes) const;

  const uint64_t capacity_;
  const bool poison_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0;
  std::map<const char*, std::shared_ptr<Mapping>> mappings_;  // by data()
};

}  // namespace mge::software
