// SPDX-License-Identifier: Apache-2.0
// Helpers of the scattering operators: the combination of an update with the existing element.
#pragma once

#include <complex>
#include <type_traits>

#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge {

// Checks that the attribute "reduction" is none, add, mul, max or min.
absl::Status CheckReduction(const Attributes& attrs);

// Checks the indices of GatherElements and ScatterElements: they have the data's rank, and are not larger in a dimension
// other than `axis`. Unknown sizes are negative and pass.
absl::Status RequireIndicesWithin(const Shape& data, const Shape& indices, int64_t axis);

// Evaluates ScatterElements and its older name Scatter.
absl::Status EvalScatterElements(EvalContext& ctx);
absl::Status InferScatterElements(InferContext& ctx);

// The gradients of data and updates. `gather` is the operator that reads the elements which `scatter` sets. `attrs` are those of
// both without the reduction.
absl::Status ScatterGradient(GradientContext& g, const char* scatter, const char* gather, const Attributes& attrs);
absl::Status ScatterElementsGradient(GradientContext& g);

namespace internal {
// Calls f(TypeTag<T>{}) for all types that support addition and multiplication. Returns false for other types.
template <typename F>
bool DispatchArithmetic(DType dtype, F&& f) {
  if (dtype == DType::kC64) {
    f(TypeTag<std::complex<float>>{});
  } else if (dtype == DType::kC128) {
    f(TypeTag<std::complex<double>>{});
  } else {
    return DispatchFixedSize(dtype, f);
  }
  return true;
}

// Adds. Integers wrap around; bool uses "or". Mul() uses "and" for bool.
template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a + b);
  }
}
template <typename T>
T Mul(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a * b);
  }
}
// Returns the larger element, or NaN if either is NaN. Min() does the same for the smaller element.
template <typename T>
T Max(T a, T b) {
  return a != a || a > b ? a : b;
}
template <typename T>
T Min(T a, T b) {
  return a != a || a < b ? a : b;
}
}  // namespace internal

// Calls f(TypeTag<T>{}, join), where join(old, update) returns the new element. Fails with kUnsupportedType if the type
// does not support the reduction (strings, the order of complex numbers).
template <typename F>
absl::Status DispatchReduction(const EvalContext& ctx, DType dtype, const std::string& reduction, F&& f) {
  bool known = true;
  if (reduction == "none") {
    DispatchCopy(dtype, [&](auto tag) { f(tag, [](const auto&, const auto& update) { return update; }); });
  } else if (reduction == "add") {
    known =
        internal::DispatchArithmetic(dtype, [&](auto tag) { f(tag, [](auto a, auto b) { return internal::Add(a, b); }); });
  } else if (reduction == "mul") {
    known =
        internal::DispatchArithmetic(dtype, [&](auto tag) { f(tag, [](auto a, auto b) { return internal::Mul(a, b); }); });
  } else if (reduction == "max") {
    known = DispatchFixedSize(dtype, [&](auto tag) { f(tag, [](auto a, auto b) { return internal::Max(a, b); }); });
  } else {
    known = DispatchFixedSize(dtype, [&](auto tag) { f(tag, [](auto a, auto b) { return internal::Min(a, b); }); });
  }
  if (known) return absl::OkStatus();
  return Fail(errors::kUnsupportedType, fmt::format("reduction \"{}\" on {}", reduction, DTypeName(dtype)),
              {.where = NodePlace(ctx.node())});
}

}  // namespace mge
