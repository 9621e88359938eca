// SPDX-License-Identifier: Apache-2.0
// The shapes of a convolution, resolved once for shape rules and evaluators, and the reference loops.
#pragma once

#include <vector>

#include "core/ops/families/window.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

// The attributes of all forward convolutions.
inline constexpr AttrList kConvAttrs = {kAutoPadAttr,     kDilationsAttr, {"group", 1, "the number of groups of channels"},
                                        kFilterShapeAttr, kPadsAttr,      kStridesAttr};

// Returns the attributes of a forward convolution and some others, for the row of an operator.
constexpr AttrList WithConvAttrs(std::initializer_list<Attr> more) {
  AttrList all = kConvAttrs;
  for (const Attr& attr : more) all.items[all.count++] = attr;
  return all;
}

absl::Status NormalizeConv(InferContext& ctx, Attributes& attrs, int x, int w);

// Sets kernel_shape to the spatial sizes of the weights if it is absent and they are known.
void AddKernelShape(Attributes& attrs, const TensorType& weights);

// Completes the attributes of a convolution of input kX with the weights kW.
template <int kX = 0, int kW = 1>
absl::Status NormalizeConv(InferContext& ctx, Attributes& attrs) {
  return NormalizeConv(ctx, attrs, kX, kW);
}

// Returns those of the attributes that a Conv has.
inline Attributes ConvAttributesOf(const Attributes& attrs) {
  Attributes out;
  for (const Attr& attr : kConvAttrs) {
    if (const AttributeValue* value = attrs.Find(attr.name)) out.Set(std::string(attr.name), *value);
  }
  return out;
}

// The sizes of a convolution of X [batch, group * in_channels, in...] with W [out_channels, in_channels, kernel...].
struct ConvGeometry {
  int64_t batch = 0;
  int64_t group = 1;
  int64_t in_channels = 0;   // of one group
  int64_t out_channels = 0;  // of all groups
  Window window;

  Shape OutputShape() const;
};

// Reads group, kernel_shape and the window attributes. Sizes may be unknown. Fails with kInvalidNode if shapes do not
// match.
absl::StatusOr<ConvGeometry> ResolveConv(const Attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> w);

// Resolves a transposed convolution: X [batch, all in_channels, in...], W [all in_channels, out_channels / group,
// kernel...]. In the result, in_channels is that of one group, and the window comes from ResolveTransposedWindow.
absl::StatusOr<ConvGeometry> ResolveConvTranspose(const Attributes& attrs, std::span<const int64_t> x,
                                                  std::span<const int64_t> w);

// Sets the type of output 0 from the shapes of inputs `x` and `w`. The shape rule of Conv, ConvInteger and QLinearConv.
absl::Status InferConv(InferContext& ctx, int x, int w, DType result);

// Merges all axes of a pointwise window into one, so that rows are long. Returns other windows unchanged.
Window FlattenPointwise(const Window& window);

// Adds the products of one input row with one row of taps to B output rows. The rows belong to B consecutive output
// channels. `acc_stride` and `w_stride` are the distances between channels in `acc` and in the weights.
template <int B, typename A>
void AccumulateRow(const WindowAxis& axis, std::span<const IndexRange> ranges, const A* __restrict x, const A* w,
                   int64_t w_stride, A* __restrict acc, int64_t acc_stride) {
  for (int64_t k = 0; k < axis.kernel; ++k) {
    const int64_t shift = axis.Position(0, k);
    A weight[B];
    for (int b = 0; b < B; ++b) weight[b] = w[b * w_stride + k];
    if (axis.stride == 1) {
      for (int64_t o = ranges[k].begin; o < ranges[k].end; ++o) {
        for (int b = 0; b < B; ++b) acc[b * acc_stride + o] += weight[b] * x[o + shift];
      }
    } else {
      for (int64_t o = ranges[k].begin; o < ranges[k].end; ++o) {
        for (int b = 0; b < B; ++b) acc[b * acc_stride + o] += weight[b] * x[o * axis.stride + shift];
      }
    }
  }
}

// Computes every output row in type A: float, double, or uint32_t, which wraps around. Calls emit(channel, offset, row)
// for each row, where `offset` is the row's offset in the output. Rows run along the last spatial axis. Output and
// window must not be empty.
template <typename A, typename Emit>
absl::Status ConvolveRows(EvalContext& ctx, const ConvGeometry& g, const A* x, const A* w, Emit emit) {
  constexpr int kBlock = 4;  // channels computed together, so that an input row is read once
  const Window window = FlattenPointwise(g.window);
  const WindowAxis& last = window.back();
  const int64_t in_size = Elements(WindowInputs(window)), out_size = Elements(WindowOutputs(window));
  int64_t kernel_size = 1;
  for (const WindowAxis& axis : window) kernel_size *= axis.kernel;

  Shape outer = WindowOutputs(window);
  outer.pop_back();
  const int64_t rows = Elements(outer), group_out = g.out_channels / g.group, w_stride = g.in_channels * kernel_size;
  std::vector<IndexRange> ranges;
  for (int64_t k = 0; k < last.kernel; ++k) ranges.push_back(last.OutputsInside(k));
  std::vector<TapRow> taps;
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<A>(ctx, kBlock * last.out));
  A* acc = scratch.MutableData<A>().data();
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t group = 0; group < g.group; ++group) {
      const A* x_group = x + (n * g.group + group) * g.in_channels * in_size;
      const int64_t end = (group + 1) * group_out;
      Shape index(outer.size(), 0);
      for (int64_t row = 0; row < rows; ++row) {
        MGE_RETURN_IF_ERROR(ctx.CheckStop());
        CollectTapRows(window, index, taps);
        for (int64_t channel = group * group_out; channel < end;) {
          const int64_t block = end - channel >= kBlock ? kBlock : 1;
          std::fill_n(acc, block * last.out, A(0));
          for (int64_t c = 0; c < g.in_channels; ++c) {
            const A* w_plane = w + channel * w_stride + c * kernel_size;
            for (const TapRow& tap : taps) {
              const A* x_row = x_group + c * in_size + tap.input;
              if (block == kBlock) {
                AccumulateRow<kBlock>(last, ranges, x_row, w_plane + tap.weights, w_stride, acc, last.out);
              } else {
                AccumulateRow<1>(last, ranges, x_row, w_plane + tap.weights, w_stride, acc, last.out);
              }
            }
          }
          for (int64_t b = 0; b < block; ++b, ++channel) {
            emit(channel, (n * g.out_channels + channel) * out_size + row * last.out,
                 std::span<const A>(acc + b * last.out, last.out));
          }
        }
        NextIndex(outer, std::span<int64_t>(index.data(), index.size()));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
