// SPDX-License-Identifier: Apache-2.0
// Arguments of the elementwise kernels. In each, threads process n elements in strides of the grid.
#pragma once

#include <stdint.h>

#include "plugins/gpu/fault.h"
#include "plugins/gpu/kernels/activation.h"
#include "plugins/gpu/kernels/divisor.h"

namespace mge::gpu {

// y[i] = f(x[i]); a and b are the operator's parameters.
struct UnaryArgs {
  const void* x;
  void* y;
  int64_t n;
  float a, b;
};

// y[i] = activation(x[i]); y may be x.
struct ActivateArgs {
  const void* x;
  void* y;
  int64_t n;
  Activation activation;
};

// Access to an operand beside the output's n elements: dims of the output, outermost first, and the operand's strides in
// elements (0: repeated). Rank 0: the operand is dense (step 1) or one element (step 0).
struct Walk {
  int32_t rank;
  int32_t reserved;
  Divisor dims[8];
};

// z = f(x, y), element by element.
struct BinaryArgs {
  const void* x;
  const void* y;
  void* z;
  Fault* fault;
  int64_t n;
  Walk walk;
  int64_t x_strides[8], y_strides[8];
  int64_t x_step, y_step;  // steps if the rank is 0
};

// z = c ? x : y
struct WhereArgs {
  const uint8_t* c;
  const void* x;
  const void* y;
  void* z;
  int64_t n;
  Walk walk;
  int64_t c_strides[8], x_strides[8], y_strides[8];
  int64_t c_step, x_step, y_step;  // steps if the rank is 0
};

// y = min(max(x, *low), *high); a null limit is ignored.
struct ClipArgs {
  const void* x;
  const void* low;
  const void* high;
  void* y;
  int64_t n;
};

// y = x in another type; `from` is the mge_dtype of x.
struct CastArgs {
  const void* x;
  void* y;
  int64_t n;
  int32_t from;
  int32_t reserved;
};

}  // namespace mge::gpu
