// SPDX-License-Identifier: Apache-2.0
// Pad with constant pads. Mode constant is a fill and a copy; the other modes use the kernels for places.
#include "mge/plugin/problems/pad.hpp"

#include <algorithm>

#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

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
  Pads pads;
  if (Result r = ReadPads(n, &pads); !r.ok()) return Refusal(r.text());
  const std::vector<int64_t>& before = pads.before;
  std::string_view mode = n.Word("mode");
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
    const int64_t period = args.mode == 1 ? 2 * (size - 1) : size;
    args.period[i] = period;
    if (period > 0) args.turns[i] = (std::max<int64_t>(0, args.before[i]) + period - 1) / period * period;
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
