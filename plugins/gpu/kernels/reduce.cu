// SPDX-License-Identifier: Apache-2.0
// Reductions over any dimensions, with one thread or one block per output, or with several for parts that are joined in their
// order. All are deterministic. reduce_atomic uses several blocks per output and is not.
#include <math.h>

#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/cast.h"
#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/kernels/reduce.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// The type of a sum: integers modulo 2^64; float16 and bfloat16 in float.
template <typename T>
struct SumOf {
  using type = uint64_t;
};
template <>
struct SumOf<float> {
  using type = float;
};
template <>
struct SumOf<double> {
  using type = double;
};
template <>
struct SumOf<f16> {
  using type = float;
};
template <>
struct SumOf<bf16> {
  using type = float;
};
template <typename C>
inline constexpr bool kIsReal = false;
template <>
inline constexpr bool kIsReal<float> = true;
template <>
inline constexpr bool kIsReal<double> = true;

template <typename T>
GPU_DEVICE T Lowest() {
  if constexpr (kIsReal<T>)
    return -T(INFINITY);
  else
    return static_cast<T>(-1) < T(0) ? static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1)) : T(0);
}
template <typename T>
GPU_DEVICE T Highest() {
  if constexpr (kIsReal<T>)
    return T(INFINITY);
  else
    return static_cast<T>(~Lowest<T>());
}
// Returns a sum as a floating number, for quotients and logarithms.
template <typename T>
GPU_DEVICE double Real(uint64_t sum) {
  return static_cast<T>(-1) < T(0) ? static_cast<double>(static_cast<int64_t>(sum)) : static_cast<double>(sum);
}
template <typename T>
GPU_DEVICE float Real(float sum) {
  return sum;
}
template <typename T>
GPU_DEVICE double Real(double sum) {
  return sum;
}

// Reductions of T. Each has an accumulator type A, a start value, a map of elements, a combining function and a final
// function.
template <typename T>
struct Sum {
  using A = typename SumOf<T>::type;
  template <typename C>
  static GPU_DEVICE C Start() {
    return C(0);
  }
  static GPU_DEVICE A Map(T x) { return static_cast<A>(Widen(x)); }
  template <typename C>
  static GPU_DEVICE C Of(C a, C b) {
    return a + b;
  }
  static GPU_DEVICE T End(A a, int64_t) { return Narrow<T>::Of(a); }
};
template <typename T>
struct Mean : Sum<T> {
  using typename Sum<T>::A;
  static GPU_DEVICE T End(A a, int64_t n) {
    if constexpr (kIsReal<A>)
      return Narrow<T>::Of(a / static_cast<A>(n));
    else
      return static_cast<T>(-1) < T(0) ? static_cast<T>(static_cast<int64_t>(a) / n)
                                       : static_cast<T>(a / static_cast<uint64_t>(n));
  }
};
template <typename T>
struct SumSquare : Sum<T> {
  using typename Sum<T>::A;
  static GPU_DEVICE A Map(T x) {
    const A a = static_cast<A>(Widen(x));
    return a * a;
  }
};
template <typename T>
struct L1 : Sum<T> {
  using typename Sum<T>::A;
  static GPU_DEVICE A Map(T x) {
    const A a = static_cast<A>(Widen(x));
    return Widen(x) < Compute<T>(0) ? A(0) - a : a;
  }
};
template <typename T>
struct L2 : SumSquare<T> {
  using typename Sum<T>::A;
  static GPU_DEVICE T End(A a, int64_t) { return CastTo<T>::Of(sqrt(Real<T>(a))); }
};
template <typename T>
struct LogSum : Sum<T> {
  using typename Sum<T>::A;
  static GPU_DEVICE T End(A a, int64_t) { return CastTo<T>::Of(log(Real<T>(a))); }
};
template <typename T>
struct Prod : Sum<T> {
  using typename Sum<T>::A;
  template <typename C>
  static GPU_DEVICE C Start() {
    return C(1);
  }
  template <typename C>
  static GPU_DEVICE C Of(C a, C b) {
    return a * b;
  }
};
template <typename T>
struct Max {
  using A = Compute<T>;
  template <typename C>
  static GPU_DEVICE C Start() {
    return Lowest<C>();
  }
  static GPU_DEVICE A Map(T x) { return Widen(x); }
  template <typename C>
  static GPU_DEVICE C Of(C a, C b) {
    return a > b || a != a ? a : b;
  }
  static GPU_DEVICE T End(A a, int64_t) { return Narrow<T>::Of(a); }
};
template <typename T>
struct Min : Max<T> {
  template <typename C>
  static GPU_DEVICE C Start() {
    return Highest<C>();
  }
  template <typename C>
  static GPU_DEVICE C Of(C a, C b) {
    return a < b || a != a ? a : b;
  }
};

GPU_DEVICE int64_t Offset(const ReduceWalk& w, int64_t i) {
  int64_t offset = 0;
  for (int d = w.rank - 1; d >= 0; --d) {
    const Division at = Divide(i, w.dims[d]);
    offset += at.rest * w.strides[d];
    i = at.quotient;
  }
  return offset;
}
// Returns the offset of element i among an output's elements. Short form for walks with a single dimension.
GPU_DEVICE int64_t ReducedOffset(const ReduceWalk& w, int64_t i) { return w.rank == 1 ? i * w.strides[0] : Offset(w, i); }

