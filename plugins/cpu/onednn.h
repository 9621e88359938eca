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
  // The library's name for the code that it chose, such as "brgconv:avx512_core".
  virtual std::string_view implementation() const = 0;
  virtual uint64_t packed_bytes() const = 0;
  virtual uint64_t scratch_bytes() const = 0;
  virtual bool PacksAs(const Primitive& other) const = 0;
  // Generates the code. Must come before the calls below; does nothing the second time. [one]
  virtual Result Compile() = 0;
  // Returns the name of the form that Pack writes: equal names give equal bytes for equal sources. Empty if unknown.
  virtual std::string packed_form() const = 0;
  // From the plain filter, or the plain matrix. [any]
  virtual Result Pack(const void* source, void* packed) const = 0;
  virtual Result MakeInstance(void** out) const = 0;
  virtual void DestroyInstance(void* instance) const = 0;
  // [one] for one instance.
  virtual mge_code Run(void* instance, const Operands& operands) const = 0;
};
using PrimitivePtr = std::unique_ptr<Primitive>;

// A part of the output: rows begin..end of each image, or columns if the images have height 1. A band of several images holds
// all rows.
struct Band {
  int64_t images = 1, begin = 0, end = 0;
  bool columns = false;
  bool operator==(const Band&) const = default;
};
// The first input pixel that a band reads and the first output pixel that it writes, counted from the start of its image.
struct Start {
  int64_t x, y;
};
Start StartOf(const ConvWindows& windows, const Band& band);

// Returns true if the library's name of an implementation means its reference code, which is never run.
bool IsReference(std::string_view implementation);

// Creates primitives that are not compiled yet. Their x points to the first pixel that the band reads, y to the first that it
// writes. Fails with MGE_UNIMPLEMENTED if the library has only reference code.
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
