// SPDX-License-Identifier: Apache-2.0
// Generates the values of inputs. Considers the input's name, then the nodes that read it. Otherwise uses random
// numbers.
#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/float16.h"
#include "core/base/lower_case.h"
#include "core/base/narrow.h"
#include "core/ops/examples/contains_any.h"
#include "core/ops/examples/example_inputs.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kSmallIntegers = 10;  // integers are 0..9 by default
constexpr int kMaxSteps = 64;           // maximum number of nodes followed from an input

// Returns a pseudorandom number for a counter. It is the same on every machine.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The rule for the values of an input.
struct ValueRule {
  enum class Kind { kUniform, kDigits, kSame, kCount } kind = Kind::kUniform;
  double low = -1, high = 1;       // kUniform
  int64_t limit = kSmallIntegers;  // kDigits, kCount: values are below it
  double value = 0;                // kSame
  std::string words;
};

ValueRule Same(double value, std::string why) {
  return {.kind = ValueRule::Kind::kSame, .value = value, .words = fmt::format("all {}: {}", value, why)};
}

// Requirements of the nodes that read a value.
struct Uses {
  std::optional<int64_t> limit;    // the value is an index below this limit
  std::optional<double> equal_to;  // the value is compared with this constant
};

bool KeepsElements(const Node& node) {
  static constexpr std::string_view kNames[] = {"Cast",    "Identity", "Unsqueeze", "Squeeze",
                                                "Reshape", "Flatten",  "Transpose"};
  return node.domain.empty() && std::find(std::begin(kNames), std::end(kNames), node.op) != std::end(kNames);
}

std::optional<double> FirstElement(const Graph& graph, ValueId v) {
  if (v == kNone || graph.value(v).role != Role::kConstant || graph.value(v).constant.elements() != 1) return std::nullopt;
  const Tensor& t = graph.value(v).constant;
  switch (t.dtype()) {
    case DType::kI64: return static_cast<double>(t.Data<int64_t>()[0]);
    case DType::kI32: return t.Data<int32_t>()[0];
    case DType::kF32: return t.Data<float>()[0];
    default: return std::nullopt;
  }
}

void Follow(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers, ValueId v, int* steps, Uses* uses) {
  for (NodeId id : consumers[static_cast<size_t>(v)]) {
    if (--*steps < 0) return;
    const Node& node = graph.node(id);
    const bool gathers = node.domain.empty() && (node.op == "Gather" || node.op == "GatherElements");
    if (gathers && node.inputs.size() == 2 && node.inputs[1] == v) {
      const TensorType& data = graph.value(node.inputs[0]).type;
      int64_t axis = node.attrs.Int("axis");
      if (axis < 0) axis += static_cast<int64_t>(data.dims.size());
      if (!data.has_rank || axis < 0 || axis >= static_cast<int64_t>(data.dims.size())) continue;
      const int64_t size = data.dims[static_cast<size_t>(axis)];
      if (size >= 0) uses->limit = std::min(uses->limit.value_or(size), size);
    } else if (node.domain.empty() && node.op == "Equal" && node.inputs.size() == 2) {
      const std::optional<double> other = FirstElement(graph, node.inputs[node.inputs[0] == v ? 1 : 0]);
      if (other && !uses->equal_to) uses->equal_to = other;
    } else if (KeepsElements(node) && node.inputs[0] == v && node.outputs[0] != kNone) {
      Follow(graph, consumers, node.outputs[0], steps, uses);
    }
  }
}

bool IsFloating(DType dtype) { return (kFloating | kNarrowFloating).Contains(dtype); }

ValueRule RuleFor(const Value& input, const Uses& uses, int64_t elements, int variant) {
  const std::string name = LowerCase(input.name);
  const bool floating = IsFloating(input.type.dtype);
  if (ContainsAny(name, {"mask"})) return Same(1, "a mask");
  if (!floating && ContainsAny(name, {"token_type", "segment"})) return Same(0, "one segment");
  if (elements == 1 && uses.equal_to) return Same(*uses.equal_to, "the model compares it with this value");
  if (floating) {
    if (ContainsAny(name, {"threshold"})) return Same(0.5, "a threshold");
    if (elements <= 8 && ContainsAny(name, {"scale", "ratio", "temperature"})) return Same(1, "a factor");
    if (variant == 0) return {.words = "floats in [-1, 1)"};
    if (variant == 1) return {.low = 0x1p-20, .high = 1, .words = "floats in (0, 1]"};
    return Same(1, "a value that most models accept");
  }
  if (input.type.dtype == DType::kBool) {
    if (elements == 1) return Same(1, "a condition");
    return {.kind = ValueRule::Kind::kDigits, .limit = 2, .words = "true and false"};
  }
  if (input.type.dtype == DType::kU8 && elements >= 64) {
    return {.kind = ValueRule::Kind::kDigits, .limit = 256, .words = "bytes in 0..255"};
  }
  const bool narrow = kNarrowInteger.Contains(input.type.dtype);
  const int64_t most = narrow ? std::min<int64_t>(kSmallIntegers, NarrowMax(input.type.dtype) + 1) : kSmallIntegers;
  const int64_t limit = std::max<int64_t>(1, std::min(uses.limit.value_or(most), most));
  if (ContainsAny(name, {"position"})) {
    return {.kind = ValueRule::Kind::kCount,
            .limit = uses.limit.value_or(std::numeric_limits<int64_t>::max()),
            .words = "0, 1, 2, ..."};
  }
  if (variant >= 2 || (elements == 1 && limit > 1)) return Same(limit > 1 ? 1 : 0, "a small integer");
  return {.kind = ValueRule::Kind::kDigits, .limit = limit, .words = fmt::format("integers in 0..{}", limit - 1)};
}

