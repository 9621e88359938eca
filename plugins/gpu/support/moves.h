// SPDX-License-Identifier: Apache-2.0
// Moves elements: an operator as a list of strided copies. Transposes, slices, concatenations, broadcasts, pads and layout
// changes have this form.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {

// A box of elements. Strides are in elements and may be negative; offsets are those of element (0, 0, ...).
struct Copy {
  int input = 0;  // operand number in the problem
  int output = 0;
  int64_t from_offset = 0, to_offset = 0;
  std::vector<int64_t> dims = {}, from_strides = {}, to_strides = {};
};

// Adds a copy: as bytes if both sides are contiguous, tiled if it is a transpose, otherwise element by element. Returns
// false if it has too many dimensions.
bool AddMove(Recipe& recipe, Copy copy, uint64_t element_bytes);

// A row for operators that are lists of copies. `Build` adds the copies, or refuses with a reason.
template <Result (*Build)(const Problem&, Recipe&)>
struct MoveRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    if (Result r = Build(p, recipe); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "gpu.move", .attributes = kExact, .cost_us = GpuUs(p, BytesOf(p), 0, recipe.launches())});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    Recipe recipe;
    return Build(p, recipe).ok() ? std::move(recipe).Make() : nullptr;
  }
};

}  // namespace mge::gpu
