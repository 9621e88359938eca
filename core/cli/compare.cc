// SPDX-License-Identifier: Apache-2.0
#include "core/cli/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::cli {
namespace {

bool Floating(mge_dtype d) { return d == MGE_DTYPE_F32 || d == MGE_DTYPE_F64 || d == MGE_DTYPE_F16 || d == MGE_DTYPE_BF16; }

// Calls visit(pointer to the elements as their C++ type). Returns false for other types.
template <typename F>
bool Visit(const Tensor& t, F visit) {
  const void* data = t.raw_data();
  switch (t.dtype()) {
    case MGE_DTYPE_F32: visit(static_cast<const float*>(data)); return true;
    case MGE_DTYPE_F64: visit(static_cast<const double*>(data)); return true;
    case MGE_DTYPE_F16: visit(static_cast<const F16*>(data)); return true;
    case MGE_DTYPE_BF16: visit(static_cast<const BF16*>(data)); return true;
    case MGE_DTYPE_I8: visit(static_cast<const int8_t*>(data)); return true;
    case MGE_DTYPE_I16: visit(static_cast<const int16_t*>(data)); return true;
    case MGE_DTYPE_I32: visit(static_cast<const int32_t*>(data)); return true;
    case MGE_DTYPE_I64: visit(static_cast<const int64_t*>(data)); return true;
    case MGE_DTYPE_U8: visit(static_cast<const uint8_t*>(data)); return true;
    case MGE_DTYPE_U16: visit(static_cast<const uint16_t*>(data)); return true;
    case MGE_DTYPE_U32: visit(static_cast<const uint32_t*>(data)); return true;
    case MGE_DTYPE_U64: visit(static_cast<const uint64_t*>(data)); return true;
    case MGE_DTYPE_BOOL: visit(static_cast<const uint8_t*>(data)); return true;
    default: return false;
  }
}

std::string PlaceText(const Tensor& t, uint64_t index) {
  std::vector<int64_t> place(t.dims().size());
  for (size_t d = place.size(); d-- > 0;) {
    const uint64_t size = std::max<uint64_t>(static_cast<uint64_t>(t.dims()[d]), 1);
    place[d] = static_cast<int64_t>(index % size);
    index /= size;
  }
  return ShapeText(place);
}

// Compares the parts of a value and collects the results.
class Comparer {
 public:
  explicit Comparer(const Tolerance& tolerance) : tolerance_(tolerance) {}

  void Value(const Tensor& got, const Tensor& expected, const std::string& part) {
    if (got.kind() != expected.kind() || got.part_count() != expected.part_count()) return Mismatch(got, expected, part);
    if (got.kind() != MGE_VALUE_TENSOR) {
      for (size_t i = 0; i < got.part_count(); ++i) {
        Tensor a, b;
        if (!got.Part(i).MoveTo(a).ok() || !expected.Part(i).MoveTo(b).ok()) return;
        Value(a, b, fmt::format("{}part {} ", part, i));
      }
      return;
    }
    if (got.dtype() != expected.dtype() ||
        !std::equal(got.dims().begin(), got.dims().end(), expected.dims().begin(), expected.dims().end())) {
      return Mismatch(got, expected, part);
    }
    out_.elements += got.elements();
    if (got.dtype() == MGE_DTYPE_STRING) return Strings(got, expected, part);
    const bool numbers =
        Visit(got, [&](const auto* a) { Numbers(a, static_cast<decltype(a)>(expected.raw_data()), got, part); });
    if (!numbers) Bytes(got, expected, part);
  }

  Comparison Finish() {
    if (counted_) out_.mean_abs = sum_abs_ / static_cast<double>(counted_);
    if (counted_rel_) out_.mean_rel = sum_rel_ / static_cast<double>(counted_rel_);
    return std::move(out_);
  }

 private:
  void Mismatch(const Tensor& got, const Tensor& expected, const std::string& part) {
    if (out_.mismatch.empty()) out_.mismatch = fmt::format("{}got {}, expected {}", part, TypeText(got), TypeText(expected));
  }

  // Keeps the element with the largest `excess`. For a wrong element, `excess` is the amount by which the error exceeds the
  // tolerance.
  template <typename Words>
  void Worst(double excess, const Tensor& t, uint64_t index, const std::string& part, Words words) {
    if (out_.differs && !(excess > worst_excess_)) return;
    out_.differs = true;
    worst_excess_ = excess;
    out_.worst = part + PlaceText(t, index);
    out_.worst_index = index;
    std::tie(out_.got, out_.expected) = words();
  }

  template <typename T>
  void Numbers(const T* got, const T* expected, const Tensor& t, const std::string& part) {
    // Short types get the errors of three roundings: results that round after each step differ by so much from those that do not.
    const double rounding = std::is_same_v<T, BF16> ? 0x1p-8 : std::is_same_v<T, F16> ? 0x1p-11 : 0;
    const double relative = std::max(tolerance_.relative, 3 * rounding);
    const bool floating = Floating(t.dtype());
    for (uint64_t i = 0; i < t.elements(); ++i) {
      const double g = static_cast<double>(got[i]), e = static_cast<double>(expected[i]);
      const bool same =
          floating ? g == e || (std::isnan(g) && std::isnan(e)) : std::memcmp(&got[i], &expected[i], sizeof(T)) == 0;
      const double error = same ? 0 : std::fabs(g - e);
      const double allowed = floating ? tolerance_.absolute + relative * std::fabs(e) : 0;
      if (std::isfinite(error)) {
        ++counted_;
        sum_abs_ += error;
        out_.max_abs = std::max(out_.max_abs, error);
        if (std::isfinite(e) && e != 0) {
          ++counted_rel_;
          sum_rel_ += error / std::fabs(e);
          out_.max_rel = std::max(out_.max_rel, error / std::fabs(e));
        }
      }
      if (same) continue;
      const bool wrong = !(error <= allowed);
      out_.wrong += wrong;
      out_.not_finite += wrong && !std::isfinite(error);
      // Right elements rank below all wrong ones, ordered by their absolute errors.
      const double excess = !std::isfinite(error) ? INFINITY : wrong ? error - allowed : -1 / (1 + error) - 1;
      Worst(excess, t, i, part, [&] { return std::pair(Number(got[i]), Number(expected[i])); });
    }
  }

