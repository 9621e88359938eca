// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/packed_bits.h"
#include "fmt/format.h"

namespace mge::op_mat_mul_n_bits {
namespace {

enum Input { kA, kB, kScales, kZeros, kGroups, kBias };

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.type(kB).IsStatic() || !f.type(kScales).IsStatic()) return false;
  const int64_t depth = f.attrs().Int("K"), columns = f.attrs().Int("N"), bits = f.attrs().Int("bits");
  const int64_t block = f.attrs().Int("block_size");
  if (bits != 2 && bits != 4 && bits != 8) return f.Unsupported(fmt::format("the attribute bits = {}", bits));
  if (f.has_input(kGroups)) return f.Unsupported("the input g_idx");
  if (f.attrs().Int("weight_prepacked") != 0) return f.Unsupported("the attribute weight_prepacked");
  if (depth <= 0 || columns <= 0 || block < 8 || block % 8 != 0) return f.Invalid("K, N or block_size is out of range");
  const int64_t blocks = (depth - 1) / block + 1;
  const Shape scales = {columns, blocks};
  if (Elements(f.dims(kB)) != columns * blocks * (block / 8) * bits || Elements(f.dims(kScales)) != columns * blocks) {
    return f.Invalid(fmt::format("B {} does not fit K = {} and N = {}", ShapeText(f.dims(kB)), depth, columns));
  }
  const ValueId scale = f.Reshape(f.input(kScales), scales);
  const Shape bytes = {columns, blocks * (block / 8) * bits};
  const ValueId q = UnpackedBits(f, f.Reshape(f.input(kB), bytes), bytes, bits);
  ValueId weights = kNone;
  if (!f.has_input(kZeros) || f.dtype(kZeros) == DType::kU8) {
    ValueId zero = kNone;
    if (f.has_input(kZeros)) {
      const int64_t row = (blocks * bits + 7) / 8;
      if (!f.type(kZeros).IsStatic()) return false;
      if (Elements(f.dims(kZeros)) != columns * row) return f.Invalid("zero_points do not fit K and N");
      zero = UnpackedBits(f, f.Reshape(f.input(kZeros), {columns, row}), {columns, row}, bits);
      if (const int64_t spare = row * 8 / bits - blocks; spare > 0) zero = f.Split(zero, {blocks, spare})[0];
    }
    weights = DequantizedBlocks(f, q, scale, zero, scales, block, bits);
  } else {
    const ValueId floats = f.Add("Cast", {f.Reshape(q, {columns, blocks, block})}, CastTo(f.dtype(kScales)));
    const ValueId zero = f.Reshape(f.input(kZeros), {columns, blocks, 1});
    const ValueId scaled = f.Add("Mul", {f.Add("Sub", {floats, zero}), f.Reshape(scale, {columns, blocks, 1})});
    weights = f.Reshape(scaled, {columns, blocks * block});
  }
  if (const int64_t spare = blocks * block - depth; spare > 0) weights = f.Split(weights, {depth, spare})[0];
  const ValueId turned = f.Transpose(weights, {1, 0});
  if (f.has_input(kBias)) {
    f.Result(0, "Add", {f.Add("MatMul", {f.input(kA), turned}), f.input(kBias)});
  } else {
    f.Result(0, "MatMul", {f.input(kA), turned});
  }
  return true;
}

// The body has the type, too, but a language model has this operator in each of its layers, and a plan for each length.
absl::Status Infer(InferContext& ctx) {
  const int64_t depth = ctx.attrs().Int("K"), columns = ctx.attrs().Int("N"), bits = ctx.attrs().Int("bits");
  const int64_t block = ctx.attrs().Int("block_size");
  const TensorType &a = ctx.input(kA), &b = ctx.input(kB), &scales = ctx.input(kScales);
  const bool simple = a.IsStatic() && b.IsStatic() && scales.IsStatic() && !ctx.has_input(kGroups) &&
                      scales.dtype == a.dtype && !ctx.has_input(kBias) &&
                      (!ctx.has_input(kZeros) || ctx.input(kZeros).IsStatic());
  if (!simple || a.dims.size() < 2 || a.dims.back() != depth || depth <= 0 || columns <= 0 || block < 8 || block % 8 != 0 ||
      (bits != 2 && bits != 4 && bits != 8)) {
    return InferByBody(ctx);
  }
  const int64_t blocks = (depth - 1) / block + 1;
  bool fits = Elements(b.dims) == columns * blocks * (block / 8) * bits && Elements(scales.dims) == columns * blocks;
  if (ctx.has_input(kZeros)) {
    const TensorType& zeros = ctx.input(kZeros);
    const bool packed = zeros.dtype == DType::kU8;
    fits = fits && (packed || zeros.dtype == a.dtype) &&
           Elements(zeros.dims) == columns * (packed ? (blocks * bits + 7) / 8 : blocks);
  }
  if (!fits || ctx.attrs().Int("weight_prepacked") != 0) return InferByBody(ctx);
  TensorType y = {.dtype = a.dtype, .has_rank = true, .dims = a.dims};
  y.dims.back() = columns;
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

}  // namespace

MGE_OP(mat_mul_n_bits) = {
    .name = "MatMulNBits",
    .domain = "com.microsoft",
    .doc = "The product of A with weights of 2, 4 or 8 bits, with a scale for each block of a column.",
    .inputs = {{"A", kFloating},
               {"B", {DType::kU8}},
               {"scales", kFloating},
               {"zero_points", kFloating | TypeSet{DType::kU8}, Arity::kOptional},
               {"g_idx", {DType::kI32}, Arity::kOptional},
               {"bias", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"K", AttrType::kInt, Presence::kRequired, "the rows of the weights"},
              {"N", AttrType::kInt, Presence::kRequired, "the columns of the weights"},
              {"accuracy_level", 0, "4 allows 8-bit products"},
              {"bits", 4, "the bits of a weight"},
              {"block_size", AttrType::kInt, Presence::kRequired, "elements of a column that share a scale"},
              {"weight_prepacked", 0, "must be 0"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,40], uint8[3,3,8], T[9]) {K=40, N=3, block_size=16}",
                 "(T[2,2,40], uint8[3,3,8], T[3,3], uint8[3,2], _, T[3]) {K=40, N=3, block_size=16, bits=4}",
                 "(T[1,32], uint8[3,2,16], T[3,2], T[3,2]) {K=32, N=3, block_size=16, bits=8}"},
};

}  // namespace mge::op_mat_mul_n_bits
