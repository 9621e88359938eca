// SPDX-License-Identifier: Apache-2.0
#include "core/base/narrow.h"
#include "core/ops/families/packed_bits.h"
#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_gather_block_quantized {
namespace {

enum Input { kTable, kIndices, kScales, kZeros };

constexpr TypeSet kData = TypeSet{DType::kU8} | kNarrow;

// Returns the dimensions of a table after Gather.
Shape Gathered(const Shape& table, const Shape& indices, int64_t axis) {
  Shape out(table.begin(), table.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), table.begin() + axis + 1, table.end());
  return out;
}

// Slices of the table are selected before they are unpacked and dequantized. A table of narrow integers becomes bytes, which
// backends can select from.
absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const DType type = f.dtype(kTable);
  const bool real = kNarrowFloating.Contains(type);
  const int64_t bits = type == DType::kU8 ? f.attrs().Int("bits") : 8;
  const int64_t rank = f.rank(kTable);
  if (f.rank(kScales) != rank || (f.has_input(kZeros) && f.rank(kZeros) != rank)) {
    return f.Invalid(fmt::format("data has rank {}, scales {}, zero_points {}; they must be the same", rank, f.rank(kScales),
                                 f.has_input(kZeros) ? f.rank(kZeros) : rank));
  }
  if (bits != 2 && bits != 4 && bits != 8)
    return f.Invalid(fmt::format("the attribute bits is {}; it must be 2, 4 or 8", bits));
  MGE_ASSIGN_OR_RETURN(const int64_t gathered, NormalizeAxis(f.attrs().Int("gather_axis"), rank));
  MGE_ASSIGN_OR_RETURN(const int64_t quantized, NormalizeAxis(f.attrs().Int("quantize_axis"), rank));
  const bool whole = gathered == quantized;  // the table is dequantized before slices are selected
  if (!whole && bits < 8 && gathered == rank - 1)
    return f.Unsupported("a gather_axis along which elements of bytes are packed");
  Shape unpacked = f.dims(kTable);
  unpacked.back() *= 8 / bits;
  const int64_t block = f.attrs().Int("block_size") > 0 ? f.attrs().Int("block_size") : unpacked[quantized];

  const Shape indices = f.dims(kIndices);
  const auto select = [&](ValueId table) {
    return f.Add("Gather", {table, f.input(kIndices)}, IntAttribute("axis", gathered));
  };
  const auto rows = [&](ValueId table) { return whole ? table : select(table); };
  const auto rows_of = [&](const Shape& table) { return whole ? table : Gathered(table, indices, gathered); };
  const auto unpack = [&](int input) {
    if (kNarrowInteger.Contains(type)) return rows(f.Cast(f.input(input), type, WidenedType(type)));
    return UnpackedBits(f, rows(f.input(input)), rows_of(f.dims(input)), bits);
  };
  // The scales of all blocks. Those of a real type may be shared along other axes.
  Shape blocks = unpacked;
  blocks[quantized] = (unpacked[quantized] - 1) / block + 1;
  ValueId scale = f.input(kScales);
  if (real && f.dims(kScales) != blocks) scale = f.Add("Expand", {scale, f.Integers(blocks)});
  const Shape out_blocks = rows_of(blocks);

  ValueId zero = kNone;
  if (f.has_input(kZeros)) {
    zero = unpack(kZeros);
    const int64_t spare = f.dims(kZeros).back() * (8 / bits) - blocks.back();
    if (spare > 0) zero = f.Split(zero, {blocks.back(), spare})[0];
  } else if (type == DType::kU8) {
    zero = f.Add("Expand", {f.Number(type, static_cast<double>(1 << (bits - 1))), f.Integers(out_blocks)});
  }
  Attributes attrs =
      IntAttribute("axis", quantized > gathered ? quantized + static_cast<int64_t>(indices.size()) - 1 : quantized);
  attrs.Set("block_size", block);
  const ValueId y = f.Add("DequantizeLinear", {unpack(kTable), rows(scale), zero}, std::move(attrs));
  f.Result(0, "Identity", {whole ? select(y) : y});
  return true;
}

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, UnrankedType(ctx.input(kScales).dtype));
  return InferByBody(ctx);
}

}  // namespace

MGE_OP(gather_block_quantized) = {
    .name = "GatherBlockQuantized",
    .domain = "com.microsoft",
    .doc =
        "Rows of a quantized matrix, dequantized with a scale for each block of a row. An index out of range is an error.",
    .inputs = {{"data", kData},
               {"indices", {DType::kI32, DType::kI64}},
               {"scales", kFloating},
               {"zero_points", TypeSet{DType::kU8} | kNarrowInteger, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {{"bits", 4, "of data of uint8: 2 or 4, packed along the last axis, or 8"},
              {"block_size", 128, "elements that share a scale; 0: all of the axis"},
              AxisOf({"gather_axis", 0, "the axis of indices"}),
              AxisOf({"quantize_axis", 1, "the axis of the blocks"})},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(uint8[5,16], int64[2,3]<0,4,1,2,2,3>, float32[5,2]) {block_size=16}",
                 "(uint8[5,16], int64[2]<4,0>, float32[5,2], uint8[5,1]) {block_size=16}",
                 "(uint8[5,32], int32[2]<4,0>, float32[5,2]) {block_size=16, bits=8}"},
};

}  // namespace mge::op_gather_block_quantized
