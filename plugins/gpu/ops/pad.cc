// SPDX-License-Identifier: Apache-2.0
// Pad with constant pads. Mode constant is a fill and a copy; the other modes use the kernels for places.
#include <algorithm>

#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

// Reads the number of elements before the input in every dimension. Negative numbers crop.
Result ReadPads(const Node& n, std::vector<int64_t>* before) {
  int rank = n.input(0).rank();
  std::vector<int64_t> pads, axes;
  if (!ConstantInts(n, 1, pads)) return Refusal("the pads are not constant");
  if (n.has_input(3)) {
    if (!ConstantInts(n, 3, axes)) return Refusal("the axes are not constant");
  } else {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  if (pads.size() != 2 * axes.size()) return Refusal("the number of pads does not match the rank");
  before->assign(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = AxisOf(axes[i], rank);
    if (axis < 0) return Refusal("an axis is outside of the rank");
    (*before)[static_cast<size_t>(axis)] = pads[i];
  }
  return {};
}

Result Constant(const Problem& p, const std::vector<int64_t>& before, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), y = n.output(0);
  size_t rank = x.dims().size();
  uint64_t bytes = ElementBytes(x.dtype());
  std::vector<int64_t> from = StridesIn(layout, x.dims()), to = StridesIn(layout, y.dims()),
                       out(y.dims().begin(), y.dims().end());
  if (n.has_input(2)) {
    Copy fill = {.input = InputOf(p, 2), .dims = out, .from_strides = std::vector<int64_t>(rank, 0), .to_strides = to};
    if (!AddMove(recipe, fill, bytes)) return Refusal("too many dimensions");
  } else {
    recipe.AddFill(Operand::Out(), 0, y.bytes());
  }
  Copy body = {.input = InputOf(p, 0), .from_strides = from, .to_strides = to};
  for (size_t d = 0; d < rank; ++d) {
    int64_t begin = std::clamp<int64_t>(before[d], 0, out[d]),
            end = std::clamp<int64_t>(before[d] + x.dims()[d], begin, out[d]);
    body.dims.push_back(end - begin);
    body.from_offset += (begin - before[d]) * from[d];
    body.to_offset += begin * to[d];
  }
  return AddMove(recipe, body, bytes) ? Result() : Refusal("too many dimensions");
}

Result Build(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), y = n.output(0);
  std::vector<int64_t> before;
  if (Result r = ReadPads(n, &before); !r.ok()) return r;
  std::string_view mode = n.Word("mode", "constant");
  if (mode == "constant") return Constant(p, before, layout, recipe);
  if (mode != "reflect" && mode != "edge" && mode != "wrap") return Refusal("an unknown mode");
  PlacesArgs args = {};
  args.n = static_cast<int64_t>(y.elements());
  args.rank = x.rank();
  args.mode = mode == "edge" ? 0 : mode == "reflect" ? 1 : 2;
  std::vector<int64_t> strides = StridesIn(layout, x.dims());
  const std::vector<size_t> order = MemoryOrder(layout, strides.size());
  int64_t from = 0;  // the first element that is kept
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t d = order[i];
    // Negative pads remove elements before positive ones repeat some.
    const int64_t after = y.dims()[d] - x.dims()[d] - before[d], first = std::max<int64_t>(0, -before[d]);
    const int64_t size = x.dims()[d] - first - std::max<int64_t>(0, -after);
    if (size <= 0 && y.dims()[d] > 0) return Refusal("nothing to repeat");
    args.dims[i] = y.dims()[d];
    args.in[i] = size;
    args.strides[i] = strides[d];
    args.before[i] = before[d] + first;
    from += first * strides[d];
  }
  if (args.n) {
    recipe.Add("pad_" + std::to_string(ElementBytes(x.dtype())), Spread(args.n), args,
               {Operand::In(InputOf(p, 0), from * static_cast<int64_t>(ElementBytes(x.dtype()))), Operand::Out()});
  }
  return {};
}

constexpr KernelRow kRows[] = {Row<MoveRow<Build>>("Pad")};

}  // namespace

MGE_KERNELS(pad) = kRows;

}  // namespace mge::gpu
