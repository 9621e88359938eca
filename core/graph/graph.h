// SPDX-License-Identifier: Apache-2.0
// The graph: nodes that compute values. A value has one producer, or it is an input or a constant.
//
// The ids of values and nodes are indices. A removed value or node stays as a dead entry until Compact(); only
// Compact() changes ids.
//
// A body of a control-flow operator is a Graph. The values of the outer graph that it uses (its captures) are listed
// in the owning node's `captures`. In the body they are inputs with the role kCapture, after the formal inputs. A
// node with several bodies lists the captures of the first body, then those of the next. The ONNX reader does not
// capture constants; it copies them into the body (the bytes are shared). A body's output may be one of its inputs,
// a capture or a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/tensor.h"
#include "core/graph/attribute.h"

namespace mge {

struct OpDef;  // core/ops/op.h

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;  // no value (an absent optional input or output), or no producer

// The type of a tensor. `dims` has kUnknownDim for an unknown size; `symbols`, if not empty, has the names of such sizes.
struct TensorType {
  DType dtype = DType::kUndefined;
  bool has_rank = false;
  Shape dims = {};
  std::vector<std::string> symbols = {};

  bool IsStatic() const { return dtype != DType::kUndefined && has_rank && mge::IsStatic(dims); }
  std::string ToString() const;  // "float32[1,3,?,?]"
};

// The type of a value. For a sequence or optional, `type` is the type of its elements; for a map, of its
// values. The type of a map's keys is known only at run time.
struct ValueType {
  TensorType type;
  ValueKind kind = ValueKind::kTensor;
};

enum class Role {
  kTemporary,  // computed by a node
  kInput,      // passed by the caller of the graph
  kCapture,    // only in a body: passed by the outer graph
  kConstant,   // known before the run
  kState,      // parameters and optimizer state, which persist between runs (training)
};

struct Value {
  std::string name = {};
  ValueKind kind = ValueKind::kTensor;
  TensorType type = {};
  Role role = Role::kTemporary;
  NodeId producer = kNone;
  Tensor constant = {};  // for the role kConstant
  bool dead = false;
};

struct Node {
  std::string op = {};               // "Conv"
  std::string domain = {};           // "" is ai.onnx; "mge" has the operators that rewrites create
  std::string name = {};             // from the model or generated; for messages only
  int version = 0;                   // the version of `domain` that the model imports; 0 means the newest version
  const OpDef* def = nullptr;        // not owned
  std::vector<ValueId> inputs = {};  // kNone where an optional input is absent
  std::vector<ValueId> outputs = {};
  // Values of this graph that the bodies use, see above.
  std::vector<ValueId> captures = {};
  Attributes attrs = {};
  std::string device = {};  // the device on which the node should run; empty for any
  // It computes again what an equal node computes, so that its result need not be kept in between. The two are not merged.
  bool recomputed = false;
  bool dead = false;
};

class Graph {
 public:
  std::string name;

  ValueId AddValue(Value value);
  ValueId AddInput(std::string name, TensorType type);
  ValueId AddConstant(std::string name, Tensor tensor);
  // Adds a node and makes it the producer of its outputs.
  NodeId AddNode(Node node);
  // Adds a temporary with an unused name that begins with `stem`.
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

  // Returns, for each value, the nodes that read it as an input or capture. A node is listed once per use.
  std::vector<std::vector<NodeId>> Consumers() const;
  // Returns how often the value is listed as a graph output.
  int OutputUses(ValueId id) const;
  // Returns true if test(node) is true for a live node that reads the value as an input or capture. May visit a node twice.
  bool AnyReader(ValueId value, absl::FunctionRef<bool(NodeId)> test) const;
  // Returns the first value that was added with this name, or kNone.
  ValueId FindValue(const std::string& name) const;

  // Creates the index of readers and outputs, without which AnyReader(), OutputUses() and ReplaceUses() visit all nodes. As
  // long as it exists, a caller that changes the inputs of a node itself must call Reindex(). The caller must not change
  // outputs(). DropIndex() destroys it, and returns false if it lacks a use.
  void CreateIndex();
  void Reindex(NodeId id);
  bool DropIndex();

  // Replaces every use of `from` (in inputs, captures and graph outputs) by `to`.
  void ReplaceUses(ValueId from, ValueId to);
  // Marks the node and its outputs as dead.
  void RemoveNode(NodeId id);

  // Returns the live nodes, producers before consumers, otherwise in the order of their ids. Fails with kInvalidGraph, which
  // describes the cycle, if there is one.
  absl::StatusOr<std::vector<NodeId>> TopologicalOrder() const;

  // Removes dead nodes and values, and sorts the nodes topologically. Changes ids. Fails like TopologicalOrder().
  absl::Status Compact();

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::unordered_map<std::string, ValueId> names_;  // the first value of each name

  struct Index {
    std::vector<std::vector<NodeId>> readers;  // by value: at least the nodes that read it
    std::vector<int> outputs;                  // by value: how often it is an output
  };
  std::optional<Index> index_;
};

// Returns "?" if nothing is known, "float32" if the rank is unknown, else text such as "float32[1,N,?]". The prefix is
// "seq ", "optional ", "optional seq ", "map " or "seq map " for other kinds than tensors.
std::string TypeText(ValueKind kind, const TensorType& type);

// Returns the combined information of both types. Fails with kInvalidGraph if they contradict each other. `where` is the
// value's name for the message.
absl::StatusOr<TensorType> MergeTypes(const TensorType& declared, const TensorType& inferred, std::string_view where);

// Returns the part of the node's `captures` that belongs to `body`, one of its bodies. The k-th value is passed to the k-th
// capture input of the body.
std::span<const ValueId> CapturesOf(const Node& node, const Graph& body);

// Checks the structure of a graph and of its bodies: ids in range, one producer per value, no cycle, no use of a removed
// value. Does not check operators or types. Fails with kInvalidGraph.
absl::Status VerifyGraph(const Graph& graph);

// Returns the text form, one node per line: `y = Conv(x, w) {strides=[1,1]} : float32[1,8,4,4]`. For tests and --why.
std::string GraphText(const Graph& graph);

// Parses the text form (see graph_parse.cc for the grammar). For tests. Fails with kInvalidGraph.
absl::StatusOr<Graph> ParseGraphText(std::string_view text);

}  // namespace mge