void Fill(const ValueRule& rule, uint64_t seed, Tensor& tensor) {
  const int64_t last = tensor.rank() ? std::max<int64_t>(tensor.shape().back(), 1) : 1;
  auto value = [&](int64_t i) -> double {
    const uint64_t random = Mix(seed * 0x100000001b3u + static_cast<uint64_t>(i));
    switch (rule.kind) {
      case ValueRule::Kind::kUniform: {
        // Computed in double: rounding to float then keeps the largest number below the end of the range.
        const double unit = static_cast<double>(random >> 40) * 0x1p-24;
        return rule.low + unit * (rule.high - rule.low);
      }
      case ValueRule::Kind::kDigits: return static_cast<double>(random % static_cast<uint64_t>(rule.limit));
      case ValueRule::Kind::kCount: return static_cast<double>((i % last) % std::max<int64_t>(rule.limit, 1));
      case ValueRule::Kind::kSame: break;
    }
    return rule.value;
  };
  auto fill = [&](auto convert) {
    using T = decltype(convert(0.0));
    std::span<T> out = tensor.MutableData<T>();
    for (int64_t i = 0; i < tensor.elements(); ++i) out[static_cast<size_t>(i)] = convert(value(i));
  };
  auto fill_pairs = [&](auto part) {  // real and imaginary parts
    auto* out = static_cast<decltype(part)*>(tensor.mutable_data());
    for (int64_t i = 0; i < 2 * tensor.elements(); ++i) out[i] = static_cast<decltype(part)>(value(i));
  };
  switch (tensor.dtype()) {
    case DType::kF32: fill([](double v) { return static_cast<float>(v); }); break;
    case DType::kF64: fill([](double v) { return v; }); break;
    case DType::kF16: fill([](double v) { return Half(static_cast<float>(v)); }); break;
    case DType::kBF16: fill([](double v) { return BFloat16(static_cast<float>(v)); }); break;
    case DType::kI8: fill([](double v) { return static_cast<int8_t>(v); }); break;
    case DType::kI16: fill([](double v) { return static_cast<int16_t>(v); }); break;
    case DType::kI32: fill([](double v) { return static_cast<int32_t>(v); }); break;
    case DType::kI64: fill([](double v) { return static_cast<int64_t>(v); }); break;
    case DType::kU8: fill([](double v) { return static_cast<uint8_t>(v); }); break;
    case DType::kU16: fill([](double v) { return static_cast<uint16_t>(v); }); break;
    case DType::kU32: fill([](double v) { return static_cast<uint32_t>(v); }); break;
    case DType::kU64: fill([](double v) { return static_cast<uint64_t>(v); }); break;
    case DType::kBool: fill([](double v) { return v != 0; }); break;
    case DType::kString:
      for (int64_t i = 0; i < tensor.elements(); ++i) tensor.MutableData<std::string>()[static_cast<size_t>(i)] = "a";
      break;
    case DType::kC64: fill_pairs(float()); break;
    case DType::kC128: fill_pairs(double()); break;
    default: fill([&](double v) { return FloatToNarrow(tensor.dtype(), static_cast<float>(v)); }); break;
  }
}

// Returns generated values for one input; the second part of MakeExampleInputs. Sets `words` to their description.
absl::StatusOr<HostValue> MakeExampleValue(const Graph& typed, const std::vector<std::vector<NodeId>>& consumers,
                                           size_t input, const ExampleOptions& options, const Shape& shape,
                                           HostAllocator& allocator, std::string* words) {
  const Value& value = typed.value(typed.inputs()[input]);
  if (value.kind == ValueKind::kMap || value.kind == ValueKind::kMapSequence) {
    return Fail(errors::kBadInput, fmt::format("input '{}' is a map, for which no values are generated", value.name),
                {.fix = "pass the map as a .pb file"});
  }
  MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(value.type.dtype, shape, allocator));
  Uses uses;
  int steps = kMaxSteps;
  Follow(typed, consumers, typed.inputs()[input], &steps, &uses);
  const ValueRule rule = RuleFor(value, uses, tensor.elements(), options.variant);
  Fill(rule, options.seed * 1000003 + input + 1, tensor);
  *words = tensor.dtype() == DType::kString ? "all 'a'" : rule.words;
  HostValue out;
  out.kind = value.kind;
  if (value.kind == ValueKind::kSequence || value.kind == ValueKind::kOptionalSequence) {
    out.sequence.push_back(std::move(tensor));
    *words += ", a sequence of one tensor";
  } else {
    out.tensor = std::move(tensor);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<ExampleInput>> MakeExampleInputs(const Graph& graph, const ExampleOptions& options,
                                                            std::span<HostValue> inputs, HostAllocator& allocator) {
  MGE_CHECK(inputs.size() == graph.inputs().size());
  std::vector<ExampleInput> out;
  Graph typed;
  MGE_RETURN_IF_ERROR(ChooseExampleShapes(graph, options, inputs, &out, &typed));
  const std::vector<std::vector<NodeId>> consumers = typed.Consumers();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (out[i].given) continue;
    MGE_ASSIGN_OR_RETURN(inputs[i], MakeExampleValue(typed, consumers, i, options, out[i].shape, allocator, &out[i].values));
  }
  return out;
}

}  // namespace mge