  template <typename T>
  static std::string Number(T value) {
    if constexpr (std::is_same_v<T, F16> || std::is_same_v<T, BF16>)
      return fmt::format("{:.9g}", static_cast<float>(value));
    else if constexpr (std::is_floating_point_v<T>)
      return fmt::format("{:.9g}", value);
    else
      return std::to_string(value);
  }

  void Strings(const Tensor& got, const Tensor& expected, const std::string& part) {
    for (uint64_t i = 0; i < got.elements(); ++i) {
      if (got.string(i) == expected.string(i)) continue;
      ++out_.wrong;
      Worst(0, got, i, part, [&] {
        return std::pair(fmt::format("'{}'", Escape(got.string(i))), fmt::format("'{}'", Escape(expected.string(i))));
      });
    }
  }

  // Compares complex numbers, and types of 8 bits and less, bit by bit.
  void Bytes(const Tensor& got, const Tensor& expected, const std::string& part) {
    const uint64_t size = got.elements() ? got.bytes() / got.elements() : 0;
    for (uint64_t i = 0; i < got.elements(); ++i) {
      if (!std::memcmp(static_cast<char*>(got.raw_data()) + i * size, static_cast<char*>(expected.raw_data()) + i * size,
                       size)) {
        continue;
      }
      ++out_.wrong;
      Worst(0, got, i, part, [&] {
        auto bytes = [&](const Tensor& t) {
          const auto* first = static_cast<const uint8_t*>(t.raw_data()) + i * size;
          return fmt::format("the bytes {:02x}", fmt::join(first, first + size, " "));
        };
        return std::pair(bytes(got), bytes(expected));
      });
    }
  }

  const Tolerance tolerance_;
  Comparison out_;
  double worst_excess_ = 0, sum_abs_ = 0, sum_rel_ = 0;
  uint64_t counted_ = 0, counted_rel_ = 0;
};

// Returns null for NaN and infinities, which JSON does not have.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

Comparison Compare(const Tensor& got, const Tensor& expected, const Tolerance& tolerance) {
  Comparer comparer(tolerance);
  comparer.Value(got, expected, "");
  return comparer.Finish();
}

std::string Sentence(const Comparison& c) {
  if (!c.mismatch.empty()) return c.mismatch;
  if (c.wrong == 0) return "";
  return fmt::format("{} of {} elements differ; the worst is element {}: got {}, expected {}", c.wrong, c.elements, c.worst,
                     c.got, c.expected);
}

std::string ErrorLine(const Comparison& c) {
  return fmt::format("max abs {:.3g}, mean abs {:.3g}, max rel {:.3g}, mean rel {:.3g}", c.max_abs, c.mean_abs, c.max_rel,
                     c.mean_rel);
}

Json ToJson(const Comparison& c) {
  Json out = {{"equal_within_tolerance", c.ok()},
              {"difference", Sentence(c)},
              {"elements", c.elements},
              {"wrong", c.wrong},
              {"not_finite", c.not_finite},
              {"max_abs_error", Finite(c.max_abs)},
              {"mean_abs_error", Finite(c.mean_abs)},
              {"max_rel_error", Finite(c.max_rel)},
              {"mean_rel_error", Finite(c.mean_rel)}};
  out["worst"] =
      c.differs ? Json{{"index", c.worst_index}, {"place", c.worst}, {"got", c.got}, {"expected", c.expected}} : Json();
  return out;
}

bool HoldsNan(const Tensor& value) {
  if (!value) return false;
  for (size_t i = 0; i < value.part_count(); ++i) {
    Tensor part;
    if (value.Part(i).MoveTo(part).ok() && HoldsNan(part)) return true;
  }
  if (value.kind() != MGE_VALUE_TENSOR || !Floating(value.dtype())) return false;
  bool found = false;
  Visit(value, [&](const auto* data) {
    for (uint64_t i = 0; i < value.elements() && !found; ++i) found = std::isnan(static_cast<double>(data[i]));
  });
  return found;
}

std::vector<std::string> ComparisonHead(const std::string& first) {
  return {first, "MAX ABS", "MEAN ABS", "MAX REL", "MEAN REL", "WORST", "RESULT"};
}

std::vector<std::string> ComparisonRow(const std::string& name, const Comparison& c) {
  if (!c.mismatch.empty()) return {name, "-", "-", "-", "-", "-", "DIFFERS: " + c.mismatch};
  auto number = [](double v) { return fmt::format("{:.2e}", v); };
  return {name,
          number(c.max_abs),
          number(c.mean_abs),
          number(c.max_rel),
          number(c.mean_rel),
          c.differs ? fmt::format("{} {} / {}", c.worst, c.got, c.expected) : "equal",
          c.ok() ? "ok" : fmt::format("DIFFERS: {} of {}", c.wrong, c.elements)};
}

}  // namespace mge::cli
