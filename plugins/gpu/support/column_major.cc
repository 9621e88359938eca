// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/column_major.h"

#include <algorithm>
#include <string>

#include "plugins/gpu/support/row.h"
#include "plugins/gpu/support/siblings.h"

namespace mge::gpu {
namespace {

// Returns how a matrix with these strides is stored. Returns false if neither rows nor columns are dense.
bool StoredAs(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, Stored* out) {
  if ((row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1)) {
    *out = {rows, columns, std::max(column_stride, rows), false};
    return true;
  }
  if ((column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1)) {
    *out = {columns, rows, std::max(row_stride, columns), true};
    return true;
  }
  return false;
}

// Returns the distance between neighbouring batches. Returns false if it is not the same for all.
bool BatchStride(const MatMulArgs& args, const int64_t* strides, int64_t* out) {
  *out = 0;
  int64_t inner = -1;  // the stride that a dimension further out must have
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    if (args.batch_dims[d] == 1) continue;
    if (inner < 0) {
      *out = strides[d];
    } else if (strides[d] != inner) {
      return false;
    }
    inner = strides[d] * args.batch_dims[d];
  }
  return true;
}

Result Read(const Product& p, const std::string& library, ColumnMajorProduct* out) {
  const MatMulArgs& args = p.args;
  out->type = p.type;
  if (!StoredAs(args.n, args.k, args.b_column, args.b_k, &out->left) ||
      !StoredAs(args.k, args.m, args.a_k, args.a_row, &out->right)) {
    return Refusal(library + ": strides of an operand");
  }
  if (!BatchStride(args, args.a_batch, &out->right_step) || !BatchStride(args, args.b_batch, &out->left_step)) {
    return Refusal(library + ": batches at irregular distances");
  }
  out->rows = args.m;
  out->columns = args.n;
  out->depth = args.k;
  out->batch = args.batch;
  out->alpha = args.alpha;
  out->a = p.a;
  out->b = p.b;
  out->bias = p.bias;
  out->activation = args.activation;
  out->before = p.before;
  if (p.bias >= 0 && args.bias_column == 0) return Refusal(library + ": a bias of one element");
  if (p.c >= 0) {  // a Gemm with an operand C
    const bool whole = (args.c_row == args.n || args.m == 1) && (args.c_column == 1 || args.n == 1);
    const bool per_column = args.c_row == 0 && args.c_column == 1 && args.beta == 1 && p.bias < 0;
    if (whole && p.residual < 0 && !p.adds && args.c_row != 0) {
      out->start = p.c;
      out->beta = args.beta;
    } else if (per_column) {
      out->bias = p.c;
    } else {
      return Refusal(library + ": the shape of C");
    }
  }
  if (p.residual >= 0) out->start = p.residual;
  if (p.residual >= 0 || p.adds) out->beta = 1;
  return {};
}

}  // namespace

Result FindColumnMajor(const Problem& p, const char* library, std::vector<ColumnMajorProduct>* out) {
  std::vector<std::pair<Product, int>> products;
  if (Siblings siblings; FindSiblings(p, &siblings)) {
    for (const auto& one : siblings.products) products.emplace_back(ProductOf(p, one), OutputNumber(p, one.output));
  } else {
    products.emplace_back(Product(), 0);
    auto& [product, output] = products.front();
    if (Result r = FindProduct(p, &product); !r.ok()) return r;
    output = product.y;
  }
  for (const auto& [product, output] : products) {
    ColumnMajorProduct& one = out->emplace_back();
    one.output = output;
    if (Result r = Read(product, library, &one); !r.ok()) return r;
  }
  return {};
}

std::vector<mge_in_place> InPlaceOf(const std::vector<ColumnMajorProduct>& products) {
  const ColumnMajorProduct& p = products.front();
  if (p.start < 0 || p.start == p.a || p.start == p.b || p.beta != 1) return {};
  return {{static_cast<uint32_t>(p.output), static_cast<uint32_t>(p.start)}};
}

ProductSlots SlotsOf(const Binding& binding, const ColumnMajorProduct& p) {
  const Slot y = binding.output(p.output);
  return {binding.input(p.a),
          binding.input(p.b),
          p.start >= 0 ? binding.input(p.start) : y,
          p.bias >= 0 ? binding.input(p.bias) : y,
          y,
          p.before >= 0 ? binding.output(p.before) : y};
}

}  // namespace mge::gpu
