// SPDX-License-Identifier: Apache-2.0
// Reduce* over constant axes, ArgMax and ArgMin.
#include "vec/reduce.h"

#include <algorithm>

#include "mge/plugin/problems/reduce.hpp"
#include "support/kernel.h"
#include "support/move.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

struct NamedReduction {
  std::string_view name;
  ReduceOp op;
};
constexpr NamedReduction kReductions[] = {{"ReduceSum", ReduceOp::kSum},
                                          {"ReduceMean", ReduceOp::kMean},
                                          {"ReduceMax", ReduceOp::kMax},
                                          {"ReduceMin", ReduceOp::kMin},
                                          {"ReduceProd", ReduceOp::kProd},
                                          {"ReduceL1", ReduceOp::kL1},
                                          {"ReduceL2", ReduceOp::kL2},
                                          {"ReduceLogSum", ReduceOp::kLogSum},
                                          {"ReduceLogSumExp", ReduceOp::kLogSumExp},
                                          {"ReduceSumSquare", ReduceOp::kSumSquare}};

struct Args {
  Slot x, y;
  ReduceSpec spec;
  ReduceFn fn;
  bool empty;  // nothing to reduce: y is filled with `start`
  uint64_t start;
  uint32_t bytes;
  uint64_t elements;
  Chunks chunks;
};

mge_code Launch(const Args& a, const mge_run* run) {
  char* y = At<char>(run, a.y);
  if (a.empty) {
    for (uint64_t i = 0; i < a.elements; ++i) std::memcpy(y + i * a.bytes, &a.start, a.bytes);
    return MGE_OK;
  }
  const char* x = At<const char>(run, a.x);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    a.fn(a.spec, x, y, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  });
  return MGE_OK;
}

struct Dim {
  int64_t size, stride;
};

void Join(std::vector<Dim>& dims) {
  for (size_t d = dims.size(); d-- > 1;) {
    if (dims[d - 1].stride == dims[d].stride * dims[d].size) {
      dims[d].size *= dims[d - 1].size;
      dims.erase(dims.begin() + static_cast<int64_t>(d) - 1);
    }
  }
}

ReduceOp OpOf(const Node& n) {
  for (const NamedReduction& r : kReductions) {
    if (n.op() == r.name) return r.op;
  }
  return ReduceOp::kSum;
}

// Describes the reduction of x, plain or with channels last. y is dense over the kept dimensions in the same order.
Result Describe(const Problem& p, bool channels_last, ReduceSpec* spec) {
  Node n = p.node();
  Value x = n.input(0);
  Reduction r;
  if (Result result = ReadReduction(n, &r); !result.ok()) return result;
  const std::vector<bool>& reduced = r.reduced;
  std::vector<int64_t> strides = StridesIn(x.dims(), channels_last);
  mge_layout last = ChannelsLast(x.rank());
  std::vector<Dim> kept, gone;
  int before = -1;
  for (int i = 0; i < x.rank(); ++i) {
    auto d = static_cast<size_t>(channels_last ? last.perm[i] : i);
    Dim dim = {x.dims()[d], strides[d]};
    if (reduced[d]) spec->count *= dim.size;
    if (!reduced[d]) {
      if (channels_last && !r.keeps_axes && static_cast<int>(d) < before) {
        return {MGE_UNIMPLEMENTED, "the result would not have the plain layout"};
      }
      before = static_cast<int>(d);
    }
    if (dim.size == 1) continue;
    (reduced[d] ? gone : kept).push_back(dim);
  }
  Join(kept);
  Join(gone);
  if (kept.size() > kMaxReduceDims || gone.size() > kMaxReduceDims) return {MGE_UNIMPLEMENTED, "too many dimensions"};
  spec->inner_reduced = !gone.empty() && gone.back().stride == 1;
  std::vector<Dim>& inner = spec->inner_reduced ? gone : kept;
  if (!inner.empty()) {
    spec->inner = inner.back().size;
    inner.pop_back();
  }
  for (const Dim& d : kept) {
    spec->kept_dims[spec->kept] = d.size;
    spec->kept_strides[spec->kept++] = d.stride;
  }
  for (const Dim& d : gone) {
    spec->reduced_dims[spec->reduced] = d.size;
    spec->reduced_strides[spec->reduced++] = d.stride;
  }
  return {};
}

double SerialUs(const Value& x, const ReduceSpec& spec, Isa isa, ReduceOp op) {
  constexpr double kRowUs = 0.018;  // per run of neighbours that are reduced to one element
  double rows =
      spec.inner_reduced ? static_cast<double>(x.elements()) / static_cast<double>(std::max<int64_t>(1, spec.inner)) : 0;
  double ns = op == ReduceOp::kLogSumExp ? 0.3 : IsFloating(x.dtype()) ? 0.03 : 0.2;
  return StreamUs(static_cast<double>(x.bytes())) +
         1e-3 * ns * (isa == Isa::kPortable ? 3 : 1) * static_cast<double>(x.elements()) + kRowUs * rows;
}

// Returns the result for zero elements as bits: 0, 1 for a product, minus infinity for a logarithm.
uint64_t EmptyResult(ReduceOp op, mge_dtype type) {
  bool log = op == ReduceOp::kLogSum || op == ReduceOp::kLogSumExp, one = op == ReduceOp::kProd;
  if (!log && !one) return 0;
  switch (type) {
    case MGE_DTYPE_F32: return log ? 0xff800000u : 0x3f800000u;
    case MGE_DTYPE_F64: return log ? 0xfff0000000000000u : 0x3ff0000000000000u;
    case MGE_DTYPE_F16: return log ? 0xfc00u : 0x3c00u;
    case MGE_DTYPE_BF16: return log ? 0xff80u : 0x3f80u;
    default: return 1;
  }
}

