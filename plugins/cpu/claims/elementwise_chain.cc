// SPDX-License-Identifier: Apache-2.0
// Claims connected elementwise nodes with outputs of one shape. A tile program computes them in one pass
// (support/program.h).
//
// Algorithm: starting at each node that fits, the group grows forward in topological order. A node joins if it reads a
// member, fits, and does not depend on the group through a node outside of it. If one program cannot compute the group, it
// is halved.
#include <algorithm>
#include <vector>

#include "kernel_table.h"
#include "support/elementwise_ops.h"
#include "support/kernel.h"
#include "support/program.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int kMaxGroup = 256;      // nodes
constexpr int kMaxLookahead = 256;  // nodes to examine after the last one that joined

bool SameDims(const Value& a, const Value& b) { return std::ranges::equal(a.dims(), b.dims()); }

class Finder {
 public:
  explicit Finder(const Pattern& pattern) : pattern_(pattern), graph_(pattern.graph()) {
    fits_.resize(static_cast<size_t>(graph_.node_count()));
    for (int i = 0; i < graph_.node_count(); ++i) fits_[static_cast<size_t>(i)] = Fits(graph_.node(i));
    member_.assign(fits_.size(), false);
    tainted_.assign(fits_.size(), false);
  }

  // Offers every maximal group, and the rest of each in case another fusion takes its first nodes.
  void OfferAll(ClaimList& claims) {
    std::vector<bool> covered(fits_.size(), false);
    for (int i = 0; i < graph_.node_count(); ++i) {
      if (!fits_[static_cast<size_t>(i)] || covered[static_cast<size_t>(i)]) continue;
      std::vector<int32_t> group = Buildable(Grow(i));
      for (int32_t n : group) covered[static_cast<size_t>(n)] = true;
      if (group.size() < 2) continue;
      Offer(group, claims);
      constexpr size_t kTails = 3;
      for (size_t k = 1; k <= kTails && k + 2 <= group.size(); ++k) {
        std::vector<int32_t> tail = Buildable(Grow(group[k]));
        if (tail.size() >= 2) Offer(tail, claims);
      }
    }
  }

 private:
  static bool Fits(const Node& n) {
    Elementwise e;
    if (!ReadElementwise(n, &e) || !n.has_input(0) || !n.has_output(0) || n.has_output(1)) return false;
    if (HasOwnMeaning(n)) return false;
    for (int k = 0; k < n.input_count(); ++k) {
      if (n.has_input(k) && (!n.input(k).is_static() || !IsSupported(n.input(k).dtype()))) return false;
    }
    Value y = n.output(0);
    return y.is_static() && y.rank() <= kMaxDims && IsSupported(y.dtype()) && y.elements() > 0;
  }

  // Returns the largest group that begins with node `first`, in topological order. A node that depends on the group through
  // a node outside of it is tainted. It must not join, because the group is computed as one step.
  std::vector<int32_t> Grow(int first) {
    std::vector<int32_t> group = {first};
    std::vector<int32_t> touched;
    member_[static_cast<size_t>(first)] = true;
    Value shape = graph_.node(first).output(0);
    int last = first, inputs = graph_.node(first).input_count();
    for (int i = first + 1; i < graph_.node_count() && i <= last + kMaxLookahead; ++i) {
      bool joins = false, taint = false;
      Node n = graph_.node(i);
      for (int k = 0; k < n.input_count(); ++k) {
        int producer = pattern_.Producer(i, k);
        if (producer < 0) continue;
        joins |= member_[static_cast<size_t>(producer)] && !IsReadAgain(n, producer);
        taint |= member_[static_cast<size_t>(producer)] && IsReadAgain(n, producer);
        taint |= tainted_[static_cast<size_t>(producer)];
      }
      if (!joins && !taint) continue;
      if (joins && !taint && fits_[static_cast<size_t>(i)] && SameDims(n.output(0), shape) &&
          static_cast<int>(group.size()) < kMaxGroup && inputs + n.input_count() <= kMaxOperands - 8) {
        inputs += AddSiblings(i, first, shape, group);
        member_[static_cast<size_t>(i)] = true;
        group.push_back(i);
        inputs += n.input_count() - 1;
        last = i;
      } else {
        tainted_[static_cast<size_t>(i)] = true;
        touched.push_back(i);
      }
    }
    for (int32_t n : group) member_[static_cast<size_t>(n)] = false;
    for (int32_t n : touched) tainted_[static_cast<size_t>(n)] = false;
    std::sort(group.begin(), group.end());
    return group;
  }

