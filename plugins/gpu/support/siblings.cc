// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/siblings.h"

#include <algorithm>

#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

bool IsPlain(const Value& v) {
  return (v.dtype() == MGE_DTYPE_F32 || v.dtype() == MGE_DTYPE_F16 || v.dtype() == MGE_DTYPE_BF16) && v.is_static() &&
         v.elements() > 0;
}

// Returns whether the node is a product of a tensor with a constant matrix.
bool IsProduct(const Node& n) {
  return n.Is("MatMul") && !HasOwnMeaning(n) && n.has_input(0) && n.has_input(1) && n.has_output(0) && IsPlain(n.input(0)) &&
         !n.input(0).is_constant() && n.input(0).rank() >= 2 && IsPlain(n.input(1)) && n.input(1).is_constant() &&
         n.input(1).rank() == 2;
}

// Returns the node that adds a bias to the product and is its only reader, or -1.
int BiasOf(const Graph& graph, int product, int32_t* bias) {
  const int32_t value = graph.node(product).output_id(0);
  if (graph.value(value).uses() != 1) return -1;
  for (int i = product + 1; i < graph.node_count(); ++i) {
    const Node n = graph.node(i);
    if (!n.Is("Add") || HasOwnMeaning(n) || !n.has_output(0) || !IsPlain(n.output(0))) continue;
    for (int k = 0; k < 2; ++k) {
      if (n.input_id(k) != value) continue;
      const Value other = n.input(1 - k);
      const bool fits = IsPlain(other) && other.is_constant() &&
                        IsPerChannel(other, graph.value(value), ChannelAxis::kLast) &&
                        std::ranges::equal(n.output(0).dims(), graph.value(value).dims());
      if (!fits) return -1;
      *bias = n.input_id(1 - k);
      return i;
    }
  }
  return -1;
}

}  // namespace

bool FindSiblings(const Graph& graph, int first, Siblings* found) {
  *found = {};
  if (!IsProduct(graph.node(first))) return false;
  found->a = graph.node(first).input_id(0);
  for (int i = first; i < graph.node_count() && found->products.size() < kMaxSiblings; ++i) {
    const Node n = graph.node(i);
    if (n.input_id(0) != found->a || !IsProduct(n)) continue;
    if (!std::ranges::equal(n.input(1).dims(), graph.node(first).input(1).dims())) continue;
    Siblings::Product product = {.b = n.input_id(1), .output = n.output_id(0)};
    found->nodes.push_back(i);
    if (const int sum = BiasOf(graph, i, &product.bias); sum >= 0) {
      product.output = graph.node(sum).output_id(0);
      found->nodes.push_back(sum);
    }
    found->products.push_back(product);
  }
  std::ranges::sort(found->nodes);
  return found->products.size() > 1;
}

bool FindSiblings(const Problem& p, Siblings* found) {
  return p.node_count() > 1 && FindSiblings(p.graph(), 0, found) &&
         static_cast<int>(found->nodes.size()) == p.node_count() &&
         static_cast<int>(found->products.size()) == p.output_count();
}

Product ProductOf(const Problem& p, const Siblings::Product& one) {
  Product product;
  const Value a = p.node().input(0), b = p.node().input(1);
  product.type = a.dtype();
  product.a = p.operand(p.node().input_id(0));
  product.b = p.operand(one.b);
  product.bias = one.bias < 0 ? -1 : p.operand(one.bias);
  MatMulArgs& args = product.args;
  args.k = a.dim(-1);
  args.m = static_cast<int64_t>(a.elements()) / args.k;
  args.n = b.dim(1);
  args.a_row = args.k;
  args.b_k = args.n;
  args.batch = args.a_k = args.b_column = args.bias_column = 1;
  args.alpha = 1;
  return product;
}

void OfferSiblings(const Pattern& pattern, ClaimList& claims) {
  const Graph& graph = pattern.graph();
  std::vector<bool> taken(static_cast<size_t>(graph.node_count()), false);
  for (int i = 0; i < graph.node_count(); ++i) {
    Siblings found;
    if (taken[static_cast<size_t>(i)] || !FindSiblings(graph, i, &found)) continue;
    for (int32_t node : found.nodes) taken[static_cast<size_t>(node)] = true;
    // Saves the reads of a, the passes that add a bias, and all launches but one.
    double saved = static_cast<double>(found.products.size() - 1) *
                   GpuUs(kAverageRoofs, static_cast<double>(graph.value(found.a).bytes()));
    for (const Siblings::Product& p : found.products) {
      if (p.bias >= 0) saved += GpuUs(kAverageRoofs, 2.0 * static_cast<double>(graph.value(p.output).bytes()));
    }
    claims.Offer("sibling_products", found.nodes, saved);
  }
}

}  // namespace mge::gpu
