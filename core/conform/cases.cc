// SPDX-License-Identifier: Apache-2.0
#include "core/conform/cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <regex>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "core/conform/check.h"
#include "core/kernel/abi_graph.h"
#include "core/ops/effects.h"
#include "core/ops/interpreter.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

constexpr int kVersion = 24;  // the operator set version of the nodes, or the nearest one in which the operator exists
constexpr std::string_view kQuickOps[] = {"Relu", "Add", "Sub", "MatMul", "Gemm", "ReduceSum", "Softmax", "Conv"};

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr TypeSet kSpecial = {DType::kF32, DType::kI32, DType::kI64, DType::kU32, DType::kU64};  // types with such values

// Returns seven values: for floating types those that arithmetic treats specially, else large ones.
template <typename T>
std::array<T, 7> SpecialValues() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, float>) return {kNan, 1.5f, -kInf, -0.0f, -2.5f, kInf, 0.0f};
  constexpr auto kOdd = static_cast<T>((int64_t{1} << 53) + 1);  // no double holds it, nor do 32 bits
  return {Limits::max(),     static_cast<T>(1),        Limits::min(),     kOdd,
          static_cast<T>(0), static_cast<T>(kOdd + 1), static_cast<T>(-3)};
}

// Returns a tensor of special values for operand number `operand`. Over several operands, all combinations of values occur.
Tensor SpecialTensor(const TensorType& type, size_t operand, size_t first) {
  Tensor t = OrThrow(Tensor::Create(type.dtype, type.dims));
  DispatchNumeric(type.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float> || (std::is_integral_v<T> && sizeof(T) >= 4)) {
      const std::array<T, 7> values = SpecialValues<T>();
      size_t at = first, period = 1;
      for (size_t i = 0; i < operand; ++i) period *= values.size();
      for (T& x : t.MutableData<T>()) x = values[at++ / period % values.size()];
    }
  });
  return t;
}

// Returns random values in the operand's range; by default in [-2, 2], or [-5, 5] for integers.
Tensor DataOf(const SpecOperand& operand, const TensorType& type, uint64_t seed) {
  const double most = kFloating.Contains(type.dtype) ? 2 : 5;
  Tensor t =
      RandomTensor(type.dtype, type.dims, operand.ranged ? operand.low : -most, operand.ranged ? operand.high : most, seed);
  if (!operand.rare) return t;
  const std::span<float> values = t.MutableData<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    constexpr float kRare[] = {kNan, kInf, -kInf};
    if (i < values.size() / 4) values[i] = -kInf;
    if (i >= values.size() / 2 && i % 13 == 0) values[i] = kRare[i / 13 % 3];
  }
  return t;
}

// Returns the values of an operand: of case `set`, or of a constant.
Tensor ValuesOf(const SpecOperand& operand, const TensorType& type, size_t position, size_t set, uint64_t seed) {
  return operand.special ? SpecialTensor(type, position, 3 * set) : DataOf(operand, type, seed);
}

// Generates data for the graph's inputs and computes the reference results.
absl::Status Finish(Case& c, const std::vector<SpecOperand>& ranges) {
  MGE_RETURN_IF_ERROR(InferTypes(c.graph));
  for (NodeId n = 0; n < c.graph.node_count(); ++n) {
    if (!VisibleToBackends(c.graph, c.graph.node(n))) {
      return absl::FailedPreconditionError(
          "backends are not given this node: its types are not static, or it is the host's");
    }
  }
  for (int set = 0; set < 2; ++set) {
    for (size_t i = 0; i < c.graph.inputs().size(); ++i) {
      const TensorType& type = c.graph.value(c.graph.inputs()[i]).type;
      const SpecOperand operand = i < ranges.size() ? ranges[i] : SpecOperand();
      const auto number = static_cast<size_t>(set);
      c.inputs[set].push_back(ValuesOf(operand, type, i, number, 17 * i + 3 + 1000 * number));
    }
    std::vector<HostValue> values(c.inputs[set].size());
    for (size_t i = 0; i < values.size(); ++i) values[i].tensor = c.inputs[set][i];
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, Interpret(c.graph, std::move(values)));
    for (HostValue& r : results) c.expected[set].push_back(std::move(r.tensor));
  }
  return absl::OkStatus();
}

