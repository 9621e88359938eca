// SPDX-License-Identifier: Apache-2.0
// Resize by filters of any number of taps: cubic, linear with antialiasing, linear of integers, without the taps outside, and
// along more than three dimensions. One dimension is resampled after the other. Integers are computed in double, with the
// operations of the reference evaluator in its order, so that both round equally.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "support/kernel.h"
#include "support/resize_places.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

using Axis = ResampledAxis;

constexpr int kMaxAxes = 8;       // of a tensor
constexpr int kMaxPlainAxes = 3;  // which the kernel for two taps resamples at once

// A filter: its coefficients are those of ONNX.
struct Filter {
  bool cubic = false, antialias = false, exclude_outside = false;
  double a = 0;  // cubic_coeff_a
  SourceFn source = nullptr;

  double reach(const Axis& axis) const { return (cubic ? 2 : 1) / shrink(axis); }
  double shrink(const Axis& axis) const { return antialias ? std::min(axis.scale, 1.0) : 1.0; }
  double Weight(double distance) const {
    const double x = std::abs(distance);
    if (!cubic) return std::max(0.0, 1 - x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
  }
};

// An input that is read with a weight.
struct Tap {
  int64_t place;
  double weight;
};

// The taps of the outputs of an axis: those of output i are taps[begin[i]] to taps[begin[i + 1]].
struct TapList {
  std::vector<Tap> taps;
  std::vector<int64_t> begin = {0};
};

void AddTaps(const Filter& f, const Axis& axis, int64_t output, TapList* list) {
  const double at = PlaceOf(f.source, axis, output);
  const auto base = static_cast<int64_t>(std::floor(at));
  const double fraction = at - static_cast<double>(base);
  const auto first = static_cast<int64_t>(std::floor(-f.reach(axis))) + 1;
  // At a whole position, an antialiasing filter reads one more input on the left than on the right.
  const int64_t left = f.antialias && fraction == 0;
  double sum = 0;
  const size_t begin = list->taps.size();
  for (int64_t t = first; t <= 1 - first; ++t) {
    const int64_t place = base + t - left;
    double weight = f.Weight(f.shrink(axis) * (static_cast<double>(t) - (left ? 1.0 : fraction)));
    if (f.exclude_outside && (place < 0 || place >= axis.in)) weight = 0;
    sum += weight;
    if (weight != 0) list->taps.push_back({std::clamp<int64_t>(place, 0, axis.in - 1), weight});
  }
  for (size_t t = begin; (f.antialias || f.exclude_outside) && sum != 0 && t < list->taps.size(); ++t)
    list->taps[t].weight /= sum;
  list->begin.push_back(static_cast<int64_t>(list->taps.size()));
}

// Resamples one dimension of a tensor [outer, in, inner].
struct Pass {
  void (*rows)(const Pass&, const void* x, void* y, int64_t begin, int64_t end);
  const Tap* taps;  // owned by the kernel
  const int64_t* begin;
  int64_t in, out, inner;
  Slot x, y;
  Chunks chunks;  // chunks of outer * out rows of `inner` elements; of outer rows if `inner` is 1
};

template <typename To, typename C>
To Rounded(C value) {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else {
    using Limits = std::numeric_limits<To>;
    constexpr double kUnits = 0x1.8p52;  // a double of this size has no fraction, so that the sum is rounded to even
    const double limited = std::clamp<double>(value, Limits::lowest(), Limits::max());
    return static_cast<To>(limited + kUnits - kUnits);
  }
}

// The last dimension: outputs one by one.
template <typename From, typename To, typename C>
void ResampleLast(const Pass& p, const void* x, void* y, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const From* from = static_cast<const From*>(x) + row * p.in;
    To* to = static_cast<To*>(y) + row * p.out;
    for (int64_t o = 0; o < p.out; ++o) {
      C sum = 0;
      for (int64_t t = p.begin[o]; t < p.begin[o + 1]; ++t)
        sum += static_cast<C>(p.taps[t].weight) * static_cast<C>(from[p.taps[t].place]);
      to[o] = Rounded<To>(sum);
    }
  }
}

