// SPDX-License-Identifier: Apache-2.0
// InstanceNormalization and GroupNormalization.
#include "mge/plugin/problems/normalization.hpp"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/rows.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, y, scale, bias;
  int64_t groups, channels, n;  // channels per group
  bool channels_last;
  int64_t bytes;
  double epsilon;
  void (*fn)(const NormGroup&);
  Chunks chunks;
};

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<char>(run, a.y);
  auto* scale = At<const char>(run, a.scale);
  auto* bias = At<const char>(run, a.bias);
  int64_t all = a.groups * a.channels;
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    for (auto u = static_cast<int64_t>(begin); u < static_cast<int64_t>(end); ++u) {
      int64_t image = u / a.groups, group = u % a.groups, channel = group * a.channels;
      int64_t offset = (a.channels_last ? image * all * a.n + channel : (image * all + channel) * a.n) * a.bytes;
      a.fn({x + offset, y + offset, scale + channel * a.bytes, bias + channel * a.bytes, a.channels, a.n,
            a.channels_last ? all : 0, a.epsilon});
    }
  });
  return MGE_OK;
}

double SerialUs(const Value& x, Isa isa) {
  return StreamUs(3.0 * static_cast<double>(x.bytes())) +
         1e-3 * (isa == Isa::kPortable ? 0.4 : 0.1) * static_cast<double>(x.elements());
}

struct GroupNormRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    Value x = n.input(0);
    if (FloatIndex(x.dtype()) < 0) return offers.Refuse("only floating types");
    Normalization norm;
    if (Result r = ReadNormalization(n, &norm); !r.ok()) return offers.Refuse(r.text());
    Isa isa = AllowedIsa();
    for (bool last : {false, true}) {
      // With channels last, groups of few channels use little of every cache line.
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant() || norm.group_channels() < 4)) continue;
      Candidate c = {.id = last ? "cpu.group_norm.nhwc" : "cpu.group_norm",
                     .attributes = kExact,
                     .cost_us = RunUs(p, SerialUs(x, isa) * (last ? 1.3 : 1.0)),
                     .variant = last ? 1u : 0u,
                     .in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}}};
      if (last) {
        c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
        c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(x.rank());
        c.outputs = {ChannelsLast(x.rank())};
      }
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Value x = n.input(0);
    Normalization norm;
    if (!ReadNormalization(n, &norm).ok()) return nullptr;
    Isa isa = IsaOf(c);
    Args a = {};
    a.groups = norm.groups;
    a.channels = norm.group_channels();
    a.n = norm.channel_elements;
    a.channels_last = KindOf(c) == 1;
    a.bytes = SizeOf(x.dtype());
    a.epsilon = norm.epsilon;
    a.fn = Rows(isa).group[FloatIndex(x.dtype())];
    int64_t units = x.elements() ? x.dim(0) * a.groups : 0;
    a.chunks = SplitWork(static_cast<uint64_t>(units), units ? SerialUs(x, isa) / static_cast<double>(units) : 0);
    return MakeSimple<Args, Launch>([a, xi = p.operand(0, 0), si = p.operand(0, 1), bi = p.operand(0, 2)](const Binding& b) {
      Args out = a;
      out.x = b.input(xi);
      out.scale = b.input(si);
      out.bias = b.input(bi);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<GroupNormRow>("InstanceNormalization"), Row<GroupNormRow>("GroupNormalization")};

}  // namespace

MGE_KERNELS(group_norm) = kRows;

}  // namespace mge::cpu
