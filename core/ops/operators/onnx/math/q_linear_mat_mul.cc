// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/quantization.h"
#include "core/ops/op_helpers.h"

namespace mge::op_q_linear_mat_mul {
namespace {

enum Input { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };

constexpr TypeSet kScales = {DType::kF32, DType::kF16, DType::kBF16};

// The operands as matrices. A vector on the left is a row, one on the right a column.
struct Geometry {
  Shape a, b;    // at least two dimensions
  Shape batch;   // broadcast of all dimensions but the last two
  Shape output;  // without the dimensions added to vectors
};

absl::StatusOr<Geometry> Resolve(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.empty() || b.empty()) return Fail(errors::kInvalidNode, "a scalar is not a matrix");
  Geometry g{.a = Shape(a.begin(), a.end()), .b = Shape(b.begin(), b.end()), .batch = {}, .output = {}};
  if (a.size() == 1) g.a.insert(g.a.begin(), 1);
  if (b.size() == 1) g.b.push_back(1);
  MGE_RETURN_IF_ERROR(RequireSize("the number of rows of b", g.b[g.b.size() - 2], g.a.back()));
  MGE_ASSIGN_OR_RETURN(g.batch, BroadcastShapes(std::span(g.a).first(g.a.size() - 2), std::span(g.b).first(g.b.size() - 2)));
  g.output = g.batch;
  if (a.size() > 1) g.output.push_back(g.a[g.a.size() - 2]);
  if (b.size() > 1) g.output.push_back(g.b.back());
  return g;
}

// Returns a shape in which a scale or zero point broadcasts over its matrix. It is one number, a vector of one number
// per row (for a) or column (for b), or such a vector after the batch dimensions.
absl::StatusOr<Shape> ParameterShape(std::string_view name, std::span<const int64_t> shape, const Shape& matrix,
                                     bool per_row) {
  Shape wanted = matrix, result(shape.begin(), shape.end());
  wanted[matrix.size() - (per_row ? 1 : 2)] = 1;
  if (shape.empty() || (shape.size() == 1 && shape[0] == 1)) return Shape(matrix.size(), 1);
  if (shape.size() == 1) {
    result.insert(per_row ? result.end() : result.begin(), 1);
    result.insert(result.begin(), matrix.size() - 2, 1);
    std::fill(wanted.begin(), wanted.end() - 2, 1);
  }
  MGE_RETURN_IF_ERROR(RequireShape(name, result, wanted));
  return result;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kA, kAZero}));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kB, kBZero}));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kAScale, kBScale, kYScale}));
  const DType result = ctx.input(kYZero).dtype;
  for (int i : {kYScale, kYZero}) {
    if (ctx.input(i).has_rank) MGE_RETURN_IF_ERROR(CheckPerChannel("the output's quantization", ctx.input(i).dims, 1));
  }
  if (!ctx.input(kA).has_rank || !ctx.input(kB).has_rank) {
    ctx.SetOutput(0, UnrankedType(result));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.input(kA).dims, ctx.input(kB).dims));
  for (int i : {kAScale, kAZero, kBScale, kBZero}) {
    const bool of_a = i < kB;
    if (!ctx.input(i).has_rank) continue;
    MGE_RETURN_IF_ERROR(ParameterShape(of_a ? "a scale or zero point of a" : "a scale or zero point of b", ctx.input(i).dims,
                                       of_a ? g.a : g.b, of_a)
                            .status());
  }
  ctx.SetOutput(0, MakeType(result, g.output));
  return absl::OkStatus();
}

// Returns the strides of a parameter over its matrix. They are 0 along dimensions with one value for all.
absl::StatusOr<Shape> ParameterStrides(const Tensor& parameter, const Shape& matrix, bool per_row) {
  MGE_ASSIGN_OR_RETURN(Shape shape, ParameterShape("a scale or zero point", parameter.shape(), matrix, per_row));
  return BroadcastStrides(shape, matrix);
}

