// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of plain tensors over two spatial axes: each channel is a group with one output. A thread computes
// neighbouring outputs of a line. Tensors have fewer than 2^30 elements, so that indices have 32 bits.
#include "plugins/gpu/kernels/conv_store.h"
#include "plugins/gpu/kernels/nhwc.h"

namespace mge::gpu {

constexpr int kNeighbours = 4;

// Adds tap k of a line of the window to the sums.
template <typename T, typename C>
GPU_DEVICE void AddTap(const T* __restrict__ line, const T* __restrict__ taps, const Axis32& w, int32_t first, int32_t k,
                       C (&sums)[kNeighbours]) {
  const C tap = Widen(taps[k]);
  GPU_UNROLL for (int j = 0; j < kNeighbours; ++j) {
    const int32_t at = first + j * w.stride + k * w.dilation;
    if (static_cast<uint32_t>(at) < static_cast<uint32_t>(w.in)) sums[j] += Widen(line[at]) * tap;
  }
}

template <typename T>
GPU_DEVICE void ConvDepthwise(const ConvArgs& args) {
  using C = Compute<T>;
  const Axis32 h = Narrowed(args.axis[1]), w = Narrowed(args.axis[2]);
  const auto channels = static_cast<int32_t>(args.channels);
  const int32_t across = (w.out + kNeighbours - 1) / kNeighbours,
                units = static_cast<int32_t>(args.images) * channels * h.out * across;
  for (auto u = static_cast<int32_t>(GridThread()); u < units; u += static_cast<int32_t>(GridThreads())) {
    const int32_t row = u / across, plane = row / h.out, channel = plane % channels, oh = row - plane * h.out,
                  ow = (u - row * across) * kNeighbours;
    const T* __restrict__ x = static_cast<const T*>(args.x) + static_cast<int64_t>(plane) * h.in * w.in;
    const T* __restrict__ filter = static_cast<const T*>(args.w) + channel * h.kernel * w.kernel;
    C sums[kNeighbours] = {};
    for (int32_t k = 0; k < h.kernel; ++k) {
      const int32_t ih = oh * h.stride - h.pad + k * h.dilation;
      if (static_cast<uint32_t>(ih) >= static_cast<uint32_t>(h.in)) continue;
      const T* const line = x + ih * w.in;
      const T* const taps = filter + k * w.kernel;
      const int32_t first = ow * w.stride - w.pad;
      if (w.kernel == 3) {  // the usual width: all loads are in flight
        GPU_UNROLL for (int32_t j = 0; j < 3; ++j) AddTap(line, taps, w, first, j, sums);
      } else {
        for (int32_t j = 0; j < w.kernel; ++j) AddTap(line, taps, w, first, j, sums);
      }
    }
    const int64_t place = static_cast<int64_t>(row) * w.out + ow;
    GPU_UNROLL for (int j = 0; j < kNeighbours; ++j) {
      if (ow + j < w.out) Store<T>(args, sums[j], channel, place + j);
    }
  }
}

GPU_KERNEL(conv_depthwise_f32, 256, ConvArgs, ConvDepthwise<float>)
GPU_KERNEL(conv_depthwise_f64, 256, ConvArgs, ConvDepthwise<double>)
GPU_KERNEL(conv_depthwise_f16, 256, ConvArgs, ConvDepthwise<f16>)
GPU_KERNEL(conv_depthwise_bf16, 256, ConvArgs, ConvDepthwise<bf16>)

}  // namespace mge::gpu
