// SPDX-License-Identifier: Apache-2.0
// mge.Reorder: copies elements to another layout by strides. A blocked dimension is cut at its last, partial block, and the
// rest of that block is set to zero.
#include <array>

#include "support/move_rule.h"

namespace mge::cpu {
namespace {

// The strides of a layout: between blocks of a dimension, and between positions in a block.
struct Laid {
  std::vector<int64_t> outer, inner, block;  // per dimension; block 1: not blocked
};

Laid StridesOf(std::span<const int64_t> dims, const mge_layout* l) {
  size_t rank = dims.size();
  Laid r = {std::vector<int64_t>(rank), std::vector<int64_t>(rank, 0), std::vector<int64_t>(rank, 1)};
  int64_t step = 1;
  int blocks = IsPlain(l) ? 0 : l->block_count;
  for (int b = blocks - 1; b >= 0; --b) {
    auto axis = static_cast<size_t>(l->block_axis[b]);
    r.block[axis] = l->block_size[b];
    r.inner[axis] = step;
    step *= l->block_size[b];
  }
  for (size_t k = rank; k-- > 0;) {
    size_t axis = IsPlain(l) ? k : static_cast<size_t>(l->perm[k]);
    r.outer[axis] = step;
    step *= (dims[axis] + r.block[axis] - 1) / r.block[axis];
  }
  return r;
}

bool Understood(const mge_layout* l, size_t rank) {
  if (IsPlain(l)) return true;
  if (l->kind != MGE_LAYOUT_PERMUTED || static_cast<size_t>(l->rank) != rank) return false;
  return l->block_count < 2 || l->block_axis[0] != l->block_axis[1];
}

// A piece of a dimension: elements [begin, begin + count * block).
struct Piece {
  int64_t begin, count, block;
};

// Cuts a dimension of `size` into pieces with fixed strides on both sides. Returns false if their blocks do not fit
// together.
bool Cut(int64_t size, int64_t a, int64_t b, std::vector<Piece>& out) {
  if (a != 1 && b != 1 && a != b) return false;
  int64_t block = std::max(a, b), full = size / block;
  if (full) out.push_back({0, full, block});
  if (size % block) out.push_back({full * block, 1, size % block});
  return true;
}

Result Build(MoveBuild& b) {
  Value x = b.node().input(0), y = b.node().output(0);
  auto dims = x.dims();
  size_t rank = dims.size();
  if (!Understood(x.layout(), rank) || !Understood(y.layout(), rank)) return Refusal("unsupported layout");
  Laid from = StridesOf(dims, x.layout()), to = StridesOf(dims, y.layout());
  if (y.elements() == 0) return {};

  std::vector<std::vector<Piece>> pieces(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (!Cut(dims[d], from.block[d], to.block[d], pieces[d])) return Refusal("blocks of different sizes");
  }
  // Returns a dimension of one side as strides (between blocks, within a block). Without blocks both come from the same
  // stride.
  auto walk = [](const Laid& l, size_t d, int64_t block) {
    return l.block[d] == 1 ? std::pair(l.outer[d] * block, l.outer[d]) : std::pair(l.outer[d], l.inner[d]);
  };
  std::vector<size_t> choice(rank, 0);
  for (;;) {
    Copy copy = {.input = 0, .output = 0};
    for (size_t d = 0; d < rank; ++d) {
      const Piece& p = pieces[d][choice[d]];
      int64_t block = std::max(from.block[d], to.block[d]);
      auto [from_step, from_inner] = walk(from, d, block);
      auto [to_step, to_inner] = walk(to, d, block);
      copy.from_offset += p.begin / block * from_step;
      copy.to_offset += p.begin / block * to_step;
      copy.dims.insert(copy.dims.end(), {p.count, p.block});
      copy.from_strides.insert(copy.from_strides.end(), {from_step, from_inner});
      copy.to_strides.insert(copy.to_strides.end(), {to_step, to_inner});
    }
    if (!b.Add(copy)) return TooManyDimensions();
    size_t d = 0;
    while (d < rank && ++choice[d] == pieces[d].size()) choice[d++] = 0;
    if (d == rank) break;
  }
  // Zeroes the padding. For dimension d: dimensions before d only where elements exist, d only its padding, later ones
  // everything.
  for (size_t d = 0; d < rank; ++d) {
    int64_t rest = dims[d] % to.block[d];
    if (to.block[d] == 1 || rest == 0) continue;
    Copy zero = {.input = kValue, .output = 0};
    for (size_t k = 0; k < rank; ++k) {
      int64_t block = to.block[k], steps = (dims[k] + block - 1) / block;
      if (k == d) {
        zero.to_offset += dims[k] / block * to.outer[k] + rest * to.inner[k];
        zero.dims.push_back(block - rest);
        zero.to_strides.push_back(to.inner[k]);
      } else if (k > d || block == 1 || dims[k] % block == 0) {
        zero.dims.insert(zero.dims.end(), {steps, block});
        zero.to_strides.insert(zero.to_strides.end(), {to.outer[k], block == 1 ? 0 : to.inner[k]});
      } else {
        // An earlier blocked dimension has padding too. Zeroing would need its full blocks and the filled part of its last
        // block.
        return Refusal("two blocked dimensions, both with padding");
      }
    }
    if (!b.Add(zero)) return TooManyDimensions();
  }
  return {};
}

constexpr MoveRule kReorder = {.id = "cpu.reorder", .build = Build};
constexpr KernelRow kRows[] = {Row<MoveRow<kReorder>>("Reorder", "mge")};

}  // namespace

MGE_KERNELS(reorder) = kRows;

}  // namespace mge::cpu