// The examples of elementwise operators with one and with two operands, if their rows give none.
constexpr std::string_view kUnary[] = {"(T[3,7])",     "(T[67]@special)",  "(T[1])",     "(T[])",           "(T[0,3])",
                                       "(T[2,3,5,7])", "(T[37]@-100:100)", "(T[70001])", "(T[2,1,3,2,1,2])"};
constexpr std::string_view kBinary[] = {"(T[3,7], T[3,7])",
                                        "(T[67]@special, T[67]@special)",
                                        "(T[2,3,5], T[2,3,5])",
                                        "(T[3,7], =0)",
                                        "(T[3,1], T[1,5])",
                                        "(T[37], T[])",
                                        "(T[2,1,5], T[2,3,1])",
                                        "(T[0,3], T[3])",
                                        "(T[70001], T[70001])",
                                        "(T[], T[])",
                                        "(T[2,1,2,1,3,2], T[1,3,1,2,1,2])"};

// Splits a list at the commas outside of brackets and quotes.
std::vector<std::string> SplitList(const std::string& list) {
  static const std::regex part(R"re((?:[^,\[<"]|\[[^\]]*\]|<[^>]*>|"[^"]*")+)re");
  std::vector<std::string> out;
  for (std::sregex_iterator at(list.begin(), list.end(), part), end; at != end; ++at)
    out.emplace_back(absl::StripAsciiWhitespace(at->str()));
  return out;
}

int VersionOf(const OpDef& def) {
  return def.domain.empty() ? std::clamp(kVersion, def.since, def.until) : std::max(1, def.since);
}

}  // namespace

std::string CaseSpec::AttributesText() const {
  std::string out;
  for (const auto& [name, value] : attributes) out += fmt::format("{}{}={}", out.empty() ? "{" : ", ", name, value);
  return out.empty() ? out : out + "}";
}

std::string CaseSpec::Text() const {
  std::string text = version ? fmt::format("{}@{}", op, version) : op;
  text += fmt::format("({})", fmt::join(operands, ", "));
  if (!attributes.empty()) text += fmt::format(" {}", AttributesText());
  if (outputs != 1) text += fmt::format(" -> {}", outputs);
  return once ? text + " once" : text;
}

CaseSpec ParseSpec(const std::string& text) {
  static const std::regex form(R"re(([^(@]+)(?:@(\d+))?\(([^)]*)\)(?: *\{(.*)\})?(?: -> (\d+))?( once)?.*)re");
  std::smatch parts;
  MGE_CHECK(std::regex_match(text, parts, form));
  CaseSpec spec;
  spec.op = parts[1];
  if (parts[2].matched) spec.version = std::stoi(parts[2]);
  spec.operands = SplitList(parts[3]);
  for (const std::string& part : SplitList(parts[4])) {
    const size_t equals = part.find('=');
    spec.attributes.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  if (parts[5].matched) spec.outputs = std::stoi(parts[5]);
  spec.once = parts[6].matched;
  return spec;
}

SpecOperand ParseOperand(const std::string& text) {
  SpecOperand o;
  const size_t at = text.find('@');
  o.type = text.substr(0, at);
  o.absent = text == "_";
  o.constant = text.ends_with('>');
  if (text.starts_with('=')) o.same_as = std::stoi(text.substr(1));
  if (at == text.npos) return o;
  o.special = text.substr(at) == "@special";
  o.rare = text.substr(at) == "@rare";
  o.ranged = std::sscanf(text.c_str() + at, "@%lf:%lf", &o.low, &o.high) == 2;
  return o;
}

std::string Case::Name() const {
  constexpr const char* kWith[] = {"", " with constants", " with the first one constant"};
  return fmt::format("{}{} T={}", spec, kWith[static_cast<int>(constants)], DTypeName(dtype));
}

double Case::Work() const {
  int64_t largest = 0, written = 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (graph.value(v).role != Role::kTemporary) largest = std::max(largest, Elements(graph.value(v).type.dims));
  }
  for (const Tensor& t : expected[0]) written += t.elements();
  return static_cast<double>(written) * static_cast<double>(largest);
}

