// SPDX-License-Identifier: Apache-2.0
// oneDNN behind a small interface: primitives with packed weights and an epilogue. The library is opened at its first use.
//
// A primitive computes one slice of a convolution, a pooling or a product; slices of one problem share their packed weights. oneDNN is
// held to the calling thread: slices are what runs in parallel.
#pragma once

#include <memory>

#include "mge/plugin.hpp"
#include "support/convolution.h"
#include "support/product.h"

namespace mge::cpu::onednn {

// True if the library lies where the loader would find it. Opens nothing.
bool IsInstalled();

struct Operands {
  const void* x;
  const void* weights;  // packed; null where there are none
  const void* bias;     // or null
  void* y;              // holds the tensor to be added, if there is one
  void* scratch;
};

// One slice. Immutable, and used by many threads; what a run changes is in an Instance.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual uint64_t packed_bytes() const = 0;
  virtual uint64_t scratch_bytes() const = 0;
  // From the plain filter, or the plain matrix. [any]
  virtual Result Pack(const void* source, void* packed) const = 0;
  virtual Result MakeInstance(void** out) const = 0;
  virtual void DestroyInstance(void* instance) const = 0;
  // [one] for one instance.
  virtual mge_code Run(void* instance, const Operands& operands) const = 0;
};
using PrimitivePtr = std::unique_ptr<Primitive>;

// Rows y0..y1 of the output of every image; x points to the first row that they read, y to the first that they write. With
// `first`, the packed weights are of the form that it chose.
Result MakeConvolution(const Convolution& c, int64_t y0, int64_t y1, const Primitive* first, PrimitivePtr* out);
// The first row of the input that output row y0 reads.
int64_t FirstInputRow(const ConvWindows& windows, int64_t y0);

enum class PoolKind { kMax, kAverage, kAverageWithPads };
// Float32, NHWC; the window is smaller than the padded image, pads are smaller than the window. Nothing is packed.
struct Pooling {
  PoolKind kind = PoolKind::kMax;
  int64_t images = 0, channels = 0;
  ConvWindows windows = {};
};
Result MakePooling(const Pooling& p, int64_t y0, int64_t y1, PrimitivePtr* out);

// `rows` rows of a single product; B is constant, C of a Gemm absent or one element per column.
Result MakeProduct(const Product& p, int64_t rows, const Primitive* first, PrimitivePtr* out);

}  // namespace mge::cpu::onednn
