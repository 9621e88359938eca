// SPDX-License-Identifier: Apache-2.0
#include "vec/int8_depthwise.h"

#include "vec/int8_finish.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Calls pixel(taps, index) for each output pixel of rows r0..r1, with the addresses of the input pixels under the filter. The
// number of taps is rounded up to a multiple of 4.
template <typename F>
MGE_INLINE void ForPixels(const Int8DepthwiseTask& t, int64_t r0, int64_t r1, F&& pixel) {
  const ConvWindows& w = t.windows;
  const uint8_t* taps[kInt8DepthwiseTaps];
  for (int64_t i = 0; i < kInt8DepthwiseTaps; ++i) taps[i] = t.outside;
  for (int64_t row = r0; row < r1; ++row) {
    const uint8_t* image = static_cast<const uint8_t*>(t.x) + row / w.oh * w.h * w.w * t.channels;
    const int64_t top = row % w.oh * w.sh - w.ph;
    for (int64_t x = 0; x < w.ow; ++x) {
      const int64_t left = x * w.sw - w.pw;
      const uint8_t** tap = taps;
      for (int64_t ky = 0; ky < w.kh; ++ky) {
        const int64_t iy = top + ky * w.dh;
        const bool inside = iy >= 0 && iy < w.h;
        const uint8_t* line = image + (iy * w.w + left) * t.channels;
        for (int64_t kx = 0; kx < w.kw; ++kx) {
          const int64_t ix = left + kx * w.dw;
          *tap++ = inside && ix >= 0 && ix < w.w ? line + kx * w.dw * t.channels : t.outside;
        }
      }
      pixel(taps, row * w.ow + x);
    }
  }
}

template <Int8Result Result>
MGE_INLINE void FinishSums(const Int8Task& t, VI sum, int64_t pixel, int64_t channels, int64_t c, int lanes) {
  auto ints = [&](const int32_t* p) { return (VI)Load(reinterpret_cast<const float*>(p + c)); };
  FinishVector<Result>(t, sum + ints(t.start), pixel * channels + c, lanes, t.scale ? t.a_scale * Load(t.scale + c) : VF{},
                       t.bias ? Load(t.bias + c) : VF{});
}

template <typename B, Int8Result Result>
void RunWith(const Int8DepthwiseTask& t, int64_t r0, int64_t r1) {
  const int64_t taps = t.windows.kh * t.windows.kw, n = t.channels;
  const float* weights = static_cast<const float*>(t.weights);
  ForPixels(t, r0, r1, [&](const uint8_t* const* tap, int64_t pixel) {
    for (int64_t c = 0; c < n; c += kF) {
      const int lanes = static_cast<int>(n - c < kF ? n - c : kF);
      VF sum = {};  // exact: the numbers are integers below 2^24
      for (int64_t k = 0; k < taps; ++k) {
        const B* x = reinterpret_cast<const B*>(tap[k]) + c;
        const float* w = weights + k * n + c;
        if (lanes == kF)
          sum = Fma(ToVF(LoadBytes(x)), Load(w), sum);
        else
          sum = Fma(ToVF(LoadBytesN(x, lanes)), LoadN(w, lanes), sum);
      }
      FinishSums<Result>(t.result, ToVI(sum), pixel, n, c, lanes);
    }
  });
}

using RunFn = void (*)(const Int8DepthwiseTask&, int64_t, int64_t);
template <typename B>
constexpr RunFn kRuns[] = {RunWith<B, Int8Result::kInt32>, RunWith<B, Int8Result::kFloat>, RunWith<B, Int8Result::kAddFloat>,
                           RunWith<B, Int8Result::kUint8>, RunWith<B, Int8Result::kInt8>};

void Run(const Int8DepthwiseTask& t, int64_t r0, int64_t r1) {
  (t.x_signed ? kRuns<int8_t> : kRuns<uint8_t>)[static_cast<int>(t.result.result)](t, r0, r1);
}

#if defined(__AVX512F__)

struct Vectors {
  __m512i v[4];
};

// Exchanges lanes and vectors: lane L of vector i becomes lane i of vector L.
MGE_INLINE Vectors Exchanged(const Vectors& x) {
  const __m512i a = _mm512_shuffle_i32x4(x.v[0], x.v[1], 0x44), b = _mm512_shuffle_i32x4(x.v[0], x.v[1], 0xee);
  const __m512i d = _mm512_shuffle_i32x4(x.v[2], x.v[3], 0x44), e = _mm512_shuffle_i32x4(x.v[2], x.v[3], 0xee);
  return {{_mm512_shuffle_i32x4(a, d, 0x88), _mm512_shuffle_i32x4(a, d, 0xdd), _mm512_shuffle_i32x4(b, e, 0x88),
           _mm512_shuffle_i32x4(b, e, 0xdd)}};
}

