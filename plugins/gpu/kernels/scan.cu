// SPDX-License-Identifier: Apache-2.0
// Operators with one thread per line along an axis: ArgMax and ArgMin, running sums, TopK, Hardmax.
#include "plugins/gpu/kernels/fault.h"
#include "plugins/gpu/kernels/reduce.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Returns whether a > b; NaN is the largest value.
template <typename C>
GPU_DEVICE bool Above(C a, C b) {
  return a > b || (a != a && b == b);
}
// Returns whether a < b; NaN is the smallest value.
template <typename C>
GPU_DEVICE bool Below(C a, C b) {
  return a < b || (a != a && b == b);
}

template <typename T>
GPU_DEVICE void ArgReduce(const ArgReduceArgs& args) {
  const T* __restrict__ x = static_cast<const T*>(args.x);
  int64_t* __restrict__ y = static_cast<int64_t*>(args.y);
  for (int64_t o = GridThread(); o < args.outputs; o += GridThreads()) {
    const T* from = x + o / args.inner * args.n * args.inner + o % args.inner;
    int64_t best = 0;
    auto value = Widen(from[0]);
    for (int64_t i = 1; i < args.n; ++i) {
      const auto v = Widen(from[i * args.inner]);
      const bool better = args.smallest ? Below(v, value) : Above(v, value);
      const bool worse = args.smallest ? Below(value, v) : Above(value, v);
      if (better || (args.last && !worse)) {
        best = i;
        value = v;
      }
    }
    y[o] = best;
  }
}

template <typename T>
struct SumOf {
  using type = uint64_t;
};
template <>
struct SumOf<float> {
  using type = double;
};
template <>
struct SumOf<double> {
  using type = double;
};
template <>
struct SumOf<f16> {
  using type = double;
};
template <>
struct SumOf<bf16> {
  using type = double;
};

template <typename T>
GPU_DEVICE void RunningSum(const RunningSumArgs& args) {
  using Sum = typename SumOf<T>::type;
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);  // may be x
  const int64_t axis = CheckedIndex(args.fault, IndexAt(args.axis, args.wide, 0), args.rank), n = args.dims[axis];
  int64_t inner = 1;
  for (int64_t d = axis + 1; d < args.rank; ++d) inner *= args.dims[d];
  const int64_t lines = args.n / n;
  for (int64_t u = GridThread(); u < lines; u += GridThreads()) {
    const int64_t base = u / inner * n * inner + u % inner;
    Sum sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = base + (args.reverse ? n - 1 - k : k) * inner;
      const Sum next = sum + static_cast<Sum>(Widen(x[at]));
      y[at] = Narrow<T>::Of(args.exclusive ? sum : next);
      sum = next;
    }
  }
}

template <typename T>
GPU_DEVICE void Hardmax(const HardmaxArgs& args) {
  for (int64_t row = GridThread(); row < args.rows; row += GridThreads()) {
    const int64_t base = row / args.inner * args.n * args.inner + row % args.inner;
    const T* x = static_cast<const T*>(args.x) + base;
    T* y = static_cast<T*>(args.y) + base;  // may be x
    int64_t best = 0;
    for (int64_t k = 0; k < args.n; ++k) {
      if (Widen(x[k * args.inner]) > Widen(x[best * args.inner])) best = k;
    }
    for (int64_t k = 0; k < args.n; ++k) y[k * args.inner] = Narrow<T>::Of(static_cast<Compute<T>>(k == best ? 1 : 0));
  }
}

// A heap in the outputs. Its root is the worst of the elements kept so far.
template <typename T>
struct TopK {
  const T* x;
  int64_t* at;
  int64_t step;
  bool largest;

  // Returns whether element i of the line ranks before element j.
  GPU_DEVICE bool Before(int64_t i, int64_t j) const {
    const auto p = Widen(x[i * step]), q = Widen(x[j * step]);
    if (largest ? Above(p, q) : Above(q, p)) return true;
    if (largest ? Above(q, p) : Above(p, q)) return false;
    return i < j;
  }
  GPU_DEVICE void Sink(int64_t root, int64_t size) const {
    const int64_t index = at[root * step];
    for (int64_t child; (child = 2 * root + 1) < size; root = child) {
      if (child + 1 < size && Before(at[child * step], at[(child + 1) * step])) ++child;
      if (!Before(index, at[child * step])) break;
      at[root * step] = at[child * step];
    }
    at[root * step] = index;
  }
};

template <typename T>
GPU_DEVICE void SelectTop(const TopKArgs& args) {
  for (int64_t u = GridThread(); u < args.lines; u += GridThreads()) {
    const int64_t block = u / args.inner, column = u % args.inner;
    const TopK<T> heap = {static_cast<const T*>(args.x) + block * args.n * args.inner + column,
                          args.indices + block * args.k * args.inner + column, args.inner, args.largest != 0};
    for (int64_t i = 0; i < args.k; ++i) heap.at[i * heap.step] = i;
    for (int64_t i = args.k / 2; i-- > 0;) heap.Sink(i, args.k);
    for (int64_t i = args.k; i < args.n; ++i) {
      if (!heap.Before(i, heap.at[0])) continue;
      heap.at[0] = i;
      heap.Sink(0, args.k);
    }
    for (int64_t size = args.k - 1; size > 0; --size) {  // moves the worst element to the end
      const int64_t worst = heap.at[0];
      heap.at[0] = heap.at[size * heap.step];
      heap.at[size * heap.step] = worst;
      heap.Sink(0, size);
    }
    T* values = static_cast<T*>(args.values);
    for (int64_t i = 0; values && i < args.k; ++i) {
      values[(block * args.k + i) * args.inner + column] = heap.x[heap.at[i * heap.step] * heap.step];
    }
  }
}

#define GPU_SCANS(type, T)                                           \
  GPU_KERNEL(arg_reduce_##type, 256, ArgReduceArgs, ArgReduce<T>)    \
  GPU_KERNEL(running_sum_##type, 256, RunningSumArgs, RunningSum<T>) \
  GPU_KERNEL(top_k_##type, 256, TopKArgs, SelectTop<T>)

GPU_KERNEL(hardmax_f32, 256, HardmaxArgs, Hardmax<float>)
GPU_KERNEL(hardmax_f64, 256, HardmaxArgs, Hardmax<double>)
GPU_KERNEL(hardmax_f16, 256, HardmaxArgs, Hardmax<f16>)
GPU_KERNEL(hardmax_bf16, 256, HardmaxArgs, Hardmax<bf16>)
GPU_SCANS(f32, float)
GPU_SCANS(f64, double)
GPU_SCANS(f16, f16)
GPU_SCANS(bf16, bf16)
GPU_SCANS(i8, int8_t)
GPU_SCANS(i16, int16_t)
GPU_SCANS(i32, int32_t)
GPU_SCANS(i64, int64_t)
GPU_SCANS(u8, uint8_t)
GPU_SCANS(u16, uint16_t)
GPU_SCANS(u32, uint32_t)
GPU_SCANS(u64, uint64_t)

}  // namespace mge::gpu
