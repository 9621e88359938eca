// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/packed_bits.h"
#include "fmt/format.h"

namespace mge::op_mat_mul_n_bits {
namespace {

enum Input { kA, kB, kScales, kZeros, kGroups, kBias };

// The sizes of the weights: `blocks` blocks of `block` numbers for each of `columns` columns.
struct Sizes {
  explicit Sizes(const Attributes& attrs)
      : depth(attrs.Int("K")), columns(attrs.Int("N")), bits(attrs.Int("bits")), block(attrs.Int("block_size")) {}
  bool HasKnownBits() const { return bits == 2 || bits == 4 || bits == 8; }
  bool InRange() const {
    int64_t padded = 0, weights = 0;  // their number bounds all other sizes
    return depth > 0 && columns > 0 && block >= 8 && block % 8 == 0 && CheckedMul(blocks(), block, &padded) &&
           CheckedMul(padded, columns, &weights);
  }
  int64_t blocks() const { return (depth - 1) / block + 1; }
  Shape bytes() const { return {columns, blocks() * (block / 8) * bits}; }
  Shape scales() const { return {columns, blocks()}; }
  Shape packed_zeros() const { return {columns, (blocks() * bits + 7) / 8}; }
  bool Fit(const Shape& b, const Shape& scale) const {
    return Elements(b) == Elements(bytes()) && Elements(scale) == Elements(scales());
  }

  int64_t depth, columns, bits, block;
};

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.type(kB).IsStatic() || !f.type(kScales).IsStatic()) return false;
  const Sizes sizes(f.attrs());
  const int64_t depth = sizes.depth, columns = sizes.columns, bits = sizes.bits, block = sizes.block;
  if (!sizes.HasKnownBits()) return f.Unsupported(fmt::format("the attribute bits = {}", bits));
  if (f.has_input(kGroups)) return f.Unsupported("the input g_idx");
  if (f.attrs().Int("weight_prepacked") != 0) return f.Unsupported("the attribute weight_prepacked");
  if (!sizes.InRange()) return f.Invalid("K, N or block_size is out of range");
  if (!sizes.Fit(f.dims(kB), f.dims(kScales))) {
    return f.Invalid(fmt::format("B {} does not fit K = {} and N = {}", ShapeText(f.dims(kB)), depth, columns));
  }
  const int64_t blocks = sizes.blocks();
  const Shape scales = sizes.scales(), bytes = sizes.bytes();
  const ValueId scale = f.Reshape(f.input(kScales), scales);
  const ValueId q = UnpackedBits(f, f.Reshape(f.input(kB), bytes), bytes, bits);
  ValueId weights = kNone;
  if (!f.has_input(kZeros) || f.dtype(kZeros) == DType::kU8) {
    ValueId zero = kNone;
    if (f.has_input(kZeros)) {
      const Shape packed = sizes.packed_zeros();
      if (!f.type(kZeros).IsStatic()) return false;
      if (Elements(f.dims(kZeros)) != Elements(packed)) return f.Invalid("zero_points do not fit K and N");
      zero = UnpackedBits(f, f.Reshape(f.input(kZeros), packed), packed, bits);
      if (const int64_t spare = packed[1] * 8 / bits - blocks; spare > 0) zero = f.Split(zero, {blocks, spare})[0];
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

// The body has the type, too, and refuses the rest. But a language model has this operator in each of its layers, and a plan for each
// length.
absl::Status Infer(InferContext& ctx) {
  const Sizes sizes(ctx.attrs());
  const TensorType &a = ctx.input(kA), &b = ctx.input(kB), &scales = ctx.input(kScales);
  bool usual = a.IsStatic() && b.IsStatic() && scales.IsStatic() && scales.dtype == a.dtype && !ctx.has_input(kGroups) &&
               !ctx.has_input(kBias) && ctx.attrs().Int("weight_prepacked") == 0 && sizes.HasKnownBits() &&
               sizes.InRange() && a.dims.size() >= 2 && a.dims.back() == sizes.depth && sizes.Fit(b.dims, scales.dims);
  if (usual && ctx.has_input(kZeros)) {
    const TensorType& zeros = ctx.input(kZeros);
    const bool packed = zeros.dtype == DType::kU8;
    usual = zeros.IsStatic() && (packed || zeros.dtype == a.dtype) &&
            Elements(zeros.dims) == Elements(packed ? sizes.packed_zeros() : sizes.scales());
  }
  if (!usual) return InferByBody(ctx);
  TensorType y = {.dtype = a.dtype, .has_rank = true, .dims = a.dims};
  y.dims.back() = sizes.columns;
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
