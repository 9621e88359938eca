// SPDX-License-Identifier: Apache-2.0
// The graph: nodes that compute values. Every value has one producer (a node, the caller, or a constant).
//
// Values and nodes are named by index. Removing one leaves a hole until Compact(); ids never change before.
// A body of a control-flow operator is a Graph of its own. What it uses of the graph around it is listed in
// the owning node's `captures` and appears in the body as inputs marked kCapture, after its formal inputs. A node
// with several bodies lists the captures of its first body, then those of the next. Constants are not captured by
// the reader but repeated in the body (the bytes are shared). A body's output may be one of its inputs, a capture
// or a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/attribute.h"

namespace mge {

struct OpDef;  // core/ops/op.h

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;  // an optional input or output that is absent; no producer

// Type of a value. dims holds -1 where a size is unknown; symbols (if not empty) names such dimensions.
struct TensorType {
  DType dtype = DType::kUndefined;
  bool has_rank = false;
  Shape dims = {};
  std::vector<std::string> symbols = {};

  bool IsStatic() const { return dtype != DType::kUndefined && has_rank && mge::IsStatic(dims); }
  std::string ToString() const;  // "float32[1,3,?,?]"
};

// All that is known of a value before a run. `type` is that of the elements where kind is a sequence or optional.
struct ValueType {
  TensorType type;
  ValueKind kind = ValueKind::kTensor;
};

enum class Role {
  kTemporary,  // computed by a node
  kInput,      // given by the caller of the graph
  kCapture,    // body only: given by the graph around it
  kConstant,   // known now
  kState,      // parameters and optimizer state: lives between runs (training)
};

struct Value {
  std::string name = {};
  ValueKind kind = ValueKind::kTensor;
  TensorType type = {};
  Role role = Role::kTemporary;
  NodeId producer = kNone;
  Tensor constant = {};  // role kConstant
  bool dead = false;
};

struct Node {
  std::string op = {};      // "Conv"
  std::string domain = {};  // "" is ai.onnx; "mge" holds operators that rewrites make
  std::string name = {};    // from the model, or made up; unique for messages only
  int version = 0;     // the operator set of `domain` that the model imports; 0 means the newest form
  const OpDef* def = nullptr;
  std::vector<ValueId> inputs = {};  // kNone where an optional input is absent
  std::vector<ValueId> outputs = {};
  // What the bodies use of this graph, see above.
  std::vector<ValueId> captures = {};
  Attributes attrs = {};
  std::string device = {};  // annotation: where it must run; empty for no wish
  bool dead = false;
};

class Graph {
 public:
  std::string name;

  ValueId AddValue(Value value);
  ValueId AddInput(std::string name, TensorType type);
  ValueId AddConstant(std::string name, Tensor tensor);
  // Adds a node and marks it as the producer of its outputs.
  NodeId AddNode(Node node);
  // A fresh temporary with a name not yet in use.
  ValueId AddTemporary(std::string_view stem, TensorType type = {});

  Value& value(ValueId id) { return values_[id]; }
  const Value& value(ValueId id) const { return values_[id]; }
  Node& node(NodeId id) { return nodes_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  int32_t value_count() const { return static_cast<int32_t>(values_.size()); }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }

  std::vector<ValueId>& inputs() { return inputs_; }  // formal inputs, then captures
  const std::vector<ValueId>& inputs() const { return inputs_; }
  std::vector<ValueId>& outputs() { return outputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

  // Consumers of every value (nodes reading it as input or capture; a node once per use).
  std::vector<std::vector<NodeId>> Consumers() const;
  // Times a value is a graph output.
  int OutputUses(ValueId id) const;

  // Every use of `from` (inputs, captures, graph outputs) becomes `to`.
  void ReplaceUses(ValueId from, ValueId to);
  void RemoveNode(NodeId id);  // its outputs become dead

  // Live nodes so that producers come before consumers (stable in node order). kInvalidGraph names a cycle.
  absl::StatusOr<std::vector<NodeId>> TopologicalOrder() const;

  // Drops dead nodes and values, and sorts nodes topologically. Ids change.
  absl::Status Compact();

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::unordered_set<std::string> names_;  // names given so far, for AddTemporary
};

// "?" if nothing is known, "float32" without rank, "float32[1,N,?]" else; sequences and optionals named in front.
std::string TypeText(ValueKind kind, const TensorType& type);

// What both types say together; kInvalidGraph where they contradict each other. `where` names the value.
absl::StatusOr<TensorType> MergeTypes(const TensorType& declared, const TensorType& inferred, std::string_view where);

// What `body`, one of the node's bodies, captures: the k-th is given to the k-th of the body's capture inputs.
std::span<const ValueId> CapturesOf(const Node& node, const Graph& body);

// Structure only: ids in range, one producer each, no cycle, no dangling use. Bodies too.
absl::Status VerifyGraph(const Graph& graph);

// The text form, one node a line: `y = Conv(x, w) {strides=[1,1]} : float32[1,8,4,4]`. For tests and --why.
std::string GraphText(const Graph& graph);

// Reads the text form (see graph_parse.cc for the grammar). For tests.
absl::StatusOr<Graph> ParseGraphText(std::string_view text);

}  // namespace mge
