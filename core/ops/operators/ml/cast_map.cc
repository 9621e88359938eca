// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/ops/families/convert.h"
#include "core/ops/families/ml.h"

namespace mge::op_cast_map {
namespace {

struct Settings {
  DType to = DType::kF32;
  bool sparse = false;
  int64_t width = kUnknownDim;  // of a sparse map's output; that of a dense one is the number of keys
};

absl::StatusOr<Settings> Read(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int to, ReadChoice(attrs, "cast_to", {"TO_FLOAT", "TO_STRING", "TO_INT64"}));
  MGE_ASSIGN_OR_RETURN(int form, ReadChoice(attrs, "map_form", {"DENSE", "SPARSE"}));
  constexpr DType kTypes[] = {DType::kF32, DType::kString, DType::kI64};
  Settings s = {kTypes[to], form == 1, form == 1 ? attrs.Int("max_map") : kUnknownDim};
  if (s.sparse && s.width < 1) return BadNode(fmt::format("max_map is {}; it must be at least 1", s.width));
  return s;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Settings s, Read(ctx.attrs()));
  ctx.SetOutput(0, MakeType(s.to, {1, s.width}));
  return absl::OkStatus();
}

// Converts one value. Fails if a text is not a number.
template <typename To>
absl::StatusOr<To> CastOne(const Tensor& values, int64_t at) {
  if (values.dtype() == DType::kF32) {
    const float v = values.Data<float>()[at];
    if constexpr (std::is_same_v<To, std::string>) {
      return fmt::format("{:f}", v);
    } else {
      return Convert<To>(v);
    }
  }
  const std::string& text = values.Data<std::string>()[at];
  if constexpr (std::is_same_v<To, std::string>) {
    return text;
  } else {
    To number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    return BadNode(fmt::format("the value \"{}\" of the map is not a number", EscapeControl(text)));
  }
}

template <typename To>
absl::Status CastAll(EvalContext& ctx, const Settings& s, const MapView& map) {
  const std::span<const int64_t> keys = map.keys.Data<int64_t>();
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  if (s.sparse && !order.empty() && keys[order[0]] < 0) {
    return ctx.Invalid(fmt::format("key {} of the map is negative", keys[order[0]]));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, s.to, {1, s.sparse ? s.width : map.keys.elements()}));
  const std::span<To> out = y->MutableData<To>();
  if constexpr (std::is_same_v<To, std::string>) {
    std::fill(out.begin(), out.end(), "0.f");  // the standard names no value for absent keys
  } else {
    std::fill(out.begin(), out.end(), To(0));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = s.sparse ? static_cast<size_t>(keys[order[i]]) : i;
    if (at >= out.size()) break;
    MGE_ASSIGN_OR_RETURN(out[at], CastOne<To>(map.values, order[i]));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(const Settings s, Read(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const MapView map, MapInput(ctx));
  if (map.keys.dtype() != DType::kI64) return ctx.Invalid("the keys of the map must be integers");
  if (map.values.dtype() != DType::kF32 && map.values.dtype() != DType::kString) {
    return ctx.Invalid("the values of the map must be float32 or strings");
  }
  switch (s.to) {
    case DType::kString: return CastAll<std::string>(ctx, s, map);
    case DType::kI64: return CastAll<int64_t>(ctx, s, map);
    default: return CastAll<float>(ctx, s, map);
  }
}

}  // namespace

MGE_OP(cast_map) = {.name = "CastMap",
                    .domain = kMlDomain,
                    .doc = "The values of a map in the order of its keys. With the form SPARSE, keys are positions.",
                    .inputs = {{.name = "X", .types = {DType::kF32, DType::kString}, .kind = ValueKind::kMap}},
                    .outputs = {{"Y"}},
                    .attrs = {{"cast_to", "TO_FLOAT", "TO_FLOAT, TO_STRING or TO_INT64"},
                              {"map_form", "DENSE", "DENSE or SPARSE"},
                              {"max_map", 1, "the size of a sparse map"}},
                    .infer = Infer,
                    .eval = Eval,
                    .traits = kHostOnly | kDynamicShape};

}  // namespace mge::op_cast_map
