// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/chain.h"

#include <algorithm>

#include "mge/plugin/problems/elementwise.hpp"
#include "mge/plugin/problems/quantize.hpp"
#include "plugins/gpu/kernels/chain.h"
#include "plugins/gpu/support/broadcast.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

#define GPU_CHAIN_NAME(name, Function) #name,
constexpr std::string_view kNames[] = {GPU_CHAIN_UNARY(GPU_CHAIN_NAME) GPU_CHAIN_BINARY(GPU_CHAIN_NAME)};
#undef GPU_CHAIN_NAME
static_assert(std::size(kNames) == kChainCodes);

// Finds the type of a value. Returns false if values of chains do not have it.
bool FindType(const Value& v, ChainType* type) {
  switch (v.dtype()) {
    case MGE_DTYPE_F32: *type = kChainF32; return true;
    case MGE_DTYPE_U8: *type = kChainU8; return true;
    case MGE_DTYPE_I8: *type = kChainI8; return true;
    default: return false;
  }
}

// Finds the step of a QuantizeLinear or DequantizeLinear. Returns false if chains do not support it: they do so between float32
// and 8 bits, with one scale or one per index of the last dimension, which broadcasts as an elementwise operand does.
bool FindQuantization(const Node& n, bool quantizes, ChainStep* step, int* operands) {
  *operands = n.has_input(2) ? 3 : 2;
  if (!n.has_input(0) || !n.has_input(1) || !n.has_output(0)) return false;
  const Value x = n.input(0), scale = n.input(1), y = n.output(0);
  if (!scale.is_static() || scale.dtype() != MGE_DTYPE_F32) return false;
  const Quantization q = ReadQuantization(n);
  if (q.block || q.division != MGE_DTYPE_F32 || (!q.one && q.axis != x.rank() - 1)) return false;
  ChainType type;
  if (!FindType(quantizes ? y : x, &type) || type == kChainF32) return false;
  if ((quantizes ? x : y).dtype() != MGE_DTYPE_F32) return false;
  *step = {};
  step->code = !quantizes ? kChainDequantize : type == kChainU8 ? kChainQuantizeToU8 : kChainQuantizeToI8;
  return true;
}

// Finds the node's function and its parameters. Returns false if chains do not support it.
bool FindStep(const Node& n, ChainStep* step, int* operands) {
  using Form = ElementwiseForm;
  Elementwise e;
  if (!ReadElementwise(n, &e)) return false;
  const bool quantizes = e.form == Form::kQuantize;
  if (quantizes || e.form == Form::kDequantize) return FindQuantization(n, quantizes, step, operands);
  const bool unary = e.form == Form::kUnary;
  const bool binary = e.form == Form::kBinary || (e.form == Form::kVariadic && n.input_count() == 2);
  auto at = std::ranges::find(kNames, NameOf(e.function));
  if (at == std::end(kNames) || (!unary && !binary)) return false;
  *operands = unary ? 1 : 2;
  *step = {};
  step->code = static_cast<int32_t>(at - std::begin(kNames));
  step->a = e.a;
  step->b = e.b;
  if (n.input_count() != *operands) return false;
  for (int k = 0; k < *operands; ++k) {
    if (!n.has_input(k) || n.input(k).dtype() != MGE_DTYPE_F32) return false;
  }
  return n.has_output(0) && n.output(0).dtype() == MGE_DTYPE_F32;
}

bool Fits(const Node& n) {
  ChainStep step;
  int operands = 0;
  if (HasOwnMeaning(n) || !FindStep(n, &step, &operands) || n.output_count() != 1 || !n.has_output(0)) return false;
  auto plain = [](const Value& v) { return v.is_static() && v.rank() <= kMaxRank; };
  for (int k = 0; k < operands; ++k) {
    if (!n.has_input(k) || !plain(n.input(k))) return false;
  }
  return plain(n.output(0)) && n.output(0).elements() > 0;
}

bool SameDims(const Value& a, const Value& b) { return std::ranges::equal(a.dims(), b.dims()); }

}  // namespace