struct ReduceRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    Isa isa = AllowedIsa();
    ReduceOp op = OpOf(p.node());
    if (!FindReduce(isa, op, x.dtype())) return offers.Refuse("no kernel for " + std::string(TypeName(x.dtype())));
    for (bool last : {false, true}) {
      if (last && (x.rank() < 3 || x.rank() > 5 || x.is_constant())) continue;
      ReduceSpec spec;
      if (Result r = Describe(p, last, &spec); !r.ok()) {
        offers.Refuse(r.text());
        continue;
      }
      if (spec.count == 0 && (op == ReduceOp::kMax || op == ReduceOp::kMin || op == ReduceOp::kMean) &&
          p.node().output(0).elements()) {
        return offers.Refuse("nothing to reduce");
      }
      Candidate c = {.id = last ? "cpu.reduce.nhwc" : "cpu.reduce",
                     .attributes = kExact,
                     .cost_us = RunUs(p, SerialUs(x, spec, isa, op)),
                     .variant = last ? 1u : 0u};
      if (last) {
        c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
        c.inputs[static_cast<size_t>(p.operand(0, 0))] = ChannelsLast(x.rank());
        c.outputs = {p.node().output(0).rank() == x.rank() ? ChannelsLast(x.rank()) : PlainLayout()};
      }
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Value x = p.node().input(0), y = p.node().output(0);
    Isa isa = IsaOf(c);
    ReduceOp op = OpOf(p.node());
    Args a = {};
    if (!Describe(p, KindOf(c) == 1, &a.spec).ok()) return nullptr;
    a.fn = FindReduce(isa, op, x.dtype());
    a.empty = x.elements() == 0;
    a.start = EmptyResult(op, x.dtype());
    a.bytes = SizeOf(y.dtype());
    a.elements = y.elements();
    int64_t units = static_cast<int64_t>(y.elements());
    if (!a.spec.inner_reduced && units) {
      units = units / a.spec.inner * ((a.spec.inner + kReduceColumns - 1) / kReduceColumns);
    }
    a.chunks =
        SplitWork(static_cast<uint64_t>(units), units ? SerialUs(x, a.spec, isa, op) / static_cast<double>(units) : 0);
    return MakeSimple<Args, Launch>([a, xi = p.operand(0, 0)](const Binding& b) {
      Args out = a;
      out.x = b.input(xi);
      out.y = b.output(0);
      return out;
    });
  }
};

struct ArgArgs {
  Slot x, y;
  ArgSpec spec;
  ArgFn fn;
  Chunks chunks;
};

mge_code LaunchArg(const ArgArgs& a, const mge_run* run) {
  auto* x = At<const char>(run, a.x);
  auto* y = At<int64_t>(run, a.y);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    a.fn(a.spec, x, y + begin, static_cast<int64_t>(begin), static_cast<int64_t>(end));
  });
  return MGE_OK;
}

double ArgUs(const Value& x, const ArgSpec& spec, Isa isa) {
  double ns = IsFloating(x.dtype()) ? (isa == Isa::kPortable ? 0.6 : 0.15) : 0.4;
  double results = static_cast<double>(x.elements()) / static_cast<double>(spec.n);
  return StreamUs(static_cast<double>(x.bytes())) + 1e-3 * ns * static_cast<double>(x.elements()) + 0.02 * results;
}

ArgSpec ArgSpecOf(const Node& n) {
  Value x = n.input(0);
  auto axis = static_cast<int>(n.Int("axis"));
  ArgSpec spec = {x.dim(axis), 1, n.op() == "ArgMin", n.Int("select_last_index") != 0};
  for (int d = axis + 1; d < x.rank(); ++d) spec.inner *= x.dim(d);
  return spec;
}

struct ArgReduceRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Value x = p.node().input(0);
    ArgSpec spec = ArgSpecOf(p.node());
    Isa isa = AllowedIsa();
    if (spec.n == 0) return offers.Refuse("nothing to search");
    if (spec.n > INT32_MAX) return offers.Refuse("an axis of 2^31 elements");
    if (!FindArg(isa, x.dtype())) return offers.Refuse("no kernel for " + std::string(TypeName(x.dtype())));
    Add(offers, isa, {.id = "cpu.arg", .attributes = kExact, .cost_us = RunUs(p, ArgUs(x, spec, isa))});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Node n = p.node();
    Value x = n.input(0);
    Isa isa = IsaOf(c);
    ArgArgs a = {};
    a.spec = ArgSpecOf(n);
    a.fn = FindArg(isa, x.dtype());
    uint64_t units = n.output(0).elements();
    a.chunks = SplitWork(units, units ? ArgUs(x, a.spec, isa) / static_cast<double>(units) : 0);
    return MakeSimple<ArgArgs, LaunchArg>([a, xi = p.operand(0, 0)](const Binding& b) {
      ArgArgs out = a;
      out.x = b.input(xi);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {
    Row<ReduceRow>("ReduceSum"),       Row<ReduceRow>("ReduceMean"),   Row<ReduceRow>("ReduceMax"),
    Row<ReduceRow>("ReduceMin"),       Row<ReduceRow>("ReduceProd"),   Row<ReduceRow>("ReduceL1"),
    Row<ReduceRow>("ReduceL2"),        Row<ReduceRow>("ReduceLogSum"), Row<ReduceRow>("ReduceLogSumExp"),
    Row<ReduceRow>("ReduceSumSquare"), Row<ArgReduceRow>("ArgMax"),    Row<ArgReduceRow>("ArgMin")};

}  // namespace

MGE_KERNELS(reduce) = kRows;

}  // namespace mge::cpu
