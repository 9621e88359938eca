// SPDX-License-Identifier: Apache-2.0
#include "support/epilogue.h"

#include <algorithm>
#include <limits>

#include "support/elementwise_ops.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

bool SameDims(const Value& a, const Value& b) { return std::ranges::equal(a.dims(), b.dims()); }

// Reads a constant of one element of float32 or a 16-bit type. Returns false for any other value.
bool Scalar(const Value& v, float* out) {
  if (!v.is_constant() || !v.is_static() || v.elements() != 1) return false;
  return DispatchTo<float, F16, BF16>(v.dtype(), [&]<typename T>(Tag<T>) { *out = Widen(v.data<T>()[0]); });
}

// Returns whether the value broadcasts along all dimensions of y except the channels.
bool IsPerChannel(const Value& v, const Value& y, ChannelAxis axis) {
  int channel = axis == ChannelAxis::kLast ? y.rank() - 1 : 1;
  if (v.rank() > y.rank()) return false;
  for (int i = 1; i <= v.rank(); ++i) {
    bool is_channel = y.rank() - i == channel;
    if (v.dim(-i) != (is_channel ? y.dim(channel) : 1)) return false;
  }
  return v.elements() == static_cast<uint64_t>(y.dim(channel));
}

bool AbsorbAdd(const Node& next, int32_t other, const Value& y, ChannelAxis axis, Epilogue& e) {
  Value v = next.input_id(0) == other ? next.input(0) : next.input(1);
  if (v.dtype() != y.dtype() || !v.is_static()) return false;
  if (e.bias < 0 && IsPerChannel(v, y, axis)) {
    e.bias = other;
  } else if (e.add < 0 && SameDims(v, y)) {
    e.add = other;
  } else {
    return false;
  }
  return true;
}

bool AbsorbActivation(const Node& next, Epilogue& e) {
  auto set = [&](Activation a, float lo, float hi) {
    e.activation = a;
    e.lo = lo;
    e.hi = hi;
    return true;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (next.Is("Relu")) return set(Activation::kClip, 0, kInfinity);
  if (next.Is("Sigmoid")) return set(Activation::kSigmoid, 0, 0);
  if (next.Is("Tanh")) return set(Activation::kTanh, 0, 0);
  if (next.Is("HardSwish")) return set(Activation::kHardSwish, 0, 0);
  if (next.Is("Swish") && next.Float("alpha") == 1.0f) return set(Activation::kSwish, 0, 0);
  if (next.Is("LeakyRelu")) return set(Activation::kLeakyRelu, next.Float("alpha"), 0);
  if (next.Is("Gelu")) {
    return set(next.Word("approximate") == "tanh" ? Activation::kGeluTanh : Activation::kGelu, 0, 0);
  }
  if (next.Is("Clip")) {
    float lo = -kInfinity, hi = kInfinity;
    if (next.has_input(1) && !Scalar(next.input(1), &lo)) return false;
    if (next.has_input(2) && !Scalar(next.input(2), &hi)) return false;
    return set(Activation::kClip, lo, hi);
  }
  return false;
}

// Adds the product x * Sigmoid(x) to an epilogue that already contains Sigmoid(x).
bool AbsorbSwish(const Node& next, Epilogue& e) {
  if (e.activation != Activation::kSigmoid || !next.Is("Mul") || HasOwnMeaning(next) || !next.has_output(0)) return false;
  int32_t a = next.input_id(0), b = next.input_id(1);
  if (!(a == e.linear && b == e.output) && !(a == e.output && b == e.linear)) return false;
  e.activation = Activation::kSwish;
  e.output = next.output_id(0);
  return true;
}

// Returns, for each value, the Sigmoid node that reads it, or -1.
std::vector<int32_t> SigmoidsOf(const Graph& graph) {
  std::vector<int32_t> found(graph.raw()->value_count, -1);
  for (int i = 0; i < graph.node_count(); ++i) {
    if (graph.node(i).Is("Sigmoid")) found[static_cast<size_t>(graph.node(i).input_id(0))] = i;
  }
  return found;
}

}  // namespace

