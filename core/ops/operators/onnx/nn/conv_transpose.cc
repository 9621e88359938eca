// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/normalized.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_conv_transpose {
namespace {

Shape OutputShape(const ConvGeometry& g) {
  Shape shape = {g.batch, g.out_channels};
  for (const WindowAxis& axis : g.window) shape.push_back(axis.in);
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1, 2}));
  const TensorType& x = ctx.input(0);
  const TensorType& w = ctx.input(1);
  if (!x.has_rank || !w.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConvTranspose(ctx.attrs(), x.dims, w.dims));
  if (ctx.has_input(2) && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(RequireShape("the bias", ctx.input(2).dims, Shape{g.out_channels}));
  }
  ctx.SetOutput(0, MakeType(x.dtype, OutputShape(g)));
  return absl::OkStatus();
}

// Adds the contributions of the group's input planes to one output plane.
template <typename A>
void AccumulatePlane(const ConvGeometry& g, const A* x, const A* w, int64_t group_out, A* plane) {
  const WindowAxis& last = g.window.back();
  const int64_t in_size = Elements(WindowOutputs(g.window));
  int64_t kernel_size = 1;
  for (const WindowAxis& axis : g.window) kernel_size *= axis.kernel;
  Shape outer = WindowOutputs(g.window);
  outer.pop_back();
  Shape index(outer.size(), 0);
  std::vector<TapRow> taps;
  for (int64_t row = 0; row < in_size / last.out; ++row) {
    CollectTapRows(g.window, index, taps);
    for (int64_t c = 0; c < g.in_channels; ++c) {
      const A* x_row = x + c * in_size + row * last.out;
      for (const TapRow& tap : taps) {
        const A* w_row = w + c * group_out * kernel_size + tap.weights;
        for (int64_t k = 0; k < last.kernel; ++k) {
          const IndexRange range = last.OutputsInside(k);
          for (int64_t i = range.begin; i < range.end; ++i) {
            plane[tap.input + last.Position(i, k)] += x_row[i] * w_row[k];
          }
        }
      }
    }
    NextIndex(outer, std::span<int64_t>(index.data(), index.size()));
  }
}

