// SPDX-License-Identifier: Apache-2.0
// oneDNN behind a small interface: primitives with packed weights and an epilogue. The library is opened at its first use.
//
// A primitive computes one slice of a convolution, a pooling or a product. Slices exist because oneDNN must not use its own
// threads: it runs on the calling thread only, and the host's compute pool runs the slices in parallel. The slices of one
// problem share their packed weights. support/onednn_kernel.h describes how work is cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mge/plugin.hpp"
#include "support/convolution.h"
#include "support/product.h"

namespace mge::cpu::onednn {

// Returns whether the library is in a directory of the loader. Opens nothing.
bool IsInstalled();

// The addresses of one slice's operands. A gradient of a convolution has them in the same places: it reads y, the gradient of
// the output, and writes x or weights.
struct Operands {
  const void* x;
  const void* weights;  // packed; null if there are none
  const void* bias;     // or null
  void* y;              // contains the tensor to be added, if there is one
  void* scratch;
};

// One slice. Immutable after Compile(), and used by many threads. The state of a run is in an instance.
class Primitive {
 public:
  virtual ~Primitive() = default;
  // Returns the library's name for the implementation that it chose, such as "brgconv:avx512_core".
  virtual std::string_view implementation() const = 0;
  virtual uint64_t packed_bytes() const = 0;
  virtual uint64_t scratch_bytes() const = 0;
  // Returns whether both read weights in the same packed form.
  virtual bool PacksAs(const Primitive& other) const = 0;
  // Generates the code. Must be called before the functions below. Does nothing the second time. [any]
  virtual Result Compile() = 0;
  // Returns the name of the form that Pack writes: equal names mean equal bytes for equal sources. Empty if unknown.
  virtual std::string packed_form() const = 0;
  // Packs the plain filter, or the plain matrix. [any]
  virtual Result Pack(const void* source, void* packed) const = 0;
  // Does the reverse. [any]
  virtual Result Unpack(const void* packed, void* plain) const = 0;
  // Creates the state of a run. DestroyInstance() must end it before the primitive is destroyed.
  virtual Result MakeInstance(void** out) const = 0;
  virtual void DestroyInstance(void* instance) const = 0;
  // Runs the slice. [one] for one instance.
  virtual mge_code Run(void* instance, const Operands& operands) const = 0;
};
using PrimitivePtr = std::shared_ptr<Primitive>;

// A part of the output: rows begin..end of each image, or columns if the images have height 1. A band of several images
// contains all rows.
struct Band {
  int64_t images = 1, begin = 0, end = 0;
  bool columns = false;
  bool operator==(const Band&) const = default;
};
// The first input pixel that a band reads and the first output pixel that it writes, from the start of its image.
struct Start {
  int64_t x, y;
};
Start StartOf(const ConvWindows& windows, const Band& band);

// Returns whether an implementation is the library's reference code, which is never used.
bool IsReference(std::string_view implementation);

// Return a kept primitive (primitive_cache.h), or create one, which is not compiled yet. Their x points to the first pixel
// that the band reads, y to the first that it writes. Fail with MGE_UNIMPLEMENTED if the library has only reference code.
Result DescribeConvolution(const Convolution& c, const Band& band, PrimitivePtr* out);

// Describes a gradient of a convolution of so many whole images, without bias and epilogue.
enum class ConvGradient : int32_t { kInput, kWeights };
Result DescribeGradient(const Convolution& c, int64_t images, ConvGradient gradient, PrimitivePtr* out);

enum class PoolKind { kMax, kAverage, kAverageWithPads };
// Pooling of float32, NHWC. The window is smaller than the padded image, pads are smaller than the window. Nothing is
// packed.
struct Pooling {
  PoolKind kind = PoolKind::kMax;
  int64_t images = 0, channels = 0;
  ConvWindows windows = {};
};
Result DescribePooling(const Pooling& p, const Band& band, PrimitivePtr* out);

// Describes `rows` rows of a single product. B is constant; C of a Gemm is absent or has one element per column.
Result DescribeProduct(const Product& p, int64_t rows, PrimitivePtr* out);

}  // namespace mge::cpu::onednn
