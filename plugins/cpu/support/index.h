// SPDX-License-Identifier: Apache-2.0
// Indices in tensors: checked against their range; negative indices count from the end.
#pragma once

#include <atomic>
#include <cstdio>

#include "mge/plugin.hpp"

namespace mge::cpu {

// Stores the first index out of range, found by any chunk.
class IndexCheck {
 public:
  // Returns the index counted from 0. If it is outside of [-bound, bound), stores it and returns 0.
  int64_t Checked(int64_t index, int64_t bound) {
    int64_t i = index < 0 ? index + bound : index;
    if (i >= 0 && i < bound) [[likely]]
      return i;
    bool expected = false;
    if (failed_.compare_exchange_strong(expected, true)) {
      index_ = index;
      bound_ = bound;
    }
    return bound > 0 ? 0 : -1;
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  // Returns MGE_OK, or MGE_OUT_OF_RANGE with a text with index and bound. Call it after all chunks.
  mge_code Answer(const mge_run* run, const char* op) const {
    if (!failed()) return MGE_OK;
    char text[160];
    int n = std::snprintf(text, sizeof(text), "%s: index %lld is outside of [%lld, %lld)", op,
                          static_cast<long long>(index_), static_cast<long long>(-bound_), static_cast<long long>(bound_));
    return run->host->fail(run->host->self, run->error, MGE_OUT_OF_RANGE, text, static_cast<uint64_t>(n));
  }

 private:
  std::atomic<bool> failed_ = false;
  int64_t index_ = 0, bound_ = 0;
};

// Reads an int32 or int64 tensor of indices.
struct IndexList {
  const void* data;
  bool wide;
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

}  // namespace mge::cpu
