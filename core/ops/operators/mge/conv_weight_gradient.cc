// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"
#include "core/ops/function_body.h"

namespace mge::op_conv_weight_gradient {
namespace {

constexpr int64_t kFewChannels = 16;  // fewer input channels make one product of all taps faster than a product for each tap

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(2));
  return absl::OkStatus();
}

// Adds the nodes of one gradient. A tap, a position in the kernel, multiplies the elements of X that it reads, [N,C,outputs],
// with dY, [N,M,outputs], and sums over N and the outputs: a matrix product in each group.
class Builder {
 public:
  Builder(FunctionBody& f, const ConvGeometry& g)
      : f_(f), g_(g), outputs_(Elements(WindowOutputs(g.window))), in_(g.in_channels), out_(g.out_channels / g.group) {}

  void Run() {
    PadInput();
    const bool depthwise = in_ == 1 && out_ == 1;
    const ValueId dy = depthwise ? f_.Reshape(f_.input(1), {g_.batch, g_.out_channels, outputs_}) : Rows(f_.input(1), out_);
    std::vector<ValueId> taps;
    int64_t kernel = 1;
    for (const WindowAxis& axis : g_.window) kernel *= axis.kernel;
    const bool joined = !depthwise && in_ < kFewChannels;
    for (int64_t k = 0; k < kernel; ++k) {
      const ValueId x = Tap(k);
      if (depthwise) {
        const ValueId product = f_.Add("Mul", {f_.Reshape(x, {g_.batch, g_.group, outputs_}), dy});
        const ValueId sum = f_.Add("ReduceSum", {product, f_.Integers({0, 2})}, IntAttribute("keepdims", 0));
        taps.push_back(f_.Reshape(sum, {g_.out_channels, 1, 1}));
      } else {
        const ValueId columns = f_.Transpose(Rows(x, in_), {0, 2, 1});  // [group, N * outputs, in]
        taps.push_back(joined ? columns : PerTap(f_.Add("MatMul", {dy, columns}), 1));
      }
    }
    ValueId all = taps.size() == 1 ? taps[0] : f_.Add("Concat", taps, IntAttribute("axis", -1));
    if (joined) {  // [group, out, kernel * in] as [group * out, in, kernel]
      all = f_.Reshape(f_.Add("MatMul", {dy, all}), {g_.out_channels, kernel, in_});
      all = f_.Transpose(all, {0, 2, 1});
    }
    f_.Result(0, "Reshape", {all, f_.Integers(f_.dims(2))}, IntAttribute("allowzero", 1));
  }

 private:
  void PadInput() {
    Ints pads(2, 0), ends(2, 0);
    bool any = false;
    for (const WindowAxis& axis : g_.window) {
      pads.push_back(axis.pad_begin);
      ends.push_back(axis.pad_end);
      any |= axis.pad_begin != 0 || axis.pad_end != 0;
    }
    pads.insert(pads.end(), ends.begin(), ends.end());
    x_ = any ? f_.Add("Pad", {f_.input(0), f_.Integers(pads)}) : f_.input(0);
  }
  // Returns the elements of X that tap number `k` reads: [N, C, outputs...].
  ValueId Tap(int64_t k) {
    Ints starts, ends, axes, steps;
    bool all = true;
    for (size_t i = g_.window.size(); i-- > 0;) {
      const WindowAxis& axis = g_.window[i];
      const int64_t start = k % axis.kernel * axis.dilation, end = start + (axis.out - 1) * axis.stride + 1;
      k /= axis.kernel;
      starts.push_back(start);
      ends.push_back(end);
      axes.push_back(static_cast<int64_t>(i) + 2);
      steps.push_back(axis.stride);
      all &= start == 0 && axis.stride == 1 && end == axis.in + axis.pad_begin + axis.pad_end;
    }
    if (all) return x_;
    return f_.Add("Slice", {x_, f_.Integers(starts), f_.Integers(ends), f_.Integers(axes), f_.Integers(steps)});
  }
  // Returns [N, group * channels, outputs...] as [group, channels, N * outputs].
  ValueId Rows(ValueId x, int64_t channels) {
    const ValueId parts = f_.Transpose(f_.Reshape(x, {g_.batch, g_.group, channels, outputs_}), {1, 2, 0, 3});
    return f_.Reshape(parts, {g_.group, channels, g_.batch * outputs_});
  }
  // Returns [group, out, in] as [group * out, in, 1].
  ValueId PerTap(ValueId product, int64_t taps) { return f_.Reshape(product, {g_.out_channels, in_, taps}); }

  FunctionBody& f_;
  const ConvGeometry& g_;
  const int64_t outputs_, in_, out_;  // of one image; channels of one group
  ValueId x_ = kNone;                 // X with its pads
};

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  MGE_ASSIGN_OR_RETURN(const ConvGeometry g, ResolveConv(f.attrs(), f.dims(0), f.dims(2)));
  Builder(f, g).Run();
  return true;
}

}  // namespace

MGE_OP(conv_weight_gradient) = {
    .name = "ConvWeightGradient",
    .domain = "mge",
    .doc =
        "The gradient of a Conv by its weights W, from its input X and the gradient of its output. Of W, only the type is "
        "used.",
    .inputs = {{"X", kFloating}, {"dY", kFloating}, {"W", kFloating}},
    .outputs = {{"dW"}},
    .attrs = kConvAttrs,
    .infer = Infer,
    .eval = EvalByBody,
    .normalize = NormalizeConv<0, 2>,
    .body = Body,
    .examples = {"(T[2,3,7,5], T[2,4,6,3], T[4,3,2,3])",
                 "(T[1,4,9,8], T[1,6,4,3], T[6,2,3,2]) {group=2, kernel_shape=[3,2], pads=[1,0,0,1], strides=[2,3]}",
                 "(T[2,4,5,5], T[2,4,5,5], T[4,1,3,3]) {group=4, pads=[1,1,1,1]}",
                 "(T[4,16,15,14], T[4,24,15,14], T[24,16,3,3]) {pads=[1,1,1,1]}",
                 "(T[2,8,9,10], T[2,12,5,3], T[12,4,3,2]) {group=2, kernel_shape=[3,2], pads=[1,0,1,1], strides=[2,4]}",
                 "(T[1,12,3,30,31], T[1,8,2,28,27], T[8,12,2,2,3]) {dilations=[1,2,2]}"},
};

}  // namespace mge::op_conv_weight_gradient
