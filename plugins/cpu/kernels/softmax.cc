// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax along any axis.
#include "support/kernel.h"
#include "support/work.h"
#include "vec/rows.h"

namespace mge::cpu {
namespace {

using SoftmaxFn = void (*)(const SoftmaxRows&, int64_t, int64_t);

struct Args {
  Slot x, y;
  int64_t n, inner;
  bool log;
  SoftmaxFn fn;
  Chunks chunks;
};

mge_code Launch(const Args& a, const mge_run* run) {
  SoftmaxRows s = {At<char>(run, a.x), At<char>(run, a.y), a.n, a.inner, a.log};
  ForChunks(run, a.chunks,
            [&](uint64_t begin, uint64_t end) { a.fn(s, static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
  return MGE_OK;
}

// The axis among the dimensions in memory order: `outer` blocks of n by inner elements.
struct Extent {
  int64_t outer = 1, n = 1, inner = 1;
};

Extent ExtentOf(const Value& x, int64_t axis, bool channels_last) {
  Extent e;
  mge_layout last = ChannelsLast(x.rank());
  bool before = true;
  for (int i = 0; i < x.rank(); ++i) {
    int d = channels_last ? last.perm[i] : i;
    if (d == axis) {
      e.n = x.dim(d);
      before = false;
    } else {
      (before ? e.outer : e.inner) *= x.dim(d);
    }
  }
  return e;
}

Extent ExtentIn(const Problem& p, bool channels_last) {
  Value x = p.node().input(0);
  return x.rank() == 0 ? Extent() : ExtentOf(x, p.node().Int("axis"), channels_last);
}

double SerialUs(const Value& x, const Extent& e, Isa isa) {
  constexpr double kRowUs = 0.03;  // of a row that lies together
  double rows = e.inner == 1 ? static_cast<double>(e.outer) : 0;
  double ns = x.dtype() == MGE_DTYPE_F64 ? 10 : isa == Isa::kAvx512 ? 0.5 : isa == Isa::kAvx2 ? 1.0 : 2.5;
  return StreamUs(2.0 * static_cast<double>(x.bytes())) + 1e-3 * ns * static_cast<double>(x.elements()) + kRowUs * rows;
}

struct SoftmaxRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    if (FloatIndex(x.dtype()) < 0) return offers.Refuse("only floating types");
    Isa isa = AllowedIsa();
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Candidate c = {.id = last ? "cpu.softmax.nhwc" : "cpu.softmax",
                     .attributes = kExact,
                     .cost_us = RunUs(p, SerialUs(x, ExtentIn(p, last), isa)),
                     .variant = last ? 1u : 0u,
                     .in_place = {{0, 0}}};
      if (last) c.inputs = c.outputs = {ChannelsLast(x.rank())};
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Value x = p.node().input(0);
    Extent e = ExtentIn(p, KindOf(c) == 1);
    Isa isa = IsaOf(c);
    int64_t lanes = (isa == Isa::kAvx512 ? 64 : isa == Isa::kAvx2 ? 32 : 16) / (x.dtype() == MGE_DTYPE_F64 ? 8 : 4);
    int64_t units = e.inner == 1 ? e.outer : e.outer * ((e.inner + lanes - 1) / lanes);
    if (x.elements() == 0) units = 0;
    Chunks chunks = SplitWork(static_cast<uint64_t>(units), units ? SerialUs(x, e, isa) / static_cast<double>(units) : 0);
    bool log = p.node().op() == "LogSoftmax";
    SoftmaxFn fn = Rows(isa).softmax[FloatIndex(x.dtype())];
    return MakeSimple<Args, Launch>(
        [=](const Binding& b) { return Args{b.input(0), b.output(0), e.n, e.inner, log, fn, chunks}; });
  }
};

constexpr KernelRow kRows[] = {Row<SoftmaxRow>("Softmax"), Row<SoftmaxRow>("LogSoftmax")};

}  // namespace

MGE_KERNELS(softmax) = kRows;

}  // namespace mge::cpu
