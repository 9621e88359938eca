// SPDX-License-Identifier: Apache-2.0
// Moves elements: an operator as a list of strided copies to disjoint parts of its outputs. Transposes, slices,
// concatenations, broadcasts, pads and layout changes have this form.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mge/plugin.hpp"
#include "support/work.h"
#include "types.h"
#include "vec/transpose.h"

namespace mge::cpu {

inline constexpr int kMaxCopyDims = 10;

// Returns the element strides of a tensor's logical dimensions, plain or with channels last.
std::vector<int64_t> StridesIn(std::span<const int64_t> dims, bool channels_last);

// A box of elements. Strides are in elements and may be negative; offsets are those of element (0, 0, ...).
struct Copy {
  int32_t input = 0;  // operand number in the problem; kValue: `value` for every element
  int32_t output = 0;
  int64_t from_offset = 0;
  int64_t to_offset = 0;
  uint64_t value = 0;
  std::vector<int64_t> dims = {}, from_strides = {}, to_strides = {};
};
inline constexpr int32_t kValue = -1;

// A copy prepared for execution.
struct CopyArgs {
  enum Shape : int32_t { kLines, kSplat, kStrided, kTranspose };
  Slot from, to;
  bool has_value = false;
  uint8_t bytes = 0;
  Shape shape = kLines;
  int32_t rank = 0;  // number of outer dimensions
  uint64_t value = 0;
  int64_t from_offset = 0, to_offset = 0;                                                           // in bytes
  int64_t dims[kMaxCopyDims] = {}, from_strides[kMaxCopyDims] = {}, to_strides[kMaxCopyDims] = {};  // strides in bytes
  int64_t n = 1, from_step = 1;                          // the target's innermost dimension, which is contiguous
  int64_t to_step = 1;                                   // in elements
  int64_t columns = 1, rows_step = 1, columns_step = 1;  // kTranspose: columns of the source, steps of the target
  uint64_t units = 1;                                    // parts that may run in any order
  uint64_t first_unit = 0;
};

// A list of copies with disjoint targets. Empty copies are dropped.
class Moves {
 public:
  // Adds a copy of elements of `bytes` bytes. Returns false if it has too many dimensions.
  bool Add(const Copy& copy, uint32_t bytes, Isa isa);
  double serial_us() const;
  KernelPtr MakeKernel() &&;
  const std::vector<CopyArgs>& copies() const { return copies_; }

 private:
  friend class MoveKernel;
  std::vector<CopyArgs> copies_;
  std::vector<std::pair<int32_t, int32_t>> operands_;  // input and output of each copy
  Isa isa_ = Isa::kPortable;
  double us_ = 0;     // without the traffic of memory
  double bytes_ = 0;  // read and written
};

}  // namespace mge::cpu
