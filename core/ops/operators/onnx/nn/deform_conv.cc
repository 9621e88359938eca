// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "core/ops/families/conv_geometry.h"

namespace mge::op_deform_conv {
namespace {

enum Input { kX, kW, kOffset, kBias, kMask };

// Checks the operands beside X and W. Sizes may be unknown; absent shapes are null.
absl::Status Check(const Attributes& attrs, const ConvGeometry& g, /*nullable*/ const Shape* offset,
                   /*nullable*/ const Shape* bias, /*nullable*/ const Shape* mask) {
  const int64_t groups = attrs.Int("offset_group"), channels = g.group * g.in_channels;
  if (groups < 1 || (g.in_channels != kUnknownDim && channels % groups != 0)) {
    return BadNode(fmt::format("offset_group = {} must divide the {} channels of X", groups, channels));
  }
  int64_t points = groups;
  for (const WindowAxis& axis : g.window) points = axis.kernel == kUnknownDim ? kUnknownDim : points * axis.kernel;
  auto wanted = [&](int64_t per_point) {
    Shape shape = {g.batch, points == kUnknownDim ? kUnknownDim : points * per_point};
    for (const WindowAxis& axis : g.window) shape.push_back(axis.out);
    return shape;
  };
  if (offset) MGE_RETURN_IF_ERROR(RequireShape("offset", *offset, wanted(static_cast<int64_t>(g.window.size()))));
  if (mask) MGE_RETURN_IF_ERROR(RequireShape("mask", *mask, wanted(1)));
  return bias ? RequireShape("the bias", *bias, Shape{g.out_channels}) : absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kX, kW, kOffset, kBias, kMask}));
  const TensorType &x = ctx.input(kX), &w = ctx.input(kW);
  if (x.has_rank && w.has_rank) {
    MGE_ASSIGN_OR_RETURN(const ConvGeometry g, ResolveConv(ctx.attrs(), x.dims, w.dims));
    auto shape_of = [&](int i) { return ctx.has_input(i) && ctx.input(i).has_rank ? &ctx.input(i).dims : nullptr; };
    MGE_RETURN_IF_ERROR(Check(ctx.attrs(), g, shape_of(kOffset), shape_of(kBias), shape_of(kMask)));
  }
  return InferConv(ctx, kX, kW, x.dtype);
}

// Returns the value at a real position of one channel, interpolated between its neighbours along each axis. Elements outside of
// the input are 0.
template <typename A>
A Sample(std::span<const A> channel, const Window& window, std::span<const A> position) {
  const size_t axes = window.size();
  A sum = 0;
  for (size_t corner = 0; corner < size_t{1} << axes; ++corner) {
    A weight = 1;
    int64_t flat = 0;
    for (size_t d = 0; d < axes; ++d) {
      const A low = std::floor(position[d]), rest = position[d] - low;
      const bool upper = (corner >> d & 1) != 0;
      const A at = upper ? low + 1 : low;
      weight *= upper ? rest : 1 - rest;
      if (!(at >= 0 && at < static_cast<A>(window[d].in))) weight = 0;
      if (weight == 0) break;
      flat = flat * window[d].in + static_cast<int64_t>(at);
    }
    if (weight != 0) sum += weight * channel[static_cast<size_t>(flat)];
  }
  return sum;
}

// The operands in the type of the computation. `bias` and `mask` are empty if absent.
template <typename A>
struct Operands {
  std::span<const A> x, w, offset, bias, mask;
};

