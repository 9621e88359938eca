// SPDX-License-Identifier: Apache-2.0
#include "support/product.h"

#include <algorithm>

#include "support/kernel.h"

namespace mge::cpu {
namespace {

Result FindGemm(const Node& n, Product* out) {
  Value a = n.input(0), b = n.input(1);
  if (a.rank() != 2 || b.rank() != 2) return {MGE_INVALID_ARGUMENT, "Gemm needs matrices"};
  bool ta = n.Int("transA", 0) != 0, tb = n.Int("transB", 0) != 0;
  out->size = {a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1), a.dim(ta ? 0 : 1), 1};
  if (b.dim(tb ? 1 : 0) != out->size.k) return {MGE_INVALID_ARGUMENT, "the matrix sizes do not match"};
  out->a_row = ta ? 1 : a.dim(1);
  out->a_k = ta ? a.dim(1) : 1;
  out->b_k = tb ? 1 : b.dim(1);
  out->b_column = tb ? b.dim(1) : 1;
  out->alpha = n.Float("alpha", 1.0f);
  out->beta = n.Float("beta", 1.0f);
  return {};
}

}  // namespace

Result FindMatMul(const Value& a, const Value& b, Product* out) {
  if (a.rank() < 1 || b.rank() < 1) return {MGE_INVALID_ARGUMENT, "MatMul needs operands with at least one dimension"};
  int64_t m = a.rank() == 1 ? 1 : a.dim(-2), k = a.dim(-1), columns = b.rank() == 1 ? 1 : b.dim(-1);
  if ((b.rank() == 1 ? b.dim(0) : b.dim(-2)) != k) return {MGE_INVALID_ARGUMENT, "the matrix sizes do not match"};
  out->a_row = k;
  out->a_k = 1;
  out->b_k = columns;
  out->b_column = 1;
  int a_batch = std::max(0, a.rank() - 2), b_batch = std::max(0, b.rank() - 2), rank = std::max(a_batch, b_batch);
  int64_t a_stride = m * k, b_stride = 1, batch = 1;
  out->batch_axes.resize(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    int64_t da = i <= a_batch ? a.dim(a_batch - i) : 1, db = i <= b_batch ? b.dim(b_batch - i) : 1, size = da == 1 ? db : da;
    out->batch_axes[static_cast<size_t>(rank - i)] = {size, da == 1 ? 0 : a_stride, db == 1 ? 0 : b_stride};
    a_stride *= da;
    b_stride *= db;
    batch *= size;
  }
  out->b_items = b_stride;
  if (b_stride == 1 && a_stride == batch * m * k) {  // the same B for all batches: the rows of all batches form one matrix
    m *= batch;
    batch = 1;
    out->batch_axes.clear();
  }
  constexpr int64_t kMaxBatch = 1 << 20;
  if (batch > kMaxBatch) return {MGE_UNIMPLEMENTED, "more than 2^20 products in a batch"};
  out->size = {m, columns, k, batch};
  return {};
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
  if (Result r = gemm ? FindGemm(n, out) : FindMatMul(n.input(0), n.input(1), out); !r.ok()) return r;
  out->type = n.output(0).dtype();
  out->a = p.operand(0, 0);
  out->b = p.operand(0, 1);
  if (gemm && n.has_input(2) && out->beta != 0) {
    out->start = p.operand(0, 2);
    const Value start = n.input(2);
    const bool rows = start.rank() == 2 && start.dim(0) > 1, columns = start.rank() >= 1 && start.dim(-1) > 1;
    out->start_value = start;
    out->start_row = rows ? (columns ? start.dim(1) : 1) : 0;
    out->start_column = columns ? 1 : 0;
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
