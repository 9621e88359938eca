// SPDX-License-Identifier: Apache-2.0
// GatherElements: an index per element of the output.
#include <algorithm>

#include "support/index.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int kMaxRank = 8;

// Rows are the last dimension of the indices; the outer dimensions number them.
struct Args {
  Slot x, indices, y;
  int64_t bound;              // size of x along the axis
  int64_t axis_stride;        // of x, in elements
  int64_t row;                // elements per row
  int64_t row_stride;         // from one element of a row to the next in x; 0 along the axis
  int32_t outer;              // outer dimensions
  int64_t dims[kMaxRank];     // of the indices
  int64_t strides[kMaxRank];  // of x, in elements; 0 along the axis
  Chunks chunks;              // of elements
};

// Copies n elements of a row. Stops at the first index out of range.
template <typename T, typename Index>
void CopyRow(const Args& a, const T* x, const Index* indices, T* y, int64_t n, IndexCheck& check) {
  const auto bound = static_cast<uint64_t>(a.bound);
  for (int64_t j = 0; j < n; ++j) {
    int64_t i = indices[j];
    i += i < 0 ? a.bound : 0;
    if (static_cast<uint64_t>(i) >= bound) [[unlikely]] {
      check.Checked(indices[j], a.bound);
      return;
    }
    y[j] = x[j * a.row_stride + i * a.axis_stride];
  }
}

template <typename T, typename Index>
mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const T>(run, a.x);
  auto* indices = At<const Index>(run, a.indices);
  auto* y = At<T>(run, a.y);
  IndexCheck check;
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t last) {
    const auto end = static_cast<int64_t>(last);
    for (auto u = static_cast<int64_t>(first); u < end && !check.failed();) {
      const int64_t column = u % a.row, n = std::min(a.row - column, end - u);
      int64_t rest = u / a.row, offset = column * a.row_stride;
      for (int d = a.outer - 1; d >= 0; --d) {
        offset += rest % a.dims[d] * a.strides[d];
        rest /= a.dims[d];
      }
      CopyRow(a, x + offset, indices + u, y + u, n, check);
      u += n;
    }
  });
  return check.Answer(run, "GatherElements");
}

double SerialUs(const Value& x, const Value& y) {
  const double element_us = x.bytes() > (8 << 20) ? 0.02 : 1.2e-3;  // elements that no cache holds wait for memory
  return StreamUs(2.0 * static_cast<double>(y.bytes())) + element_us * static_cast<double>(y.elements());
}

// Describes the indices without dimensions of size 1. Neighbours that are contiguous in x are one dimension.
Result Describe(const Node& n, Args* a) {
  Value x = n.input(0), indices = n.input(1);
  const int rank = x.rank(), axis = static_cast<int>(n.Int("axis"));
  if (indices.dtype() != MGE_DTYPE_I64 && indices.dtype() != MGE_DTYPE_I32) return {MGE_UNIMPLEMENTED, "wrong index type"};
  if (rank > kMaxRank) return {MGE_UNIMPLEMENTED, "more than 8 dimensions"};
  if (indices.rank() != rank) return {MGE_UNIMPLEMENTED, "indices of another rank"};
  *a = {};
  a->bound = x.dim(axis);
  int64_t dims[kMaxRank], strides[kMaxRank], step = 1;  // innermost first
  int count = 0;
  for (int d = rank - 1; d >= 0; step *= x.dim(d--)) {
    const int64_t stride = d == axis ? 0 : step;
    if (d == axis) a->axis_stride = step;
    if (indices.dim(d) == 1) continue;
    if (count > 0 && stride == strides[count - 1] * dims[count - 1] && stride != 0) {
      dims[count - 1] *= indices.dim(d);
      continue;
    }
    dims[count] = indices.dim(d);
    strides[count++] = stride;
  }
  a->row = count > 0 ? dims[0] : 1;
  a->row_stride = count > 0 ? strides[0] : 0;
  for (int d = count - 1; d > 0; --d) {
    a->dims[a->outer] = dims[d];
    a->strides[a->outer++] = strides[d];
  }
  const uint64_t units = indices.elements();
  a->chunks = SplitWork(units, units ? SerialUs(x, indices) / static_cast<double>(units) : 0);
  return {};
}

template <typename T, typename Make>
KernelPtr KernelOf(bool wide, Make make) {
  if (wide) return MakeSimple<Args, Launch<T, int64_t>>(make);
  return MakeSimple<Args, Launch<T, int32_t>>(make);
}

struct GatherElementsRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Args a;
    if (Result r = Describe(p.node(), &a); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "cpu.gather_elements",
                .attributes = kExact,
                .cost_us = RunUs(p, SerialUs(p.node().input(0), p.node().output(0)))});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Node n = p.node();
    Args a;
    if (!Describe(n, &a).ok()) return nullptr;
    auto make = [a, x = p.operand(0, 0), indices = p.operand(0, 1)](const Binding& b) {
      Args out = a;
      out.x = b.input(x);
      out.indices = b.input(indices);
      out.y = b.output(0);
      return out;
    };
    const bool wide = n.input(1).dtype() == MGE_DTYPE_I64;
    switch (SizeOf(n.output(0).dtype())) {
      case 1: return KernelOf<uint8_t>(wide, make);
      case 2: return KernelOf<uint16_t>(wide, make);
      case 4: return KernelOf<uint32_t>(wide, make);
      default: return KernelOf<uint64_t>(wide, make);
    }
  }
};

constexpr KernelRow kRows[] = {Row<GatherElementsRow>("GatherElements")};

}  // namespace

MGE_KERNELS(gather_elements) = kRows;

}  // namespace mge::cpu
