// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "core/onnx/fields.h"
#include "core/onnx/graph_reader.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

// The operator sets whose versions are checked. For other domains only the used operators are checked.
struct KnownOpset {
  std::string_view domain;
  int64_t newest;
};
constexpr KnownOpset kKnownOpsets[] = {
    {"", kNewestOpset}, {"ai.onnx.ml", 5}, {"ai.onnx.training", 1}, {"ai.onnx.preview", 1}, {"ai.onnx.preview.training", 1}};

}  // namespace

std::string Function::Key(std::string_view domain, std::string_view name, std::string_view overload) {
  std::string key;
  key.append(domain).append(1, '\0').append(name).append(1, '\0').append(overload);
  return key;
}

std::string Function::Title() const { return domain.empty() ? std::string(name) : fmt::format("{}.{}", domain, name); }

absl::Status ReadOpsetImport(const WireSource& source, Bytes message, Opsets& opsets) {
  std::string_view domain;
  int64_t version = 0;
  WireReader reader(source, "OperatorSetIdProto", message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::opset::kDomain: domain = PlainDomain(reader.Text()); break;
      case field::opset::kVersion: version = reader.Int(); break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  std::string_view shown = domain.empty() ? "ai.onnx" : domain;
  for (const KnownOpset& known : kKnownOpsets) {
    if (known.domain != domain || (version >= 1 && version <= known.newest)) continue;
    return Fail(errors::kUnsupportedVersion, fmt::format("operator set {} of '{}' is not supported", version, shown),
                {.what = fmt::format("supported are versions 1 to {}", known.newest),
                 .where = source.place,
                 .fix = "export the model for an older operator set"});
  }
  if (version < 1 || version > std::numeric_limits<int>::max()) {
    return Fail(errors::kUnsupportedVersion, fmt::format("operator set {} of '{}' is not supported", version, shown),
                {.what = "versions start at 1", .where = source.place});
  }
  auto [it, is_new] = opsets.emplace(std::string(domain), version);
  if (!is_new && it->second != version) {
    return Fail(errors::kInvalidGraph, fmt::format("domain '{}' is imported twice", shown),
                {.what = fmt::format("versions {} and {}", it->second, version), .where = source.place});
  }
  return absl::OkStatus();
}

absl::StatusOr<Function> ReadFunction(const WireSource& source, Bytes message) {
  Function function;
  WireReader reader(source, "FunctionProto", message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::function::kName: function.name = reader.Text(); break;
      case field::function::kDomain: function.domain = PlainDomain(reader.Text()); break;
      case field::function::kOverload: function.overload = reader.Text(); break;
      case field::function::kInput: function.inputs.push_back(reader.Text()); break;
      case field::function::kOutput: function.outputs.push_back(reader.Text()); break;
      case field::function::kAttribute: function.attributes.push_back(reader.Text()); break;
      case field::function::kNode: function.nodes.push_back(reader.Message()); break;
      case field::function::kOpsetImport:
        MGE_RETURN_IF_ERROR(ReadOpsetImport(source, reader.Message(), function.opsets));
        break;
      case field::function::kDefault: {
        Bytes attribute = reader.Message();
        WireReader inner(source, "AttributeProto", attribute);
        std::string_view name;
        while (inner.Next()) {
          if (inner.field() == field::attribute::kName) {
            name = inner.Text();
          } else {
            inner.Skip();
          }
        }
        MGE_RETURN_IF_ERROR(inner.status());
        function.defaults.emplace_back(name, attribute);
        break;
      }
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (function.name.empty()) return reader.Error("a function has no name");
  return function;
}

absl::Status GraphReader::BindCall(const Call& call, const NodeParts& node, Scope& scope) {
  const Function& function = call.function;
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size()) {
    return Invalid(fmt::format("node '{}' does not match function '{}'", node.name, function.Title()),
                   fmt::format("it has {} inputs and {} outputs; the function has {} and {}", node.inputs.size(),
                               node.outputs.size(), function.inputs.size(), function.outputs.size()));
  }
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    ValueId id = kNone;
    if (i < node.inputs.size()) {
      MGE_ASSIGN_OR_RETURN(id, Use(call.site, node.inputs[i], node.name));
    }
    if (function.inputs[i].empty() || !scope.names.emplace(function.inputs[i], id).second) {
      return Invalid(
          fmt::format("function '{}': input '{}' is empty or listed twice", function.Title(), function.inputs[i]));
    }
  }
  for (const auto& [name, bytes] : call.attributes) {
    bool known = std::find(function.attributes.begin(), function.attributes.end(), name) != function.attributes.end();
    for (const auto& item : function.defaults) known = known || item.first == name;
    if (!known) {
      return Fail(errors::kInvalidNode,
                  fmt::format("node '{}': function '{}' has no attribute '{}'", node.name, function.Title(), name),
                  {.where = model_.source.place});
    }
  }
  return absl::OkStatus();
}

