// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/resize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/families/quantization.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {
namespace {

using Coordinates = ResizeOptions::Coordinates;
using Mode = ResizeOptions::Mode;
using Rounding = ResizeOptions::Nearest;

// The inputs of one axis's outputs: `taps` indices and weights for each. If an output is outside of the region of
// tf_crop_and_resize, all its indices are -1.
struct AxisTable {
  int64_t taps = 0;  // 0: every output is equal to the input at its position
  Tensor indices;    // int64 [out * taps]
  Tensor weights;    // float64 [out * taps]

  const int64_t* index(int64_t output) const { return indices.Data<int64_t>().data() + output * taps; }
  const double* weight(int64_t output) const { return weights.Data<double>().data() + output * taps; }
};

bool IsIdentity(const ResizeOptions& o, const ResizeAxis& a) {
  return a.in == a.out && a.scale == 1.0 &&
         (o.coordinates != Coordinates::kTfCropAndResize || (a.roi_begin == 0 && a.roi_end == 1));
}

// Returns the position in the input, in elements, of output `x`, computed in F.
template <typename F>
F SourceIn(Coordinates mode, const ResizeAxis& a, int64_t x) {
  const F at = static_cast<F>(x), in = static_cast<F>(a.in), out = static_cast<F>(a.out), half = F(0.5);
  const F scale = static_cast<F>(a.scale), begin = static_cast<F>(a.roi_begin), end = static_cast<F>(a.roi_end);
  switch (mode) {
    case Coordinates::kHalfPixel: return (at + half) / scale - half;
    case Coordinates::kPytorchHalfPixel: return a.out > 1 ? (at + half) / scale - half : 0;
    case Coordinates::kAlignCorners: return a.out <= 1 ? 0 : at * (in - 1) / (out - 1);
    case Coordinates::kAsymmetric: return at / scale;
    case Coordinates::kTfCropAndResize: {
      if (a.out <= 1) return half * (begin + end) * (in - 1);
      return begin * (in - 1) + at * (end - begin) * (in - 1) / (out - 1);
    }
    case Coordinates::kHalfPixelSymmetric: {
      const F offset = in / 2 * (1 - out / (scale * in));  // the length before it is rounded down
      return offset + (at + half) / scale - half;
    }
    case Coordinates::kTfHalfPixelForNearest: return (at + half) / scale;
  }
  return 0;
}
// The nearest element depends on the last bit of a position, so that is computed in float32, as PyTorch and ONNX Runtime do:
// with scale 0.7, output 7 is input 10.
double Source(const ResizeOptions& o, const ResizeAxis& a, int64_t x) {
  if (o.mode != Mode::kNearest) return SourceIn<double>(o.coordinates, a, x);
  return static_cast<double>(SourceIn<float>(o.coordinates, a, x));
}

double Cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

int64_t NearestOffset(Rounding mode, double scale, double fraction) {
  switch (mode) {
    case Rounding::kFloorOrCeil: return scale < 1 && fraction > 0;
    case Rounding::kRoundPreferFloor: return fraction > 0.5;
    case Rounding::kRoundPreferCeil: return fraction >= 0.5;
    case Rounding::kFloor: return 0;
    case Rounding::kCeil: return fraction > 0;
  }
  return 0;
}

// Computes the taps of an interpolating filter around position `at`. The caller owns `index` and `weight`, each of
// `taps` elements.
void FilterTaps(const ResizeOptions& o, const ResizeAxis& a, double at, double shrink, int64_t first, int64_t taps,
                int64_t* index, double* weight) {
  const int64_t base = static_cast<int64_t>(std::floor(at));
  const double fraction = at - static_cast<double>(base);
  // At a whole position, an antialiasing filter reads one more input on the left than on the right.
  const bool left = o.antialias && fraction == 0;
  double sum = 0;
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t place = base + first + t - (left ? 1 : 0);
    const double distance = shrink * (static_cast<double>(first + t) - (left ? 1.0 : fraction));
    weight[t] = o.mode == Mode::kCubic ? Cubic(distance, o.cubic_a) : std::max(0.0, 1 - std::abs(distance));
    if (o.exclude_outside && (place < 0 || place >= a.in)) weight[t] = 0;
    sum += weight[t];
    index[t] = std::clamp<int64_t>(place, 0, a.in - 1);
  }
  for (int64_t t = 0; t < taps && (o.antialias || o.exclude_outside) && sum != 0; ++t) weight[t] /= sum;
}

