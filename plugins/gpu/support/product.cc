// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/product.h"

#include "mge/plugin/problems/product.hpp"
#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

void SetSizes(const MatrixProduct& product, MatMulArgs* args) {
  args->m = product.m;
  args->n = product.n;
  args->k = product.k;
  args->a_row = product.a_row;
  args->a_k = product.a_k;
  args->b_k = product.b_k;
  args->b_column = product.b_column;
  args->c_row = product.c_row;
  args->c_column = product.c_column;
  args->alpha = product.alpha;
  args->beta = product.beta;
  args->batch = product.batch;
  args->batch_rank = static_cast<int32_t>(product.axes.size());
  int64_t step = product.m * product.n;
  for (size_t d = product.axes.size(); d-- > 0;) {
    args->batch_dims[d] = product.axes[d].size;
    args->a_batch[d] = product.axes[d].a;
    args->b_batch[d] = product.axes[d].b;
    args->residual_batch[d] = step;
    step *= product.axes[d].size;
  }
}

}  // namespace

Result FindProduct(const Problem& p, Product* out) {
  Node n = p.node();
  bool gemm = n.Is("Gemm");
  MatrixProduct product;
  if (Result r = ReadProduct(n, &product); !r.ok()) return Refusal(r.text());
  product.MergeBatch();
  SetSizes(product, &out->args);
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
