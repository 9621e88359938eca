// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/graph_reader.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/narrow.h"
#include "core/onnx/expansion.h"
#include "core/onnx/fields.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge::onnx {

absl::Status GraphReader::Invalid(std::string title, std::string what) const {
  return Fail(errors::kInvalidGraph, std::move(title), {.what = std::move(what), .where = model_.source.place});
}

absl::StatusOr<GraphReader::GraphParts> GraphReader::Split(Bytes graph) const {
  GraphParts parts;
  WireReader reader(model_.source, "GraphProto", graph);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::graph::kName: parts.name = reader.Text(); break;
      case field::graph::kNode: parts.nodes.push_back(reader.Message()); break;
      case field::graph::kInitializer: parts.initializers.push_back(reader.Message()); break;
      case field::graph::kSparseInitializer: parts.sparse_initializers.push_back(reader.Message()); break;
      case field::graph::kInput: parts.inputs.push_back(reader.Message()); break;
      case field::graph::kOutput: parts.outputs.push_back(reader.Message()); break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return parts;
}

absl::StatusOr<Graph> GraphReader::ReadMain(Bytes graph) {
  frames_.emplace_back();
  Scope scope;
  MGE_RETURN_IF_ERROR(ReadGraph(graph, scope, true));
  Graph out = std::move(frames_.back().graph);
  frames_.pop_back();
  if (absl::Status status = out.Compact(); !status.ok()) return AddWhere(status, model_.source.place);
  return out;
}

absl::Status GraphReader::ReadGraph(Bytes bytes, Scope& scope, bool is_main) {
  MGE_ASSIGN_OR_RETURN(GraphParts parts, Split(bytes));
  frames_.back().graph.name = std::string(parts.name);
  if (is_main) {
    ExpansionCounter counter(model_.source, model_.functions);
    MGE_RETURN_IF_ERROR(counter.Check(parts.nodes, model_.options.max_expansions));
  }
  MGE_RETURN_IF_ERROR(ReadInitializers(parts, scope));
  MGE_RETURN_IF_ERROR(ReadInputs(parts, scope, is_main));
  // Declare all names before the first node is read, because some exporters do not sort the nodes.
  MGE_RETURN_IF_ERROR(DeclareOutputs(parts.nodes, scope));
  for (Bytes node : parts.nodes) MGE_RETURN_IF_ERROR(ReadNode(node, scope));
  MGE_RETURN_IF_ERROR(ReadOutputs(parts, scope, is_main));
  return WidenWeights(frames_[scope.frame].graph);
}

// Adds the total size of all weights to `refused`, the error of the allocation of one weight.
absl::Status GraphReader::TooLittleMemory(absl::Status refused, std::span<const Bytes> weights) const {
  constexpr size_t kNamed = 3;
  std::vector<TensorDecoder::Size> sizes;
  int64_t total = 0;
  for (Bytes weight : weights) {
    absl::StatusOr<TensorDecoder::Size> size = model_.tensors.SizeOf(weight);
    if (!size.ok() || !CheckedAdd(total, size->bytes, &total)) return refused;  // a weight is invalid: the total is unknown
    sizes.push_back(*size);
  }
  std::stable_sort(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::string largest;
  for (size_t i = 0; i < sizes.size() && i < kNamed; ++i) {
    largest += fmt::format("{}'{}' ({} bytes)", i ? ", " : "", sizes[i].name, sizes[i].bytes);
  }
  ErrorParts parts = PartsOf(refused);
  parts.what += fmt::format("; the model's weights need {} bytes, the largest are {}", total, largest);
  parts.fix = fmt::format("set memory.limit=host={} or more, plus the memory that is already in use", total);
  return Fail(errors::kOverBudget, ErrorTitle(refused), std::move(parts));
}

// Converts weights of less than a byte that only DequantizeLinear and Cast read to bytes, for which backends have kernels. These
// operators need no more than the values.
absl::Status GraphReader::WidenWeights(Graph& graph) const {
  std::unordered_set<ValueId> widened;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.role == Role::kConstant && kNarrowInteger.Contains(value.type.dtype)) widened.insert(id);
  }
  for (ValueId output : graph.outputs()) widened.erase(output);
  auto needs_value = [&](const Node& node, size_t i) {
    if (node.op == "Cast") return true;
    if (node.op != "DequantizeLinear" || i == 1) return false;
    const size_t partner = 2 - i;  // x and its zero point have the same type
    return partner >= node.inputs.size() || node.inputs[partner] == kNone || widened.contains(node.inputs[partner]);
  };
  for (size_t before = 0;
       before != widened.size() && !widened.empty();) {  // until nothing changes: weights may share a zero point
    before = widened.size();
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      const Node& node = graph.node(id);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!needs_value(node, i)) widened.erase(node.inputs[i]);
      }
      for (ValueId capture : node.captures) widened.erase(capture);
    }
  }
  for (ValueId id : widened) {
    Value& value = graph.value(id);
    MGE_ASSIGN_OR_RETURN(value.constant, WidenedInts(value.constant, model_.tensors.allocator()));
    value.type.dtype = value.constant.dtype();
  }
  return absl::OkStatus();
}