// Computes the sums of 64 channels. `mask` selects the channels that exist.
MGE_VNNI void BlockSums(const uint8_t* const* tap, int64_t c, int64_t quads, const int8_t* weights, __mmask64 mask,
                        __m512i flip, int32_t* sums) {
  Vectors sum = {};
  for (int64_t q = 0; q < quads; ++q, tap += 4, weights += 256) {
    __m512i x[4];
    MGE_UNROLL
    for (int i = 0; i < 4; ++i) x[i] = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, tap[i] + c), flip);
    // Interleaves the bytes of 4 taps. Lane L of vector i then has channels 16 L + 4 i and the next three.
    const __m512i low01 = _mm512_unpacklo_epi8(x[0], x[1]), high01 = _mm512_unpackhi_epi8(x[0], x[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(x[2], x[3]), high23 = _mm512_unpackhi_epi8(x[2], x[3]);
    const __m512i four[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                             _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
    MGE_UNROLL
    for (int i = 0; i < 4; ++i) sum.v[i] = _mm512_dpbusd_epi32(sum.v[i], four[i], _mm512_loadu_si512(weights + 64 * i));
  }
  sum = Exchanged(sum);  // channels in order
  MGE_UNROLL
  for (int i = 0; i < 4; ++i) _mm512_storeu_si512(sums + 16 * i, sum.v[i]);
}

template <Int8Result Result>
void RunVnniWith(const Int8DepthwiseTask& t, int64_t r0, int64_t r1) {
  const int64_t quads = (t.windows.kh * t.windows.kw + 3) / 4, n = t.channels;
  const int8_t* weights = static_cast<const int8_t*>(t.weights);
  const __m512i flip = _mm512_set1_epi8(t.x_signed ? -128 : 0);
  ForPixels(t, r0, r1, [&](const uint8_t* const* tap, int64_t pixel) {
    for (int64_t c = 0; c < n; c += kInt8DepthwiseBlock) {
      const int64_t left = n - c;
      alignas(64) int32_t sums[kInt8DepthwiseBlock];
      BlockSums(tap, c, quads, weights + c * quads * 4,
                left < 64 ? _bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(left)) : ~uint64_t{0}, flip, sums);
      for (int64_t v = 0; v < kInt8DepthwiseBlock && v < left; v += kF) {
        FinishSums<Result>(t.result, (VI)Load(reinterpret_cast<const float*>(sums + v)), pixel, n, c + v,
                           static_cast<int>(left - v < kF ? left - v : kF));
      }
    }
  });
}

// ---------------------------------------------------------------- 3 x 3 to bytes

