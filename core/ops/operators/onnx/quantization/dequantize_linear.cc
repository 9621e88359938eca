// SPDX-License-Identifier: Apache-2.0
#include "core/base/narrow.h"
#include "core/ops/families/quantization.h"

namespace mge::op_dequantize_linear {
namespace {

constexpr TypeSet kIntegers = {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32};
constexpr TypeSet kSources = kIntegers | kNarrow;
constexpr TypeSet kScales = {DType::kF32, DType::kF16, DType::kBF16};

absl::StatusOr<DType> ResultType(const Attributes& attrs, DType scale) {
  if (attrs.Int("output_dtype") == 0) return scale;
  return ReadDType(attrs, "output_dtype", kScales, scale);
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  const TensorType& scale = ctx.input(1);
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 2}));
  if (x.has_rank && scale.has_rank) MGE_RETURN_IF_ERROR(ResolveQuantization(ctx.attrs(), x.dims, scale.dims).status());
  if (scale.has_rank && ctx.has_input(2) && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(CheckZeroPoint(scale.dims, ctx.input(2).dims));
  }
  TensorType y = x;
  MGE_ASSIGN_OR_RETURN(y.dtype, ResultType(ctx.attrs(), scale.dtype));
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

template <typename Q, typename Z, typename T>
void Dequantize(const QuantizationLayout& layout, std::span<const Q> x, std::span<const float> scale,
                std::span<const Z> zero, std::span<T> y) {
  size_t at = 0;
  for (int64_t o = 0; o < layout.outer; ++o) {
    for (int64_t d = 0; d < layout.dim; ++d) {
      for (int64_t i = 0; i < layout.inner; ++i, ++at) {
        const int64_t s = layout.ScaleIndex(o, d, i);
        const Z centred = static_cast<Z>(x[at]) - (zero.empty() ? Z{0} : zero[s]);
        y[at] = static_cast<T>(static_cast<float>(centred) * scale[s]);
      }
    }
  }
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(QuantizationLayout layout, ResolveQuantization(ctx.attrs(), x.shape(), ctx.input(1).shape()));
  MGE_ASSIGN_OR_RETURN(Tensor scale, ToComputeType(ctx.input(1), ctx.allocator()));
  if (ctx.has_input(2)) MGE_RETURN_IF_ERROR(CheckZeroPoint(scale.shape(), ctx.input(2).shape()));
  MGE_ASSIGN_OR_RETURN(DType result, ResultType(ctx.attrs(), ctx.input(1).dtype()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, result, x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  auto dequantize = [&](auto from, auto zero) {
    DispatchFloating(result, [&](auto out) {
      Dequantize(layout, from, scale.Data<float>(), zero, y->MutableData<typename decltype(out)::type>());
    });
  };
  if (kNarrow.Contains(x.dtype())) {
    MGE_ASSIGN_OR_RETURN(const Tensor wide, NarrowToFloat(x, ctx.allocator()));
    Tensor zero;
    if (ctx.has_input(2)) {
      MGE_ASSIGN_OR_RETURN(zero, NarrowToFloat(ctx.input(2), ctx.allocator()));
    }
    dequantize(wide.Data<float>(), zero.Data<float>());
    return absl::OkStatus();
  }
  const std::vector<int64_t> zero = ctx.has_input(2) ? ctx.input(2).ToInts() : std::vector<int64_t>();
  bool known = kIntegers.Contains(x.dtype()) && DispatchInteger(x.dtype(), [&](auto tag) {
                 using Q = typename decltype(tag)::type;
                 if constexpr (sizeof(Q) <= 4) dequantize(x.Data<Q>(), std::span<const int64_t>(zero));
               });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(dequantize_linear) = {
    .name = "DequantizeLinear",
    .doc = "y = (x - zero point) * scale, per tensor, per axis or per block.",
    .inputs = {{"x", kSources}, {"x_scale", kScales}, {"x_zero_point", kSources, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = {AxisOf({"axis", 1, "the axis"}),
              {"block_size", 0, "elements that share a scale along the axis; 0: not in blocks"},
              {"output_dtype", 0, "the element type of the result; 0: that of the other operands"}},
    .infer = Infer,
    .eval = Eval,
    .since = 10,
    .examples = {"(T[3,7]@0:9, float32[]<0.1>)", "(T[3,5]@0:9, float32[5]<0.1,0.2,0.3,0.4,0.5>) {axis=1}"},
};

}  // namespace mge::op_dequantize_linear
