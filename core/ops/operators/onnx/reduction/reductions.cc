// SPDX-License-Identifier: Apache-2.0
// Reductions along axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/ops/families/reduce.h"
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_reductions {
namespace {

class Reduced {
 public:
  explicit Reduced(GradientContext& g) : g_(g) {}

  Term y() const { return Kept(g_.y()); }
  Term dy() const { return Kept(g_.dy()); }
  Term Spread(const Term& x) const { return g_.Of("Expand", {x.id(), g_.ShapeOf(g_.x())}); }
  // Returns the number of elements that one sum adds.
  Term Count() const { return g_.CastTo(Unary("Size", g_.x()), g_.dtype()) / g_.CastTo(Unary("Size", g_.dy()), g_.dtype()); }
  // Divides the gradient among the elements that are equal to the result, for maxima and minima.
  Term Share() const {
    const Term result = y(), equal = g_.CastTo(Binary("Equal", g_.x(), result), g_.dtype());
    return equal * (dy() / g_.SumTo(equal, result));
  }

  // Reduces another value of the shape of x, and keeps the dimensions.
  Term Again(const char* op, const Term& value) const {
    std::vector<ValueId> inputs = {value.id()};
    if (g_.has_input(1)) inputs.push_back(g_.x(1).id());
    return g_.Of(op, inputs, IntAttribute("noop_with_empty_axes", g_.attrs().Int("noop_with_empty_axes")));
  }
  // The gradient of a product: that of a zero is the product of the others.
  Term OfProduct() const {
    const Term x = g_.x(), one = g_.Number(1), none = g_.Number(0);
    const ValueId is_zero = Binary("Equal", x, none).id();
    const Term zeros = Again("ReduceSum", g_.Where(is_zero, one, none)), others = g_.Where(is_zero, one, x);
    const Term product = Again("ReduceProd", others);
    const Term of_zero = g_.Where(zeros < 1.5, product, none), of_other = g_.Where(zeros < 0.5, product / others, none);
    return dy() * g_.Where(is_zero, of_zero, of_other);
  }

 private:
  // The shape is that of a sum that keeps the dimensions. The planner removes the sum when its shape is known.
  Term Kept(const Term& x) const {
    if (g_.attrs().Int("keepdims") != 0) return x;
    std::vector<ValueId> inputs = {g_.x().id()};
    if (g_.has_input(1)) inputs.push_back(g_.x(1).id());
    const int64_t no_axes_is_none = g_.attrs().Int("noop_with_empty_axes");
    return g_.ReshapeLike(x, g_.Of("ReduceSum", inputs, IntAttribute("noop_with_empty_axes", no_axes_is_none)));
  }

  GradientContext& g_;
};

// Returns the evaluator of a reduction of the types of `dispatch`: step(sum, x) adds an element, finish(sum) gives the result.
template <typename Start, typename Step, typename Finish, typename Dispatch>
constexpr EvalFn Evaluator(Start, Step, Finish, Dispatch) {
  return [](EvalContext& ctx) {
    return EvalReduce(
        ctx, Dispatch{}, Start{}, [](auto sum, auto x, int64_t) { return Step{}(sum, x); }, Finish{});
  };
}
constexpr auto kZero = [](auto) { return 0; };
constexpr auto kSame = [](auto sum) { return sum; };
constexpr auto kSum = [](auto sum, auto x) { return AddWrapping(sum, x); };
constexpr auto kSquares = [](auto sum, auto x) { return AddWrapping(sum, MulWrapping(x, x)); };
template <typename Step, typename Finish>
constexpr EvalFn Sums(Step step, Finish finish) {
  return Evaluator(kZero, step, finish, kForNumeric);
}
// Returns the evaluator of an extremum. NaN is better than every number.
template <bool kMax, typename Better>
constexpr EvalFn Extremum(Better) {
  return Evaluator(
      [](auto t) {
        using T = decltype(t);
        using Limits = std::numeric_limits<std::conditional_t<kIsFloating<T>, double, T>>;
        if constexpr (kIsFloating<T>) return kMax ? -Limits::infinity() : Limits::infinity();
        return static_cast<Accumulator<T>>(kMax ? Limits::lowest() : Limits::max());
      },
      [](auto best, auto x) { return Better{}(best, x) || best != best ? best : x; }, kSame, kForFixedSize);
}

absl::Status EvalMean(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Reduction r, ResolveReduction(ctx));
  if (r.count == 0 && Elements(r.out) > 0 && !kFloating.Contains(ctx.input(0).dtype())) {
    return ctx.Invalid("the mean of zero integers is not defined");
  }
  return EvalReduce(
      ctx, kForNumeric, kZero, [](auto sum, auto x, int64_t) { return AddWrapping(sum, x); },
      [n = r.count](auto sum) { return n == 0 ? static_cast<decltype(sum)>(NAN) : sum / static_cast<decltype(sum)>(n); });
}

// Evaluates in two passes. Subtracting the largest element before the exponentials prevents overflow.
template <typename T>
absl::Status LogSumExp(EvalContext& ctx, const Reduction& r, const Tensor& x, Tensor& y) {
  MGE_ASSIGN_OR_RETURN(Tensor largest, Scratch<double>(ctx, y.elements()));
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<double>(ctx, y.elements()));
  std::span<double> top = largest.MutableData<double>(), sums = scratch.MutableData<double>();
  std::fill(top.begin(), top.end(), -std::numeric_limits<double>::infinity());
  std::fill(sums.begin(), sums.end(), 0.0);
  const T* in = x.Data<T>().data();
  ForBroadcast(x.shape(), r.kept, x.shape(), [&](int64_t i, int64_t, int64_t o) {
    double v = static_cast<double>(in[i]);
    if (v > top[o]) top[o] = v;
  });
  for (double& t : top) t = std::isinf(t) ? 0 : t;
  ForBroadcast(x.shape(), r.kept, x.shape(),
               [&](int64_t i, int64_t, int64_t o) { sums[o] += std::exp(static_cast<double>(in[i]) - top[o]); });
  T* out = y.MutableData<T>().data();
  for (size_t o = 0; o < sums.size(); ++o) out[o] = FromReal<T>(std::log(sums[o]) + top[o]);
  return absl::OkStatus();
}

