// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/epilogue.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

constexpr int32_t kOwn = std::numeric_limits<int32_t>::max();  // marks that the product has its own bias

bool SameDims(const Value& a, const Value& b) { return std::ranges::equal(a.dims(), b.dims()); }

// Returns whether products and convolutions of the type have epilogues.
bool HasEpilogues(mge_dtype t) { return t == MGE_DTYPE_F32 || t == MGE_DTYPE_F16 || t == MGE_DTYPE_BF16; }

bool FindActivation(const Node& next, Activation* a) {
  struct Named {
    const char* op;
    ActivationKind kind;
  };
  constexpr Named kNamed[] = {{"Relu", kRelu}, {"Sigmoid", kSigmoid}, {"Tanh", kTanh}, {"HardSwish", kHardSwish}};
  for (const Named& n : kNamed) {
    if (next.Is(n.op)) return a->kind = n.kind, true;
  }
  if (next.Is("LeakyRelu")) return *a = {kLeakyRelu, next.Float("alpha"), 0}, true;
  if (next.Is("Gelu")) return a->kind = next.Word("approximate") == "tanh" ? kGeluTanh : kGelu, true;
  if (!next.Is("Clip")) return false;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  *a = {kClip, -kInfinity, kInfinity};
  return (!next.has_input(1) || ConstantFloat(next.input(1), &a->low)) &&
         (!next.has_input(2) || ConstantFloat(next.input(2), &a->high));
}

// Adds `next`, which reads e->output, to the epilogue. Returns false without changes if it does not fit.
bool Absorb(const Graph& graph, const Node& next, ChannelAxis axis, Epilogue* e) {
  if (e->activation.kind != kNoActivation || HasOwnMeaning(next) || !next.has_output(0) || next.output_count() != 1)
    return false;
  Value x = graph.value(e->output), y = next.output(0);
  if (!HasEpilogues(x.dtype()) || y.dtype() != x.dtype() || !y.is_static() || !SameDims(x, y)) return false;
  Epilogue grown = *e;
  grown.output = next.output_id(0);
  if (next.Is("Add")) {
    int32_t other = next.input_id(next.input_id(0) == e->output ? 1 : 0);
    if (other == e->output) return false;
    Value v = graph.value(other);
    if (v.dtype() != x.dtype() || !v.is_static()) return false;
    if (e->bias < 0 && IsPerChannel(v, y, axis)) {
      grown.bias = other;
    } else if (e->residual < 0 && SameDims(v, y)) {
      grown.residual = other;
    } else {
      return false;
    }
  } else if (next.input_id(0) != e->output || !FindActivation(next, &grown.activation)) {
    return false;
  } else {
    grown.before = e->output;
  }
  *e = grown;
  return true;
}

Epilogue StartOf(const Node& product) {
  Epilogue e;
  e.output = product.output_id(0);
  if (product.has_input(2) && product.Is("Conv")) e.bias = kOwn;
  return e;
}

// Returns the first Gelu that reads a value, or -1.
int GeluOf(const Graph& graph, int32_t value) {
  for (int i = 0; i < graph.node_count(); ++i) {
    if (graph.node(i).Is("Gelu") && graph.node(i).input_id(0) == value) return i;
  }
  return -1;
}

}  // namespace

bool IsPerChannel(const Value& v, const Value& y, ChannelAxis axis) {
  int channel = axis == ChannelAxis::kLast ? y.rank() - 1 : 1;
  if (v.rank() > y.rank()) return false;
  for (int i = 1; i <= v.rank(); ++i) {
    if (v.dim(-i) != (y.rank() - i == channel ? y.dim(channel) : 1)) return false;
  }
  return v.elements() == static_cast<uint64_t>(y.dim(channel));
}

bool FindEpilogue(const Problem& p, ChannelAxis axis, Epilogue* e) {
  *e = StartOf(p.node());
  for (int i = 1; i < p.node_count(); ++i) {
    if (!Absorb(p.graph(), p.node(i), axis, e)) return false;
  }
  if (e->bias == kOwn) e->bias = p.node().input_id(2);
  const int outputs = p.output_count();
  if (outputs == 1) e->before = -1;
  if (outputs == 2 && (axis != ChannelAxis::kLast || e->before < 0 || OutputNumber(p, e->before) < 0)) return false;
  return outputs <= 2 && OutputNumber(p, e->output) >= 0;
}

void OfferEpilogues(const Pattern& pattern, ClaimList& claims, std::string_view op, ChannelAxis axis) {
  for (int i = 0; i < pattern.graph().node_count(); ++i) {
    Node n = pattern.node(i);
    if (!n.Is(op) || !n.has_output(0) || !HasEpilogues(n.output(0).dtype()) || !n.output(0).is_static()) continue;
    if (HasOwnMeaning(n) || n.output(0).elements() == 0) continue;
    Epilogue e = StartOf(n);
    std::vector<int32_t> nodes = {i};
    double saved = 0;
    for (int next = pattern.Next(i); next >= 0; next = pattern.Next(next)) {
      if (!Absorb(pattern.graph(), pattern.node(next), axis, &e)) break;
      nodes.push_back(next);
      saved += GpuUs(kAverageRoofs, 2.0 * static_cast<double>(n.output(0).bytes()));
      claims.Offer(op == "Conv" ? "conv_epilogue" : "gemm_epilogue", nodes, saved);
    }
    const int32_t before = e.output;
    if (axis != ChannelAxis::kLast || pattern.graph().value(before).uses() < 2) continue;
    const int gelu = GeluOf(pattern.graph(), before);
    if (gelu < 0 || !Absorb(pattern.graph(), pattern.node(gelu), axis, &e)) continue;
    nodes.push_back(gelu);
    saved += GpuUs(kAverageRoofs, static_cast<double>(n.output(0).bytes()));  // the read of the argument, and a launch
    claims.Offer("gemm_epilogue", nodes, saved, std::span(&before, 1));
  }
}

}  // namespace mge::gpu