absl::Status GraphReader::ReadInitializers(const GraphParts& parts, Scope& scope) {
  auto add = [&](absl::StatusOr<NamedTensor> read) -> absl::Status {
    MGE_RETURN_IF_ERROR(read.status());
    if (read->name.empty()) return Invalid("an initializer has no name");
    if (auto known = scope.names.find(read->name); known != scope.names.end()) {
      info_.deviations.push_back(fmt::format("initializer '{}' is duplicate: the last one is used", read->name));
      Value& value = frames_[scope.frame].graph.value(known->second);
      value.type = {read->tensor.dtype(), true, read->tensor.shape(), {}};
      value.constant = std::move(read->tensor);
      return absl::OkStatus();
    }
    Value value;
    value.role = Role::kConstant;
    value.type = {read->tensor.dtype(), true, read->tensor.shape(), {}};
    value.constant = std::move(read->tensor);
    MGE_ASSIGN_OR_RETURN(scope.names[read->name], NewValue(scope.frame, read->name, std::move(value)));
    return absl::OkStatus();
  };
  for (Bytes tensor : parts.initializers) {
    absl::StatusOr<NamedTensor> read = model_.tensors.Dense(tensor);
    absl::Status added = add(std::move(read));
    if (ErrorId(added) == errors::kOverBudget.id) return TooLittleMemory(std::move(added), parts.initializers);
    MGE_RETURN_IF_ERROR(std::move(added));
  }
  for (Bytes tensor : parts.sparse_initializers) {
    absl::StatusOr<NamedTensor> read = model_.tensors.Sparse(tensor);
    if (read.ok()) info_.densified.emplace_back(read->name);
    MGE_RETURN_IF_ERROR(add(std::move(read)));
  }
  return absl::OkStatus();
}

absl::Status GraphReader::ReadInputs(const GraphParts& parts, Scope& scope, bool is_main) {
  std::unordered_set<std::string_view> seen;
  for (Bytes bytes : parts.inputs) {
    MGE_ASSIGN_OR_RETURN(DeclaredValue input, ReadValueInfo(model_.source, bytes));
    if (input.name.empty()) return Invalid("an input of the graph has no name");
    if (!seen.insert(input.name).second) return Invalid(fmt::format("input '{}' is listed twice", input.name));
    Graph& graph = frames_[scope.frame].graph;
    const TensorType& type = input.type.type;
    if (auto it = scope.names.find(input.name); it != scope.names.end()) {
      const TensorType& present = graph.value(it->second).type;
      bool fits = input.type.kind == ValueKind::kTensor &&
                  (type.dtype == DType::kUndefined || type.dtype == present.dtype) &&
                  (!type.has_rank || type.dims.size() == present.dims.size());
      for (size_t i = 0; fits && type.has_rank && i < type.dims.size(); ++i) {
        fits = type.dims[i] == kUnknownDim || type.dims[i] == present.dims[i];
      }
      if (!fits) {
        return Invalid(fmt::format("input '{}' and its initializer disagree", input.name),
                       fmt::format("{} is declared, {} is given", type.ToString(), present.ToString()));
      }
      if (is_main) info_.fixed_inputs.emplace_back(input.name);
      continue;
    }
    if (is_main && type.dtype == DType::kUndefined) {
      return Invalid(fmt::format("input '{}' has no type", input.name), "an element type is required");
    }
    Value value;
    value.role = Role::kInput;
    value.kind = input.type.kind;
    // The values passed to a body depend on its node, so the sizes that the body declares are
    // ignored.
    value.type = is_main ? type : TensorType{type.dtype, false, {}, {}};
    MGE_ASSIGN_OR_RETURN(ValueId id, NewValue(scope.frame, input.name, std::move(value)));
    scope.names[input.name] = id;
    frames_[scope.frame].graph.inputs().push_back(id);
    if (is_main) info_.inputs.push_back({std::string(input.name), std::move(input.type)});
  }
  return absl::OkStatus();
}

