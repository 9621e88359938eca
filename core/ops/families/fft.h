// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of any length in float64: radix 2 for powers of two, Bluestein's chirp algorithm for
// others.
#pragma once

#include <complex>

#include "core/base/tensor.h"

namespace mge {

using Complex = std::complex<double>;

// Tables and scratch memory for one length. Not thread-safe.
class Fft {
 public:
  // Creates the tables. Fails with kInvalidNode if `length` is not in 1..2^40, and with kOverBudget or kOutOfMemory if
  // there is not enough memory.
  static absl::StatusOr<Fft> Create(int64_t length, HostAllocator& allocator);

  // Computes data[k] = sum over n of data[n] * exp(-2 pi i k n / length), in place. With `inverse`, the sign is + and
  // the result is divided by length.
  void Transform(std::span<Complex> data, bool inverse);

 private:
  void Radix2(Complex* data) const;  // transforms padded_ elements, forward

  int64_t length_ = 0;
  int64_t padded_ = 0;  // a power of two: length_ itself, or at least 2 * length_ - 1
  Tensor roots_;        // exp(-2 pi i k / padded_), k < padded_ / 2
  Tensor chirp_;        // exp(-pi i n^2 / length_); like the next two, only for lengths that are no powers of two
  Tensor filter_;       // transform of the conjugate chirp
  Tensor work_;
};

}  // namespace mge