absl::StatusOr<AxisTable> MakeTable(HostAllocator& allocator, const ResizeOptions& o, const ResizeAxis& a) {
  AxisTable table;
  if (IsIdentity(o, a)) return table;
  const double shrink = o.antialias ? std::min(a.scale, 1.0) : 1.0;
  const double reach = o.mode == Mode::kCubic ? 2 : 1;
  const int64_t first = static_cast<int64_t>(std::floor(-reach / shrink)) + 1;
  table.taps = o.mode == Mode::kNearest ? 1 : 2 - 2 * first;
  MGE_ASSIGN_OR_RETURN(table.indices, Tensor::Create(DType::kI64, {a.out * table.taps}, allocator));
  MGE_ASSIGN_OR_RETURN(table.weights, Tensor::Create(DType::kF64, {a.out * table.taps}, allocator));
  int64_t* index = table.indices.MutableData<int64_t>().data();
  double* weight = table.weights.MutableData<double>().data();
  const double limit = static_cast<double>(a.in) + 1;
  for (int64_t x = 0; x < a.out; ++x, index += table.taps, weight += table.taps) {
    const double exact = Source(o, a, x);
    const double at = std::clamp(exact, -limit, 2 * limit);
    if (o.coordinates == Coordinates::kTfCropAndResize && !(exact >= 0 && exact <= static_cast<double>(a.in - 1))) {
      std::fill_n(index, table.taps, -1);
      std::fill_n(weight, table.taps, 0);
    } else if (o.mode == Mode::kNearest) {
      const double base = std::floor(at);
      *index = std::clamp<int64_t>(static_cast<int64_t>(base) + NearestOffset(o.nearest, a.scale, at - base), 0, a.in - 1);
      *weight = 1;
    } else {
      FilterTaps(o, a, at, shrink, first, table.taps, index, weight);
    }
  }
  return table;
}

// Returns the axes in the order in which they are resampled: those that shrink most come first. Each intermediate result is
// then no larger than the input or the output.
std::vector<size_t> ResamplingOrder(std::span<const ResizeAxis> axes) {
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto growth = [&](size_t d) {
    return static_cast<double>(axes[d].out) / static_cast<double>(std::max<int64_t>(axes[d].in, 1));
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return growth(a) < growth(b); });
  return order;
}

// The number of elements before and after one axis.
struct Pass {
  int64_t outer = 1, inner = 1;
};
Pass PassOf(std::span<const int64_t> dims, size_t d) {
  return {Elements(Shape(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(d))),
          Elements(Shape(dims.begin() + static_cast<std::ptrdiff_t>(d) + 1, dims.end()))};
}

// Copies one element of type T to each output; `fill` is the value outside of the region.
template <typename T>
void Pick(std::span<const ResizeAxis> axes, std::span<const AxisTable> tables, const T* x, T* y, const T& fill) {
  Shape in, out;
  for (const ResizeAxis& a : axes) {
    in.push_back(a.in);
    out.push_back(a.out);
  }
  const Shape strides = Strides(in);
  Shape index(axes.size(), 0);
  const int64_t count = Elements(out);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    bool inside = true;
    for (size_t d = 0; d < axes.size(); ++d) {
      const int64_t at = tables[d].taps == 0 ? index[d] : *tables[d].index(index[d]);
      inside = inside && at >= 0;
      offset += at * strides[d];
    }
    y[i] = inside ? x[offset] : fill;
    NextIndex(out, std::span<int64_t>(index.data(), index.size()));
  }
}

