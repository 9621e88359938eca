// SPDX-License-Identifier: Apache-2.0
// CumSum along a constant axis, and TopK with a constant K.
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

struct Extent {
  int64_t outer = 1, n = 1, inner = 1;
};

Extent ExtentOf(const Value& x, int64_t axis) {
  Extent e;
  for (int d = 0; d < x.rank(); ++d) (d < axis ? e.outer : d == axis ? e.n : e.inner) *= x.dim(d);
  return e;
}

// ------------------------------------------------------------ CumSum

struct SumArgs {
  Slot x, y;
  Extent e;
  bool exclusive, reverse;
  Chunks chunks;  // chunks of (outer, inner)
};

template <typename T>
mge_code LaunchSum(const SumArgs& a, const mge_run* run) {
  using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;
  auto* x = At<const T>(run, a.x);
  auto* y = At<T>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    for (auto u = static_cast<int64_t>(begin); u < static_cast<int64_t>(end); ++u) {
      int64_t base = u / a.e.inner * a.e.n * a.e.inner + u % a.e.inner;
      Sum sum = 0;
      for (int64_t k = 0; k < a.e.n; ++k) {
        int64_t at = base + (a.reverse ? a.e.n - 1 - k : k) * a.e.inner;
        Sum next = sum + static_cast<Sum>(Widen(x[at]));
        y[at] = Narrow<T>(a.exclusive ? sum : next);
        sum = next;
      }
    }
  });
  return MGE_OK;
}

double SumUs(const Value& x) {
  return StreamUs(2.0 * static_cast<double>(x.bytes())) + 1.5e-3 * static_cast<double>(x.elements());
}

bool SumAxis(const Node& n, int64_t* axis) {
  std::vector<int64_t> list;
  if (!ReadAxes(n, 1, n.input(0).rank(), &list).ok() || list.size() != 1) return false;
  *axis = list[0];
  return true;
}

struct CumSumRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    int64_t axis;
    if (!SumAxis(p.node(), &axis)) return offers.Refuse("the axis is not a valid constant");
    if (x.dtype() == MGE_DTYPE_BOOL) return offers.Refuse("not for bool");
    offers.Add({.id = "cpu.cumsum",
                .attributes = kExact,
                .cost_us = RunUs(p, SumUs(x)),
                .in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}}});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Node n = p.node();
    Value x = n.input(0);
    int64_t axis = 0;
    if (!SumAxis(n, &axis)) return nullptr;
    SumArgs a = {};
    a.e = ExtentOf(x, axis);
    a.exclusive = n.Int("exclusive") != 0;
    a.reverse = n.Int("reverse") != 0;
    uint64_t units = x.elements() ? static_cast<uint64_t>(a.e.outer * a.e.inner) : 0;
    a.chunks = SplitWork(units, units ? SumUs(x) / static_cast<double>(units) : 0);
    KernelPtr kernel;
    DispatchNumeric(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel = MakeSimple<SumArgs, LaunchSum<T>>([a, xi = p.operand(0, 0)](const Binding& b) {
        SumArgs out = a;
        out.x = b.input(xi);
        out.y = b.output(0);
        return out;
      });
    });
    return kernel;
  }
};

// ------------------------------------------------------------ TopK

struct TopArgs {
  Slot x, values, indices;
  bool has_values, has_indices, largest;
  Extent e;
  int64_t k;
  Chunks chunks;
};

// Returns whether a > b; NaN is the largest value. Equal elements keep their order.
template <typename C>
MGE_CPU_INLINE bool Above(C a, C b) {
  return a > b || (a != a && b == b);
}

