// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization.
#include "mge/plugin/problems/normalization.hpp"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/rows.h"

namespace mge::cpu {
namespace {

using NormFn = void (*)(const NormRows&, int64_t, int64_t);

struct Args {
  Slot x, y, scale, bias, mean, inv_std;
  bool has_scale, has_bias, has_mean, has_inv_std, centred;
  int64_t n;
  double epsilon;
  NormFn fn;
  Chunks chunks;
};

mge_code Launch(const Args& a, const mge_run* run) {
  NormRows s = {};
  s.x = At<char>(run, a.x);
  s.y = At<char>(run, a.y);
  if (a.has_scale) s.scale = At<char>(run, a.scale);
  if (a.has_bias) s.bias = At<char>(run, a.bias);
  if (a.has_mean) s.mean = At<char>(run, a.mean);
  if (a.has_inv_std) s.inv_std = At<char>(run, a.inv_std);
  s.n = a.n;
  s.epsilon = a.epsilon;
  s.centred = a.centred;
  ForChunks(run, a.chunks,
            [&](uint64_t begin, uint64_t end) { a.fn(s, static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
  return MGE_OK;
}

double SerialUs(const Value& x, Isa isa) {
  double ns = x.dtype() == MGE_DTYPE_F32 ? 0.1 : 0.2;
  return StreamUs(2.0 * static_cast<double>(x.bytes())) +
         1e-3 * ns * (isa == Isa::kPortable ? 3 : 1) * static_cast<double>(x.elements());
}

struct LayerNormRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    Value x = n.input(0);
    if (FloatIndex(x.dtype()) < 0) return offers.Refuse("only floating types");
    Normalization norm;
    if (Result r = ReadNormalization(n, &norm); !r.ok()) return offers.Refuse(r.text());
    Isa isa = AllowedIsa();
    Candidate c = {.id = "cpu.norm", .attributes = kExact, .cost_us = RunUs(p, SerialUs(x, isa))};
    if (p.output_count() == 1) c.in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}};
    Add(offers, isa, std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Value x = n.input(0);
    Normalization r;
    if (!ReadNormalization(n, &r).ok()) return nullptr;
    Isa isa = IsaOf(c);
    Args a = {};
    a.has_scale = n.has_input(1);
    a.has_bias = n.has_input(2);
    a.has_mean = n.has_output(1);
    a.has_inv_std = n.has_output(2);
    a.centred = r.centred;
    a.n = r.n;
    a.epsilon = r.epsilon;
    a.fn = Rows(isa).norm[FloatIndex(x.dtype())];
    int64_t rows = r.n == 0 ? 0 : r.rows;
    a.chunks = SplitWork(static_cast<uint64_t>(rows), rows ? SerialUs(x, isa) / static_cast<double>(rows) : 0);
    int inputs[3] = {p.operand(0, 0), n.has_input(1) ? p.operand(0, 1) : 0, n.has_input(2) ? p.operand(0, 2) : 0};
    int mean = a.has_mean ? 1 : 0, inv_std = a.has_inv_std ? 1 + mean : 0;
    return MakeSimple<Args, Launch>(
        [a, x = inputs[0], scale = inputs[1], bias = inputs[2], mean, inv_std](const Binding& b) {
          Args out = a;
          out.x = b.input(x);
          out.scale = b.input(scale);
          out.bias = b.input(bias);
          out.y = b.output(0);
          out.mean = b.output(mean);
          out.inv_std = b.output(inv_std);
          return out;
        });
  }
};

constexpr KernelRow kRows[] = {Row<LayerNormRow>("LayerNormalization"), Row<LayerNormRow>("RMSNormalization")};

}  // namespace

MGE_KERNELS(layer_norm) = kRows;

}  // namespace mge::cpu
