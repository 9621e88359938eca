// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/generate/chain_program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include "mge/plugin/problems/elementwise.hpp"
#include "mge/plugin/problems/quantize.hpp"
#include "plugins/gpu/kernels/chain.h"
#include "plugins/gpu/support/broadcast.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

using Form = ElementwiseForm;

// A kernel of one operator, and the function that it computes (unary_functions.h, binary_functions.h).
struct FunctionRow {
  std::string_view kernel;
  const char* function;
};
// clang-format off
#define ROW(kernel, Function) {#kernel, #Function},
constexpr FunctionRow kFloatUnary[] = {
    GPU_CHAIN_UNARY(ROW) ROW(tan, Tan) ROW(asin, Asin) ROW(acos, Acos) ROW(atan, Atan) ROW(sinh, Sinh) ROW(cosh, Cosh)
    ROW(asinh, Asinh) ROW(acosh, Acosh) ROW(atanh, Atanh) ROW(is_nan, IsNaN) ROW(is_inf, IsInf)};
constexpr FunctionRow kFloatBinary[] = {GPU_CHAIN_BINARY(ROW) ROW(fmod, Fmod)};
constexpr FunctionRow kIntegerUnary[] = {
    ROW(relu, Relu) ROW(sign, Sign) ROW(abs, AbsInt) ROW(neg, NegInt) ROW(bitwise_not, BitwiseNot)};
// Functions that cannot fail. An integer division reports faults.
constexpr FunctionRow kIntegerBinary[] = {
    ROW(add, Add) ROW(sub, Sub) ROW(mul, Mul) ROW(max, Max) ROW(min, Min) ROW(bitwise_and, BitwiseAnd)
    ROW(bitwise_or, BitwiseOr) ROW(bitwise_xor, BitwiseXor)};
constexpr FunctionRow kComparisons[] = {
    ROW(equal, Equal) ROW(greater, Greater) ROW(greater_or_equal, GreaterOrEqual) ROW(less, Less)
    ROW(less_or_equal, LessOrEqual)};
constexpr FunctionRow kBoolUnary[] = {ROW(not, Not)};
constexpr FunctionRow kBoolBinary[] = {ROW(and, And) ROW(or, Or) ROW(xor, Xor)};
#undef ROW
// clang-format on

const char* Find(std::span<const FunctionRow> rows, std::string_view kernel) {
  auto at = std::ranges::find(rows, kernel, &FunctionRow::kernel);
  return at == rows.end() ? nullptr : at->function;
}

// Returns the function of a kernel for operands of a type, or null.
const char* FunctionOf(std::string_view kernel, mge_dtype type, bool binary) {
  if (FindKernel(KernelFor(kernel, type)) == kNoKernel) return nullptr;
  if (const char* f = binary ? Find(kComparisons, kernel) : nullptr) return f;
  if (type == MGE_DTYPE_BOOL) return binary ? Find(kBoolBinary, kernel) : Find(kBoolUnary, kernel);
  if (IsFloating(type)) return binary ? Find(kFloatBinary, kernel) : Find(kFloatUnary, kernel);
  return binary ? Find(kIntegerBinary, kernel) : Find(kIntegerUnary, kernel);
}

std::string Literal(float x, mge_dtype type) {
  char text[48];
  if (std::isfinite(x)) {
    std::snprintf(text, sizeof(text), "%af", static_cast<double>(x));
  } else {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    std::snprintf(text, sizeof(text), "BitCast<float>(0x%08xu)", bits);
  }
  return std::string("static_cast<") + ComputeType(type) + ">(" + text + ")";
}

// Writes the expression of one node.
class Expression {
 public:
  Expression(const Node& n, std::span<const int> values) : n_(n), values_(values) {}

  // Returns "" if chains do not support the node.
  std::string Text() const {
    Elementwise e;
    if (!ReadElementwise(n_, &e) || n_.output_count() != 1 || !n_.has_output(0) || !n_.has_input(0)) return {};
    const std::string_view function = NameOf(e.function);
    const mge_dtype x = n_.input(0).dtype(), y = n_.output(0).dtype();
    switch (e.form) {
      case Form::kUnary: return Unary(function, e.a, e.b);
      case Form::kBinary:
      case Form::kVariadic: return Fold(function);
      case Form::kMean: {
        const std::string sum = Fold(function);
        return sum.empty() || !IsFloating(x)
                   ? ""
                   : Call("DivideBy", sum, Literal(static_cast<float>(n_.input_count()), x), Literal(0, x));
      }
      case Form::kWhere:
        if (!Has(3) || x != MGE_DTYPE_BOOL || n_.input(1).dtype() != n_.input(2).dtype()) return {};
        return V(0) + " ? " + V(1) + " : " + V(2);
      case Form::kCast: return Cast(x, y);
      case Form::kClip: return Clip(x);
      case Form::kQuantize:
      case Form::kDequantize: return Quantize(e.form == Form::kQuantize);
      case Form::kCopy: return {};
    }
    return {};
  }

