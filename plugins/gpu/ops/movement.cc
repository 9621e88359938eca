// SPDX-License-Identifier: Apache-2.0
// Operators implemented as lists of strided copies.
#include <algorithm>

#include "mge/plugin/problems/slice.hpp"
#include "plugins/gpu/support/moves.h"

namespace mge::gpu {
namespace {

Result Added(bool added) { return added ? Result() : Refusal("too many dimensions"); }
std::vector<int64_t> DimsOf(const Value& v) { return {v.dims().begin(), v.dims().end()}; }

// One side may have the channels last: if the permutation moves the channels there, the elements stay where they are.
Result Transpose(const Problem& p, Layout from_layout, Layout to_layout, Recipe& recipe) {
  Value x = p.node().input(0), y = p.node().output(0);
  auto perm = p.node().Ints("perm");
  std::vector<int64_t> own = StridesIn(from_layout, x.dims()), from;
  for (int i = 0; i < x.rank(); ++i) {
    from.push_back(own[static_cast<size_t>(perm[static_cast<size_t>(i)])]);
  }
  return Added(AddMove(
      recipe,
      {.input = InputOf(p, 0), .dims = DimsOf(y), .from_strides = from, .to_strides = StridesIn(to_layout, y.dims())},
      ElementBytes(x.dtype())));
}

struct TransposeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const int rank = p.node().output(0).rank();
    for (const Sides sides : {kPlainSides, kFromLast, kToLast}) {
      if (sides != kPlainSides && (LayoutsOf(rank).size() == 1 || p.node().input(0).is_constant())) continue;
      Recipe recipe;
      if (Result r = Build(p, sides, recipe); !r.ok()) return offers.Refuse(r.text());
      Candidate c = {.id = sides == kFromLast ? "gpu.move.from_nhwc"
                           : sides == kToLast ? "gpu.move.to_nhwc"
                                              : "gpu.move",
                     .attributes = kExact,
                     .cost_us = GpuUs(p, BytesOf(p), 0, recipe.launches()),
                     .variant = sides};
      if (sides == kFromLast) c.inputs = {ChannelsLast(rank)};
      if (sides == kToLast) c.outputs = {ChannelsLast(rank)};
      offers.Add(c);
    }
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Recipe recipe;
    return Build(p, c.variant, recipe).ok() ? std::move(recipe).Make() : nullptr;
  }

 private:
  enum Sides : uint64_t { kPlainSides, kFromLast, kToLast };
  static Result Build(const Problem& p, uint64_t sides, Recipe& recipe) {
    return Transpose(p, sides == kFromLast ? Layout::kChannelsLast : Layout::kPlain,
                     sides == kToLast ? Layout::kChannelsLast : Layout::kPlain, recipe);
  }
};

Result Expand(const Problem& p, Layout layout, Recipe& recipe) {
  Value x = p.node().input(0), y = p.node().output(0);
  std::vector<int64_t> own = StridesOf(x, y.rank(), layout), from(y.dims().size(), 0);
  size_t shift = from.size() - own.size();
  for (size_t d = 0; d < own.size(); ++d) {
    if (x.dims()[d] != 1) from[d + shift] = own[d];
  }
  return Added(AddMove(
      recipe, {.input = InputOf(p, 0), .dims = DimsOf(y), .from_strides = from, .to_strides = StridesIn(layout, y.dims())},
      ElementBytes(x.dtype())));
}

// Splits every dimension into (repeat, position).
Result Tile(const Problem& p, Recipe& recipe) {
  Value x = p.node().input(0), y = p.node().output(0);
  std::vector<int64_t> from = StridesOf(x.dims()), to = StridesOf(y.dims());
  Copy copy = {.input = InputOf(p, 0)};
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t size = x.dims()[d], repeats = size ? y.dims()[d] / size : 0;
    copy.dims.insert(copy.dims.end(), {repeats, size});
    copy.from_strides.insert(copy.from_strides.end(), {0, from[d]});
    copy.to_strides.insert(copy.to_strides.end(), {to[d] * size, to[d]});
  }
  return Added(AddMove(recipe, copy, ElementBytes(x.dtype())));
}

Result Concat(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value y = n.output(0);
  int64_t axis = n.Int("axis"), at = 0;
  std::vector<int64_t> to = StridesIn(layout, y.dims());
  for (int k = 0; k < n.input_count(); ++k) {
    Value x = n.input(k);
    if (!AddMove(recipe,
                 {.input = InputOf(p, k),
                  .to_offset = at * to[static_cast<size_t>(axis)],
                  .dims = DimsOf(x),
                  .from_strides = StridesOf(x, y.rank(), layout),
                  .to_strides = to},
                 ElementBytes(y.dtype()))) {
      return Added(false);
    }
    at += x.dim(static_cast<int>(axis));
  }
  return {};
}

Result Split(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0);
  int64_t axis = n.Int("axis"), at = 0;
  std::vector<int64_t> from = StridesIn(layout, x.dims());
  for (int k = 0; k < n.output_count(); ++k) {
    if (!n.has_output(k)) return Refusal("an output is absent");
    Value y = n.output(k);
    if (!AddMove(recipe,
                 {.input = InputOf(p, 0),
                  .output = OutputOf(p, k),
                  .from_offset = at * from[static_cast<size_t>(axis)],
                  .dims = DimsOf(y),
                  .from_strides = from,
                  .to_strides = StridesIn(layout, y.dims())},
                 ElementBytes(x.dtype()))) {
      return Added(false);
    }
    at += y.dim(static_cast<int>(axis));
  }
  return {};
}