Result Chain::Build(const Problem& p, Layout layout, Recipe* recipe) {
  auto no = [](const char* why) { return Result(MGE_UNIMPLEMENTED, why); };
  if (p.output_count() > 1 + kMaxChainExtras || p.input_count() > kMaxChainInputs || p.node_count() > kMaxChainSteps)
    return no("too long for a chain");
  const Value y = p.last().output(0);
  ChainArgs args = {};
  args.n = static_cast<int64_t>(y.elements());
  args.input_count = p.input_count();
  args.step_count = p.node_count();
  for (int i = 0; i < p.node_count(); ++i) {
    Node n = p.node(i);
    int operands = 0;
    if (!Fits(n) || !FindStep(n, &args.steps[i], &operands)) return no("a function that chains do not have");
    if (!SameDims(n.output(0), y)) return no("results of different shapes");
    int16_t values[3] = {0, 0, -1};
    for (int k = 0; k < operands; ++k) {
      const int before = p.graph().producer(n.input_id(k));
      int value = before >= 0 ? args.input_count + before : p.operand(n.input_id(k));
      if (value < 0) return no("nodes that do not follow one another");
      values[k] = static_cast<int16_t>(value);
    }
    args.steps[i].x = values[0];
    args.steps[i].y = values[1];
    args.steps[i].z = values[2];
  }
  std::vector<Value> inputs;
  std::vector<Operand> pointers;
  for (int k = 0; k < p.input_count(); ++k) {
    if (p.input(k).rank() > y.rank()) return no("an operand has more dimensions than the result");
    inputs.push_back(p.input(k));
    pointers.push_back(Operand::In(k));
    if (!FindType(p.input(k), &args.input_types[k])) return no("an operand of another type");
    if (SameDims(p.input(k), y) && p.input(k).bytes() == y.bytes() &&
        (layout == Layout::kPlain || !p.input(k).is_constant()))
      in_place_.push_back({static_cast<uint32_t>(OutputOf(p, 0, p.node_count() - 1)), static_cast<uint32_t>(k)});
  }
  pointers.resize(kMaxChainInputs, Operand::Null());
  pointers.push_back(Operand::Out(OutputOf(p, 0, p.node_count() - 1)));
  FindType(y, &args.output_type);
  for (int i = 0; i + 1 < p.node_count(); ++i) {
    const int output = OutputOf(p, 0, i);
    if (output < 0) continue;
    FindType(p.output(output), &args.extra_types[args.extra_count]);
    args.extra_steps[args.extra_count++] = i;
    pointers.push_back(Operand::Out(output));
  }
  pointers.resize(kMaxChainInputs + 1 + kMaxChainExtras, Operand::Null());
  Broadcast b = BroadcastTo(y.dims(), inputs, layout);
  if (!b.plain()) args.walk.rank = static_cast<int32_t>(b.dims.size());
  for (size_t d = 0; d < b.dims.size(); ++d) args.walk.dims[d] = b.dims[d];
  for (size_t k = 0; k < inputs.size(); ++k) {
    args.steps_of[k] = b.step(k);
    for (size_t d = 0; d < b.dims.size(); ++d) args.strides[k][d] = b.strides[k][d];
  }
  recipe->Add("chain_f32", Spread(args.n), args, std::span<const Operand>(pointers));
  return {};
}

namespace {

// Returns the values between the nodes of a chain that other nodes read too, or the graph as outputs.
std::vector<int32_t> ExtrasOf(const Pattern& pattern, std::span<const int32_t> nodes) {
  std::vector<int32_t> extras;
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    const int32_t value = pattern.node(nodes[i]).output_id(0);
    uint32_t inside = 0;
    for (int32_t reader : nodes) {
      for (int k = 0; k < pattern.node(reader).input_count(); ++k) inside += pattern.node(reader).input_id(k) == value;
    }
    if (pattern.graph().value(value).uses() > inside) extras.push_back(value);
  }
  return extras;
}

// Returns the first consumer of node i that a chain can contain, or -1.
int NextInChain(const Pattern& pattern, int i) {
  const int32_t value = pattern.node(i).output_id(0);
  const Value y = pattern.node(i).output(0);
  for (int j = i + 1; j < pattern.graph().node_count(); ++j) {
    const Node n = pattern.node(j);
    for (int k = 0; k < n.input_count(); ++k) {
      if (n.input_id(k) == value && Fits(n) && SameDims(n.output(0), y)) return j;
    }
  }
  return -1;
}

