// SPDX-License-Identifier: Apache-2.0
// Kernel rows for operators that are lists of copies. Each needs one function from a problem to its copies.
#pragma once

#include <string>
#include <vector>

#include "support/kernel.h"
#include "support/move.h"

namespace mge::cpu {

// Collects the copies of one node. With channels last, all data operands have that layout.
class MoveBuild {
 public:
  MoveBuild(const Problem& p, Isa isa, bool channels_last) : p_(p), isa_(isa), last_(channels_last) {}

  const Problem& problem() const { return p_; }
  Node node() const { return p_.node(); }
  bool channels_last() const { return last_; }

  // Return the strides of the node's input k (a data operand) or output k in the chosen layout.
  std::vector<int64_t> InputStrides(int k) const {
    return StridesIn(node().input(k).dims(), last_ && !node().input(k).is_constant());
  }
  std::vector<int64_t> OutputStrides(int k = 0) const { return StridesIn(node().output(k).dims(), last_); }

  // Return operand numbers of the problem.
  int Input(int k) const { return p_.operand(node().input_id(k)); }
  int Output(int k = 0) const {
    for (int o = 0; o < p_.output_count(); ++o) {
      if (p_.raw()->graph->outputs[o] == node().output_id(k)) return o;
    }
    return -1;
  }
  bool Add(const Copy& copy) { return moves_.Add(copy, SizeOf(node().output(0).dtype()), isa_); }
  Moves& moves() { return moves_; }

 private:
  const Problem& p_;
  Isa isa_;
  bool last_;
  Moves moves_;
};

inline Result Refusal(std::string why) { return {MGE_UNIMPLEMENTED, std::move(why)}; }
inline Result TooManyDimensions() { return Refusal("too many dimensions"); }

// An operator that is a list of copies.
struct MoveRule {
  const char* id;
  Result (*build)(MoveBuild&);
  bool channels_last = false;  // also offered with channels last; every data operand has the output's rank
  int data_inputs = 1;         // number of leading inputs that are data; -1: all
  bool in_place = false;       // the output has the bytes of the first input
};

// The row of a rule.
template <const MoveRule& Rule>
struct MoveRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Isa isa = AllowedIsa();
    int rank = p.node().output(0).rank();
    for (bool last : {false, true}) {
      if (last && (!Rule.channels_last || rank < 3 || rank > 5)) continue;
      MoveBuild build(p, isa, last);
      if (Result r = Rule.build(build); !r.ok()) {
        offers.Refuse(r.text());
        continue;
      }
      Candidate c = {.id = std::string(Rule.id) + (last ? ".nhwc" : ""),
                     .attributes = kExact,
                     .cost_us = RunUs(p, build.moves().serial_us()),
                     .variant = last ? 1u : 0u};
      if (last) {
        c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
        int data = Rule.data_inputs < 0 ? p.node().input_count() : Rule.data_inputs;
        for (int k = 0; k < data; ++k) {
          if (!p.node().input(k).is_constant()) c.inputs[static_cast<size_t>(build.Input(k))] = ChannelsLast(rank);
        }
        c.outputs.assign(static_cast<size_t>(p.output_count()), ChannelsLast(rank));
      }
      if (Rule.in_place) c.in_place.push_back({0, static_cast<uint32_t>(build.Input(0))});
      Add(offers, isa, std::move(c));
    }
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    MoveBuild build(p, IsaOf(c), KindOf(c) == 1);
    if (!Rule.build(build).ok()) return nullptr;
    return std::move(build.moves()).MakeKernel();
  }
};

}  // namespace mge::cpu
