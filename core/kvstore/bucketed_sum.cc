// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/bucketed_sum.h"

#include <algorithm>
#include <numeric>

#include "core/base/element_range.h"
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

absl::StatusOr<std::vector<ValueId>> AddBucketedSum(Graph& graph, std::span<const ValueId> values, int64_t min_elements,
                                                    const SumParts& parts) {
  MGE_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOfTime(graph, values));
  struct Bucket {
    bool parts;
    std::vector<size_t> values;
  };
  std::vector<Bucket> buckets;
  // Whole sums among parts are those of scalars and of small parameters. They go last, so that no bucket waits for them.
  for (const bool in_parts : {true, false}) {
    for (int64_t left = 0; const size_t i : order) {
      if ((!parts.of.empty() && parts.of[i]) != in_parts) continue;
      if (left <= 0) {
        buckets.push_back({in_parts, {}});
        left = min_elements;
      }
      buckets.back().values.push_back(i);
      left -= Elements(graph.value(values[i]).type.dims);
    }
  }
  NodeAdder nodes(graph, "replicas");
  ValueId token = nodes.Constant(Tensor::Scalar<int64_t>(0));
  for (size_t b = 0; b < buckets.size(); ++b) {
    std::vector<ValueId> inputs = {token};
    for (const size_t i : buckets[b].values) inputs.push_back(values[i]);
    Attributes attrs = IntAttribute("bucket", static_cast<int64_t>(b));
    attrs.Set("parts", int64_t{buckets[b].parts});
    token = nodes.AddOurs("StartSum", std::move(inputs), std::move(attrs));
  }
  std::vector<ValueId> sums(values.size());
  for (size_t b = 0; b < buckets.size(); ++b) {
    const std::vector<size_t>& bucket = buckets[b].values;
    Ints elements, types;
    for (const size_t i : bucket) {
      const TensorType& type = graph.value(values[i]).type;
      const int64_t whole = Elements(type.dims);
      elements.push_back(buckets[b].parts ? PartOfElements(whole, parts.replica, parts.replicas).count : whole);
      types.push_back(static_cast<int64_t>(type.dtype));
    }
    Attributes attrs = IntAttribute("bucket", static_cast<int64_t>(b));
    attrs.Set("elements", elements);
    attrs.Set("types", types);
    const std::vector<ValueId> ended = nodes.AddOurs("EndSum", {token}, bucket.size(), std::move(attrs));
    for (size_t k = 0; k < ended.size(); ++k) {
      const Shape dims = graph.value(values[bucket[k]]).type.dims;
      sums[bucket[k]] = buckets[b].parts ? ended[k] : nodes.Reshape(ended[k], dims);
    }
  }
  return sums;
}

std::vector<ValueId> AddSum(Graph& graph, std::span<const ValueId> values) {
  return NodeAdder(graph, "replicas").AddOurs("AllReduce", {values.begin(), values.end()}, values.size(), {});
}

std::vector<ValueId> AddGather(Graph& graph, ValueId token, std::span<const ValueId> parts,
                               std::span<const int64_t> elements) {
  std::vector<ValueId> inputs = {token};
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  return NodeAdder(graph, "replicas")
      .AddOurs("AllGather", std::move(inputs), parts.size() + 1,
               OneAttribute("elements", Ints(elements.begin(), elements.end())));
}

}  // namespace mge
