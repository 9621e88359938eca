// SPDX-License-Identifier: Apache-2.0
// BatchNormalization (inference) and LRN.
#include "mge/plugin/problems/normalization.hpp"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/channel.h"
#include "vec/rows.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, y, scale, bias, mean, variance;
  int64_t channels, n, pixels;
  double epsilon;
  bool last;
  int type;
  Isa isa;
  Chunks chunks;
};

mge_code Launch(const Args& a, const mge_run* run) {
  BatchNormSpec s = {At<char>(run, a.x),
                     At<char>(run, a.scale),
                     At<char>(run, a.bias),
                     At<char>(run, a.mean),
                     At<char>(run, a.variance),
                     At<char>(run, a.y),
                     a.channels,
                     a.n,
                     a.epsilon};
  const ChannelTable& table = Channel(a.isa);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    auto b = static_cast<int64_t>(begin), e = static_cast<int64_t>(end);
    if (a.last) {
      table.batch_norm_last[a.type](s, a.pixels, b, e);
    } else {
      table.batch_norm[a.type](s, b, e);
    }
  });
  return MGE_OK;
}

double SerialUs(const Value& x, Isa isa) {
  return StreamUs(2.0 * static_cast<double>(x.bytes())) +
         1e-3 * (isa == Isa::kPortable ? 0.3 : 0.05) * static_cast<double>(x.elements());
}

struct BatchNormRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    Value x = n.input(0);
    if (n.Int("training_mode")) return offers.Refuse("not for training");
    if (FloatIndex(x.dtype()) < 0 || x.rank() < 2) return offers.Refuse("only floating types with a channel dimension");
    if (Result r = CheckParameters(n, 1, 4, x.dim(1)); !r.ok()) return offers.Refuse(r.text());
    Isa isa = AllowedIsa();
    auto data = static_cast<uint32_t>(p.operand(0, 0));
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      Candidate c = {.id = last ? "cpu.batch_norm.nhwc" : "cpu.batch_norm",
                     .attributes = kExact,
                     .cost_us = RunUs(p, SerialUs(x, isa)),
                     .variant = last ? 1u : 0u,
                     .in_place = {{0, data}}};
      if (last) {
        c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
        c.inputs[data] = ChannelsLast(x.rank());
        c.outputs = {ChannelsLast(x.rank())};
      }
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Value x = n.input(0);
    Args a = {};
    a.isa = IsaOf(c);
    a.last = KindOf(c) == 1;
    a.type = FloatIndex(x.dtype());
    a.channels = x.dim(1);
    a.n = 1;
    for (int d = 2; d < x.rank(); ++d) a.n *= x.dim(d);
    a.pixels = x.dim(0) * a.n;
    a.epsilon = n.Float("epsilon");
    int64_t units = a.last ? (a.pixels + kChannelRows - 1) / kChannelRows : x.dim(0) * a.channels;
    if (x.elements() == 0) units = 0;
    a.chunks = SplitWork(static_cast<uint64_t>(units), units ? SerialUs(x, a.isa) / static_cast<double>(units) : 0);
    int operand[5];
    for (int k = 0; k < 5; ++k) operand[k] = p.operand(0, k);
    return MakeSimple<Args, Launch>([a, x = operand[0], scale = operand[1], bias = operand[2], mean = operand[3],
                                     variance = operand[4]](const Binding& b) {
      Args out = a;
      out.x = b.input(x);
      out.scale = b.input(scale);
      out.bias = b.input(bias);
      out.mean = b.input(mean);
      out.variance = b.input(variance);
      out.y = b.output(0);
      return out;
    });
  }
};

struct LrnArgs {
  Slot x, y;
  int64_t channels, n, size;
  double alpha, beta, bias;
  void (*fn)(const LrnSpec&, int64_t, int64_t);
  Chunks chunks;
};

mge_code LaunchLrn(const LrnArgs& a, const mge_run* run) {
  LrnSpec s = {At<char>(run, a.x), At<char>(run, a.y), a.channels, a.n, a.size, a.alpha, a.beta, a.bias};
  ForChunks(run, a.chunks,
            [&](uint64_t begin, uint64_t end) { a.fn(s, static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
  return MGE_OK;
}

double LrnUs(const Node& n) {
  Value x = n.input(0);
  double taps = static_cast<double>(std::min(n.Int("size"), x.dim(1)));
  return StreamUs(2.0 * static_cast<double>(x.bytes())) + 1e-3 * (0.6 + 0.06 * taps) * static_cast<double>(x.elements());
}

struct LrnRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    Value x = n.input(0);
    if (FloatIndex(x.dtype()) < 0 || x.rank() < 2) return offers.Refuse("only floating types with a channel dimension");
    if (n.Int("size") < 1) return offers.Refuse("the size is not positive");
    if (n.Float("bias") <= 0 || n.Float("alpha") < 0) return offers.Refuse("the base of the power could be negative");
    Add(offers, AllowedIsa(), {.id = "cpu.lrn", .attributes = kExact, .cost_us = RunUs(p, LrnUs(n))});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Value x = n.input(0);
    LrnArgs a = {};
    a.channels = x.dim(1);
    a.n = 1;
    for (int d = 2; d < x.rank(); ++d) a.n *= x.dim(d);
    a.size = n.Int("size");
    a.alpha = n.Float("alpha");
    a.beta = n.Float("beta");
    a.bias = n.Float("bias");
    a.fn = Channel(IsaOf(c)).lrn[FloatIndex(x.dtype())];
    uint64_t images = x.elements() ? static_cast<uint64_t>(x.dim(0)) : 0;
    a.chunks = SplitWork(images, images ? LrnUs(n) / static_cast<double>(images) : 0);
    return MakeSimple<LrnArgs, LaunchLrn>([a](const Binding& b) {
      LrnArgs out = a;
      out.x = b.input(0);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<BatchNormRow>("BatchNormalization"), Row<LrnRow>("LRN")};

}  // namespace

MGE_KERNELS(batch_norm) = kRows;

}  // namespace mge::cpu
