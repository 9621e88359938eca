// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/packed_bits.h"
#include "fmt/format.h"

namespace mge::op_gather_block_quantized {
namespace {

enum Input { kData, kIndices, kScales, kZeros };

// Rows are selected before they are unpacked. 4-bit tensors of ONNX are already unpacked by the reader of models.
absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const int64_t bits = f.attrs().Int("bits"), block = f.attrs().Int("block_size");
  const int64_t rank = f.rank(kData);
  const bool ranks_fit = f.rank(kScales) == rank && (!f.has_input(kZeros) || f.rank(kZeros) == rank);
  if (rank < 2 || !ranks_fit || block < 8 || block % 8 != 0) return f.Invalid("data and scales do not fit together");
  if (bits != 4 && bits != 8) return f.Unsupported(fmt::format("the attribute bits = {}", bits));
  MGE_ASSIGN_OR_RETURN(const int64_t gathered, NormalizeAxis(f.attrs().Int("gather_axis"), rank));
  MGE_ASSIGN_OR_RETURN(const int64_t quantized, NormalizeAxis(f.attrs().Int("quantize_axis"), rank));
  if (gathered != 0 || quantized != rank - 1)
    return f.Unsupported("a gather_axis other than the first, or quantize_axis than the last");
  const int64_t size = f.dims(kData).back(), blocks = f.dims(kScales).back();
  const bool packed = bits == 4 && f.dtype(kData) == DType::kU8 && (size - 1) / block + 1 != blocks;
  if (packed && (2 * size - 1) / block + 1 != blocks) return f.Invalid("data and scales do not fit together");
  const auto rows = [&](int input) { return f.Add("Gather", {f.input(input), f.input(kIndices)}); };
  const auto shape = [&](int input) {
    Shape out = f.dims(kIndices);
    const Shape dims = f.dims(input);
    out.insert(out.end(), dims.begin() + 1, dims.end());
    return out;
  };
  ValueId q = rows(kData), zero = f.has_input(kZeros) ? rows(kZeros) : kNone;
  if (packed) {
    q = UnpackedBits(f, q, shape(kData), bits);
    if (zero != kNone) {
      zero = UnpackedBits(f, zero, shape(kZeros), bits);
      if (const int64_t spare = 2 * f.dims(kZeros).back() - blocks; spare > 0) zero = f.Split(zero, {blocks, spare})[0];
    }
  }
  if (zero == kNone && !packed && bits == 4)
    zero = f.Add("Expand", {f.Number(f.dtype(kData), 0), f.Integers(shape(kScales))});
  f.Result(0, "Identity", {DequantizedBlocks(f, q, rows(kScales), zero, shape(kScales), block, bits)});
  return true;
}

}  // namespace

MGE_OP(gather_block_quantized) = {
    .name = "GatherBlockQuantized",
    .domain = "com.microsoft",
    .doc = "Rows of a quantized matrix, dequantized with a scale for each block of a row.",
    .inputs = {{"data", {DType::kU8, DType::kI8}},
               {"indices", {DType::kI32, DType::kI64}},
               {"scales", kFloating},
               {"zero_points", {DType::kU8, DType::kI8}, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {{"bits", 4, "the bits of a weight"},
              {"block_size", 128, "elements that share a scale"},
              AxisOf({"gather_axis", 0, "the axis of indices"}),
              AxisOf({"quantize_axis", 1, "the axis of the blocks"})},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(uint8[5,16], int64[2,3]<0,4,1,2,2,3>, float32[5,2]) {block_size=16}",
                 "(uint8[5,16], int64[2]<4,0>, float32[5,2], uint8[5,1]) {block_size=16}",
                 "(uint8[5,32], int32[2]<4,0>, float32[5,2]) {block_size=16, bits=8}"},
};

}  // namespace mge::op_gather_block_quantized
