// SPDX-License-Identifier: Apache-2.0
// Hardmax along any axis: zeros, and 1 where ArgMax finds the largest element.
#include <algorithm>
#include <cstring>

#include "support/kernel.h"
#include "support/work.h"
#include "vec/reduce.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, y;
  ArgSpec spec;
  ArgFn fn;
  uint32_t bytes;  // per element
  uint64_t one;    // the bits of 1
  Chunks chunks;   // of the rows along the axis
};

// Computes neighbouring rows: whole ones that lie together, or columns of one block.
void RunRows(const Args& a, const char* x, char* y, int64_t begin, int64_t end) {
  int64_t at[64];
  a.fn(a.spec, x, at, begin, end);
  const int64_t n = a.spec.n, inner = a.spec.inner;
  char* first = y + (begin / inner * n * inner + begin % inner) * a.bytes;
  const auto width = static_cast<size_t>(end - begin) * a.bytes;
  if (inner == 1) {
    std::memset(first, 0, width * static_cast<size_t>(n));
  } else {
    for (int64_t k = 0; k < n; ++k) std::memset(first + k * inner * a.bytes, 0, width);
  }
  const int64_t next = inner == 1 ? n : 1;
  for (int64_t u = 0; u < end - begin; ++u) std::memcpy(first + (u * next + at[u] * inner) * a.bytes, &a.one, a.bytes);
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<char>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    const int64_t inner = a.spec.inner, last = static_cast<int64_t>(end);
    for (auto u = static_cast<int64_t>(begin); u < last;) {
      const int64_t left = inner == 1 ? 16 : std::min<int64_t>(64, inner - u % inner);
      const int64_t next = std::min(last, u + left);
      RunRows(a, x, y, u, next);
      u = next;
    }
  });
  return MGE_OK;
}

uint64_t BitsOfOne(mge_dtype type) {
  switch (type) {
    case MGE_DTYPE_F32: return 0x3f800000u;
    case MGE_DTYPE_F64: return 0x3ff0000000000000u;
    case MGE_DTYPE_F16: return 0x3c00u;
    default: return 0x3f80u;  // bfloat16
  }
}

ArgSpec SpecOf(const Node& n) {
  Value x = n.input(0);
  ArgSpec spec = {1, 1, false, false};
  if (x.rank() == 0) return spec;
  auto axis = static_cast<int>(n.Int("axis"));
  spec.n = x.dim(axis);
  for (int d = axis + 1; d < x.rank(); ++d) spec.inner *= x.dim(d);
  return spec;
}

double SerialUs(const Value& x, int64_t n, Isa isa) {
  const auto elements = static_cast<double>(x.elements());
  return StreamUs(2.0 * static_cast<double>(x.bytes())) + 1e-3 * (isa == Isa::kPortable ? 0.6 : 0.15) * elements +
         0.02 * elements / static_cast<double>(std::max<int64_t>(1, n));
}

struct HardmaxRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    ArgSpec spec = SpecOf(p.node());
    Isa isa = AllowedIsa();
    if (!IsFloating(x.dtype()) || !FindArg(isa, x.dtype())) return offers.Refuse("only floating types");
    if (spec.n > INT32_MAX) return offers.Refuse("an axis of 2^31 elements");
    Add(offers, isa, {.id = "cpu.hardmax", .attributes = kExact, .cost_us = RunUs(p, SerialUs(x, spec.n, isa))});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Value x = p.node().input(0);
    Isa isa = IsaOf(c);
    Args a = {};
    a.spec = SpecOf(p.node());
    a.fn = FindArg(isa, x.dtype());
    a.bytes = SizeOf(x.dtype());
    a.one = BitsOfOne(x.dtype());
    uint64_t units = x.elements() ? x.elements() / static_cast<uint64_t>(a.spec.n) : 0;
    a.chunks = SplitWork(units, units ? SerialUs(x, a.spec.n, isa) / static_cast<double>(units) : 0);
    return MakeSimple<Args, Launch>([a](const Binding& b) {
      Args out = a;
      out.x = b.input(0);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<HardmaxRow>("Hardmax")};

}  // namespace

MGE_KERNELS(hardmax) = kRows;

}  // namespace mge::cpu