template <typename T>
absl::Status Compute(EvalContext& ctx, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                     Tensor& y) {
  using A = mge::Compute<T>;
  const int64_t in_size = Elements(WindowOutputs(g.window)), out_size = Elements(WindowInputs(g.window));
  const int64_t group_out = g.out_channels / g.group;
  int64_t kernel_size = 1;
  for (const WindowAxis& axis : g.window) kernel_size *= axis.kernel;
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<A>(ctx, out_size));
  std::span<A> plane = scratch.MutableData<A>();
  T* out = y.MutableData<T>().data();
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t m = 0; m < g.out_channels; ++m) {
      MGE_RETURN_IF_ERROR(ctx.CheckStop());
      const int64_t first_channel = m / group_out * g.in_channels;
      std::fill(plane.begin(), plane.end(), bias.defined() ? bias.Data<A>()[m] : A(0));
      AccumulatePlane<A>(g, x.Data<A>().data() + (n * g.group * g.in_channels + first_channel) * in_size,
                         w.Data<A>().data() + (first_channel * group_out + m % group_out) * kernel_size, group_out,
                         plane.data());
      for (A value : plane) *out++ = static_cast<T>(value);
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConvTranspose(ctx.attrs(), x.shape(), w.shape()));
  Tensor bias;
  if (ctx.has_input(2)) {
    MGE_RETURN_IF_ERROR(RequireShape("the bias", ctx.input(2).shape(), Shape{g.out_channels}));
    MGE_ASSIGN_OR_RETURN(bias, ToComputeType(ctx.input(2), ctx.allocator()));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), OutputShape(g)));
  if (y->elements() == 0) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Tensor wide_x, ToComputeType(x, ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(Tensor wide_w, ToComputeType(w, ctx.allocator()));
  absl::Status status;
  bool known = DispatchFloating(
      x.dtype(), [&](auto tag) { status = Compute<typename decltype(tag)::type>(ctx, g, wide_x, wide_w, bias, *y); });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Writes output_shape and auto_pad as pads and output_padding.
absl::Status Normalize(InferContext& ctx, Attributes& attrs) {
  const TensorType& x = ctx.input(0);
  const TensorType& w = ctx.input(1);
  if (!x.has_rank || !w.has_rank) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(const ConvGeometry g, ResolveConvTranspose(attrs, x.dims, w.dims));
  AddKernelShape(attrs, w);
  NormalizeWindow(attrs, *ctx.node().def, g.window.size());
  Ints rest;
  for (const WindowAxis& a : g.window) {
    if (a.in == kUnknownDim || a.out == kUnknownDim || a.kernel == kUnknownDim) return absl::OkStatus();
    rest.push_back(a.in - ((a.out - 1) * a.stride + a.Extent() - a.pad_begin - a.pad_end));
  }
  if (attrs.Text("auto_pad") != "NOTSET" || attrs.Has("output_shape")) {
    SetPads(attrs, PadsOf(g.window));
    attrs.Remove("output_shape");
    attrs.Set("output_padding", std::move(rest));
  } else if (attrs.IntList("output_padding").empty()) {
    attrs.SetImplied("output_padding", std::move(rest));
  }
  return absl::OkStatus();
}

// Returns whether the pads follow from sizes that are not known yet.
bool HasImpliedPads(const Attributes& attrs) { return attrs.Text("auto_pad") != "NOTSET" || attrs.Has("output_shape"); }

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  const Attributes& given = g.attrs();
  if (HasImpliedPads(given)) return g.SetByReplacement();
  Attributes window = given;
  window.Remove("_explicit");
  if (const Ints more = given.IntList("output_padding"); !more.empty()) {  // no window reads the added elements
    Ints pads = given.IntList("pads", Ints(2 * more.size(), 0));
    for (size_t i = 0; i < more.size(); ++i) pads[more.size() + i] -= more[i];
    window.Set("pads", pads);
    window.Remove("output_padding");
  }
  if (g.wants(0)) MGE_RETURN_IF_ERROR(g.Set(0, g.Of("Conv", {g.dy().id(), g.x(1).id()}, window)));
  if (g.wants(1)) {
    MGE_RETURN_IF_ERROR(g.Set(1, {g, g.AddOurs("ConvWeightGradient", {g.dy().id(), g.x(0).id(), g.x(1).id()}, window)}));
  }
  return g.wants(2) ? g.Set(2, PerChannel(g, rank).Sum(g.dy())) : absl::OkStatus();
}

// The same node, whose pads normalization has made explicit.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || HasImpliedPads(f.attrs()) || f.attrs().Has("_explicit")) return false;
  Attributes attrs = f.attrs();
  attrs.Set("_explicit", int64_t{1});
  f.Result(0, "ConvTranspose", {f.input(0), f.input(1), f.input(2)}, std::move(attrs));
  return true;
}

}  // namespace

MGE_OP(conv_transpose) = {
    .name = "ConvTranspose",
    .doc =
        "Transposed convolution of X [N,C,...] with W [C,M/group,...] over any number of spatial "
        "axes.",
    .inputs = {{"X", kFloating}, {"W", kFloating}, {"B", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {kAutoPadAttr,
              kDilationsAttr,
              {"group", 1, "the number of groups of channels"},
              kFilterShapeAttr,
              {"output_padding", AttrType::kInts, Presence::kNormal, "added to the output's sizes; 0 if a model lacks it"},
              {"output_shape", AttrType::kInts, Presence::kOptional,
               "sizes of the output, which become pads; absent: see pads"},
              kPadsAttr,
              kStridesAttr,
              {"_explicit", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .normalize = Normalize,
    .gradient = Gradient,
    .gradient_body = GradientBody,
    .traits = kConvolution,
    .examples = {"(T[1,3,5,4], T[3,2,3,2])", "(T[1,4,3,5], T[4,2,2,3]) {group=2, kernel_shape=[2,3], strides=[2,3]}",
                 "(T[1,2,3,4], T[2,3,2,3]) {strides=[2,3], output_shape=[5,13]}",
                 "(T[1,2,3,4], T[2,3,4,3]) {strides=[2,3], auto_pad=\"SAME_UPPER\"}"},
};

}  // namespace mge::op_conv_transpose
