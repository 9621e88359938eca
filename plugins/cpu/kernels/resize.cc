// SPDX-License-Identifier: Apache-2.0
// Resize: nearest along any dimensions; linear along up to three dimensions of float32 and float64 (all taps of an output
// at once).
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "support/index_map.h"
#include "support/move.h"
#include "support/move_rule.h"
#include "support/resize_places.h"
#include "vec/blend.h"

namespace mge::cpu {
namespace {

using Axis = ResampledAxis;

Result ReadAxes(const Node& n, std::vector<Axis>* out) {
  if (n.Int("antialias")) return Refusal("no antialiasing");
  return ReadResizeAxes(n, out);
}

// Returns whether a position between two elements is rounded up.
using UpFn = bool (*)(const Axis& a, double fraction);

// Returns null for an unknown mode.
UpFn FindRounding(const Node& n) {
  std::string_view mode = n.Word("nearest_mode");
  if (mode == "floor") return [](const Axis&, double) { return false; };
  if (mode == "ceil") return [](const Axis&, double fraction) { return fraction > 0; };
  if (mode == "floor_or_ceil") return [](const Axis& a, double fraction) { return a.scale < 1 && fraction > 0; };
  if (mode == "round_prefer_ceil") return [](const Axis&, double fraction) { return fraction >= 0.5; };
  if (mode == "round_prefer_floor") return [](const Axis&, double fraction) { return fraction > 0.5; };
  return nullptr;
}

Result BuildNearest(const Node& n, IndexMap* map) {
  std::vector<Axis> axes;
  if (Result r = ReadAxes(n, &axes); !r.ok()) return r;
  SourceFn source = FindSource(n);
  if (!source) return Refusal("unsupported coordinate_transformation_mode");
  UpFn up = FindRounding(n);
  if (!up) return Refusal("unsupported nearest_mode");
  for (const Axis& a : axes) {
    map->place.push_back([=](int64_t i) {
      double place = PlaceOf(source, a, i), base = std::floor(place);
      return std::clamp<int64_t>(static_cast<int64_t>(base) + up(a, place - base), 0, a.in - 1);
    });
  }
  return {};
}

constexpr int kMaxLinear = 3;  // dimensions that change

// The two neighbouring positions that an output reads, and their weights.
struct Tap {
  int64_t low, high;  // positions
  double weight;      // weight of high
};

// An output is the weighted sum of 2^linear inputs. Dimensions are in memory order; those after the last resampled one form
// a piece of `inner` elements.
struct LinearArgs {
  Slot x, y;
  const Tap* taps;  // owned by the kernel: taps for the positions of every resampled dimension
  int32_t linear;
  int64_t outer;  // product of the dimensions before the first resampled one
  int64_t in[kMaxLinear], out[kMaxLinear];
  int64_t inner;
  const BlendTable* blend;  // mixes pieces of many elements
  Chunks chunks;            // chunks of (outer, all resampled positions except the last dimension's)
};

// The rows of the input that one row of the output mixes.
template <typename T>
struct MixedRows {
  int count = 1;
  int64_t rows[1 << (kMaxLinear - 1)] = {0};
  T weights[1 << (kMaxLinear - 1)] = {1};
};

// Returns true if most elements of a row are read by no output, so that mixing whole rows is wasted.
bool Skips(const LinearArgs& a) { return a.in[a.linear - 1] > 2 * a.out[a.linear - 1]; }

// Pieces of one element: mixes the rows first, then resamples the row that they make.
template <typename T>
void ResampleRow(const LinearArgs& args, const MixedRows<T>& mix, const Tap* taps, const T* x, T* to) {
  constexpr int64_t kMax = 2048;  // elements of a row that fit on the stack
  const int64_t in = args.in[args.linear - 1], out = args.out[args.linear - 1];
  T row[kMax];
  for (int64_t begin = 0; begin < out;) {
    // A part of the output whose inputs fit. Places do not decrease.
    const int64_t first = taps[begin].low;
    int64_t end = begin, last = first;
    for (; end < out && taps[end].low >= first && taps[end].high - first < kMax; ++end)
      last = std::max(last, taps[end].high);
    for (int64_t c = first; c <= last; ++c) row[c - first] = mix.weights[0] * x[mix.rows[0] * in + c];
    for (int k = 1; k < mix.count; ++k) {
      const T* other = x + mix.rows[k] * in;
      for (int64_t c = first; c <= last; ++c) row[c - first] += mix.weights[k] * other[c];
    }
    for (int64_t i = begin; i < end; ++i) {
      const T b = static_cast<T>(taps[i].weight);
      to[i] = (1 - b) * row[taps[i].low - first] + b * row[taps[i].high - first];
    }
    begin = end;
  }
}

// Pieces of several elements, one by one.
template <typename T>
void ResamplePieces(const LinearArgs& args, const MixedRows<T>& mix, const Tap* taps, const T* x, T* to) {
  const int64_t in = args.in[args.linear - 1], out = args.out[args.linear - 1];
  for (int64_t i = 0; i < out; ++i, to += args.inner) {
    const Tap& t = taps[i];
    const T b = static_cast<T>(t.weight), a = 1 - b;
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t kMinVector = 4;
      if (args.inner >= kMinVector) {
        std::fill_n(to, args.inner, 0.0f);
        for (int k = 0; k < mix.count; ++k) {
          const T* row = x + mix.rows[k] * in * args.inner;
          args.blend->add(
              {2, {row + t.low * args.inner, row + t.high * args.inner}, {mix.weights[k] * a, mix.weights[k] * b}},
              args.inner, to);
        }
        continue;
      }
    }
    for (int64_t c = 0; c < args.inner; ++c) {
      T sum = 0;
      for (int k = 0; k < mix.count; ++k) {
        const T* row = x + mix.rows[k] * in * args.inner + c;
        sum += mix.weights[k] * (a * row[t.low * args.inner] + b * row[t.high * args.inner]);
      }
      to[c] = sum;
    }
  }
}

template <typename T>
mge_code LaunchLinear(const LinearArgs& args, const mge_run* run) {
  auto* x = At<const T>(run, args.x);
  auto* y = At<T>(run, args.y);
  int last = args.linear - 1;
  const Tap* last_taps = args.taps;
  for (int d = 0; d < last; ++d) last_taps += args.out[d];
  ForChunks(run, args.chunks, [&](uint64_t first, uint64_t end) {
    for (auto u = static_cast<int64_t>(first); u < static_cast<int64_t>(end); ++u) {
      int64_t rest = u, index[kMaxLinear] = {};
      for (int d = last - 1; d >= 0; --d) {
        index[d] = rest % args.out[d];
        rest /= args.out[d];
      }
      MixedRows<T> mix;
      mix.rows[0] = rest;
      const Tap* list = args.taps;
      for (int d = 0; d < last; ++d) {
        const Tap& t = list[index[d]];
        list += args.out[d];
        for (int k = 0; k < mix.count; ++k) {
          mix.rows[mix.count + k] = mix.rows[k] * args.in[d] + t.high;
          mix.weights[mix.count + k] = mix.weights[k] * static_cast<T>(t.weight);
          mix.rows[k] = mix.rows[k] * args.in[d] + t.low;
          mix.weights[k] *= 1 - static_cast<T>(t.weight);
        }
        mix.count *= 2;
      }
      T* to = y + u * args.out[last] * args.inner;
      if (args.inner == 1 && !Skips(args))
        ResampleRow(args, mix, last_taps, x, to);
      else
        ResamplePieces(args, mix, last_taps, x, to);
    }
  });
  return MGE_OK;
}

struct Linear {
  LinearArgs args = {};
  Axis axis[kMaxLinear];
  SourceFn source = nullptr;
  double us = 0;

