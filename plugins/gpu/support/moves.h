// SPDX-License-Identifier: Apache-2.0
// Moving elements: an operator as a list of strided copies. Transposes, slices, concatenations, broadcasts, pads and
// changes of layout are all of this form.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/gpu/support/recipe.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {

// One box of elements; strides in elements, of any sign, offsets those of element (0, 0, ...).
struct Copy {
  int input = 0;   // of the problem
  int output = 0;
  int64_t from_offset = 0, to_offset = 0;
  std::vector<int64_t> dims = {}, from_strides = {}, to_strides = {};
};

// Adds the copy: as bytes where both sides lie so, by tiles where it is a transpose, else element by element. False if
// it has too many dimensions.
bool AddMove(Recipe& recipe, Copy copy, uint64_t element_bytes);

inline Result Refusal(std::string why) { return {MGE_UNIMPLEMENTED, std::move(why)}; }

// Rows whose operators are lists of copies: `Build` says which, or refuses with a reason.
template <Result (*Build)(const Problem&, Recipe&)>
struct MoveRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Recipe recipe;
    if (Result r = Build(p, recipe); !r.ok()) return offers.Refuse(r.text());
    offers.Add({.id = "gpu.move", .attributes = kExact, .cost_us = GpuUs(BytesOf(p), 0, recipe.launches())});
  }
  static KernelPtr Make(const Problem& p, const Candidate&) {
    Recipe recipe;
    return Build(p, recipe).ok() ? std::move(recipe).Make() : nullptr;
  }
};

}  // namespace mge::gpu
