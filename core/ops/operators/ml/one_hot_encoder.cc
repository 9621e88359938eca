// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <vector>

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

// The position of each category. If one is listed twice, its last position counts. Numbers that lie close together have a
// table from the lowest of them.
struct Positions {
  std::unordered_map<std::string, int64_t> texts;
  std::unordered_map<int64_t, int64_t> ints;
  int64_t lowest = 0;
  std::vector<int64_t> table;  // -1: no category

  // Return the position, or -1.
  int64_t Find(const std::string& text) const {
    auto at = texts.find(text);
    return at == texts.end() ? -1 : at->second;
  }
  int64_t Find(int64_t number) const {
    if (!table.empty()) {
      const uint64_t i = static_cast<uint64_t>(number) - static_cast<uint64_t>(lowest);
      return i < table.size() ? table[i] : -1;
    }
    auto at = ints.find(number);
    return at == ints.end() ? -1 : at->second;
  }
};

void FillTable(Positions& p) {
  if (p.ints.empty()) return;
  int64_t low = p.ints.begin()->first, high = low;
  for (const auto& [number, position] : p.ints) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (range >= 4 * p.ints.size() + 64) return;
  p.lowest = low;
  p.table.assign(range + 1, -1);
  for (const auto& [number, position] : p.ints)
    p.table[static_cast<uint64_t>(number) - static_cast<uint64_t>(low)] = position;
}

absl::StatusOr<Positions> ReadPositions(const Attributes& attrs) {
  Positions out;
  int64_t i = 0;
  for (std::string& text : attrs.TextList("cats_strings")) out.texts[std::move(text)] = i++;
  for (int64_t number : attrs.IntList("cats_int64s")) out.ints[number] = i++;
  FillTable(out);
  return out;
}

// Sets the element of each category to 1. key(i) is element i of the input.
template <typename F>
absl::Status Encode(EvalContext& ctx, const Positions& positions, F key, Tensor& y) {
  const bool zeros = ctx.attrs().Int("zeros") != 0;
  const int64_t width = y.shape().back();
  float* out = y.MutableData<float>().data();
  for (int64_t i = 0; i < ctx.input(0).elements(); ++i, out += width) {
    const int64_t at = positions.Find(key(i));
    if (at >= 0) {
      out[at] = 1;
    } else if (!zeros) {
      return ctx.Invalid(fmt::format("element {} is no known category, and zeros is 0", i));
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t categories, Categories(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const auto positions, Prepared<Positions>(ctx, [&] { return ReadPositions(ctx.attrs()); }));
  Shape shape = x.shape();
  shape.push_back(categories);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, std::move(shape)));
  Fill(*y, nullptr);
  if ((x.dtype() == DType::kString) == positions->texts.empty()) {
    return ctx.Invalid(fmt::format("the input is {}; its type differs from the categories'", DTypeName(x.dtype())));
  }
  if (x.dtype() == DType::kString) {
    const std::string* in = x.Data<std::string>().data();
    return Encode(
        ctx, *positions, [in](int64_t i) -> const std::string& { return in[i]; }, *y);
  }
  absl::Status status;
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    status = Encode(
        ctx, *positions, [in](int64_t i) { return Convert<int64_t>(in[i]); }, *y);
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
    .attrs = {{"cats_int64s", AttrType::kInts, Presence::kOptional, "the categories; absent: cats_strings has them"},
              {"cats_strings", AttrType::kTexts, Presence::kOptional, "the categories; absent: cats_int64s has them"},
              {"zeros", 1, "not 0: an unknown category gives a row of zeros"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_one_hot_encoder
