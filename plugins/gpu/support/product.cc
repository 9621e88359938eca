// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/product.h"

#include <algorithm>

#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

Result FindGemm(const Node& n, MatMulArgs* args) {
  Value a = n.input(0), b = n.input(1);
  if (a.rank() != 2 || b.rank() != 2) return Refusal("Gemm needs matrices");
  bool ta = n.Int("transA", 0) != 0, tb = n.Int("transB", 0) != 0;
  args->m = a.dim(ta ? 1 : 0);
  args->k = a.dim(ta ? 0 : 1);
  args->n = b.dim(tb ? 0 : 1);
  args->batch = 1;
  if (b.dim(tb ? 1 : 0) != args->k) return Refusal("the matrix sizes do not match");
  args->a_row = ta ? 1 : a.dim(1);
  args->a_k = ta ? a.dim(1) : 1;
  args->b_k = tb ? 1 : b.dim(1);
  args->b_column = tb ? b.dim(1) : 1;
  args->alpha = n.Float("alpha", 1.0f);
  args->beta = n.Float("beta", 1.0f);
  if (!n.has_input(2)) return {};
  Value c = n.input(2);  // broadcast to (m, n)
  int64_t rows = c.rank() == 2 ? c.dim(0) : 1, columns = c.rank() ? c.dim(-1) : 1;
  args->c_row = rows == 1 ? 0 : columns;
  args->c_column = columns == 1 ? 0 : 1;
  return {};
}

}  // namespace

Result FindMatMul(const Value& a, const Value& b, MatMulArgs* args) {
  if (a.rank() < 1 || b.rank() < 1) return Refusal("MatMul needs operands with at least one dimension");
  args->m = a.rank() == 1 ? 1 : a.dim(-2);
  args->k = a.dim(-1);
  args->n = b.rank() == 1 ? 1 : b.dim(-1);
  if ((b.rank() == 1 ? b.dim(0) : b.dim(-2)) != args->k) return Refusal("the matrix sizes do not match");
  args->a_row = args->k;
  args->b_k = args->n;
  args->a_k = args->b_column = args->alpha = 1;
  int a_batch = std::max(0, a.rank() - 2), b_batch = std::max(0, b.rank() - 2), rank = std::max(a_batch, b_batch);
  args->batch_rank = rank;
  args->batch = 1;
  int64_t a_step = args->m * args->k, b_step = args->k * args->n;
  for (int i = 1; i <= rank; ++i) {
    int64_t da = i <= a_batch ? a.dim(a_batch - i) : 1, db = i <= b_batch ? b.dim(b_batch - i) : 1;
    int at = rank - i;
    args->batch_dims[at] = da == 1 ? db : da;
    args->a_batch[at] = da == 1 ? 0 : a_step;
    args->b_batch[at] = db == 1 ? 0 : b_step;
    args->residual_batch[at] = args->batch * args->m * args->n;
    a_step *= da;
    b_step *= db;
    args->batch *= args->batch_dims[at];
  }
  return {};
}

bool MergeBatches(MatMulArgs* args) {
  const int rank = args->batch_rank;
  if (rank == 0 || !std::all_of(args->b_batch, args->b_batch + rank, [](int64_t step) { return step == 0; })) return false;
  int64_t step = args->m * args->k;
  for (int d = rank - 1; d >= 0; --d) {
    if (args->batch_dims[d] != 1 && args->a_batch[d] != step) return false;
    step *= args->batch_dims[d];
  }
  args->m *= args->batch;
  args->batch = 1;
  args->batch_rank = 0;
  return true;
}

Result FindProduct(const Problem& p, Product* out) {
  Node n = p.node();
  bool gemm = n.Is("Gemm");
  if (Result r = gemm ? FindGemm(n, &out->args) : FindMatMul(n.input(0), n.input(1), &out->args); !r.ok()) return r;
  if (!gemm) MergeBatches(&out->args);
  out->type = n.output(0).dtype();
  out->a = InputOf(p, 0);
  out->b = InputOf(p, 1);
  if (gemm && n.has_input(2) && out->args.beta != 0) out->c = InputOf(p, 2);
  if (n.input(0).dtype() != out->type || n.input(1).dtype() != out->type ||
      (out->c >= 0 && n.input(2).dtype() != out->type)) {
    return Refusal("operands of different types");
  }
  Epilogue e;
  if (!FindEpilogue(p, ChannelAxis::kLast, &e)) return Refusal("unsupported epilogue");
  out->bias = p.operand(e.bias);
  out->residual = p.operand(e.residual);
  out->args.bias_column = out->bias >= 0 && p.input(out->bias).elements() > 1;
  out->args.residual_row = out->args.n;
  out->args.residual_column = 1;
  out->args.activation = e.activation;
  out->y = OutputNumber(p, e.output);
  if (e.before >= 0) out->before = OutputNumber(p, e.before);
  out->adds = p.adds(out->y) || (out->before >= 0 && p.adds(out->before));
  if (out->adds && (p.node_count() > 1 || !IsFloating(out->type))) {
    return Refusal("adds only a product of floats alone to its output");
  }
  return {};
}

}  // namespace mge::gpu
