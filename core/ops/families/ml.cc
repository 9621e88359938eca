// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>

#include "core/ops/families/movement.h"

namespace mge {
namespace {

// Returns an approximation of the inverse of the normal distribution function, as onnxruntime does.
float Probit(float p) {
  const float x = 2 * p - 1, log = std::log((1 - x) * (1 + x));
  const float half = 2 / (3.14159f * 0.147f) + 0.5f * log;
  const float root = std::sqrt(std::sqrt(half * half - log / 0.147f) - half);
  return 1.41421356f * (x < 0 ? -root : root);
}

// Computes the softmax of the scores. If `keep_zeros`, scores near 0 are scaled only.
void Softmax(std::span<float> scores, bool keep_zeros) {
  constexpr float kZero = 1e-7f;
  const float most = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& s : scores) {
    if (keep_zeros && std::abs(s) <= kZero) {
      s *= std::exp(-most);
    } else {
      s = std::exp(s - most);
      sum += s;
    }
  }
  for (float& s : scores) s /= sum;
}

// Returns a number that is equal for equal keys.
template <typename T>
uint64_t KeyOf(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN());
    return std::bit_cast<uint64_t>(static_cast<double>(value == 0 ? T(0) : value));
  } else {
    return static_cast<uint64_t>(value);
  }
}

// A table with the index of each key.
struct IndexedTable {
  LookupTable table;
  std::unordered_map<std::string_view, int64_t> texts;  // views of the keys
  std::unordered_map<uint64_t, int64_t> numbers;

  template <typename T>
  int64_t Find(const T& x) const {
    if constexpr (std::is_same_v<T, std::string>) {
      auto at = texts.find(x);
      return at == texts.end() ? -1 : at->second;
    } else {
      auto at = numbers.find(KeyOf(x));
      return at == numbers.end() ? -1 : at->second;
    }
  }
};

// Calls f(TypeTag<T>{}) for the type of keys.
template <typename F>
void DispatchKeys(DType dtype, F f) {
  if (dtype == DType::kString) return f(TypeTag<std::string>{});
  DispatchNumeric(dtype, [&](auto tag) {
    if constexpr (std::is_arithmetic_v<typename decltype(tag)::type>) f(tag);
  });
}

absl::StatusOr<IndexedTable> Indexed(EvalContext& ctx, const std::function<absl::StatusOr<LookupTable>()>& make) {
  IndexedTable out;
  MGE_ASSIGN_OR_RETURN(out.table, make());
  const Tensor& keys = out.table.keys;
  if (ctx.input(0).dtype() != keys.dtype()) {
    return ctx.Invalid(
        fmt::format("the input is {}, the keys are {}", DTypeName(ctx.input(0).dtype()), DTypeName(keys.dtype())));
  }
  if (keys.elements() != out.table.values.elements()) {
    return ctx.Invalid(fmt::format("{} keys and {} values", keys.elements(), out.table.values.elements()));
  }
  DispatchKeys(keys.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < keys.elements(); ++i) {
      const T& key = static_cast<const T*>(keys.data())[i];
      if constexpr (std::is_same_v<T, std::string>) {
        out.texts.emplace(key, i);
      } else {
        out.numbers.emplace(KeyOf(key), i);
      }
    }
  });
  return out;
}

}  // namespace

absl::StatusOr<RowShape> RowShapeOf(std::span<const int64_t> shape) {
  if (shape.size() == 1) return RowShape{1, shape[0]};
  if (shape.size() == 2) return RowShape{shape[0], shape[1]};
  return BadNode(fmt::format("input has shape {}; [C] or [N,C] is expected", ShapeText(shape)));
}

absl::StatusOr<RowShape> InferredRows(const InferContext& ctx) {
  if (!ctx.input(0).has_rank) return RowShape();
  return RowShapeOf(ctx.input(0).dims);
}