std::vector<const OpDef*> CheckableOps() {
  std::vector<const OpDef*> out;
  for (const OpDef* def : AllOps()) {
    bool body = std::ranges::any_of(def->attrs, [](const Attr& a) { return a.type == AttrType::kGraph; });
    if (!def->Is(kHostOnly) && IsPure(*def) && !def->Is(kDynamicShape) && !body && !TypesOf(*def).empty())
      out.push_back(def);
  }
  std::ranges::sort(out, {}, &OpDef::name);
  return out;
}

std::vector<const OpDef*> QuickOps() {
  std::vector<const OpDef*> out;
  for (std::string_view name : kQuickOps) out.push_back(FindOp("", name));
  return out;
}

std::vector<DType> TypesOf(const OpDef& def) {
  std::vector<DType> out;
  if (def.inputs.size() == 0) return out;
  std::vector<std::string> specs = SpecsFor(def);
  CaseSpec first = ParseSpec(specs.front());
  const Slot* slot = &def.inputs[0];
  const auto typed = std::ranges::find_if(first.operands, [](auto& operand) { return operand.starts_with("T["); });
  if (typed != first.operands.end())
    slot = &def.inputs[std::min(static_cast<int>(typed - first.operands.begin()), def.inputs.size() - 1)];
  std::ranges::copy_if(kCaseTypes, std::back_inserter(out), [&](DType d) { return slot->types.Contains(d); });
  return out;
}

std::vector<std::string> SpecsFor(const OpDef& def) {
  std::span<const std::string_view> examples =
      def.inputs.size() == 2 ? std::span(kBinary) : std::span<const std::string_view>(kUnary);
  if (def.examples.size() > 0) examples = {def.examples.begin(), def.examples.end()};
  std::vector<std::string> out;
  for (std::string_view example : examples) {
    for (absl::string_view part : absl::StrSplit(Absl(example), absl::ByString("; ")))
      out.push_back(fmt::format("{}{}", def.name, Std(part)));
  }
  return out;
}

absl::StatusOr<Case> CaseOfGraph(Graph graph, std::string name, DType dtype) {
  Case c;
  c.dtype = dtype;
  c.spec = std::move(name);
  c.graph = std::move(graph);
  MGE_RETURN_IF_ERROR(Finish(c, {}));
  return c;
}

absl::StatusOr<Case> MakeCase(const OpDef& def, DType dtype, const std::string& text, Constants constants) {
  const CaseSpec spec = ParseSpec(text);
  Case c;
  c.def = &def;
  c.dtype = dtype;
  c.spec = text;
  c.constants = constants;
  c.once = spec.once;
  if (spec.once && dtype != DType::kF32) return absl::FailedPreconditionError("float32 is enough for a large case");
  std::string lines, call, outs;
  std::vector<SpecOperand> free;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    SpecOperand o = ParseOperand(spec.operands[i]);
    call += i ? ", " : "";
    call += o.absent ? std::string("_") : fmt::format("i{}", o.same_as < 0 ? static_cast<int>(i) : o.same_as);
    if (o.absent || o.same_as >= 0) continue;
    if (o.type.starts_with("T[")) o.type = std::string(DTypeName(dtype)) + o.type.substr(1);
    if ((o.special && !kSpecial.Contains(dtype)) || (o.rare && dtype != DType::kF32))
      return absl::FailedPreconditionError("its type does not have such values");
    if (o.constant) {
      lines += fmt::format("const i{} = {}\n", i, o.type);
      continue;
    }
    lines += fmt::format("input i{} : {}\n", i, o.type);
    free.push_back(o);
  }
  for (int i = 0; i < spec.outputs; ++i) outs += fmt::format("{}y{}", i ? ", " : "", i);
  std::string name = def.domain.empty() ? std::string(def.name) : fmt::format("{}::{}", def.domain, def.name);
  lines += fmt::format("{} = {}@{}({}) {}\noutput {}\n", outs, name, spec.version ? spec.version : VersionOf(def), call,
                       spec.AttributesText(), outs);
  MGE_ASSIGN_OR_RETURN(c.graph, ParseGraphText(lines));
  const std::vector<ValueId> inputs = std::exchange(c.graph.inputs(), {});
  const std::vector<SpecOperand> operands = std::exchange(free, {});
  if (constants != Constants::kNone && inputs.size() < 2) return absl::FailedPreconditionError("it has one input only");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (constants == Constants::kNone || (i == 0) != (constants == Constants::kFirst)) {
      c.graph.inputs().push_back(inputs[i]);
      free.push_back(operands[i]);
      continue;
    }
    Value& v = c.graph.value(inputs[i]);
    v.role = Role::kConstant;
    v.constant = ValuesOf(operands[i], v.type, std::max<size_t>(i, 1), 0, 29 * i + 7);  // 0: the first free operand
  }
  MGE_RETURN_IF_ERROR(Finish(c, free));
  return c;
}

