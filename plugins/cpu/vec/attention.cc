// SPDX-License-Identifier: Apache-2.0
#include "vec/attention.h"

#include "vec/math.h"
#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Keys whose scores are computed at a time: a multiple of the lanes.
constexpr int64_t kBlock = 256;
// Keys that share the loads of the queries.
constexpr int kKeys = kVectorBytes == 64 ? 4 : 2;
// Vectors of a head whose sums are in registers.
constexpr int kParts = 4;
constexpr float kNever = -__builtin_inff();

MGE_INLINE VF LoadPart(const float* p, int64_t n) { return n >= kF ? Load(p) : LoadN(p, static_cast<int>(n)); }

// scores[r][j] = q_r . k_j for `count` keys from k on. kRows and kNow are numbers that the compiler knows, to keep the sums in
// registers.
template <int kRows, int kNow>
MGE_INLINE void Dot(const AttendTask& t, const float* k, float (*scores)[kBlock], int64_t j) {
  VF sums[kRows][kNow] = {};
  for (int64_t d = 0; d < t.size; d += kF) {
    VF key[kNow];
    MGE_UNROLL
    for (int i = 0; i < kNow; ++i) key[i] = LoadPart(k + i * t.size + d, t.size - d);
    MGE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF q = LoadPart(t.q[r] + d, t.size - d);
      MGE_UNROLL
      for (int i = 0; i < kNow; ++i) sums[r][i] = Fma(q, key[i], sums[r][i]);
    }
  }
  MGE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MGE_UNROLL
    for (int i = 0; i < kNow; ++i) scores[r][j + i] = Sum(sums[r][i]);
  }
}

// out_r = out_r * factor_r + the sum of p[r][j] * v_j over `count` values from v on.
template <int kRows, int kPart>
MGE_INLINE void Mix(const AttendTask& t, const float* v, const float (*p)[kBlock], int64_t count, int64_t d,
                    const float* factors) {
  VF sums[kRows][kPart];
  MGE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MGE_UNROLL
    for (int i = 0; i < kPart; ++i) sums[r][i] = LoadPart(t.out[r] + d + i * kF, t.size - d - i * kF) * factors[r];
  }
  for (int64_t j = 0; j < count; ++j) {
    VF value[kPart];
    MGE_UNROLL
    for (int i = 0; i < kPart; ++i) value[i] = LoadPart(v + j * t.size + d + i * kF, t.size - d - i * kF);
    MGE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      MGE_UNROLL
      for (int i = 0; i < kPart; ++i) sums[r][i] = Fma(Splat(p[r][j]), value[i], sums[r][i]);
    }
  }
  MGE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MGE_UNROLL
    for (int i = 0; i < kPart; ++i) {
      const int64_t left = t.size - d - i * kF;
      left >= kF ? Store(t.out[r] + d + i * kF, sums[r][i])
                 : StoreN(t.out[r] + d + i * kF, sums[r][i], static_cast<int>(left));
    }
  }
}

// The softmax of one row so far.
struct RunningSoftmax {
  float maximum = kNever, sum = 0;
};

// Replaces scores by exp(score - maximum). Returns the factor on everything that was summed with an earlier maximum. Keys that the
// row does not see have the score -infinity.
MGE_INLINE float Exponents(float* scores, int64_t count, float softcap, RunningSoftmax& softmax) {
  const int64_t padded = (count + kF - 1) / kF * kF;
  for (int64_t j = count; j < padded; ++j) scores[j] = kNever;
  VF largest = Splat(softmax.maximum);
  for (int64_t j = 0; j < padded; j += kF) {
    VF s = Load(scores + j);
    if (softcap > 0) {
      s = s == Splat(kNever) ? s : Tanh(s / softcap) * softcap;
      Store(scores + j, s);
    }
    largest = Max(largest, s);
  }
  const float now = MaxOf(largest);
  const bool sees = now != kNever;
  VF total = {};
  for (int64_t j = 0; j < padded; j += kF) {
    const VF s = Load(scores + j);
    const VF e = s == Splat(kNever) ? VF{} : Exp(s - now);
    Store(scores + j, e);
    total += e;
  }
  const float factor = softmax.maximum == kNever ? 0 : Exp(Splat(softmax.maximum - now))[0];
  softmax = {now, softmax.sum * factor + Sum(total)};
  return sees ? factor : 0;
}

template <int kRows>
void AttendOf(const AttendTask& t) {
  RunningSoftmax softmax[kRows];
  float factors[kRows];
  int64_t first = t.begin[0], last = t.end[0];
  for (int r = 0; r < kRows; ++r) {
    first = t.begin[r] < first ? t.begin[r] : first;
    last = t.end[r] > last ? t.end[r] : last;
    for (int64_t d = 0; d < t.size; ++d) t.out[r][d] = 0;
  }
  alignas(64) float scores[kRows][kBlock];
  for (int64_t j0 = first; j0 < last; j0 += kBlock) {
    const int64_t count = last - j0 < kBlock ? last - j0 : kBlock;
    const float *k = t.k + j0 * t.size, *v = t.v + j0 * t.size;
    int64_t j = 0;
    for (; j + kKeys <= count; j += kKeys) Dot<kRows, kKeys>(t, k + j * t.size, scores, j);
    for (; j < count; ++j) Dot<kRows, 1>(t, k + j * t.size, scores, j);
    for (int r = 0; r < kRows; ++r) {
      for (j = 0; j < count && j0 + j < t.begin[r]; ++j) scores[r][j] = kNever;
      for (j = t.end[r] > j0 ? t.end[r] - j0 : 0; j < count; ++j) scores[r][j] = kNever;
      factors[r] = Exponents(scores[r], count, t.softcap, softmax[r]);
    }
    int64_t d = 0;
    for (; d + kParts * kF <= t.size; d += kParts * kF) Mix<kRows, kParts>(t, v, scores, count, d, factors);
    for (; d < t.size; d += kF) Mix<kRows, 1>(t, v, scores, count, d, factors);
  }
  for (int r = 0; r < kRows; ++r) {
    if (t.has_sinks) softmax[r].sum += Exp(Splat(t.sinks[r] - softmax[r].maximum))[0];
    for (int64_t d = 0; d < t.size; ++d) t.out[r][d] /= softmax[r].sum;
  }
}

void Attend(const AttendTask& t) {
  switch (t.rows) {
    case 1: return AttendOf<1>(t);
    case 2: return AttendOf<2>(t);
    case 3: return AttendOf<3>(t);
    default: return AttendOf<4>(t);
  }
}

}  // namespace

extern const AttentionTable kAttention = {Attend};

}  // namespace mge::cpu::MGE_CPU_ISA
