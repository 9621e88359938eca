// SPDX-License-Identifier: Apache-2.0
// The layouts that strides of tensors describe, for libraries that stand in for those of a vendor.
#pragma once

#include <cstdint>
#include <vector>

namespace mge {

// Collects the tensors of a convolution: all are plain, or all have the channels last.
class LayoutsOfTensors {
 public:
  void Add(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    const size_t rank = sizes.size();
    if (rank < 3 || strides.size() != rank) return void(plain_ = last_ = false);
    int64_t step = 1;
    for (size_t d = rank; d-- > 0; step *= sizes[d]) plain_ = plain_ && strides[d] == step;
    last_ = last_ && strides[1] == 1;
    step = sizes[1];
    for (size_t d = rank; d-- > 2; step *= sizes[d]) last_ = last_ && strides[d] == step;
    last_ = last_ && strides[0] == step;
  }
  bool Agree() const { return plain_ || last_; }
  bool ChannelsLast() const { return last_ && !plain_; }

 private:
  bool plain_ = true, last_ = true;  // whether all tensors have that layout
};

}  // namespace mge
