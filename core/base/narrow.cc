// SPDX-License-Identifier: Apache-2.0
#include "core/base/narrow.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace mge {
namespace {

// A floating format with a sign, an exponent and a mantissa.
struct Format {
  int mantissa;        // bits
  int bias;            // of the exponent
  int sign;            // the sign's bit
  uint8_t largest;     // the largest finite value
  uint8_t infinity;    // 0: none
  uint8_t nan;         // 0: none
  bool unsigned_zero;  // -0 is the code of NaN
};

constexpr Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN: return {3, 7, 0x80, 0x7e, 0, 0x7f, false};
    case DType::kF8E4M3FNUZ: return {3, 8, 0x80, 0x7f, 0, 0x80, true};
    case DType::kF8E5M2: return {2, 15, 0x80, 0x7b, 0x7c, 0x7e, false};
    case DType::kF8E5M2FNUZ: return {2, 16, 0x80, 0x7f, 0, 0x80, true};
    default: return {1, 1, 0x08, 0x07, 0, 0, false};  // float4e2m1
  }
}

constexpr uint8_t kE8M0Nan = 0xff, kE8M0Max = 0xfe;

float E8M0ToFloat(uint8_t element) {
  return element == kE8M0Nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, element - 127);
}

// ONNX leaves negative numbers undefined; their sign is ignored.
uint8_t FloatToE8M0(float value, NarrowRule rule) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t exponent = (bits >> 23) & 0xffU, fraction = bits & 0x7fffffU;
  const uint8_t beyond = rule.saturate ? kE8M0Max : kE8M0Nan;
  if (exponent == 0xff) return fraction ? kE8M0Nan : beyond;
  constexpr uint32_t kHalf = 0x400000;
  if (exponent == 0) {  // the smallest number, 2^-127, is subnormal in float
    if (fraction < kHalf) return rule.saturate ? 0 : kE8M0Nan;
    fraction = (fraction - kHalf) * 2;
  }
  const bool up = rule.rounding == NarrowRule::Rounding::kUp
                      ? fraction != 0
                      : rule.rounding == NarrowRule::Rounding::kNearest && fraction >= kHalf;
  return exponent + up > kE8M0Max ? beyond : static_cast<uint8_t>(exponent + up);
}

uint8_t FloatToInteger(DType dtype, float value) {
  constexpr float kLimit = 1 << 30;
  const int whole = std::isnan(value) ? 0 : static_cast<int>(std::clamp(value, -kLimit, kLimit));
  return static_cast<uint8_t>(whole & ((1 << NarrowBits(dtype)) - 1));
}

// Returns the value of a narrow integer as int8 or uint8.
uint8_t Widened(DType dtype, uint8_t element) {
  const int unused = 8 - NarrowBits(dtype);
  const auto high = static_cast<uint8_t>(element << unused);
  const bool is_signed = NarrowMin(dtype) < 0;
  return is_signed ? static_cast<uint8_t>(static_cast<int8_t>(high) >> unused) : static_cast<uint8_t>(high >> unused);
}

}  // namespace

int NarrowBits(DType dtype) {
  if (!kNarrow.Contains(dtype)) return 0;
  if (dtype == DType::kU2 || dtype == DType::kI2) return 2;
  return dtype == DType::kU4 || dtype == DType::kI4 || dtype == DType::kF4E2M1 ? 4 : 8;
}

DType WidenedType(DType dtype) {
  if (!kNarrowInteger.Contains(dtype)) return dtype;
  return NarrowMin(dtype) < 0 ? DType::kI8 : DType::kU8;
}

int NarrowMin(DType dtype) { return dtype == DType::kI4 || dtype == DType::kI2 ? -(1 << (NarrowBits(dtype) - 1)) : 0; }

int NarrowMax(DType dtype) { return NarrowMin(dtype) + (1 << NarrowBits(dtype)) - 1; }

float NarrowToFloat(DType dtype, uint8_t element) {
  if (kNarrowInteger.Contains(dtype)) {
    const uint8_t wide = Widened(dtype, element);
    return NarrowMin(dtype) < 0 ? static_cast<float>(static_cast<int8_t>(wide)) : static_cast<float>(wide);
  }
  if (dtype == DType::kF8E8M0) return E8M0ToFloat(element);
  const Format f = FormatOf(dtype);
  element &= static_cast<uint8_t>(2 * f.sign - 1);
  const bool negative = element & f.sign;
  const auto code = static_cast<uint8_t>(element & (f.sign - 1));
  float value = 0;
  if (f.unsigned_zero && element == f.nan) {
    return std::numeric_limits<float>::quiet_NaN();
  } else if (f.infinity && code == f.infinity) {
    value = std::numeric_limits<float>::infinity();
  } else if (code > f.largest) {
    value = std::numeric_limits<float>::quiet_NaN();
  } else {
    const int exponent = code >> f.mantissa, fraction = code & ((1 << f.mantissa) - 1);
    const int one = exponent > 0 ? 1 << f.mantissa : 0;  // subnormal numbers have no leading 1
    value = std::ldexp(static_cast<float>(one + fraction), std::max(exponent, 1) - f.bias - f.mantissa);
  }
  return negative ? -value : value;
}