 private:
  std::string V(int k) const { return "v" + std::to_string(values_[static_cast<size_t>(k)]); }
  bool Has(int inputs) const {
    for (int k = 0; k < inputs; ++k) {
      if (!n_.has_input(k)) return false;
    }
    return n_.input_count() == inputs;
  }
  std::string Call(const char* function, const std::string& x, const std::string& y, const std::string& z) const {
    return std::string(function) + "::Of<" + ComputeType(n_.input(0).dtype()) + ">(" + x + ", " + y + ", " + z + ")";
  }

  std::string Unary(std::string_view kernel, float a, float b) const {
    const mge_dtype type = n_.input(0).dtype();
    const char* function = FunctionOf(kernel, type, /*binary=*/false);
    return function && Has(1) ? Call(function, V(0), Literal(a, type), Literal(b, type)) : std::string();
  }

  // f(f(x0, x1), x2)... A sum of 16-bit floats is rounded once, at its end.
  std::string Fold(std::string_view kernel) const {
    const char* function = FunctionOf(kernel, n_.input(0).dtype(), /*binary=*/true);
    if (!function || !Has(n_.input_count())) return {};
    std::string text = V(0);
    for (int k = 1; k < n_.input_count(); ++k) {
      if (n_.input(k).dtype() != n_.input(0).dtype()) return {};
      text = Call(function, text, V(k), "nullptr");
    }
    return text;
  }

  std::string Cast(mge_dtype from, mge_dtype to) const {
    if (from == to) return V(0);
    if (to == MGE_DTYPE_BOOL) return "ToBool(" + V(0) + ")";
    const std::string cast = std::string("CastTo<") + StorageType(to) + ">::Of(" + V(0) + ")";
    return to == MGE_DTYPE_F16 || to == MGE_DTYPE_BF16 ? "Widen(" + cast + ")" : cast;
  }

  // Scales that broadcast as an elementwise operand does: one, or one per index of the last dimension.
  std::string Quantize(bool quantizes) const {
    const Value x = n_.input(0);
    const Quantization q = ReadQuantization(n_);
    if (q.block || (!q.one && q.axis != x.rank() - 1)) return {};
    const mge_dtype quantized = quantizes ? n_.output(0).dtype() : x.dtype();
    const std::string type = ComputeType(quantized), zero = n_.has_input(2) ? V(2) : "0",
                      operands = V(1) + ", static_cast<" + type + ">(" + zero + "))";
    if (!quantizes) return "Dequantized<" + type + ">(" + V(0) + ", " + operands;
    return "Quantized<" + type + ", " + StorageType(q.division) + ">(static_cast<float>(" + V(0) + "), " + operands;
  }

  std::string Clip(mge_dtype type) const {
    if (FindKernel(KernelFor("clip", type)) == kNoKernel) return {};
    std::string text = V(0);
    for (const auto& [k, function] : {std::pair(1, "AtLeast("), {2, "AtMost("}}) {
      if (!n_.has_input(k)) continue;
      if (n_.input(k).dtype() != type || n_.input(k).elements() != 1) return {};
      text = function + text + ", " + V(k) + ")";
    }
    return text;
  }

  const Node& n_;
  std::span<const int> values_;
};

bool SameDims(const Value& a, const Value& b) { return std::ranges::equal(a.dims(), b.dims()); }

// Returns whether strides are those of dense memory.
bool IsDense(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  return strides == StridesIn(Layout::kPlain, dims);
}

// Sets the access to the inputs, and what it needs of dimensions and strides. Fails if kernels have no such access.
Result SetAccess(const Value& y, const std::vector<Value>& inputs, Layout layout, ChainLaunch* out) {
  ChainProgram& program = out->program;
  const Broadcast b = BroadcastTo(y.dims(), inputs, layout);
  if (!b.plain()) {
    program.rank = static_cast<int>(b.dims.size());
    program.wide_index = out->elements >= int64_t{1} << 31;
    out->dims = b.dims;
  }
  uint64_t widest = 1;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<int64_t>& strides = b.strides[k];
    if (strides.back() > 1) return {MGE_UNIMPLEMENTED, "a constant whose elements are not neighbours in this layout"};
    Access access = strides.back() ? Access::kRows : Access::kRepeatedRows;
    if (inputs[k].elements() == 1 && out->elements > 1)
      access = Access::kOne;
    else if (IsDense(b.dims, strides) || out->elements == 1)
      access = Access::kDense;
    if (access != Access::kDense && access != Access::kOne) out->strides.push_back(strides);
    if (access == Access::kDense || access == Access::kRows) widest = std::max(widest, ElementBytes(inputs[k].dtype()));
    program.inputs.push_back({inputs[k].dtype(), access});
  }
  for (const int step : program.outputs) {
    widest = std::max(widest, ElementBytes(program.steps[static_cast<size_t>(step)].type));
  }
  constexpr uint64_t kWidestAccess = 16;
  program.width = static_cast<int>(std::min<uint64_t>(kWidestAccess / widest, 8));
  if (program.rank > 1 && b.dims.back() % program.width != 0) program.width = 1;
  return {};
}

}  // namespace

