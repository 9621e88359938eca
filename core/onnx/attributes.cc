// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/onnx/fields.h"
#include "core/onnx/graph_reader.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge::onnx {

namespace f = field::attribute;

// The decoded scalar fields of an AttributeProto, and the bytes of its other fields.
struct GraphReader::AttributeHead {
  std::string_view name;
  std::string_view reference;  // the attribute of the function whose value is used; empty if there is none
  AttributeKind kind = AttributeKind::kUndefined;
  Bytes bytes;  // the whole AttributeProto
  int64_t number = 0;
  float real = 0;
  std::string_view text;
  Bytes message;  // a tensor, graph or type
};

namespace {

AttributeKind KindOfField(uint32_t number) {
  switch (number) {
    case f::kFloat: return AttributeKind::kFloat;
    case f::kInt: return AttributeKind::kInt;
    case f::kText: return AttributeKind::kText;
    case f::kTensor: return AttributeKind::kTensor;
    case f::kGraph: return AttributeKind::kGraph;
    case f::kFloats: return AttributeKind::kFloats;
    case f::kInts: return AttributeKind::kInts;
    case f::kTexts: return AttributeKind::kTexts;
    case f::kTensors: return AttributeKind::kTensors;
    case f::kGraphs: return AttributeKind::kGraphs;
    case f::kType: return AttributeKind::kType;
    case f::kTypes: return AttributeKind::kTypes;
    case f::kSparse: return AttributeKind::kSparse;
    default: return AttributeKind::kSparses;
  }
}

}  // namespace

