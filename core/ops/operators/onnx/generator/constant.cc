// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_constant {
namespace {

absl::StatusOr<Tensor> ValueOf(const Attributes& attrs) {
  if (attrs.size() != 1) {
    return BadNode(fmt::format("the node has {} attributes; it must have exactly one", attrs.size()));
  }
  const auto& [name, value] = *attrs.begin();
  if (const auto* t = std::get_if<Tensor>(&value)) return *t;
  if (const auto* f = std::get_if<float>(&value)) return Tensor::Scalar<float>(*f);
  if (const auto* i = std::get_if<int64_t>(&value)) return Tensor::Scalar<int64_t>(*i);
  if (const auto* s = std::get_if<std::string>(&value)) return Tensor::Scalar<std::string>(*s);
  if (const auto* f = std::get_if<Floats>(&value)) return Tensor::Vector<float>(*f);
  if (const auto* i = std::get_if<Ints>(&value)) return Tensor::Vector<int64_t>(*i);
  if (const auto* s = std::get_if<Texts>(&value)) return Tensor::Vector<std::string>(*s);
  return BadNode(fmt::format("attribute {} does not hold a value", name));
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor value, ValueOf(ctx.attrs()));
  ctx.SetOutput(0, MakeType(value.dtype(), value.shape()));
  ctx.SetConstant(0, std::move(value));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor value, ValueOf(ctx.attrs()));
  return ctx.SetOutput(0, TensorValue(std::move(value)));
}

}  // namespace

MGE_OP(constant) = {
    .name = "Constant",
    .doc = "A tensor stored in an attribute.",
    .outputs = {{"output"}},
    .attrs = {{"value", AttrType::kTensor, Presence::kOptional, "the value; absent: another attribute has it"},
              {"sparse_value", AttrType::kTensor, Presence::kOptional, "the value; absent: another attribute has it"},
              {"value_float", AttrType::kFloat, Presence::kOptional, "the value; absent: another attribute has it"},
              {"value_floats", AttrType::kFloats, Presence::kOptional, "the value; absent: another attribute has it"},
              {"value_int", AttrType::kInt, Presence::kOptional, "the value; absent: another attribute has it"},
              {"value_ints", AttrType::kInts, Presence::kOptional, "the value; absent: another attribute has it"},
              {"value_string", AttrType::kText, Presence::kOptional, "the value; absent: another attribute has it"},
              {"value_strings", AttrType::kTexts, Presence::kOptional, "the value; absent: another attribute has it"}},
    .infer = Infer,
    .eval = Eval};

}  // namespace mge::op_constant
