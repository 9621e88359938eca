// SPDX-License-Identifier: Apache-2.0
#include "support/recurrent_pack.h"

#include <algorithm>

namespace mge::cpu {
namespace {

// Packs bytes. Subtracts 128 from unsigned bytes and from their zero points.
void PackInt8(const RecurrentArgs& a, int64_t k, const Quantized& q, char* packed) {
  const int64_t columns = a.r.gates * a.r.hidden, panel = Int8Bytes(k) * kInt8Columns;
  const int moved = q.is_signed ? 0 : 128;
  std::fill_n(packed, a.r.directions * a.packed_bytes(k), '\0');
  for (int64_t d = 0; d < a.r.directions; ++d) {
    const Int8Weights w(packed + d * a.packed_bytes(k), k, a.order.width());
    a.order.ForColumns([&](int64_t column, int64_t of) {
      w.scales[column] = q.scale[q.scale_columns ? d * columns + of : d];
      w.zeros[column] = q.Number(q.zero, q.zero_columns ? d * columns + of : d) - moved;
      int8_t* to = w.panels + column / kInt8Columns * panel + column % kInt8Columns * 4;
      for (int64_t i = 0; i < k; ++i) {
        const int number = q.Number(q.data, (d * k + i) * columns + of) - moved;
        to[i / 4 * 4 * kInt8Columns + i % 4] = static_cast<int8_t>(number);
        w.sums[column] += number;
      }
    });
  }
}

}  // namespace

void PackMatrices(const RecurrentArgs& a, int64_t k, const float* source, float* rows, float* packed) {
  const int64_t width = a.order.width(), size = a.r.gates * a.r.hidden * k;
  for (int64_t d = 0; d < a.r.directions; ++d) {
    std::fill_n(rows, width * k, 0.0f);
    a.order.ForColumns([&](int64_t column, int64_t row) { std::copy_n(source + d * size + row * k, k, rows + column * k); });
    a.gemm->pack(rows, MGE_DTYPE_F32, 1, k, k, width, 1, packed + d * width * k, 0, width / a.order.columns);
  }
}

void PackQuantized(const RecurrentArgs& a, int64_t k, const Quantized& q, float* rows, void* packed) {
  if (a.int8) return PackInt8(a, k, q, static_cast<char*>(packed));
  const int64_t width = a.order.width(), columns = a.r.gates * a.r.hidden;
  for (int64_t d = 0; d < a.r.directions; ++d) {
    std::fill_n(rows, width * k, 0.0f);
    a.order.ForColumns([&](int64_t column, int64_t of) {
      const float scale = q.scale[q.scale_columns ? d * columns + of : d];
      const int zero = q.Number(q.zero, q.zero_columns ? d * columns + of : d);
      for (int64_t i = 0; i < k; ++i) {
        rows[column * k + i] = static_cast<float>(q.Number(q.data, (d * k + i) * columns + of) - zero) * scale;
      }
    });
    a.gemm->pack(rows, MGE_DTYPE_F32, 1, k, k, width, 1, static_cast<float*>(packed) + d * width * k, 0,
                 width / a.order.columns);
  }
}

void SumBiases(const RecurrentArgs& a, const float* source, float* out) {
  const int64_t gates = a.r.gates * a.r.hidden;
  std::fill_n(out, a.r.directions * a.bias_floats(), 0.0f);
  for (int64_t d = 0; source && d < a.r.directions; ++d, source += 2 * gates, out += a.bias_floats()) {
    a.order.ForColumns([&](int64_t column, int64_t i) {
      bool apart = a.separate_bias() && i >= 2 * a.r.hidden;
      out[column] = apart ? source[i] : source[i] + source[gates + i];
      if (apart) out[column + a.order.blocks * a.order.columns] = source[gates + i];
    });
  }
}

}  // namespace mge::cpu
