// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/weights_writer.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <set>
#include <vector>

#include "core/base/errors.h"
#include "core/onnx/fields.h"
#include "core/onnx/wire.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

constexpr size_t kMaxBytes = (size_t{1} << 31) - 1;  // protobuf's limit for a message

// The bytes of a message, in pieces. Large pieces are views.
class Pieces {
 public:
  void AddView(Bytes bytes) {
    total_ += bytes.size();
    list_.push_back(bytes);
  }
  void Add(std::string bytes) { AddView(AsBytes(owned_.emplace_back(std::move(bytes)))); }
  // Adds the tag and the length of a field that the next `size` bytes are.
  void AddHead(uint32_t field, size_t size) {
    std::string head;
    protozero::pbf_writer(head).add_bytes(field, "", 0);
    head.pop_back();  // the length 0
    protozero::add_varint_to_buffer(&head, size);
    Add(std::move(head));
  }
  void AddAll(uint32_t field, Pieces message) {
    AddHead(field, message.total_);
    total_ += message.total_;
    list_.insert(list_.end(), message.list_.begin(), message.list_.end());
    kept_.push_back(std::move(message.owned_));  // the strings keep their addresses
    for (std::deque<std::string>& inner : message.kept_) kept_.push_back(std::move(inner));
  }
  size_t total() const { return total_; }
  const std::vector<Bytes>& list() const { return list_; }

 private:
  size_t total_ = 0;
  std::vector<Bytes> list_;
  std::deque<std::string> owned_;
  std::deque<std::deque<std::string>> kept_;
};

struct TensorFacts {
  std::string name;
  bool external = false;
};