absl::Status EvalNearest(EvalContext& ctx, const ResizeOptions& o, std::span<const ResizeAxis> axes, Tensor& y) {
  const Tensor& x = ctx.input(0);
  std::vector<AxisTable> tables(axes.size());
  for (size_t d = 0; d < axes.size(); ++d) {
    MGE_ASSIGN_OR_RETURN(tables[d], MakeTable(ctx.allocator(), o, axes[d]));
  }
  if (o.coordinates == Coordinates::kTfCropAndResize) {
    bool known = DispatchFixedSize(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T fill;
      if constexpr (kIsFloating<T>) {
        fill = static_cast<T>(static_cast<Compute<T>>(o.extrapolation));
      } else if constexpr (std::is_same_v<T, bool>) {
        fill = o.extrapolation != 0;
      } else {
        fill = Saturate<T>(std::nearbyint(o.extrapolation));
      }
      Pick<T>(axes, tables, x.Data<T>().data(), y.MutableData<T>().data(), fill);
    });
    return known ? absl::OkStatus() : ctx.Unsupported(fmt::format("cropping {}", DTypeName(x.dtype())));
  }
  if (x.dtype() == DType::kString) {
    Pick<std::string>(axes, tables, x.Data<std::string>().data(), y.MutableData<std::string>().data(), {});
  } else {
    DispatchBytes(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      Pick<T>(axes, tables, x.Data<T>().data(), y.MutableData<T>().data(), T{});
    });
  }
  return absl::OkStatus();
}

// Interpolates one axis after the other, in double. An output outside of the region gets the extrapolation value. The
// weights of later axes sum to 1 and keep it.
absl::StatusOr<Tensor> Interpolate(EvalContext& ctx, const ResizeOptions& o, std::span<const ResizeAxis> axes, Tensor data) {
  Shape dims;
  for (const ResizeAxis& a : axes) dims.push_back(a.in);
  for (size_t d : ResamplingOrder(axes)) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    MGE_ASSIGN_OR_RETURN(const AxisTable table, MakeTable(ctx.allocator(), o, axes[d]));
    if (table.taps == 0) continue;
    const Pass pass = PassOf(dims, d);
    dims[d] = axes[d].out;
    MGE_ASSIGN_OR_RETURN(Tensor next, Scratch<double>(ctx, Elements(dims)));
    const double* in = data.Data<double>().data();
    double* out = next.MutableData<double>().data();
    for (int64_t i = 0; i < pass.outer; ++i) {
      for (int64_t x = 0; x < axes[d].out; ++x, out += pass.inner) {
        const int64_t* index = table.index(x);
        const double* weight = table.weight(x);
        std::fill_n(out, pass.inner, index[0] < 0 ? o.extrapolation : 0.0);
        for (int64_t t = 0; t < table.taps && index[0] >= 0; ++t) {
          if (weight[t] == 0) continue;
          const double* row = in + (i * axes[d].in + index[t]) * pass.inner;
          for (int64_t j = 0; j < pass.inner; ++j) out[j] += weight[t] * row[j];
        }
      }
    }
    data = std::move(next);
  }
  return data;
}

absl::Status EvalInterpolated(EvalContext& ctx, const ResizeOptions& o, std::span<const ResizeAxis> axes, Tensor& y) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor data, Scratch<double>(ctx, x.elements()));
  bool known = DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<const T> in = x.Data<T>();
    std::span<double> wide = data.MutableData<double>();
    for (size_t i = 0; i < in.size(); ++i) wide[i] = static_cast<double>(in[i]);
  });
  if (!known) return ctx.Unsupported(fmt::format("interpolating {}", DTypeName(x.dtype())));
  MGE_ASSIGN_OR_RETURN(data, Interpolate(ctx, o, axes, std::move(data)));
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::span<const double> wide = data.Data<double>();
    std::span<T> out = y.MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (kIsFloating<T>) {
        out[i] = static_cast<T>(static_cast<Compute<T>>(wide[i]));
      } else {
        out[i] = Saturate<T>(std::nearbyint(wide[i]));
      }
    }
  });
  return absl::OkStatus();
}

