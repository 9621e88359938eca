// SPDX-License-Identifier: Apache-2.0
#include "vec/pool.h"

#include "vec/lanes.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <typename T>
struct PoolLanes : LaneOf<T> {};

// Bytes: vectors of one register.
template <typename T>
struct ByteLanes {
  using C = T;
  typedef T V __attribute__((vector_size(kVectorBytes)));
  static constexpr int kWidth = kVectorBytes;
  MGE_INLINE V Get(const T* p, int n) {
    V v = {};
    if (n == kWidth) {
      __builtin_memcpy(&v, p, kWidth);
      return v;
    }
#if defined(__AVX512F__)
    return (V)_mm512_maskz_loadu_epi8(_bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(n)), p);
#else
    for (int i = 0; i < n; ++i) v[i] = p[i];
    return v;
#endif
  }
  MGE_INLINE void Put(T* p, V v, int n) {
    if (n == kWidth) return __builtin_memcpy(p, &v, kWidth), void();
#if defined(__AVX512F__)
    _mm512_mask_storeu_epi8(p, _bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(n)), (__m512i)v);
#else
    for (int i = 0; i < n; ++i) p[i] = v[i];
#endif
  }
  MGE_INLINE V All(T x) { return x - V{}; }
};
template <>
struct PoolLanes<int8_t> : ByteLanes<int8_t> {};
template <>
struct PoolLanes<uint8_t> : ByteLanes<uint8_t> {};
template <typename V>
inline constexpr bool kIsBytes =
    std::is_same_v<V, typename ByteLanes<int8_t>::V> || std::is_same_v<V, typename ByteLanes<uint8_t>::V>;

template <PoolOp Op, typename C>
MGE_INLINE C Start() {
  if constexpr (Op != PoolOp::kMax) return 0;
  if constexpr (std::is_floating_point_v<C>) return static_cast<C>(-__builtin_inf());
  return static_cast<C>(-1) < 0 ? static_cast<C>(1ull << (sizeof(C) * 8 - 1)) : C{0};
}
template <PoolOp Op, typename V>
MGE_INLINE V Join(V a, V b) {
  if constexpr (kIsBytes<V>) return a > b ? a : b;
  if constexpr (Op == PoolOp::kMax && !kIsBytes<V>) return Larger(a, b);
  return static_cast<V>(a + b);
}

// Returns the contribution of an element to a window.
template <PoolOp Op, typename V>
MGE_INLINE V Map(V x) {
  if constexpr (Op == PoolOp::kL1) return Magnitude(x);
  if constexpr (Op == PoolOp::kL2) return x * x;
  return x;
}
inline constexpr bool Averages(PoolOp op) { return op == PoolOp::kAverage || op == PoolOp::kAverageWithPads; }

// The range of taps of an output inside the input.
struct Taps {
  int64_t begin, end, first;  // first: input position of tap 0
};
MGE_INLINE Taps Inside(const PoolAxis& a, int64_t output) {
  int64_t at = output * a.stride - a.pad_begin;
  int64_t begin = at >= 0 ? 0 : -at, end = at >= a.in ? 0 : a.in - at;
  if (a.dilation != 1) {  // a division costs more than the taps of a small window
    begin = (begin + a.dilation - 1) / a.dilation;
    end = (end + a.dilation - 1) / a.dilation;
  }
  return {begin, end < a.kernel ? end : a.kernel, at};
}
// Returns the number of taps that an average with padding counts. In ceil_mode the last window may extend beyond the
// padding.
MGE_INLINE int64_t Counted(const PoolAxis& a, int64_t output) {
  int64_t room = a.in + a.pad_end - 1 - (output * a.stride - a.pad_begin);
  int64_t taps = (a.dilation == 1 ? room : room / a.dilation) + 1;
  return taps < a.kernel ? taps : a.kernel;
}

template <PoolOp Op>
MGE_INLINE int64_t CountOf(const PoolSpec& s, const Taps* t, int64_t depth, int64_t height, int64_t width) {
  if constexpr (Op == PoolOp::kAverageWithPads) {
    return Counted(s.axis[0], depth) * Counted(s.axis[1], height) * Counted(s.axis[2], width);
  }
  int64_t n = 1;
  for (int d = 0; d < 3; ++d) n *= t[d].end > t[d].begin ? t[d].end - t[d].begin : 0;
  return n;
}

