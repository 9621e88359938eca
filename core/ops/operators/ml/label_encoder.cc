// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"

namespace mge::op_label_encoder {
namespace {

constexpr TypeSet kTypes = {DType::kString, DType::kI64, DType::kF32, DType::kI32, DType::kI16, DType::kF64};

// Returns the keys or the values: the only one of the attributes STEM_strings, STEM_int64s, STEM_floats and STEM_tensor.
absl::StatusOr<Tensor> List(const Attributes& attrs, const std::string& stem) {
  std::vector<Tensor> given;
  if (attrs.Has(stem + "_strings")) given.push_back(Tensor::Vector<std::string>(attrs.TextList(stem + "_strings")));
  if (attrs.Has(stem + "_int64s")) given.push_back(Tensor::Vector<int64_t>(attrs.IntList(stem + "_int64s")));
  if (attrs.Has(stem + "_floats")) given.push_back(Tensor::Vector<float>(attrs.FloatList(stem + "_floats")));
  if (const Tensor* tensor = attrs.TensorOrNull(stem + "_tensor")) given.push_back(*tensor);
  if (given.size() == 1 && kTypes.Contains(given[0].dtype())) return given[0];
  return BadNode(
      fmt::format("exactly one of the attributes {0}_strings, {0}_int64s, {0}_floats and {0}_tensor must be "
                  "given, with elements of a type that the operator allows",
                  stem));
}

// Returns the value for unknown elements.
absl::StatusOr<Tensor> Fallback(const Attributes& attrs, DType dtype) {
  if (const Tensor* tensor = attrs.TensorOrNull("default_tensor")) {
    if (tensor->dtype() == dtype && tensor->elements() == 1) return *tensor;
    return BadNode(fmt::format("default_tensor is {}{}; one element of type {} is expected", DTypeName(tensor->dtype()),
                               ShapeText(tensor->shape()), DTypeName(dtype)));
  }
  const int64_t number = attrs.Int("default_int64");
  const float real = attrs.Float("default_float");
  switch (dtype) {
    case DType::kString: return Tensor::Scalar(attrs.Text("default_string"));
    case DType::kI64: return Tensor::Scalar(number);
    case DType::kI32: return Tensor::Scalar(static_cast<int32_t>(number));
    case DType::kI16: return Tensor::Scalar(static_cast<int16_t>(number));
    case DType::kF64: return Tensor::Scalar(static_cast<double>(real));
    default: return Tensor::Scalar(real);
  }
}

// Returns the table for an input of type `x`. In operator set 1 it is one list of strings, with their positions.
absl::StatusOr<LookupTable> TableFor(const Attributes& attrs, DType x) {
  LookupTable table;
  if (attrs.Has("classes_strings")) {
    const Tensor texts = Tensor::Vector<std::string>(attrs.TextList("classes_strings"));
    Ints positions(static_cast<size_t>(texts.elements()));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
    const Tensor numbers = Tensor::Vector<int64_t>(positions);
    table.keys = x == DType::kString ? texts : numbers;
    table.values = x == DType::kString ? numbers : texts;
  } else {
    MGE_ASSIGN_OR_RETURN(table.keys, List(attrs, "keys"));
    MGE_ASSIGN_OR_RETURN(table.values, List(attrs, "values"));
  }
  MGE_ASSIGN_OR_RETURN(table.fallback, Fallback(attrs, table.values.dtype()));
  return table;
}

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  if (type.dtype != DType::kUndefined || !ctx.attrs().Has("classes_strings")) {
    MGE_ASSIGN_OR_RETURN(LookupTable table, TableFor(ctx.attrs(), type.dtype));
    type.dtype = table.values.dtype();
  }
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  return EvalLookup(ctx, [&] { return TableFor(ctx.attrs(), ctx.input(0).dtype()); });
}

}  // namespace

MGE_OP(label_encoder) = {
    .name = "LabelEncoder",
    .domain = kMlDomain,
    .doc = "Replaces each element, a key, by its value.",
    .inputs = {{"X", kTypes}},
    .outputs = {{"Y"}},
    .attrs = {{"classes_strings", AttrType::kTexts, Presence::kOptional, "absent: the keys and values have it"},
              {"default_float", -0.0f, "the value of an unknown key"},
              {"default_int64", -1, "the value of an unknown key"},
              {"default_string", "_Unused", "the value of an unknown key"},
              {"default_tensor", AttrType::kTensor, Presence::kOptional,
               "the value of an unknown key; absent: one of the other defaults"},
              {"keys_floats", AttrType::kFloats, Presence::kOptional, "the keys; absent: another attribute has them"},
              {"keys_int64s", AttrType::kInts, Presence::kOptional, "the keys; absent: another attribute has them"},
              {"keys_strings", AttrType::kTexts, Presence::kOptional, "the keys; absent: another attribute has them"},
              {"keys_tensor", AttrType::kTensor, Presence::kOptional, "the keys; absent: another attribute has them"},
              {"values_floats", AttrType::kFloats, Presence::kOptional, "the values; absent: another attribute has them"},
              {"values_int64s", AttrType::kInts, Presence::kOptional, "the values; absent: another attribute has them"},
              {"values_strings", AttrType::kTexts, Presence::kOptional, "the values; absent: another attribute has them"},
              {"values_tensor", AttrType::kTensor, Presence::kOptional, "the values; absent: another attribute has them"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_label_encoder
