// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/ops/families/quantization.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_grid_sample {
namespace {

constexpr size_t kMaxAxes = 8;  // cubic mode reads 4^axes elements per point
constexpr double kCubicA = -0.75;

enum class Mode { kLinear, kNearest, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct Options {
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

// Before operator set 20 the modes were named after two axes.
absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 20) return absl::OkStatus();
  if (node.attrs.Text("mode") == "bilinear") node.attrs.Set("mode", std::string("linear"));
  if (node.attrs.Text("mode") == "bicubic") node.attrs.Set("mode", std::string("cubic"));
  return absl::OkStatus();
}

absl::StatusOr<Options> ReadOptions(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"linear", "nearest", "cubic"}));
  MGE_ASSIGN_OR_RETURN(int padding, ReadChoice(attrs, "padding_mode", {"zeros", "border", "reflection"}));
  return Options{static_cast<Mode>(mode), static_cast<Padding>(padding), attrs.Int("align_corners") != 0};
}

absl::StatusOr<Shape> OutputShape(std::span<const int64_t> x, std::span<const int64_t> grid) {
  if (x.size() < 3 || grid.size() != x.size()) {
    return Fail(errors::kInvalidNode, fmt::format("input shape {} and grid shape {} must have the same rank, at least 3",
                                                  ShapeText(x), ShapeText(grid)));
  }
  if (x.size() - 2 > kMaxAxes) {
    return Fail(errors::kUnsupportedFeature, fmt::format("{} spatial axes are more than {}", x.size() - 2, kMaxAxes));
  }
  MGE_RETURN_IF_ERROR(RequireSize("the batch of the grid", grid[0], x[0]));
  MGE_RETURN_IF_ERROR(RequireSize("the last dimension of the grid", grid.back(), static_cast<int64_t>(x.size()) - 2));
  Shape shape = {x[0] == kUnknownDim ? grid[0] : x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadOptions(ctx.attrs()).status());
  const TensorType& x = ctx.input(0);
  const TensorType& grid = ctx.input(1);
  if (!x.has_rank || !grid.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(x.dims, grid.dims));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(shape)));
  return absl::OkStatus();
}

double Reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double distance = x < low ? low - x : x - high;
  if (distance <= 0) return x;
  const double turns = std::floor(distance / range);
  const double rest = distance - turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

// An input element and its weight.
struct Tap {
  int64_t index = -1;  // -1: the element is 0
  double weight = 0;
};

// Computes the taps of a point along one axis and returns their number. `G` is the type of the grid's coordinates;
// rounding to the nearest element depends on it.
template <typename G>
int AxisTaps(const Options& o, G normalized, int64_t size, Tap* taps) {
  const G length = static_cast<G>(size);
  G place = o.align_corners ? (normalized + 1) / 2 * (length - 1) : ((normalized + 1) * length - 1) / 2;
  if (o.mode == Mode::kNearest) place = std::nearbyint(place);
  const double low = o.align_corners ? 0 : -0.5;
  const double high = o.align_corners ? static_cast<double>(size) - 1 : static_cast<double>(size) - 0.5;
  const double far = static_cast<double>(size) + 4;
  double at = std::isnan(place) ? -1.0 : static_cast<double>(place);
  if (o.padding == Padding::kReflection) at = std::isinf(at) ? low : Reflect(at, low, high);
  // Limits the coordinate. Beyond that distance, all points read zeros or the border.
  at = std::clamp(at, -far, far);
  auto resolve = [&](int64_t index) -> int64_t {
    if (index >= 0 && index < size) return index;
    if (o.padding == Padding::kZeros) return -1;
    if (o.padding == Padding::kReflection) {
      index = static_cast<int64_t>(Reflect(static_cast<double>(index), low, high));
    }
    return std::clamp<int64_t>(index, 0, size - 1);
  };
  const int64_t base = static_cast<int64_t>(std::floor(at));
  const double t = at - static_cast<double>(base);
  if (o.mode == Mode::kNearest) {
    taps[0] = {resolve(static_cast<int64_t>(at)), 1};
    return 1;
  }
  if (o.mode == Mode::kLinear) {
    taps[0] = {resolve(base), 1 - t};
    taps[1] = {resolve(base + 1), t};
    return 2;
  }
  auto near = [](double d) { return ((kCubicA + 2) * d - (kCubicA + 3)) * d * d + 1; };
  auto wide = [](double d) { return ((kCubicA * d - 5 * kCubicA) * d + 8 * kCubicA) * d - 4 * kCubicA; };
  taps[0] = {resolve(base - 1), wide(t + 1)};
  taps[1] = {resolve(base), near(t)};
  taps[2] = {resolve(base + 1), near(1 - t)};
  taps[3] = {resolve(base + 2), wide(2 - t)};
  return 4;
}

