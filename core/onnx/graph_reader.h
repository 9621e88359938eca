// SPDX-License-Identifier: Apache-2.0
// Converts a GraphProto into a Graph: replaces names by ids, inlines functions, and adds the captures of bodies.
//
// There are two kinds of nesting. A *frame* is a Graph under construction: the main graph or a body.
// A *scope* is a set of names: those of a graph, or those of an inlined function, whose values are in
// its caller's frame. A name is looked up in the innermost scope first. If it is found in an outer
// frame, every frame between captures the value.
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

using Opsets = std::unordered_map<std::string, int64_t>;  // domain -> version

// A model-local function. Its nodes are decoded at each call.
struct Function {
  std::string_view domain, name, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attributes;                  // names of the attributes without a default
  std::vector<std::pair<std::string_view, Bytes>> defaults;  // name and AttributeProto of the others
  std::vector<Bytes> nodes;
  Opsets opsets;

  static std::string Key(std::string_view domain, std::string_view name, std::string_view overload);
  std::string Title() const;  // "domain.name"
};
using Functions = std::unordered_map<std::string, Function>;  // by Function::Key()

// The parts of a model file that reading its graph needs. All members must outlive the reader.
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

  // Reads the main graph. The result is well-formed, bound and in topological order. Sets `inputs`, `outputs` and
  // `fixed_inputs` of the info. May be called once.
  absl::StatusOr<Graph> ReadMain(Bytes graph);

 private:
  struct Frame {
    Graph graph;
    std::vector<ValueId> captures;               // ids in the outer frame
    std::unordered_map<ValueId, ValueId> inner;  // id in the outer frame -> id in this frame
    std::unordered_map<std::string, int> names;  // names of values -> suffix that UniqueName tries next
  };
  struct Scope;
  struct Call {  // a function that is being inlined
    const Function& function;
    const Scope& site;                                           // the scope of the calling node
    std::vector<std::pair<std::string_view, Bytes>> attributes;  // name and AttributeProto
    std::string prefix;                                          // prefix of the names of inlined nodes
    std::string device;                                          // device of inlined nodes that name none
  };
  struct Scope {
    int frame = 0;                  // index in frames_
    const Scope* parent = nullptr;  // null for the main graph and for functions
    const Call* call = nullptr;     // the function that contains the scope; null outside of functions
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
  absl::Status WidenWeights(Graph& graph) const;
  absl::Status ReadInputs(const GraphParts& parts, Scope& scope, bool is_main);
  absl::Status ReadOutputs(const GraphParts& parts, const Scope& scope, bool is_main);
  absl::Status DeclareOutputs(const std::vector<Bytes>& nodes, Scope& scope);
  absl::StatusOr<NodeParts> ReadNodeParts(Bytes node, const Scope& scope);
  absl::Status ReadNode(Bytes bytes, const Scope& scope);
  absl::Status DefinedTwice(const std::vector<Bytes>& nodes, std::string_view name) const;

  // scope.cc
  absl::StatusOr<ValueId> NewValue(int frame, std::string_view name, Value value);
  static std::string UniqueName(Frame& frame, std::string_view name);
  // Returns the innermost definition of a name as {frame, id}; frame is -1 if there is none.
  std::pair<int, ValueId> Find(const Scope* scope, std::string_view name) const;
  // Returns the id of a value in the top frame. Captures the value if it belongs to an outer frame. Returns kNone for
  // "" and for absent inputs of functions.
  absl::StatusOr<ValueId> Use(const Scope& scope, std::string_view name, std::string_view user);
  absl::StatusOr<ValueId> Capture(int frame, ValueId outer);
  absl::Status CountExpansion(int64_t bytes);

  // attributes.cc
  absl::StatusOr<std::string_view> AttributeName(Bytes attribute) const;
  absl::StatusOr<AttributeHead> ReadAttributeHead(Bytes attribute) const;
  absl::Status ReadAttribute(Bytes attribute, const Scope& scope, Node& node, std::vector<Body>& bodies);
  absl::StatusOr<AttributeValue> ReadAttributeValue(const AttributeHead& head) const;
  absl::StatusOr<Body> ReadBody(Bytes graph, const Scope& scope, std::string_view attribute);
  // Appends the captures to the bodies' inputs and to the node's `captures`, and sets the bodies as the node's attributes.
  absl::Status FinishBodies(std::vector<Body> bodies, Node& node);

  // functions.cc
  absl::Status Inline(const Function& function, NodeParts node, const Scope& scope);
  absl::Status BindCall(const Call& call, const NodeParts& node, Scope& scope);

  absl::Status Invalid(std::string title, std::string what = {}) const;

  const ModelContext& model_;
  ModelInfo& info_;
  std::vector<Frame> frames_;  // the main graph and the open bodies, outermost first
  int depth_ = 0;              // nesting of bodies and functions
  int64_t nodes_ = 0;
  int64_t values_ = 0;
  int64_t expansions_ = 0;
  int64_t expanded_bytes_ = 0;
};

// Reads an OperatorSetIdProto and adds it to `opsets`. Errors: kUnsupportedVersion, kMalformedModel, kInvalidGraph.
absl::Status ReadOpsetImport(const WireSource& source, Bytes message, Opsets& opsets);

absl::StatusOr<Function> ReadFunction(const WireSource& source, Bytes message);

// Calls visit(name) for each non-empty output name of a NodeProto. Stops at the first error and returns it.
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

// Returns "" for "ai.onnx", and other domains unchanged.
inline std::string_view PlainDomain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

}  // namespace mge::onnx
