// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/outline.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/onnx/fields.h"
#include "core/onnx/graph_reader.h"
#include "core/onnx/model_parts.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

struct NodeHead {
  OutlineNode node;
  std::string overload;
  std::vector<Bytes> bodies;
};

class OutlineReader {
 public:
  OutlineReader(const WireSource& source, const ReadOptions& options, Outline& out)
      : source_(source), options_(options), tensors_(source, nullptr, UnlimitedHostAllocator(), false), out_(out) {}

  absl::Status Read(const ModelParts& parts) {
    for (Bytes opset : parts.opsets) MGE_RETURN_IF_ERROR(ReadOpset(opset));
    std::sort(out_.info.opsets.begin(), out_.info.opsets.end(),
              [](const OpsetImport& a, const OpsetImport& b) { return a.domain < b.domain; });
    std::vector<Bytes> nodes;
    for (Bytes message : parts.functions) {
      absl::StatusOr<Function> function = ReadFunction(source_, message);
      if (!function.ok()) {
        Note(fmt::format("a function could not be read: {}", ErrorTitle(function.status())));
        continue;
      }
      ++out_.function_count;
      functions_.insert(Function::Key(function->domain, function->name, function->overload));
      nodes.insert(nodes.end(), function->nodes.begin(), function->nodes.end());
    }
    MGE_RETURN_IF_ERROR(ReadGraph(parts.graph, 0));
    for (Bytes node : nodes) {
      MGE_ASSIGN_OR_RETURN(NodeHead head, ReadNode(node));
      Count(head, false);
      for (Bytes body : head.bodies) MGE_RETURN_IF_ERROR(ReadGraph(body, 1));
    }
    for (auto& [key, use] : uses_) out_.operators.push_back(std::move(use));
    return absl::OkStatus();
  }

 private:
  void Note(std::string sentence) {
    constexpr size_t kMaxNotes = 100;
    if (out_.notes.size() < kMaxNotes) out_.notes.push_back(std::move(sentence));
  }

  absl::Status ReadOpset(Bytes message) {
    OpsetImport opset;
    WireReader reader(source_, "OperatorSetIdProto", message);
    while (reader.Next()) {
      if (reader.field() == field::opset::kDomain) {
        opset.domain = std::string(PlainDomain(reader.Text()));
      } else if (reader.field() == field::opset::kVersion) {
        opset.version = reader.Int();
      } else {
        reader.Skip();
      }
    }
    MGE_RETURN_IF_ERROR(reader.status());
    versions_.emplace(opset.domain, opset.version);
    out_.info.opsets.push_back(std::move(opset));
    return absl::OkStatus();
  }

  // `depth` is 0 for the main graph.
  absl::Status ReadGraph(Bytes graph, int depth) {
    if (depth > options_.max_depth) {
      return Fail(errors::kLimit, fmt::format("the model nests bodies deeper than {} levels", options_.max_depth),
                  {.where = source_.place});
    }
    std::set<std::string_view> weights;
    std::vector<Bytes> inputs;
    WireReader reader(source_, "GraphProto", graph);
    while (reader.Next()) {
      switch (reader.field()) {
        case field::graph::kName: {
          std::string_view name = reader.Text();
          if (depth == 0) out_.graph_name = std::string(name);
          break;
        }
        case field::graph::kNode: {
          MGE_ASSIGN_OR_RETURN(NodeHead head, ReadNode(reader.Message()));
          Count(head, depth > 0);
          for (Bytes body : head.bodies) {
            ++out_.body_count;
            MGE_RETURN_IF_ERROR(ReadGraph(body, depth + 1));
          }
          if (depth == 0) {
            out_.nodes.push_back(std::move(head.node));
          } else {
            ++out_.body_nodes;
          }
          break;
        }
        case field::graph::kInitializer: weights.insert(ReadWeight(reader.Message())); break;
        case field::graph::kSparseInitializer:
          ++out_.weight_count;
          reader.Skip();
          break;
        case field::graph::kInput: inputs.push_back(reader.Message()); break;
        case field::graph::kOutput:
          if (Bytes message = reader.Message(); depth == 0) ReadValue(message, "output", &out_.info.outputs);
          break;
        default: reader.Skip();
      }
    }
    for (Bytes input : inputs) {
      if (depth == 0) ReadValue(input, "input", &out_.info.inputs);
    }
    std::erase_if(out_.info.inputs, [&](const NamedType& input) { return depth == 0 && weights.contains(input.name); });
    return reader.status();
  }

