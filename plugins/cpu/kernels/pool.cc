// SPDX-License-Identifier: Apache-2.0
// MaxPool, with or without indices, AveragePool, and LpPool with p = 1 or 2.
#include "vec/pool.h"

#include "mge/plugin/problems/window.hpp"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, y, indices;
  PoolSpec spec;
  PoolFn fn;
  IndexedPoolFn indexed;
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

mge_code LaunchIndexed(const Args& a, const mge_run* run) {
  auto* x = At<const float>(run, a.x);
  auto* y = At<float>(run, a.y);
  auto* indices = At<int64_t>(run, a.indices);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    a.indexed(a.spec, x, y, indices, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  });
  return MGE_OK;
}

PoolOp OpOf(const Node& n) {
  if (n.op() == "MaxPool") return PoolOp::kMax;
  if (n.op() == "LpPool") return n.Int("p") == 1 ? PoolOp::kL1 : PoolOp::kL2;
  return n.Int("count_include_pad") ? PoolOp::kAverageWithPads : PoolOp::kAverage;
}

Result Describe(const Node& n, PoolSpec* spec) {
  if (Result r = ReadWindow(n, spec->axis); !r.ok()) return r;
  spec->channels = n.input(0).dim(1);
  return {};
}

// Returns the reason if there is no kernel for the node's indices.
std::string_view WhyNotIndexed(const Node& n, const PoolSpec& s) {
  if (n.input(0).dtype() != MGE_DTYPE_F32) return "indices only of float32";
  if (n.Int("storage_order") != 0) return "indices only in row-major order";
  if (s.axis[0].in * s.axis[1].in * s.axis[2].in > INT32_MAX) return "indices only of planes below 2^31 elements";
  return {};
}

double SerialUs(const Node& n, const PoolSpec& s, Isa isa, bool channels_last) {
  const double rows = static_cast<double>(s.axis[0].kernel * s.axis[1].kernel);
  const auto columns = static_cast<double>(s.axis[2].kernel), stride = static_cast<double>(s.axis[2].stride);
  Value x = n.input(0), y = n.output(0);
  double vector_ns = (isa == Isa::kAvx512 ? 0.055 : isa == Isa::kAvx2 ? 0.09 : 0.3) * (SizeOf(x.dtype()) == 1 ? 0.3 : 1);
  // Plain rows are joined before their columns, and each row of the output has a start.
  double ns = channels_last ? vector_ns * rows * columns
                            : vector_ns * (rows + columns) * stride + 0.2 +
                                  12.0 / static_cast<double>(std::max<int64_t>(1, s.axis[2].out));
  const bool indexed = n.has_output(1);
  if (indexed) ns = channels_last ? 2 * ns + 0.3 : 2 * ns + 1.5 * static_cast<double>(s.axis[2].kernel);
  const auto bytes = static_cast<double>(x.bytes() + (indexed ? 3 : 1) * y.bytes());
  return WindowUs(bytes) + 1e-3 * ns * static_cast<double>(y.elements());
}

struct PoolRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    PoolSpec spec;
    if (Result r = Describe(n, &spec); !r.ok()) return offers.Refuse(r.text());
    if (n.op() == "LpPool" && n.Int("p") != 1 && n.Int("p") != 2) return offers.Refuse("only the norms 1 and 2");
    const bool indexed = n.has_output(1);
    if (indexed) {
      if (std::string_view why = WhyNotIndexed(n, spec); !why.empty()) return offers.Refuse(why);
    }
    Isa isa = AllowedIsa();
    int rank = n.input(0).rank();
    for (bool last : {false, true}) {
      if (last && n.input(0).is_constant()) continue;
      if (!Pool(isa).find(OpOf(n), n.input(0).dtype(), last)) {
        return offers.Refuse("no kernel for " + std::string(TypeName(n.input(0).dtype())));
      }
      Candidate c = {.id = last ? "cpu.pool.nhwc" : "cpu.pool",
                     .attributes = kExact,
                     .cost_us = RunUs(p, SerialUs(n, spec, isa, last)),
                     .variant = last ? 1u : 0u};
      if (indexed) c.id += ".indexed";
      if (last) {
        c.inputs = {ChannelsLast(rank)};
        c.outputs.assign(indexed ? 2 : 1, ChannelsLast(rank));
      }
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Args a = {};
    if (!Describe(n, &a.spec).ok()) return nullptr;
    bool last = KindOf(c) == 1;
    Isa isa = IsaOf(c);
    a.fn = Pool(isa).find(OpOf(n), n.input(0).dtype(), last);
    Value y = n.output(0);
    int64_t units = y.elements() ? y.dim(0) * (last ? 1 : y.dim(1)) * a.spec.axis[0].out * a.spec.axis[1].out : 0;
    a.chunks =
        SplitWork(static_cast<uint64_t>(units), units ? SerialUs(n, a.spec, isa, last) / static_cast<double>(units) : 0);
    if (n.has_output(1)) {
      a.indexed = last ? Pool(isa).indexed_channels_last : Pool(isa).indexed;
      return MakeSimple<Args, LaunchIndexed>([a](const Binding& b) {
        Args out = a;
        out.x = b.input(0);
        out.y = b.output(0);
        out.indices = b.output(1);
        return out;
      });
    }
    return MakeSimple<Args, Launch>([a](const Binding& b) {
      Args out = a;
      out.x = b.input(0);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<PoolRow>("MaxPool"), Row<PoolRow>("AveragePool"), Row<PoolRow>("LpPool")};

}  // namespace

MGE_KERNELS(pool) = kRows;

}  // namespace mge::cpu