// Offers the longest chain from node `first` in which values may have several readers, in the chain or outside.
void OfferWithExtras(const Pattern& pattern, int first, ClaimList& claims) {
  std::vector<int32_t> nodes = {first}, inputs, extras;
  auto outside = [&](int i, std::vector<int32_t> all) {
    const Node n = pattern.node(i);
    for (int k = 0; k < n.input_count(); ++k) {
      auto made = [&](int32_t before) { return before != i && pattern.node(before).output_id(0) == n.input_id(k); };
      if (std::ranges::any_of(nodes, made) || std::ranges::find(all, n.input_id(k)) != all.end()) continue;
      all.push_back(n.input_id(k));
    }
    return all;
  };
  inputs = outside(first, {});
  if (inputs.size() > kMaxChainInputs) return;
  for (int i = NextInChain(pattern, first); i >= 0 && nodes.size() < kMaxChainSteps; i = NextInChain(pattern, i)) {
    std::vector<int32_t> more = outside(i, inputs);
    nodes.push_back(i);
    std::vector<int32_t> kept = ExtrasOf(pattern, nodes);
    if (more.size() > kMaxChainInputs || kept.size() > kMaxChainExtras) {
      nodes.pop_back();
      break;
    }
    inputs = std::move(more);
    extras = std::move(kept);
  }
  if (nodes.size() < 2) return;
  // Saves the reads of values between the nodes, the writes of those that only the chain reads, and all launches but one.
  const double bytes = static_cast<double>(pattern.node(first).output(0).bytes());
  const double links = static_cast<double>(nodes.size() - 1);
  claims.Offer(
      "elementwise_chain", nodes,
      links * GpuUs(kAverageRoofs, 2 * bytes) - static_cast<double>(extras.size()) * bytes / kAverageRoofs.bytes_per_us,
      extras);
}

}  // namespace

void OfferChains(const Pattern& pattern, ClaimList& claims) {
  int count = pattern.graph().node_count();
  std::vector<bool> taken(static_cast<size_t>(count), false);
  for (int first = 0; first < count; ++first) {
    if (taken[static_cast<size_t>(first)] || !Fits(pattern.node(first))) continue;
    Value y = pattern.node(first).output(0);
    std::vector<int32_t> nodes, inputs;
    for (int i = first; i >= 0 && Fits(pattern.node(i)) && SameDims(pattern.node(i).output(0), y); i = pattern.Next(i)) {
      Node n = pattern.node(i);
      std::vector<int32_t> more = inputs;
      for (int k = 0; k < n.input_count(); ++k) {
        bool before = !nodes.empty() && n.input_id(k) == pattern.node(nodes.back()).output_id(0);
        if (!before && std::ranges::find(more, n.input_id(k)) == more.end()) more.push_back(n.input_id(k));
      }
      if (more.size() > kMaxChainInputs || nodes.size() == kMaxChainSteps) break;
      inputs = std::move(more);
      nodes.push_back(i);
      taken[static_cast<size_t>(i)] = true;
    }
    if (pattern.node(nodes.back()).output(0).uses() > 1) OfferWithExtras(pattern, first, claims);
    if (nodes.size() < 2) continue;
    // Saves writing and reading the values between the nodes, and all launches but one.
    double bytes = 2.0 * static_cast<double>(y.bytes());
    claims.Offer("elementwise_chain", nodes, static_cast<double>(nodes.size() - 1) * GpuUs(kAverageRoofs, bytes));
    // Offers the rest of the chain in case another fusion takes its first nodes.
    for (size_t k = 1; k <= 3 && k + 2 <= nodes.size(); ++k) {
      claims.Offer("elementwise_chain", std::span(nodes).subspan(k),
                   static_cast<double>(nodes.size() - 1 - k) * GpuUs(kAverageRoofs, bytes));
    }
  }
}

}  // namespace mge::gpu
