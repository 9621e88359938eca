// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/cast.h"
#include "core/ops/families/quantization.h"
#include "fmt/format.h"

namespace mge::op_quantize_linear {
namespace {

constexpr TypeSet kResults = TypeSet{DType::kU8, DType::kI8, DType::kU16, DType::kI16} | kNarrow;

// Returns the output's type. `zero_point` is null if absent; its type may be unknown.
absl::StatusOr<DType> ResultType(const Attributes& attrs, const DType* zero_point) {
  if (attrs.Int("output_dtype") == 0) return zero_point ? *zero_point : DType::kU8;
  MGE_ASSIGN_OR_RETURN(DType wanted, ReadDType(attrs, "output_dtype", kResults));
  if (zero_point && *zero_point != DType::kUndefined && *zero_point != wanted) {
    return Fail(errors::kInvalidNode, fmt::format("attribute output_dtype is {}, but the zero point has type {}",
                                                  DTypeName(wanted), DTypeName(*zero_point)));
  }
  return wanted;
}

absl::StatusOr<DType> DivisionType(const Attributes& attrs, DType scale) {
  if (attrs.Int("precision") == 0) return scale;
  return ReadDType(attrs, "precision", {DType::kF32, DType::kF16, DType::kBF16}, scale);
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  const TensorType& scale = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(DType result, ResultType(ctx.attrs(), ctx.has_input(2) ? &ctx.input(2).dtype : nullptr));
  MGE_RETURN_IF_ERROR(DivisionType(ctx.attrs(), scale.dtype).status());
  if (x.has_rank && scale.has_rank) MGE_RETURN_IF_ERROR(ResolveQuantization(ctx.attrs(), x.dims, scale.dims).status());
  if (scale.has_rank && ctx.has_input(2) && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(CheckZeroPoint(scale.dims, ctx.input(2).dims));
  }
  TensorType y = x;
  y.dtype = result;
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

// Rounds a quotient to the precision that attribute precision requires for the division.
float RoundTo(DType dtype, float value) {
  if (dtype == DType::kF16) return static_cast<float>(Half(value));
  if (dtype == DType::kBF16) return static_cast<float>(BFloat16(value));
  return value;
}

// Calls store(element, index of its scale, x / scale) for each element.
template <typename T, typename Store>
void ForEachQuotient(const QuantizationLayout& layout, std::span<const T> x, std::span<const float> scale, DType division,
                     Store store) {
  size_t at = 0;
  for (int64_t o = 0; o < layout.outer; ++o) {
    for (int64_t d = 0; d < layout.dim; ++d) {
      for (int64_t i = 0; i < layout.inner; ++i, ++at) {
        const int64_t s = layout.ScaleIndex(o, d, i);
        const float operand = RoundTo(division, static_cast<float>(x[at]));
        store(at, s, RoundTo(division, operand / RoundTo(division, scale[s])));
      }
    }
  }
}

template <typename T>
void Quantize(const QuantizationLayout& layout, std::span<const T> x, std::span<const float> scale,
              std::span<const float> zero, DType division, NarrowRule rule, Tensor& y) {
  auto zero_of = [&](int64_t s) { return zero.empty() ? 0 : zero[s]; };
  const DType result = y.dtype();
  if (kNarrow.Contains(result)) {
    auto* out = static_cast<uint8_t*>(y.mutable_data());
    const bool integer = kNarrowInteger.Contains(result);
    const float low = static_cast<float>(NarrowMin(result)), high = static_cast<float>(NarrowMax(result));
    ForEachQuotient(layout, x, scale, division, [&](size_t at, int64_t s, float quotient) {
      const float number = (integer ? std::nearbyint(quotient) : quotient) + zero_of(s);
      out[at] = FloatToNarrow(result, !integer ? number : number > low ? std::min(number, high) : low, rule);
    });
    return;
  }
  DispatchInteger(result, [&](auto tag) {
    using Q = typename decltype(tag)::type;
    if constexpr (sizeof(Q) <= 2) {
      std::span<Q> out = y.MutableData<Q>();
      ForEachQuotient(layout, x, scale, division, [&](size_t at, int64_t s, float quotient) {
        out[at] = Saturate<Q>(static_cast<double>(std::nearbyint(quotient)) + static_cast<double>(zero_of(s)));
      });
    }
  });
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(QuantizationLayout layout, ResolveQuantization(ctx.attrs(), x.shape(), ctx.input(1).shape()));
  MGE_ASSIGN_OR_RETURN(Tensor scale, ToComputeType(ctx.input(1), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(DType division, DivisionType(ctx.attrs(), ctx.input(1).dtype()));
  Tensor zero;
  DType result = DType::kUndefined;
  if (ctx.has_input(2)) {
    MGE_RETURN_IF_ERROR(CheckZeroPoint(scale.shape(), ctx.input(2).shape()));
    MGE_ASSIGN_OR_RETURN(zero, CastTensor(ctx.input(2), DType::kF32, ctx.allocator()));
    result = ctx.input(2).dtype();
  }
  MGE_ASSIGN_OR_RETURN(result, ResultType(ctx.attrs(), ctx.has_input(2) ? &result : nullptr));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, result, x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  const NarrowRule rule = {ctx.attrs().Int("saturate") != 0};
  auto from = [&](auto tag) {
    using T = typename decltype(tag)::type;
    Quantize<T>(layout, x.Data<T>(), scale.Data<float>(), zero.Data<float>(), division, rule, *y);
  };
  if (x.dtype() == DType::kI32) {
    from(TypeTag<int32_t>{});
    return absl::OkStatus();
  }
  return DispatchFloating(x.dtype(), from) ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(quantize_linear) = {
    .name = "QuantizeLinear",
    .doc =
        "y = saturate(round(x / scale) + zero point), per tensor, per axis or per block. Halves "
        "round to even.",
    .inputs = {{"x", {DType::kF32, DType::kF16, DType::kBF16, DType::kI32}},
               {"y_scale", {DType::kF32, DType::kF16, DType::kBF16}},
               {"y_zero_point", kResults, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = {AxisOf({"axis", 1, "the axis"}),
              {"block_size", 0, "elements that share a scale along the axis; 0: not in blocks"},
              {"output_dtype", 0, "the element type of the result; 0: that of the other operands"},
              {"precision", 0, "the element type of the division; 0: that of the scale"},
              {"saturate", 1, "to float8: numbers beyond the range become the nearest limit"}},
    .infer = Infer,
    .eval = Eval,
    .since = 10,
    .examples = {"(T[3,7], T[]<0.1>)", "(T[3,5], T[5]<0.1,0.2,0.3,0.4,0.5>, uint8[5]<0,1,2,3,4>) {axis=1}"},
};

}  // namespace mge::op_quantize_linear
