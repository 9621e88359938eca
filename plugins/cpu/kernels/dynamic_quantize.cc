// SPDX-License-Identifier: Apache-2.0
// DynamicQuantizeLinear: the range of the data, then its bytes.
#include <algorithm>
#include <cmath>

#include "support/kernel.h"
#include "support/work.h"
#include "vec/recurrent.h"
#include "vec/tile.h"

namespace mge::cpu {
namespace {

struct Args {
  const RecurrentTable* table;
  TileFn quantize;
  Chunks chunks;
  Slot x, y, scale, zero, workspace;
};

// The limits of a chunk, which always contain 0.
struct Range {
  float low, high;
};

mge_code Launch(const Args& a, const mge_run* run) {
  const float* x = At<float>(run, a.x);
  auto* y = At<uint8_t>(run, a.y);
  auto* ranges = At<Range>(run, a.workspace);
  Range all = {0, 0};
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    Range r = {0, 0};
    a.table->cover(x + begin, static_cast<int64_t>(end - begin), &r.low, &r.high);
    ranges[begin / a.chunks.per_chunk] = r;
  });
  for (uint64_t i = 0; i < (a.chunks.items ? a.chunks.count : 0); ++i) {
    all = {std::min(all.low, ranges[i].low), std::max(all.high, ranges[i].high)};
  }
  const float scale = all.high == all.low ? 1.0f : (all.high - all.low) / 255.0f;
  const auto zero = static_cast<uint8_t>(std::nearbyint(std::clamp(0.0f - all.low / scale, 0.0f, 255.0f)));
  *At<float>(run, a.scale) = scale;
  *At<uint8_t>(run, a.zero) = zero;
  const float params[2] = {1, 1};
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    a.quantize(x + begin, &scale, &zero, y + begin, static_cast<int64_t>(end - begin), params);
  });
  return MGE_OK;
}

double SerialUs(const Value& x, Isa isa) {
  const double ns = isa == Isa::kAvx512 ? 0.12 : isa == Isa::kAvx2 ? 0.25 : 1.5;
  return 0.05 + 2 * StreamUs(static_cast<double>(x.bytes())) + 1e-3 * ns * static_cast<double>(x.elements());
}

Chunks Split(const Value& x, Isa isa) {
  return SplitWork(x.elements(), x.elements() ? SerialUs(x, isa) / static_cast<double>(x.elements()) : 0);
}

struct DynamicQuantizeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    if (!p.node().has_output(0) || !p.node().has_output(1) || !p.node().has_output(2)) {
      return offers.Refuse("an output is absent");
    }
    const Isa isa = AllowedIsa();
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Candidate c = {.id = last ? "cpu.dynamic_quantize.nhwc" : "cpu.dynamic_quantize",
                     .attributes = kExact,
                     .workspace = Split(x, isa).count * sizeof(Range),
                     .cost_us = RunUs(p, SerialUs(x, isa))};
      if (last) {
        c.inputs = {ChannelsLast(x.rank())};
        c.outputs = {ChannelsLast(x.rank()), PlainLayout(), PlainLayout()};
      }
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    const Isa isa = IsaOf(c);
    Args a = {};
    a.table = &RecurrentCells(isa);
    a.quantize = FindQuantize(isa, MGE_DTYPE_U8, false);
    a.chunks = Split(p.node().input(0), isa);
    return MakeSimple<Args, Launch>(
        [a](const Binding& b) {
          Args out = a;
          out.x = b.input(0);
          out.y = b.output(0);
          out.scale = b.output(1);
          out.zero = b.output(2);
          out.workspace = b.workspace();
          return out;
        },
        a.chunks.count * sizeof(Range));
  }
};

constexpr KernelRow kRows[] = {Row<DynamicQuantizeRow>("DynamicQuantizeLinear")};

}  // namespace

MGE_KERNELS(dynamic_quantize) = kRows;

}  // namespace mge::cpu
