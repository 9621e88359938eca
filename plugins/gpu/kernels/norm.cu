// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisations of rows (layer, RMS, instance, group) and of channels (batch, local response).
#include <math.h>

#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/kernels/norm.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Computes one row per block.
template <typename T>
GPU_DEVICE void SoftmaxBlock(const SoftmaxArgs& args) {
  using C = Compute<T>;
  GPU_SHARED(C, part, [32]);
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const Division at = Divide(row, args.inner);
    const int64_t inner = args.inner.value, base = at.quotient * args.n * inner + at.rest;
    const T* x = static_cast<const T*>(args.x) + base;
    T* y = static_cast<T*>(args.y) + base;  // may be x
    C top = -C(INFINITY);
    for (int64_t i = threadIdx.x; i < args.n; i += blockDim.x) top = JoinMax::Of(top, Widen(x[i * inner]));
    top = BlockReduce<JoinMax>(top, part);
    C sum = 0;
    for (int64_t i = threadIdx.x; i < args.n; i += blockDim.x) sum += exp(Widen(x[i * inner]) - top);
    sum = BlockReduce<JoinSum>(sum, part);
    const C log_sum = log(sum);
    for (int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
      const C v = Widen(x[i * inner]) - top;
      y[i * inner] = Narrow<T>::Of(args.log ? v - log_sum : exp(v) / sum);
    }
  }
}

// Computes one row per thread.
template <typename T>
GPU_DEVICE void SoftmaxThread(const SoftmaxArgs& args) {
  using C = Compute<T>;
  for (int64_t row = GridThread(); row < args.rows; row += GridThreads()) {
    const Division at = Divide(row, args.inner);
    const int64_t inner = args.inner.value, base = at.quotient * args.n * inner + at.rest;
    const T* x = static_cast<const T*>(args.x) + base;
    T* y = static_cast<T*>(args.y) + base;  // may be x
    C top = -C(INFINITY), sum = 0;
    for (int64_t i = 0; i < args.n; ++i) top = JoinMax::Of(top, Widen(x[i * inner]));
    for (int64_t i = 0; i < args.n; ++i) sum += exp(Widen(x[i * inner]) - top);
    const C log_sum = log(sum);
    for (int64_t i = 0; i < args.n; ++i) {
      const C v = Widen(x[i * inner]) - top;
      y[i * inner] = Narrow<T>::Of(args.log ? v - log_sum : exp(v) / sum);
    }
  }
}

// The place of an element of a row, and its channel in the group.
struct RowElement {
  int64_t place, channel;
};
GPU_DEVICE RowElement ElementOf(const NormArgs& args, int64_t i) {
  if (args.channels == 0) return {i, Divide(i, args.channel_elements).quotient};
  const auto at = static_cast<uint32_t>(i), width = static_cast<uint32_t>(args.group_channels), pixel = at / width;
  return {pixel * args.channels + (at - pixel * width), at - pixel * width};
}

// Normalises one row per block: first the mean, then the squared differences from it. Stat is the type of mean and inv_std.
template <typename T>
GPU_DEVICE void Norm(const NormArgs& args) {
  using C = Compute<T>;
  GPU_SHARED(C, part, [32]);
  const T* scale = static_cast<const T*>(args.scale);
  const T* bias = static_cast<const T*>(args.bias);
  const C n = static_cast<C>(args.n);
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const Division at_group = Divide(row, args.groups);
    const int64_t first = at_group.rest * args.group_channels;
    const int64_t base =
        args.channels == 0 ? row * args.n : at_group.quotient * args.channel_elements.value * args.channels + first;
    const T* x = static_cast<const T*>(args.x) + base;
    T* y = static_cast<T*>(args.y) + base;  // may be x
    C mean = 0;
    if (args.centred) {
      C sum = 0;
      for (int64_t i = threadIdx.x; i < args.n; i += blockDim.x) sum += Widen(x[ElementOf(args, i).place]);
      mean = BlockReduce<JoinSum>(sum, part) / n;
    }
    C squares = 0;
    for (int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
      const C d = Widen(x[ElementOf(args, i).place]) - mean;
      squares += d * d;
    }
    const C inv_std = C(1) / sqrt(BlockReduce<JoinSum>(squares, part) / n + static_cast<C>(args.epsilon));
    for (int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
      const RowElement at = ElementOf(args, i);
      C v = (Widen(x[at.place]) - mean) * inv_std;
      if (scale) v *= Widen(scale[first + at.channel]);
      if (bias) v += Widen(bias[first + at.channel]);
      y[at.place] = Narrow<T>::Of(v);
    }
    if (threadIdx.x == 0 && args.mean) static_cast<C*>(args.mean)[row] = mean;
    if (threadIdx.x == 0 && args.inv_std) static_cast<C*>(args.inv_std)[row] = inv_std;
  }
}

template <typename T>
GPU_DEVICE void BatchNorm(const BatchNormArgs& args) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);  // may be x
  GPU_ROLLED for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const int64_t c = Divide(Divide(i, args.inner).quotient, args.channels).rest;
    const C variance = Widen(static_cast<const T*>(args.variance)[c]), mean = Widen(static_cast<const T*>(args.mean)[c]);
    const C factor = Widen(static_cast<const T*>(args.scale)[c]) / sqrt(variance + static_cast<C>(args.epsilon));
    y[i] = Narrow<T>::Of((Widen(x[i]) - mean) * factor + Widen(static_cast<const T*>(args.bias)[c]));
  }
}

template <typename T>
GPU_DEVICE void Lrn(const LrnArgs& args) {
  using C = Compute<T>;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const int64_t c = Divide(Divide(i, args.inner).quotient, args.channels).rest;
    int64_t begin = c - (args.size - 1) / 2, end = c + args.size / 2;
    if (begin < 0) begin = 0;
    if (end >= args.channels.value) end = args.channels.value - 1;
    C sum = 0;
    for (int64_t k = begin; k <= end; ++k) {
      const C v = Widen(x[i + (k - c) * args.inner.value]);
      sum += v * v;
    }
    const C base = static_cast<C>(args.bias) + static_cast<C>(args.alpha) / static_cast<C>(args.size) * sum;
    y[i] = Narrow<T>::Of(Widen(x[i]) / pow(base, static_cast<C>(args.beta)));
  }
}

#define GPU_NORMS(type, T)                                              \
  GPU_KERNEL(softmax_block_##type, 256, SoftmaxArgs, SoftmaxBlock<T>)   \
  GPU_KERNEL(softmax_thread_##type, 256, SoftmaxArgs, SoftmaxThread<T>) \
  GPU_KERNEL(norm_##type, 256, NormArgs, Norm<T>)                       \
  GPU_KERNEL(batch_norm_##type, 256, BatchNormArgs, BatchNorm<T>)       \
  GPU_KERNEL(lrn_##type, 256, LrnArgs, Lrn<T>)

GPU_NORMS(f32, float)
GPU_NORMS(f64, double)
GPU_NORMS(f16, f16)
GPU_NORMS(bf16, bf16)

}  // namespace mge::gpu