int64_t Offset(std::span<const int64_t> index, std::span<const int64_t> strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

// Returns the elements minus their zero points as 32-bit integers that wrap around.
absl::StatusOr<Tensor> Centre(EvalContext& ctx, const Tensor& q, const Tensor& zero, const Shape& matrix, bool per_row) {
  MGE_ASSIGN_OR_RETURN(Tensor wide, SubtractZeroPoint(ctx, q, nullptr, 0));
  MGE_ASSIGN_OR_RETURN(Shape strides, ParameterStrides(zero, matrix, per_row));
  const std::vector<int64_t> zeros = zero.ToInts();
  Shape index(matrix.size(), 0);
  for (uint32_t& v : wide.MutableData<uint32_t>()) {
    v -= static_cast<uint32_t>(zeros[Offset(index, strides)]);
    NextIndex(matrix, std::span<int64_t>(index.data(), index.size()));
  }
  return wide;
}

// One operand of a product.
struct Operand {
  Tensor values;  // centred
  Tensor scales;  // float32
  Shape strides;  // strides of the matrices, 0 along broadcast dimensions
  Shape scale_strides;
};

absl::StatusOr<Operand> MakeOperand(EvalContext& ctx, int first, const Shape& matrix, const Geometry& g, bool per_row) {
  Operand o;
  MGE_ASSIGN_OR_RETURN(o.values, Centre(ctx, ctx.input(first), ctx.input(first + 2), matrix, per_row));
  MGE_ASSIGN_OR_RETURN(o.scales, ToComputeType(ctx.input(first + 1), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(o.scale_strides, ParameterStrides(o.scales, matrix, per_row));
  // The strides of the matrix's dimensions, aligned to the common batch.
  Shape full = g.batch;
  full.insert(full.end(), matrix.end() - 2, matrix.end());
  o.strides = BroadcastStrides(matrix, full);
  const size_t missing = full.size() - matrix.size();
  o.scale_strides.insert(o.scale_strides.begin(), missing, 0);
  for (size_t i = missing; i < g.batch.size(); ++i) {
    if (matrix[i - missing] == 1) o.scale_strides[i] = 0;
  }
  return o;
}

template <typename Q>
absl::Status Multiply(EvalContext& ctx, const Geometry& g, const Operand& a, const Operand& b, float y_scale, double y_zero,
                      std::span<Q> y) {
  const size_t rank = g.batch.size();
  const int64_t rows = g.a[g.a.size() - 2], inner = g.a.back(), columns = g.b.back();
  const uint32_t* left = a.values.Data<uint32_t>().data();
  const uint32_t* right = b.values.Data<uint32_t>().data();
  Shape index(rank, 0);
  for (size_t at = 0; at < y.size(); NextIndex(g.batch, std::span<int64_t>(index.data(), index.size()))) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const uint32_t* lhs = left + Offset(index, a.strides);
    const uint32_t* rhs = right + Offset(index, b.strides);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        uint32_t sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += lhs[i * inner + k] * rhs[k * columns + j];
        const float a_scale = a.scales.Data<float>()[Offset(index, a.scale_strides) + i * a.scale_strides[rank]];
        const float b_scale = b.scales.Data<float>()[Offset(index, b.scale_strides) + j * b.scale_strides[rank + 1]];
        const float value = static_cast<float>(static_cast<int32_t>(sum)) * (a_scale * b_scale / y_scale);
        y[at++] = Saturate<Q>(std::nearbyint(value) + y_zero);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Geometry g, Resolve(ctx.input(kA).shape(), ctx.input(kB).shape()));
  MGE_ASSIGN_OR_RETURN(double y_scale, ScalarFloat("y_scale", ctx.input(kYScale)));
  MGE_ASSIGN_OR_RETURN(int64_t y_zero, ScalarInt("y_zero_point", ctx.input(kYZero)));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, ctx.input(kYZero).dtype(), g.output));
  if (y->elements() == 0) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Operand a, MakeOperand(ctx, kA, g.a, g, true));
  MGE_ASSIGN_OR_RETURN(Operand b, MakeOperand(ctx, kB, g.b, g, false));
  const float scale = static_cast<float>(y_scale);
  const double zero = static_cast<double>(y_zero);
  return y->dtype() == DType::kU8 ? Multiply<uint8_t>(ctx, g, a, b, scale, zero, y->MutableData<uint8_t>())
                                  : Multiply<int8_t>(ctx, g, a, b, scale, zero, y->MutableData<int8_t>());
}

}  // namespace

MGE_OP(q_linear_mat_mul) = {
    .name = "QLinearMatMul",
    .doc =
        "Matrix product of quantized tensors: integer sums, rescaled and rounded to the "
        "output's quantization.",
    .inputs = {{"a", kQuantized8},
               {"a_scale", kScales},
               {"a_zero_point", kQuantized8},
               {"b", kQuantized8},
               {"b_scale", kScales},
               {"b_zero_point", kQuantized8},
               {"y_scale", kScales},
               {"y_zero_point", kQuantized8}},
    .outputs = {{"y"}},
    .infer = Infer,
    .eval = Eval,
    .since = 10,
    .examples = {"(T[3,5]@0:9, float32[]<0.1>, T[]<1>, T[5,7]@0:9, float32[]<0.2>, T[]<2>, float32[]<0.5>, T[]<3>)"},
};

}  // namespace mge::op_q_linear_mat_mul
