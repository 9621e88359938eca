// SPDX-License-Identifier: Apache-2.0
// Compares results with expected values as ONNX's own test runner does. A difference is the error kMismatch, which names the
// element.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/narrow.h"
#include "core/base/tensor.h"
#include "fmt/format.h"

namespace mge {

inline constexpr double kRelative = 1e-3, kAbsolute = 1e-7;                      // tolerances of ONNX's own runner
inline constexpr double kRelativeBF16 = 3 * 0x1p-8, kRelativeF16 = 3 * 0x1p-11;  // the errors of three roundings

inline absl::Status Differ(std::string what) { return Fail(errors::kMismatch, std::move(what)); }

// Returns the elements as doubles, for any numeric type; real and imaginary parts of complex types.
inline std::vector<double> ToDoubles(const Tensor& t) {
  std::vector<double> out;
  DispatchFixedSize(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T v : t.Data<T>()) out.push_back(static_cast<double>(v));
  });
  if (kNarrow.Contains(t.dtype())) {
    for (uint8_t v : t.Data<uint8_t>()) out.push_back(static_cast<double>(NarrowToFloat(t.dtype(), v)));
  }
  return out;
}

inline absl::Status CompareTensors(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return Differ(fmt::format("got {}{}, expected {}{}", DTypeName(got.dtype()), ShapeText(got.shape()),
                              DTypeName(want.dtype()), ShapeText(want.shape())));
  }
  if (want.dtype() == DType::kString) {
    auto a = got.Data<std::string>(), b = want.Data<std::string>();
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) return Differ(fmt::format("element {}: got '{}', expected '{}'", i, a[i], b[i]));
    }
    return absl::OkStatus();
  }
  if (!(kFixedSize | kNarrow).Contains(want.dtype())) return Differ("complex results are not compared");
  if (!kFloating.Contains(want.dtype())) {
    if (want.bytes() == 0 || std::memcmp(got.data(), want.data(), static_cast<size_t>(want.bytes())) == 0) {
      return absl::OkStatus();
    }
  }
  std::vector<double> a = ToDoubles(got), b = ToDoubles(want);
  const double relative = want.dtype() == DType::kBF16  ? kRelativeBF16
                          : want.dtype() == DType::kF16 ? kRelativeF16
                                                        : kRelative;
  for (size_t i = 0; i < a.size(); ++i) {
    bool equal = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                 (kFloating.Contains(want.dtype()) && std::abs(a[i] - b[i]) <= kAbsolute + relative * std::abs(b[i]));
    if (!equal) return Differ(fmt::format("element {}: got {}, expected {}", i, a[i], b[i]));
  }
  return absl::OkStatus();
}

inline absl::Status CompareValues(const HostValue& got, const HostValue& want) {
  if (got.kind != want.kind) return Differ("the result is of another kind (tensor, sequence, optional)");
  bool optional = want.kind == ValueKind::kOptional || want.kind == ValueKind::kOptionalSequence;
  if (optional && got.present != want.present) return Differ("one optional is empty, the other one is not");
  if (optional && !want.present) return absl::OkStatus();
  if (want.kind == ValueKind::kTensor || want.kind == ValueKind::kOptional) return CompareTensors(got.tensor, want.tensor);
  if (got.sequence.size() != want.sequence.size()) {
    return Differ(fmt::format("got {} tensors, expected {}", got.sequence.size(), want.sequence.size()));
  }
  for (size_t i = 0; i < want.sequence.size(); ++i) MGE_RETURN_IF_ERROR(CompareTensors(got.sequence[i], want.sequence[i]));
  return absl::OkStatus();
}

}  // namespace mge
