// SPDX-License-Identifier: Apache-2.0
// Window arithmetic of convolution and pooling, once: output sizes, pads, auto_pad, ceil_mode.
//
// Shape rules, reference evaluators and backends all read the same resolved Window:
//
//   MGE_ASSIGN_OR_RETURN(Window window, ResolveWindow(attrs, {224, 224}, {7, 7}));
//   window[0].out        // 112 for strides=[2,2], pads=[3,3,3,3]
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/shape.h"
#include "core/graph/attribute.h"

namespace mge {

// [begin, end); empty if end <= begin.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// One spatial axis with every attribute resolved. Output o reads, for each tap k in [0, kernel),
// the input at Position(o, k); positions outside of [0, in) are padding.
struct WindowAxis {
  int64_t in = 0;  // kUnknownDim if not known yet; `out` is then unknown too, and so are pads of
                   // auto_pad SAME_*
  int64_t out = 0;
  int64_t kernel = 1;  // taps; kUnknownDim where the weights' shape is unknown
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;  // negative pads crop the input
  int64_t pad_end = 0;

  int64_t Extent() const { return (kernel - 1) * dilation + 1; }
  int64_t Position(int64_t output, int64_t tap) const {
    return output * stride - pad_begin + tap * dilation;
  }
  // Taps of this output that lie inside of the input.
  IndexRange TapsInside(int64_t output) const;
  // Outputs whose tap lies inside of the input.
  IndexRange OutputsInside(int64_t tap) const;
};

using Window = absl::InlinedVector<WindowAxis, 3>;

// The largest stride, dilation, kernel or pad that is accepted.
inline constexpr int64_t kMaxWindowParameter = (int64_t{1} << 31) - 1;

// Reads auto_pad, pads, strides, dilations and ceil_mode. `in` and `kernel` hold the spatial sizes
// (kUnknownDim allowed). Pads beside auto_pad are ignored. kInvalidNode for lists of a wrong length,
// values out of range, and a kernel that does not fit the padded input. With ceil_mode the output's
// formula decides: a kernel that is too large by less than a stride has one output.
absl::StatusOr<Window> ResolveWindow(const Attributes& attrs, std::span<const int64_t> in,
                                     std::span<const int64_t> kernel);

// For ConvTranspose and MaxUnpool, which run a window backwards: reads output_padding and
// output_shape as well. In the result `in` is the size of what the operator produces and `out` the
// size of what it reads, so that Position(i, k) is the place in the product to which element i
// contributes through tap k.
absl::StatusOr<Window> ResolveTransposedWindow(const Attributes& attrs, std::span<const int64_t> in,
                                               std::span<const int64_t> kernel);

// The attribute kernel_shape, checked against the number of spatial axes; kInvalidNode where absent
// or not positive.
absl::StatusOr<Ints> KernelShape(const Attributes& attrs, size_t axes);

// The sizes along all axes.
Shape WindowOutputs(const Window& window);
Shape WindowInputs(const Window& window);

// A row of taps: offsets of the input row and of the weights' row that meet along the last axis.
struct TapRow {
  int64_t input = 0;
  int64_t weights = 0;
};

// All pairs of rows that contribute to the output row at `index` (all axes but the last), with
// padding left out.
void CollectTapRows(const Window& window, std::span<const int64_t> index,
                    std::vector<TapRow>& rows);

// True if every output reads exactly its own position: kernel 1, stride 1, no pads.
bool IsPointwise(const Window& window);

}  // namespace mge
