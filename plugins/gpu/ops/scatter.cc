// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND: copies the data, then applies the updates in their order.
#include <algorithm>

#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

ScatterReduction ReductionOf(const Node& n) {
  std::string_view word = n.Word("reduction");
  return word == "add"   ? kScatterAdd
         : word == "mul" ? kScatterMul
         : word == "max" ? kScatterMax
         : word == "min" ? kScatterMin
                         : kScatterNone;
}

// Numbers of tuples that run side by side: fewer keep their order in one thread without the work of linking them, and more
// would be too many pairs.
constexpr int64_t kMinLinked = 64, kMaxLinked = int64_t{1} << 18;

void AddLinked(Recipe& recipe, const Problem& p, mge_dtype type, const ScatterArgs& of) {
  ScatterTuplesArgs args = {};
  args.tuples = of.along;
  args.piece = of.lines;
  std::ranges::copy(of.dims, args.dims);
  std::ranges::copy(of.strides, args.strides);
  args.rank = of.rank;
  args.wide = of.wide;
  args.reduction = of.reduction;
  const int64_t next_at = of.along * static_cast<int64_t>(sizeof(int64_t)),
                first_at = next_at + of.along * static_cast<int64_t>(sizeof(int32_t));
  recipe.SetWorkspace(static_cast<uint64_t>(first_at) + static_cast<uint64_t>(of.along) * sizeof(int32_t));
  const auto add = [&](const std::string& kernel, int64_t threads) {
    recipe.Add(kernel, Spread(threads), args,
               {Operand::In(InputOf(p, 1)), Operand::In(InputOf(p, 2)), Operand::Out(), Operand::Faults(), Operand::Work(),
                Operand::Work(next_at), Operand::Work(first_at)});
  };
  add("scatter_places", of.along);
  add("scatter_links", of.along);
  add(KernelFor("scatter_tuples", type), of.along * of.lines);
}

Result Build(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), indices = n.input(1), updates = n.input(2);
  int rank = x.rank();
  if (indices.dtype() != MGE_DTYPE_I64 && indices.dtype() != MGE_DTYPE_I32) return Refusal("wrong index type");
  if (rank == 0) return Refusal("a scalar");
  ScatterArgs args = {};
  args.reduction = ReductionOf(n);
  args.wide = indices.dtype() == MGE_DTYPE_I64;
  if (x.dtype() == MGE_DTYPE_BOOL && args.reduction != kScatterNone) return Refusal("this reduction does not support bool");
  mge_dtype type = x.dtype() == MGE_DTYPE_BOOL ? MGE_DTYPE_U8 : x.dtype();
  std::vector<int64_t> strides = StridesOf(x.dims());
  bool tuples = n.op() == "ScatterND";
  if (tuples) {
    if (indices.rank() < 1) return Refusal("indices without dimensions");
    auto tuple = static_cast<int>(indices.dim(-1));
    if (tuple > rank) return Refusal("more indices than dimensions");
    args.rank = tuple;
    args.lines = 1;
    for (int d = tuple; d < rank; ++d) args.lines *= x.dim(d);
    args.along = tuple ? static_cast<int64_t>(indices.elements()) / tuple : 1;
    for (int d = 0; tuple == 0 && d + 1 < indices.rank(); ++d) args.along *= indices.dim(d);
    for (int k = 0; k < tuple; ++k) {
      args.dims[k] = x.dim(k);
      args.strides[k] = strides[static_cast<size_t>(k)];
    }
  } else {
    int64_t axis = n.Int("axis");
    if (indices.rank() != rank) return Refusal("indices of another rank");
    args.rank = rank;
    args.axis = static_cast<int32_t>(axis);
    args.bound = x.dim(args.axis);
    args.along = indices.dim(args.axis);
    args.lines = args.along ? static_cast<int64_t>(indices.elements()) / args.along : 0;
    for (int d = 0; d < rank; ++d) {
      args.dims[d] = indices.dim(d);
      args.strides[d] = strides[static_cast<size_t>(d)];
    }
  }
  if (static_cast<uint64_t>(args.lines * args.along) != updates.elements()) return Refusal("updates of another size");
  recipe.AddCopy(Operand::Out(), Operand::In(InputOf(p, 0)), x.bytes());
  if (updates.elements() && x.elements()) {
    if (tuples && args.along >= kMinLinked && args.along <= kMaxLinked) return AddLinked(recipe, p, type, args), Result();
    recipe.Add(KernelFor(tuples ? "scatter_nd" : "scatter_elements", type), Spread(args.lines), args,
               {Operand::In(InputOf(p, 1)), Operand::In(InputOf(p, 2)), Operand::Out(), Operand::Faults()});
  }
  return {};
}

struct ScatterRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    if (Result r = Build(p, recipe); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "gpu.scatter",
                .attributes = kLaunched | MGE_KERNEL_DETERMINISTIC,
                .workspace = recipe.workspace(),
                .cost_us = GpuUs(p, BytesOf(p), 0, recipe.launches()),
                .in_place = {{0, static_cast<uint32_t>(InputOf(p, 0))}}});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Recipe recipe;
    return Build(p, recipe).ok() ? std::move(recipe).Make() : nullptr;
  }
};

constexpr KernelRow kRows[] = {Row<ScatterRow>("ScatterElements"), Row<ScatterRow>("ScatterND")};

}  // namespace

MGE_KERNELS(scatter) = kRows;

}  // namespace mge::gpu
