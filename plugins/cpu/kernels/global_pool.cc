// SPDX-License-Identifier: Apache-2.0
// GlobalAveragePool and GlobalMaxPool: reductions over the spatial dimensions.
#include "support/kernel.h"
#include "support/work.h"
#include "vec/reduce.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, y;
  ReduceSpec spec;
  ReduceFn fn;
  Chunks chunks;
};

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<char>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    a.fn(a.spec, x, y, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  });
  return MGE_OK;
}

ReduceOp OpOf(const Node& n) { return n.op() == "GlobalMaxPool" ? ReduceOp::kMax : ReduceOp::kMean; }

// Estimates the time on one thread. Each contiguous plane adds a fixed cost. With channels last, a vector holds channels of
// one position: fewer than 16 use a part of it only.
double SerialUs(const Value& x, Isa isa, bool channels_last) {
  double planes = channels_last ? 0 : static_cast<double>(x.dim(0) * x.dim(1));
  double element_ns = isa == Isa::kPortable ? 0.2 : !channels_last ? 0.04 : x.dim(1) < 16 ? 0.4 : 0.07;
  return StreamUs(static_cast<double>(x.bytes())) + 12e-3 * planes + 1e-3 * element_ns * static_cast<double>(x.elements());
}

struct GlobalPoolRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    if (!IsFloating(x.dtype())) return offers.Refuse("only floating types");
    if (x.rank() < 2 || x.elements() == 0) return offers.Refuse("nothing to pool");
    Isa isa = AllowedIsa();
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Candidate c = {.id = last ? "cpu.global_pool.nhwc" : "cpu.global_pool",
                     .attributes = kExact,
                     .cost_us = RunUs(p, SerialUs(x, isa, last)),
                     .variant = last ? 1u : 0u};
      if (last) c.inputs = c.outputs = {ChannelsLast(x.rank())};
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Value x = p.node().input(0);
    Args a = {};
    int64_t batch = x.dim(0), channels = x.dim(1), n = 1;
    for (int d = 2; d < x.rank(); ++d) n *= x.dim(d);
    ReduceSpec& s = a.spec;
    s.count = n;
    s.kept = 1;
    int64_t units = batch * channels;
    if (KindOf(c) == 1) {
      s.inner = channels;
      s.kept_dims[0] = batch;
      s.kept_strides[0] = n * channels;
      s.reduced = 1;
      s.reduced_dims[0] = n;
      s.reduced_strides[0] = channels;
      units = batch * ((channels + kReduceColumns - 1) / kReduceColumns);
    } else {
      s.inner_reduced = true;
      s.inner = n;
      s.kept_dims[0] = batch * channels;
      s.kept_strides[0] = n;
    }
    a.fn = FindReduce(IsaOf(c), OpOf(p.node()), x.dtype());
    a.chunks = SplitWork(static_cast<uint64_t>(units), SerialUs(x, IsaOf(c), KindOf(c) == 1) / static_cast<double>(units));
    return MakeSimple<Args, Launch>([a](const Binding& b) {
      Args out = a;
      out.x = b.input(0);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<GlobalPoolRow>("GlobalAveragePool"), Row<GlobalPoolRow>("GlobalMaxPool")};

}  // namespace

MGE_KERNELS(global_pool) = kRows;

}  // namespace mge::cpu
