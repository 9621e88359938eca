// SPDX-License-Identifier: Apache-2.0
// Col2Im: adds columns, which are blocks of an image, to the image. Every plane of the image is contiguous.
#pragma once

#include <stdint.h>

#include "vec/dispatch.h"

namespace mge::cpu {

struct FoldTask {
  const void* columns;  // (plane, tap, place of the block)
  void* image;          // (plane, pixel)
  // Depth, height and width. The blocks are the windows of a convolution that reads the image.
  int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
};

struct FoldTable {
  // Compute planes p0..p1 of that element type.
  void (*f32)(const FoldTask& task, int64_t p0, int64_t p1);
  void (*f64)(const FoldTask& task, int64_t p0, int64_t p1);
};

MGE_CPU_DISPATCH(FoldTable, Fold)

}  // namespace mge::cpu
