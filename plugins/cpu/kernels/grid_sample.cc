// SPDX-License-Identifier: Apache-2.0
// GridSample with two spatial dimensions, linear and nearest, float32, channels last.
#include <algorithm>
#include <cmath>

#include "support/kernel.h"
#include "support/work.h"
#include "vec/blend.h"

namespace mge::cpu {
namespace {

enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct Args {
  const BlendTable* table;
  Slot x, grid, y;
  int64_t channels, height, width, points;  // points per image
  bool nearest, align_corners;
  Padding padding;
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
  int64_t place[2] = {-1, -1};
  double weight[2] = {0, 0};
};

Taps TapsOf(const Args& a, float normalized, int64_t size) {
  const auto length = static_cast<float>(size);
  // Uses float, like the definition, because rounding to the nearest position depends on it.
  float at_float = a.align_corners ? (normalized + 1) / 2 * (length - 1) : ((normalized + 1) * length - 1) / 2;
  if (a.nearest) at_float = std::nearbyint(at_float);
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
  if (a.nearest) return {{resolve(static_cast<int64_t>(at)), -1}, {1, 0}};
  auto base = static_cast<int64_t>(std::floor(at));
  double rest = at - static_cast<double>(base);
  return {{resolve(base), resolve(base + 1)}, {1 - rest, rest}};
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const float>(run, a.x);
  auto* grid = At<const float>(run, a.grid);
  auto* y = At<float>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t end) {
    for (auto p = static_cast<int64_t>(first); p < static_cast<int64_t>(end); ++p) {
      const float* image = x + p / a.points * a.height * a.width * a.channels;
      Taps columns = TapsOf(a, grid[2 * p], a.width), rows = TapsOf(a, grid[2 * p + 1], a.height);
      Pixels pixels = {};
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
          double weight = rows.weight[i] * columns.weight[j];
          if (weight == 0 || rows.place[i] < 0 || columns.place[j] < 0) continue;
          pixels.pixel[pixels.count] = image + (rows.place[i] * a.width + columns.place[j]) * a.channels;
          pixels.weight[pixels.count++] = static_cast<float>(weight);
        }
      }
      std::fill_n(y + p * a.channels, a.channels, 0.0f);
      a.table->add(pixels, a.channels, y + p * a.channels);
    }
  });
  return MGE_OK;
}

double SerialUs(const Args& a, Isa isa, int64_t points) {
  double lanes = isa == Isa::kAvx512 ? 16 : isa == Isa::kAvx2 ? 8 : 4;
  return static_cast<double>(points) * (0.03 + 3e-3 * std::ceil(static_cast<double>(a.channels) / lanes));
}

Result Build(const Problem& p, Isa isa, Args* a, double* us) {
  Node n = p.node();
  Value x = n.input(0), grid = n.input(1), y = n.output(0);
  if (x.rank() != 4 || x.dtype() != MGE_DTYPE_F32 || grid.dtype() != MGE_DTYPE_F32) {
    return {MGE_UNIMPLEMENTED, "only two spatial dimensions of float32"};
  }
  if (x.is_constant()) return {MGE_UNIMPLEMENTED, "the image is a constant, which is always plain"};
  if (p.operand(0, 0) == p.operand(0, 1)) return {MGE_UNIMPLEMENTED, "image and grid are the same value"};
  if (x.elements() == 0 || y.elements() == 0) return {MGE_UNIMPLEMENTED, "an operand is empty"};
  std::string_view mode = n.Word("mode"), padding = n.Word("padding_mode");
  if (mode != "linear" && mode != "nearest") return {MGE_UNIMPLEMENTED, "only the modes linear and nearest"};
  *a = {};
  a->table = &Blend(isa);
  a->channels = x.dim(1);
  a->height = x.dim(2);
  a->width = x.dim(3);
  a->points = y.dim(2) * y.dim(3);
  a->nearest = mode == "nearest";
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
    c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(4);
    c.outputs = {ChannelsLast(4)};
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