uint8_t FloatToNarrow(DType dtype, float value, NarrowRule rule) {
  if (kNarrowInteger.Contains(dtype)) return FloatToInteger(dtype, value);
  if (dtype == DType::kF8E8M0) return FloatToE8M0(value, rule);
  const Format f = FormatOf(dtype);
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? f.sign : 0);
  if (std::isnan(value)) return f.nan ? (f.unsigned_zero ? f.nan : f.nan | sign) : static_cast<uint8_t>(f.sign);
  const float magnitude = std::fabs(value);
  int code = f.largest + 1;
  if (!std::isinf(magnitude) && magnitude < std::ldexp(1.0F, 20)) {
    // The exponent of the last bit; below the smallest normal number it does not fall.
    const int step = std::max(magnitude > 0 ? std::ilogb(magnitude) : -f.bias, 1 - f.bias) - f.mantissa;
    const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, -step)));
    // `units` includes the leading 1 of a normal number, which adds 1 to the exponent. So does a carry of the rounding.
    code = ((step + f.mantissa + f.bias - 1) << f.mantissa) + units;
  }
  if (code > f.largest) {
    if (rule.saturate || f.nan == 0) {
      code = f.largest;
    } else if (f.infinity) {
      code = f.infinity;
    } else {
      return f.unsigned_zero ? f.nan : f.nan | sign;
    }
  }
  if (code == 0 && f.unsigned_zero) return 0;
  return static_cast<uint8_t>(code | sign);
}

absl::StatusOr<Tensor> NarrowToFloat(const Tensor& tensor, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, tensor.shape(), allocator));
  const std::span<const uint8_t> from = tensor.Data<uint8_t>();
  std::transform(from.begin(), from.end(), out.MutableData<float>().begin(),
                 [&](uint8_t element) { return NarrowToFloat(tensor.dtype(), element); });
  return out;
}

int64_t PackedBytes(DType dtype, int64_t n) {
  const int64_t per_byte = 8 / NarrowBits(dtype);
  return n / per_byte + (n % per_byte != 0);
}

void UnpackNarrow(DType dtype, std::span<const uint8_t> packed, std::span<uint8_t> elements) {
  const int bits = NarrowBits(dtype);
  const auto per_byte = static_cast<size_t>(8 / bits);
  const int mask = (1 << bits) - 1;
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<uint8_t>((packed[i / per_byte] >> (static_cast<int>(i % per_byte) * bits)) & mask);
  }
}

std::vector<uint8_t> PackNarrow(const Tensor& tensor) {
  const int bits = NarrowBits(tensor.dtype());
  const auto per_byte = static_cast<size_t>(8 / bits);
  const int mask = (1 << bits) - 1;
  const std::span<const uint8_t> elements = tensor.Data<uint8_t>();
  std::vector<uint8_t> out(static_cast<size_t>(PackedBytes(tensor.dtype(), tensor.elements())));
  for (size_t i = 0; i < elements.size(); ++i) {
    out[i / per_byte] |= static_cast<uint8_t>((elements[i] & mask) << (static_cast<int>(i % per_byte) * bits));
  }
  return out;
}

absl::StatusOr<Tensor> WidenedInts(const Tensor& tensor, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(WidenedType(tensor.dtype()), tensor.shape(), allocator));
  const std::span<const uint8_t> from = tensor.Data<uint8_t>();
  std::transform(from.begin(), from.end(), out.MutableData<uint8_t>().begin(),
                 [&](uint8_t element) { return Widened(tensor.dtype(), element); });
  return out;
}

absl::StatusOr<Tensor> NarrowedInts(const Tensor& tensor, DType dtype, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, tensor.shape(), allocator));
  const int mask = (1 << NarrowBits(dtype)) - 1;
  const std::span<const uint8_t> from = tensor.Data<uint8_t>();
  std::transform(from.begin(), from.end(), out.MutableData<uint8_t>().begin(),
                 [&](uint8_t element) { return static_cast<uint8_t>(element & mask); });
  return out;
}

}  // namespace mge
