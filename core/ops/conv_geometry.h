// SPDX-License-Identifier: Apache-2.0
// Shapes of a convolution, resolved once for shape rules and evaluators, and the loops that compute one.
#pragma once

#include "core/ops/infer_checks.h"
#include "core/ops/window.h"

namespace mge {

// X [batch, group*in_channels, in...] convolved with W [out_channels, in_channels, kernel...].
struct ConvGeometry {
  int64_t batch = 0;
  int64_t group = 1;
  int64_t in_channels = 0;   // of one group
  int64_t out_channels = 0;  // of all groups
  Window window;

  Shape OutputShape() const;
};

// Reads group, kernel_shape and the window attributes. Sizes may be unknown. kInvalidNode where shapes disagree.
absl::StatusOr<ConvGeometry> ResolveConv(const Attributes& attrs, std::span<const int64_t> x,
                                         std::span<const int64_t> w);

// The transpose of a convolution: X [batch, in_channels_total, in...], W [in_channels_total, out/group, kernel...].
// In the result, in_channels is that of one group, and the window is that of ResolveTransposedWindow.
absl::StatusOr<ConvGeometry> ResolveConvTranspose(const Attributes& attrs, std::span<const int64_t> x,
                                                  std::span<const int64_t> w);

// The shape rule of Conv, ConvInteger, QLinearConv: sets output 0 from the shapes of inputs x and w.
absl::Status InferConv(InferContext& ctx, int x, int w, DType result);

// Merges the axes of a pointwise window, so that rows are long.
Window FlattenPointwise(const Window& window);

// Computes every output row in type A (float, double, uint32_t: wrapping) and hands it to
// emit(channel, offset of the row in the output, row). Rows run along the last spatial axis. The output is not empty.
template <typename A, typename Emit>
absl::Status ConvolveRows(EvalContext& ctx, const ConvGeometry& g, const A* x, const A* w, Emit emit) {
  const Window window = FlattenPointwise(g.window);
  const WindowAxis& last = window.back();
  const int64_t in_size = Elements(WindowInputs(window)), out_size = Elements(WindowOutputs(window));
  int64_t kernel_size = 1;
  for (const WindowAxis& axis : window) kernel_size *= axis.kernel;

  Shape outer = WindowOutputs(window);
  outer.pop_back();
  const int64_t rows = Elements(outer), group_out = g.out_channels / g.group;
  std::vector<TapRow> taps;
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<A>(ctx, last.out));
  A* acc = static_cast<A*>(scratch.mutable_data());
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t group = 0; group < g.group; ++group) {
      const A* x_group = x + (n * g.group + group) * g.in_channels * in_size;
      Shape index(outer.size(), 0);
      for (int64_t row = 0; row < rows; ++row) {
        MGE_RETURN_IF_ERROR(ctx.CheckStop());
        CollectTapRows(window, index, taps);
        for (int64_t channel = group * group_out; channel < (group + 1) * group_out; ++channel) {
          std::fill_n(acc, last.out, A(0));
          for (int64_t c = 0; c < g.in_channels; ++c) {
            const A* w_plane = w + (channel * g.in_channels + c) * kernel_size;
            for (const TapRow& tap : taps) {
              const A* x_row = x_group + c * in_size + tap.input;
              for (int64_t k = 0; k < last.kernel; ++k) {
                const IndexRange range = last.OutputsInside(k);
                const A weight = w_plane[tap.weights + k];
                if (last.stride == 1) {
                  const A* in = x_row + last.Position(0, k);
                  for (int64_t o = range.begin; o < range.end; ++o) acc[o] += weight * in[o];
                } else {
                  for (int64_t o = range.begin; o < range.end; ++o) acc[o] += weight * x_row[last.Position(o, k)];
                }
              }
            }
          }
          emit(channel, (n * g.out_channels + channel) * out_size + row * last.out, std::span<const A>(acc, last.out));
        }
        for (size_t d = index.size(); d-- > 0;) {
          if (++index[d] < outer[d]) break;
          index[d] = 0;
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