// Combines elements begin, begin + step, ... with `a`, in their order. Several loads are in flight at a time.
template <typename T, template <typename> class R>
GPU_DEVICE auto Accumulate(typename R<T>::A a, const T* __restrict__ from, const ReduceWalk& walk, int64_t begin,
                           int64_t end, int64_t step) {
  constexpr int kLoads = kIsReal<Compute<T>> ? 4 : 1;
  int64_t i = begin;
  for (; i + (kLoads - 1) * step < end; i += kLoads * step) {
    T loaded[kLoads];
    GPU_UNROLL for (int j = 0; j < kLoads; ++j) loaded[j] = from[ReducedOffset(walk, i + j * step)];
    GPU_UNROLL for (int j = 0; j < kLoads; ++j) a = R<T>::Of(a, R<T>::Map(loaded[j]));
  }
  for (; i < end; i += step) a = R<T>::Of(a, R<T>::Map(from[ReducedOffset(walk, i)]));
  return a;
}

template <typename T, template <typename> class R>
GPU_DEVICE void ReduceThread(const ReduceArgs& args) {
  using A = typename R<T>::A;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t o = GridThread(); o < args.outputs; o += GridThreads()) {
    const A a = Accumulate<T, R>(R<T>::template Start<A>(), x + Offset(args.kept, o), args.reduced, 0, args.count, 1);
    y[o] = R<T>::End(a, args.count);
  }
}

template <typename T, template <typename> class R>
GPU_DEVICE void ReduceBlock(const ReduceArgs& args) {
  using A = typename R<T>::A;
  GPU_SHARED(A, part, [32]);
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t o = blockIdx.x; o < args.outputs; o += gridDim.x) {
    const T* from = x + Offset(args.kept, o);
    A a = Accumulate<T, R>(R<T>::template Start<A>(), from, args.reduced, threadIdx.x, args.count, blockDim.x);
    a = BlockReduce<R<T>>(a, part);
    if (threadIdx.x == 0) y[o] = R<T>::End(a, args.count);
  }
}

// The elements of one part of an output.
struct ReducePart {
  int64_t output, begin, end;
};
GPU_DEVICE ReducePart PartOf(const ReduceArgs& args, int64_t unit) {
  const int64_t each = (args.count + args.splits - 1) / args.splits, split = unit / args.outputs, begin = split * each;
  return {unit - split * args.outputs, begin, begin + each < args.count ? begin + each : args.count};
}

// Compute the parts, [split][output], in the accumulator's type.
template <typename T, template <typename> class R>
GPU_DEVICE void ReducePartsByThreads(const ReduceArgs& args) {
  using A = typename R<T>::A;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  for (int64_t u = GridThread(); u < args.outputs * args.splits; u += GridThreads()) {
    const ReducePart p = PartOf(args, u);
    const T* from = x + Offset(args.kept, p.output);
    static_cast<A*>(args.y)[u] = Accumulate<T, R>(R<T>::template Start<A>(), from, args.reduced, p.begin, p.end, 1);
  }
}
template <typename T, template <typename> class R>
GPU_DEVICE void ReducePartsByBlocks(const ReduceArgs& args) {
  using A = typename R<T>::A;
  GPU_SHARED(A, part, [32]);
  const T* __restrict__ x = static_cast<const T*>(args.x);
  for (int64_t u = blockIdx.x; u < args.outputs * args.splits; u += gridDim.x) {
    const ReducePart p = PartOf(args, u);
    const T* from = x + Offset(args.kept, p.output);
    A a = Accumulate<T, R>(R<T>::template Start<A>(), from, args.reduced, p.begin + threadIdx.x, p.end, blockDim.x);
    a = BlockReduce<R<T>>(a, part);
    if (threadIdx.x == 0) static_cast<A*>(args.y)[u] = a;
  }
}

// Joins the parts, which are x.
template <typename T, template <typename> class R>
GPU_DEVICE void ReduceJoin(const ReduceArgs& args) {
  using A = typename R<T>::A;
  const A* __restrict__ parts = static_cast<const A*>(args.x);
  for (int64_t o = GridThread(); o < args.outputs; o += GridThreads()) {
    A a = R<T>::template Start<A>();
    for (int64_t s = 0; s < args.splits; ++s) a = R<T>::Of(a, parts[s * args.outputs + o]);
    static_cast<T*>(args.y)[o] = R<T>::End(a, args.count);
  }
}

// Computes log(sum(exp(x))) without overflow.
template <typename T>
GPU_DEVICE void LogSumExpThread(const ReduceArgs& args) {
  using C = Compute<T>;
  using D = double;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t o = GridThread(); o < args.outputs; o += GridThreads()) {
    const T* from = x + Offset(args.kept, o);
    C top = Lowest<C>();
    for (int64_t i = 0; i < args.count; ++i) top = Max<T>::Of(top, Widen(from[ReducedOffset(args.reduced, i)]));
    D sum = 0;
    const D shift = fabs(static_cast<D>(top)) < D(INFINITY) ? static_cast<D>(top) : D(0);
    for (int64_t i = 0; i < args.count; ++i) sum += exp(static_cast<D>(Widen(from[ReducedOffset(args.reduced, i)])) - shift);
    y[o] = CastTo<T>::Of(log(sum) + shift);
  }
}