const char* StorageType(mge_dtype t) {
  switch (t) {
    case MGE_DTYPE_F16: return "f16";
    case MGE_DTYPE_BF16: return "bf16";
    default: return ComputeType(t);
  }
}

const char* ComputeType(mge_dtype t) {
  switch (t) {
    case MGE_DTYPE_F64: return "double";
    case MGE_DTYPE_I8: return "int8_t";
    case MGE_DTYPE_I16: return "int16_t";
    case MGE_DTYPE_I32: return "int32_t";
    case MGE_DTYPE_I64: return "int64_t";
    case MGE_DTYPE_BOOL:
    case MGE_DTYPE_U8: return "uint8_t";
    case MGE_DTYPE_U16: return "uint16_t";
    case MGE_DTYPE_U32: return "uint32_t";
    case MGE_DTYPE_U64: return "uint64_t";
    default: return "float";  // also for 16-bit floats
  }
}

std::vector<int64_t> ChainLaunch::Arguments() const {
  std::vector<int64_t> words(program.inputs.size() + program.outputs.size(), 0);
  words.push_back(elements);
  words.insert(words.end(), dims.begin(), dims.end());
  for (const std::vector<int64_t>& s : strides) words.insert(words.end(), s.begin(), s.end());
  return words;
}

bool FitsChain(const Node& n) {
  if (HasOwnMeaning(n)) return false;
  const std::vector<int> values(static_cast<size_t>(n.input_count()), 0);
  if (Expression(n, values).Text().empty()) return false;
  const Value y = n.output(0);
  auto plain = [&](const Value& v) { return v.is_static() && IsSupported(v.dtype()) && v.rank() <= y.rank(); };
  for (int k = 0; k < n.input_count(); ++k) {
    if (n.has_input(k) && !plain(n.input(k))) return false;
  }
  return y.is_static() && IsSupported(y.dtype()) && y.rank() <= kMaxRank && y.elements() > 0;
}

Result BuildChain(const Problem& p, Layout layout, ChainLaunch* out) {
  auto no = [](const char* why) { return Result(MGE_UNIMPLEMENTED, why); };
  const Value y = p.last().output(0);
  ChainProgram& program = out->program;
  out->elements = static_cast<int64_t>(y.elements());
  for (int i = 0; i < p.node_count(); ++i) {
    const Node n = p.node(i);
    if (!FitsChain(n)) return no("a function that generated chains do not have");
    if (!SameDims(n.output(0), y)) return no("results of different shapes");
    std::vector<int> values;
    for (int k = 0; k < n.input_count(); ++k) {
      const int before = n.has_input(k) ? p.graph().producer(n.input_id(k)) : -1;
      values.push_back(before >= 0 ? p.input_count() + before : p.operand(n.input_id(k)));
    }
    program.steps.push_back({Expression(n, values).Text(), n.output(0).dtype()});
    if (OutputOf(p, 0, i) >= 0) program.outputs.push_back(i);
  }
  std::vector<Value> inputs;
  for (int k = 0; k < p.input_count(); ++k) {
    inputs.push_back(p.input(k));
    out->pointers.push_back(Operand::In(k));
  }
  for (const int step : program.outputs) {
    const int output = OutputOf(p, 0, step);
    out->pointers.push_back(Operand::Out(output));
    for (int k = 0; k < p.input_count(); ++k) {
      if (!SameDims(p.input(k), y) || p.input(k).bytes() != p.output(output).bytes()) continue;
      if (layout != Layout::kPlain && p.input(k).is_constant()) continue;
      out->in_place.push_back({static_cast<uint32_t>(output), static_cast<uint32_t>(k)});
    }
  }
  if (Result r = SetAccess(y, inputs, layout, out); !r.ok()) return r;
  if (out->Arguments().size() * sizeof(int64_t) > kMaxArgsBytes)
    return no("too many operands for the arguments of a kernel");
  return {};
}

}  // namespace mge::gpu
