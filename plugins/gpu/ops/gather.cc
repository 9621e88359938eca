// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND, OneHot and Trilu.
#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

int64_t Product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
bool IsIndex(const Value& v) { return v.dtype() == MGE_DTYPE_I64 || v.dtype() == MGE_DTYPE_I32; }
std::string Sized(std::string_view base, const Value& v) {
  return std::string(base) + "_" + std::to_string(ElementBytes(v.dtype()));
}

Result Gather(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), indices = n.input(1), y = n.output(0);
  if (!IsIndex(indices)) return Refusal("wrong index type");
  GatherArgs args = {};
  args.n = static_cast<int64_t>(y.elements());
  args.wide = indices.dtype() == MGE_DTYPE_I64;
  if (n.op() == "Gather") {
    int64_t axis = n.Int("axis");
    Extent e = ExtentOf(x, axis);
    args.tuple = -1;
    args.piece = e.inner;
    args.m = static_cast<int64_t>(indices.elements());
    args.bound = e.n;
  } else {
    auto batch = static_cast<int>(n.Int("batch_dims"));
    if (indices.rank() < 1 || batch < 0 || batch >= indices.rank() || batch > x.rank())
      return Refusal("batch_dims outside of the rank");
    auto tuple = static_cast<int>(indices.dim(-1));
    if (batch + tuple > x.rank()) return Refusal("more indices than dimensions");
    std::vector<int64_t> strides = StridesOf(x.dims());
    args.tuple = tuple;
    for (int k = 0; k < tuple; ++k) {
      args.dims[k] = x.dim(batch + k);
      args.strides[k] = strides[static_cast<size_t>(batch + k)];
    }
    auto first = static_cast<size_t>(batch);
    args.piece = Product(x.dims().subspan(first + static_cast<size_t>(tuple)));
    args.per_batch = Product(indices.dims().subspan(first, static_cast<size_t>(indices.rank() - 1 - batch)));
    args.batch_stride = Product(x.dims().subspan(first));
  }
  if (args.n == 0) return {};
  if (x.elements() == 0) return Refusal("nothing to gather from");
  recipe.Add(Sized("gather", x), Spread(args.n), args,
             {Operand::In(InputOf(p, 0)), Operand::In(InputOf(p, 1)), Operand::Out(), Operand::Faults()});
  return {};
}

Result GatherElements(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), indices = n.input(1);
  if (!IsIndex(indices)) return Refusal("wrong index type");
  int64_t axis = n.Int("axis");
  if (indices.rank() != x.rank()) return Refusal("indices of another rank");
  GatherElementsArgs args = {};
  args.n = static_cast<int64_t>(indices.elements());
  args.bound = x.dim(static_cast<int>(axis));
  args.rank = x.rank();
  args.axis = static_cast<int32_t>(axis);
  args.wide = indices.dtype() == MGE_DTYPE_I64;
  std::vector<int64_t> strides = StridesOf(x.dims());
  for (size_t d = 0; d < strides.size(); ++d) {
    args.dims[d] = indices.dims()[d];
    args.strides[d] = strides[d];
  }
  if (args.n == 0) return {};
  if (x.elements() == 0) return Refusal("nothing to gather from");
  recipe.Add(Sized("gather_elements", x), Spread(args.n), args,
             {Operand::In(InputOf(p, 0)), Operand::In(InputOf(p, 1)), Operand::Out(), Operand::Faults()});
  return {};
}

Result OneHot(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value indices = n.input(0), y = n.output(0);
  if (!IsIndex(indices)) return Refusal("wrong index type");
  if (n.input(2).elements() != 2) return Refusal("values must have two elements");
  int64_t axis = n.Int("axis");
  Extent e = ExtentOf(y, axis);
  auto elements = static_cast<int64_t>(y.elements());
  if (elements == 0) return {};
  recipe.Add(Sized("one_hot", y), Spread(elements),
             OneHotArgs{nullptr, nullptr, nullptr, elements, e.n, e.inner, indices.dtype() == MGE_DTYPE_I64, 0},
             {Operand::In(InputOf(p, 0)), Operand::In(InputOf(p, 2)), Operand::Out()});
  return {};
}

Result Trilu(const Problem& p, Recipe& recipe) {
  Node n = p.node();
  Value y = n.output(0);
  if (n.has_input(1) && (n.input(1).dtype() != MGE_DTYPE_I64 || n.input(1).elements() != 1))
    return Refusal("k is not one int64");
  if (y.rank() < 2) return Refusal("needs matrices");
  auto elements = static_cast<int64_t>(y.elements());
  if (elements == 0) return {};
  recipe.Add(Sized("trilu", y), Spread(elements),
             TriluArgs{nullptr, nullptr, nullptr, elements, y.dim(-2), y.dim(-1), n.Int("upper") != 0, 0},
             {Operand::In(InputOf(p, 0)), n.has_input(1) ? Operand::In(InputOf(p, 1)) : Operand::Null(), Operand::Out()});
  return {};
}

constexpr KernelRow kRows[] = {Row<MoveRow<Gather>>("Gather"), Row<MoveRow<Gather>>("GatherND"),
                               Row<MoveRow<GatherElements>>("GatherElements"), Row<MoveRow<OneHot>>("OneHot"),
                               Row<MoveRow<Trilu>>("Trilu")};

}  // namespace

MGE_KERNELS(gather) = kRows;

}  // namespace mge::gpu
