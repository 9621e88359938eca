// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/bucketed_sum.h"

#include <algorithm>
#include <numeric>

#include "core/ops/rewrites/node_adder.h"

namespace mge {
namespace {

// Returns the indices of `values` in the order in which they are computed.
absl::StatusOr<std::vector<size_t>> OrderOfTime(const Graph& graph, std::span<const ValueId> values) {
  MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  std::vector<size_t> place(static_cast<size_t>(graph.node_count()), 0);
  for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = i + 1;
  auto time = [&](size_t i) {
    const NodeId producer = graph.value(values[i]).producer;
    return producer == kNone ? 0 : place[static_cast<size_t>(producer)];
  };
  std::vector<size_t> out(values.size());
  std::iota(out.begin(), out.end(), size_t{0});
  std::ranges::stable_sort(out, {}, time);
  return out;
}

}  // namespace

absl::StatusOr<std::vector<ValueId>> AddBucketedSum(Graph& graph, std::span<const ValueId> values, int64_t min_elements) {
  MGE_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOfTime(graph, values));
  std::vector<std::vector<size_t>> buckets;
  for (int64_t left = 0; const size_t i : order) {
    if (left <= 0) {
      buckets.emplace_back();
      left = min_elements;
    }
    buckets.back().push_back(i);
    left -= Elements(graph.value(values[i]).type.dims);
  }
  NodeAdder nodes(graph, "replicas");
  auto inputs = [&](ValueId token, const std::vector<size_t>& bucket) {
    std::vector<ValueId> out = {token};
    for (const size_t i : bucket) out.push_back(values[i]);
    return out;
  };
  ValueId token = nodes.Constant(Tensor::Scalar<int64_t>(0));
  for (size_t b = 0; b < buckets.size(); ++b) {
    token = nodes.AddOurs("StartSum", inputs(token, buckets[b]), IntAttribute("bucket", static_cast<int64_t>(b)));
  }
  std::vector<ValueId> sums(values.size());
  for (size_t b = 0; b < buckets.size(); ++b) {
    const std::vector<ValueId> ended = nodes.AddOurs("EndSum", inputs(token, buckets[b]), buckets[b].size(),
                                                     IntAttribute("bucket", static_cast<int64_t>(b)));
    for (size_t k = 0; k < ended.size(); ++k) sums[buckets[b][k]] = ended[k];
  }
  return sums;
}

std::vector<ValueId> AddSum(Graph& graph, std::span<const ValueId> values) {
  return NodeAdder(graph, "replicas").AddOurs("AllReduce", {values.begin(), values.end()}, values.size(), {});
}

std::vector<ValueId> AddGather(Graph& graph, std::span<const ValueId> parts, std::span<const int64_t> elements) {
  return NodeAdder(graph, "replicas")
      .AddOurs("AllGather", {parts.begin(), parts.end()}, parts.size(),
               OneAttribute("elements", Ints(elements.begin(), elements.end())));
}

}  // namespace mge