absl::Status GraphReader::DeclareOutputs(const std::vector<Bytes>& nodes, Scope& scope) {
  auto declare = [&](std::string_view name) -> absl::Status {
    if (scope.names.contains(name)) return DefinedTwice(nodes, name);
    if (auto [frame, id] = Find(scope.parent, name); frame >= 0 && id != kNone) {
      // A value that the outer graph computes later is not a conflict: its name is not in use yet.
      const Value& outer = frames_[frame].graph.value(id);
      if (outer.role != Role::kTemporary || outer.producer != kNone) {
        return Invalid(fmt::format("value '{}' of a body has the name of a value of the outer graph", name),
                       "names of computed values must be unique in the graph and all its bodies");
      }
    }
    MGE_ASSIGN_OR_RETURN(scope.names[name], NewValue(scope.frame, name, Value{}));
    return absl::OkStatus();
  };
  for (Bytes node : nodes) MGE_RETURN_IF_ERROR(ForEachOutput(model_.source, node, declare));
  return absl::OkStatus();
}

absl::Status GraphReader::DefinedTwice(const std::vector<Bytes>& nodes, std::string_view name) const {
  std::vector<std::string> producers;
  for (Bytes node : nodes) {
    std::string_view op, own;
    int times = 0;
    WireReader reader(model_.source, "NodeProto", node);
    while (reader.Next()) {
      switch (reader.field()) {
        case field::node::kOutput: times += reader.Text() == name; break;
        case field::node::kOpType: op = reader.Text(); break;
        case field::node::kName: own = reader.Text(); break;
        default: reader.Skip();
      }
    }
    for (; times > 0; --times) producers.push_back(fmt::format("node '{}' ({})", own, op));
    if (producers.size() >= 2) break;
  }
  return Invalid(fmt::format("value '{}' is defined twice", name),
                 producers.size() >= 2 ? fmt::format("by {} and by {}", producers[0], producers[1])
                                       : fmt::format("by the graph's inputs or initializers and by {}",
                                                     producers.empty() ? "a node" : producers[0]));
}