// Any other dimension: sums of rows.
template <typename From, typename To, typename C>
void ResampleRows(const Pass& p, const void* x, void* y, int64_t begin, int64_t end) {
  constexpr int64_t kBlock = 512;
  C sums[kBlock];
  for (int64_t row = begin; row < end; ++row) {
    const int64_t o = row % p.out;
    const From* from = static_cast<const From*>(x) + row / p.out * p.in * p.inner;
    To* to = static_cast<To*>(y) + row * p.inner;
    for (int64_t first = 0; first < p.inner; first += kBlock) {
      const int64_t count = std::min(kBlock, p.inner - first);
      std::fill_n(sums, count, C(0));
      for (int64_t t = p.begin[o]; t < p.begin[o + 1]; ++t) {
        const C weight = static_cast<C>(p.taps[t].weight);
        const From* other = from + p.taps[t].place * p.inner + first;
        for (int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<C>(other[i]);
      }
      for (int64_t i = 0; i < count; ++i) to[first + i] = Rounded<To>(sums[i]);
    }
  }
}

template <typename From, typename To, typename C>
auto RowsOf(bool last) {
  return last ? ResampleLast<From, To, C> : ResampleRows<From, To, C>;
}

// Returns the function of a pass. The first one reads the element type, and the last one writes it.
template <typename T>
auto RowsOf(bool reads, bool writes, bool last) {
  using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
  if (reads) return writes ? RowsOf<T, T, C>(last) : RowsOf<T, C, C>(last);
  return writes ? RowsOf<C, T, C>(last) : RowsOf<C, C, C>(last);
}

// Calls f with the element type's tag. Returns false for other types; floats of 16 bits are computed as float32.
template <typename F>
bool DispatchFiltered(mge_dtype type, F f) {
  return DispatchTo<float, double, uint8_t, int8_t, int32_t>(type, f);
}

// The passes, without their taps. Dimensions are in memory order.
struct Plan {
  Filter filter;
  std::vector<Axis> axes;  // one for each pass
  std::vector<Pass> passes;
  std::vector<double> us;     // of each pass
  uint64_t buffer_bytes = 0;  // of each of the two buffers between the passes
  double total_us = 0;

  void Add(const Axis& axis, int64_t outer, int64_t inner, bool exact) {
    Pass pass = {};
    pass.in = axis.in;
    pass.out = axis.out;
    pass.inner = inner;
    const double taps = axis.identity() ? 1 : 2 * std::ceil(filter.reach(axis));
    const double outputs = static_cast<double>(outer) * static_cast<double>(axis.out);
    const double tap_ns = inner == 1 ? 0.9 : 4 + (exact ? 0.35 : 0.12) * static_cast<double>(inner);
    const double output_ns = inner == 1 ? 1.5 : 10 + (exact ? 0.8 : 0.2) * static_cast<double>(inner);
    us.push_back(1e-3 * outputs * (output_ns + tap_ns * taps));
    const auto rows = static_cast<uint64_t>(inner == 1 ? outer : outer * axis.out);
    pass.chunks = SplitWork(rows, rows ? us.back() / static_cast<double>(rows) : 0);
    axes.push_back(axis);
    passes.push_back(pass);
    total_us += us.back();
  }
};

Result MakePlan(const Node& n, bool channels_last, Plan* plan) {
  std::vector<Axis> axes;
  if (Result r = ReadResizeAxes(n, &axes); !r.ok()) return r;
  Filter& f = plan->filter;
  f.cubic = n.Word("mode") == "cubic";
  f.antialias = n.Int("antialias") != 0;
  f.exclude_outside = n.Int("exclude_outside") != 0;
  f.a = static_cast<double>(n.Float("cubic_coeff_a"));
  f.source = FindSource(n);
  if (!f.source) return {MGE_UNIMPLEMENTED, "unsupported coordinate_transformation_mode"};
  const int rank = static_cast<int>(axes.size());
  if (rank == 0) return {MGE_UNIMPLEMENTED, "no dimension"};
  if (channels_last) {
    std::vector<Axis> plain = axes;
    for (int i = 0; i < rank; ++i) axes[static_cast<size_t>(i)] = plain[static_cast<size_t>(ChannelsLast(rank).perm[i])];
  }
  // The order of the reference evaluator: dimensions that shrink most are first.
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto growth = [&](size_t d) { return static_cast<double>(axes[d].out) / static_cast<double>(axes[d].in); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return growth(a) < growth(b); });
  std::erase_if(order, [&](size_t d) { return axes[d].identity(); });
  if (order.empty()) order.push_back(axes.size() - 1);
  std::vector<int64_t> dims;
  for (const Axis& a : axes) dims.push_back(a.in);
  const mge_dtype type = n.input(0).dtype();
  for (size_t d : order) {
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < d; ++i) outer *= dims[i];
    for (size_t i = d + 1; i < dims.size(); ++i) inner *= dims[i];
    plan->Add(axes[d], outer, inner, type != MGE_DTYPE_F32);
    dims[d] = axes[d].out;
    const auto elements = static_cast<uint64_t>(outer * axes[d].out * inner);
    if (d != order.back()) plan->buffer_bytes = std::max(plan->buffer_bytes, elements * (type == MGE_DTYPE_F32 ? 4 : 8));
  }
  plan->buffer_bytes = (plan->buffer_bytes + 63) / 64 * 64;
  if (n.output(0).elements() == 0) {
    for (Pass& pass : plan->passes) pass.chunks = SplitWork(0, 0);
  }
  return {};
}