// Returns how often each input is repeated if that is the same for all, in order; else 0.
int64_t Repeats(const AxisTable& table, const ResizeAxis& a) {
  if (a.in == 0 || a.out % a.in != 0) return 0;
  const int64_t times = a.out / a.in;
  for (int64_t x = 0; x < a.out; ++x) {
    if (*table.index(x) != x / times) return 0;
  }
  return times;
}

// Returns the numbers as a tensor of a floating type.
Tensor FloatingTensor(DType type, const Shape& shape, std::span<const double> numbers) {
  Tensor out;
  DispatchFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<T> values;
    for (double v : numbers) values.push_back(static_cast<T>(static_cast<Compute<T>>(v)));
    out = Tensor::Of<T>(shape, values);
  });
  return out;
}

// A matrix of more elements than this is replaced by a sum over the taps, since most of its elements are 0.
constexpr int64_t kMaxMatrix = int64_t{1} << 22;

// Returns the weights as a matrix [in, out], or [out, in] if it is `transposed`.
Tensor MatrixOf(const AxisTable& table, const ResizeAxis& a, DType type, bool transposed) {
  std::vector<double> matrix(static_cast<size_t>(a.in * a.out), 0);
  for (int64_t x = 0; x < a.out; ++x) {
    for (int64_t t = 0; t < table.taps; ++t) {
      const int64_t i = table.index(x)[t];
      matrix[static_cast<size_t>(transposed ? x * a.in + i : i * a.out + x)] += table.weight(x)[t];
    }
  }
  return FloatingTensor(type, transposed ? Shape{a.out, a.in} : Shape{a.in, a.out}, matrix);
}

// Adds the sum over the taps of axis d: the inputs at their positions times their weights.
ValueId AddTaps(FunctionBody& f, const AxisTable& table, ValueId x, size_t d, size_t rank, int64_t out) {
  const DType type = f.dtype(0);
  ValueId sum = kNone;
  for (int64_t t = 0; t < table.taps; ++t) {
    std::vector<int64_t> at;
    std::vector<double> weights;
    for (int64_t i = 0; i < out; ++i) {
      at.push_back(table.index(i)[t]);
      weights.push_back(table.weight(i)[t]);
    }
    Shape shape(rank, 1);
    shape[d] = out;
    const ValueId picked = f.Add("Gather", {x, f.Integers(at)}, IntAttribute("axis", static_cast<int64_t>(d)));
    const ValueId part = f.Add("Mul", {picked, f.Constant(FloatingTensor(type, shape, weights))});
    sum = sum == kNone ? part : f.Add("Add", {sum, part});
  }
  return sum;
}

}  // namespace