Result Slice(const Problem& p, Layout layout, Recipe& recipe) {
  Node n = p.node();
  Value x = n.input(0), y = n.output(0);
  std::vector<SliceAxis> parts;
  if (Result r = ReadSlice(n, &parts); !r.ok()) return Refusal(r.text());
  std::vector<int64_t> own = StridesIn(layout, x.dims());
  Copy copy = {.input = InputOf(p, 0), .dims = DimsOf(y), .from_strides = own, .to_strides = StridesIn(layout, y.dims())};
  for (size_t d = 0; d < parts.size(); ++d) {
    copy.from_offset += parts[d].start * own[d];
    copy.from_strides[d] = own[d] * parts[d].step;
  }
  return Added(AddMove(recipe, copy, ElementBytes(x.dtype())));
}

// Both directions copy over (n, c, block row, block column, h, w), where c are the channels of the wide tensor.
Result DepthSpace(const Problem& p, Layout layout, Recipe& recipe, bool to_space) {
  Node n = p.node();
  Value deep = to_space ? n.input(0) : n.output(0), wide = to_space ? n.output(0) : n.input(0);
  int64_t block = n.Int("blocksize");
  if (deep.rank() != 4 || block <= 0) return Refusal("needs four dimensions and a positive blocksize");
  bool column_first = n.Word("mode") == "DCR";  // depth = (row, column, channel)
  int64_t channels = wide.dim(1);
  std::vector<int64_t> d = StridesIn(layout, deep.dims()), w = StridesIn(layout, wide.dims());
  int64_t row = column_first ? block * channels : block, column = column_first ? channels : 1,
          channel = column_first ? 1 : block * block;
  std::vector<int64_t> dims = {deep.dim(0), channels, block, block, deep.dim(2), deep.dim(3)};
  std::vector<int64_t> deep_strides = {d[0], d[1] * channel, d[1] * row, d[1] * column, d[2], d[3]};
  std::vector<int64_t> wide_strides = {w[0], w[1], w[2], w[3], w[2] * block, w[3] * block};
  return Added(AddMove(recipe,
                       {.input = InputOf(p, 0),
                        .dims = dims,
                        .from_strides = to_space ? deep_strides : wide_strides,
                        .to_strides = to_space ? wide_strides : deep_strides},
                       ElementBytes(deep.dtype())));
}
Result DepthToSpace(const Problem& p, Layout layout, Recipe& recipe) { return DepthSpace(p, layout, recipe, true); }
Result SpaceToDepth(const Problem& p, Layout layout, Recipe& recipe) { return DepthSpace(p, layout, recipe, false); }

// Changes the layout. Supports permutations only.
Result Reorder(const Problem& p, Recipe& recipe) {
  Value x = p.node().input(0), y = p.node().output(0);
  auto strides = [&](const mge_layout* l, std::vector<int64_t>* out) {
    if (IsPlain(l)) return *out = StridesOf(x.dims()), true;
    if (l->kind != MGE_LAYOUT_PERMUTED || l->rank != x.rank() || l->block_count) return false;
    out->resize(static_cast<size_t>(l->rank));
    int64_t step = 1;
    for (int i = l->rank - 1; i >= 0; --i) {
      (*out)[static_cast<size_t>(l->perm[i])] = step;
      step *= x.dim(l->perm[i]);
    }
    return true;
  };
  Copy copy = {.input = InputOf(p, 0), .dims = DimsOf(x)};
  if (!strides(x.layout(), &copy.from_strides) || !strides(y.layout(), &copy.to_strides))
    return Refusal("unsupported layout");
  return Added(AddMove(recipe, copy, ElementBytes(x.dtype())));
}

struct ReshapeRow {
  // Copies the bytes. If the output uses the input's memory, nothing is copied.
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    if (p.node().input(0).bytes() != p.node().output(0).bytes()) return offers.Refuse("the sizes differ");
    offers.Add({.id = "gpu.reshape",
                .attributes = kExact,
                .cost_us = GpuUs(p, BytesOf(p)),
                .in_place = {{0, static_cast<uint32_t>(InputOf(p, 0))}}});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    Recipe recipe;
    recipe.AddCopy(Operand::Out(), Operand::In(InputOf(p, 0)), p.node().output(0).bytes());
    return std::move(recipe).Make();
  }
};

constexpr KernelRow kRows[] = {Row<TransposeRow>("Transpose"),
                               Row<MoveRow<Expand, Laid::kAll>>("Expand"),
                               Row<MoveRow<Tile>>("Tile"),
                               Row<MoveRow<Concat, Laid::kAll>>("Concat"),
                               Row<MoveRow<Split>>("Split"),
                               Row<MoveRow<Slice>>("Slice"),
                               Row<MoveRow<DepthToSpace>>("DepthToSpace"),
                               Row<MoveRow<SpaceToDepth>>("SpaceToDepth"),
                               Row<MoveRow<Reorder>>("Reorder", "mge"),
                               Row<ReshapeRow>("Reshape"),
                               Row<ReshapeRow>("Flatten"),
                               Row<ReshapeRow>("Squeeze"),
                               Row<ReshapeRow>("Unsqueeze")};

}  // namespace

MGE_KERNELS(movement) = kRows;

}  // namespace mge::gpu
