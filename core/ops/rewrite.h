// SPDX-License-Identifier: Apache-2.0
// Declares rewrites: rules that replace a small pattern of operators by an equivalent, cheaper one.
//
// Exporters write many operators as long chains of simple ones, and models of old operator sets use forms for which
// backends have no kernels. Rewrites restore the forms that backends run fast. Each file in rewrites/ defines one
// rewrite. In each round of passes, the planner tries every rewrite on every node in topological order. It repeats the
// rounds until nothing changes.
#pragma once

#include <span>
#include <string_view>

#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge {

// A row of the table of rewrites.
struct Rewrite {
  std::string_view name;  // shown by `--why`; the setting planner.skip disables rewrites by name
  std::string_view doc;
  // Replaces the pattern whose last node is `node`. Returns true if the graph changed. The caller binds the new nodes
  // and infers their types. `allocator` supplies the memory of new constants. If it fails, the graph must be unchanged.
  absl::StatusOr<bool> (*apply)(Graph& graph, NodeId node, HostAllocator& allocator);
  // An operator that the new nodes contain. The rewrite is applied only if every device has kernels of that name. Empty: it is
  // always applied.
  std::string_view needs = {};
  // Returns whether the pattern could end at the node, by a cheap check. The devices are asked only if it does. Must not be
  // null if `needs` is not empty.
  bool (*may_apply)(const Graph& graph, NodeId node) = nullptr;
  // An operator in the pattern that must not be folded before the rewrite was tried. Empty: none.
  std::string_view keeps = {};
};

// Declares the rewrite of a source file. `id` must be the file's name without .cc.
#define MGE_REWRITE(id)                  \
  extern const Rewrite mge_rewrite_##id; \
  constexpr Rewrite mge_rewrite_##id

// Returns all rewrites, ordered by file name.
std::span<const Rewrite* const> AllRewrites();

}  // namespace mge
