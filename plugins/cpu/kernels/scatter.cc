// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND. Updates of one place are applied in order on one thread: of equal indices the last one
// wins, and sums are always formed in the same order. Threads divide a dimension that the indices do not choose; ScatterND
// has none.
#include "support/index.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int kMaxRank = 8;

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

// to[i] = f(to[i], from[i]) for i < n
using ApplyFn = void (*)(char* to, const char* from, int64_t n);

struct Args {
  const char* name;
  Slot x, indices, updates, y;
  bool wide, tuples;
  ApplyFn apply;
  uint64_t bytes;          // bytes of y
  int64_t element, piece;  // bytes per element; elements per index
  int64_t count;           // pieces of the updates
  int64_t n;               // ScatterElements: size along the axis
  int32_t rank, axis;
  int32_t split;              // ScatterElements: the dimension that threads divide
  Chunks chunks;              // of it
  int64_t dims[kMaxRank];     // of the indices, or the indexed dimensions
  int64_t strides[kMaxRank];  // of y, in elements
};

template <typename C>
C Multiply(C a, C b) {
  if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return a * b;
}
template <typename C>
C AddUp(C a, C b) {
  if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  return a + b;
}

template <typename T, Reduction R>
void Apply(char* to, const char* from, int64_t n) {
  auto* y = reinterpret_cast<T*>(to);
  auto* x = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) {
    auto a = Widen(y[i]), b = Widen(x[i]);
    if constexpr (R == Reduction::kAdd) y[i] = Narrow<T>(AddUp(a, b));
    if constexpr (R == Reduction::kMul) y[i] = Narrow<T>(Multiply(a, b));
    if constexpr (R == Reduction::kMax) y[i] = Narrow<T>(a != a || a > b ? a : b);
    if constexpr (R == Reduction::kMin) y[i] = Narrow<T>(a != a || a < b ? a : b);
  }
}

template <int Bytes>
void Put(char* to, const char* from, int64_t n) {
  std::memcpy(to, from, static_cast<size_t>(n * Bytes));
}

ApplyFn FindApply(Reduction r, mge_dtype type) {
  if (r == Reduction::kNone) {
    switch (SizeOf(type)) {
      case 1: return Put<1>;
      case 2: return Put<2>;
      case 4: return Put<4>;
      default: return Put<8>;
    }
  }
  ApplyFn f = nullptr;
  DispatchNumeric(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    switch (r) {
      case Reduction::kAdd: f = Apply<T, Reduction::kAdd>; break;
      case Reduction::kMul: f = Apply<T, Reduction::kMul>; break;
      case Reduction::kMax: f = Apply<T, Reduction::kMax>; break;
      case Reduction::kMin: f = Apply<T, Reduction::kMin>; break;
      case Reduction::kNone: break;
    }
  });
  return f;
}

mge_code LaunchTuples(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* updates = At<const char>(run, a.updates);
  auto* y = At<char>(run, a.y);
  IndexList indices = {At<const char>(run, a.indices), a.wide};
  if (x != y) std::memcpy(y, x, a.bytes);
  IndexCheck check;
  for (int64_t u = 0; u < a.count && !check.failed(); ++u) {
    int64_t offset = 0;
    for (int k = 0; k < a.rank; ++k) offset += check.Checked(indices[u * a.rank + k], a.dims[k]) * a.strides[k];
    if (!check.failed()) a.apply(y + offset * a.element, updates + u * a.piece * a.element, a.piece);
  }
  return check.Answer(run, a.name);
}

// Applies the updates whose coordinate along a.split is in [begin, end). Index is int32_t or int64_t; apply(to, from)
// applies one.
template <typename Index, typename Apply>
void ScatterElements(const Args& a, IndexCheck& check, const Index* indices, const char* updates, char* y, int64_t begin,
                     int64_t end, Apply apply) {
  const int last = a.rank - 1;
  int64_t at[kMaxRank] = {}, rows = 1, steps[kMaxRank];  // steps: of the updates, elements
  for (int64_t d = last, step = 1; d >= 0; step *= a.dims[d--]) steps[d] = step;
  auto first = [&](int d) { return d == a.split ? begin : 0; };
  auto limit = [&](int d) { return d == a.split ? end : a.dims[d]; };
  int64_t u = 0, base = 0;
  for (int d = 0; d <= last; ++d) {
    at[d] = first(d);
    u += at[d] * steps[d];
    if (d != a.axis) base += at[d] * a.strides[d];
    if (d < last) rows *= limit(d) - first(d);
  }
  const int64_t n = limit(last) - first(last), along = a.axis == last ? 0 : 1;
  for (; rows > 0 && !check.failed(); --rows) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t i = check.Checked(indices[u + j], a.n);
      if (i < 0) return;
      apply(y + (base + j * along + i * a.strides[a.axis]) * a.element, updates + (u + j) * a.element);
    }
    for (int d = last - 1; d >= 0; --d) {
      const int64_t place = d == a.axis ? 0 : a.strides[d];
      u += steps[d];
      base += place;
      if (++at[d] < limit(d)) break;
      u -= (at[d] - first(d)) * steps[d];
      base -= (at[d] - first(d)) * place;
      at[d] = first(d);
    }
  }
}