absl::Status EvalLogSumExp(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Reduction r, ResolveReduction(ctx));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), r.out));
  absl::Status status;
  DispatchNumeric(x.dtype(), [&](auto tag) { status = LogSumExp<typename decltype(tag)::type>(ctx, r, x, *y); });
  return status;
}

// The gradient is `f(g, r)`.
template <typename F>
constexpr GradientFn ReductionGradient(F) {
  static_assert(std::is_empty_v<F>);
  return [](G& g) { return g.Set(0, F{}(g, Reduced(g))); };
}
constexpr auto kShare = [](G&, const Reduced& r) { return r.Share(); };

constexpr OpDef Row(std::string_view name, std::string_view doc, EvalFn eval, GradientFn gradient,
                    Few<std::string_view, 12> examples = {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])",
                                                          "(T[9,7]@rare, int64[1]<1>)"},
                    TypeSet types = kNumeric) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"data", types}, kReduceAxes},
          .outputs = {{"reduced"}},
          .attrs = kReduceAttrs,
          .infer = ReduceInfer,
          .eval = eval,
          .upgrade = UpgradeReduce,
          .gradient = gradient,
          .examples = examples};
}

constexpr OpDef kRows[] = {
    Row("ReduceL1", "Sum of absolute values along axes.",
        Sums([](auto sum, auto x) { return AddWrapping(sum, x < 0 ? MulWrapping(x, decltype(x)(-1)) : x); }, kSame),
        ReductionGradient([](G& g, const Reduced& r) { return r.dy() * Unary("Sign", g.x()); })),
    Row("ReduceL2", "Square root of the sum of squares along axes.",
        Sums(kSquares, [](auto sum) { return std::sqrt(static_cast<double>(sum)); }),
        ReductionGradient([](G& g, const Reduced& r) { return r.dy() * g.x() / r.y(); })),
    Row("ReduceLogSum", "Logarithm of the sum along axes.",
        Sums(kSum, [](auto sum) { return std::log(static_cast<double>(sum)); }),
        ReductionGradient([](G&, const Reduced& r) { return r.Spread(r.dy() / Unary("Exp", r.y())); }),
        {"(T[3,5,7]@0.5:2, int64[1]<1>)", "(T[2,3,4]@0.5:2)"}),
    Row("ReduceLogSumExp", "Logarithm of the sum of exponentials along axes.", EvalLogSumExp,
        ReductionGradient([](G& g, const Reduced& r) { return r.dy() * Unary("Exp", g.x() - r.y()); }),
        {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[3,37]@-100:100, int64[1]<1>)", "(T[9,7]@rare, int64[1]<1>)"}),
    Row("ReduceMax", "The largest element along axes. NaN if one of them is NaN.",
        Extremum<true>([](auto a, auto b) { return a > b; }), ReductionGradient(kShare),
        {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[2,3,5,7])", "(T[2,20011], int64[1]<-1>)", "(T[9,7]@rare, int64[1]<1>)",
         "(T[5,7]@special, int64[1]<1>)"},
        kFixedSize),
    Row("ReduceMean", "Mean along axes. Integers are rounded towards zero.", EvalMean,
        ReductionGradient([](G&, const Reduced& r) { return r.Spread(r.dy() / r.Count()); }),
        {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[3,37], int64[1]<-1>) {keepdims=0}", "(T[9,7]@rare, int64[1]<1>)"}),
    Row("ReduceMin", "The smallest element along axes. NaN if one of them is NaN.",
        Extremum<false>([](auto a, auto b) { return a < b; }), ReductionGradient(kShare),
        {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[3,37], int64[1]<-1>)", "(T[9,7]@rare, int64[1]<1>)",
         "(T[5,7]@special, int64[1]<1>)"},
        kFixedSize),
    Row("ReduceProd", "Product along axes. Integers wrap around.",
        Evaluator([](auto) { return 1; }, [](auto product, auto x) { return MulWrapping(product, x); }, kSame, kForNumeric),
        ReductionGradient([](G&, const Reduced& r) { return r.OfProduct(); }),
        {"(T[3,5,4]@0.5:1.5, int64[1]<1>)", "(T[2,3,4]@0.5:1.5)"}),
    Row("ReduceSum", "Sum along axes. Integers wrap around.", Sums(kSum, kSame),
        ReductionGradient([](G&, const Reduced& r) { return r.Spread(r.dy()); }),
        {"(T[3,5,7], int64[1]<1>)", "(T[3,37], int64[1]<-1>) {keepdims=0}", "(T[2,3,5,7])", "(T[5,1,3], int64[2]<0,2>)",
         "(T[2,20011], int64[1]<-1>)", "(T[5003,2], int64[1]<0>)", "(T[9,7]@rare, int64[1]<1>)",
         "(T[5,7]@special, int64[1]<1>)", "(T[3,0,2], int64[1]<1>)", "(T[5]) {keepdims=0}"}),
    Row("ReduceSumSquare", "Sum of squares along axes.", Sums(kSquares, kSame),
        ReductionGradient([](G& g, const Reduced& r) { return r.dy() * g.x() * 2; })),
};

}  // namespace

MGE_OPS(reductions) = kRows;

}  // namespace mge::op_reductions