template <typename T, typename A = Compute<T>>
absl::Status Run(EvalContext& ctx, const ConvGeometry& g, const Operands<A>& in, std::span<T> y) {
  const auto axes = static_cast<int64_t>(g.window.size());
  const int64_t channels = g.group * g.in_channels, per_offset_group = channels / ctx.attrs().Int("offset_group");
  const int64_t in_size = Elements(WindowInputs(g.window)), out_size = Elements(WindowOutputs(g.window));
  Shape kernel;
  for (const WindowAxis& axis : g.window) kernel.push_back(axis.kernel);
  const Shape outputs = WindowOutputs(g.window);
  const int64_t points = Elements(kernel), out_per_group = g.out_channels / g.group;
  std::vector<A> samples(static_cast<size_t>(channels * points)), position(static_cast<size_t>(axes));
  for (int64_t n = 0; n < g.batch; ++n) {
    Shape output(outputs.size(), 0);
    for (int64_t o = 0; o < out_size; ++o, NextIndex(outputs, {output.data(), output.size()})) {
      MGE_RETURN_IF_ERROR(ctx.CheckStop());
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t first = (n * (channels / per_offset_group) + c / per_offset_group) * points;
        Shape tap(kernel.size(), 0);
        for (int64_t p = 0; p < points; ++p, NextIndex(kernel, {tap.data(), tap.size()})) {
          for (int64_t d = 0; d < axes; ++d) {
            position[d] =
                static_cast<A>(g.window[d].Position(output[d], tap[d])) + in.offset[((first + p) * axes + d) * out_size + o];
          }
          const A value = Sample<A>(in.x.subspan((n * channels + c) * in_size, in_size), g.window, position);
          samples[c * points + p] = in.mask.empty() ? value : value * in.mask[(first + p) * out_size + o];
        }
      }
      const int64_t taps = g.in_channels * points;
      for (int64_t m = 0; m < g.out_channels; ++m) {
        A sum = in.bias.empty() ? A(0) : in.bias[m];
        const A* from = samples.data() + m / out_per_group * taps;
        for (int64_t i = 0; i < taps; ++i) sum += from[i] * in.w[m * taps + i];
        y[(n * g.out_channels + m) * out_size + o] = static_cast<T>(sum);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(kX);
  MGE_ASSIGN_OR_RETURN(const ConvGeometry g, ResolveConv(ctx.attrs(), x.shape(), ctx.input(kW).shape()));
  auto shape_of = [&](int i) { return ctx.has_input(i) ? &ctx.input(i).shape() : nullptr; };
  MGE_RETURN_IF_ERROR(Check(ctx.attrs(), g, shape_of(kOffset), shape_of(kBias), shape_of(kMask)));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.OutputShape()));
  if (y->elements() == 0) return absl::OkStatus();
  Tensor wide[kMask + 1];
  for (int i = kX; i <= kMask; ++i) {
    if (!ctx.has_input(i)) continue;
    MGE_ASSIGN_OR_RETURN(wide[i], ToComputeType(ctx.input(i), ctx.allocator()));
  }
  absl::Status status;
  const bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Compute<T>;
    status = Run<T>(ctx, g,
                    Operands<A>{wide[kX].Data<A>(), wide[kW].Data<A>(), wide[kOffset].Data<A>(), wide[kBias].Data<A>(),
                                wide[kMask].Data<A>()},
                    y->MutableData<T>());
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(deform_conv) = {
    .name = "DeformConv",
    .doc =
        "Convolution whose taps are moved by offsets, which differ for each output position. Elements between positions are "
        "interpolated linearly; those outside of X are 0. The mask scales each tap.",
    .inputs = {{"X", kFloating},
               {"W", kFloating},
               {"offset", kFloating},
               {"B", kFloating, Arity::kOptional},
               {"mask", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = WithConvAttrs({{"offset_group", 1, "groups of input channels with the same offsets and mask"}}),
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizeConv<>,
    .since = 19,
    .examples = {"(T[1,2,4,5], T[3,2,2,2], T[1,8,3,4])",
                 "(T[2,4,5,5], T[4,2,3,3], T[2,36,3,3], T[4], T[2,18,3,3]) {group=2, offset_group=2, pads=[1,1,1,1], "
                 "strides=[2,2]}",
                 "(T[1,2,7], T[2,2,3], T[1,3,5])"},
};

}  // namespace mge::op_deform_conv