absl::StatusOr<Tensor> AsFloats(const Tensor& tensor, HostAllocator& allocator) {
  if (tensor.dtype() == DType::kF32) return tensor;
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, tensor.shape(), allocator));
  DispatchNumeric(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::transform(tensor.Data<T>().begin(), tensor.Data<T>().end(), out.MutableData<float>().begin(),
                   [](T v) { return static_cast<float>(v); });
  });
  return out;
}

absl::StatusOr<PostTransform> ReadPostTransform(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int choice,
                       ReadChoice(attrs, "post_transform", {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"}));
  return static_cast<PostTransform>(choice);
}

float Logistic(float x) {
  const float y = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - y : y;
}

void TransformScores(PostTransform transform, std::span<float> scores) {
  if (scores.empty()) return;
  switch (transform) {
    case PostTransform::kNone: return;
    case PostTransform::kSoftmax: return Softmax(scores, /*keep_zeros=*/false);
    case PostTransform::kSoftmaxZero: return Softmax(scores, /*keep_zeros=*/true);
    case PostTransform::kLogistic:
      for (float& s : scores) s = Logistic(s);
      return;
    case PostTransform::kProbit:
      for (float& s : scores) s = Probit(s);
  }
}

void TransformBinaryScore(PostTransform transform, float score, std::span<float> out) {
  out[1] = transform == PostTransform::kProbit ? Probit(score) : score;
  out[0] = -out[1];
  if (transform != PostTransform::kProbit) TransformScores(transform, out);
}

absl::StatusOr<ClassLabels> ReadLabels(const Attributes& attrs, std::string_view ints) {
  ClassLabels labels = {attrs.IntList(ints), attrs.TextList("classlabels_strings")};
  if (labels.ints.empty() != labels.texts.empty()) return labels;
  return BadNode(fmt::format("exactly one of {} and classlabels_strings must be given", ints));
}

void SetLabel(Tensor& y, int64_t row, const ClassLabels& labels, int64_t label) {
  if (labels.as_text()) {
    y.MutableData<std::string>()[row] = labels.texts[label];
  } else {
    y.MutableData<int64_t>()[row] = labels.ints[label];
  }
}

void SetClassifierOutputs(InferContext& ctx, const ClassLabels& labels, int64_t rows, int64_t width) {
  ctx.SetOutput(0, MakeType(labels.dtype(), {rows}));
  ctx.SetOutput(1, MakeType(DType::kF32, {rows, width}));
}

absl::StatusOr<MapView> MapInput(const EvalContext& ctx) {
  const HostValue& map = ctx.value(0);
  if (map.kind == ValueKind::kMap && map.sequence.size() == 2) {
    const MapView view = {map.sequence[0], map.sequence[1]};
    const bool keys = view.keys.dtype() == DType::kI64 || view.keys.dtype() == DType::kString;
    if (keys && view.keys.elements() == view.values.elements()) return view;
  }
  return ctx.Invalid("the input is not a map with one value for each key");
}

absl::Status EvalLookup(EvalContext& ctx, const std::function<absl::StatusOr<LookupTable>()>& make) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(auto indexed, Prepared<IndexedTable>(ctx, [&] { return Indexed(ctx, make); }));
  if (indexed->table.keys.dtype() != x.dtype()) {  // the type of the input differs from that of an earlier run
    MGE_ASSIGN_OR_RETURN(IndexedTable own, Indexed(ctx, make));
    indexed = std::make_shared<const IndexedTable>(std::move(own));
  }
  const LookupTable& table = indexed->table;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, table.values.dtype(), x.shape()));
  DispatchKeys(x.dtype(), [&](auto key_tag) {
    using Key = typename decltype(key_tag)::type;
    DispatchCopy(y->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Key* in = static_cast<const Key*>(x.data());
      const T* values = static_cast<const T*>(table.values.data());
      T* out = static_cast<T*>(y->mutable_data());
      for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t found = indexed->Find(in[i]);
        out[i] = found < 0 ? *static_cast<const T*>(table.fallback.data()) : values[found];
      }
    });
  });
  return absl::OkStatus();
}

}  // namespace mge