// Finds the k best with a heap in the outputs. Its root is the worst of the elements kept so far.
template <typename T>
mge_code LaunchTop(const TopArgs& a, const mge_run* run) {
  auto* x = At<const T>(run, a.x);
  auto* indices = At<int64_t>(run, a.indices);
  auto* values = At<T>(run, a.values);
  int64_t step = a.e.inner, k = a.k;
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    for (auto u = static_cast<int64_t>(begin); u < static_cast<int64_t>(end); ++u) {
      int64_t block = u / step, column = u % step;
      const T* in = x + block * a.e.n * step + column;
      T* v = values + block * k * step + column;
      int64_t* at = indices + block * k * step + column;
      auto comes_before = [&](int64_t i, int64_t j) {  // whether element i of x ranks before element j
        auto p = Widen(in[i * step]), q = Widen(in[j * step]);
        if (a.largest ? Above(p, q) : Above(q, p)) return true;
        if (a.largest ? Above(q, p) : Above(p, q)) return false;
        return i < j;
      };
      auto sink = [&](int64_t root, int64_t size) {
        int64_t index = at[root * step];
        for (;;) {
          int64_t child = 2 * root + 1;
          if (child >= size) break;
          if (child + 1 < size && comes_before(at[child * step], at[(child + 1) * step])) ++child;
          if (!comes_before(index, at[child * step])) break;
          at[root * step] = at[child * step];
          root = child;
        }
        at[root * step] = index;
      };
      for (int64_t i = 0; i < k; ++i) at[i * step] = i;
      for (int64_t i = k / 2; i-- > 0;) sink(i, k);
      auto worst = Widen(in[at[0] * step]);
      auto passes = [&](int64_t i) {  // an element equal to the root comes after it
        auto next = Widen(in[i * step]);
        return a.largest ? Above(next, worst) : Above(worst, next);
      };
      constexpr int64_t kTogether = 16;  // elements that are skipped together
      for (int64_t i = k; i < a.e.n;) {
        if (step == 1 && i + kTogether <= a.e.n) {
          bool any = false;
          for (int64_t j = 0; j < kTogether; ++j) any |= passes(i + j);
          if (!any) {
            i += kTogether;
            continue;
          }
        }
        for (const int64_t end = std::min(i + kTogether, a.e.n); i < end; ++i) {
          if (!passes(i)) continue;
          at[0] = i;
          sink(0, k);
          worst = Widen(in[at[0] * step]);
        }
      }
      for (int64_t size = k - 1; size > 0; --size) {  // moves the worst element to the end
        std::swap(at[0], at[size * step]);
        sink(0, size);
      }
      if (a.has_values) {
        for (int64_t i = 0; i < k; ++i) v[i * step] = in[at[i * step] * step];
      }
    }
  });
  return MGE_OK;
}

double TopUs(const Value& x, int64_t k) {
  return 1e-3 * static_cast<double>(x.elements()) * 1.5 + 2e-2 * static_cast<double>(k);
}

struct TopKRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    Value x = n.input(0);
    int64_t axis = n.Int("axis");
    if (x.dtype() == MGE_DTYPE_BOOL) return offers.Refuse("not for bool");
    Value out = n.has_output(0) ? n.output(0) : n.output(1);
    int64_t k = out.dim(static_cast<int>(axis));
    std::vector<int64_t> wanted;
    if (!ConstantInts(n, 1, wanted) || wanted.size() != 1 || wanted[0] != k || k > x.dim(static_cast<int>(axis))) {
      return offers.Refuse("K is not a valid constant");
    }
    uint64_t workspace = n.has_output(1) ? 0 : out.elements() * sizeof(int64_t);
    offers.Add({.id = "cpu.topk", .attributes = kExact, .workspace = workspace, .cost_us = RunUs(p, TopUs(x, k))});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Value x = n.input(0), out = n.has_output(0) ? n.output(0) : n.output(1);
    int64_t axis = n.Int("axis");
    TopArgs a = {};
    a.e = ExtentOf(x, axis);
    a.k = out.dim(static_cast<int>(axis));
    a.largest = n.Int("largest") != 0;
    a.has_values = n.has_output(0);
    a.has_indices = n.has_output(1);
    uint64_t units = out.elements() ? static_cast<uint64_t>(a.e.outer * a.e.inner) : 0;
    a.chunks = SplitWork(units, units ? TopUs(x, a.k) / static_cast<double>(units) : 0);
    KernelPtr kernel;
    DispatchNumeric(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernel = MakeSimple<TopArgs, LaunchTop<T>>(
          [a, xi = p.operand(0, 0)](const Binding& b) {
            TopArgs t = a;
            t.x = b.input(xi);
            t.values = b.output(0);
            t.indices = t.has_indices ? b.output(t.has_values ? 1 : 0) : b.workspace();
            return t;
          },
          c.workspace);
    });
    return kernel;
  }
};

constexpr KernelRow kRows[] = {Row<CumSumRow>("CumSum"), Row<TopKRow>("TopK")};

}  // namespace

MGE_KERNELS(scan) = kRows;

}  // namespace mge::cpu
