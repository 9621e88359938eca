// SPDX-License-Identifier: Apache-2.0
// Pools over windows.
#include <limits>

#include "core/ops/families/pool.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_pools {
namespace {

// Computes output 0 with run(geometry, x, y) for the types of `dispatch`.
template <typename Dispatch, typename Run>
absl::Status EvalPool(EvalContext& ctx, Dispatch dispatch, Run run) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(PoolGeometry g, ResolvePool(ctx.attrs(), x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.output));
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = run(g, x.Data<T>().data(), y->MutableData<T>().data());
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Returns the number of taps inside of the padded input. With ceil_mode, the last window may exceed it.
int64_t PaddedTaps(const WindowAxis& axis, int64_t output) {
  const int64_t room = axis.in + axis.pad_end - 1 - axis.Position(output, 0);
  return std::min(axis.kernel, room / axis.dilation + 1);
}

template <typename T>
absl::Status MeanPool(EvalContext& ctx, const PoolGeometry& g, const T* x, T* y) {
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

absl::Status EvalAveragePool(EvalContext& ctx) {
  return EvalPool(ctx, kForFloating, [&](const PoolGeometry& g, const auto* x, auto* y) { return MeanPool(ctx, g, x, y); });
}

// A convolution with equal weights, whose sums are divided by the number of elements that each window has.
absl::Status AveragePoolGradient(GradientContext& g) {
  const bool known = g.type(0).has_rank && g.type(0).dims[1] != kUnknownDim;
  if (!known || g.attrs().Int("ceil_mode") != 0) return g.SetByReplacement();
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
  return g.Set(0, {g, g.AddOurs("ConvInputGradient", {dy.id(), ones.id(), g.x().id()}, std::move(window))});
}

// Returns the weight of each window's sum, 1 / the number of its elements, with the rank of the output.
Tensor MeanWeights(const PoolGeometry& g, bool include_pad) {
  const Shape out = WindowOutputs(g.window);
  std::vector<double> weights(static_cast<size_t>(Elements(out)));
  ForEachWindow(g.window, [&](int64_t output, std::span<const int64_t> offsets) {
    auto count = static_cast<int64_t>(offsets.size());
    if (include_pad) {
      count = 1;
      int64_t rest = output;
      for (size_t d = out.size(); d-- > 0; rest /= out[d]) count *= PaddedTaps(g.window[d], rest % out[d]);
    }
    weights[static_cast<size_t>(output)] = count ? 1 / static_cast<double>(count) : 0;
  });
  Shape shape = {1, 1};
  shape.insert(shape.end(), out.begin(), out.end());
  return Tensor::Of<double>(shape, weights);
}

// The sums of all windows, by a convolution of each plane, times their weights.
absl::StatusOr<bool> AveragePoolGradientBody(FunctionBody& f) {
  if (!f.IsStatic() || Elements(f.dims(0)) == 0) return false;
  const Shape in = f.dims(0);
  MGE_ASSIGN_OR_RETURN(const PoolGeometry g, ResolvePool(f.attrs(), in));
  Ints begin, end, strides, dilations;
  Shape plane = {g.planes, 1}, ones = {1, 1};
  for (const WindowAxis& a : g.window) {
    begin.push_back(a.pad_begin);
    end.push_back((a.out - 1) * a.stride + a.Extent() - a.in - a.pad_begin);  // what the last window needs
    strides.push_back(a.stride);
    dilations.push_back(a.dilation);
    plane.push_back(a.in);
    ones.push_back(a.kernel);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  Attributes window = OneAttribute("pads", std::move(begin));
  window.Set("strides", std::move(strides));
  window.Set("dilations", std::move(dilations));
  const ValueId filter = f.Add("Expand", {f.Number(1).id(), f.Integers(ones)});
  const ValueId sums = f.Add("Conv", {f.Reshape(f.input(0), plane), filter}, std::move(window));
  const ValueId weights =
      f.Cast(f.Constant(MeanWeights(g, f.attrs().Int("count_include_pad") != 0)), DType::kF64, f.dtype(0));
  f.ReshapeTo(f.output(0), f.Add("Mul", {sums, weights}), g.output);
  return true;
}

absl::Status UpgradeLpPool(Graph&, Node& node) { return UpgradeNorm(node); }

absl::Status InferLpPool(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadNorm(ctx.attrs()).status());
  return InferPool(ctx);
}

template <typename T>
absl::Status NormPool(EvalContext& ctx, const PoolGeometry& g, int64_t p, const T* x, T* y) {
  const int64_t in_size = Elements(WindowInputs(g.window)), out_size = Elements(WindowOutputs(g.window));
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const T* in = x + plane * in_size;
    ForEachWindow(g.window, [&](int64_t output, std::span<const int64_t> offsets) {
      double sum = 0;
      for (int64_t offset : offsets) {
        sum += std::pow(std::abs(static_cast<double>(static_cast<Compute<T>>(in[offset]))), static_cast<double>(p));
      }
      y[plane * out_size + output] = static_cast<T>(static_cast<Compute<T>>(std::pow(sum, 1.0 / static_cast<double>(p))));
    });
  }
  return absl::OkStatus();
}

absl::Status EvalLpPool(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(int64_t p, ReadNorm(ctx.attrs()));
  return EvalPool(ctx, kForFloating,
                  [&](const PoolGeometry& g, const auto* x, auto* y) { return NormPool(ctx, g, p, x, y); });
}

// Converts a row-major offset in a plane to the offset in column-major order.
int64_t ColumnMajor(const Window& window, int64_t offset) {
  int64_t result = 0, size = 1;
  for (const WindowAxis& axis : window) size *= axis.in;
  int64_t stride = size;
  for (size_t d = window.size(); d-- > 0;) {
    stride /= window[d].in;
    result += offset % window[d].in * stride;
    offset /= window[d].in;
  }
  return result;
}

absl::Status CheckStorageOrder(const Attributes& attrs) {
  int64_t order = attrs.Int("storage_order");
  if (order == 0 || order == 1) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("attribute storage_order = {} must be 0 or 1", order));
}

