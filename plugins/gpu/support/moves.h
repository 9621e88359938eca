// SPDX-License-Identifier: Apache-2.0
// Moves elements: an operator as a list of strided copies. Transposes, slices, concatenations, broadcasts, pads and layout
// changes have this form.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "plugins/gpu/support/layout.h"
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

// Adds a copy: as bytes if both sides are contiguous, tiled if it is a transpose, otherwise element by element in the order
// of the target's memory. Returns false if it has too many dimensions.
bool AddMove(Recipe& recipe, Copy copy, uint64_t element_bytes);

// A row for operators whose kernels are launches that `Build` adds, or refuses with a reason: for plain operands, or for
// every layout. With the channels last, the layout is that of all operands, or of the first input and the outputs.
enum class Laid { kAll, kFirst };
template <auto Build, Laid laid = Laid::kFirst>
struct MoveRow {
  static constexpr bool kPlainOnly = std::is_invocable_v<decltype(Build), const Problem&, Recipe&>;

  // Offers what describe(layout, launches) returns for each layout.
  template <typename Describe>
  static void OfferEach(const Problem& p, Offers& offers, Describe&& describe) {
    for (const Layout layout : kPlainOnly ? LayoutsOf(0) : LayoutsOf(p.node().output(0).rank())) {
      Recipe recipe;
      if (Result r = BuildIn(p, layout, recipe); !r.ok()) {
        if (layout == Layout::kPlain) return offers.Refuse(r.text());
        continue;
      }
      Candidate c = describe(layout, recipe.launches());
      c.variant = static_cast<uint64_t>(layout);
      if (laid == Laid::kAll) {
        SetLayout(p, layout, &c);
      } else if (!SetLayout(p, layout, {InputOf(p, 0)}, &c)) {
        continue;
      }
      offers.Add(c);
    }
  }
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    OfferEach(p, offers, [&](Layout, int launches) {
      return Candidate{.id = "gpu.move", .attributes = kExact, .cost_us = GpuUs(p, BytesOf(p), 0, launches)};
    });
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Recipe recipe;
    return BuildIn(p, static_cast<Layout>(c.variant), recipe).ok() ? std::move(recipe).Make() : nullptr;
  }

 private:
  static Result BuildIn(const Problem& p, [[maybe_unused]] Layout layout, Recipe& recipe) {
    if constexpr (kPlainOnly) {
      return Build(p, recipe);
    } else {
      return Build(p, layout, recipe);
    }
  }
};

}  // namespace mge::gpu