absl::StatusOr<TensorFacts> Look(const WireSource& source, Bytes bytes) {
  TensorFacts out;
  WireReader reader(source, "TensorProto", bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::tensor::kName: out.name = reader.Text(); break;
      case field::tensor::kLocation: out.external = reader.Int() == kLocationExternal; break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

void AddTensor(const std::string& name, const Tensor& tensor, Pieces& out) {
  Pieces message;
  std::string head;
  protozero::pbf_writer writer(head);
  for (int64_t d : tensor.shape()) writer.add_int64(field::tensor::kDims, d);
  writer.add_int32(field::tensor::kDataType, static_cast<int32_t>(tensor.dtype()));
  writer.add_string(field::tensor::kName, name);
  message.Add(std::move(head));
  const Bytes elements(static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  message.AddHead(field::tensor::kRaw, elements.size());
  message.AddView(elements);
  out.AddAll(field::graph::kInitializer, std::move(message));
}

// The fields of a graph or function.
struct NodeFields {
  const char* type;
  uint32_t node, output, input;
};

// Copies the nodes of a graph or function, with the inputs that `added` gives them, and in this form.
class NodeCopier {
 public:
  NodeCopier(const WireSource& source, const NodeFields& fields, NodeForm form,
             const std::vector<AddedParameter>& added = {})
      : source_(source), fields_(fields), form_(form) {
    for (const AddedParameter& a : added) added_[a.output].push_back(a);
  }

  // Notes which values are read, and which are inputs.
  absl::Status Look(Bytes message) {
    WireReader reader(source_, fields_.type, message);
    while (reader.Next()) {
      if (reader.field() == fields_.node) {
        MGE_ASSIGN_OR_RETURN(const Node node, Parse(reader.Message()));
        read_.insert(node.inputs.begin(), node.inputs.end());
      } else if (reader.field() == fields_.output || reader.field() == fields_.input) {
        const bool is_input = reader.field() == fields_.input;
        MGE_ASSIGN_OR_RETURN(std::string name, NameOf(reader.Message()));
        (is_input ? inputs_ : read_).insert(std::move(name));
      } else {
        reader.Skip();
      }
    }
    return reader.status();
  }
  // Copies a node, given as the field of its graph.
  absl::Status Copy(Bytes whole, Pieces& out) const {
    WireReader outer(source_, fields_.type, whole);
    outer.Next();
    MGE_ASSIGN_OR_RETURN(Node node, Parse(outer.Message()));
    if (const auto at = node.outputs.empty() ? added_.end() : added_.find(node.outputs[0]); at != added_.end()) {
      if (node.op == "Identity" && at->second[0].name == node.outputs[0]) return absl::OkStatus();
      for (const AddedParameter& a : at->second) {
        node.inputs.resize(std::max(node.inputs.size(), a.input + 1));
        node.inputs[a.input] = a.name;
      }
      AddInForm(node, std::nullopt, out);
    } else {
      AddInForm(node, whole, out);
    }
    return absl::OkStatus();
  }

 private:
  struct Node {
    std::string op, domain;
    std::vector<std::string> inputs, outputs;
    std::vector<std::pair<std::string, Bytes>> attributes;  // with their fields
    std::vector<Bytes> rest;                                // the other fields
  };
  // Adds a node. `whole`: its bytes, if it is as it was.
  void AddInForm(Node node, std::optional<Bytes> whole, Pieces& out) const {
    const bool changes = form_ == NodeForm::kInference;
    const bool normalizes = changes && node.domain.empty() && node.op == "BatchNormalization" && node.inputs.size() == 5;
    const bool drops = changes && node.domain.empty() && node.op == "Dropout" && !node.inputs.empty() &&
                       !node.outputs.empty() && !(node.inputs.size() > 2 && inputs_.contains(node.inputs[2]));
    if (normalizes) {
      for (size_t i = 1; i < node.outputs.size() && i < 3; ++i) {
        if (read_.contains(node.outputs[i])) AddIdentity(node.inputs[i + 2], node.outputs[i], out);
      }
      node.outputs.resize(1);
      AddNode(node, "training_mode", out);
    } else if (drops && !(node.outputs.size() > 1 && read_.contains(node.outputs[1]))) {
      AddIdentity(node.inputs[0], node.outputs[0], out);
    } else if (drops) {
      node.inputs.resize(std::min<size_t>(node.inputs.size(), 2));
      AddNode(node, "", out);
    } else if (whole) {
      out.AddView(*whole);
    } else {
      AddNode(node, "", out);
    }
  }
  absl::StatusOr<std::string> NameOf(Bytes value_info) const {
    if (fields_.type != std::string_view("GraphProto")) return std::string(AsText(value_info));
    std::string out;
    WireReader reader(source_, "ValueInfoProto", value_info);
    while (reader.Next()) {
      if (reader.field() == field::value_info::kName) {
        out = reader.Text();
      } else {
        reader.Skip();
      }
    }
    MGE_RETURN_IF_ERROR(reader.status());
    return out;
  }
  absl::StatusOr<Node> Parse(Bytes message) const {
    Node out;
    WireReader reader(source_, "NodeProto", message);
    while (reader.Next()) {
      switch (reader.field()) {
        case field::node::kInput: out.inputs.emplace_back(reader.Text()); break;
        case field::node::kOutput: out.outputs.emplace_back(reader.Text()); break;
        case field::node::kOpType: out.op = reader.Text(); break;
        case field::node::kDomain: out.domain = reader.Text(); break;
        case field::node::kAttribute: {
          const Bytes whole = reader.Whole();
          MGE_ASSIGN_OR_RETURN(std::string name, AttributeName(whole));
          out.attributes.emplace_back(std::move(name), whole);
          break;
        }
        default: out.rest.push_back(reader.Whole());
      }
    }
    MGE_RETURN_IF_ERROR(reader.status());
    if (out.domain == "ai.onnx") out.domain.clear();
    return out;
  }
  absl::StatusOr<std::string> AttributeName(Bytes whole) const {
    WireReader outer(source_, "NodeProto", whole);
    outer.Next();
    std::string out;
    WireReader reader(source_, "AttributeProto", outer.Message());
    while (reader.Next()) {
      if (reader.field() == field::attribute::kName) {
        out = reader.Text();
      } else {
        reader.Skip();
      }
    }
    MGE_RETURN_IF_ERROR(reader.status());
    return out;
  }
  // Adds a node without the attribute of this name.
  void AddNode(const Node& node, std::string_view without, Pieces& out) const {
    Pieces message;
    std::string head;
    protozero::pbf_writer writer(head);
    for (const std::string& name : node.inputs) writer.add_string(field::node::kInput, name);
    for (const std::string& name : node.outputs) writer.add_string(field::node::kOutput, name);
    writer.add_string(field::node::kOpType, node.op);
    message.Add(std::move(head));
    for (const auto& [name, bytes] : node.attributes) {
      if (name != without) message.AddView(bytes);
    }
    for (const Bytes bytes : node.rest) message.AddView(bytes);
    out.AddAll(fields_.node, std::move(message));
  }
  void AddIdentity(const std::string& input, const std::string& output, Pieces& out) const {
    AddNode({.op = "Identity", .domain = {}, .inputs = {input}, .outputs = {output}, .attributes = {}, .rest = {}}, "", out);
  }

  const WireSource& source_;
  const NodeFields fields_;
  const NodeForm form_;
  std::map<std::string, std::vector<AddedParameter>> added_;  // by the first output of their node
  std::set<std::string> read_, inputs_;
};

// Copies a function with its nodes in their form for inference.
absl::StatusOr<Pieces> CopyFunction(const WireSource& source, Bytes bytes) {
  Pieces out;
  NodeCopier nodes(source, {"FunctionProto", field::function::kNode, field::function::kOutput, field::function::kInput},
                   NodeForm::kInference);
  MGE_RETURN_IF_ERROR(nodes.Look(bytes));
  WireReader reader(source, "FunctionProto", bytes);
  while (reader.Next()) {
    if (reader.field() == field::function::kNode) {
      MGE_RETURN_IF_ERROR(nodes.Copy(reader.Whole(), out));
    } else {
      out.AddView(reader.Whole());
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

// Copies a graph. Removes the replaced names from `missing`.
absl::StatusOr<Pieces> CopyGraph(const WireSource& source, Bytes bytes, const std::map<std::string, Tensor>& weights,
                                 std::map<std::string, Tensor>& missing, bool other_folder, NodeForm form,
                                 const std::vector<AddedParameter>& added) {
  Pieces out;
  std::optional<NodeCopier> nodes;
  if (form == NodeForm::kInference || !added.empty()) {
    nodes.emplace(source, NodeFields{"GraphProto", field::graph::kNode, field::graph::kOutput, field::graph::kInput}, form,
                  added);
    MGE_RETURN_IF_ERROR(nodes->Look(bytes));
  }
  WireReader reader(source, "GraphProto", bytes);
  while (reader.Next()) {
    if (nodes && reader.field() == field::graph::kNode) {
      MGE_RETURN_IF_ERROR(nodes->Copy(reader.Whole(), out));
      continue;
    }
    if (reader.field() != field::graph::kInitializer) {
      out.AddView(reader.Whole());
      continue;
    }
    const Bytes whole = reader.Whole();
    WireReader again(source, "GraphProto", whole);
    again.Next();
    MGE_ASSIGN_OR_RETURN(const TensorFacts tensor, Look(source, again.Message()));
    if (auto at = weights.find(tensor.name); at != weights.end()) {
      AddTensor(at->first, at->second, out);
      missing.erase(tensor.name);
    } else if (tensor.external && other_folder) {
      return Fail(errors::kFileWrite, fmt::format("initializer '{}' lies in an external file beside the model", tensor.name),
                  {.fix = "write the new model into the folder of the old one"});
    } else {
      out.AddView(whole);
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  for (const AddedParameter& a : added) {
    if (const auto at = missing.find(a.name); at != missing.end()) {  // one that the file has is not missing any more
      AddTensor(a.name, weights.at(a.name), out);
      missing.erase(at);
    }
  }
  return out;
}

}  // namespace

absl::Status WriteWithWeights(Bytes model, const std::map<std::string, Tensor>& weights, const std::string& path,
                              const std::string& model_directory, NodeForm form, const std::vector<AddedParameter>& added) {
  std::error_code ignored;
  const std::filesystem::path target = std::filesystem::path(path).parent_path();
  const bool other_folder = !std::filesystem::equivalent(target.empty() ? "." : target, model_directory, ignored);
  WireSource source;
  source.bytes = model;
  std::map<std::string, Tensor> missing = weights;
  Pieces out;
  WireReader reader(source, "ModelProto", model);
  while (reader.Next()) {
    if (form == NodeForm::kInference && reader.field() == field::model::kFunctions) {
      MGE_ASSIGN_OR_RETURN(Pieces function, CopyFunction(source, reader.Message()));
      out.AddAll(field::model::kFunctions, std::move(function));
      continue;
    }
    if (reader.field() != field::model::kGraph) {
      out.AddView(reader.Whole());
      continue;
    }
    MGE_ASSIGN_OR_RETURN(Pieces graph, CopyGraph(source, reader.Message(), weights, missing, other_folder, form, added));
    out.AddAll(field::model::kGraph, std::move(graph));
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (!missing.empty()) {
    return Fail(errors::kBadInput, fmt::format("the model has no initializer '{}'", missing.begin()->first));
  }
  if (out.total() > kMaxBytes) {
    return Fail(errors::kLimit, fmt::format("the model would have {} bytes, more than an ONNX file can have", out.total()),
                {.where = path});
  }
  MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  for (const Bytes& piece : out.list()) MGE_RETURN_IF_ERROR(file.Append(piece));
  return file.Commit();
}

}  // namespace mge::onnx