struct Args {
  int count;
  Pass passes[kMaxAxes];
};

mge_code Launch(const Args& a, const mge_run* run) {
  for (int i = 0; i < a.count; ++i) {
    const Pass& p = a.passes[i];
    const void* x = At<char>(run, p.x);
    void* y = At<char>(run, p.y);
    ForChunks(run, p.chunks, [&](uint64_t begin, uint64_t end) {
      p.rows(p, x, y, static_cast<int64_t>(begin), static_cast<int64_t>(end));
    });
  }
  return MGE_OK;
}

class FilterKernel : public Kernel {
 public:
  FilterKernel(Plan plan, mge_dtype type, int input) : plan_(std::move(plan)), input_(input), taps_(plan_.axes.size()) {
    const size_t count = plan_.passes.size();
    for (size_t i = 0; i < count; ++i) {
      Pass& pass = plan_.passes[i];
      if (pass.chunks.items == 0) continue;
      for (int64_t o = 0; o < pass.out; ++o) AddTaps(plan_.filter, plan_.axes[i], o, &taps_[i]);
      pass.taps = taps_[i].taps.data();
      pass.begin = taps_[i].begin.data();
      DispatchFiltered(type, [&](auto tag) {
        pass.rows = RowsOf<typename decltype(tag)::type>(i == 0, i + 1 == count, pass.inner == 1);
      });
    }
  }
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return 2 * plan_.buffer_bytes; }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* a = new (args) Args{static_cast<int>(plan_.passes.size()), {}};
    const Slot space = b.workspace();
    Slot from = b.input(input_);
    for (int i = 0; i < a->count; ++i) {
      Pass& pass = a->passes[i] = plan_.passes[static_cast<size_t>(i)];
      pass.x = from;
      from = {space.base, 0, space.offset + (i % 2 ? plan_.buffer_bytes : 0)};
      pass.y = i + 1 == a->count ? Slot(b.output(0)) : from;
    }
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  Plan plan_;
  int input_;
  std::vector<TapList> taps_;
};

// Returns whether the kernel for two taps computes the node. It is faster.
bool HasOwnKernel(const Node& n) {
  const mge_dtype type = n.input(0).dtype();
  if (n.Word("mode") != "linear" || n.Int("antialias") || n.Int("exclude_outside")) return false;
  if (type != MGE_DTYPE_F32 && type != MGE_DTYPE_F64) return false;
  std::vector<Axis> axes;
  if (!ReadResizeAxes(n, &axes).ok()) return false;
  auto changes = [](const Axis& a) { return !a.identity(); };
  const auto first = std::find_if(axes.begin(), axes.end(), changes);
  const auto end = std::find_if(axes.rbegin(), axes.rend(), changes).base();
  return end - first <= kMaxPlainAxes;
}

struct ResizeFilterRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const Node n = p.node();
    if (n.Word("mode") == "nearest" || HasOwnKernel(n)) return;
    const Value x = n.input(0);
    if (!DispatchFiltered(x.dtype(), [](auto) {})) return offers.Refuse("only float32, float64, int8, uint8 and int32");
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Plan plan;
      if (Result r = MakePlan(n, last, &plan); !r.ok()) return offers.Refuse(r.text());
      Candidate c = {.id = last ? "cpu.resize_filter.nhwc" : "cpu.resize_filter",
                     .attributes = kExact,
                     .workspace = 2 * plan.buffer_bytes,
                     .cost_us = RunUs(p, plan.total_us),
                     .variant = last ? 1u : 0u};
      if (last) {
        c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
        c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(x.rank());
        c.outputs = {ChannelsLast(x.rank())};
      }
      offers.Add(c);
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    const Node n = p.node();
    Plan plan;
    if (!MakePlan(n, c.variant == 1, &plan).ok()) return nullptr;
    return std::make_unique<FilterKernel>(std::move(plan), n.input(0).dtype(), p.operand(0, 0));
  }
};

constexpr KernelRow kRows[] = {Row<ResizeFilterRow>("Resize")};

}  // namespace

MGE_KERNELS(resize_filter) = kRows;

}  // namespace mge::cpu