  // Returns whether n only turns integers of the group back to floats, and others need the integers. Reading the integers again
  // is cheaper than writing both forms.
  bool IsReadAgain(const Node& n, int producer) const { return n.Is("DequantizeLinear") && pattern_.Next(producer) < 0; }

  // Adds fitting nodes between `first` and i that only node i reads, such as the other branch of a gate. They do not depend
  // on the group: otherwise they would be members or tainted.
  int AddSiblings(int i, int first, const Value& shape, std::vector<int32_t>& group) {
    int inputs = 0;
    std::vector<int> open = {i};
    while (!open.empty()) {
      int at = open.back();
      open.pop_back();
      for (int k = 0; k < graph_.node(at).input_count(); ++k) {
        int producer = pattern_.Producer(at, k);
        if (producer <= first || member_[static_cast<size_t>(producer)] || !fits_[static_cast<size_t>(producer)]) continue;
        Node n = graph_.node(producer);
        if (pattern_.Next(producer) < 0 || !SameDims(n.output(0), shape)) continue;
        member_[static_cast<size_t>(producer)] = true;
        group.push_back(producer);
        inputs += n.input_count();
        open.push_back(producer);
      }
    }
    return inputs;
  }

  // Returns the group, or as many of its first nodes as one program can compute.
  std::vector<int32_t> Buildable(std::vector<int32_t> group) const {
    while (group.size() >= 2 && !Builds(group)) group.resize(group.size() / 2);
    return group;
  }

  bool Builds(const std::vector<int32_t>& group) const {
    const mge_graph& whole = *graph_.raw();
    std::vector<const mge_node*> nodes;
    std::vector<int32_t> inputs, outputs, produced, read;
    for (int32_t n : group) {
      const mge_node* node = whole.nodes[n];
      nodes.push_back(node);
      for (uint64_t k = 0; k < node->input_count; ++k) {
        if (node->inputs[k] >= 0) read.push_back(node->inputs[k]);
      }
      produced.push_back(node->outputs[0]);
    }
    std::sort(read.begin(), read.end());
    std::sort(produced.begin(), produced.end());
    for (size_t i = 0; i < read.size(); ++i) {
      if ((i == 0 || read[i] != read[i - 1]) && !std::binary_search(produced.begin(), produced.end(), read[i])) {
        inputs.push_back(read[i]);
      }
    }
    for (int32_t v : produced) {
      auto [begin, end] = std::equal_range(read.begin(), read.end(), v);
      if (static_cast<uint32_t>(end - begin) < whole.values[v]->uses || whole.values[v]->uses == 0) outputs.push_back(v);
    }
    mge_graph part = {sizeof(mge_graph), 0,
                      nodes.data(),      nodes.size(),
                      whole.values,      whole.value_count,
                      inputs.data(),     inputs.size(),
                      outputs.data(),    outputs.size()};
    mge_problem problem = {sizeof(mge_problem), 1, &part, nullptr, nullptr, 0};
    std::unique_ptr<Program> program;
    return Program::Build(Problem(&problem), AllowedIsa(), /*channels_last=*/false, &program).ok();
  }

  // Estimates the time saved: values between the nodes are not written and read, and there are fewer steps.
  void Offer(const std::vector<int32_t>& group, ClaimList& claims) const {
    double saved = 0;
    for (size_t k = 0; k + 1 < group.size(); ++k) {
      saved += 0.1 + StreamUs(2.0 * static_cast<double>(graph_.node(group[k]).output(0).bytes()));
    }
    claims.Offer("elementwise_chain", group, saved);
  }

  const Pattern& pattern_;
  Graph graph_;
  std::vector<bool> fits_, member_, tainted_;
};

void FindGroups(const Pattern& pattern, ClaimList& claims) { Finder(pattern).OfferAll(claims); }

}  // namespace

MGE_CPU_CLAIM(elementwise_chain) = FindGroups;

}  // namespace mge::cpu
