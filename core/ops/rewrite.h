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
#include "core/env/snapshot.h"
#include "core/graph/graph.h"

namespace mge {

// A row of the table of rewrites.
struct Rewrite {
  std::string_view name;  // shown by `--why`; the setting plan.skip disables rewrites by name
  std::string_view doc;
  // True: is applied only if the first device's backend has `allow_rewrite` (mge/plugin.h) and allows it.
  bool on_request = false;
  // Not null: is applied only if this returns true for the settings of a session.
  bool (*wanted)(const Snapshot& settings) = nullptr;
  // Replaces the pattern whose last node is `node`. Returns true if the graph changed. The caller binds the new nodes
  // and infers their types. `allocator` supplies the memory of new constants. If it fails, the graph must be unchanged.
  absl::StatusOr<bool> (*apply)(Graph& graph, NodeId node, HostAllocator& allocator);
  // An operator for which every device must have kernels, mostly that of the new nodes. Empty: the rewrite is always applied.
  std::string_view needs = {};
  // An operator that the pattern contains. A node with it is not folded before the rewrite was tried, and if `needs` is not
  // empty, devices are asked only for graphs that have one.
  std::string_view contains = {};
};

// Declares the rewrite of a source file. `id` must be the file's name without .cc.
#define MGE_REWRITE(id)                  \
  extern const Rewrite mge_rewrite_##id; \
  constexpr Rewrite mge_rewrite_##id

// Returns all rewrites, ordered by file name.
std::span<const Rewrite* const> AllRewrites();

}  // namespace mge
