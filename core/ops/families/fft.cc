// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fft.h"

#include <algorithm>
#include <bit>
#include <numbers>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 40;

Complex* ComplexElements(Tensor& tensor) { return static_cast<Complex*>(tensor.mutable_data()); }
const Complex* ComplexElements(const Tensor& tensor) { return static_cast<const Complex*>(tensor.data()); }

Complex Root(double turns) { return std::polar(1.0, -2 * std::numbers::pi * turns); }

}  // namespace

absl::StatusOr<Fft> Fft::Create(int64_t length, HostAllocator& allocator) {
  if (length < 1 || length > kMaxLength) {
    return Fail(errors::kInvalidNode, fmt::format("a transform of length {} is outside of 1..{}", length, kMaxLength));
  }
  Fft fft;
  fft.length_ = length;
  const bool power = std::has_single_bit(static_cast<uint64_t>(length));
  fft.padded_ = power ? length : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length - 1)));
  MGE_ASSIGN_OR_RETURN(fft.roots_, Tensor::Create(DType::kC128, {std::max<int64_t>(fft.padded_ / 2, 1)}, allocator));
  for (int64_t k = 0; k < fft.roots_.elements(); ++k) {
    ComplexElements(fft.roots_)[k] = Root(static_cast<double>(k) / static_cast<double>(fft.padded_));
  }
  if (power) return fft;

  MGE_ASSIGN_OR_RETURN(fft.chirp_, Tensor::Create(DType::kC128, {length}, allocator));
  MGE_ASSIGN_OR_RETURN(fft.filter_, Tensor::Create(DType::kC128, {fft.padded_}, allocator));
  MGE_ASSIGN_OR_RETURN(fft.work_, Tensor::Create(DType::kC128, {fft.padded_}, allocator));
  Complex* chirp = ComplexElements(fft.chirp_);
  Complex* filter = ComplexElements(fft.filter_);
  std::fill_n(filter, fft.padded_, Complex(0));
  uint64_t square = 0;  // n^2 modulo 2 * length: keeps the angle exact
  for (int64_t n = 0; n < length; ++n) {
    chirp[n] = Root(static_cast<double>(square) / static_cast<double>(2 * length));
    filter[n] = std::conj(chirp[n]);
    if (n > 0) filter[fft.padded_ - n] = filter[n];
    square = (square + 2 * static_cast<uint64_t>(n) + 1) % (2 * static_cast<uint64_t>(length));
  }
  fft.Radix2(filter);
  return fft;
}

void Fft::Radix2(Complex* data) const {
  for (int64_t i = 1, j = 0; i < padded_; ++i) {
    int64_t bit = padded_ >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(data[i], data[j]);
  }
  const Complex* roots = ComplexElements(roots_);
  for (int64_t half = 1; half < padded_; half *= 2) {
    const int64_t step = padded_ / (2 * half);
    for (int64_t begin = 0; begin < padded_; begin += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const Complex odd = data[begin + k + half] * roots[k * step];
        data[begin + k + half] = data[begin + k] - odd;
        data[begin + k] += odd;
      }
    }
  }
}

void Fft::Transform(std::span<Complex> data, bool inverse) {
  // The inverse transform is the conjugate of the forward transform of the conjugate.
  if (inverse) {
    for (Complex& v : data) v = std::conj(v);
  }
  if (!chirp_.defined()) {
    Radix2(data.data());
  } else {
    const Complex* chirp = ComplexElements(chirp_);
    const Complex* filter = ComplexElements(filter_);
    Complex* work = ComplexElements(work_);
    std::fill_n(work, padded_, Complex(0));
    for (int64_t n = 0; n < length_; ++n) work[n] = data[n] * chirp[n];
    Radix2(work);
    for (int64_t k = 0; k < padded_; ++k) work[k] = std::conj(work[k] * filter[k]);
    Radix2(work);
    const double scale = 1.0 / static_cast<double>(padded_);
    for (int64_t k = 0; k < length_; ++k) data[k] = std::conj(work[k]) * scale * chirp[k];
  }
  if (inverse) {
    const double scale = 1.0 / static_cast<double>(length_);
    for (Complex& v : data) v = std::conj(v) * scale;
  }
}

}  // namespace mge
