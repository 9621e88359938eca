// SPDX-License-Identifier: Apache-2.0
// Claims: groups of nodes that one kernel computes, offered to the host, and a pattern matcher that finds them.
//
//   void ClaimBiasRelu(const mge::Pattern& graph, mge::ClaimList& claims) {
//     static const mge::PatternNode relu = mge::Op("Relu", {mge::Op("Add", {mge::Op("MatMul"), mge::Any()}).Commutes()});
//     for (const mge::Match& m : graph.FindAll(relu)) claims.Offer("bias_relu", m.nodes, 2.5);
//   }
//   using Claims = mge::Claims<ClaimBiasRelu>;      // in the backend's struct
//
// The host chooses among overlapping offers. An accepted group becomes a problem for the kernel rows of its first node's
// operator. Offer only groups that a row supports. If that depends on the device, ask claims.device<Device>().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// A list that receives claims.
class ClaimList {
 public:
  explicit ClaimList(const mge_claim_sink* sink, mge_device* device = nullptr) : sink_(sink), device_(device) {}
  // Returns the device for which the groups are offered, as the backend's own class.
  template <typename D>
  D& device() const {
    return internal::As<D>(device_);
  }
  // Offers a group. `nodes` are in ascending order; `benefit_us` is the estimated time saved, compared with the nodes one by
  // one. `extra_outputs` are values between the nodes that the kernel can also write, for readers outside of the group.
  void Offer(std::string_view name, std::span<const int32_t> nodes, double benefit_us,
             std::span<const int32_t> extra_outputs = {}) {
    mge_claim claim = {sizeof(mge_claim), 0,          Text(name),           nodes.data(),
                       nodes.size(),      benefit_us, extra_outputs.data(), extra_outputs.size()};
    sink_->offer(sink_->self, &claim);
  }

 private:
  const mge_claim_sink* sink_;
  mge_device* device_;
};

// A pattern: a node and the patterns of its inputs. The root is the last node of the group.
struct PatternNode {
  // "" matches anything, also values from outside the graph; the match does not join the group
  std::string op;
  std::vector<PatternNode> inputs;  // patterns of the first inputs; further inputs are not checked
  std::string domain;
  bool commutes = false;
  std::function<bool(const Node&)> where;  // empty: always

  // Allows the first two inputs in either order.
  PatternNode Commutes() && { return commutes = true, std::move(*this); }
  PatternNode In(std::string_view of_domain) && { return domain = of_domain, std::move(*this); }
  PatternNode Where(std::function<bool(const Node&)> holds) && { return where = std::move(holds), std::move(*this); }
};
inline PatternNode Op(std::string_view op, std::vector<PatternNode> inputs = {}) {
  return {std::string(op), std::move(inputs), "", false, {}};
}
inline PatternNode Any() { return {}; }

// A place in the graph that matches a pattern.
struct Match {
  std::vector<int32_t> nodes;  // ascending: producers first
  int root = -1;               // the last node of the pattern
};

// A graph with an index of consumers and producers, for matching.
class Pattern {
 public:
  explicit Pattern(const mge_graph* g) : graph_(g), consumer_(g->value_count, -1), producer_(g->value_count, -1) {
    for (uint64_t i = 0; i < g->node_count; ++i) {
      for (uint64_t k = 0; k < g->nodes[i]->input_count; ++k) {
        if (int32_t v = g->nodes[i]->inputs[k]; v >= 0) consumer_[v] = static_cast<int32_t>(i);
      }
      for (uint64_t k = 0; k < g->nodes[i]->output_count; ++k) {
        if (int32_t v = g->nodes[i]->outputs[k]; v >= 0) producer_[v] = static_cast<int32_t>(i);
      }
    }
  }
  const Graph& graph() const { return graph_; }
  Node node(int i) const { return graph_.node(i); }
  // Returns the only consumer of output 0 of node i, or -1. Also -1 if the output is a graph output.
  int Next(int i) const {
    Node n = graph_.node(i);
    if (!n.has_output(0) || n.output(0).uses() != 1) return -1;
    return consumer_[n.output_id(0)];
  }
  // Returns the node that computes input k of node i, or -1 if the value comes from outside.
  int Producer(int i, int k) const {
    Node n = graph_.node(i);
    return n.has_input(k) ? producer_[n.input_id(k)] : -1;
  }

  // Returns every match of the pattern. A value between two nodes of a match has no other consumer, so it need not exist.
  std::vector<Match> FindAll(const PatternNode& shape) const {
    std::vector<Match> found;
    for (int i = 0; i < graph_.node_count(); ++i) {
      Match m;
      if (!MatchAt(shape, i, m.nodes)) continue;
      std::sort(m.nodes.begin(), m.nodes.end());
      m.root = i;
      found.push_back(std::move(m));
    }
    return found;
  }

 private:
  bool MatchAt(const PatternNode& shape, int i, std::vector<int32_t>& nodes) const {
    Node n = node(i);
    if (!n.Is(shape.op, shape.domain) || (shape.where && !shape.where(n))) return false;
    if (n.input_count() < static_cast<int>(shape.inputs.size())) return false;
    const size_t before = nodes.size();
    nodes.push_back(i);
    if (MatchInputs(shape, i, false, nodes)) return true;
    nodes.resize(before + 1);
    if (shape.commutes && shape.inputs.size() >= 2 && MatchInputs(shape, i, true, nodes)) return true;
    nodes.resize(before);
    return false;
  }
  bool MatchInputs(const PatternNode& shape, int i, bool swapped, std::vector<int32_t>& nodes) const {
    for (size_t k = 0; k < shape.inputs.size(); ++k) {
      const PatternNode& want = shape.inputs[swapped && k < 2 ? 1 - k : k];
      if (want.op.empty()) continue;
      int producer = Producer(i, static_cast<int>(k));
      if (producer < 0 || Next(producer) != i) return false;
      if (node(producer).output_id(0) != node(i).input_id(static_cast<int>(k))) return false;
      if (!MatchAt(want, producer, nodes)) return false;
    }
    return true;
  }

  Graph graph_;
  std::vector<int32_t> consumer_;
  std::vector<int32_t> producer_;
};

// The claims of a backend, one function per fusion.
template <void (*... kOffers)(const Pattern&, ClaimList&)>
struct Claims {
  static mge_code Claim(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result {
      Pattern pattern(graph);
      ClaimList list(sink, device);
      (kOffers(pattern, list), ...);
      return {};
    });
  }
  static constexpr mge_graph_api Api() {
    return Table<mge_graph_api>([](auto& t) { t.claim = Claim; });
  }
};

}  // namespace MGE_HIDDEN
