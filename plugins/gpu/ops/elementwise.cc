// SPDX-License-Identifier: Apache-2.0
// Every elementwise operator: the one list of them, and how each becomes launches. Which types an operator takes is what its
// kernels are compiled for.
#include "plugins/gpu/kernels/elementwise.h"

#include <array>
#include <string>

#include "plugins/gpu/row_table.h"
#include "plugins/gpu/support/broadcast.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

enum class Form : uint8_t {
  kUnary,     // y = f(x); attributes p, q are parameters a, b
  kIsInf,     // the same with attributes of integers
  kBinary,    // z = f(x, y), comparisons too
  kVariadic,  // f(f(a, b), c)...
  kMean,      // the sum of all, divided by their number
  kMod,
  kShift,
  kGelu,
  kPow,
  kWhere,
  kCast,
  kClip,
  kCopy,
};

struct ElementwiseOp {
  const char* name;
  Form form;
  const char* kernel = "";
  const char* p = "";
  float a = 0;
  const char* q = "";
  float b = 0;
};

constexpr ElementwiseOp kOps[] = {
    {"Abs", Form::kUnary, "abs"},
    {"Acos", Form::kUnary, "acos"},
    {"Acosh", Form::kUnary, "acosh"},
    {"Add", Form::kBinary, "add"},
    {"And", Form::kBinary, "and"},
    {"Asin", Form::kUnary, "asin"},
    {"Asinh", Form::kUnary, "asinh"},
    {"Atan", Form::kUnary, "atan"},
    {"Atanh", Form::kUnary, "atanh"},
    {"BitShift", Form::kShift},
    {"BitwiseAnd", Form::kBinary, "bitwise_and"},
    {"BitwiseNot", Form::kUnary, "bitwise_not"},
    {"BitwiseOr", Form::kBinary, "bitwise_or"},
    {"BitwiseXor", Form::kBinary, "bitwise_xor"},
    {"Cast", Form::kCast},
    {"CastLike", Form::kCast},
    {"Ceil", Form::kUnary, "ceil"},
    {"Celu", Form::kUnary, "celu", "alpha", 1.0f},
    {"Clip", Form::kClip, "clip"},
    {"Cos", Form::kUnary, "cos"},
    {"Cosh", Form::kUnary, "cosh"},
    {"Div", Form::kBinary, "div"},
    {"Dropout", Form::kCopy},
    {"Elu", Form::kUnary, "elu", "alpha", 1.0f},
    {"Equal", Form::kBinary, "equal"},
    {"Erf", Form::kUnary, "erf"},
    {"Exp", Form::kUnary, "exp"},
    {"Floor", Form::kUnary, "floor"},
    {"Gelu", Form::kGelu},
    {"Greater", Form::kBinary, "greater"},
    {"GreaterOrEqual", Form::kBinary, "greater_or_equal"},
    {"HardSigmoid", Form::kUnary, "hard_sigmoid", "alpha", 0.2f, "beta", 0.5f},
    {"HardSwish", Form::kUnary, "hard_swish"},
    {"Identity", Form::kCopy},
    {"IsInf", Form::kIsInf, "is_inf"},
    {"IsNaN", Form::kUnary, "is_nan"},
    {"LeakyRelu", Form::kUnary, "leaky_relu", "alpha", 0.01f},
    {"Less", Form::kBinary, "less"},
    {"LessOrEqual", Form::kBinary, "less_or_equal"},
    {"Log", Form::kUnary, "log"},
    {"Max", Form::kVariadic, "max"},
    {"Mean", Form::kMean, "add"},
    {"Min", Form::kVariadic, "min"},
    {"Mish", Form::kUnary, "mish"},
    {"Mod", Form::kMod},
    {"Mul", Form::kBinary, "mul"},
    {"Neg", Form::kUnary, "neg"},
    {"Not", Form::kUnary, "not"},
    {"Or", Form::kBinary, "or"},
    {"PRelu", Form::kBinary, "prelu"},
    {"Pow", Form::kPow, "pow"},
    {"Reciprocal", Form::kUnary, "reciprocal"},
    {"Relu", Form::kUnary, "relu"},
    {"Round", Form::kUnary, "round"},
    {"Selu", Form::kUnary, "selu", "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f},
    {"Shrink", Form::kUnary, "shrink", "lambd", 0.5f, "bias", 0.0f},
    {"Sigmoid", Form::kUnary, "sigmoid"},
    {"Sign", Form::kUnary, "sign"},
    {"Sin", Form::kUnary, "sin"},
    {"Sinh", Form::kUnary, "sinh"},
    {"Softplus", Form::kUnary, "softplus"},
    {"Softsign", Form::kUnary, "softsign"},
    {"Sqrt", Form::kUnary, "sqrt"},
    {"Sub", Form::kBinary, "sub"},
    {"Sum", Form::kVariadic, "add"},
    {"Swish", Form::kUnary, "swish", "alpha", 1.0f},
    {"Tan", Form::kUnary, "tan"},
    {"Tanh", Form::kUnary, "tanh"},
    {"ThresholdedRelu", Form::kUnary, "thresholded_relu", "alpha", 1.0f},
    {"Where", Form::kWhere},
    {"Xor", Form::kBinary, "xor"},
};

const ElementwiseOp& RowOf(const Node& n) {
  for (const ElementwiseOp& op : kOps) {
    if (n.op() == op.name) return op;
  }
  return kOps[0];  // rows are made of this table
}

// The node as launches; refuses with a reason. Used to offer and to make, so that the two cannot differ.
class Builder {
 public:
  Builder(const Problem& p, Recipe* recipe) : p_(p), n_(p.node()), y_(n_.output(0)), recipe_(*recipe) {}

  Result Build() {
    const ElementwiseOp& op = RowOf(n_);
    if (n_.output_count() > 1 && n_.has_output(1)) return No("does not give a mask");
    if (!n_.has_input(0)) return No("without an operand");
    switch (op.form) {
      case Form::kUnary: return Unary(op.kernel, n_.Float(op.p, op.a), n_.Float(op.q, op.b));
      case Form::kIsInf:
        return Unary(op.kernel, static_cast<float>(n_.Int("detect_positive", 1)), static_cast<float>(n_.Int("detect_negative", 1)));
      case Form::kGelu: return Unary(n_.Word("approximate", "none") == "tanh" ? "gelu_tanh" : "gelu", 0, 0);
      case Form::kBinary: return BinaryOfInputs(op.kernel);
      case Form::kMod: return BinaryOfInputs(n_.Int("fmod", 0) ? "fmod" : "mod");
      case Form::kShift: return BinaryOfInputs(n_.Word("direction") == "LEFT" ? "shift_left" : "shift_right");
      case Form::kVariadic:
      case Form::kMean: return Variadic(op);
      case Form::kPow: return Pow();
      case Form::kWhere: return Where();
      case Form::kCast: return Cast(In(0), n_.input(0).dtype(), n_.input(0).elements(), y_.dtype(), Operand::Out());
      case Form::kClip: return Clip();
      case Form::kCopy: return Copy();
    }
    return No("unknown");
  }
  // Inputs whose place the output may take.
  std::vector<mge_in_place> InPlace() const {
    std::vector<mge_in_place> out;
    if (n_.input_count() > 2) return out;  // of several steps, a later one still reads its input
    for (int k = 0; k < n_.input_count(); ++k) {
      if (!n_.has_input(k) || n_.input(k).bytes() != y_.bytes() || n_.input(k).elements() != y_.elements()) continue;
      out.push_back({0, static_cast<uint32_t>(InputOf(p_, k))});
    }
    if (out.size() == 2 && out[0].input == out[1].input) out.pop_back();
    return out;
  }

 private:
  static Result No(std::string why) { return {MGE_UNIMPLEMENTED, std::move(why)}; }
  Result NoType(mge_dtype t) const { return No("does not take " + std::string(TypeName(t))); }
  static bool Exists(const std::string& kernel) { return FindKernel(kernel) != kNoKernel; }
  Operand In(int k) const { return Operand::In(InputOf(p_, k)); }
  int64_t n() const { return static_cast<int64_t>(y_.elements()); }

  Result Unary(std::string_view base, float a, float b, Operand from, Operand to, mge_dtype type) {
    std::string kernel = KernelFor(base, type);
    if (!Exists(kernel)) return NoType(type);
    if (n()) recipe_.Add(kernel, Spread(n()), UnaryArgs{nullptr, nullptr, n(), a, b}, {from, to});
    return {};
  }
  Result Unary(std::string_view base, float a, float b) {
    return Unary(base, a, b, In(0), Operand::Out(), n_.input(0).dtype());
  }

  struct Side {
    Operand operand;
    Value value;
    bool whole = false;  // has the output's shape, whatever `value` has
  };
  Result Binary(std::string_view base, mge_dtype type, const Side& x, const Side& y, Operand to = Operand::Out()) {
    std::string kernel = KernelFor(base, type);
    if (!Exists(kernel)) return NoType(type);
    if (!n()) return {};
    Broadcast b = BroadcastTo(y_.dims(), {x.whole ? y_ : x.value, y.whole ? y_ : y.value});
    BinaryArgs args = {};
    args.n = n();
    if (b.plain()) {
      args.x_step = b.step(0);
      args.y_step = b.step(1);
    } else {
      args.walk.rank = static_cast<int32_t>(b.dims.size());
      for (size_t d = 0; d < b.dims.size(); ++d) {
        args.walk.dims[d] = b.dims[d];
        args.x_strides[d] = b.strides[0][d];
        args.y_strides[d] = b.strides[1][d];
      }
    }
    recipe_.Add(kernel, Spread(n()), args, {x.operand, y.operand, to, Operand::Faults()});
    return {};
  }
  Result BinaryOfInputs(std::string_view base) {
    if (n_.input(0).dtype() != n_.input(1).dtype()) return No("operands of different types");
    return Binary(base, n_.input(0).dtype(), {In(0), n_.input(0)}, {In(1), n_.input(1)});
  }

  Result Variadic(const ElementwiseOp& op) {
    int count = n_.input_count();
    mge_dtype type = y_.dtype();
    if (count == 1) {
      if (!Exists(KernelFor(op.kernel, type))) return NoType(type);
      recipe_.AddCopy(Operand::Out(), In(0), y_.bytes());
      return {};
    }
    for (int k = 1; k < count; ++k) {
      if (n_.input(k).dtype() != type) return No("operands of different types");
      Side sum = k == 1 ? Side{In(0), n_.input(0)} : Side{Operand::Out(), y_, true};
      if (Result r = Binary(op.kernel, type, sum, {In(k), n_.input(k)}); !r.ok()) return r;
    }
    if (op.form != Form::kMean) return {};
    return Unary("divide_by", static_cast<float>(count), 0, Operand::Out(), Operand::Out(), type);
  }

  // Operands of different types are computed as float64 and brought back.
  Result Pow() {
    mge_dtype type = n_.input(0).dtype(), exponent = n_.input(1).dtype();
    if (type == exponent) return BinaryOfInputs("pow");
    if (IsInteger(type) && IsInteger(exponent)) return No("an integer power of another type");
    uint64_t x = n_.input(0).elements(), y = n_.input(1).elements();
    auto x_at = Operand::Work(), y_at = Operand::Work(static_cast<int64_t>(8 * x)), z_at = Operand::Work(static_cast<int64_t>(8 * (x + y)));
    recipe_.SetWorkspace(8 * (x + y + y_.elements()));
    if (Result r = Cast(In(0), type, x, MGE_DTYPE_F64, x_at); !r.ok()) return r;
    if (Result r = Cast(In(1), exponent, y, MGE_DTYPE_F64, y_at); !r.ok()) return r;
    if (Result r = Binary("pow", MGE_DTYPE_F64, {x_at, n_.input(0)}, {y_at, n_.input(1)}, z_at); !r.ok()) return r;
    return Cast(z_at, MGE_DTYPE_F64, y_.elements(), type, Operand::Out());
  }

  Result Where() {
    Value x = n_.input(1), y = n_.input(2);
    if (x.dtype() != y.dtype()) return No("operands of different types");
    if (!n()) return {};
    Broadcast b = BroadcastTo(y_.dims(), {n_.input(0), x, y});
    WhereArgs args = {};
    args.n = n();
    if (b.plain()) {
      args.c_step = b.step(0);
      args.x_step = b.step(1);
      args.y_step = b.step(2);
    } else {
      args.walk.rank = static_cast<int32_t>(b.dims.size());
      for (size_t d = 0; d < b.dims.size(); ++d) {
        args.walk.dims[d] = b.dims[d];
        args.c_strides[d] = b.strides[0][d];
        args.x_strides[d] = b.strides[1][d];
        args.y_strides[d] = b.strides[2][d];
      }
    }
    recipe_.Add("where_" + std::to_string(ElementBytes(y_.dtype())), Spread(n()), args, {In(0), In(1), In(2), Operand::Out()});
    return {};
  }

  Result Cast(Operand from, mge_dtype from_type, uint64_t elements, mge_dtype to_type, Operand to) {
    if (from_type == to_type) {
      recipe_.AddCopy(to, from, elements * ElementBytes(to_type));
      return {};
    }
    if (elements) {
      recipe_.Add(KernelFor("cast_to", to_type), Spread(static_cast<int64_t>(elements)),
                  CastArgs{nullptr, nullptr, static_cast<int64_t>(elements), static_cast<int32_t>(from_type), 0}, {from, to});
    }
    return {};
  }

  Result Clip() {
    mge_dtype type = y_.dtype();
    if (!Exists(KernelFor("clip", type))) return NoType(type);
    for (int k : {1, 2}) {
      if (!n_.has_input(k)) continue;
      if (n_.input(k).dtype() != type) return No("a limit of another type");
      if (n_.input(k).elements() != 1) return No("a limit that is not one element");
    }
    if (!n()) return {};
    auto limit = [&](int k) { return n_.has_input(k) ? In(k) : Operand::Null(); };
    recipe_.Add(KernelFor("clip", type), Spread(n()), ClipArgs{nullptr, nullptr, nullptr, nullptr, n()},
                {In(0), limit(1), limit(2), Operand::Out()});
    return {};
  }

  Result Copy() {
    if (n_.has_input(2)) {
      Value training = n_.input(2);
      if (!training.is_constant() || training.elements() != 1 || training.data<uint8_t>()[0]) return No("Dropout in training");
    }
    recipe_.AddCopy(Operand::Out(), In(0), y_.bytes());
    return {};
  }

  const Problem& p_;
  Node n_;
  Value y_;
  Recipe& recipe_;
};

void Offer(const Problem& p, Offers& offers) {
  if (!Accept(p, offers)) return;
  Recipe recipe;
  Builder builder(p, &recipe);
  if (Result r = builder.Build(); !r.ok()) return offers.Refuse(r.text());
  offers.Add({.id = "gpu.elementwise",
              .attributes = kExact,
              .workspace = recipe.workspace(),
              .cost_us = GpuUs(BytesOf(p), 20.0 * static_cast<double>(p.output(0).elements()), recipe.launches()),
              .in_place = builder.InPlace()});
}

KernelPtr Make(const Problem& p, const Candidate&) {
  Recipe recipe;
  if (!Builder(p, &recipe).Build().ok()) return nullptr;
  return std::move(recipe).Make();
}

constexpr auto kRows = [] {
  std::array<KernelRow, std::size(kOps)> rows = {};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = {kOps[i].name, Offer, Make};
  return rows;
}();

}  // namespace

MGE_GPU_OPS(elementwise) = kRows;

}  // namespace mge::gpu