  std::vector<Tap> Taps() const {
    std::vector<Tap> taps;
    if (args.chunks.items == 0) return taps;
    int64_t positions = 0;
    for (int d = 0; d < args.linear; ++d) positions += axis[d].out;
    taps.reserve(static_cast<size_t>(positions));
    for (int d = 0; d < args.linear; ++d) {
      const Axis& a = axis[d];
      for (int64_t i = 0; i < a.out; ++i) {
        double place = PlaceOf(source, a, i), base = std::floor(place);
        auto low = static_cast<int64_t>(base);
        taps.push_back({std::clamp<int64_t>(low, 0, a.in - 1), std::clamp<int64_t>(low + 1, 0, a.in - 1), place - base});
      }
    }
    return taps;
  }
};

Result DescribeLinear(const Node& n, bool channels_last, Linear* out) {
  std::vector<Axis> axes;
  if (Result r = ReadAxes(n, &axes); !r.ok()) return r;
  if (n.Int("exclude_outside")) return Refusal("exclude_outside");
  out->source = FindSource(n);
  if (!out->source) return Refusal("unsupported coordinate_transformation_mode");
  int rank = static_cast<int>(axes.size());
  mge_layout last = ChannelsLast(rank);
  LinearArgs& a = out->args;
  a.outer = a.inner = 1;
  int first = rank, end = 0;
  auto axis = [&](int i) -> const Axis& { return axes[static_cast<size_t>(channels_last ? last.perm[i] : i)]; };
  for (int i = 0; i < rank; ++i) {
    if (axis(i).identity()) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  if (first == rank) first = rank - 1, end = rank;  // nothing changes: one dimension with weights 0
  if (end - first > kMaxLinear || rank == 0) return Refusal("more than three dimensions are resampled");
  for (int i = 0; i < rank; ++i) {
    if (i < first) a.outer *= axis(i).out;
    if (i >= end) a.inner *= axis(i).out;
  }
  a.linear = end - first;
  uint64_t lines = static_cast<uint64_t>(a.outer);
  for (int i = first; i < end; ++i) {
    const Axis& from = out->axis[i - first] = axis(i);
    a.in[i - first] = from.in;
    a.out[i - first] = from.out;
    if (i + 1 < end) lines *= static_cast<uint64_t>(from.out);
  }
  Value y = n.output(0);
  double per_element = a.inner == 1 && !Skips(a) ? 0.8 : (a.inner == 1 ? 2.0 : 0.3) * (1 << a.linear) / 4.0;
  out->us =
      StreamUs(static_cast<double>(y.bytes() + n.input(0).bytes())) + 1e-3 * per_element * static_cast<double>(y.elements());
  if (y.elements() == 0) lines = 0;
  a.chunks = SplitWork(lines, lines ? out->us / static_cast<double>(lines) : 0);
  return {};
}

class LinearKernel : public Kernel {
 public:
  LinearKernel(const Linear& linear, int input, StepFn step)
      : args_(linear.args), taps_(linear.Taps()), input_(input), step_(step) {
    args_.taps = taps_.data();
  }
  uint32_t args_bytes() const override { return sizeof(LinearArgs); }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* a = new (args) LinearArgs(args_);
    a->x = b.input(input_);
    a->y = b.output(0);
    *step = step_;
    return {};
  }

 private:
  LinearArgs args_;
  std::vector<Tap> taps_;
  int input_;
  StepFn step_;
};

// Calls f with the element type's tag. Returns false for other types; floats of 16 bits are computed as float32.
template <typename F>
bool DispatchWide(mge_dtype type, F f) {
  return DispatchTo<float, double>(type, f);
}

struct ResizeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    std::string_view mode = n.Word("mode");
    if (mode == "nearest") {
      IndexMap map;
      if (Result r = BuildNearest(n, &map); !r.ok()) return offers.Refuse(r.text());
      return OfferIndexMap(p, offers, "cpu.resize_nearest");
    }
    if (mode != "linear") return offers.Refuse("no mode " + std::string(mode));
    Value x = n.input(0);
    if (!DispatchWide(x.dtype(), [](auto) {})) return offers.Refuse("only float32 and float64");
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Linear linear;
      if (Result r = DescribeLinear(n, last, &linear); !r.ok()) return offers.Refuse(r.text());
      Candidate c = {.id = last ? "cpu.resize_linear.nhwc" : "cpu.resize_linear",
                     .attributes = kExact,
                     .cost_us = RunUs(p, linear.us),
                     .variant = last ? 1u : 0u};
      if (last) {
        c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
        c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(x.rank());
        c.outputs = {ChannelsLast(x.rank())};
      }
      Add(offers, AllowedIsa(), std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    bool last = KindOf(c) == 1;
    if (n.Word("mode") == "nearest") {
      IndexMap map;
      if (!BuildNearest(n, &map).ok()) return nullptr;
      return map.MakeKernel(p, last);
    }
    Linear linear;
    if (!DescribeLinear(n, last, &linear).ok()) return nullptr;
    linear.args.blend = &Blend(IsaOf(c));
    StepFn step;
    DispatchWide(n.input(0).dtype(), [&](auto tag) { step = StepFn::Of<LaunchLinear<typename decltype(tag)::type>>(); });
    return std::make_unique<LinearKernel>(linear, p.operand(0, 0), step);
  }
};

constexpr KernelRow kRows[] = {Row<ResizeRow>("Resize")};

}  // namespace

MGE_KERNELS(resize) = kRows;

}  // namespace mge::cpu
