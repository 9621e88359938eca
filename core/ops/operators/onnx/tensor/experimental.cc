// SPDX-License-Identifier: Apache-2.0
// Experimental operators of ONNX's first versions, which models of 2017 to 2019 have. ONNX removed them in operator set 10.
#include <limits>

#include "core/ops/function_body.h"

namespace mge::op_experimental {
namespace {

ValueId Attribute(FunctionBody& f, std::string_view name) { return f.Number(f.dtype(0), f.attrs().Float(name)); }

absl::StatusOr<bool> AffineBody(FunctionBody& f) {
  f.Result(0, "Add", {f.Add("Mul", {f.input(0), Attribute(f, "alpha")}), Attribute(f, "beta")});
  return true;
}

absl::StatusOr<bool> ParametricSoftplusBody(FunctionBody& f) {
  const ValueId y = f.Add("Softplus", {f.Add("Mul", {f.input(0), Attribute(f, "beta")})});
  f.Result(0, "Mul", {y, Attribute(f, "alpha")});
  return true;
}

absl::StatusOr<bool> ScaledTanhBody(FunctionBody& f) {
  const ValueId y = f.Add("Tanh", {f.Add("Mul", {f.input(0), Attribute(f, "beta")})});
  f.Result(0, "Mul", {y, Attribute(f, "alpha")});
  return true;
}

absl::StatusOr<bool> ScaleBody(FunctionBody& f) {
  f.Result(0, "Mul", {f.input(0), Attribute(f, "scale")});
  return true;
}

absl::StatusOr<bool> ImageScalerBody(FunctionBody& f) {
  const Floats bias = f.attrs().FloatList("bias");
  const auto channels = static_cast<int64_t>(bias.size());
  const ValueId values = f.Constant(Tensor::Of<float>({channels, 1, 1}, std::span<const float>(bias)));
  const ValueId scaled = f.Add("Mul", {f.input(0), Attribute(f, "scale")});
  f.Result(0, "Add", {scaled, f.Cast(values, DType::kF32, f.dtype(0))});
  return true;
}

absl::StatusOr<bool> CropBody(FunctionBody& f) {
  const Ints border = f.attrs().IntList("border"), size = f.attrs().IntList("scale");
  if (border.size() != 4 || (!size.empty() && size.size() != 2)) {
    return f.Invalid(
        fmt::format("border has {} values, scale {}; they must have 4 (left, top, right, bottom), and 2 or none",
                    border.size(), size.size()));
  }
  const auto end = [&](int64_t begin, int64_t margin, size_t i) {
    if (!size.empty()) return begin + size[i];
    return margin > 0 ? -margin : std::numeric_limits<int64_t>::max();
  };
  const ValueId ends = f.Integers({end(border[1], border[3], 0), end(border[0], border[2], 1)});
  f.Result(0, "Slice", {f.input(0), f.Integers({border[1], border[0]}), ends, f.Integers({2, 3})});
  return true;
}

absl::StatusOr<bool> DynamicSliceBody(FunctionBody& f) {
  f.Result(0, "Slice", {f.input(0), f.input(1), f.input(2), f.input(3)});
  return true;
}

constexpr OpDef Removed(OpDef row) {
  row.outputs = {{"Y"}};
  row.infer = InferByBody;
  row.eval = EvalByBody;
  row.until = 9;
  return row;
}

constexpr Attr kAlpha = {"alpha", AttrType::kFloat, Presence::kRequired, "the factor"};

constexpr OpDef kRows[] = {
    Removed({.name = "Affine",
             .doc = "alpha * X + beta.",
             .inputs = {{"X", kFloating}},
             .attrs = {kAlpha, {"beta", AttrType::kFloat, Presence::kRequired, "is added"}},
             .body = AffineBody,
             .examples = {"(T[3,5]) {alpha=2.0, beta=0.5}"}}),
    Removed({.name = "Crop",
             .doc = "A part of each image [N,C,H,W].",
             .inputs = {{"X", kFloating}},
             .attrs = {{"border", AttrType::kInts, Presence::kRequired, "the margins: left, top, right, bottom"},
                       {"scale", AttrType::kInts, Presence::kOptional,
                        "height and width of the part at the left and top margins; absent: up to the other margins"}},
             .body = CropBody,
             .examples = {"(T[1,2,5,6]) {border=[1,0,2,1]}", "(T[1,2,5,6]) {border=[1,2,0,0], scale=[2,3]}"}}),
    Removed({.name = "DynamicSlice",
             .doc = "A Slice without steps.",
             .inputs = {{"data"}, {"starts", kIndex}, {"ends", kIndex}, {"axes", kIndex, Arity::kOptional}},
             .body = DynamicSliceBody,
             .examples = {"(T[3,5], int64[2]<0,1>, int64[2]<2,-1>)"}}),
    Removed({.name = "ImageScaler",
             .doc = "scale * X + bias, with a bias for each channel of [N,C,H,W].",
             .inputs = {{"X", kFloating}},
             .attrs = {{"scale", 1.0f, "the factor"},
                       {"bias", AttrType::kFloats, Presence::kRequired, "is added; one for each channel"}},
             .body = ImageScalerBody,
             .examples = {"(T[2,3,2,2]) {scale=0.5, bias=[0.1, 0.2, 0.3]}"}}),
    Removed({.name = "ParametricSoftplus",
             .doc = "alpha * log(exp(beta * X) + 1).",
             .inputs = {{"X", kFloating}},
             .attrs = {kAlpha, {"beta", AttrType::kFloat, Presence::kRequired, "the factor of X"}},
             .body = ParametricSoftplusBody,
             .examples = {"(T[3,5]) {alpha=2.0, beta=0.5}"}}),
    Removed({.name = "Scale",
             .doc = "scale * X.",
             .inputs = {{"X", kFloating}},
             .attrs = {{"scale", 1.0f, "the factor"}},
             .body = ScaleBody,
             .examples = {"(T[3,5]) {scale=0.5}"}}),
    Removed({.name = "ScaledTanh",
             .doc = "alpha * tanh(beta * X).",
             .inputs = {{"X", kFloating}},
             .attrs = {kAlpha, {"beta", AttrType::kFloat, Presence::kRequired, "the factor of X"}},
             .body = ScaledTanhBody,
             .examples = {"(T[3,5]) {alpha=2.0, beta=0.5}"}}),
};

}  // namespace

MGE_OPS(experimental) = kRows;

}  // namespace mge::op_experimental