absl::StatusOr<GraphReader::NodeParts> GraphReader::ReadNodeParts(Bytes bytes, const Scope& scope) {
  NodeParts node;
  ExportNote note;
  std::string_view name;
  WireReader reader(model_.source, "NodeProto", bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::node::kInput: node.inputs.push_back(reader.Text()); break;
      case field::node::kOutput: node.outputs.push_back(reader.Text()); break;
      case field::node::kName: name = reader.Text(); break;
      case field::node::kOpType: node.op = reader.Text(); break;
      case field::node::kDomain: node.domain = PlainDomain(reader.Text()); break;
      case field::node::kOverload: node.overload = reader.Text(); break;
      case field::node::kAttribute: node.attributes.push_back(reader.Message()); break;
      case field::node::kMetadata: {
        WireReader entry(model_.source, "StringStringEntryProto", reader.Message());
        std::string_view key, value;
        while (entry.Next()) {
          if (entry.field() == field::entry::kKey) {
            key = entry.Text();
          } else if (entry.field() == field::entry::kValue) {
            value = entry.Text();
          } else {
            entry.Skip();
          }
        }
        MGE_RETURN_IF_ERROR(entry.status());
        if (key == "mge.device") node.device = std::string(value);
        if (key == "pkg.torch.onnx.fx_node") note.call = std::string(value);
        if (key == "pkg.torch.onnx.name_scopes") note.scopes = std::string(value);
        if (key == "pkg.onnxscript.rewriter.rule_name") note.rules = std::string(value);
        break;
      }
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (node.op.empty()) return reader.Error("a node names no operator");
  const bool noted = !note.call.empty() || !note.rules.empty();
  if (model_.options.export_notes && noted && frames_.size() == 1 && !scope.call && !node.outputs.empty()) {
    info_.export_notes.emplace(node.outputs[0], std::move(note));
  }
  node.name = name.empty() ? fmt::format("{}_{}", node.op, frames_.back().graph.node_count()) : std::string(name);
  if (scope.call) {
    node.name = fmt::format("{}/{}", scope.call->prefix, node.name);
    if (node.device.empty()) node.device = scope.call->device;
    MGE_RETURN_IF_ERROR(CountExpansion(static_cast<int64_t>(bytes.size())));
  }
  if (++nodes_ > model_.options.max_nodes) {
    return Fail(errors::kLimit, fmt::format("the model has more than {} nodes", model_.options.max_nodes),
                {.where = model_.source.place});
  }
  return node;
}

absl::Status GraphReader::ReadNode(Bytes bytes, const Scope& scope) {
  MGE_ASSIGN_OR_RETURN(NodeParts parts, ReadNodeParts(bytes, scope));
  auto function = model_.functions.find(Function::Key(parts.domain, parts.op, parts.overload));
  if (function != model_.functions.end()) return Inline(function->second, std::move(parts), scope);

  Node node;
  node.op = std::string(parts.op);
  node.domain = std::string(parts.domain);
  node.name = std::move(parts.name);
  node.device = std::move(parts.device);
  const Opsets& opsets = scope.call ? scope.call->function.opsets : model_.opsets;
  auto opset = opsets.find(node.domain);
  const bool known = !node.domain.empty() && FindOp(node.domain, node.op);
  if (opset == opsets.end() && known) {
    info_.deviations.push_back(
        fmt::format("{}: domain '{}' is not imported: version 1 is used", NodePlace(node), node.domain));
  } else if (opset == opsets.end()) {
    return Invalid(
        fmt::format("{}: domain '{}' is not imported", NodePlace(node), node.domain.empty() ? "ai.onnx" : node.domain),
        "each used domain needs an entry in opset_import");
  }
  node.version = opset == opsets.end() ? 1 : static_cast<int>(opset->second);
  for (std::string_view name : parts.inputs) {
    MGE_ASSIGN_OR_RETURN(ValueId id, Use(scope, name, node.name));
    node.inputs.push_back(id);
  }
  for (std::string_view name : parts.outputs) {
    node.outputs.push_back(name.empty() ? kNone : scope.names.at(name));
  }
  if (parts.attributes.size() > 256) {
    return Fail(errors::kLimit,
                fmt::format("{} has {} attributes; the limit is 256", NodePlace(node), parts.attributes.size()));
  }
  std::vector<Body> bodies;
  for (Bytes attribute : parts.attributes) MGE_RETURN_IF_ERROR(ReadAttribute(attribute, scope, node, bodies));
  MGE_RETURN_IF_ERROR(FinishBodies(std::move(bodies), node));
  const Ints pads = node.attrs.IntList("pads");
  const std::string auto_pad = node.attrs.Text("auto_pad", "NOTSET");
  if (auto_pad.empty()) node.attrs.Remove("auto_pad");  // some exporters write "" for NOTSET
  const bool has_pads = std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
  if (has_pads && !auto_pad.empty() && auto_pad != "NOTSET") {
    info_.deviations.push_back(fmt::format("{} has auto_pad and pads: auto_pad is used", NodePlace(node)));
  }
  Graph& graph = frames_.back().graph;
  const NodeId id = graph.AddNode(std::move(node));
  MGE_RETURN_IF_ERROR(AddWhere(BindNode(graph, id), model_.source.place));
  const Node& bound = graph.node(id);
  const std::string deviation = bound.def->deviation ? bound.def->deviation(graph, bound) : std::string();
  if (!deviation.empty()) info_.deviations.push_back(fmt::format("{}: {}", NodePlace(bound), deviation));
  return absl::OkStatus();
}

absl::Status GraphReader::ReadOutputs(const GraphParts& parts, const Scope& scope, bool is_main) {
  std::unordered_set<std::string_view> seen;
  for (Bytes bytes : parts.outputs) {
    MGE_ASSIGN_OR_RETURN(DeclaredValue output, ReadValueInfo(model_.source, bytes));
    if (Find(&scope, output.name).first < 0) {
      return Invalid(fmt::format("nothing computes output '{}' of the graph", output.name));
    }
    if (is_main && !seen.insert(output.name).second) {
      info_.deviations.push_back(fmt::format("output '{}' is listed twice: it is returned twice", output.name));
    }
    MGE_ASSIGN_OR_RETURN(ValueId id, Use(scope, output.name, "the graph's outputs"));
    if (id == kNone) return Invalid(fmt::format("output '{}' of a body is an absent input", output.name));
    frames_.back().graph.outputs().push_back(id);
    if (is_main) info_.outputs.push_back({std::string(output.name), std::move(output.type)});
  }
  if (is_main && parts.outputs.empty()) return Invalid("the graph has no outputs");
  return absl::OkStatus();
}

}  // namespace mge::onnx
