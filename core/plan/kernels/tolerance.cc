// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/tolerance.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fmt/format.h"
#include "mge/plugin/attributes.hpp"

namespace mge {
namespace {

struct Row {
  DType dtype;
  double elementwise;  // a few units in the last place
  double sums;         // sums of many terms in any order, or transforms such as Winograd's
};
constexpr Row kRows[] = {
    {DType::kF64, 1e-12, 1e-8}, {DType::kF32, 1e-5, 1e-3}, {DType::kF16, 4e-3, 3e-2}, {DType::kBF16, 3e-2, 1e-1}};
constexpr double kReduced = 3e-2;  // arithmetic with 8 to 10 bits of precision

template <typename T>
double AsDouble(T v) {
  return static_cast<double>(v);
}

// Returns the index of the first element that differs, or the number of elements if none does. got(i) is element i.
template <typename T, typename Got>
size_t FirstDifference(Got got, std::span<const T> expected, double tolerance) {
  double squares = 0;
  size_t finite = 0;
  for (T v : expected) {
    if (double x = AsDouble(v); std::isfinite(x)) {
      squares += x * x;
      ++finite;
    }
  }
  const double typical = finite ? std::sqrt(squares / static_cast<double>(finite)) : 0;
  size_t i = 0;
  for (; i < expected.size(); ++i) {
    double x = AsDouble(got(i)), y = AsDouble(expected[i]);
    bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                (std::isfinite(y) && std::abs(x - y) <= tolerance * (std::abs(y) + typical));
    if (!same) break;
  }
  return i;
}

}  // namespace

double ToleranceOf(std::span<const OpDef* const> ops, DType dtype, uint64_t attributes) {
  for (const Row& row : kRows) {
    if (row.dtype != dtype) continue;
    bool elementwise = std::all_of(ops.begin(), ops.end(), [](const OpDef* op) {
      return (op->traits & (kElementwise | kIdentity | kView | kTranspose)) != 0;
    });
    double tolerance = elementwise ? row.elementwise : row.sums;
    return attributes & kLessPrecise ? std::max(tolerance, kReduced) : tolerance;
  }
  return 0;
}

std::string WhyDifferent(const Tensor& got, const Tensor& expected, double tolerance) {
  std::string why;
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) return "another type or shape";
  DispatchFixedSize(expected.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto a = got.Data<T>(), b = expected.Data<T>();
    size_t i = FirstDifference<T>([&](size_t k) { return a[k]; }, b, tolerance);
    if (i == b.size()) return;
    why = fmt::format("element {} is {}, expected {} (within {:g} of it)", i, AsDouble(a[i]), AsDouble(b[i]), tolerance);
  });
  return why;
}

bool AgreesWithFirst(const Tensor& got, const Tensor& expected, double tolerance) {
  bool agrees = true;
  DispatchFixedSize(expected.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T first = got.Data<T>()[0];
    agrees = FirstDifference<T>([&](size_t) { return first; }, expected.Data<T>(), tolerance) == expected.Data<T>().size();
  });
  return agrees;
}

}  // namespace mge
