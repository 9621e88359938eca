// SPDX-License-Identifier: Apache-2.0
// oneDNN behind a small interface: primitives with packed weights and an epilogue. The library is opened at its first use.
//
// A primitive computes one slice of a convolution, a pooling or a product; slices of one problem share their packed weights. oneDNN is
// held to the calling thread: slices are what runs in parallel.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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

// One slice. Immutable once it is compiled, and used by many threads; what a run changes is in an Instance.
class Primitive {
 public:
  virtual ~Primitive() = default;
  // The library's own name of the code that it chose, "brgconv:avx512_core".
  virtual std::string_view implementation() const = 0;
  virtual uint64_t packed_bytes() const = 0;
  virtual uint64_t scratch_bytes() const = 0;
  virtual bool PacksAs(const Primitive& other) const = 0;
  // Before everything below. Does nothing the second time. [one]
  virtual Result Compile() = 0;
  // Names what Pack writes: equal names, equal bytes of equal sources. Empty where that cannot be told.
  virtual std::string packed_form() const = 0;
  // From the plain filter, or the plain matrix. [any]
  virtual Result Pack(const void* source, void* packed) const = 0;
  virtual Result MakeInstance(void** out) const = 0;
  virtual void DestroyInstance(void* instance) const = 0;
  // [one] for one instance.
  virtual mge_code Run(void* instance, const Operands& operands) const = 0;
};
using PrimitivePtr = std::unique_ptr<Primitive>;

// A part of the output: rows begin..end of each of so many images, or, of images of height 1, columns. Of several images it holds
// all rows.
struct Band {
  int64_t images = 1, begin = 0, end = 0;
  bool columns = false;
  bool operator==(const Band&) const = default;
};
// The first pixel of the input that a band reads, and the first of the output that it writes, from the beginning of its image.
struct Start {
  int64_t x, y;
};
Start StartOf(const ConvWindows& windows, const Band& band);

// True if a name of the library's means its reference code, which nothing here ever runs.
bool IsReference(std::string_view implementation);

// Primitives that are not compiled yet. x points to the first pixel that the band reads, y to the first that it writes.
// kUnimplemented where the library has only reference code.
Result DescribeConvolution(const Convolution& c, const Band& band, PrimitivePtr* out);

enum class PoolKind { kMax, kAverage, kAverageWithPads };
// Float32, NHWC; the window is smaller than the padded image, pads are smaller than the window. Nothing is packed.
struct Pooling {
  PoolKind kind = PoolKind::kMax;
  int64_t images = 0, channels = 0;
  ConvWindows windows = {};
};
Result DescribePooling(const Pooling& p, const Band& band, PrimitivePtr* out);

// `rows` rows of a single product; B is constant, C of a Gemm absent or one element per column.
Result DescribeProduct(const Product& p, int64_t rows, PrimitivePtr* out);

}  // namespace mge::cpu::onednn
