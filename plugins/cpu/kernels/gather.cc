// SPDX-License-Identifier: Apache-2.0
// Gather and GatherND.
#include "support/index.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int kMaxRank = 8;

// Output piece u is `bytes` bytes of x, at an offset given by its index tuple.
struct Args {
  enum Kind { kAlong, kTuples } kind;
  const char* name;
  Slot x, indices, y;
  bool wide;
  int64_t bytes;                 // bytes per piece
  int64_t n, m;                  // kAlong: size along the axis of x, of the indices
  int64_t element;               // bytes per element of x
  int32_t rank;                  // kTuples: indices per tuple
  int64_t dims[kMaxRank];        // kTuples: the indexed dimensions of x
  int64_t strides[kMaxRank];     // of x, in elements
  int64_t tuples, batch_stride;  // kTuples: tuples per batch; elements of x per batch
  Chunks chunks;
};

void CopyPiece(char* to, const char* from, int64_t bytes) {
  switch (bytes) {
    case 1: *to = *from; return;
    case 2: std::memcpy(to, from, 2); return;
    case 4: std::memcpy(to, from, 4); return;
    case 8: std::memcpy(to, from, 8); return;
    default: std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<char>(run, a.y);
  IndexList indices = {At<const char>(run, a.indices), a.wide};
  IndexCheck check;
  ForChunks(run, a.chunks, [&](uint64_t first, uint64_t last) {
    for (auto u = static_cast<int64_t>(first); u < static_cast<int64_t>(last); ++u) {
      int64_t from = 0;  // in bytes
      if (a.kind == Args::kAlong) {
        int64_t i = check.Checked(indices[u % a.m], a.n);
        from = (u / a.m * a.n + i) * a.bytes;
        if (i < 0) return;
      } else {
        int64_t offset = u / a.tuples * a.batch_stride;
        for (int k = 0; k < a.rank; ++k) {
          int64_t i = check.Checked(indices[u * a.rank + k], a.dims[k]);
          if (i < 0) return;
          offset += i * a.strides[k];
        }
        from = offset * a.element;
      }
      CopyPiece(y + u * a.bytes, x + from, a.bytes);
    }
  });
  return check.Answer(run, a.name);
}

int64_t Product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// A piece of a table that no cache holds waits for memory.
double SerialUs(const Value& x, const Value& y, uint64_t pieces) {
  double piece_us = x.bytes() > (8 << 20) ? 0.08 : 5e-3;
  return StreamUs(2.0 * static_cast<double>(y.bytes())) + piece_us * static_cast<double>(pieces);
}

// Describes the pieces of the output. Fails with the reason if the node is not supported.
Result Describe(const Problem& p, Args* a) {
  Node n = p.node();
  Value x = n.input(0), indices = n.input(1), y = n.output(0);
  int rank = x.rank();
  if (indices.dtype() != MGE_DTYPE_I64 && indices.dtype() != MGE_DTYPE_I32) return {MGE_UNIMPLEMENTED, "wrong index type"};
  if (rank > kMaxRank) return {MGE_UNIMPLEMENTED, "more than 8 dimensions"};
  *a = {};
  a->wide = indices.dtype() == MGE_DTYPE_I64;
  a->element = SizeOf(x.dtype());
  std::vector<int64_t> strides(static_cast<size_t>(rank));
  int64_t step = 1;
  for (int d = rank - 1; d >= 0; step *= x.dim(d--)) strides[static_cast<size_t>(d)] = step;
  uint64_t units = 0;
  if (n.op() == "GatherND") {
    auto batch = static_cast<int>(n.Int("batch_dims"));
    if (indices.rank() < 1 || batch < 0 || batch >= indices.rank() || batch > rank) {
      return {MGE_UNIMPLEMENTED, "batch_dims outside of the rank"};
    }
    auto tuple = static_cast<int>(indices.dim(-1));
    if (batch + tuple > rank) return {MGE_UNIMPLEMENTED, "more indices than dimensions"};
    a->kind = Args::kTuples;
    a->name = "GatherND";
    a->rank = tuple;
    for (int k = 0; k < tuple; ++k) {
      a->dims[k] = x.dim(batch + k);
      a->strides[k] = strides[static_cast<size_t>(batch + k)];
    }
    a->bytes = Product(x.dims().subspan(static_cast<size_t>(batch + tuple))) * a->element;
    a->tuples = Product(indices.dims().subspan(static_cast<size_t>(batch), static_cast<size_t>(indices.rank() - 1 - batch)));
    a->batch_stride = Product(x.dims().subspan(static_cast<size_t>(batch)));
    units = static_cast<uint64_t>(Product(indices.dims().first(static_cast<size_t>(indices.rank() - 1))));
  } else {
    int64_t axis = n.Int("axis");
    a->kind = Args::kAlong;
    a->name = "Gather";
    a->n = x.dim(static_cast<int>(axis));
    a->m = static_cast<int64_t>(indices.elements());
    a->bytes = strides[static_cast<size_t>(axis)] * a->element;
    units = static_cast<uint64_t>(Product(x.dims().first(static_cast<size_t>(axis))) * a->m);
  }
  if (y.elements() == 0) units = 0;
  double us = SerialUs(x, y, units);
  a->chunks = SplitWork(units, units ? us / static_cast<double>(units) : 0);
  return {};
}

struct GatherRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Args a;
    if (Result r = Describe(p, &a); !r.ok()) return offers.Refuse(r.text());
    double us = SerialUs(p.node().input(0), p.node().output(0), a.chunks.items);
    offers.Add({.id = "cpu.gather", .attributes = kExact, .cost_us = RunUs(p, us)});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Args a;
    if (!Describe(p, &a).ok()) return nullptr;
    return MakeSimple<Args, Launch>([a, x = p.operand(0, 0), indices = p.operand(0, 1)](const Binding& b) {
      Args out = a;
      out.x = b.input(x);
      out.indices = b.input(indices);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<GatherRow>("Gather"), Row<GatherRow>("GatherND")};

}  // namespace

MGE_KERNELS(gather) = kRows;

}  // namespace mge::cpu
