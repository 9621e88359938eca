// SPDX-License-Identifier: Apache-2.0
#include "vec/fold.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// The blocks whose element at a tap lies in the image: places begin..end, the first of which is at position `first`.
struct Inside {
  int64_t begin, end, first;
};

Inside InsideOf(const FoldTask& t, int axis, int64_t tap) {
  const int64_t stride = t.stride[axis], offset = tap * t.dilation[axis] - t.pad[axis];
  int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  int64_t last = t.in[axis] - 1 - offset;  // the largest place times the stride
  int64_t end = last < 0 ? 0 : last / stride + 1;
  if (end > t.out[axis]) end = t.out[axis];
  if (begin > end) begin = end;
  return {begin, end, begin * stride + offset};
}

template <typename T>
MGE_INLINE void AddRow(const T* from, int64_t n, int64_t stride, T* to) {
  if (stride == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
  }
}

// Adds in the order of the taps, as the reference evaluator does.
template <typename T>
void Plane(const FoldTask& t, const T* columns, T* image) {
  const int64_t pixels = t.in[0] * t.in[1] * t.in[2], places = t.out[0] * t.out[1] * t.out[2];
  for (int64_t i = 0; i < pixels; ++i) image[i] = 0;
  for (int64_t kz = 0; kz < t.kernel[0]; ++kz) {
    const Inside z = InsideOf(t, 0, kz);
    for (int64_t ky = 0; ky < t.kernel[1]; ++ky) {
      const Inside y = InsideOf(t, 1, ky);
      for (int64_t kx = 0; kx < t.kernel[2]; ++kx, columns += places) {
        const Inside x = InsideOf(t, 2, kx);
        for (int64_t oz = z.begin; oz < z.end; ++oz) {
          const int64_t iz = z.first + (oz - z.begin) * t.stride[0];
          for (int64_t oy = y.begin; oy < y.end; ++oy) {
            const int64_t iy = y.first + (oy - y.begin) * t.stride[1];
            AddRow(columns + (oz * t.out[1] + oy) * t.out[2] + x.begin, x.end - x.begin, t.stride[2],
                   image + (iz * t.in[1] + iy) * t.in[2] + x.first);
          }
        }
      }
    }
  }
}

template <typename T>
void Run(const FoldTask& t, int64_t p0, int64_t p1) {
  const int64_t taps = t.kernel[0] * t.kernel[1] * t.kernel[2];
  const int64_t columns = taps * t.out[0] * t.out[1] * t.out[2], pixels = t.in[0] * t.in[1] * t.in[2];
  for (int64_t p = p0; p < p1; ++p) {
    Plane(t, static_cast<const T*>(t.columns) + p * columns, static_cast<T*>(t.image) + p * pixels);
  }
}

}  // namespace

extern const FoldTable kFold = {Run<float>, Run<double>};

}  // namespace mge::cpu::MGE_CPU_ISA
