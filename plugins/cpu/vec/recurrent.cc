// SPDX-License-Identifier: Apache-2.0
#include "vec/recurrent.h"

#include "vec/activation.h"
#include "vec/lanes.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

using Lane = LaneOf<float>;

__attribute__((noinline)) VF Uncommon(VF x, const GateActivation& a) {
  switch (a.function) {
    case GateFunction::kRelu: return x < 0.0f ? Splat(0.0f) : x;
    case GateFunction::kAffine: return a.alpha * x + a.beta;
    case GateFunction::kLeakyRelu: return x >= 0.0f ? x : a.alpha * x;
    case GateFunction::kThresholdedRelu: return x > a.alpha ? x : Splat(0.0f);
    case GateFunction::kScaledTanh: return a.alpha * Tanh(a.beta * x);
    case GateFunction::kHardSigmoid: return Clip(a.alpha * x + a.beta, Splat(0.0f), Splat(1.0f));
    case GateFunction::kElu: return x >= 0.0f ? x : a.alpha * Expm1(x);
    case GateFunction::kSoftsign: return x / (1.0f + Abs(x));
    case GateFunction::kSoftplus: return Softplus(x);
    case GateFunction::kTanh:
    case GateFunction::kSigmoid: break;
  }
  return x;
}

// Applies activation number k to a cell.
MGE_INLINE VF Unclipped(const CellTask& t, int k, VF x) {
  const GateActivation& a = t.f[k];
  if (a.function == GateFunction::kSigmoid) return Sigmoid(x);
  if (a.function == GateFunction::kTanh) return Tanh(x);
  return Uncommon(x, a);
}
// Clips the sum of a gate, then applies activation number k.
MGE_INLINE VF Activate(const CellTask& t, int k, VF x) { return Unclipped(t, k, Clip(x, Splat(-t.clip), Splat(t.clip))); }

// Calls body(block, first unit, units, offset in the block) for each vector of the blocks.
template <typename F>
MGE_INLINE void ForUnits(const CellTask& t, int64_t b0, int64_t b1, F body) {
  for (int64_t b = b0; b < b1; ++b) {
    for (int64_t v = 0; v < t.columns; v += kF) {
      int64_t unit = b * t.columns + v, left = t.hidden - unit;
      if (left <= 0) return;
      body(b, unit, static_cast<int>(left < kF ? left : kF), v);
    }
  }
}

MGE_INLINE void PutState(const CellRow& row, int64_t unit, int n, VF h) {
  Lane::Put(row.next + unit, h, n);
  if (row.y) Lane::Put(row.y + unit, h, n);
}

void Rnn(const CellTask& t, const CellRow& row, int64_t b0, int64_t b1) {
  ForUnits(t, b0, b1, [&](int64_t b, int64_t unit, int n, int64_t v) {
    PutState(row, unit, n, Activate(t, 0, Load(row.gates + b * t.columns + v)));
  });
}

void GruGates(const CellTask& t, const CellRow& row, int64_t b0, int64_t b1) {
  ForUnits(t, b0, b1, [&](int64_t b, int64_t unit, int n, int64_t v) {
    float* g = row.gates + 2 * b * t.columns + v;
    VF reset = Activate(t, 0, Load(g + t.columns));
    Store(g, Activate(t, 0, Load(g)));
    if (t.linear_before_reset)
      Store(g + t.columns, reset);
    else
      Lane::Put(row.reset + unit, reset * Lane::Get(row.h + unit, n), n);
  });
}

void Gru(const CellTask& t, const CellRow& row, int64_t b0, int64_t b1) {
  ForUnits(t, b0, b1, [&](int64_t b, int64_t unit, int n, int64_t v) {
    const float* g = row.gates + 2 * b * t.columns + v;
    const float* hidden = row.gates + (2 * t.blocks + b) * t.columns + v;
    VF update = Load(g), sum = Load(hidden), h = Lane::Get(row.h + unit, n);
    if (t.linear_before_reset) sum = Fma(Load(g + t.columns), sum, Load(row.input + b * t.columns + v));
    PutState(row, unit, n, (1.0f - update) * Activate(t, 1, sum) + update * h);
  });
}

void Lstm(const CellTask& t, const CellRow& row, int64_t b0, int64_t b1) {
  ForUnits(t, b0, b1, [&](int64_t b, int64_t unit, int n, int64_t v) {
    const float* g = row.gates + 4 * b * t.columns + v;
    VF in = Load(g), out = Load(g + t.columns), forget = Load(g + 2 * t.columns), cell = Load(g + 3 * t.columns);
    VF c = Lane::Get(row.c + unit, n);
    const float* peepholes = t.peepholes ? t.peepholes + unit : nullptr;
    if (peepholes) {
      in = Fma(Lane::Get(peepholes, n), c, in);
      forget = Fma(Lane::Get(peepholes + 2 * t.hidden, n), c, forget);
    }
    in = Activate(t, 0, in);
    forget = t.input_forget ? 1.0f - in : Activate(t, 0, forget);
    c = forget * c + in * Activate(t, 1, cell);
    if (peepholes) out = Fma(Lane::Get(peepholes + t.hidden, n), c, out);
    Lane::Put(row.c + unit, c, n);
    PutState(row, unit, n, Activate(t, 0, out) * Unclipped(t, 2, c));
  });
}

template <typename F>
MGE_INLINE void ForVectors(int64_t n, F body) {
  for (int64_t i = 0; i < n; i += kF) body(i, static_cast<int>(n - i < kF ? n - i : kF));
}

// Widens the range to include x; ignores NaN.
void Cover(const float* x, int64_t n, float* low, float* high) {
  VF least = Splat(*low), most = Splat(*high);
  ForVectors(n, [&](int64_t i, int lanes) {
    VF v = Lane::Get(x + i, lanes);  // zeros beyond the end: the range always includes 0
    least = MinRaw(v, least);
    most = MaxRaw(v, most);
  });
  *low = MinOf(least);
  *high = MaxOf(most);
}

void Requantize(const float* x, int64_t n, float scale, float zero, float* out) {
  ForVectors(n, [&](int64_t i, int lanes) {
    VF q = RoundEven(Lane::Get(x + i, lanes) / scale) + zero;
    q = MinRaw(MaxRaw(q, Splat(0.0f)), Splat(255.0f));  // NaN becomes 0
    Lane::Put(out + i, (q - zero) * scale, lanes);
  });
}

}  // namespace

extern const RecurrentTable kRecurrentCells = {Rnn, GruGates, Gru, Lstm, Cover, Requantize};

}  // namespace mge::cpu::MGE_CPU_ISA