absl::Status GraphReader::Inline(const Function& function, NodeParts node, const Scope& site) {
  std::string chain = function.Title();
  for (const Call* at = site.call; at; at = at->site.call) {
    chain = fmt::format("{} -> {}", at->function.Title(), chain);
    if (&at->function == &function) {
      return Invalid(fmt::format("function '{}' calls itself", function.Title()), chain);
    }
  }
  if (depth_ >= model_.options.max_depth) {
    return Fail(errors::kLimit,
                fmt::format("the model nests bodies and functions deeper than {} levels", model_.options.max_depth),
                {.where = model_.source.place});
  }
  ++depth_;
  Call call{function, site, {}, node.name, node.device};
  for (Bytes attribute : node.attributes) {
    MGE_ASSIGN_OR_RETURN(std::string_view name, AttributeName(attribute));
    call.attributes.emplace_back(name, attribute);
  }
  Scope scope;
  scope.frame = static_cast<int>(frames_.size()) - 1;
  scope.call = &call;
  MGE_RETURN_IF_ERROR(BindCall(call, node, scope));

  // An output of the function becomes the caller's value directly. If the output is an input of the function or
  // is listed twice, an Identity node copies it to the caller's value.
  auto caller_output = [&](size_t i) {
    return i < node.outputs.size() && !node.outputs[i].empty() ? site.names.at(node.outputs[i]) : kNone;
  };
  std::unordered_map<std::string_view, ValueId> results;
  std::vector<std::pair<std::string_view, ValueId>> copies;
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    std::string_view name = function.outputs[i];
    ValueId id = caller_output(i);
    if (id == kNone) continue;
    if (scope.names.contains(name) || !results.emplace(name, id).second) copies.emplace_back(name, id);
  }
  auto declare = [&](std::string_view name) -> absl::Status {
    auto [it, is_new] = scope.names.emplace(name, kNone);
    if (!is_new) {
      return Invalid(fmt::format("function '{}': value '{}' is defined twice", function.Title(), name));
    }
    if (auto result = results.find(name); result != results.end()) {
      it->second = result->second;
    } else {
      MGE_ASSIGN_OR_RETURN(it->second, NewValue(scope.frame, fmt::format("{}/{}", node.name, name), Value{}));
    }
    return absl::OkStatus();
  };
  for (Bytes inner : function.nodes) MGE_RETURN_IF_ERROR(ForEachOutput(model_.source, inner, declare));
  for (std::string_view name : function.outputs) {
    if (!scope.names.contains(name)) {
      return Invalid(fmt::format("function '{}': nothing computes output '{}'", function.Title(), name));
    }
  }
  for (Bytes inner : function.nodes) MGE_RETURN_IF_ERROR(ReadNode(inner, scope));
  for (const auto& [name, to] : copies) {
    ValueId from = scope.names.at(name);
    if (from == kNone) {
      return Invalid(
          fmt::format("node '{}': output '{}' of function '{}' is an absent input", node.name, name, function.Title()));
    }
    Node identity;
    identity.op = "Identity";
    identity.name = fmt::format("{}/{}", node.name, name);
    identity.device = node.device;
    identity.inputs = {from};
    identity.outputs = {to};
    Graph& graph = frames_.back().graph;
    MGE_RETURN_IF_ERROR(BindNode(graph, graph.AddNode(std::move(identity))));
  }
  --depth_;
  return absl::OkStatus();
}

}  // namespace mge::onnx
