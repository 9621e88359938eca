// SPDX-License-Identifier: Apache-2.0
// Window arithmetic of convolution and pooling: output sizes, pads, auto_pad and ceil_mode.
//
// Shape rules, reference evaluators and backends use the same resolved Window:
//
//   MGE_ASSIGN_OR_RETURN(Window window, ResolveWindow(attrs, {224, 224}, {7, 7}));
//   window[0].out        // 112 for strides=[2,2], pads=[3,3,3,3]
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/shape.h"
#include "core/ops/op.h"

namespace mge {

// The attributes of operators with windows.
inline constexpr Attr kAutoPadAttr = {
    "auto_pad", "NOTSET", "NOTSET: see pads. Models may also have VALID, SAME_UPPER and SAME_LOWER, which become pads"};
inline constexpr Attr kCeilModeAttr = {"ceil_mode", 0, "not 0: a last window may begin in the input and end outside"};
inline constexpr Attr kDilationsAttr = {"dilations", AttrType::kInts, Presence::kNormal,
                                        "steps between the taps of a window; 1 if a model lacks it"};
inline constexpr Attr kFilterShapeAttr = {"kernel_shape", AttrType::kInts, Presence::kNormal,
                                          "sizes of the window; those of the weights if a model lacks it"};
inline constexpr Attr kWindowShapeAttr = {"kernel_shape", AttrType::kInts, Presence::kRequired, "sizes of the window"};
inline constexpr Attr kPadsAttr = {"pads", AttrType::kInts, Presence::kNormal,
                                   "padding before all axes, then after them; 0 if a model lacks it"};
inline constexpr Attr kStridesAttr = {"strides", AttrType::kInts, Presence::kNormal,
                                      "steps between windows; 1 if a model lacks it"};

// The indices in [begin, end). The range is empty if end <= begin.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// One spatial axis with all attributes resolved. For each tap k in [0, kernel), output o reads the input at
// Position(o, k). Positions outside of [0, in) are padding.
struct WindowAxis {
  int64_t in = 0;  // kUnknownDim if not known; then `out` and the pads of
                   // auto_pad SAME_* are unknown too
  int64_t out = 0;
  int64_t kernel = 1;  // number of taps; kUnknownDim if the weights' shape is unknown
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;  // negative pads crop the input
  int64_t pad_end = 0;

  int64_t Extent() const { return (kernel - 1) * dilation + 1; }
  int64_t Position(int64_t output, int64_t tap) const { return output * stride - pad_begin + tap * dilation; }
  // Returns the taps of this output that read the input and not padding.
  IndexRange TapsInside(int64_t output) const;
  // Returns the outputs for which this tap reads the input and not padding.
  IndexRange OutputsInside(int64_t tap) const;
};

using Window = absl::InlinedVector<WindowAxis, 3>;

// The largest stride, dilation, kernel or pad allowed.
inline constexpr int64_t kMaxWindowParameter = (int64_t{1} << 31) - 1;

// Reads auto_pad, pads, strides, dilations and ceil_mode. `in` and `kernel` hold the spatial sizes, which may be
// kUnknownDim. Ignores pads if auto_pad is set. Fails with kInvalidNode if a list has a wrong length, a value is out of
// range, or the kernel is larger than the padded input. With ceil_mode, a kernel that is larger by less than one stride
// has one output. One that is larger by less than two strides has none.
absl::StatusOr<Window> ResolveWindow(const Attributes& attrs, std::span<const int64_t> in, std::span<const int64_t> kernel);

// Resolves the window of ConvTranspose or MaxUnpool, which run it backwards. Also reads output_padding and
// output_shape. In the result, `in` is the size of the operator's output and `out` the size of its input. Input element
// i contributes through tap k to the operator's output at Position(i, k).
absl::StatusOr<Window> ResolveTransposedWindow(const Attributes& attrs, std::span<const int64_t> in,
                                               std::span<const int64_t> kernel);

// Adds strides, dilations and pads for `axes` spatial axes where they are absent. auto_pad VALID becomes pads.
void NormalizeWindow(Attributes& attrs, const OpDef& def, size_t axes);

// Does the same for a window that ResolveWindow() returned. Every auto_pad becomes pads if the window's sizes are known.
void NormalizeWindow(Attributes& attrs, const OpDef& def, const Window& window);

// Does the same for an operator that need not know its axes' sizes: it has an attribute kernel_shape, or weights.
template <int kWeights = kNone>
absl::Status NormalizeAnyWindow(InferContext& ctx, Attributes& attrs) {
  size_t axes = attrs.IntList("kernel_shape").size();
  if constexpr (kWeights != kNone) axes = std::max<size_t>(ctx.input(kWeights).dims.size(), 2) - 2;
  if (axes > 0) NormalizeWindow(attrs, *ctx.node().def, axes);
  return absl::OkStatus();
}

// Returns the pads before all axes, then those after them: the attribute pads.
Ints PadsOf(const Window& window);

// Sets the attribute pads, and auto_pad to NOTSET.
void SetPads(Attributes& attrs, Ints pads);

// Returns the attribute kernel_shape. Fails with kInvalidNode if it is absent, not positive, or does not have `axes`
// values.
absl::StatusOr<Ints> KernelShape(const Attributes& attrs, size_t axes);

// Return the sizes along all axes.
Shape WindowOutputs(const Window& window);
Shape WindowInputs(const Window& window);

// A row of taps: the offsets of an input row and of a weights' row that are multiplied along the last axis.
struct TapRow {
  int64_t input = 0;
  int64_t weights = 0;
};

// Sets `rows` to all pairs of rows that contribute to the output row at `index`, which holds all axes but the last.
// Rows in the padding are omitted.
void CollectTapRows(const Window& window, std::span<const int64_t> index, std::vector<TapRow>& rows);

// Returns true if every output reads exactly its own position: kernel 1, stride 1, no pads.
bool IsPointwise(const Window& window);

}  // namespace mge
