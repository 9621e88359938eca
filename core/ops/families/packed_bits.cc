// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/packed_bits.h"

namespace mge {

ValueId UnpackedBits(FunctionBody& f, ValueId bytes, Shape dims, int64_t bits) {
  if (bits == 8) return bytes;
  const int64_t parts = 8 / bits;
  std::vector<ValueId> numbers;
  dims.push_back(1);
  const ValueId column = f.Reshape(bytes, dims);
  for (int64_t i = 0; i < parts; ++i) {
    ValueId shifted = column;
    if (i > 0) {
      shifted = f.Add("BitShift", {column, f.Number(DType::kU8, static_cast<double>(i * bits))},
                      OneAttribute("direction", std::string("RIGHT")));
    }
    numbers.push_back(f.Add("BitwiseAnd", {shifted, f.Number(DType::kU8, static_cast<double>((1 << bits) - 1))}));
  }
  dims.pop_back();
  dims.back() *= parts;
  return f.Reshape(f.Add("Concat", std::move(numbers), IntAttribute("axis", -1)), dims);
}

ValueId DequantizedBlocks(FunctionBody& f, ValueId q, ValueId scale, ValueId zero, const Shape& scales, int64_t block,
                          int64_t bits) {
  if (zero == kNone) {
    const ValueId middle = f.Number(DType::kU8, static_cast<double>(1 << (bits - 1)));
    zero = f.Add("Expand", {middle, f.Integers(scales)});
  }
  Attributes attrs = IntAttribute("axis", -1);
  attrs.Set("block_size", block);
  return f.Add("DequantizeLinear", {q, scale, zero}, std::move(attrs));
}

}  // namespace mge
