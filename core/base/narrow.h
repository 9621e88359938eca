// SPDX-License-Identifier: Apache-2.0
// Element types of 8 bits and less: float8, float4, and integers of 4 and 2 bits (kNarrow). Only evaluators of the host
// compute with them.
//
// In memory each element has a byte of its own. The element is in its lowest bits, and the bits above are 0. Functions that read
// elements ignore these bits. ONNX's files pack the elements of 4 and 2 bits: the first one is in the lowest bits of a byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/tensor.h"

namespace mge {

// Returns the bits of an element: 8, 4 or 2, or 0 for a type that is not narrow.
int NarrowBits(DType dtype);

// Returns int8 or uint8 for a narrow integer type, else `dtype`.
DType WidenedType(DType dtype);

// Returns the smallest and the largest value of a narrow integer type.
int NarrowMin(DType dtype);
int NarrowMax(DType dtype);

// How a real number becomes a floating narrow type.
struct NarrowRule {
  enum class Rounding { kUp, kDown, kNearest };
  bool saturate = true;               // a number beyond the range becomes the nearest limit, else NaN or infinity
  Rounding rounding = Rounding::kUp;  // of float8e8m0, which has powers of two only; others round to nearest, ties to even
};

// Returns the value of an element. Every value of a narrow type is exact in float.
float NarrowToFloat(DType dtype, uint8_t element);
// Returns the element for a value. float4e2m1 has no NaN and no infinity: NaN becomes -0, infinities the limits. An integer type
// truncates and keeps the lowest bits; NaN becomes 0.
uint8_t FloatToNarrow(DType dtype, float value, NarrowRule rule = {});

// Converts a narrow tensor to float32, exactly.
absl::StatusOr<Tensor> NarrowToFloat(const Tensor& tensor, HostAllocator& allocator);

// Returns the bytes that `n` elements need in a file.
int64_t PackedBytes(DType dtype, int64_t n);
// Converts elements in a file's form to those in memory.
void UnpackNarrow(DType dtype, std::span<const uint8_t> packed, std::span<uint8_t> elements);
// Returns the elements in a file's form.
std::vector<uint8_t> PackNarrow(const Tensor& tensor);

// Converts a narrow integer type to int8 or uint8 with the same values.
absl::StatusOr<Tensor> WidenedInts(const Tensor& tensor, HostAllocator& allocator);
// Converts int8 or uint8 to a narrow integer type. Keeps the lowest bits.
absl::StatusOr<Tensor> NarrowedInts(const Tensor& tensor, DType dtype, HostAllocator& allocator);

}  // namespace mge