// Computes all elements of a plane that one point reads.
template <typename T>
void PointTaps(const Options& o, std::span<const T> point, std::span<const int64_t> sizes, std::vector<Tap>& all) {
  all.assign(1, {0, 1});
  std::vector<Tap> next;
  for (size_t d = 0; d < sizes.size(); ++d) {
    Tap taps[4];
    // The grid's coordinates start with the innermost axis.
    const int count = AxisTaps<Compute<T>>(o, point[sizes.size() - 1 - d], sizes[d], taps);
    next.clear();
    for (const Tap& outer : all) {
      for (int i = 0; i < count; ++i) {
        const bool zero = outer.index < 0 || taps[i].index < 0;
        next.push_back({zero ? -1 : outer.index * sizes[d] + taps[i].index, outer.weight * taps[i].weight});
      }
    }
    all.swap(next);
  }
}

template <typename T>
T Weigh(const T* plane, std::span<const Tap> taps) {
  double sum = 0;
  for (const Tap& tap : taps) {
    if (tap.index >= 0 && tap.weight != 0) sum += tap.weight * static_cast<double>(plane[tap.index]);
  }
  if constexpr (kIsFloating<T>) {
    return static_cast<T>(static_cast<Compute<T>>(sum));
  } else {
    return Saturate<T>(std::nearbyint(sum));
  }
}

// Calls value(offset of the plane, taps, offset of the output) for every output.
template <typename F>
absl::Status ForEachPoint(EvalContext& ctx, const Options& o, const Tensor& y, F value) {
  const Tensor& x = ctx.input(0);
  const Tensor& grid = ctx.input(1);
  std::span<const int64_t> sizes = std::span<const int64_t>(x.shape()).subspan(2);
  const int64_t batch = y.shape()[0], channels = y.shape()[1], plane = Elements(sizes);
  const int64_t points = y.elements() / (batch * channels), axes = static_cast<int64_t>(sizes.size());
  std::vector<Tap> taps;
  absl::Status status;
  DispatchFloating(grid.dtype(), [&](auto tag) {
    using G = typename decltype(tag)::type;
    std::span<const G> place = grid.Data<G>();
    for (int64_t n = 0; n < batch && status.ok(); ++n) {
      status = ctx.CheckStop();
      for (int64_t p = 0; p < points; ++p) {
        PointTaps<G>(o, place.subspan((n * points + p) * axes, axes), sizes, taps);
        for (int64_t c = n * channels; c < (n + 1) * channels; ++c) value(c * plane, taps, c * points + p);
      }
    }
  });
  return status;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Options o, ReadOptions(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(x.shape(), ctx.input(1).shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  if (x.elements() == 0) return ctx.Invalid("nothing can be sampled from an input of shape " + ShapeText(x.shape()));
  absl::Status status;
  auto pick = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    T* out = y->MutableData<T>().data();
    status = ForEachPoint(ctx, o, *y, [&](int64_t plane, std::span<const Tap> taps, int64_t to) {
      out[to] = taps[0].index < 0 ? T{} : in[plane + taps[0].index];
    });
  };
  if (o.mode == Mode::kNearest) {
    if (x.dtype() == DType::kString) {
      pick(TypeTag<std::string>{});
    } else {
      DispatchBytes(x.dtype(), pick);
    }
    return status;
  }
  bool known = DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    T* out = y->MutableData<T>().data();
    status = ForEachPoint(
        ctx, o, *y, [&](int64_t plane, std::span<const Tap> taps, int64_t to) { out[to] = Weigh<T>(in + plane, taps); });
  });
  return known ? status : ctx.Unsupported(fmt::format("interpolating {}", DTypeName(x.dtype())));
}

// Floating indices and weights of all points, [N,1,points].
using TapTerms = std::vector<std::pair<Term, Term>>;

// Reflects coordinates at both ends of [low, high] until they are inside.
Term Reflected(const Term& x, double low, double high) {
  ExpressionBuilder& b = x.builder();
  const double range = high - low;
  if (range <= 0) return b.Fill(low, x);
  const Term distance = x - low, rest = distance - Unary("Floor", distance / (2 * range)) * (2 * range);
  return low + b.Where(rest > range, 2 * range - rest, rest);
}

