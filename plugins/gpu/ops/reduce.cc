// SPDX-License-Identifier: Apache-2.0
// Reduce* over constant axes, GlobalAveragePool and GlobalMaxPool.
#include "mge/plugin/problems/reduce.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "plugins/gpu/kernels/reduce.h"
#include "plugins/gpu/support/broadcast.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

struct Reduction {
  std::string_view op;
  const char* kernel;
  double of_nothing;        // result for zero elements
  bool needs_some = false;  // a reduction of zero elements is an error
  bool keeps_one = true;    // a reduction of one element returns that element
};
constexpr double kInf = __builtin_inf();
constexpr Reduction kReductions[] = {{"ReduceSum", "reduce_sum", 0},
                                     {"ReduceMean", "reduce_mean", 0, true},
                                     {"ReduceMax", "reduce_max", 0, true},
                                     {"ReduceMin", "reduce_min", 0, true},
                                     {"ReduceProd", "reduce_prod", 1},
                                     {"ReduceL1", "reduce_l1", 0, false, false},
                                     {"ReduceL2", "reduce_l2", 0, false, false},
                                     {"ReduceLogSum", "reduce_log_sum", -kInf, false, false},
                                     {"ReduceLogSumExp", "reduce_log_sum_exp", -kInf},
                                     {"ReduceSumSquare", "reduce_sum_square", 0, false, false},
                                     {"GlobalAveragePool", "reduce_mean", 0, true},
                                     {"GlobalMaxPool", "reduce_max", 0, true}};

const Reduction& Find(const Node& n) {
  for (const Reduction& r : kReductions) {
    if (r.op == n.op()) return r;
  }
  return kReductions[0];
}

// The number of a candidate is its kind and, from kLayoutBit on, its layout.
enum Kind : uint32_t { kThread = 0, kBlock = 1, kAtomic = 2, kSplitThread = 3, kSplitBlock = 4 };
constexpr uint64_t kLayoutBit = 8;

struct Described {
  ReduceArgs args = {};
  std::string base;
  bool copies = false;  // no axis is reduced, and the reduction of one element returns it
  bool across = false;  // neighbouring elements belong to different outputs
};

Result Axes(const Node& n, std::vector<bool>* reduced, bool* copies) {
  Value x = n.input(0);
  auto rank = static_cast<size_t>(x.rank());
  if (n.op().starts_with("Global")) {
    if (rank < 2) return Refusal("nothing to pool");
    reduced->assign(rank, true);
    (*reduced)[0] = (*reduced)[1] = false;
    return {};
  }
  mge::Reduction r;
  if (Result result = ReadReduction(n, &r); !result.ok()) return Refusal(result.text());
  *copies = r.nothing && Find(n).keeps_one;
  *reduced = std::move(r.reduced);
  return {};
}

ReduceWalk WalkOf(std::vector<int64_t> dims, std::vector<int64_t> strides) {
  std::vector<std::vector<int64_t>> list = {std::move(strides)};
  Collapse(dims, list);
  ReduceWalk w = {};
  w.rank = static_cast<int32_t>(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    w.dims[d] = dims[d];
    w.strides[d] = list[0][d];
  }
  return w;
}

// Returns whether the output has the layout of the input: it has all of its dimensions.
bool KeepsRank(const Node& n) { return n.output(0).rank() == n.input(0).rank(); }

Result Describe(const Problem& p, Layout layout, Described* out) {
  Node n = p.node();
  Value x = n.input(0), y = n.output(0);
  const Reduction& r = Find(n);
  std::vector<bool> reduced;
  if (Result result = Axes(n, &reduced, &out->copies); !result.ok()) return result;
  std::vector<int64_t> strides = StridesIn(layout, x.dims()), kept_dims, kept_strides, gone_dims, gone_strides;
  ReduceArgs& a = out->args;
  a.count = 1;
  // Kept dimensions are in the order of the output's memory.
  for (const size_t d : MemoryOrder(KeepsRank(n) ? layout : Layout::kPlain, reduced.size())) {
    (reduced[d] ? gone_dims : kept_dims).push_back(x.dims()[d]);
    (reduced[d] ? gone_strides : kept_strides).push_back(strides[d]);
    if (reduced[d]) a.count *= x.dims()[d];
  }
  out->across = !gone_strides.empty() && std::ranges::find(gone_strides, 1) == gone_strides.end();
  a.outputs = static_cast<int64_t>(y.elements());
  a.kept = WalkOf(kept_dims, kept_strides);
  a.reduced = WalkOf(gone_dims, gone_strides);
  out->base = r.kernel;
  mge_dtype type = x.dtype();
  if (type == MGE_DTYPE_BOOL && out->base != "reduce_max" && out->base != "reduce_min") return Refusal("does not take bool");
  if (FindKernel(KernelFor(out->base + "_thread", type == MGE_DTYPE_BOOL ? MGE_DTYPE_U8 : type)) == kNoKernel) {
    return Refusal("does not take " + std::string(TypeName(type)));
  }
  if (a.count == 0 && a.outputs && r.needs_some) return Refusal("nothing to reduce");
  return {};
}

