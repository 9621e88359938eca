// SPDX-License-Identifier: Apache-2.0
// Replacements of values by a pass. One walk over the graph per replacement would take quadratic time, so Finish() updates
// all nodes in one walk. A pass that visits nodes in topological order calls Update() for each node that it visits.
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace mge {

// The replacements of one pass. The graph must outlive this object.
class Replacements {
 public:
  explicit Replacements(Graph& graph);

  // Returns true if the value is an output of the graph.
  bool GivenOut(ValueId v) const { return given_out_[v]; }
  // Replaces `from` by `to`. `from` must have been in the graph when this object was created.
  void Replace(ValueId from, ValueId to) { stand_ins_[from] = Resolve(to); }
  // Returns the replacement of `v`, or `v` itself if it was not replaced. Returns kNone for kNone.
  ValueId Resolve(ValueId v) const;
  // Removes a node and replaces its output 0 by `with`. Returns false and changes nothing if that output is an output of the
  // graph.
  bool Bypass(NodeId id, ValueId with);
  // Replaces the inputs and captures of a node.
  void Update(Node& node) const;
  // Updates all nodes and the graph's outputs. The pass must call it at its end.
  void Finish();

 private:
  Graph& graph_;
  std::vector<bool> given_out_;
  std::vector<ValueId> stand_ins_;  // replacement of each value; kNone if there is none
};

}  // namespace mge