template <PoolOp Op, typename V, typename C>
MGE_INLINE V Finish(V v, int64_t count, C) {
  if constexpr (Averages(Op)) return count ? static_cast<V>(v / static_cast<C>(count)) : static_cast<V>(v - v);
  if constexpr (Op == PoolOp::kL2) return Sqrt(v);
  return v;
}

// Pools kVectors vectors of `lanes` channels of one output. `x` and `y` point to the first channel. Both numbers should be
// constants, so that the sums stay in registers.
template <PoolOp Op, typename T, int kVectors>
MGE_INLINE void PoolChannels(const PoolSpec& s, const Taps* t, const T* x, T* y, int lanes, int64_t count) {
  using L = PoolLanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  constexpr int W = L::kWidth;
  const PoolAxis &ad = s.axis[0], &ah = s.axis[1], &aw = s.axis[2];
  const int64_t step = aw.dilation * s.channels;
  V sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = L::All(Start<Op, C>());
  for (int64_t i = t[0].begin; i < t[0].end; ++i) {
    for (int64_t j = t[1].begin; j < t[1].end; ++j) {
      const int64_t row = (t[0].first + i * ad.dilation) * ah.in + t[1].first + j * ah.dilation;
      const T* p = x + (row * aw.in + t[2].first + t[2].begin * aw.dilation) * s.channels;
      for (int64_t k = t[2].begin; k < t[2].end; ++k, p += step) {
        for (int v = 0; v < kVectors; ++v) sum[v] = Join<Op, V>(sum[v], Map<Op, V>(L::Get(p + v * W, lanes)));
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) L::Put(y + v * W, Finish<Op, V, C>(sum[v], count, C{}), lanes);
}

template <PoolOp Op, typename T>
void ChannelsLast(const PoolSpec& s, const void* source, void* target, int64_t begin, int64_t end) {
  constexpr int W = PoolLanes<T>::kWidth;
  const PoolAxis &ad = s.axis[0], &ah = s.axis[1], &aw = s.axis[2];
  for (int64_t u = begin; u < end; ++u) {
    int64_t height = u % ah.out, depth = u / ah.out % ad.out, image = u / ah.out / ad.out;
    auto* x = static_cast<const T*>(source) + image * ad.in * ah.in * aw.in * s.channels;
    auto* y = static_cast<T*>(target) + u * aw.out * s.channels;
    for (int64_t width = 0; width < aw.out; ++width, y += s.channels) {
      Taps t[3] = {Inside(ad, depth), Inside(ah, height), Inside(aw, width)};
      int64_t count = Averages(Op) ? CountOf<Op>(s, t, depth, height, width) : 1;
      int64_t c = 0;
      for (; c + 4 * W <= s.channels; c += 4 * W) PoolChannels<Op, T, 4>(s, t, x + c, y + c, W, count);
      for (; c + 2 * W <= s.channels; c += 2 * W) PoolChannels<Op, T, 2>(s, t, x + c, y + c, W, count);
      for (; c + W <= s.channels; c += W) PoolChannels<Op, T, 1>(s, t, x + c, y + c, W, count);
      if (c < s.channels) PoolChannels<Op, T, 1>(s, t, x + c, y + c, static_cast<int>(s.channels - c), count);
    }
  }
}

// A piece of a row of the output: outputs [first, first + count) of (depth, height).
struct Piece {
  int64_t depth, height, first, count;
};

// Takes every stride-th value of a line.
template <typename C>
MGE_INLINE void Pick(const C* line, int64_t stride, C* out, int64_t n) {
  if (stride == 2) {  // the compiler vectorises a constant stride
    for (int64_t o = 0; o < n; ++o) out[o] = line[2 * o];
  } else {
    for (int64_t o = 0; o < n; ++o) out[o] = line[o * stride];
  }
}

// Finishes joined windows and writes them to y. Windows of an average that lie inside have the same number of taps.
template <PoolOp Op, typename T>
MGE_INLINE void FinishPiece(const PoolSpec& s, const Piece& p, const Compute<T>* windows, T* y) {
  using L = PoolLanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  using Line = PoolLanes<C>;
  const PoolAxis& aw = s.axis[2];
  Taps t[3] = {Inside(s.axis[0], p.depth), Inside(s.axis[1], p.height), {}};
  auto run = [&](int64_t begin, int64_t end, int64_t taps) {
    constexpr int W = L::kWidth;
    for (int64_t o = begin; o < end; o += W) {
      const int left = static_cast<int>(end - o < W ? end - o : W);
      L::Put(y + o, Finish<Op, V, C>(Line::Get(windows + o, left), taps, C{}), left);
    }
  };
  if constexpr (!Averages(Op)) return run(0, p.count, 1);
  const int64_t extent = (aw.kernel - 1) * aw.dilation + 1;
  auto taps = [&](int64_t o) {
    t[2] = Inside(aw, p.first + o);
    return CountOf<Op>(s, t, p.depth, p.height, p.first + o);
  };
  auto inside = [&](int64_t o) {
    const int64_t at = (p.first + o) * aw.stride - aw.pad_begin;
    return at >= 0 && at + extent <= aw.in;
  };
  int64_t begin = 0, end = p.count;
  for (; begin < end && !inside(begin); ++begin) run(begin, begin + 1, taps(begin));
  for (; end > begin && !inside(end - 1); --end) run(end - 1, end, taps(end - 1));
  if (begin < end) run(begin, end, taps(begin));
}

// Computes rows of the output in pieces. First combines the input rows of a window vertically, then neighbours along the
// width at every position, both with vectors. Then picks the results at multiples of the stride. Padding is represented by
// neutral elements.
template <PoolOp Op, typename T>
void Plain(const PoolSpec& s, const void* source, void* target, int64_t begin, int64_t end) {
  using L = PoolLanes<T>;
  using V = typename L::V;
  using C = typename L::C;
  using Line = PoolLanes<C>;
  constexpr int W = L::kWidth;
  constexpr int64_t kSpan = 1024;  // positions of the padded input row per piece
  const PoolAxis &ad = s.axis[0], &ah = s.axis[1], &aw = s.axis[2];
  int64_t extent = (aw.kernel - 1) * aw.dilation + 1;
  bool wide = extent > kSpan;
  int64_t piece = wide ? 1 : (kSpan - extent) / aw.stride + 1;
  C joined[kSpan + 2 * W], slid[kSpan + W], picked[kSpan + W];
  const V start = L::All(Start<Op, C>());
  for (int64_t u = begin; u < end; ++u) {
    int64_t height = u % ah.out, depth = u / ah.out % ad.out, plane = u / ah.out / ad.out;
    auto* x = static_cast<const T*>(source) + plane * ad.in * ah.in * aw.in;
    auto* y = static_cast<T*>(target) + u * aw.out;
    Taps td = Inside(ad, depth), th = Inside(ah, height);
    auto for_rows = [&](auto f) {
      for (int64_t a = td.begin; a < td.end; ++a) {
        for (int64_t b = th.begin; b < th.end; ++b) {
          f(x + ((td.first + a * ad.dilation) * ah.in + th.first + b * ah.dilation) * aw.in);
        }
      }
    };
    for (int64_t first = 0; first < aw.out; first += piece) {
      int64_t count = first + piece < aw.out ? piece : aw.out - first;
      int64_t origin = first * aw.stride - aw.pad_begin;  // input position of joined[0]
      if (wide) {
        Taps tw = Inside(aw, first);
        V best = start;
        for_rows([&](const T* row) {
          for (int64_t k = tw.begin; k < tw.end; ++k) {
            best = Join<Op, V>(best, Map<Op, V>(L::Get(row + origin + k * aw.dilation, 1)));
          }
        });
        Line::Put(slid, best, 1);
      } else {
        int64_t span = (count - 1) * aw.stride + extent;
        int64_t low = origin < 0 ? -origin : 0, high = aw.in - origin < span ? aw.in - origin : span;
        low = low < span ? low : span;
        high = high > low ? high : low;
        for (int64_t i = 0; i < low; i += W) __builtin_memcpy(joined + i, &start, sizeof(V));
        for (int64_t i = low; i < high; i += W) {
          int left = static_cast<int>(high - i < W ? high - i : W);
          V sum = start;
          for_rows([&](const T* row) { sum = Join<Op, V>(sum, Map<Op, V>(L::Get(row + origin + i, left))); });
          __builtin_memcpy(joined + i, &sum, sizeof(V));
        }
        for (int64_t i = high; i < span + W; i += W) __builtin_memcpy(joined + i, &start, sizeof(V));
        for (int64_t i = 0; i < span - extent + 1; i += W) {
          V sum = start;
          for (int64_t k = 0; k < aw.kernel; ++k) {
            V v;
            __builtin_memcpy(&v, joined + i + k * aw.dilation, sizeof(V));
            sum = Join<Op, V>(sum, v);
          }
          __builtin_memcpy(slid + i, &sum, sizeof(V));
        }
      }
      const C* windows = slid;
      if (aw.stride != 1 && !wide) {
        Pick(slid, aw.stride, picked, count);
        windows = picked;
      }
      FinishPiece<Op, T>(s, {depth, height, first, count}, windows, y + first);
    }
  }
}

// ---------------------------------------------------------------- maximum with indices

using FloatLanes = LaneOf<float>;
using FloatVector = FloatLanes::V;
typedef int32_t OffsetVector __attribute__((vector_size(sizeof(FloatVector))));
constexpr int kFloatLanes = FloatLanes::kWidth;

// Takes the elements that are larger, or NaN.
MGE_INLINE void Take(FloatVector x, OffsetVector offset, FloatVector& best, OffsetVector& at) {
  const OffsetVector taken = (OffsetVector)(x > best) | (OffsetVector)(x != x);
  best = taken ? x : best;
  at = taken ? offset : at;
}
MGE_INLINE OffsetVector AllOffsets(int64_t offset) { return static_cast<int32_t>(offset) - OffsetVector{}; }

void IndexedChannelsLast(const PoolSpec& s, const float* source, float* target, int64_t* indices, int64_t begin,
                         int64_t end) {
  const PoolAxis &ad = s.axis[0], &ah = s.axis[1], &aw = s.axis[2];
  const int64_t plane = ad.in * ah.in * aw.in;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t height = u % ah.out, depth = u / ah.out % ad.out, image = u / ah.out / ad.out;
    const float* x = source + image * plane * s.channels;
    for (int64_t width = 0; width < aw.out; ++width) {
      const Taps td = Inside(ad, depth), th = Inside(ah, height), tw = Inside(aw, width);
      const int64_t first = ((td.first + td.begin * ad.dilation) * ah.in + th.first + th.begin * ah.dilation) * aw.in +
                            tw.first + tw.begin * aw.dilation;
      const int64_t output = (u * aw.out + width) * s.channels;
      for (int64_t c = 0; c < s.channels; c += kFloatLanes) {
        const int lanes = static_cast<int>(s.channels - c < kFloatLanes ? s.channels - c : kFloatLanes);
        FloatVector best = FloatLanes::All(-__builtin_inff());
        OffsetVector at = AllOffsets(first);
        for (int64_t i = td.begin; i < td.end; ++i) {
          for (int64_t j = th.begin; j < th.end; ++j) {
            const int64_t row = ((td.first + i * ad.dilation) * ah.in + th.first + j * ah.dilation) * aw.in + tw.first;
            for (int64_t k = tw.begin; k < tw.end; ++k) {
              const int64_t offset = row + k * aw.dilation;
              Take(FloatLanes::Get(x + offset * s.channels + c, lanes), AllOffsets(offset), best, at);
            }
          }
        }
        FloatLanes::Put(target + output + c, best, lanes);
        const int64_t base = (image * s.channels + c) * plane;
        for (int l = 0; l < lanes; ++l) indices[output + c + l] = base + l * plane + at[l];
      }
    }
  }
}

// Combines the input rows of a window with vectors, in pieces. Then each output takes the largest of its columns.
void IndexedPlain(const PoolSpec& s, const float* source, float* target, int64_t* indices, int64_t begin, int64_t end) {
  constexpr int64_t kSpan = 1024;
  const PoolAxis &ad = s.axis[0], &ah = s.axis[1], &aw = s.axis[2];
  const int64_t plane = ad.in * ah.in * aw.in, extent = (aw.kernel - 1) * aw.dilation + 1;
  const int64_t piece = extent >= kSpan ? 1 : (kSpan - extent) / aw.stride + 1;
  float joined[kSpan + kFloatLanes];
  int32_t from[kSpan + kFloatLanes];
  const OffsetVector steps = [] {
    OffsetVector v = {};
    for (int l = 0; l < kFloatLanes; ++l) v[l] = l;
    return v;
  }();
  for (int64_t u = begin; u < end; ++u) {
    const int64_t height = u % ah.out, depth = u / ah.out % ad.out, number = u / ah.out / ad.out;
    const float* x = source + number * plane;
    const Taps td = Inside(ad, depth), th = Inside(ah, height);
    // Joins the columns [low, low + count) of all rows of the window.
    auto join = [&](int64_t low, int64_t count) {
      for (int64_t i = 0; i < count; i += kFloatLanes) {
        const int lanes = static_cast<int>(count - i < kFloatLanes ? count - i : kFloatLanes);
        FloatVector best = FloatLanes::All(-__builtin_inff());
        OffsetVector at = {};
        bool first = true;
        for (int64_t a = td.begin; a < td.end; ++a) {
          for (int64_t b = th.begin; b < th.end; ++b) {
            const int64_t offset = ((td.first + a * ad.dilation) * ah.in + th.first + b * ah.dilation) * aw.in + low + i;
            const OffsetVector offsets = AllOffsets(offset) + steps;
            if (first) at = offsets;
            first = false;
            Take(FloatLanes::Get(x + offset, lanes), offsets, best, at);
          }
        }
        __builtin_memcpy(joined + i, &best, sizeof(best));
        __builtin_memcpy(from + i, &at, sizeof(at));
      }
    };
    for (int64_t first = 0; first < aw.out; first += piece) {
      const int64_t last = first + piece < aw.out ? first + piece : aw.out;
      const bool wide = extent >= kSpan;
      int64_t low = first * aw.stride - aw.pad_begin, high = (last - 1) * aw.stride - aw.pad_begin + extent;
      low = low > 0 ? low : 0;
      high = high < aw.in ? high : aw.in;
      if (!wide && high > low) join(low, high - low);
      for (int64_t o = first; o < last; ++o) {
        const Taps tw = Inside(aw, o);
        float best = -__builtin_inff();
        int32_t at = 0;
        for (int64_t k = tw.begin; k < tw.end; ++k) {
          int64_t column = tw.first + k * aw.dilation - low;
          if (wide) {
            join(low + column, 1);
            column = 0;
          }
          const float value = joined[column];
          const int32_t offset = from[column];
          // The rows were joined first, so equal columns are compared by their place.
          const bool equal = value == best && offset < at;
          const bool taken = value > best || equal || value != value || k == tw.begin;
          best = taken ? value : best;
          at = taken ? offset : at;
        }
        target[u * aw.out + o] = best;
        indices[u * aw.out + o] = number * plane + at;
      }
    }
  }
}

template <PoolOp Op, typename T>
PoolFn For(bool channels_last) {
  return channels_last ? ChannelsLast<Op, T> : Plain<Op, T>;
}

PoolFn Find(PoolOp op, mge_dtype type, bool channels_last) {
  PoolFn f = nullptr;
  switch (op) {
    case PoolOp::kMax:
      DispatchTo<float, double, F16, BF16, int8_t, uint8_t>(
          type, [&](auto tag) { f = For<PoolOp::kMax, typename decltype(tag)::type>(channels_last); });
      break;
    case PoolOp::kL1:
      DispatchFloating(type, [&](auto tag) { f = For<PoolOp::kL1, typename decltype(tag)::type>(channels_last); });
      break;
    case PoolOp::kL2:
      DispatchFloating(type, [&](auto tag) { f = For<PoolOp::kL2, typename decltype(tag)::type>(channels_last); });
      break;
    case PoolOp::kAverage:
      DispatchFloating(type, [&](auto tag) { f = For<PoolOp::kAverage, typename decltype(tag)::type>(channels_last); });
      break;
    case PoolOp::kAverageWithPads:
      DispatchFloating(type,
                       [&](auto tag) { f = For<PoolOp::kAverageWithPads, typename decltype(tag)::type>(channels_last); });
      break;
  }
  return f;
}

}  // namespace

extern const PoolTable kPool = {Find, IndexedPlain, IndexedChannelsLast};

}  // namespace mge::cpu::MGE_CPU_ISA
