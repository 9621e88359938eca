// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/compiled_chains.h"

#include <algorithm>
#include <set>
#include <vector>

#include "mge/plugin/problems/elementwise.hpp"
#include "plugins/gpu/generate/chain_source.h"
#include "plugins/gpu/runtime/device.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

constexpr size_t kMaxNodes = 512;  // limits the time to compile
constexpr size_t kMaxInputs = 64;  // limits the size of the arguments
constexpr double kOperations = 2;  // per element and node, in the units of GpuUs()

// A kernel whose functions do not depend on shapes.
class CompiledChain : public Kernel {
 public:
  static KernelPtr Create(const Problem& p, Layout layout) {
    ChainLaunch chain;
    if (!BuildChain(p, layout, &chain).ok()) return nullptr;
    auto& device = p.device<Device>();
    void* function = nullptr;
    if (!device.compiled().FunctionOf(device, SourceOf(chain.program), &function).ok()) return nullptr;
    Recipe recipe;
    recipe.AddCompiled(function, Spread(chain.threads()), chain.Arguments(), chain.pointers);
    return std::make_unique<CompiledChain>(device, layout, std::move(recipe).Make());
  }
  CompiledChain(Device& device, Layout layout, KernelPtr launch)
      : device_(device), layout_(layout), launch_(std::move(launch)) {}
  uint32_t args_bytes() const override { return launch_->args_bytes(); }
  Result Bind(const Binding& binding, void* args, StepFn* step) override { return launch_->Bind(binding, args, step); }
  KernelPtr Rebind(const Problem& p) override { return Create(Problem(p.raw(), device), layout_); }

 private:
  Device& device_;
  Layout layout_;
  KernelPtr launch_;
};

struct CompiledChainRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (p.node_count() < 2) return;
    if (!Accept(p, offers, /*groups=*/true)) return;
    auto& device = p.device<Device>();
    for (const Layout layout : LayoutsOf(p.last().output(0).rank())) {
      ChainLaunch chain;
      if (Result r = BuildChain(p, layout, &chain); !r.ok()) return offers.Refuse(r.text());
      if (Result r = device.compiled().Ready(device); !r.ok()) return offers.Refuse(r.text());
      Candidate candidate = {
          .id = "gpu.compiled_chain",
          .rank = -1,
          .attributes = kExact | MGE_KERNEL_COMPILES,
          .cost_us = GpuUs(p, BytesOf(p), kOperations * static_cast<double>(p.output(0).elements()) * p.node_count()),
          .variant = static_cast<uint64_t>(layout),
          .in_place = chain.in_place};
      SetLayout(p, layout, &candidate);
      offers.Add(candidate);
    }
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    return CompiledChain::Create(p, static_cast<Layout>(c.variant));
  }
};

constexpr auto kRows = ElementwiseRows<CompiledChainRow>();

// A group that grows from its first node.
class Group {
 public:
  Group(const Pattern& pattern, int first, const std::vector<bool>& taken)
      : pattern_(pattern), y_(pattern.node(first).output(0)) {
    const int count = pattern.graph().node_count();
    // Nodes outside of the group that depend on it: a node that reads from one of them cannot join.
    std::vector<bool> inside(static_cast<size_t>(count), false), depends(static_cast<size_t>(count), false);
    Add(first);
    inside[static_cast<size_t>(first)] = true;
    for (int i = first + 1; i < count && nodes_.size() < kMaxNodes; ++i) {
      const Node n = pattern.node(i);
      bool reads_group = false, reads_dependent = false;
      for (int k = 0; k < n.input_count(); ++k) {
        const int before = pattern.Producer(i, k);
        if (before < 0) continue;
        reads_group = reads_group || inside[static_cast<size_t>(before)];
        reads_dependent = reads_dependent || depends[static_cast<size_t>(before)];
      }
      const bool joins = reads_group && !reads_dependent && !taken[static_cast<size_t>(i)] && FitsChain(n) &&
                         std::ranges::equal(n.output(0).dims(), y_.dims()) && inputs_.size() < kMaxInputs;
      if (joins) Add(i);
      inside[static_cast<size_t>(i)] = joins;
      depends[static_cast<size_t>(i)] = !joins && (reads_group || reads_dependent);
    }
  }
  const std::vector<int32_t>& nodes() const { return nodes_; }

  // Offers nodes `from` and later.
  void Offer(size_t from, ClaimList& claims) const {
    const std::span<const int32_t> nodes = std::span(nodes_).subspan(from);
    double alone_us = 0, bytes = 0;
    std::vector<int32_t> extras;
    std::set<int32_t> read;
    for (const int32_t i : nodes) {
      const Node n = pattern_.node(i);
      const int32_t y = n.output_id(0);
      double node_bytes = static_cast<double>(n.output(0).bytes());
      for (int k = 0; k < n.input_count(); ++k) {
        if (!n.has_input(k)) continue;
        node_bytes += static_cast<double>(n.input(k).bytes());
        const bool inner = std::ranges::binary_search(nodes, pattern_.Producer(i, k));
        if (!inner && read.insert(n.input_id(k)).second) bytes += static_cast<double>(n.input(k).bytes());
      }
      alone_us += GpuUs(kAverageRoofs, node_bytes);
      if (n.output(0).uses() <= UsesInside(nodes, y) && i != nodes.back()) continue;
      bytes += static_cast<double>(n.output(0).bytes());
      if (i != nodes.back()) extras.push_back(y);
    }
    claims.Offer("compiled_chain", nodes, alone_us - GpuUs(kAverageRoofs, bytes), extras);
  }

 private:
  void Add(int i) {
    nodes_.push_back(i);
    const Node n = pattern_.node(i);
    for (int k = 0; k < n.input_count(); ++k) {
      if (!std::ranges::binary_search(nodes_, pattern_.Producer(i, k))) inputs_.insert(n.input_id(k));
    }
  }
  uint32_t UsesInside(std::span<const int32_t> nodes, int32_t value) const {
    uint32_t uses = 0;
    for (const int32_t i : nodes) {
      for (int k = 0; k < pattern_.node(i).input_count(); ++k) uses += pattern_.node(i).input_id(k) == value;
    }
    return uses;
  }

  const Pattern& pattern_;
  const Value y_;
  std::vector<int32_t> nodes_;  // ascending
  std::set<int32_t> inputs_;    // values that the nodes read from outside of the group
};

}  // namespace

MGE_KERNELS(compiled_chains) = kRows;

void OfferCompiledChains(const Pattern& pattern, ClaimList& claims) {
  auto& device = claims.device<Device>();
  const int count = pattern.graph().node_count();
  std::vector<bool> taken(static_cast<size_t>(count), false);
  for (int first = 0; first < count; ++first) {
    if (taken[static_cast<size_t>(first)] || !FitsChain(pattern.node(first))) continue;
    const Group group(pattern, first, taken);
    if (group.nodes().size() < 2) continue;
    if (!device.compiled().Ready(device).ok()) return;
    for (const int32_t i : group.nodes()) taken[static_cast<size_t>(i)] = true;
    // The rest of the group is offered too, in case another fusion takes its first nodes.
    for (size_t from = 0; from <= 3 && from + 2 <= group.nodes().size(); ++from) group.Offer(from, claims);
  }
}

}  // namespace mge::gpu
