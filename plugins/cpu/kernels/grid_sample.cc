// SPDX-License-Identifier: Apache-2.0
// GridSample with one to three spatial dimensions, float32, channels last.
#include <algorithm>
#include <cmath>

#include "support/kernel.h"
#include "support/work.h"
#include "vec/blend.h"

namespace mge::cpu {
namespace {

enum class Padding : uint8_t { kZeros, kBorder, kReflection };
enum class Mode : uint8_t { kNearest, kLinear, kCubic };

constexpr int kMaxSpatial = 3;

struct Args {
  const BlendTable* table;
  Slot x, grid, y;
  int64_t channels, points;  // points per image
  int spatial;               // number of spatial dimensions
  int64_t size[kMaxSpatial];
  Mode mode;
  bool align_corners;
  Padding padding;

  int64_t image() const {  // elements
    int64_t elements = channels;
    for (int d = 0; d < spatial; ++d) elements *= size[d];
    return elements;
  }
  int taps() const { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }  // along an axis
  Chunks chunks;  // chunks of the points of all images
};

double Reflect(double x, double low, double high) {
  double range = high - low;
  if (range <= 0) return low;
  double distance = x < low ? low - x : x - high;
  if (distance <= 0) return x;
  double turns = std::floor(distance / range), rest = distance - turns * range;
  bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

// The positions that a point reads along one axis, and their weights. Position -1 means zero.
struct Taps {
  int64_t place[4];
  double weight[4];
};

// The weights of the four neighbours of a position whose fraction is `t`.
void CubicWeights(double t, double* weight) {
  constexpr double kA = -0.75;
  auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  auto wide = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  weight[0] = wide(t + 1);
  weight[1] = near(t);
  weight[2] = near(1 - t);
  weight[3] = wide(2 - t);
}

Taps TapsOf(const Args& a, float normalized, int64_t size) {
  const auto length = static_cast<float>(size);
  // Uses float, like the definition, because rounding to the nearest position depends on it.
  float at_float = a.align_corners ? (normalized + 1) / 2 * (length - 1) : ((normalized + 1) * length - 1) / 2;
  if (a.mode == Mode::kNearest) at_float = std::nearbyint(at_float);
  const double low = a.align_corners ? 0 : -0.5, high = static_cast<double>(size) - (a.align_corners ? 1 : 0.5);
  const double far = static_cast<double>(size) + 4;  // positions further away give the same result
  double at = std::isnan(at_float) ? -1.0 : static_cast<double>(at_float);
  if (a.padding == Padding::kReflection) at = std::isinf(at) ? low : Reflect(at, low, high);
  at = std::clamp(at, -far, far);
  auto resolve = [&](int64_t i) -> int64_t {
    if (i >= 0 && i < size) return i;
    if (a.padding == Padding::kZeros) return -1;
    if (a.padding == Padding::kReflection) i = static_cast<int64_t>(Reflect(static_cast<double>(i), low, high));
    return std::clamp<int64_t>(i, 0, size - 1);
  };
  if (a.mode == Mode::kNearest) return {{resolve(static_cast<int64_t>(at))}, {1}};
  auto base = static_cast<int64_t>(std::floor(at));
  double rest = at - static_cast<double>(base);
  if (a.mode == Mode::kLinear) return {{resolve(base), resolve(base + 1)}, {1 - rest, rest}};
  Taps taps = {{resolve(base - 1), resolve(base), resolve(base + 1), resolve(base + 2)}, {}};
  CubicWeights(rest, taps.weight);
  return taps;
}

// Adds the pixels that a point reads. `grid` has the point's coordinates, beginning with the innermost axis.
void SamplePoint(const Args& a, const float* image, const float* grid, float* to) {
  Taps taps[kMaxSpatial];
  for (int d = 0; d < a.spatial; ++d) taps[d] = TapsOf(a, grid[a.spatial - 1 - d], a.size[d]);
  std::fill_n(to, a.channels, 0.0f);
  Pixels pixels = {};
  auto add = [&](auto&& self, int d, int64_t index, double weight) -> void {
    if (d == a.spatial) {
      pixels.pixel[pixels.count] = image + index * a.channels;
      pixels.weight[pixels.count++] = static_cast<float>(weight);
      if (pixels.count < kMaxPixels) return;
      a.table->add(pixels, a.channels, to);
      pixels.count = 0;
      return;
    }
    for (int i = 0; i < a.taps(); ++i) {
      const Taps& t = taps[d];
      if (t.place[i] >= 0 && t.weight[i] != 0) self(self, d + 1, index * a.size[d] + t.place[i], weight * t.weight[i]);
    }
  };
  add(add, 0, 0, 1);
  if (pixels.count > 0) a.table->add(pixels, a.channels, to);
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const float>(run, a.x);
  auto* grid = At<const float>(run, a.grid);
  auto* y = At<float>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t end) {
    for (auto p = static_cast<int64_t>(first); p < static_cast<int64_t>(end); ++p) {
      SamplePoint(a, x + p / a.points * a.image(), grid + p * a.spatial, y + p * a.channels);
    }
  });
  return MGE_OK;
}

double SerialUs(const Args& a, Isa isa, int64_t points) {
  double lanes = isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4;
  const double pixels = std::pow(a.taps(), a.spatial);
  return static_cast<double>(points) *
         (0.02 + 0.01 * a.spatial + pixels * (2e-3 + 7e-4 * std::ceil(static_cast<double>(a.channels) / lanes)));
}

Result Build(const Problem& p, Isa isa, Args* a, double* us) {
  Node n = p.node();
  Value x = n.input(0), grid = n.input(1), y = n.output(0);
  if (x.rank() > 2 + kMaxSpatial || x.dtype() != MGE_DTYPE_F32 || grid.dtype() != MGE_DTYPE_F32) {
    return {MGE_UNIMPLEMENTED, "only one to three spatial dimensions of float32"};
  }
  if (x.is_constant()) return {MGE_UNIMPLEMENTED, "the image is a constant, which is always plain"};
  if (p.operand(0, 0) == p.operand(0, 1)) return {MGE_UNIMPLEMENTED, "image and grid are the same value"};
  if (x.elements() == 0 || y.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  std::string_view mode = n.Word("mode"), padding = n.Word("padding_mode");
  *a = {};
  a->table = &Blend(isa);
  a->channels = x.dim(1);
  a->spatial = x.rank() - 2;
  a->points = 1;
  for (int d = 0; d < a->spatial; ++d) {
    a->size[d] = x.dim(2 + d);
    a->points *= y.dim(2 + d);
  }
  a->mode = mode == "nearest" ? Mode::kNearest : mode == "linear" ? Mode::kLinear : Mode::kCubic;
  a->align_corners = n.Int("align_corners") != 0;
  a->padding = padding == "border" ? Padding::kBorder : padding == "reflection" ? Padding::kReflection : Padding::kZeros;
  int64_t points = y.dim(0) * a->points;
  *us = SerialUs(*a, isa, points);
  a->chunks = SplitWork(static_cast<uint64_t>(points), *us / static_cast<double>(points));
  return {};
}

class GridSampleKernel : public Kernel {
 public:
  GridSampleKernel(const Problem& p, const Args& args) : args_(args), x_(p.operand(0, 0)), grid_(p.operand(0, 1)) {}
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return 0; }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    a->x = b.input(x_);
    a->grid = b.input(grid_);
    a->y = b.output(0);
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Args args_;
  int x_, grid_;
};

struct GridSampleRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Isa isa = AllowedIsa();
    Args a;
    double us = 0;
    if (Result r = Build(p, isa, &a, &us); !r.ok()) return offers.Refuse(r.text());
    Candidate c = {.id = "cpu.grid_sample", .attributes = kExact};
    c.cost_us = RunUs(p, us);
    c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
    c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(p.node().input(0).rank());
    c.outputs = {ChannelsLast(p.node().input(0).rank())};
    Add(offers, isa, std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Args a;
    double us = 0;
    if (!Build(p, IsaOf(c), &a, &us).ok()) return nullptr;
    return std::make_unique<GridSampleKernel>(p, a);
  }
};

constexpr KernelRow kRows[] = {Row<GridSampleRow>("GridSample")};

}  // namespace

MGE_KERNELS(grid_sample) = kRows;

}  // namespace mge::cpu
