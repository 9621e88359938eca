// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"
#include "core/ops/gradient.h"

namespace mge::op_average_pool {
namespace {

// Returns the number of taps inside of the padded input. With ceil_mode, the last window may exceed it.
int64_t PaddedTaps(const WindowAxis& axis, int64_t output) {
  const int64_t room = axis.in + axis.pad_end - 1 - axis.Position(output, 0);
  return std::min(axis.kernel, room / axis.dilation + 1);
}

template <typename T>
absl::Status Pool(EvalContext& ctx, const PoolGeometry& g, const T* x, T* y) {
  const bool include_pad = ctx.attrs().Int("count_include_pad") != 0;
  const Shape out = WindowOutputs(g.window);
  const int64_t in_size = Elements(WindowInputs(g.window)), out_size = Elements(out);
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const T* in = x + plane * in_size;
    ForEachWindow(g.window, [&](int64_t output, std::span<const int64_t> offsets) {
      double sum = 0;
      for (int64_t offset : offsets) sum += static_cast<Compute<T>>(in[offset]);
      int64_t count = static_cast<int64_t>(offsets.size());
      if (include_pad) {
        count = 1;
        int64_t rest = output;
        for (size_t d = out.size(); d-- > 0; rest /= out[d]) count *= PaddedTaps(g.window[d], rest % out[d]);
      }
      // With dilation, a window may read no input element. Its average is then that of the padding, 0.
      y[plane * out_size + output] = static_cast<T>(static_cast<Compute<T>>(count ? sum / static_cast<double>(count) : 0));
    });
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(PoolGeometry g, ResolvePool(ctx.attrs(), x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.output));
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Pool<T>(ctx, g, x.Data<T>().data(), y->MutableData<T>().data());
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// A convolution with equal weights, whose sums are divided by the number of elements that each window has.
absl::Status Gradient(GradientContext& g) {
  if (g.attrs().Int("ceil_mode") != 0) return g.Unsupported("an AveragePool with ceil_mode");
  if (!g.type(0).has_rank || g.type(0).dims[1] == kUnknownDim)
    return g.Unsupported("an AveragePool of an unknown number of channels");
  const int64_t channels = g.type(0).dims[1];
  const Ints kernel = g.attrs().IntList("kernel_shape");
  Shape weights = {channels, 1};
  double elements = 1;
  for (int64_t k : kernel) {
    weights.push_back(k);
    elements *= static_cast<double>(k);
  }
  Attributes window = g.attrs();
  window.Remove("count_include_pad");
  window.Remove("ceil_mode");
  Term dy = g.dy() / elements;
  if (g.attrs().Int("count_include_pad") == 0) {
    Attributes whole = window;
    whole.Set("count_include_pad", int64_t{1});
    dy = dy / g.Of("AveragePool", {g.Fill(1, g.x()).id()}, std::move(whole));  // the part of each window that is not padding
  }
  window.Set("group", channels);
  const Term ones = g.Of("Expand", {g.Number(1).id(), g.Integers(weights)});
  return g.Give(0, {g, g.AddOurs("ConvInputGradient", {dy.id(), ones.id(), g.x().id()}, std::move(window))});
}

}  // namespace

MGE_OP(average_pool) = {
    .name = "AveragePool",
    .doc = "The mean of every window. The attribute count_include_pad includes the padding.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {kAutoPadAttr,
              kCeilModeAttr,
              {"count_include_pad", 0, "not 0: the mean counts padding"},
              kDilationsAttr,
              kWindowShapeAttr,
              kPadsAttr,
              kStridesAttr},
    .infer = InferPool,
    .eval = Eval,
    .normalize = NormalizePool<>,
    .gradient = Gradient,
    .examples = {"(T[2,3,7,5]) {kernel_shape=[3,2]}",
                 "(T[1,2,9,8]) {kernel_shape=[3,2], strides=[2,3], pads=[1,0,0,1], count_include_pad=1}"},
};

}  // namespace mge::op_average_pool