mge_code LaunchElements(const Args& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* updates = At<const char>(run, a.updates);
  auto* indices = At<const char>(run, a.indices);
  auto* y = At<char>(run, a.y);
  if (x != y) std::memcpy(y, x, a.bytes);
  IndexCheck check;
  ForChunks(run, a.chunks, [&](uint64_t b, uint64_t e) {
    const auto begin = static_cast<int64_t>(b), end = static_cast<int64_t>(e);
    auto run_with = [&](auto apply) {
      if (a.wide)
        ScatterElements(a, check, reinterpret_cast<const int64_t*>(indices), updates, y, begin, end, apply);
      else
        ScatterElements(a, check, reinterpret_cast<const int32_t*>(indices), updates, y, begin, end, apply);
    };
    // The usual case without a call for each element.
    if (a.apply == Put<4>)
      run_with([](char* to, const char* from) { std::memcpy(to, from, 4); });
    else
      run_with([&](char* to, const char* from) { a.apply(to, from, 1); });
  });
  return check.Answer(run, a.name);
}

// Estimate of one thread's time.
double SerialUs(const Args& a) {
  return StreamUs(2.0 * static_cast<double>(a.bytes)) + (a.tuples ? 8e-3 : 2e-3) * static_cast<double>(a.count) +
         StreamUs(2.0 * static_cast<double>(a.count * a.piece * a.element));
}

Result Describe(const Problem& p, Args* a) {
  Node n = p.node();
  Value x = n.input(0), indices = n.input(1), updates = n.input(2);
  int rank = x.rank();
  if (indices.dtype() != MGE_DTYPE_I64 && indices.dtype() != MGE_DTYPE_I32) return {MGE_UNIMPLEMENTED, "wrong index type"};
  if (rank > kMaxRank || rank == 0) return {MGE_UNIMPLEMENTED, "one to eight dimensions only"};
  std::string_view word = n.Word("reduction");
  Reduction r = word == "add"   ? Reduction::kAdd
                : word == "mul" ? Reduction::kMul
                : word == "max" ? Reduction::kMax
                : word == "min" ? Reduction::kMin
                                : Reduction::kNone;
  *a = {};
  a->apply = FindApply(r, x.dtype());
  if (!a->apply) return {MGE_UNIMPLEMENTED, "this reduction does not support " + std::string(TypeName(x.dtype()))};
  a->wide = indices.dtype() == MGE_DTYPE_I64;
  a->element = SizeOf(x.dtype());
  a->bytes = x.bytes();
  int64_t step = 1;
  int64_t strides[kMaxRank];
  for (int d = rank - 1; d >= 0; step *= x.dim(d--)) strides[d] = step;
  if (n.op() == "ScatterND") {
    if (indices.rank() < 1) return {MGE_UNIMPLEMENTED, "indices without dimensions"};
    auto tuple = static_cast<int>(indices.dim(-1));
    if (tuple > rank) return {MGE_UNIMPLEMENTED, "more indices than dimensions"};
    a->name = "ScatterND";
    a->tuples = true;
    a->rank = tuple;
    a->piece = 1;
    for (int d = tuple; d < rank; ++d) a->piece *= x.dim(d);
    for (int k = 0; k < tuple; ++k) {
      a->dims[k] = x.dim(k);
      a->strides[k] = strides[k];
    }
    a->count = 1;
    for (int d = 0; d + 1 < indices.rank(); ++d) a->count *= indices.dim(d);
    if (static_cast<uint64_t>(a->count * a->piece) != updates.elements())
      return {MGE_UNIMPLEMENTED, "updates of another size"};
  } else {
    int64_t axis = n.Int("axis");
    if (indices.rank() != rank) return {MGE_UNIMPLEMENTED, "indices of another rank"};
    if (indices.elements() != updates.elements()) return {MGE_UNIMPLEMENTED, "updates of another size"};
    a->name = "ScatterElements";
    a->rank = rank;
    a->axis = static_cast<int32_t>(axis);
    a->n = x.dim(a->axis);
    a->piece = 1;
    a->count = static_cast<int64_t>(indices.elements());
    for (int d = 0; d < rank; ++d) {
      a->dims[d] = indices.dim(d);
      a->strides[d] = strides[d];
    }
  }
  if (x.elements() == 0) a->count = 0;
  if (a->tuples) return {};
  for (int d = 0; d < rank; ++d) {
    if (a->split == a->axis || (d != a->axis && a->dims[d] > a->dims[a->split])) a->split = d;
  }
  const auto parts = static_cast<uint64_t>(a->count ? a->dims[a->split] : 0);
  a->chunks = SplitWork(parts, parts ? SerialUs(*a) / static_cast<double>(parts) : 0);
  if (a->split == a->axis && parts) a->chunks = {parts, parts, 1};  // a vector: in order, on one thread
  return {};
}

struct ScatterRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Args a;
    if (Result r = Describe(p, &a); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "cpu.scatter",
                .attributes = MGE_KERNEL_DETERMINISTIC,
                .cost_us = a.tuples || a.split == a.axis ? SerialUs(a) : RunUs(p, SerialUs(a)),
                .in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}}});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Args a;
    if (!Describe(p, &a).ok()) return nullptr;
    auto bind = [a, x = p.operand(0, 0), indices = p.operand(0, 1), updates = p.operand(0, 2)](const Binding& b) {
      Args out = a;
      out.x = b.input(x);
      out.indices = b.input(indices);
      out.updates = b.input(updates);
      out.y = b.output(0);
      return out;
    };
    if (a.tuples) return MakeSimple<Args, LaunchTuples>(bind);
    return MakeSimple<Args, LaunchElements>(bind);
  }
};

constexpr KernelRow kRows[] = {Row<ScatterRow>("ScatterElements"), Row<ScatterRow>("ScatterND")};

}  // namespace

MGE_KERNELS(scatter) = kRows;

}  // namespace mge::cpu
