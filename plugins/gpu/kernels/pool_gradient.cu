// SPDX-License-Identifier: Apache-2.0
// The gradient of MaxPool: each thread adds up an element of the input's gradient over the windows that contain it, in their
// order.
#include "plugins/gpu/kernels/pool_gradient.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// The outputs whose windows may contain an input position, from `first` on, to `last`.
struct Outputs {
  int64_t first, last;
};
GPU_DEVICE Outputs Over(const WindowAxis& a, int64_t in) {
  const int64_t from_first = in + a.pad_begin - (a.kernel - 1) * a.dilation, last = (in + a.pad_begin) / a.stride;
  return {from_first <= 0 ? 0 : (from_first + a.stride - 1) / a.stride, last < a.out ? last : a.out - 1};
}

template <typename T>
GPU_DEVICE void MaxPoolGradient(const PoolGradientArgs& args) {
  const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
  const T* __restrict__ dy = static_cast<const T*>(args.dy);
  const int64_t* __restrict__ indices = args.indices;
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const int64_t row = i / w.in, slice = row / h.in, plane = slice / d.in;
    const Outputs in_w = Over(w, i - row * w.in), in_h = Over(h, row - slice * h.in), in_d = Over(d, slice - plane * d.in);
    Compute<T> sum = 0;
    for (int64_t od = in_d.first; od <= in_d.last; ++od) {
      for (int64_t oh = in_h.first; oh <= in_h.last; ++oh) {
        for (int64_t ow = in_w.first; ow <= in_w.last; ++ow) {
          const int64_t o = ((plane * d.out + od) * h.out + oh) * w.out + ow;
          if (indices[o] == i) sum += Widen(dy[o]);
        }
      }
    }
    static_cast<T*>(args.dx)[i] = Narrow<T>::Of(sum);
  }
}

GPU_KERNEL(max_pool_gradient_f32, 256, PoolGradientArgs, MaxPoolGradient<float>)
GPU_KERNEL(max_pool_gradient_f64, 256, PoolGradientArgs, MaxPoolGradient<double>)
GPU_KERNEL(max_pool_gradient_f16, 256, PoolGradientArgs, MaxPoolGradient<f16>)
GPU_KERNEL(max_pool_gradient_bf16, 256, PoolGradientArgs, MaxPoolGradient<bf16>)

}  // namespace mge::gpu