absl::StatusOr<ResizeOptions> ReadResizeOptions(const Attributes& attrs) {
  ResizeOptions o;
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"nearest", "linear", "cubic"}));
  MGE_ASSIGN_OR_RETURN(int coordinates, ReadChoice(attrs, "coordinate_transformation_mode",
                                                   {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                                    "tf_crop_and_resize", "half_pixel_symmetric", "tf_half_pixel_for_nn"}));
  o.nearest = Rounding::kFloorOrCeil;
  if (attrs.Text("nearest_mode") != kFloorOrCeil) {
    MGE_ASSIGN_OR_RETURN(int nearest,
                         ReadChoice(attrs, "nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
    o.nearest = static_cast<Rounding>(nearest);
  }
  o.mode = static_cast<Mode>(mode);
  o.coordinates = static_cast<Coordinates>(coordinates);
  o.antialias = attrs.Int("antialias") != 0;
  o.exclude_outside = attrs.Int("exclude_outside") != 0;
  o.cubic_a = attrs.Float("cubic_coeff_a");
  o.extrapolation = attrs.Float("extrapolation_value");
  if (o.antialias && o.mode == Mode::kNearest) {
    return Fail(errors::kInvalidNode, "attribute antialias = 1 needs mode linear or cubic");
  }
  return o;
}

absl::StatusOr<int64_t> ScaledSize(int64_t size, float scale) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    return Fail(errors::kInvalidNode, fmt::format("scale {} is not a positive number", scale));
  }
  if (size == kUnknownDim) return kUnknownDim;
  const double product = std::floor(size < (1 << 24) ? static_cast<float>(size) * scale
                                                     : static_cast<double>(size) * static_cast<double>(scale));
  if (!(product < 0x1p62)) {
    return Fail(errors::kInvalidNode, fmt::format("size {} times scale {} is too large", size, scale));
  }
  return scale == 1.0f ? size : static_cast<int64_t>(product);
}

absl::Status CheckResizeAxes(std::span<const ResizeAxis> axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].in == 0 && axes[i].out > 0) {
      return Fail(errors::kInvalidNode, fmt::format("axis {} has size 0 and cannot be resized to {}", i, axes[i].out));
    }
  }
  return absl::OkStatus();
}

absl::Status EvalResize(EvalContext& ctx, const ResizeOptions& options, std::span<const ResizeAxis> axes) {
  Shape shape;
  for (const ResizeAxis& a : axes) shape.push_back(a.out);
  MGE_RETURN_IF_ERROR(CheckResizeAxes(axes));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, ctx.input(0).dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  return options.mode == Mode::kNearest ? EvalNearest(ctx, options, axes, *y) : EvalInterpolated(ctx, options, axes, *y);
}

absl::Status AddResize(FunctionBody& f, const ResizeOptions& o, std::span<const ResizeAxis> axes) {
  if (o.coordinates == Coordinates::kTfCropAndResize) return f.Unsupported("the gradient of tf_crop_and_resize");
  MGE_RETURN_IF_ERROR(CheckResizeAxes(axes));
  ValueId x = f.input(0);
  Shape dims = f.dims(0);
  for (size_t d : ResamplingOrder(axes)) {
    const ResizeAxis& a = axes[d];
    MGE_ASSIGN_OR_RETURN(const AxisTable table, MakeTable(UnlimitedHostAllocator(), o, a));
    if (table.taps == 0) continue;
    const Pass pass = PassOf(dims, d);
    dims[d] = a.out;
    if (o.mode != Mode::kNearest && a.in > kMaxMatrix / std::max<int64_t>(a.out, 1)) {
      x = AddTaps(f, table, x, d, dims.size(), a.out);
    } else if (o.mode != Mode::kNearest) {
      const bool last = pass.inner == 1;
      const ValueId matrix = f.Constant(MatrixOf(table, a, f.dtype(0), !last));
      x = f.Reshape(x, last ? Shape{pass.outer, a.in} : Shape{pass.outer, a.in, pass.inner});
      x = f.Reshape(last ? f.Add("MatMul", {x, matrix}) : f.Add("MatMul", {matrix, x}), dims);
    } else if (const int64_t times = Repeats(table, a); times > 0) {
      x = f.Reshape(x, {pass.outer, a.in, 1, pass.inner});
      x = f.Reshape(f.Add("Expand", {x, f.Integers({pass.outer, a.in, times, pass.inner})}), dims);
    } else {
      x = f.Add("Gather", {x, f.Constant(table.indices)}, IntAttribute("axis", static_cast<int64_t>(d)));
    }
  }
  f.Result(0, "Identity", {x});
  return absl::OkStatus();
}

}  // namespace mge
