// SPDX-License-Identifier: Apache-2.0
// Keeps NaN in results of oneDNN. Its code limits numbers with instructions that return the other operand if one is NaN, so
// that a fused Relu or a MaxPool loses NaN. Each of these instructions sets the thread's invalid flag. A primitive whose flag
// is set at its end is repaired; the flag costs nothing where no NaN is.
#pragma once

#include <cfenv>
#include <cstdint>

#include "onednn_library.h"
#include "support/epilogue.h"

namespace mge::cpu::onednn {

// While it exists, tells whether the calling thread has met a NaN or made one.
class InvalidFlag {
 public:
  InvalidFlag() : before_(std::fetestexcept(FE_INVALID)) { std::feclearexcept(FE_INVALID); }
  ~InvalidFlag() {
    if (before_) std::feraiseexcept(FE_INVALID);
  }
  InvalidFlag(const InvalidFlag&) = delete;
  InvalidFlag& operator=(const InvalidFlag&) = delete;
  bool is_set() const { return std::fetestexcept(FE_INVALID) != 0; }

 private:
  int before_;
};

bool AllFinite(const float* x, uint64_t count);

// Sets y[i] = act(y[i] + linear[i]), or act(linear[i]) if not `adds`.
void Activate(const Epilogue& e, bool adds, const float* linear, float* y, uint64_t count);
// Copies the elements of `linear` that are NaN.
void CopyNaN(const float* linear, float* y, uint64_t count);

// A maximum pooling of channels-last images that contain `rows` x `columns` pixels from (first_row, first_column) on. Output
// rows and columns are those of [row_begin, row_end) and [column_begin, column_end).
struct PooledImages {
  int64_t images, channels, rows, columns, first_row, first_column, row_begin, row_end, column_begin, column_end;
  const ConvWindows* windows;
};
// Sets each output whose window contains NaN to NaN.
void PoolNaN(const PooledImages& p, const float* x, float* y);

}  // namespace mge::cpu::onednn
