// SPDX-License-Identifier: Apache-2.0
// Reads RNN, GRU, LSTM and DynamicQuantizeLSTM nodes: sizes, operands, flags and activations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mge/plugin/gate.hpp"
#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// The sizes, flags, activations and operands of a recurrent node.
struct Recurrence {
  enum class Kind : int32_t { kRnn, kGru, kLstm };
  Kind kind = Kind::kRnn;
  int gates = 1;             // matrices in W and R
  bool quantized = false;    // DynamicQuantizeLSTM: W is [directions, input, gates * hidden], R likewise
  bool batch_first = false;  // attribute layout = 1
  bool reverse = false;      // direction 0 runs backwards; direction 1 always does
  bool input_forget = false, linear_before_reset = false;
  float clip = std::numeric_limits<float>::infinity();  // limit for the inputs of activations
  int64_t directions = 1, steps = 0, batch = 0, input = 0, hidden = 0;
  GateActivation f[2][3];  // [direction][in the operator's order]
  // Operand numbers in the problem; -1 if absent.
  int x = -1, w = -1, r = -1, b = -1, lengths = -1, h = -1, c = -1, p = -1;
  int y = -1, y_h = -1, y_c = -1;

  // Strides in elements between steps, sequences (rows) and directions of X, Y and the states.
  int64_t x_step() const { return (batch_first ? 1 : batch) * input; }
  int64_t x_row() const { return (batch_first ? steps : 1) * input; }
  int64_t y_step() const { return (batch_first ? directions : directions * batch) * hidden; }
  int64_t y_row() const { return (batch_first ? steps * directions : 1) * hidden; }
  int64_t y_direction() const { return (batch_first ? 1 : batch) * hidden; }
  int64_t state_row() const { return (batch_first ? directions : 1) * hidden; }
  int64_t state_direction() const { return (batch_first ? 1 : batch) * hidden; }
};

namespace internal {

inline std::span<const float> FloatsOf(const Node& n, std::string_view name) {
  const mge_attr* a = n.attr(name);
  return a && a->type == MGE_ATTR_FLOATS ? std::span<const float>(a->floats, a->count) : std::span<const float>();
}

// Returns the words of a list attribute. The host passes the list as one text, separated by commas.
inline std::vector<std::string_view> WordsOf(const Node& n, std::string_view name) {
  std::vector<std::string_view> words;
  for (std::string_view left = n.Word(name); !left.empty();) {
    const size_t comma = left.find(',');
    words.push_back(left.substr(0, comma));
    left.remove_prefix(comma == left.npos ? left.size() : comma + 1);
  }
  return words;
}

// Returns the operand number of output k of the problem's node, or -1 if it is absent.
inline int OutputOperand(const Problem& p, int k) {
  const int32_t id = p.node().output_id(k);
  for (int o = 0; id >= 0 && o < p.output_count(); ++o) {
    if (p.raw()->graph->outputs[o] == id) return o;
  }
  return -1;
}

// Reads the activations, which the host has completed: their names in lower case, and the values of activation_alpha and
// activation_beta for the functions that have such a parameter, in order.
inline Result ReadGates(const Node& n, size_t each, Recurrence* out) {
  const std::vector<std::string_view> names = WordsOf(n, "activations");
  const std::span<const float> alphas = FloatsOf(n, "activation_alpha"), betas = FloatsOf(n, "activation_beta");
  if (names.size() != each * static_cast<size_t>(out->directions)) {
    return {MGE_UNIMPLEMENTED, std::to_string(names.size()) + " activations; the node needs " +
                                   std::to_string(each * static_cast<size_t>(out->directions))};
  }
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto* row = std::ranges::find_if(kGateFunctions, [&](const auto& r) { return names[i] == r.name; });
    if (row == std::end(kGateFunctions)) return {MGE_UNIMPLEMENTED, "no kernel for the activation " + std::string(names[i])};
    GateActivation& f = out->f[i / each][i % each];
    f.function = static_cast<GateFunction>(row - kGateFunctions);
    if (row->takes_alpha && alpha < alphas.size()) f.alpha = alphas[alpha++];
    if (row->takes_beta && beta < betas.size()) f.beta = betas[beta++];
  }
  return {};
}

}  // namespace internal

// Reads the node of a problem with static shapes. Fails with MGE_UNIMPLEMENTED if an activation is unknown.
inline Result FindRecurrence(const Problem& p, Recurrence* out) {
  using Kind = Recurrence::Kind;
  const Node n = p.node();
  Recurrence& r = *out;
  r.quantized = n.op() == "DynamicQuantizeLSTM";
  r.kind = n.op() == "GRU" ? Kind::kGru : n.op() == "RNN" ? Kind::kRnn : Kind::kLstm;
  r.gates = r.kind == Kind::kLstm ? 4 : r.kind == Kind::kGru ? 3 : 1;
  r.batch_first = n.Int("layout") == 1;
  std::string_view direction = n.Word("direction");
  r.reverse = direction == "reverse";
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.input_forget = n.Int("input_forget") != 0;
  r.linear_before_reset = n.Int("linear_before_reset") != 0;
  r.clip = n.Float("clip", r.clip);
  const Value x = n.input(0);
  r.steps = x.dim(r.batch_first ? 1 : 0);
  r.batch = x.dim(r.batch_first ? 0 : 1);
  r.input = x.dim(2);
  r.hidden = n.input(2).dim(r.quantized ? 1 : 2);
  int* const inputs[] = {&r.x, &r.w, &r.r, &r.b, &r.lengths, &r.h, &r.c, &r.p};
  for (int k = 0; k < (r.kind == Kind::kLstm ? 8 : 6); ++k) *inputs[k] = n.has_input(k) ? p.operand(0, k) : -1;
  r.y = internal::OutputOperand(p, 0);
  r.y_h = internal::OutputOperand(p, 1);
  r.y_c = r.kind == Kind::kLstm ? internal::OutputOperand(p, 2) : -1;
  return internal::ReadGates(n, r.kind == Kind::kLstm ? 3 : r.kind == Kind::kGru ? 2 : 1, out);
}

}  // namespace MGE_HIDDEN
