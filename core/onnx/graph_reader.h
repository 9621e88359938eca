// SPDX-License-Identifier: Apache-2.0
// Turns GraphProto into Graph: names become ids, functions are inlined, bodies get their captures.
//
// Two kinds of nesting meet here. A *frame* is a Graph under construction: the main graph, or a
// body within it. A *scope* is a set of names: that of a graph, or that of an inlined function,
// which lives in its caller's frame. A name is looked up from scope to scope; where it is found in
// an outer frame, it is captured frame by frame.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/onnx/fields.h"
#include "core/onnx/reader.h"
#include "core/onnx/tensor_proto.h"
#include "core/onnx/type_proto.h"
#include "core/onnx/wire.h"

namespace mge::onnx {

using Opsets = std::unordered_map<std::string, int64_t>;  // version by domain

// A model-local function: what a call needs, its nodes not decoded yet.
struct Function {
  std::string_view domain, name, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attributes;                  // those without a default
  std::vector<std::pair<std::string_view, Bytes>> defaults;  // AttributeProto by name
  std::vector<Bytes> nodes;
  Opsets opsets;

  static std::string Key(std::string_view domain, std::string_view name, std::string_view overload);
  std::string Title() const;  // "domain.name"
};
using Functions = std::unordered_map<std::string, Function>;  // by Key

// What a model file holds beside its graph.
struct ModelContext {
  const WireSource& source;
  const TensorDecoder& tensors;
  const Functions& functions;
  const Opsets& opsets;
  const ReadOptions& options;
};

class GraphReader {
 public:
  GraphReader(const ModelContext& model, ModelInfo& info) : model_(model), info_(info) {}

  // The main graph, well-formed, bound and in topological order; sets inputs, outputs and
  // fixed_inputs of the info.
  absl::StatusOr<Graph> ReadMain(Bytes graph);

 private:
  struct Frame {
    Graph graph;
    std::vector<ValueId> captures;                // ids in the frame around it
    std::unordered_map<ValueId, ValueId> inner;  // id in the frame around it -> id here
    std::unordered_map<std::string, int>
        names;  // of values, and the suffix to try next for an equal one
  };
  struct Scope;
  struct Call {  // a function being inlined
    const Function& function;
    const Scope& site;                                           // of the calling node
    std::vector<std::pair<std::string_view, Bytes>> attributes;  // AttributeProto by name
    std::string prefix;                                          // of names
    std::string device;
  };
  struct Scope {
    int frame = 0;
    const Scope* parent = nullptr;  // null for the main graph and for functions
    const Call* call = nullptr;     // the function that this is in
    std::unordered_map<std::string_view, ValueId> names;
  };
  struct NodeParts {
    std::string_view op, domain, overload;
    std::string name, device;
    std::vector<std::string_view> inputs, outputs;
    std::vector<Bytes> attributes;
  };
  struct GraphParts {
    std::string_view name;
    std::vector<Bytes> nodes, initializers, sparse_initializers, inputs, outputs;
  };
  // The head of an AttributeProto and where its value is.
  struct AttributeHead;
  struct Body {
    std::string attribute;
    Frame frame;
  };

  // graph_reader.cc
  absl::StatusOr<GraphParts> Split(Bytes graph) const;
  absl::Status ReadGraph(Bytes graph, Scope& scope, bool is_main);
  absl::Status TooLittleMemory(absl::Status refused, std::span<const Bytes> weights) const;
  absl::Status ReadInitializers(const GraphParts& parts, Scope& scope);
  absl::Status ReadInputs(const GraphParts& parts, Scope& scope, bool is_main);
  absl::Status ReadOutputs(const GraphParts& parts, const Scope& scope, bool is_main);
  absl::Status DeclareOutputs(const std::vector<Bytes>& nodes, Scope& scope);
  absl::StatusOr<NodeParts> ReadNodeParts(Bytes node, const Scope& scope);
  absl::Status ReadNode(Bytes bytes, const Scope& scope);
  absl::Status DefinedTwice(const std::vector<Bytes>& nodes, std::string_view name) const;

  // scope.cc
  absl::StatusOr<ValueId> NewValue(int frame, std::string_view name, Value value);
  static std::string UniqueName(Frame& frame, std::string_view name);
  // The innermost definition of a name: {frame, id}; frame is -1 if there is none.
  std::pair<int, ValueId> Find(const Scope* scope, std::string_view name) const;
  // The value as an id of the top frame, captured as needed. kNone for "" and for absent function
  // inputs.
  absl::StatusOr<ValueId> Use(const Scope& scope, std::string_view name, std::string_view user);
  absl::StatusOr<ValueId> Capture(int frame, ValueId outer);
  absl::Status CountExpansion(int64_t bytes);

  // attributes.cc
  absl::StatusOr<std::string_view> AttributeName(Bytes attribute) const;
  absl::StatusOr<AttributeHead> ReadAttributeHead(Bytes attribute) const;
  absl::Status ReadAttribute(Bytes attribute, const Scope& scope, Node& node,
                             std::vector<Body>& bodies);
  absl::StatusOr<AttributeValue> ReadAttributeValue(const AttributeHead& head) const;
  absl::StatusOr<Body> ReadBody(Bytes graph, const Scope& scope, std::string_view attribute);
  // Lists the bodies' captures as their last inputs and in the node, and gives the node its bodies.
  absl::Status FinishBodies(std::vector<Body> bodies, Node& node);

  // functions.cc
  absl::Status Inline(const Function& function, NodeParts node, const Scope& scope);
  absl::Status BindCall(const Call& call, const NodeParts& node, Scope& scope);

  absl::Status Invalid(std::string title, std::string what = {}) const;

  const ModelContext& model_;
  ModelInfo& info_;
  std::vector<Frame> frames_;  // the main graph, then bodies; the last one is being built
  int depth_ = 0;              // of bodies and functions
  int64_t nodes_ = 0;
  int64_t values_ = 0;
  int64_t expansions_ = 0;
  int64_t expanded_bytes_ = 0;
};

// Reads OperatorSetIdProto into `opsets`. kUnsupportedVersion, kMalformedModel.
absl::Status ReadOpsetImport(const WireSource& source, Bytes message, Opsets& opsets);

absl::StatusOr<Function> ReadFunction(const WireSource& source, Bytes message);

// Calls visit(name) for each result of a NodeProto that has a name, until that fails.
template <typename Visit>
absl::Status ForEachOutput(const WireSource& source, Bytes node, Visit visit) {
  WireReader reader(source, "NodeProto", node);
  while (reader.Next()) {
    if (reader.field() != field::node::kOutput) {
      reader.Skip();
    } else if (std::string_view name = reader.Text(); !name.empty()) {
      MGE_RETURN_IF_ERROR(visit(name));
    }
  }
  return reader.status();
}

// "" for "ai.onnx".
inline std::string_view PlainDomain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

}  // namespace mge::onnx