absl::StatusOr<GraphReader::AttributeHead> GraphReader::ReadAttributeHead(Bytes attribute) const {
  AttributeHead head;
  head.bytes = attribute;
  AttributeKind present = AttributeKind::kUndefined;
  Bytes tensor, graph, type, sparse;
  WireReader reader(model_.source, "AttributeProto", attribute);
  while (reader.Next()) {
    switch (reader.field()) {
      case f::kName: head.name = reader.Text(); continue;
      case f::kReference: head.reference = reader.Text(); continue;
      case f::kKind: head.kind = static_cast<AttributeKind>(reader.Int()); continue;
      case f::kFloat: head.real = reader.Float(); break;
      case f::kInt: head.number = reader.Int(); break;
      case f::kText: head.text = reader.Text(); break;
      case f::kTensor: tensor = reader.Message(); break;
      case f::kGraph: graph = reader.Message(); break;
      case f::kType: type = reader.Message(); break;
      case f::kSparse: sparse = reader.Message(); break;
      case f::kFloats:
      case f::kInts:
      case f::kTexts:
      case f::kTensors:
      case f::kGraphs:
      case f::kTypes:
      case f::kSparses: reader.Skip(); break;
      default: reader.Skip(); continue;
    }
    present = KindOfField(reader.field());
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (head.name.empty()) return reader.Error("an attribute has no name");
  // Files of the first IR versions do not have the kind.
  if (head.kind == AttributeKind::kUndefined) head.kind = present;
  switch (head.kind) {
    case AttributeKind::kTensor: head.message = tensor; break;
    case AttributeKind::kGraph: head.message = graph; break;
    case AttributeKind::kType: head.message = type; break;
    case AttributeKind::kSparse: head.message = sparse; break;
    default: break;
  }
  return head;
}

absl::StatusOr<std::string_view> GraphReader::AttributeName(Bytes attribute) const {
  MGE_ASSIGN_OR_RETURN(AttributeHead head, ReadAttributeHead(attribute));
  return head.name;
}

absl::StatusOr<AttributeValue> GraphReader::ReadAttributeValue(const AttributeHead& head) const {
  switch (head.kind) {
    case AttributeKind::kFloat: return head.real;
    case AttributeKind::kInt: return head.number;
    case AttributeKind::kText: return std::string(head.text);
    case AttributeKind::kTensor: {
      MGE_ASSIGN_OR_RETURN(NamedTensor tensor, model_.tensors.Dense(head.message));
      return std::move(tensor.tensor);
    }
    case AttributeKind::kSparse: {
      MGE_ASSIGN_OR_RETURN(NamedTensor tensor, model_.tensors.Sparse(head.message));
      return std::move(tensor.tensor);
    }
    case AttributeKind::kType: {
      MGE_ASSIGN_OR_RETURN(ValueType type, ReadTypeProto(model_.source, head.message));
      return ValueTypeText(type);
    }
    case AttributeKind::kFloats:
    case AttributeKind::kInts:
    case AttributeKind::kTexts:
    case AttributeKind::kTensors: break;
    case AttributeKind::kGraphs:
    case AttributeKind::kSparses:
    case AttributeKind::kTypes:
      return Fail(errors::kUnsupportedFeature, fmt::format("attribute '{}': lists of graphs, sparse tensors or types "
                                                           "are not supported",
                                                           head.name));
    default:
      return Fail(errors::kInvalidNode, fmt::format("attribute '{}' has no value of a known kind", head.name),
                  {.what = fmt::format("its kind is {}", static_cast<int64_t>(head.kind))});
  }
  Ints ints;
  Floats floats;
  Texts texts;
  std::vector<Tensor> tensors;
  WireReader reader(model_.source, "AttributeProto", head.bytes);
  while (reader.Next()) {
    if (reader.field() == f::kInts && head.kind == AttributeKind::kInts) {
      reader.AppendInts(ints);
    } else if (reader.field() == f::kFloats && head.kind == AttributeKind::kFloats) {
      reader.AppendFloats(floats);
    } else if (reader.field() == f::kTexts && head.kind == AttributeKind::kTexts) {
      texts.emplace_back(reader.Text());
    } else if (reader.field() == f::kTensors && head.kind == AttributeKind::kTensors) {
      MGE_ASSIGN_OR_RETURN(NamedTensor tensor, model_.tensors.Dense(reader.Message()));
      tensors.push_back(std::move(tensor.tensor));
    } else {
      reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (head.kind == AttributeKind::kInts) return ints;
  if (head.kind == AttributeKind::kFloats) return floats;
  if (head.kind == AttributeKind::kTexts) return texts;
  return tensors;
}

absl::Status GraphReader::ReadAttribute(Bytes attribute, const Scope& scope, Node& node, std::vector<Body>& bodies) {
  MGE_ASSIGN_OR_RETURN(AttributeHead head, ReadAttributeHead(attribute));
  std::string name(head.name);
  bool twice = node.attrs.Has(name);
  for (const Body& body : bodies) twice = twice || body.attribute == name;
  if (twice) {
    return Fail(errors::kInvalidNode, fmt::format("{}: attribute '{}' is given twice", NodePlace(node), name),
                {.where = model_.source.place});
  }
  // A reference is resolved with the attributes of the function's call. The attribute there may be a
  // reference to an attribute of the next outer function.
  const Scope* at = &scope;
  while (!head.reference.empty()) {
    if (!at->call) {
      return Invalid(
          fmt::format("{}: attribute '{}' refers to '{}' outside of a function", NodePlace(node), name, head.reference));
    }
    const Call& call = *at->call;
    const auto find = [&](const auto& list) {
      return std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.first == head.reference; });
    };
    Bytes found;
    bool is_default = false;
    if (auto given = find(call.attributes); given != call.attributes.end()) {
      found = given->second;
      at = &call.site;
    } else if (auto fallback = find(call.function.defaults); fallback != call.function.defaults.end()) {
      found = fallback->second;
      is_default = true;
    } else {
      return absl::OkStatus();  // the call has no such attribute: the operator's default applies
    }
    MGE_RETURN_IF_ERROR(CountExpansion(static_cast<int64_t>(found.size())));
    MGE_ASSIGN_OR_RETURN(head, ReadAttributeHead(found));
    if (is_default && !head.reference.empty()) {
      return Invalid(
          fmt::format("function '{}': the default of attribute '{}' is a reference", call.function.Title(), head.name));
    }
  }
  if (head.kind == AttributeKind::kGraph) {
    MGE_ASSIGN_OR_RETURN(Body body, ReadBody(head.message, *at, name));
    bodies.push_back(std::move(body));
    return absl::OkStatus();
  }
  absl::StatusOr<AttributeValue> value = ReadAttributeValue(head);
  if (!value.ok()) return AddWhere(value.status(), NodePlace(node));
  node.attrs.Set(std::move(name), *std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<GraphReader::Body> GraphReader::ReadBody(Bytes graph, const Scope& scope, std::string_view attribute) {
  if (depth_ >= model_.options.max_depth) {
    return Fail(errors::kLimit,
                fmt::format("the model nests bodies and functions deeper than {} levels", model_.options.max_depth),
                {.where = model_.source.place});
  }
  ++depth_;
  frames_.emplace_back();
  Scope inner;
  inner.frame = static_cast<int>(frames_.size()) - 1;
  inner.parent = &scope;
  inner.call = scope.call;
  MGE_RETURN_IF_ERROR(ReadGraph(graph, inner, false));
  Body body{std::string(attribute), std::move(frames_.back())};
  frames_.pop_back();
  --depth_;
  return body;
}

absl::Status GraphReader::FinishBodies(std::vector<Body> bodies, Node& node) {
  for (Body& body : bodies) {
    Graph& graph = body.frame.graph;
    for (ValueId outer : body.frame.captures) {
      node.captures.push_back(outer);
      graph.inputs().push_back(body.frame.inner.at(outer));
    }
    if (absl::Status status = graph.Compact(); !status.ok()) return AddWhere(status, model_.source.place);
    node.attrs.Set(std::move(body.attribute), std::make_shared<const Graph>(std::move(graph)));
  }
  return absl::OkStatus();
}

}  // namespace mge::onnx
