// SPDX-License-Identifier: Apache-2.0
// A buffer that shows writes outside of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mge::testing {

// A buffer between two red zones. Its address is a multiple of 64.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes) : bytes_(bytes), memory_(static_cast<size_t>(bytes + 3 * kRedZone), kCanary) {
    auto address = reinterpret_cast<uintptr_t>(memory_.data()) + kRedZone;
    data_ = reinterpret_cast<unsigned char*>((address + 63) / 64 * 64);
  }
  unsigned char* data() { return data_; }
  int64_t bytes() const { return bytes_; }
  void Reset() { std::fill(memory_.begin(), memory_.end(), kCanary); }
  bool Intact() const {
    auto ok = [](unsigned char c) { return c == kCanary; };
    return std::all_of(memory_.data(), static_cast<const unsigned char*>(data_), ok) &&
           std::all_of(static_cast<const unsigned char*>(data_) + bytes_, memory_.data() + memory_.size(), ok);
  }

 private:
  static constexpr int64_t kRedZone = 64;
  static constexpr unsigned char kCanary = 0xa5;
  int64_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char* data_;
};

}  // namespace mge::testing
