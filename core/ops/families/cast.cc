// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cast.h"

#include <charconv>
#include <cmath>

#include "core/ops/families/convert.h"
#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge {
namespace {

std::string_view Trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  if (s.starts_with('+')) s.remove_prefix(1);
  return s;
}

template <typename T>
bool ParseExact(std::string_view s, T* out) {
  auto result = std::from_chars(s.data(), s.data() + s.size(), *out);
  return !s.empty() && result.ptr == s.data() + s.size() && result.ec == std::errc();
}

// Parses a real number. from_chars fails on overflow and underflow, but ONNX follows NumPy: infinity or zero.
bool ParseReal(std::string_view s, double* out) {
  auto result = std::from_chars(s.data(), s.data() + s.size(), *out);
  if (s.empty() || result.ptr != s.data() + s.size()) return false;
  if (result.ec == std::errc::result_out_of_range) *out = std::strtod(std::string(s).c_str(), nullptr);
  return result.ec == std::errc() || result.ec == std::errc::result_out_of_range;
}

template <typename T>
bool FromText(std::string_view text, T* out) {
  std::string_view s = Trimmed(text);
  if constexpr (std::is_same_v<T, bool>) {
    double real = 0;
    if (s == "True" || s == "true") return *out = true;
    if (s == "False" || s == "false") return !(*out = false);
    if (!ParseReal(s, &real)) return false;
    *out = real != 0;
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    if (ParseExact(s, out)) return true;
    double real = 0;
    if (!ParseReal(s, &real)) return false;
    *out = FromReal<T>(real);
    return true;
  } else if constexpr (std::is_same_v<T, float>) {
    if (ParseExact(s, out)) return true;  // rounds once; a conversion through double would round twice
    double real = 0;
    if (!ParseReal(s, &real)) return false;
    *out = static_cast<float>(real);
    return true;
  } else {
    double real = 0;
    if (!ParseReal(s, &real)) return false;
    *out = FromReal<T>(real);
    return true;
  }
}

template <typename T>
std::string ToText(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}", value);
  } else {
    auto v = static_cast<Compute<T>>(value);
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v < 0 ? "-INF" : "INF";
    return fmt::format("{}", v);  // shortest text that converts back to the same number
  }
}

// Converts to a narrow type. Integers wrap around; reals and strings pass through float, rounded to odd.
absl::StatusOr<Tensor> CastToNarrow(const Tensor& x, DType to, HostAllocator& allocator, NarrowRule rule) {
  const bool integers = kNarrowInteger.Contains(to) && (kInteger | kBoolean).Contains(x.dtype());
  if (integers) {
    MGE_ASSIGN_OR_RETURN(const Tensor bytes, CastTensor(x, DType::kU8, allocator));
    return NarrowedInts(bytes, to, allocator);
  }
  MGE_ASSIGN_OR_RETURN(const Tensor wide, CastTensor(x, DType::kF64, allocator));
  MGE_ASSIGN_OR_RETURN(Tensor y, Tensor::Create(to, x.shape(), allocator));
  auto* out = static_cast<uint8_t*>(y.mutable_data());
  for (double value : wide.Data<double>()) *out++ = FloatToNarrow(to, RoundToOdd(value), rule);
  return y;
}

}  // namespace

absl::StatusOr<Tensor> CastTensor(const Tensor& x, DType to, HostAllocator& allocator, NarrowRule rule) {
  if (x.dtype() == to) return x;
  if (kNarrow.Contains(x.dtype())) {
    MGE_ASSIGN_OR_RETURN(Tensor wide, NarrowToFloat(x, allocator));
    if (kNarrowInteger.Contains(x.dtype())) {
      MGE_ASSIGN_OR_RETURN(wide, CastTensor(wide, DType::kI8, allocator));
    }
    return CastTensor(wide, to, allocator, rule);
  }
  if (kNarrow.Contains(to)) return CastToNarrow(x, to, allocator, rule);
  MGE_ASSIGN_OR_RETURN(Tensor y, Tensor::Create(to, x.shape(), allocator));
  bool known = false;
  const std::string* fault = nullptr;
  if (x.dtype() == DType::kString) {
    auto in = x.Data<std::string>();
    known = DispatchFixedSize(to, [&](auto tag) {
      auto out = y.MutableData<typename decltype(tag)::type>();
      for (size_t i = 0; i < in.size() && !fault; ++i) {
        if (!FromText(in[i], &out[i])) fault = &in[i];
      }
    });
  } else {
    DispatchFixedSize(x.dtype(), [&](auto from_tag) {
      auto in = x.Data<typename decltype(from_tag)::type>();
      if (to == DType::kString) {
        known = true;
        auto out = y.MutableData<std::string>();
        for (size_t i = 0; i < in.size(); ++i) out[i] = ToText(in[i]);
        return;
      }
      known = DispatchFixedSize(to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        auto out = y.MutableData<To>();
        for (size_t i = 0; i < in.size(); ++i) out[i] = Convert<To>(in[i]);
      });
    });
  }
  if (fault) {
    return Fail(errors::kInvalidNode, fmt::format("the text '{}' is not a number", fault->substr(0, 80)));
  }
  if (!known) {
    return Fail(errors::kUnsupportedType, fmt::format("{} cannot be cast to {}", DTypeName(x.dtype()), DTypeName(to)));
  }
  return y;
}

absl::StatusOr<NarrowRule> ReadNarrowRule(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(const int mode, ReadChoice(attrs, "round_mode", {"up", "down", "nearest"}));
  constexpr NarrowRule::Rounding kModes[] = {NarrowRule::Rounding::kUp, NarrowRule::Rounding::kDown,
                                             NarrowRule::Rounding::kNearest};
  return NarrowRule{attrs.Int("saturate") != 0, kModes[mode]};
}

}  // namespace mge