// Adds parts of an output from several blocks. The output must be zero before. The order of the additions is not fixed.
GPU_DEVICE void ReduceAtomicSum(const ReduceArgs& args) {
  GPU_SHARED(float, part, [32]);
  const float* __restrict__ x = static_cast<const float*>(args.x);
  float* y = static_cast<float*>(args.y);
  const int64_t units = args.outputs * args.splits, each = (args.count + args.splits - 1) / args.splits;
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    const int64_t o = u / args.splits, begin = u % args.splits * each,
                  end = begin + each < args.count ? begin + each : args.count;
    const float* from = x + Offset(args.kept, o);
    float a = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) a += from[ReducedOffset(args.reduced, i)];
    a = BlockReduce<JoinSum>(a, part);
    if (threadIdx.x == 0) atomicAdd(y + o, a);
  }
}

#define GPU_REDUCE_THREAD(name, type, T, R) GPU_KERNEL(name##_thread_##type, 256, ReduceArgs, (ReduceThread<T, R>))
#define GPU_REDUCE(name, type, T, R)  \
  GPU_REDUCE_THREAD(name, type, T, R) \
  GPU_KERNEL(name##_block_##type, 256, ReduceArgs, (ReduceBlock<T, R>))
#define GPU_REDUCE_FLOATS(name, R) \
  GPU_REDUCE(name, f32, float, R)  \
  GPU_REDUCE(name, f64, double, R) \
  GPU_REDUCE(name, f16, f16, R)    \
  GPU_REDUCE(name, bf16, bf16, R)
#define GPU_REDUCE_NUMBERS(name, R)         \
  GPU_REDUCE_FLOATS(name, R)                \
  GPU_REDUCE_THREAD(name, i32, int32_t, R)  \
  GPU_REDUCE_THREAD(name, i64, int64_t, R)  \
  GPU_REDUCE_THREAD(name, u32, uint32_t, R) \
  GPU_REDUCE_THREAD(name, u64, uint64_t, R)
#define GPU_REDUCE_ALL(name, R)          \
  GPU_REDUCE_NUMBERS(name, R)            \
  GPU_REDUCE_THREAD(name, i8, int8_t, R) \
  GPU_REDUCE_THREAD(name, u8, uint8_t, R)

#define GPU_REDUCE_JOIN(name, type, T, R) GPU_KERNEL(name##_join_##type, 256, ReduceArgs, (ReduceJoin<T, R>))
#define GPU_REDUCE_PARTS(name, type, T, R)                                              \
  GPU_KERNEL(name##_parts_thread_##type, 256, ReduceArgs, (ReducePartsByThreads<T, R>)) \
  GPU_KERNEL(name##_parts_block_##type, 256, ReduceArgs, (ReducePartsByBlocks<T, R>))   \
  GPU_REDUCE_JOIN(name, type, T, R)
#define GPU_REDUCE_SPLIT(type, T)            \
  GPU_REDUCE_PARTS(reduce_sum, type, T, Sum) \
  GPU_REDUCE_PARTS(reduce_max, type, T, Max) \
  GPU_REDUCE_PARTS(reduce_min, type, T, Min) \
  GPU_REDUCE_JOIN(reduce_mean, type, T, Mean)

GPU_REDUCE_SPLIT(f32, float)
GPU_REDUCE_SPLIT(f64, double)
GPU_REDUCE_SPLIT(f16, f16)
GPU_REDUCE_SPLIT(bf16, bf16)
GPU_REDUCE_NUMBERS(reduce_sum, Sum)
GPU_REDUCE_NUMBERS(reduce_mean, Mean)
GPU_REDUCE_NUMBERS(reduce_sum_square, SumSquare)
GPU_REDUCE_NUMBERS(reduce_l1, L1)
GPU_REDUCE_NUMBERS(reduce_l2, L2)
GPU_REDUCE_NUMBERS(reduce_prod, Prod)
GPU_REDUCE_FLOATS(reduce_log_sum, LogSum)
GPU_REDUCE_ALL(reduce_max, Max)
GPU_REDUCE_ALL(reduce_min, Min)
GPU_KERNEL(reduce_log_sum_exp_thread_f32, 256, ReduceArgs, LogSumExpThread<float>)
GPU_KERNEL(reduce_log_sum_exp_thread_f64, 256, ReduceArgs, LogSumExpThread<double>)
GPU_KERNEL(reduce_log_sum_exp_thread_f16, 256, ReduceArgs, LogSumExpThread<f16>)
GPU_KERNEL(reduce_log_sum_exp_thread_bf16, 256, ReduceArgs, LogSumExpThread<bf16>)
GPU_KERNEL(reduce_atomic_sum_f32, 256, ReduceArgs, ReduceAtomicSum)

}  // namespace mge::gpu
