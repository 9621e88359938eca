// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and pools of com.microsoft with an activation or the channels last.
#include <string>

#include "core/ops/families/activation.h"
#include "core/ops/families/channels_last.h"
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/window.h"
#include "core/ops/function_body.h"
#include "fmt/format.h"

namespace mge::op_fused_products {
namespace {

constexpr InputList kFusedMatMulInputs = {{"A", kFloating}, {"B", kFloating}};
constexpr AttrList kFusedMatMulAttrs = {{"alpha", 1.0f, "the factor"},
                                        {"transA", 0, "not 0: A is transposed"},
                                        {"transB", 0, "not 0: B is transposed"},
                                        {"transBatchA", 0, "not 0: the batch is A's second to last axis"},
                                        {"transBatchB", 0, "not 0: the batch is B's second to last axis"}};

constexpr InputList kFusedConvInputs = {
    {"X", kFloating}, {"W", kFloating}, {"B", kFloating, Arity::kOptional}, {"Z", kFloating, Arity::kOptional}};
constexpr AttrList kFusedConvAttrs =
    WithConvAttrs({{"activation", AttrType::kText, Presence::kOptional, "the activation: Relu, Sigmoid, ...; absent: none"},
                   {"activation_params", AttrType::kFloats, Presence::kOptional, "absent: the defaults of the activation"}});

// Computes output 0 from the result of the convolution.
absl::Status AddFusedConvResult(FunctionBody& f, ValueId y) {
  const std::string activation = f.attrs().Text("activation");
  const Attributes parameters = ActivationParameters(activation, f.attrs().FloatList("activation_params"));
  return AddActivation(f, f.Plus(y, f.input(3)), f.dtype(0), activation, parameters);
}

absl::StatusOr<bool> FusedConvBody(FunctionBody& f) {
  const ValueId y = f.Add("Conv", {f.input(0), f.input(1), f.input(2)}, ConvAttributesOf(f.attrs()));
  MGE_RETURN_IF_ERROR(AddFusedConvResult(f, y));
  return true;
}

absl::StatusOr<bool> FusedGemmBody(FunctionBody& f) {
  const ValueId sum = f.Add("Gemm", {f.input(0), f.input(1), f.input(2)}, f.Only({"alpha", "beta", "transA", "transB"}));
  MGE_RETURN_IF_ERROR(AddActivation(f, sum, f.dtype(0), f.attrs().Text("activation"), ActivationParameters(f.attrs())));
  return true;
}

// Returns an operand with the order of dimensions that MatMul wants. With transBatch, dimension 0 is that of the rows.
absl::StatusOr<ValueId> Turned(FunctionBody& f, int i, bool turn, bool batch_to_rows) {
  const int64_t rank = f.rank(i);
  if (rank < 2 || (!turn && !batch_to_rows)) return f.input(i);
  Ints perm(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) perm[static_cast<size_t>(d)] = batch_to_rows ? (d < rank - 2 ? d + 1 : d) : d;
  if (batch_to_rows) perm[static_cast<size_t>(rank - 2)] = 0;
  if (turn) std::swap(perm[static_cast<size_t>(rank - 2)], perm[static_cast<size_t>(rank - 1)]);
  return f.Transpose(f.input(i), std::move(perm));
}

absl::StatusOr<bool> FusedMatMulBody(FunctionBody& f) {
  const auto flag = [&](std::string_view name) { return f.attrs().Int(name) != 0; };
  if (!f.has_rank(0) || !f.has_rank(1)) return false;
  MGE_ASSIGN_OR_RETURN(const ValueId a, Turned(f, 0, flag("transA"), flag("transBatchA")));
  MGE_ASSIGN_OR_RETURN(const ValueId b, Turned(f, 1, flag("transB"), flag("transBatchB")));
  const float alpha = f.attrs().Float("alpha");
  if (alpha == 1.0f) {
    f.Result(0, "MatMul", {a, b});
  } else {
    f.Result(0, "Mul", {f.Add("MatMul", {a, b}), f.Number(f.dtype(0), alpha)});
  }
  return true;
}

absl::StatusOr<bool> FusedMatMulActivationBody(FunctionBody& f) {
  const ValueId product = f.AddMicrosoft("FusedMatMul", {f.input(0), f.input(1)},
                                         f.Only({"alpha", "transA", "transB", "transBatchA", "transBatchB"}));
  MGE_RETURN_IF_ERROR(AddActivation(f, product, f.dtype(0), f.attrs().Text("activation"), ActivationParameters(f.attrs())));
  return true;
}

absl::StatusOr<bool> NhwcFusedConvBody(FunctionBody& f) {
  if (!f.has_rank(0) || !f.has_rank(1)) return false;
  if (f.rank(0) < 3 || f.rank(1) != f.rank(0)) return f.Invalid("X and W must have the same rank, at least 3");
  const ValueId y =
      f.Add("Conv", {ChannelsSecond(f, f.input(0), f.rank(0)), ChannelsSecond(f, f.input(1), f.rank(1)), f.input(2)},
            ConvAttributesOf(f.attrs()));
  MGE_RETURN_IF_ERROR(AddFusedConvResult(f, f.Transpose(y, ChannelsLast(f.rank(0)))));
  return true;
}

absl::StatusOr<bool> NhwcMaxPoolBody(FunctionBody& f) {
  if (!f.has_rank(0)) return false;
  if (f.rank(0) < 3) return f.Invalid("x must have at least 3 dimensions");
  const ValueId y = f.Add("MaxPool", {ChannelsSecond(f, f.input(0), f.rank(0))}, f.attrs());
  f.Result(0, "Transpose", {y}, OneAttribute("perm", ChannelsLast(f.rank(0))));
  return true;
}

absl::StatusOr<bool> TransposeMatMulBody(FunctionBody& f) {
  f.AddMicrosoftTo({f.output(0)}, "FusedMatMul", {f.input(0), f.input(1)}, f.attrs());
  return true;
}

constexpr OpDef kRows[] = {
    MicrosoftFunction(
        {.name = "FusedConv",
         .doc = "An activation of the sum of a Conv and Z.",
         .inputs = kFusedConvInputs,
         .attrs = kFusedConvAttrs,
         .normalize = NormalizeConv<>,
         .body = FusedConvBody,
         .examples = {"(T[1,2,5,5], T[3,2,3,3], T[3]) {activation=\"Relu\"}",
                      "(T[1,2,5,5], T[3,2,3,3], T[3], T[1,3,3,3]) {activation=\"Clip\", activation_params=[0.0,6.0]}",
                      "(T[1,2,5,5], T[3,2,3,3]) {activation=\"HardSigmoid\", activation_params=[0.25,0.5]}"}}),
    MicrosoftFunction(
        {.name = "FusedGemm",
         .doc = "An activation of a Gemm.",
         .inputs = {{"A", kFloating}, {"B", kFloating}, {"C", kFloating, Arity::kOptional}},
         .attrs = {{"activation", AttrType::kText, Presence::kOptional, "the activation: Relu, Sigmoid, ...; absent: none"},
                   {"activation_alpha", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
                   {"activation_beta", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
                   {"activation_gamma", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
                   {"alpha", 1.0f, "the factor of the product"},
                   {"beta", 1.0f, "the factor of C"},
                   {"transA", 0, "not 0: A is transposed"},
                   {"transB", 0, "not 0: B is transposed"}},
         .body = FusedGemmBody,
         .examples = {"(T[3,5], T[5,7], T[7]) {activation=\"Relu\"}",
                      "(T[3,5], T[7,5]) {activation=\"LeakyRelu\", activation_alpha=0.25, transB=1}"}}),
    MicrosoftFunction({.name = "FusedMatMul",
                       .doc = "alpha * A B, with operands that may be transposed.",
                       .inputs = kFusedMatMulInputs,
                       .attrs = kFusedMatMulAttrs,
                       .body = FusedMatMulBody,
                       .examples = {"(T[5,3], T[5,7]) {transA=1}", "(T[2,3,5], T[2,7,5]) {transB=1, alpha=0.125}",
                                    "(T[3,2,5], T[7,2,5]) {transBatchA=1, transBatchB=1, transB=1}", "(T[5], T[5,3])"}}),
    MicrosoftFunction(
        {.name = "FusedMatMulActivation",
         .doc = "An activation of alpha * A B, with operands that may be transposed.",
         .inputs = {{"A", kFloating}, {"B", kFloating}},
         .attrs = {{"activation", AttrType::kText, Presence::kRequired,
                    "the activation: Relu, Tanh, Sigmoid, LeakyRelu or HardSigmoid"},
                   {"activation_alpha", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
                   {"activation_axis", -1, "the axis of Softmax"},
                   {"activation_beta", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
                   {"activation_gamma", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
                   {"alpha", 1.0f, "the factor"},
                   {"transA", 0, "not 0: A is transposed"},
                   {"transB", 0, "not 0: B is transposed"},
                   {"transBatchA", 0, "not 0: the batch is A's second to last axis"},
                   {"transBatchB", 0, "not 0: the batch is B's second to last axis"}},
         .body = FusedMatMulActivationBody,
         .examples = {"(T[3,5], T[5,7]) {activation=\"Relu\"}", "(T[5,3], T[5,7]) {activation=\"Tanh\", transA=1}"}}),
    MicrosoftFunction({.name = "NhwcFusedConv",
                       .doc = "FusedConv with the channels last, also those of the filter.",
                       .inputs = kFusedConvInputs,
                       .attrs = kFusedConvAttrs,
                       .normalize = NormalizeAnyWindow<1>,
                       .body = NhwcFusedConvBody,
                       .examples = {"(T[1,5,5,2], T[3,3,3,2], T[3], T[1,3,3,3]) {activation=\"Relu\"}"}}),
    MicrosoftFunction({.name = "NhwcMaxPool",
                       .doc = "MaxPool with the channels last.",
                       .inputs = {{"x", {DType::kU8, DType::kI8}}},
                       .outputs = {{"y"}},
                       .attrs = {kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kWindowShapeAttr, kPadsAttr, kStridesAttr},
                       .normalize = NormalizeAnyWindow<>,
                       .body = NhwcMaxPoolBody,
                       .examples = {"(T[1,5,4,3]) {kernel_shape=[2,2], strides=[2,2]}"}}),
    MicrosoftFunction({.name = "TransposeMatMul",
                       .doc = "The former name of FusedMatMul.",
                       .inputs = kFusedMatMulInputs,
                       .attrs = kFusedMatMulAttrs,
                       .body = TransposeMatMulBody,
                       .examples = {"(T[5,3], T[5,7]) {transA=1}"}}),
};

}  // namespace

MGE_OPS(fused_products) = kRows;

}  // namespace mge::op_fused_products