bool Absorb(const Graph& graph, const Node& next, ChannelAxis axis, mge_dtype type, Epilogue& e) {
  if (AbsorbSwish(next, e)) return true;
  if (e.activation != Activation::kNone || HasOwnMeaning(next) || !next.has_output(0) || next.output_count() != 1)
    return false;
  Value x = graph.value(e.output), y = next.output(0);
  if (x.dtype() != type || y.dtype() != type || !y.is_static() || !SameDims(x, y)) return false;
  Epilogue grown = e;
  grown.output = next.output_id(0);
  bool fits = false;
  if (next.Is("Add") || next.Is("Mul") || next.Is("Div")) {
    bool left = next.input_id(0) == e.output;
    int32_t other = next.input_id(left ? 1 : 0);
    float factor = 0;
    if (other == e.output) return false;
    if (next.Is("Add")) {
      fits = AbsorbAdd(next, other, y, axis, grown);
    } else if (axis == ChannelAxis::kLast && e.bias < 0 && e.add < 0 && Scalar(graph.value(other), &factor) &&
               (left || next.Is("Mul"))) {
      grown.scale *= next.Is("Mul") ? factor : 1 / factor;
      fits = true;
    }
  } else {
    fits = next.input_id(0) == e.output && AbsorbActivation(next, grown);
    grown.linear = e.output;
  }
  if (fits) e = grown;
  return fits;
}

double ActivationUs(Activation activation, double elements, Isa isa) {
  auto us = [&](TileOp op) { return 1e-3 * TileOpNs(isa, op, MGE_DTYPE_F32) * elements; };
  switch (activation) {
    case Activation::kNone:
    case Activation::kClip: return 0;
    case Activation::kHardSwish: return us(TileOp::kHardSwish);
    case Activation::kLeakyRelu: return us(TileOp::kLeakyRelu);
    case Activation::kSigmoid: return us(TileOp::kSigmoid);
    case Activation::kSwish: return us(TileOp::kSwish);
    case Activation::kTanh: return us(TileOp::kTanh);
    case Activation::kGelu: return us(TileOp::kGelu);
    case Activation::kGeluTanh: return us(TileOp::kGeluTanh);
  }
  return 0;
}

Epilogue StartOf(const Node& product) {
  Epilogue e;
  e.output = product.output_id(0);
  if (product.has_input(2)) e.bias = kOwnOperand;
  if (product.has_input(2) && SameDims(product.input(2), product.output(0))) e.add = kOwnOperand;
  return e;
}

bool FindEpilogue(const Problem& p, ChannelAxis axis, Epilogue& e) {
  e = StartOf(p.node());
  for (int i = 1; i < p.node_count(); ++i) {
    if (!Absorb(p.graph(), p.node(i), axis, MGE_DTYPE_F32, e)) return false;
  }
  if (e.bias == kOwnOperand) e.bias = -1;
  if (e.add == kOwnOperand) e.add = -1;
  return p.output_count() == 1 && p.graph().raw()->outputs[0] == e.output;
}

void OfferEpilogues(const Pattern& pattern, ClaimList& claims, std::string_view name, std::span<const std::string_view> ops,
                    ChannelAxis axis, bool widened) {
  const std::vector<int32_t> sigmoids = SigmoidsOf(pattern.graph());
  for (int i = 0; i < pattern.graph().node_count(); ++i) {
    Node n = pattern.node(i);
    if (std::ranges::none_of(ops, [&](std::string_view op) { return n.Is(op); })) continue;
    if (!n.has_output(0) || !n.output(0).is_static() || HasOwnMeaning(n)) continue;
    const mge_dtype type = n.output(0).dtype();
    if ((type != MGE_DTYPE_F32 && !(widened && IsHalf(type))) || n.output(0).elements() == 0) continue;
    // The kernel of ConvTranspose reads the image and the addend in a layout of its own, but constants are always plain.
    const bool own_layout = n.Is("ConvTranspose");
    if (own_layout && n.input(0).is_constant()) continue;
    Epilogue e = StartOf(n);
    std::vector<int32_t> nodes = {i};
    // A claim saves a step, and writing and reading the product. The factor makes it win over a chain of only the
    // elementwise nodes.
    const double each = 1.2 * (0.1 + StreamUs(2.0 * static_cast<double>(n.output(0).bytes())));
    double saved = 0;
    // Claims x * Sigmoid(x), where both nodes read the group's result.
    auto swish = [&]() {
      int s = pattern.graph().value(e.output).uses() == 2 ? sigmoids[static_cast<size_t>(e.output)] : -1;
      int product = s >= 0 ? pattern.Next(s) : -1;
      if (product < 0 || !Absorb(pattern.graph(), pattern.node(s), axis, type, e) || !AbsorbSwish(pattern.node(product), e))
        return;
      nodes.insert(nodes.end(), {s, product});
      claims.Offer(name, nodes, saved + 3 * each);
    };
    for (int next = pattern.Next(i); next >= 0; next = pattern.Next(next)) {
      if (!Absorb(pattern.graph(), pattern.node(next), axis, type, e)) break;
      if (own_layout && e.add >= 0 && e.add != kOwnOperand && pattern.graph().value(e.add).is_constant()) break;
      nodes.push_back(next);
      saved += each;
      claims.Offer(name, nodes, saved);
    }
    swish();
  }
}

}  // namespace mge::cpu
