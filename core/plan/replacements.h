// SPDX-License-Identifier: Apache-2.0
// Values that a pass puts in place of others. A walk over the graph for each of them would make a pass quadratic, so
// there is one at the end; a pass that visits nodes in topological order updates each node as it comes to it.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace mge {

class Replacements {
 public:
  explicit Replacements(Graph& graph);

  // Whether the graph gives the value to its caller.
  bool GivenOut(ValueId v) const { return given_out_[v]; }
  // From now on `to` stands for `from`, a value that the graph had when this object was made.
  void Replace(ValueId from, ValueId to) { stand_ins_[from] = Resolve(to); }
  // What stands for the value now: itself, if nothing does. kNone for kNone.
  ValueId Resolve(ValueId v) const;
  // Makes a node read what stands for its inputs and captures.
  void Update(Node& node) const;
  // Does that to all nodes, and to the graph's outputs.
  void Finish();

 private:
  Graph& graph_;
  std::vector<bool> given_out_;
  std::vector<ValueId> stand_ins_;  // by value; kNone where there is none
};

}  // namespace mge
