// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/host_sum.h"

#include <algorithm>
#include <type_traits>

#include "core/base/float16.h"

namespace mge {
namespace {

constexpr int64_t kChunk = 4096;  // elements

// Sums the elements in [begin, end). After the first array, up to four at a time are summed, then added.
template <typename T>
void AddRange(std::span<const void* const> arrays, T* sum, int64_t begin, int64_t end) {
  auto at = [&](size_t k) { return static_cast<const T*>(arrays[k]); };
  if constexpr (!std::is_same_v<Compute<T>, T>) {  // 16 bits: one rounding, after the last addition
    for (int64_t i = begin; i < end; ++i) {
      Compute<T> total = at(0)[i];
      for (size_t k = 1; k < arrays.size(); k += 4) {
        Compute<T> part = at(k)[i];
        for (size_t j = k + 1; j < std::min(arrays.size(), k + 4); ++j) part += static_cast<Compute<T>>(at(j)[i]);
        total += part;
      }
      sum[i] = static_cast<T>(total);
    }
    return;
  } else {
    std::copy(at(0) + begin, at(0) + end, sum + begin);
    for (size_t k = 1; k < arrays.size(); k += 4) {
      const size_t many = std::min<size_t>(arrays.size() - k, 4);
      for (int64_t i = begin; i < end; ++i) {
        T part = at(k)[i];
        for (size_t j = 1; j < many; ++j) part += at(k + j)[i];
        sum[i] += part;
      }
    }
  }
}

}  // namespace

void HostSum::Add(DType dtype, std::span<const void* const> arrays, void* sum, int64_t elements) const {
  auto range = [&](int64_t begin, int64_t end) {
    if (dtype == DType::kF32) AddRange(arrays, static_cast<float*>(sum), begin, end);
    if (dtype == DType::kF64) AddRange(arrays, static_cast<double*>(sum), begin, end);
    if (dtype == DType::kF16) AddRange(arrays, static_cast<Half*>(sum), begin, end);
    if (dtype == DType::kBF16) AddRange(arrays, static_cast<BFloat16*>(sum), begin, end);
    if (dtype == DType::kI32) AddRange(arrays, static_cast<uint32_t*>(sum), begin, end);  // unsigned: it may wrap around
    if (dtype == DType::kI64) AddRange(arrays, static_cast<uint64_t*>(sum), begin, end);
  };
  const uint32_t width = ThreadsFor(elements);
  if (width <= 1 || !parallel_for) return range(0, elements);
  const int64_t chunk = std::min(big_array, kChunk);
  parallel_for(static_cast<uint64_t>((elements + chunk - 1) / chunk), width, [&](uint64_t i) {
    const int64_t begin = static_cast<int64_t>(i) * chunk;
    range(begin, std::min(begin + chunk, elements));
  });
}

}  // namespace mge
