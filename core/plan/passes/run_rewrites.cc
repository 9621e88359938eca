// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/ops/rewrite.h"
#include "core/plan/passes/pass.h"

namespace mge {
namespace {

// An allocator that adds up the bytes that the budget refuses.
class DenialCounter : public HostAllocator {
 public:
  DenialCounter(HostAllocator& allocator, int64_t& denied) : allocator_(allocator), denied_(denied) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    absl::StatusOr<std::shared_ptr<std::byte>> memory = allocator_.Allocate(bytes);
    if (!memory.ok() && ErrorId(memory.status()) == errors::kOverBudget.id) denied_ += bytes;
    return memory;
  }

 private:
  HostAllocator& allocator_;
  int64_t& denied_;
};

bool Contains(const Graph& graph, std::string_view op) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (!node.dead && node.domain.empty() && node.op == op) return true;
  }
  return false;
}

// Returns the indices of the rewrites that may be applied to the graph.
std::vector<size_t> Allowed(const Graph& graph, const PassContext& context) {
  std::vector<size_t> allowed;
  for (size_t r = 0; r < AllRewrites().size(); ++r) {
    const Rewrite& rewrite = *AllRewrites()[r];
    if (context.Skips(rewrite.name)) continue;
    const bool able = rewrite.needs.empty() ||
                      (context.has_kernels && Contains(graph, rewrite.contains) && context.has_kernels(rewrite.needs));
    if (able) allowed.push_back(r);
  }
  return allowed;
}

// Tries the rewrites on each node. Returns the number of changes.
absl::StatusOr<int> Apply(Graph& graph, std::span<const NodeId> order, std::span<const size_t> rewrites,
                          const PassContext& context) {
  int changes = 0;
  DenialCounter allocator(*context.allocator, *context.denied_bytes);
  for (NodeId id : order) {
    MGE_RETURN_IF_ERROR(context.CheckStop());
    for (size_t r : rewrites) {
      if (graph.node(id).dead) break;
      int32_t first_new = graph.node_count();
      const bool recomputed = graph.node(id).recomputed;
      absl::StatusOr<bool> changed = AllRewrites()[r]->apply(graph, id, allocator);
      // Rewrites that would exceed the budget are skipped.
      if (changed.status().code() == absl::StatusCode::kResourceExhausted) continue;
      if (!changed.ok()) return changed.status();
      if (!*changed) continue;
      ++changes;
      if (context.rewrite_counts) ++(*context.rewrite_counts)[r];
      graph.Reindex(id);
      for (int32_t n = first_new; n < graph.node_count(); ++n) {
        graph.node(n).recomputed |= recomputed;
        if (!graph.node(n).dead && !graph.node(n).def) MGE_RETURN_IF_ERROR(BindNode(graph, n));
        graph.Reindex(n);
      }
    }
  }
  return changes;
}

}  // namespace

absl::StatusOr<int> RunRewrites(Graph& graph, const PassContext& context) {
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  const std::vector<size_t> allowed = Allowed(graph, context);
  graph.CreateIndex();
  absl::StatusOr<int> changes = Apply(graph, order, allowed, context);
  const bool complete = graph.DropIndex();
  if (!changes.ok()) return changes;
  if (!complete) return Fail(errors::kInternal, "a rewrite changed inputs or outputs without the graph's index");
  if (*changes) MGE_RETURN_IF_ERROR(context.InferTypes(graph));
  return changes;
}

}  // namespace mge