absl::Status InferMaxPool(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckStorageOrder(ctx.attrs()));
  return InferPool(ctx);
}

template <typename T>
absl::Status LargestPool(EvalContext& ctx, const PoolGeometry& g, const T* x, T* y, int64_t* indices) {
  const bool column_major = ctx.attrs().Int("storage_order") == 1;
  const int64_t in_size = Elements(WindowInputs(g.window)), out_size = Elements(WindowOutputs(g.window));
  T lowest;
  if constexpr (kIsFloating<T>) {
    lowest = static_cast<T>(-std::numeric_limits<Compute<T>>::infinity());
  } else {
    lowest = std::numeric_limits<T>::lowest();
  }
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const T* in = x + plane * in_size;
    ForEachWindow(g.window, [&](int64_t output, std::span<const int64_t> offsets) {
      T best = lowest;
      int64_t at = offsets.empty() ? 0 : offsets[0];
      for (int64_t offset : offsets) {
        if (in[offset] > best || in[offset] != in[offset]) {  // NaN is larger than every number
          best = in[offset];
          at = offset;
        }
      }
      y[plane * out_size + output] = best;
      if (indices) {
        indices[plane * out_size + output] = plane * in_size + (column_major ? ColumnMajor(g.window, at) : at);
      }
    });
  }
  return absl::OkStatus();
}

absl::Status EvalMaxPool(EvalContext& ctx) {
  MGE_RETURN_IF_ERROR(CheckStorageOrder(ctx.attrs()));
  int64_t* indices = nullptr;
  if (ctx.has_output(1)) {
    MGE_ASSIGN_OR_RETURN(PoolGeometry g, ResolvePool(ctx.attrs(), ctx.input(0).shape()));
    MGE_ASSIGN_OR_RETURN(Tensor * out, ctx.Output(1, DType::kI64, g.output));
    indices = out->MutableData<int64_t>().data();
  }
  return EvalPool(ctx, kForNumeric,
                  [&](const PoolGeometry& g, const auto* x, auto* y) { return LargestPool(ctx, g, x, y, indices); });
}

absl::Status MaxPoolGradient(GradientContext& g) {
  if (g.attrs().Int("storage_order") != 0) return g.Unsupported("a MaxPool with storage_order 1");
  return g.Set(0, {g, g.AddOurs("MaxPoolGradient", {g.dy().id(), g.y(1).id(), g.x().id()}, g.attrs())});
}

constexpr OpDef kRows[] = {
    {.name = "AveragePool",
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
     .eval = EvalAveragePool,
     .normalize = NormalizePool<>,
     .gradient = AveragePoolGradient,
     .gradient_body = AveragePoolGradientBody,
     .examples = {"(T[2,3,7,5]) {kernel_shape=[3,2]}",
                  "(T[1,2,9,8]) {kernel_shape=[3,2], strides=[2,3], pads=[1,0,0,1], count_include_pad=1}",
                  "(T[2,3,7,5]@rare) {kernel_shape=[3,2]}", "(T[2,3,8,7]) {kernel_shape=[3,2], strides=[2,2], ceil_mode=1}",
                  "(T[1,2,8,7]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], ceil_mode=1, count_include_pad=1}"}},
    {.name = "LpPool",
     .doc = "The p-norm of every window.",
     .inputs = {{"X", kFloating}},
     .outputs = {{"Y"}},
     .attrs = {kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kWindowShapeAttr, {"p", 2, "the norm"}, kPadsAttr, kStridesAttr},
     .infer = InferLpPool,
     .eval = EvalLpPool,
     .upgrade = UpgradeLpPool,
     .normalize = NormalizePool<>,
     .examples = {"(T[1,2,7,5]) {kernel_shape=[3,2]}"}},
    {.name = "MaxPool",
     .doc = "The largest element of every window and, optionally, its index in the flattened input.",
     .inputs = {{"X", kFloating | TypeSet{DType::kI8, DType::kU8}}},
     .outputs = {{"Y"}, {.name = "Indices", .arity = Arity::kOptional}},
     .attrs = kMaxPoolAttrs,
     .infer = InferMaxPool,
     .eval = EvalMaxPool,
     .normalize = NormalizePool<>,
     .gradient = MaxPoolGradient,
     .examples = {"(T[2,3,7,5]) {kernel_shape=[3,2]}", "(T[1,2,9,8]) {kernel_shape=[3,2], strides=[2,3], pads=[1,0,0,1]}",
                  "(T[1,1,4,4]) {kernel_shape=[2,2]} -> 2",
                  "(T[2,19,9,8]) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]} -> 2",
                  "(T[1,3,5,4,6]) {kernel_shape=[2,2,2], dilations=[1,2,1], strides=[1,1,2]} -> 2",
                  "(T[1,2,13]) {kernel_shape=[4], ceil_mode=1, strides=[3]}", "(T[2,3,7,5]@rare) {kernel_shape=[3,2]}"}},
};

}  // namespace

MGE_OPS(pools) = kRows;

}  // namespace mge::op_pools