// Computes a row of one block of at most 64 channels. Pair: of at most 32 channels, and two pixels at a time.
template <bool Signed, bool Pair>
MGE_VNNI void Row3x3(const Int8DepthwiseTask& t, int64_t row, int64_t c) {
  const ConvWindows& w = t.windows;
  const int64_t n = t.channels, left_over = n - c, channels = left_over < 64 ? left_over : 64;
  const auto mask = static_cast<__mmask64>(_bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(channels)));
  const auto half = static_cast<__mmask32>(mask);
  const __m512i flip = _mm512_set1_epi8(t.x_signed ? -128 : 0);

  // Weights and steps in the order of the interleaved sums.
  __m512i weights[12];
  const int8_t* from = static_cast<const int8_t*>(t.weights) + c * 12;
  for (int i = 0; i < 12; ++i) {
    const __m512i v = _mm512_loadu_si512(from + 64 * i);
    weights[i] = Pair ? _mm512_shuffle_i64x2(v, v, 0x44) : v;
  }
  auto finish = Finish64<Signed, Steps::kScale>::Of(t.result, c, channels);
  if (Pair) {
    for (int v = 0; v < 2; ++v) finish.start[v + 2] = finish.start[v], finish.scale[v + 2] = finish.scale[v];
  }
  Vectors start, scale;
  for (int v = 0; v < 4; ++v) start.v[v] = (__m512i)finish.start[v], scale.v[v] = (__m512i)finish.scale[v];
  start = Exchanged(start);
  scale = Exchanged(scale);
  for (int v = 0; v < 4; ++v) finish.start[v] = (VI)start.v[v], finish.scale[v] = (VF)scale.v[v];

  const uint8_t* image = static_cast<const uint8_t*>(t.x) + row / w.oh * w.h * w.w * n + c;
  const int64_t top = row % w.oh * w.sh - w.ph;
  const uint8_t* lines[3];
  for (int64_t k = 0; k < 3; ++k) {
    const int64_t y = top + k * w.dh;
    lines[k] = y >= 0 && y < w.h ? image + y * w.w * n : nullptr;
  }
  auto find = [&](int64_t x, const uint8_t** taps) {
    const int64_t left = x * w.sw - w.pw;
    for (int k = 0; k < 9; ++k) {
      const int64_t ix = left + k % 3 * w.dw;
      taps[k] = lines[k / 3] && ix >= 0 && ix < w.w ? lines[k / 3] + ix * n : t.outside;
    }
  };
  uint8_t* out = static_cast<uint8_t*>(t.result.c) + row * w.ow * n + c;
  for (int64_t x = 0; x < w.ow; x += Pair ? 2 : 1) {
    const uint8_t* taps[9];
    const uint8_t* second[9];
    find(x, taps);
    const bool has_second = Pair && x + 1 < w.ow;
    if (Pair) find(has_second ? x + 1 : x, second);
    auto load = [&](int k) __attribute__((always_inline)) {
      if constexpr (!Pair) return _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, taps[k]), flip);
      const __m512i first = _mm512_castsi256_si512(_mm256_maskz_loadu_epi8(half, taps[k]));
      return _mm512_xor_si512(_mm512_inserti64x4(first, _mm256_maskz_loadu_epi8(half, second[k]), 1), flip);
    };
    VI sum[4];
    MGE_UNROLL
    for (int q = 0; q < 3; ++q) {
      const __m512i zero = _mm512_setzero_si512(), x0 = load(4 * q);
      const __m512i x1 = q < 2 ? load(4 * q + 1) : zero;
      const __m512i low01 = _mm512_unpacklo_epi8(x0, x1), high01 = _mm512_unpackhi_epi8(x0, x1);
      __m512i low23 = zero, high23 = zero;
      if (q < 2) {
        const __m512i x2 = load(4 * q + 2), x3 = load(4 * q + 3);
        low23 = _mm512_unpacklo_epi8(x2, x3);
        high23 = _mm512_unpackhi_epi8(x2, x3);
      }
      const __m512i four[4] = {_mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
                               _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
      MGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        sum[i] = (VI)_mm512_dpbusd_epi32(q ? (__m512i)sum[i] : zero, four[i], weights[4 * q + i]);
      }
    }
    const __m512i bytes = finish.Bytes(sum, VI{});
    StoreFirst(out + x * n, bytes, channels);
    if (has_second) StoreFirst(out + (x + 1) * n, _mm512_shuffle_i64x2(bytes, bytes, 0x4e), channels);
  }
}

template <bool Signed>
void Run3x3(const Int8DepthwiseTask& t, int64_t r0, int64_t r1) {
  for (int64_t row = r0; row < r1; ++row) {
    for (int64_t c = 0; c < t.channels; c += kInt8DepthwiseBlock) {
      if (t.channels - c > 32)
        Row3x3<Signed, false>(t, row, c);
      else
        Row3x3<Signed, true>(t, row, c);
    }
  }
}

constexpr RunFn kVnniRuns[] = {RunVnniWith<Int8Result::kInt32>, RunVnniWith<Int8Result::kFloat>,
                               RunVnniWith<Int8Result::kAddFloat>, RunVnniWith<Int8Result::kUint8>,
                               RunVnniWith<Int8Result::kInt8>};

void RunVnni(const Int8DepthwiseTask& t, int64_t r0, int64_t r1) {
  const bool bytes = t.result.result == Int8Result::kUint8 || t.result.result == Int8Result::kInt8;
  const Int8Task& r = t.result;
  if (bytes && !r.bias && r.divisor == 1 && t.windows.kh == 3 && t.windows.kw == 3 && HasSteps(r) && !r.b_one_zero) {
    return (t.result.result == Int8Result::kInt8 ? Run3x3<true> : Run3x3<false>)(t, r0, r1);
  }
  kVnniRuns[static_cast<int>(t.result.result)](t, r0, r1);
}
#endif

}  // namespace

#if defined(__AVX512F__)
extern const Int8DepthwiseTable kInt8Depthwise = {Run, RunVnni};
#else
extern const Int8DepthwiseTable kInt8Depthwise = {Run, nullptr};
#endif

}  // namespace mge::cpu::MGE_CPU_ISA
