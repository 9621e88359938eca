// SPDX-License-Identifier: Apache-2.0
// OneHot with a constant depth, and Trilu with a constant k.
#include "support/index.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

// ------------------------------------------------------------ OneHot

struct HotArgs {
  Slot indices, values, y;
  int64_t outer, depth, inner;
  uint32_t bytes;
  bool wide;
  Chunks chunks;  // chunks of outer
};

template <typename T>
mge_code LaunchHot(const HotArgs& a, const mge_run* run) {
  IndexList indices = {At<const char>(run, a.indices), a.wide};
  auto* values = At<const T>(run, a.values);
  auto* y = At<T>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    for (auto o = static_cast<int64_t>(begin); o < static_cast<int64_t>(end); ++o) {
      T* block = y + o * a.depth * a.inner;
      for (int64_t i = 0; i < a.depth * a.inner; ++i) block[i] = values[0];
      for (int64_t i = 0; i < a.inner; ++i) {
        int64_t at = indices[o * a.inner + i];
        if (at < 0) at += a.depth;
        // out of range: ONNX defines the "off" value everywhere
        if (at >= 0 && at < a.depth) block[at * a.inner + i] = values[1];
      }
    }
  });
  return MGE_OK;
}

struct OneHotRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    mge_dtype type = n.input(0).dtype();
    if (type != MGE_DTYPE_I64 && type != MGE_DTYPE_I32) return offers.Refuse("wrong index type");
    if (n.input(2).elements() != 2) return offers.Refuse("values must have two elements");
    offers.Add({.id = "cpu.one_hot",
                .attributes = kExact,
                .cost_us = RunUs(p, 2 * StreamUs(static_cast<double>(n.output(0).bytes())))});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Node n = p.node();
    Value y = n.output(0);
    auto axis = static_cast<int>(n.Int("axis"));
    HotArgs a = {};
    a.outer = a.inner = 1;
    a.depth = y.dim(axis);
    for (int d = 0; d < y.rank(); ++d) {
      if (d != axis) (d < axis ? a.outer : a.inner) *= y.dim(d);
    }
    a.wide = n.input(0).dtype() == MGE_DTYPE_I64;
    uint64_t units = y.elements() ? static_cast<uint64_t>(a.outer) : 0;
    a.chunks = SplitWork(units, units ? 2 * StreamUs(static_cast<double>(y.bytes())) / static_cast<double>(units) : 0);
    auto make = [a, indices = p.operand(0, 0), values = p.operand(0, 2)](const Binding& b) {
      HotArgs out = a;
      out.indices = b.input(indices);
      out.values = b.input(values);
      out.y = b.output(0);
      return out;
    };
    switch (SizeOf(y.dtype())) {
      case 1: return MakeSimple<HotArgs, LaunchHot<uint8_t>>(make);
      case 2: return MakeSimple<HotArgs, LaunchHot<uint16_t>>(make);
      case 4: return MakeSimple<HotArgs, LaunchHot<uint32_t>>(make);
      default: return MakeSimple<HotArgs, LaunchHot<uint64_t>>(make);
    }
  }
};

// ------------------------------------------------------------ Trilu

struct TriluArgs {
  Slot x, y;
  int64_t rows, columns, k, bytes;
  bool upper;
  Chunks chunks;  // chunks of the rows of all matrices
};

mge_code LaunchTrilu(const TriluArgs& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<char>(run, a.y);
  int64_t line = a.columns * a.bytes;
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    for (auto u = static_cast<int64_t>(begin); u < static_cast<int64_t>(end); ++u) {
      // Columns [0, split) are below the diagonal (upper), or on and below it (lower).
      int64_t row = u % a.rows;
      int64_t shift = std::clamp<int64_t>(a.k, -a.rows - 1, a.columns + 1);
      int64_t split = std::clamp<int64_t>(row + shift + (a.upper ? 0 : 1), 0, a.columns) * a.bytes;
      const char* from = x + u * line;
      char* to = y + u * line;
      if (a.upper) {
        std::memset(to, 0, static_cast<size_t>(split));
        std::memmove(to + split, from + split, static_cast<size_t>(line - split));
      } else {
        std::memmove(to, from, static_cast<size_t>(split));
        std::memset(to + split, 0, static_cast<size_t>(line - split));
      }
    }
  });
  return MGE_OK;
}

bool ReadK(const Node& n, int64_t* k) {
  *k = 0;
  if (!n.has_input(1)) return true;
  std::vector<int64_t> list;
  if (!ConstantInts(n, 1, list) || list.size() != 1) return false;
  *k = list[0];
  return true;
}

struct TriluRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Node n = p.node();
    int64_t k;
    if (!ReadK(n, &k)) return offers.Refuse("k is not constant");
    if (n.input(0).rank() < 2) return offers.Refuse("needs matrices");
    offers.Add({.id = "cpu.trilu",
                .attributes = kExact,
                .cost_us = RunUs(p, StreamUs(2.0 * static_cast<double>(n.output(0).bytes()))),
                .in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}}});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Node n = p.node();
    Value y = n.output(0);
    TriluArgs a = {};
    a.rows = y.dim(-2);
    a.columns = y.dim(-1);
    a.bytes = SizeOf(y.dtype());
    a.upper = n.Int("upper") != 0;
    if (!ReadK(n, &a.k)) return nullptr;
    uint64_t units = y.elements() ? y.elements() / static_cast<uint64_t>(a.columns) : 0;
    a.chunks = SplitWork(units, units ? StreamUs(2.0 * static_cast<double>(y.bytes())) / static_cast<double>(units) : 0);
    return MakeSimple<TriluArgs, LaunchTrilu>([a, x = p.operand(0, 0)](const Binding& b) {
      TriluArgs out = a;
      out.x = b.input(x);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<OneHotRow>("OneHot"), Row<TriluRow>("Trilu")};

}  // namespace

MGE_KERNELS(select) = kRows;

}  // namespace mge::cpu
