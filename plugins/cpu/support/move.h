// SPDX-License-Identifier: Apache-2.0
// Moving elements: an operator as a list of strided copies that write disjoint parts of its outputs. Transposes, slices,
// concatenations, broadcasts, pads and changes of layout are all of this form.
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

// Element strides of a tensor's logical dimensions, lying plainly or with channels last.
std::vector<int64_t> StridesIn(std::span<const int64_t> dims, bool channels_last);

// One box of elements. Strides in elements, of any sign; offsets are those of element (0, 0, ...).
struct Copy {
  int32_t input = 0;          // of the problem; kValue: `value` for every element
  int32_t output = 0;
  int64_t from_offset = 0;
  int64_t to_offset = 0;
  uint64_t value = 0;
  std::vector<int64_t> dims = {}, from_strides = {}, to_strides = {};
};
inline constexpr int32_t kValue = -1;

struct CopyArgs {
  enum Shape : int32_t { kLines, kSplat, kStrided, kTranspose };
  Slot from, to;
  bool has_value = false;
  uint8_t bytes = 0;
  Shape shape = kLines;
  int32_t rank = 0;           // of the outer dimensions
  uint64_t value = 0;
  int64_t from_offset = 0, to_offset = 0;  // bytes
  int64_t dims[kMaxCopyDims] = {}, from_strides[kMaxCopyDims] = {}, to_strides[kMaxCopyDims] = {};  // strides in bytes
  int64_t n = 1, from_step = 1;            // the innermost dimension of the target, where it is contiguous
  int64_t to_step = 1;                     // elements
  int64_t columns = 1, rows_step = 1, columns_step = 1;  // kTranspose: of the source, of the target
  uint64_t units = 1;                      // pieces that may be done in any order
  uint64_t first_unit = 0;
};

// Copies in the order of the list (disjoint targets); empty ones are dropped.
class Moves {
 public:
  // `bytes`: size of an element. False if a copy has too many dimensions.
  bool Add(const Copy& copy, uint32_t bytes, Isa isa);
  double serial_us() const;
  KernelPtr MakeKernel() &&;
  const std::vector<CopyArgs>& copies() const { return copies_; }

 private:
  friend class MoveKernel;
  std::vector<CopyArgs> copies_;
  std::vector<std::pair<int32_t, int32_t>> operands_;  // input, output of each
  Isa isa_ = Isa::kPortable;
  double us_ = 0;     // without the traffic of memory
  double bytes_ = 0;  // read and written
};

}  // namespace mge::cpu
