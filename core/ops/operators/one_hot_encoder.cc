// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "core/ops/families/convert.h"
#include "core/ops/families/ml.h"
#include "core/ops/families/movement.h"

namespace mge::op_one_hot_encoder {
namespace {

absl::StatusOr<int64_t> Categories(const Attributes& attrs) {
  const size_t ints = attrs.IntList("cats_int64s").size(), texts = attrs.TextList("cats_strings").size();
  if ((ints == 0) != (texts == 0)) return static_cast<int64_t>(ints + texts);
  return BadNode("exactly one of cats_int64s and cats_strings must be given");
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(int64_t categories, Categories(ctx.attrs()));
  TensorType type = ctx.input(0);
  type.dtype = DType::kF32;
  type.symbols.clear();
  if (type.has_rank) type.dims.push_back(categories);
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

// Sets the element of each category to 1. If a category is listed twice, its last position counts.
template <typename Key, typename List, typename Find>
absl::Status Encode(EvalContext& ctx, const List& list, int64_t count, Find key, Tensor& y) {
  std::unordered_map<Key, int64_t> position;
  for (const auto& category : list) position[category] = static_cast<int64_t>(&category - list.data());
  const bool zeros = ctx.attrs().Int("zeros", 1) != 0;
  float* out = y.MutableData<float>().data();
  for (int64_t i = 0; i < count; ++i, out += list.size()) {
    auto at = position.find(key(i));
    if (at != position.end()) {
      out[at->second] = 1;
    } else if (!zeros) {
      return ctx.Invalid(fmt::format("element {} is no known category, and zeros is 0", i));
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t categories, Categories(ctx.attrs()));
  Shape shape = x.shape();
  shape.push_back(categories);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, std::move(shape)));
  Fill(*y, nullptr);
  const Texts texts = ctx.attrs().TextList("cats_strings");
  if ((x.dtype() == DType::kString) != !texts.empty()) {
    return ctx.Invalid(fmt::format("the input is {}; its type differs from the categories'", DTypeName(x.dtype())));
  }
  if (!texts.empty()) {
    const std::string* in = x.Data<std::string>().data();
    return Encode<std::string_view>(
        ctx, texts, x.elements(), [in](int64_t i) { return std::string_view(in[i]); }, *y);
  }
  absl::Status status;
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    status = Encode<int64_t>(
        ctx, ctx.attrs().IntList("cats_int64s"), x.elements(), [in](int64_t i) { return Convert<int64_t>(in[i]); }, *y);
  });
  return status;
}

}  // namespace

MGE_OP(one_hot_encoder) = {
    .name = "OneHotEncoder",
    .domain = kMlDomain,
    .doc = "Adds a dimension of zeros, with a 1 at the position of the category.",
    .inputs = {{"X", kMlNumbers | kStrings}},
    .outputs = {{"Y"}},
    .attrs = {{"cats_int64s", AttrType::kInts}, {"cats_strings", AttrType::kTexts}, {"zeros", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_one_hot_encoder
