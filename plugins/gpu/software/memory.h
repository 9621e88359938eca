// SPDX-License-Identifier: Apache-2.0
// Memory of one software GPU: a fixed amount, at addresses that the host cannot use (address.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::software {

// A stretch of addresses with inaccessible pages before and behind it. Unmapped when its last owner lets go.
class Mapping {
 public:
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  // Null if the system has no more.
  static std::shared_ptr<Mapping> Make(uint64_t bytes);

  char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  friend class Memory;
  Mapping(char* data, uint64_t bytes, uint64_t mapped) : data_(data), bytes_(bytes), mapped_(mapped) {}
  char* data_;
  uint64_t bytes_;
  uint64_t mapped_;              // without the pages around it
  std::vector<bool> committed_;  // of a range, by granule; guarded by Memory
  bool range_ = false;
};

// Keeps a mapping while work uses it, though its memory may be freed meanwhile.
using Pin = std::shared_ptr<const Mapping>;

// [any]
class Memory {
 public:
  static constexpr uint64_t kGranularity = 64 << 10;  // of ranges

  // With `poison`, new memory holds 0xff bytes: NaN in every type of float. Else zeros.
  Memory(uint64_t capacity, bool poison) : capacity_(capacity), poison_(poison) {}

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const;

  // MGE_RESOURCE_EXHAUSTED above the capacity. The address is that of a page.
  Result Allocate(uint64_t bytes, void** out);
  // What runs now and uses it is not disturbed; what runs later and names it fails.
  void Free(const void* address);

  // Addresses without memory; bytes and offsets are multiples of kGranularity. Free() gives back what is left.
  Result Reserve(uint64_t bytes, void** out);
  Result Commit(const void* range, uint64_t offset, uint64_t bytes);
  void Decommit(const void* range, uint64_t offset, uint64_t bytes);

  // What holds `bytes` bytes at a device address; null unless all of them are memory of this device.
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
