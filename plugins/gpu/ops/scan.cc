// SPDX-License-Identifier: Apache-2.0
// ArgMax and ArgMin, CumSum, Hardmax, TopK with a constant K.
#include "plugins/gpu/kernels/reduce.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

Result NoType(const Value& x) { return Refusal("does not take " + std::string(TypeName(x.dtype()))); }

Result ArgReduce(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  int64_t axis = n.Int("axis");
  if (x.dtype() == MGE_DTYPE_BOOL) return NoType(x);
  Extent e = ExtentOf(x, axis);
  if (e.n == 0) return Refusal("nothing to search");
  int64_t outputs = e.outer * e.inner;
  if (outputs == 0) return {};
  recipe.Add(KernelFor("arg_reduce", x.dtype()), Spread(outputs),
             ArgReduceArgs{nullptr, nullptr, outputs, e.n, e.inner, n.op() == "ArgMin", n.Int("select_last_index") != 0},
             {Operand::In(InputOf(p, 0)), Operand::Out()});
  return {};
}

Result CumSum(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), axis = n.input(1);
  if (axis.elements() != 1 || (axis.dtype() != MGE_DTYPE_I64 && axis.dtype() != MGE_DTYPE_I32))
    return Refusal("the axis is not one integer");
  if (x.dtype() == MGE_DTYPE_BOOL) return NoType(x);
  if (x.rank() == 0) return Refusal("a scalar");
  RunningSumArgs args = {};
  args.n = static_cast<int64_t>(x.elements());
  for (int d = 0; d < x.rank(); ++d) args.dims[d] = x.dim(d);
  args.rank = x.rank();
  args.wide = axis.dtype() == MGE_DTYPE_I64;
  args.exclusive = n.Int("exclusive") != 0;
  args.reverse = n.Int("reverse") != 0;
  if (args.n == 0 && !axis.is_constant()) return Refusal("no elements, and an axis that only the run shows to be valid");
  if (args.n == 0) return {};
  recipe.Add(KernelFor("running_sum", x.dtype()), Spread(args.n), args,
             {Operand::In(InputOf(p, 0)), Operand::In(InputOf(p, 1)), Operand::Out(), Operand::Faults()});
  return {};
}

Result Hardmax(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  if (!IsFloating(x.dtype())) return NoType(x);
  int64_t axis = n.Int("axis");
  if (x.elements() == 0) return {};
  Extent e = ExtentOf(x, axis);
  recipe.Add(KernelFor("hardmax", x.dtype()), Spread(e.outer * e.inner),
             HardmaxArgs{nullptr, nullptr, e.outer * e.inner, e.n, e.inner}, {Operand::In(InputOf(p, 0)), Operand::Out()});
  return {};
}

Result TopK(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), y = n.has_output(0) ? n.output(0) : n.output(1);
  int64_t axis = n.Int("axis");
  if (x.dtype() == MGE_DTYPE_BOOL) return NoType(x);
  Extent e = ExtentOf(x, axis);
  int64_t k = y.dim(static_cast<int>(axis));
  std::vector<int64_t> wanted;
  if (!ConstantInts(n, 1, wanted) || wanted.size() != 1 || wanted[0] != k || k > e.n)
    return Refusal("K is not a valid constant");
  if (!n.has_output(1)) recipe.SetWorkspace(y.elements() * sizeof(int64_t));
  if (y.elements() == 0) return {};
  recipe.Add(KernelFor("top_k", x.dtype()), Spread(e.outer * e.inner),
             TopKArgs{nullptr, nullptr, nullptr, e.outer * e.inner, e.n, e.inner, k, n.Int("largest") != 0, 0},
             {Operand::In(InputOf(p, 0)), n.has_output(0) ? Operand::Out(OutputOf(p, 0)) : Operand::Null(),
              n.has_output(1) ? Operand::Out(OutputOf(p, 1)) : Operand::Work()});
  return {};
}

template <Result (*Build)(const Problem&, Recipe&)>
struct ScanRow : MoveRow<Build> {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    if (Result r = Build(p, recipe); !r.ok()) return offers.Refuse(r.text());
    offers.Add(
        {.id = "gpu.scan",
         .attributes = kExact,
         .workspace = recipe.workspace(),
         .cost_us = GpuUs(p, BytesOf(p), 200.0 * static_cast<double>(p.node().input(0).elements()), recipe.launches())});
  }
};
constexpr KernelRow kRows[] = {Row<ScanRow<ArgReduce>>("ArgMax"), Row<ScanRow<ArgReduce>>("ArgMin"),
                               Row<ScanRow<CumSum>>("CumSum"), Row<ScanRow<Hardmax>>("Hardmax"), Row<ScanRow<TopK>>("TopK")};

}  // namespace

MGE_KERNELS(scan) = kRows;

}  // namespace mge::gpu