  std::string_view ReadWeight(Bytes message) {
    ++out_.weight_count;
    absl::StatusOr<TensorDecoder::Size> size = tensors_.SizeOf(message);
    if (!size.ok()) {
      Note(fmt::format("an initializer could not be read: {}", ErrorTitle(size.status())));
      return {};
    }
    out_.weight_bytes += size->bytes;
    return size->name;
  }

  // Reads a ValueInfoProto. If MGE does not support its type, adds a note instead.
  void ReadValue(Bytes message, std::string_view what, std::vector<NamedType>* to) {
    absl::StatusOr<DeclaredValue> value = ReadValueInfo(source_, message);
    if (value.ok()) {
      to->push_back({std::string(value->name), std::move(value->type)});
      return;
    }
    std::string name;
    WireReader reader(source_, "ValueInfoProto", message);
    while (reader.Next()) {
      if (reader.field() == field::value_info::kName) {
        name = std::string(reader.Text());
      } else {
        reader.Skip();
      }
    }
    Note(fmt::format("the type of {} '{}' is not supported: {}", what, name, ErrorTitle(value.status())));
    to->push_back({std::move(name), {}});
  }

  absl::StatusOr<NodeHead> ReadNode(Bytes message) {
    NodeHead head;
    WireReader reader(source_, "NodeProto", message);
    while (reader.Next()) {
      switch (reader.field()) {
        case field::node::kInput: head.node.inputs.emplace_back(reader.Text()); break;
        case field::node::kOutput: head.node.outputs.emplace_back(reader.Text()); break;
        case field::node::kName: head.node.name = std::string(reader.Text()); break;
        case field::node::kOpType: head.node.op = std::string(reader.Text()); break;
        case field::node::kDomain: head.node.domain = std::string(PlainDomain(reader.Text())); break;
        case field::node::kOverload: head.overload = std::string(reader.Text()); break;
        case field::node::kAttribute: {
          WireReader attribute(source_, "AttributeProto", reader.Message());
          while (attribute.Next()) {
            if (attribute.field() == field::attribute::kGraph || attribute.field() == field::attribute::kGraphs) {
              head.bodies.push_back(attribute.Message());
            } else {
              attribute.Skip();
            }
          }
          MGE_RETURN_IF_ERROR(attribute.status());
          break;
        }
        default: reader.Skip();
      }
    }
    MGE_RETURN_IF_ERROR(reader.status());
    if (head.node.op.empty()) return reader.Error("a node names no operator");
    return head;
  }

  void Count(const NodeHead& head, bool in_body) {
    const OutlineNode& node = head.node;
    OperatorUse& use = uses_[{node.domain, node.op}];
    if (use.count++ == 0) {
      use.domain = node.domain;
      use.name = node.op;
      auto version = versions_.find(node.domain);
      use.version = version == versions_.end() ? 0 : version->second;
      use.first_node = !node.name.empty() || node.outputs.empty() ? node.name : node.outputs.front();
      use.is_function = functions_.contains(Function::Key(node.domain, node.op, head.overload));
    }
    use.in_bodies += in_body;
  }

  const WireSource& source_;
  const ReadOptions& options_;
  const TensorDecoder tensors_;
  Outline& out_;
  std::map<std::string, int64_t> versions_;  // by domain
  std::set<std::string> functions_;
  std::map<std::pair<std::string, std::string>, OperatorUse> uses_;
};

}  // namespace

absl::StatusOr<Outline> ReadOutline(const std::string& path, const ReadOptions& options) {
  MGE_ASSIGN_OR_RETURN(const OpenedModel opened, OpenModel(path, options));
  Outline out;
  MGE_ASSIGN_OR_RETURN(ModelParts parts, SplitModel(opened.source, out.info));
  MGE_RETURN_IF_ERROR(OutlineReader(opened.source, options, out).Read(parts));
  return out;
}

}  // namespace mge::onnx