// Estimate the time that the loads of a reduction take in their order: each thread has several in flight.
double ThreadUs(double count) { return 0.05 * count; }
double BlockUs(const Problem& p, double count, double blocks) {
  constexpr double kThreads = 256, kBlocksAtOnce = 8;  // of a multiprocessor
  return 0.5 + 0.1 * std::ceil(count / kThreads) * std::ceil(blocks / (kBlocksAtOnce * RoofsOf(p.handle()).multiprocessors));
}

// Returns the number of parts of each output that keep a device busy, each of some elements; 1: none.
int64_t SplitsOf(const ReduceArgs& a, Kind kind) {
  const int64_t units = kind == kSplitThread ? 65536 : 1024, least = kind == kSplitThread ? 32 : 2048;
  constexpr int64_t kMax = 128;
  return std::clamp<int64_t>(std::min(units / std::max<int64_t>(1, a.outputs), a.count / least), 1, kMax);
}
// Returns the bytes of the parts; sums of 16-bit floats are floats.
uint64_t PartBytes(const ReduceArgs& a, int64_t splits, mge_dtype type) {
  return static_cast<uint64_t>(a.outputs * splits) * std::max<uint64_t>(4, ElementBytes(type));
}
// Returns the name of the kernels that compute the parts. Those of a mean are sums.
std::string PartsOf(const std::string& base) { return (base == "reduce_mean" ? "reduce_sum" : base) + "_parts"; }

// Returns the bits of `value` (0, 1 or minus infinity) in the type.
uint64_t BitsOf(double value, mge_dtype type) {
  switch (type) {
    case MGE_DTYPE_F32: return value == 1 ? 0x3f800000u : value == 0 ? 0 : 0xff800000u;
    case MGE_DTYPE_F64: return value == 1 ? 0x3ff0000000000000u : value == 0 ? 0 : 0xfff0000000000000u;
    case MGE_DTYPE_F16: return value == 1 ? 0x3c00u : value == 0 ? 0 : 0xfc00u;
    case MGE_DTYPE_BF16: return value == 1 ? 0x3f80u : value == 0 ? 0 : 0xff80u;
    default: return value == 1 ? 1 : 0;
  }
}

