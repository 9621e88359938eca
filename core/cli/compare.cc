// SPDX-License-Identifier: Apache-2.0
#include "core/cli/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/float16.h"
#include "core/cli/common.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

double FloatAt(const Tensor& t, uint64_t i) {
  switch (t.dtype()) {
    case MGE_DTYPE_F32:
      return t.data<float>()[i];
    case MGE_DTYPE_F64:
      return t.data<double>()[i];
    case MGE_DTYPE_F16:
      return HalfBitsToFloat(static_cast<uint16_t*>(t.raw_data())[i]);
    case MGE_DTYPE_BF16:
      return BFloat16BitsToFloat(static_cast<uint16_t*>(t.raw_data())[i]);
    default:
      return 0;
  }
}

bool Floating(mge_dtype d) { return d == MGE_DTYPE_F32 || d == MGE_DTYPE_F64 || d == MGE_DTYPE_F16 || d == MGE_DTYPE_BF16; }

std::string FloatDifference(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  // A stored half cannot be nearer than its own rounding.
  double relative = tolerance.relative;
  if (expected.dtype() == MGE_DTYPE_BF16) relative = std::max(relative, 1e-2);
  uint64_t wrong = 0, worst = 0;
  double worst_excess = -1;
  for (uint64_t i = 0; i < got.elements(); ++i) {
    double g = FloatAt(got, i), e = FloatAt(expected, i);
    if (g == e || (std::isnan(g) && std::isnan(e))) continue;
    double allowed = tolerance.absolute + relative * std::fabs(e);
    double error = std::fabs(g - e);
    if (error <= allowed) continue;
    ++wrong;
    double excess = std::isnan(error) ? INFINITY : error - allowed;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (!wrong) return "";
  return fmt::format("{} of {} elements differ; the worst is element {}: got {:.9g}, expected {:.9g}", wrong, got.elements(),
                     worst, FloatAt(got, worst), FloatAt(expected, worst));
}

}  // namespace

std::string Difference(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  if (got.kind() != expected.kind() || got.part_count() != expected.part_count()) {
    return fmt::format("got {}, expected {}", TypeText(got), TypeText(expected));
  }
  if (got.kind() != MGE_VALUE_TENSOR) {
    for (size_t i = 0; i < got.part_count(); ++i) {
      Tensor a, b;
      if (!got.Part(i, &a).ok() || !expected.Part(i, &b).ok()) return "a part cannot be read";
      if (std::string d = Difference(a, b, tolerance); !d.empty()) return fmt::format("part {}: {}", i, d);
    }
    return "";
  }
  if (got.dtype() != expected.dtype() ||
      !std::equal(got.dims().begin(), got.dims().end(), expected.dims().begin(), expected.dims().end())) {
    return fmt::format("got {}, expected {}", TypeText(got), TypeText(expected));
  }
  if (got.dtype() == MGE_DTYPE_STRING) {
    for (uint64_t i = 0; i < got.elements(); ++i) {
      if (got.string(i) != expected.string(i)) {
        return fmt::format("element {}: got '{}', expected '{}'", i, got.string(i), expected.string(i));
      }
    }
    return "";
  }
  if (Floating(got.dtype())) return FloatDifference(got, expected, tolerance);
  if (got.bytes() == 0 || std::memcmp(got.raw_data(), expected.raw_data(), got.bytes()) == 0) return "";
  uint64_t size = got.bytes() / got.elements(), wrong = 0, first = 0;
  for (uint64_t i = got.elements(); i-- > 0;) {
    if (!std::memcmp(static_cast<char*>(got.raw_data()) + i * size, static_cast<char*>(expected.raw_data()) + i * size,
                     size))
      continue;
    ++wrong;
    first = i;
  }
  return fmt::format("{} of {} elements differ, the first is element {}", wrong, got.elements(), first);
}

}  // namespace mge::cli