absl::StatusOr<Case> FirstRowOf(const Case& c) {
  CaseSpec spec = ParseSpec(c.spec);
  std::string& operand = spec.operands[0];
  if (!operand.starts_with("T[") || operand.starts_with("T[]") || c.constants == Constants::kFirst)
    return absl::FailedPreconditionError("it has no rows");
  operand.replace(2, operand.find_first_of(",]") - 2, "1");
  return MakeCase(*c.def, c.dtype, spec.Text(), c.constants);
}

std::vector<unsigned char> BytesOf(const Tensor& t) {
  auto* data = static_cast<const unsigned char*>(t.data());
  return {data, data + t.bytes()};
}

Tensor TensorOf(DType dtype, const Shape& shape, const void* bytes) {
  Tensor t = OrThrow(Tensor::Create(dtype, shape));
  if (t.bytes()) std::memcpy(t.mutable_data(), bytes, static_cast<size_t>(t.bytes()));
  return t;
}

Tensor RandomTensor(DType dtype, Shape shape, double low, double high, uint64_t seed) {
  Tensor t = OrThrow(Tensor::Create(dtype, std::move(shape)));
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x1234567;
  if (kUnsigned.Contains(dtype)) low = std::max(low, 0.0);
  DispatchFixedSize(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& x : t.MutableData<T>()) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      double v = low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
      if constexpr (std::is_same_v<T, bool>) {
        x = (state >> 20) & 1;
      } else if constexpr (std::is_integral_v<T>) {
        x = static_cast<T>(std::floor(v + 0.5));
      } else {
        x = static_cast<T>(static_cast<float>(v));
      }
    }
  });
  return t;
}

long double ElementAt(const Tensor& t, int64_t i) {
  long double out = 0;
  DispatchFixedSize(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Read = std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>;  // a wrong kernel writes any byte
    using Wide = std::conditional_t<std::is_arithmetic_v<T>, Read, float>;       // float16 and bfloat16 become float
    out = static_cast<long double>(static_cast<Wide>(static_cast<const Read*>(t.data())[i]));
  });
  return out;
}

std::string CompareWithReference(const Tensor& got, const Tensor& want, bool reduced) {
  if (want.bytes() == 0 || std::memcmp(got.data(), want.data(), static_cast<size_t>(want.bytes())) == 0) return {};
  const bool floating = kFloating.Contains(want.dtype());
  const double of_type = want.dtype() == DType::kF64   ? 1e-9
                         : want.dtype() == DType::kF32 ? 2e-5
                         : want.dtype() == DType::kF16 ? 8e-3
                                                       : 4e-2;
  long double scale = 0.1L;  // the largest value of the tensor: the error of a sum whose terms cancel is relative to it
  for (int64_t i = 0; floating && i < want.elements(); ++i) {
    if (const long double w = std::abs(ElementAt(want, i)); std::isfinite(w)) scale = std::max(scale, w);
  }
  const long double allowed = floating ? (reduced ? std::max(of_type, 2e-2) : of_type) * scale : 0;
  int64_t wrong = 0, first = 0;
  for (int64_t i = want.elements(); i-- > 0;) {
    const long double a = ElementAt(got, i), b = ElementAt(want, i);
    const bool same = std::isfinite(b) ? std::abs(a - b) <= allowed : a == b || (std::isnan(a) && std::isnan(b));
    if (!same) first = i, ++wrong;
  }
  if (wrong == 0) return {};
  return fmt::format("{} of {} elements are wrong, the first at {}: {:.9g}, expected {:.9g}", wrong, want.elements(), first,
                     ElementAt(got, first), ElementAt(want, first));
}

}  // namespace mge::conform