struct ReduceRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    for (const Layout layout : LayoutsOf(p.node().input(0).rank())) {
      if (Result r = OfferIn(p, layout, offers); !r.ok()) return offers.Refuse(r.text());
    }
  }

  static Result OfferIn(const Problem& p, Layout layout, Offers& offers) {
    Described d;
    if (Result r = Describe(p, layout, &d); !r.ok()) return r;
    const ReduceArgs& a = d.args;
    auto add = [&](Candidate c) {
      c.variant |= static_cast<uint64_t>(layout) << kLayoutBit;
      if (!SetLayout(p, layout, {InputOf(p, 0)}, &c)) return;
      if (!KeepsRank(p.node())) c.outputs.clear();
      offers.Add(c);
    };
    double bytes = BytesOf(p), count = static_cast<double>(a.count);
    // With few outputs, one thread per output leaves the device idle.
    add({.id = "gpu.reduce.thread",
         .attributes = kExact,
         .cost_us = GpuUs(p, bytes, 4.0 * count * static_cast<double>(a.outputs)) + ThreadUs(count),
         .variant = kThread});
    const mge_dtype type = p.node().input(0).dtype();
    if (const Kind kind = d.across ? kSplitThread : kSplitBlock; !d.copies) {
      const int64_t splits = SplitsOf(a, kind);
      const double each = count / static_cast<double>(splits), outputs = static_cast<double>(a.outputs * splits);
      if (splits > 1 && FindKernel(KernelFor(d.base + "_join", type)) != kNoKernel) {
        const uint64_t part_bytes = PartBytes(a, splits, type);
        add({.id = "gpu.reduce.split",
             .attributes = kLaunched | MGE_KERNEL_DETERMINISTIC,
             .workspace = part_bytes,
             .cost_us = GpuUs(p, bytes + 2.0 * static_cast<double>(part_bytes), 0, 2) +
                        ThreadUs(static_cast<double>(splits)) +
                        (kind == kSplitThread ? ThreadUs(each) : BlockUs(p, each, outputs)),
             .variant = kind});
      }
    }
    // A block per output would read every line of memory several times.
    if (layout == Layout::kChannelsLast && d.across) return {};
    if (d.copies || a.count == 0 || FindKernel(KernelFor(d.base + "_block", type)) == kNoKernel) return {};
    add({.id = "gpu.reduce.block",
         .attributes = kExact,
         .cost_us = GpuUs(p, bytes) + BlockUs(p, count, static_cast<double>(a.outputs)),
         .variant = kBlock});
    if (d.base == "reduce_sum" && type == MGE_DTYPE_F32) {
      add({.id = "gpu.reduce.atomic",
           .rank = 10,
           .attributes = kLaunched | MGE_KERNEL_USES_ATOMICS,
           .cost_us = GpuUs(p, bytes, 0, 2) + BlockUs(p, std::min(count, 4096.0), static_cast<double>(a.outputs)) +
                      8e-3 * static_cast<double>(a.outputs),
           .variant = kAtomic});
    }
    return {};
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Described d;
    if (!Describe(p, static_cast<Layout>(c.variant >> kLayoutBit), &d).ok()) return nullptr;
    const uint64_t kind = c.variant & ((uint64_t{1} << kLayoutBit) - 1);
    Value x = p.node().input(0), y = p.node().output(0);
    mge_dtype type = x.dtype() == MGE_DTYPE_BOOL ? MGE_DTYPE_U8 : x.dtype();
    Operand in = Operand::In(InputOf(p, 0)), out = Operand::Out();
    Recipe recipe;
    if (d.copies) {
      recipe.AddCopy(out, in, y.bytes());
    } else if (d.args.outputs == 0) {
    } else if (d.args.count == 0) {
      recipe.AddConstant(out, BitsOf(Find(p.node()).of_nothing, type), static_cast<int64_t>(y.elements()),
                         ElementBytes(type));
    } else if (kind == kAtomic) {
      d.args.splits = std::clamp<int64_t>(d.args.count / 4096, 1, 64);
      recipe.AddFill(out, 0, y.bytes());
      recipe.Add("reduce_atomic_sum_f32", Rows(d.args.outputs * d.args.splits), d.args, {in, out});
    } else if (kind == kSplitThread || kind == kSplitBlock) {
      ReduceArgs& a = d.args;
      a.splits = SplitsOf(a, static_cast<Kind>(kind));
      recipe.SetWorkspace(PartBytes(a, a.splits, type));
      const int64_t units = a.outputs * a.splits;
      const bool threads = kind == kSplitThread;
      recipe.Add(KernelFor(PartsOf(d.base) + (threads ? "_thread" : "_block"), type), threads ? Spread(units) : Rows(units),
                 a, {in, Operand::Work()});
      recipe.Add(KernelFor(d.base + "_join", type), Spread(a.outputs), a, {Operand::Work(), out});
    } else if (kind == kBlock) {
      recipe.Add(KernelFor(d.base + "_block", type), Rows(d.args.outputs), d.args, {in, out});
    } else {
      recipe.Add(KernelFor(d.base + "_thread", type), Spread(d.args.outputs), d.args, {in, out});
    }
    return std::move(recipe).Make();
  }
};

constexpr auto kRows = [] {
  std::array<KernelRow, std::size(kReductions)> rows = {};
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = Row<ReduceRow>(kReductions[i].op.data());
  return rows;
}();

}  // namespace

MGE_KERNELS(reduce) = kRows;

}  // namespace mge::gpu
