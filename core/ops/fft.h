// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of any length in float64: radix 2 for powers of two, Bluestein's
// chirp for the rest.
#pragma once

#include <complex>

#include "core/base/tensor.h"

namespace mge {

using Complex = std::complex<double>;

// Tables and scratch for one length. Not for concurrent use.
class Fft {
 public:
  // length >= 1. kOverBudget or kOutOfMemory where the tables do not fit.
  static absl::StatusOr<Fft> Create(int64_t length, HostAllocator& allocator);

  // data[k] = sum over n of data[n] * exp(-2 pi i k n / length), in place; with `inverse` the sign
  // is + and the result is divided by length.
  void Transform(std::span<Complex> data, bool inverse);

 private:
  void Radix2(Complex* data) const;  // padded_ elements, forward

  int64_t length_ = 0;
  int64_t padded_ = 0;  // a power of two: length_ itself, or at least 2 * length_ - 1
  Tensor roots_;        // exp(-2 pi i k / padded_), k < padded_ / 2
  Tensor chirp_;        // exp(-pi i n^2 / length_); for other lengths only, as are the rest
  Tensor filter_;       // transform of the conjugate chirp
  Tensor work_;
};

}  // namespace mge
