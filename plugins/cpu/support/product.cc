// SPDX-License-Identifier: Apache-2.0
#include "support/product.h"

#include <algorithm>

#include "mge/plugin/problems/product.hpp"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

Result SetSizes(const MatrixProduct& product, Product* out) {
  constexpr int64_t kMaxBatch = 1 << 20;
  if (product.batch > kMaxBatch) return {MGE_UNIMPLEMENTED, "more than 2^20 products in a batch"};
  out->size = {product.m, product.n, product.k, product.batch};
  out->a_row = product.a_row;
  out->a_k = product.a_k;
  out->b_k = product.b_k;
  out->b_column = product.b_column;
  const int64_t matrix = std::max<int64_t>(product.k * product.n, 1);
  for (const MatrixProduct::BatchAxis& axis : product.axes) out->batch_axes.push_back({axis.size, axis.a, axis.b / matrix});
  out->alpha = product.alpha;
  out->beta = product.beta;
  return {};
}

}  // namespace

Result FindMatMul(const Value& a, const Value& b, Product* out) {
  MatrixProduct product;
  if (Result r = ReadMatMul(a, b, &product); !r.ok()) return r;
  for (int d = 0; d < b.rank() - 2; ++d) out->b_items *= b.dim(d);
  product.MergeBatch();
  return SetSizes(product, out);
}

std::vector<Product::Item> Product::Items() const {
  std::vector<Item> items;
  items.reserve(static_cast<size_t>(size.batch));
  std::vector<int64_t> index(batch_axes.size(), 0);
  int64_t at_a = 0, at_b = 0;
  for (int64_t i = 0; i < size.batch; ++i) {
    items.push_back({at_a, at_b, i * size.m * size.n});
    for (size_t d = batch_axes.size(); d-- > 0;) {
      const BatchAxis& axis = batch_axes[d];
      at_a += axis.a;
      at_b += axis.b;
      if (++index[d] < axis.size) break;
      at_a -= axis.a * axis.size;
      at_b -= axis.b * axis.size;
      index[d] = 0;
    }
  }
  return items;
}

Result FindProduct(const Problem& p, Product* out) {
  Node n = p.node();
  bool gemm = n.Is("Gemm");
  MatrixProduct product;
  if (Result r = gemm ? ReadGemm(n, &product) : FindMatMul(n.input(0), n.input(1), out); !r.ok()) return r;
  if (gemm) {
    if (Result r = SetSizes(product, out); !r.ok()) return r;
  }
  out->type = n.output(0).dtype();
  out->a = p.operand(0, 0);
  out->b = p.operand(0, 1);
  if (gemm && n.has_input(2) && out->beta != 0) {
    out->start = p.operand(0, 2);
    out->start_value = n.input(2);
    out->start_row = product.c_row;
    out->start_column = product.c_column;
  }
  if (!FindEpilogue(p, ChannelAxis::kLast, out->epilogue)) return {MGE_UNIMPLEMENTED, "unsupported epilogue"};
  out->epilogue_bias = p.operand(out->epilogue.bias);
  out->epilogue_add = p.operand(out->epilogue.add);
  if (n.input(0).dtype() != out->type || n.input(1).dtype() != out->type)
    return {MGE_UNIMPLEMENTED, "operands of different types"};
  bool again = out->b == out->a || out->b == out->start || out->b == out->epilogue_bias || out->b == out->epilogue_add;
  out->b_constant = n.input(1).is_constant() && !again;
  out->b_state = n.input(1).is_state() && !again;
  out->adds = p.adds(0);
  if (out->adds && (out->type != MGE_DTYPE_F32 || p.node_count() > 1 || out->start >= 0)) {
    return {MGE_UNIMPLEMENTED, "adds only a float32 product alone to its output"};
  }
  return {};
}

}  // namespace mge::cpu
