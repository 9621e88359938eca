// SPDX-License-Identifier: Apache-2.0
// Elementwise operators and chains of them as launches. An operator supports the types that its kernels are compiled for.
#include "plugins/gpu/kernels/elementwise.h"

#include <algorithm>
#include <string>

#include "mge/plugin/problems/elementwise.hpp"
#include "mge/plugin/problems/quantize.hpp"
#include "plugins/gpu/kernels/quantize.h"
#include "plugins/gpu/support/broadcast.h"
#include "plugins/gpu/support/chain.h"
#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

using Form = ElementwiseForm;

// Builds the launches of a node, or refuses with a reason. Used for the offer and for the kernel, so that both agree.
class Builder {
 public:
  Builder(const Problem& p, Layout layout, Recipe* recipe)
      : p_(p), n_(p.node()), y_(n_.output(0)), layout_(layout), recipe_(*recipe) {}

  Result Build() {
    Elementwise e;
    if (!ReadElementwise(n_, &e)) return No("is not elementwise");
    if (n_.output_count() > 1 && n_.has_output(1)) return No("does not give a mask");
    if (!n_.has_input(0)) return No("without an operand");
    for (int k = 0; k < n_.input_count() && layout_ != Layout::kPlain; ++k) {
      if (n_.has_input(k) && n_.input(k).is_constant() && n_.input(k).elements() == y_.elements() && n() > 1) {
        return No("a constant of the output's size has the plain layout only");
      }
    }
    switch (e.form) {
      case Form::kUnary: return Unary(NameOf(e.function), e.a, e.b);
      case Form::kBinary: return e.function == ElementwiseFunction::kPow ? Pow() : BinaryOfInputs(NameOf(e.function));
      case Form::kVariadic:
      case Form::kMean: return Variadic(e);
      case Form::kWhere: return Where();
      case Form::kCast: return Cast(In(0), n_.input(0).dtype(), n_.input(0).elements(), y_.dtype(), Operand::Out());
      case Form::kClip: return Clip();
      case Form::kCopy: return Copy();
      case Form::kQuantize: return Quantize("quantize_to");
      case Form::kDequantize: return Quantize("dequantize_to");
    }
    return No("unknown");
  }
  // Returns the inputs whose memory the output may use.
  std::vector<mge_in_place> InPlace() const {
    std::vector<mge_in_place> out;
    if (n_.input_count() > 2) return out;  // with several launches, a later one still reads its input
    for (int k = 0; k < n_.input_count(); ++k) {
      if (!n_.has_input(k) || n_.input(k).bytes() != y_.bytes() || n_.input(k).elements() != y_.elements()) continue;
      if (layout_ != Layout::kPlain && n_.input(k).rank() != y_.rank()) continue;
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
    bool whole = false;  // has the output's shape, whatever shape `value` has
  };
  Result Binary(std::string_view base, mge_dtype type, const Side& x, const Side& y, Operand to = Operand::Out()) {
    std::string kernel = KernelFor(base, type);
    if (!Exists(kernel)) return NoType(type);
    if (!n()) return {};
    Broadcast b = BroadcastTo(y_.dims(), {x.whole ? y_ : x.value, y.whole ? y_ : y.value}, layout_);
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

  Result Variadic(const Elementwise& e) {
    int count = n_.input_count();
    mge_dtype type = y_.dtype();
    if (count == 1) {
      if (!Exists(KernelFor(NameOf(e.function), type))) return NoType(type);
      recipe_.AddCopy(Operand::Out(), In(0), y_.bytes());
      return {};
    }
    for (int k = 1; k < count; ++k) {
      if (n_.input(k).dtype() != type) return No("operands of different types");
    }
    const bool sums = e.form == Form::kMean || (count > 2 && e.function == ElementwiseFunction::kAdd);
    if (sums && IsFloating(type) && ElementBytes(type) == 2) return WideSum(e);
    for (int k = 1; k < count; ++k) {
      Side sum = k == 1 ? Side{In(0), n_.input(0)} : Side{Operand::Out(), y_, true};
      if (Result r = Binary(NameOf(e.function), type, sum, {In(k), n_.input(k)}); !r.ok()) return r;
    }
    if (e.form != Form::kMean) return {};
    return Unary("divide_by", static_cast<float>(count), 0, Operand::Out(), Operand::Out(), type);
  }

  // Sums 16-bit floats in float and rounds once.
  Result WideSum(const Elementwise& e) {
    const mge_dtype type = y_.dtype();
    uint64_t most = 0;
    for (int k = 1; k < n_.input_count(); ++k) most = std::max(most, n_.input(k).elements());
    const uint64_t first = n_.input(0).elements();
    const auto sum = Operand::Work(), x = Operand::Work(static_cast<int64_t>(4 * y_.elements())),
               next = Operand::Work(static_cast<int64_t>(4 * (y_.elements() + first)));
    recipe_.SetWorkspace(4 * (y_.elements() + first + most));
    if (Result r = Cast(In(0), type, first, MGE_DTYPE_F32, x); !r.ok()) return r;
    for (int k = 1; k < n_.input_count(); ++k) {
      const Value v = n_.input(k);
      if (Result r = Cast(In(k), type, v.elements(), MGE_DTYPE_F32, next); !r.ok()) return r;
      const Side before = k == 1 ? Side{x, n_.input(0)} : Side{sum, y_, true};
      if (Result r = Binary(NameOf(e.function), MGE_DTYPE_F32, before, {next, v}, sum); !r.ok()) return r;
    }
    if (e.form == Form::kMean) {
      const float count = static_cast<float>(n_.input_count());
      if (Result r = Unary("divide_by", count, 0, sum, sum, MGE_DTYPE_F32); !r.ok()) return r;
    }
    return Cast(sum, MGE_DTYPE_F32, y_.elements(), type, Operand::Out());
  }

  // Converts operands of different types to float64, computes, and converts back.
  Result Pow() {
    mge_dtype type = n_.input(0).dtype(), exponent = n_.input(1).dtype();
    if (type == exponent) return BinaryOfInputs("pow");
    if (IsInteger(type) && IsInteger(exponent)) return No("an integer power of another type");
    uint64_t x = n_.input(0).elements(), y = n_.input(1).elements();
    auto x_at = Operand::Work(), y_at = Operand::Work(static_cast<int64_t>(8 * x)),
         z_at = Operand::Work(static_cast<int64_t>(8 * (x + y)));
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
    Broadcast b = BroadcastTo(y_.dims(), {n_.input(0), x, y}, layout_);
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
    recipe_.Add("where_" + std::to_string(ElementBytes(y_.dtype())), Spread(n()), args,
                {In(0), In(1), In(2), Operand::Out()});
    return {};
  }

  Result Cast(Operand from, mge_dtype from_type, uint64_t elements, mge_dtype to_type, Operand to) {
    if (from_type == to_type) {
      recipe_.AddCopy(to, from, elements * ElementBytes(to_type));
      return {};
    }
    if (elements) {
      recipe_.Add(KernelFor("cast_to", to_type), Spread(static_cast<int64_t>(elements)),
                  CastArgs{nullptr, nullptr, static_cast<int64_t>(elements), static_cast<int32_t>(from_type), 0},
                  {from, to});
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

  // The scale and the zero point are one number, or one per index of an axis, or one per block of neighbours along it.
  Result Quantize(std::string_view base) {
    const Value x = n_.input(0), scale = n_.input(1);
    const std::string kernel = KernelFor(base, y_.dtype());
    if (!Exists(kernel)) return NoType(y_.dtype());
    QuantizeArgs args = {};
    args.n = n();
    args.dim = args.inner = 1;
    const Quantization q = ReadQuantization(n_);
    args.block = q.block;
    args.type = static_cast<int32_t>(x.dtype());
    args.scale_type = static_cast<int32_t>(scale.dtype());
    args.division = static_cast<int32_t>(q.division);
    if (!q.one) {
      if (q.block && layout_ != Layout::kPlain) return No("scales of blocks have the plain layout only");
      const Extent extent = ExtentOf(x, q.axis, layout_);
      args.dim = extent.n;
      args.inner = extent.inner;
    }
    if (!n()) return {};
    const uint64_t widest = std::max(ElementBytes(x.dtype()), ElementBytes(y_.dtype()));
    recipe_.Add(kernel, Spread(n() / static_cast<int64_t>(16 / widest)), args,
                {In(0), In(1), n_.has_input(2) ? In(2) : Operand::Null(), Operand::Out()});
    return {};
  }

  Result Copy() {
    if (n_.has_input(2)) {
      Value training = n_.input(2);
      if (!training.is_constant() || training.elements() != 1 || training.data<uint8_t>()[0])
        return No("Dropout in training");
    }
    recipe_.AddCopy(Operand::Out(), In(0), y_.bytes());
    return {};
  }

  const Problem& p_;
  Node n_;
  Value y_;
  Layout layout_;
  Recipe& recipe_;
};

// Builds the launches of a problem.
Result BuildRecipe(const Problem& p, Layout layout, Recipe* recipe) {
  return p.node_count() > 1 ? Chain().Build(p, layout, recipe) : Builder(p, layout, recipe).Build();
}

// A kernel of this file. Its functions do not depend on shapes, so it serves as the source of kernels for other shapes.
class ElementwiseKernel : public Kernel {
 public:
  // Returns nullptr if the problem is not supported.
  static KernelPtr Create(const Problem& p, Layout layout) {
    Recipe recipe;
    if (!BuildRecipe(p, layout, &recipe).ok()) return nullptr;
    KernelPtr launches = std::move(recipe).Make();
    return launches ? std::make_unique<ElementwiseKernel>(std::move(launches), layout) : nullptr;
  }
  ElementwiseKernel(KernelPtr launches, Layout layout) : launches_(std::move(launches)), layout_(layout) {}
  uint32_t args_bytes() const override { return launches_->args_bytes(); }
  uint64_t workspace_bytes() const override { return launches_->workspace_bytes(); }
  Result Bind(const Binding& binding, void* args, StepFn* step) override { return launches_->Bind(binding, args, step); }
  KernelPtr Rebind(const Problem& p) override { return Create(p, layout_); }

 private:
  KernelPtr launches_;
  Layout layout_;
};

// Describes the candidate of a layout. Refuses with a reason.
Result Describe(const Problem& p, Layout layout, Candidate* out) {
  Recipe recipe;
  const double elements = 20.0 * static_cast<double>(p.output(0).elements());
  if (p.node_count() > 1) {
    Chain chain;
    if (Result r = chain.Build(p, layout, &recipe); !r.ok()) return r;
    *out = {.id = "gpu.chain",
            .attributes = kExact,
            .cost_us = GpuUs(p, BytesOf(p), elements * p.node_count()),
            .in_place = chain.in_place()};
  } else {
    Builder builder(p, layout, &recipe);
    if (Result r = builder.Build(); !r.ok()) return r;
    *out = {.id = "gpu.elementwise",
            .attributes = kExact,
            .workspace = recipe.workspace(),
            .cost_us = GpuUs(p, BytesOf(p), elements, recipe.launches()),
            .in_place = builder.InPlace()};
  }
  out->variant = static_cast<uint64_t>(layout);
  SetLayout(p, layout, out);
  return {};
}

struct ElementwiseRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers, /*groups=*/true)) return;
    for (const Layout layout : LayoutsOf(p.last().output(0).rank())) {
      Candidate candidate;
      if (Result r = Describe(p, layout, &candidate); !r.ok()) return offers.Refuse(r.text());
      offers.Add(candidate);
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    return ElementwiseKernel::Create(p, static_cast<Layout>(c.variant));
  }
};

constexpr auto kRows = ElementwiseRows<ElementwiseRow>();

}  // namespace

MGE_KERNELS(elementwise) = kRows;

}  // namespace mge::gpu