// Returns the taps along one axis, like AxisTaps().
TapTerms TermsOf(const Options& o, const Term& normalized, int64_t size) {
  ExpressionBuilder& b = normalized.builder();
  const auto length = static_cast<double>(size);
  const double low = o.align_corners ? 0 : -0.5, high = o.align_corners ? length - 1 : length - 0.5;
  Term at = o.align_corners ? (normalized + 1) * ((length - 1) / 2) : ((normalized + 1) * length - 1) / 2;
  if (o.mode == Mode::kNearest) at = Unary("Round", at);
  const bool reflects = o.padding == Padding::kReflection;
  if (reflects) at = Reflected(at, low, high);
  // Beyond that distance all points read zeros or the border.
  at = Binary("Min", Binary("Max", at, b.Number(-4)), b.Number(length + 4));
  const Term base = Unary("Floor", at), t = at - base;
  TapTerms taps;
  const auto add = [&](const Term& index, const Term& weight) {
    const Term mirrored = reflects ? Reflected(index, low, high) : index;
    const Term inside = Binary("Min", Binary("Max", mirrored, b.Number(0)), b.Number(length - 1));
    const bool zeros = o.padding == Padding::kZeros;
    const ValueId same = Binary("Equal", index, inside).id();
    taps.emplace_back(inside, zeros ? b.Where(same, weight, b.Number(0)) : weight);
  };
  const auto near = [](const Term& d) { return (d * (kCubicA + 2) - (kCubicA + 3)) * d * d + 1; };
  const auto wide = [](const Term& d) { return ((d * kCubicA - 5 * kCubicA) * d + 8 * kCubicA) * d - 4 * kCubicA; };
  if (o.mode == Mode::kNearest) {
    add(base, b.Fill(1, base));
  } else if (o.mode == Mode::kLinear) {
    add(base, 1 - t);
    add(base + 1, t);
  } else {
    add(base - 1, wide(t + 1));
    add(base, near(t));
    add(base + 1, near(1 - t));
    add(base + 2, wide(2 - t));
  }
  return taps;
}

// Adds the products of elements and weights of all taps.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  MGE_ASSIGN_OR_RETURN(const Options o, ReadOptions(f.attrs()));
  MGE_ASSIGN_OR_RETURN(const Shape out, OutputShape(f.dims(0), f.dims(1)));
  if (f.dtype(0) != f.dtype(1)) {  // computes with the wider type of both
    const DType type = ElementBytes(f.dtype(0)) > ElementBytes(f.dtype(1)) ? f.dtype(0) : f.dtype(1);
    const bool mixed = ElementBytes(f.dtype(0)) == ElementBytes(f.dtype(1));  // float16 and bfloat16
    const DType wide = mixed ? DType::kF32 : type;
    const ValueId y =
        f.Add("GridSample", {f.Cast(f.input(0), f.dtype(0), wide), f.Cast(f.input(1), f.dtype(1), wide)}, f.attrs());
    f.Result(0, "Cast", {y}, CastTo(f.dtype(0)));
    return true;
  }
  const Shape x = f.dims(0), sizes(x.begin() + 2, x.end());
  const int64_t points = Elements(std::span(out).subspan(2)), axes = static_cast<int64_t>(sizes.size());
  const Term image(f, f.Reshape(f.input(0), {x[0], x[1], Elements(sizes)}));
  const ValueId grid = f.Reshape(f.input(1), {x[0], 1, points, axes});
  const std::vector<ValueId> places = f.Split(grid, std::vector<int64_t>(static_cast<size_t>(axes), 1));
  TapTerms taps;  // with flat integer indices
  for (int64_t d = 0; d < axes; ++d) {
    const int64_t size = sizes[static_cast<size_t>(d)];
    const Term place(f, f.Reshape(places[static_cast<size_t>(axes - 1 - d)], {x[0], 1, points}));
    TapTerms all;
    for (const auto& [index, weight] : TermsOf(o, place, size)) {
      const Term whole = f.CastTo(index, DType::kI64);
      if (d == 0) all.emplace_back(whole, weight);
      for (const auto& [outer, outer_weight] : taps) {
        all.emplace_back(outer * Term(f, f.Constant(Tensor::Scalar<int64_t>(size))) + whole, outer_weight * weight);
      }
    }
    taps = std::move(all);
  }
  std::vector<ValueId> products;
  for (const auto& [index, weight] : taps) {
    const ValueId everywhere = f.Add("Expand", {index.id(), f.Integers({x[0], x[1], points})});
    products.push_back((f.Of("GatherElements", {image.id(), everywhere}, IntAttribute("axis", 2)) * weight).id());
  }
  f.ReshapeTo(f.output(0), f.Add("Sum", products), out);
  return true;
}

}  // namespace

MGE_OP(grid_sample) = {
    .name = "GridSample",
    .doc = "Samples X at the positions given by a grid of coordinates in [-1, 1].",
    .inputs = {{"X", kAnyType}, {"grid", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"align_corners", 0, "not 0: -1 and 1 are the centers of the corners, else their edges"},
              {"mode", "linear", "linear, nearest or cubic"},
              {"padding_mode", "zeros", "zeros, border or reflection"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = ReplacementGradient,
    .gradient_body = GradientBody,
    .since = 16,
    .examples = {"(T[1,2,4,5], T[1,3,3,2])", "(T[2,3,4,5], T[2,3,4,2]@-1.4:1.4) {align_corners=1, padding_mode=\"border\"}",
                 "(T[2,1,3,4,5], T[2,2,3,2,3]@-1.4:1.4)", "(T[1,2,4,5], T[1,3,3,2]@-1.4:1.4) {mode=\"nearest\"}",
                 "(T[1,2,4,5], T[1,3,3,2]@-2.4:2.4) {mode=\"cubic\", padding_mode=\"reflection\"}",
                 "(T[1,2,4,5], T[1,3,3,2]@-2.4:2.4) {padding_mode=\"reflection\", align_corners=1}"},
};

}  // namespace mge::op_grid_sample
