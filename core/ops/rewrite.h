// SPDX-License-Identifier: Apache-2.0
// A rewrite: replaces a small pattern of named operators by an equal, cheaper one. One file each in rewrites/.
#pragma once

#include <span>
#include <string_view>

#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge {

struct Rewrite {
  std::string_view name;  // shown by --why, may be skipped by name
  std::string_view doc;
  // Tries the pattern that ends at `node`. True if the graph changed. New nodes are bound and typed by the caller. New
  // constants come from `allocator`; where it has no memory left, the graph is unchanged.
  absl::StatusOr<bool> (*apply)(Graph& graph, NodeId node, HostAllocator& allocator);
};

#define MGE_REWRITE(id)                     \
  extern const Rewrite mge_rewrite_##id;    \
  constexpr Rewrite mge_rewrite_##id

std::span<const Rewrite* const> AllRewrites();

}  // namespace mge
