// SPDX-License-Identifier: Apache-2.0
// Finds operators by name and checks nodes against the operators' schemas.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/nearest.h"
#include "core/ops/op.h"
#include "core/ops/schema.h"
#include "fmt/format.h"

namespace mge {
namespace {

std::string OperatorSet(const Node& node) {
  return node.version ? fmt::format("operator set {}", node.version) : "the newest operator set";
}

std::string_view CanonicalDomain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string QualifiedName(std::string_view domain, std::string_view op) {
  domain = CanonicalDomain(domain);
  return domain.empty() ? std::string(op) : fmt::format("{}::{}", domain, op);
}

bool Before(const OpDef* a, const OpDef* b) { return a->domain != b->domain ? a->domain < b->domain : a->name < b->name; }

constexpr std::string_view kAttrTypeNames[] = {"an integer",         "a float",           "a string",
                                               "a list of integers", "a list of floats",  "a list of strings",
                                               "a tensor",           "a list of tensors", "a graph"};

AttrType TypeOf(const AttributeValue& value) { return static_cast<AttrType>(value.index()); }

static_assert(std::is_same_v<std::variant_alternative_t<static_cast<size_t>(AttrType::kGraph), AttributeValue>, GraphPtr>);

absl::Status InvalidNode(const Node& node, std::string what, std::string fix = "") {
  return Fail(errors::kInvalidNode, fmt::format("{}: {}", node.op, what), {.where = NodePlace(node), .fix = std::move(fix)});
}

absl::Status UnknownOp(const Node& node) {
  std::vector<std::string> names, domains;
  for (const OpDef* def : AllOps()) {
    if (def->domain == CanonicalDomain(node.domain)) names.emplace_back(def->name);
    if (def->name == node.op) domains.push_back(def->domain.empty() ? "ai.onnx" : std::string(def->domain));
  }
  std::string elsewhere = domains.empty() ? "" : fmt::format("the domain '{}' has an operator of this name", domains[0]);
  std::string fix = DidYouMeanOr(Nearest(node.op, names), elsewhere);
  if (node.domain == "com.microsoft.nchwc") {  // its tensors have the block size of the machine, which no file tells
    fix = "ONNX Runtime optimized the model for one processor. Save it with the level ORT_ENABLE_EXTENDED.";
  }
  std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  return Fail(errors::kUnsupportedOp, fmt::format("operator '{}' is not implemented", QualifiedName(domain, node.op)),
              {.what = names.empty() ? fmt::format("no operator of the domain '{}' is known", domain)
                                     : fmt::format("domain '{}', {}", domain, OperatorSet(node)),
               .where = NodePlace(node),
               .fix = std::move(fix)});
}

absl::Status CheckArity(const Node& node, std::span<const Slot> slots, const std::vector<ValueId>& given,
                        std::string_view direction) {
  size_t required = 0;
  bool variadic = !slots.empty() && slots.back().arity == Arity::kVariadic;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].arity == Arity::kRequired) required = i + 1;
  }
  if (given.size() < required || (!variadic && given.size() > slots.size())) {
    std::string limit = variadic                   ? fmt::format("at least {}", required)
                        : required == slots.size() ? std::to_string(required)
                                                   : fmt::format("{} to {}", required, slots.size());
    return InvalidNode(node, fmt::format("has {} {}s, expected {}", given.size(), direction, limit));
  }
  for (size_t i = 0; i < required; ++i) {
    if (slots[i].arity == Arity::kRequired && given[i] == kNone) {
      return InvalidNode(node, fmt::format("{} {} ('{}') is required but absent", direction, i, slots[i].name));
    }
  }
  // A variadic input starts at the last slot. All of its values must be present.
  bool is_input = &given == &node.inputs;
  for (size_t i = slots.size() - (variadic && is_input ? 1 : 0); i < given.size(); ++i) {
    if (given[i] == kNone) return InvalidNode(node, fmt::format("{} {} may not be absent", direction, i));
  }
  return absl::OkStatus();
}

absl::Status CheckAttributes(const Node& node, const OpDef& def) {
  for (const auto& [name, value] : node.attrs) {
    auto known = std::find_if(def.attrs.begin(), def.attrs.end(), [&name = name](const Attr& a) { return a.name == name; });
    if (known == def.attrs.end()) {
      std::vector<std::string> names;
      for (const Attr& a : def.attrs) {
        if (!a.name.starts_with('_')) names.emplace_back(a.name);
      }
      return InvalidNode(node, fmt::format("has no attribute '{}' in {}", name, OperatorSet(node)),
                         DidYouMeanOr(Nearest(name, names), ""));
    }
    if (TypeOf(value) != known->type) {
      return InvalidNode(
          node, fmt::format("attribute '{}' is {}, expected {}", name, kAttrTypeNames[static_cast<int>(TypeOf(value))],
                            kAttrTypeNames[static_cast<int>(known->type)]));
    }
  }
  for (const Attr& a : def.attrs) {
    if (a.required() && !node.attrs.Has(a.name)) {
      return InvalidNode(node, fmt::format("attribute '{}' is required but absent", a.name));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string NodePlace(const Node& node) {
  std::string op = QualifiedName(node.domain, node.op);
  return node.name.empty() ? fmt::format("an unnamed {} node", op) : fmt::format("node '{}' ({})", node.name, op);
}

std::span<const OpDef* const> AllOps() {
  static const std::vector<const OpDef*> sorted = [] {
    std::vector<const OpDef*> ops;
    for (const OpRows* rows : OpFiles()) {
      for (const OpDef& def : *rows) ops.push_back(&def);
    }
    std::sort(ops.begin(), ops.end(), Before);
    return ops;
  }();
  return sorted;
}

const OpDef* FindOp(std::string_view domain, std::string_view name) {
  const std::span<const OpDef* const> ops = AllOps();
  OpDef key{.name = name, .domain = CanonicalDomain(domain)};
  auto at = std::lower_bound(ops.begin(), ops.end(), &key, Before);
  return at != ops.end() && (*at)->name == key.name && (*at)->domain == key.domain ? *at : nullptr;
}

AttributeValue Attr::DefaultValue() const {
  switch (type) {
    case AttrType::kInt: return int_value;
    case AttrType::kFloat: return float_value;
    case AttrType::kText: return std::string(text_value);
    default: return Ints(ints_value.begin(), ints_value.end());
  }
}

void AddDefaults(const OpDef& def, Attributes& attrs) {
  for (const Attr& a : def.attrs) {
    if (a.has_default() && !attrs.Has(a.name)) attrs.SetImplied(std::string(a.name), a.DefaultValue());
  }
}

absl::Status CheckInputTypes(const Graph& graph, const Node& node, bool kinds_known) {
  const OpDef& def = *node.def;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    const Slot& slot = def.inputs[std::min<int>(static_cast<int>(i), def.inputs.size() - 1)];
    const Value& v = graph.value(node.inputs[i]);
    if (kinds_known || v.role == Role::kConstant) {
      if (!slot.any_kind && v.kind != slot.kind) {
        return InvalidNode(node, fmt::format("input '{}' ('{}') is {}, expected {}", slot.name, v.name,
                                             TypeText(v.kind, v.type), TypeText(slot.kind, {})));
      }
    }
    if (v.type.dtype != DType::kUndefined && !slot.types.Contains(v.type.dtype)) {
      std::string allowed;
      for (int t = 1; t < kDTypeCount; ++t) {
        if (!slot.types.Contains(static_cast<DType>(t))) continue;
        if (!allowed.empty()) allowed += ", ";
        allowed += DTypeName(static_cast<DType>(t));
      }
      return Fail(errors::kUnsupportedType,
                  fmt::format("{}: input '{}' has type {}", node.op, slot.name, DTypeName(v.type.dtype)),
                  {.what = fmt::format("allowed: {}", allowed), .where = NodePlace(node)});
    }
  }
  return absl::OkStatus();
}

absl::Status BindNode(Graph& graph, NodeId id) {
  const OpDef* def = FindOp(graph.node(id).domain, graph.node(id).op);
  {
    Node& node = graph.node(id);
    if (!def) return UnknownOp(node);
    if (node.version != 0 && (node.version < def->since || node.version > def->until)) {
      return Fail(errors::kUnsupportedVersion,
                  node.version < def->since ? fmt::format("{} exists since operator set {}", node.op, def->since)
                                            : fmt::format("{} exists up to operator set {}", node.op, def->until),
                  {.what = fmt::format("the model imports operator set {}", node.version), .where = NodePlace(node)});
    }
    bool from_model = node.def == nullptr && node.version != 0;
    node.def = def;
    if (from_model) {
      for (const auto& [name, value] : node.attrs) {
        if (name.starts_with('_')) return InvalidNode(node, fmt::format("has no attribute '{}'", name));
      }
      if (def->upgrade) MGE_RETURN_IF_ERROR(def->upgrade(graph, node));
    }
  }
  Node& node = graph.node(id);
  while (!node.inputs.empty() && node.inputs.back() == kNone) node.inputs.pop_back();
  MGE_RETURN_IF_ERROR(CheckArity(node, {def->inputs.begin(), def->inputs.end()}, node.inputs, "input"));
  MGE_RETURN_IF_ERROR(CheckArity(node, {def->outputs.begin(), def->outputs.end()}, node.outputs, "output"));
  // The node may have the attributes of the operator that it replaces.
  node.attrs.KeepImplied(
      [&](std::string_view name) { return std::ranges::find(def->attrs, name, &Attr::name) != def->attrs.end(); });
  MGE_RETURN_IF_ERROR(CheckAttributes(node, *def));
  AddDefaults(*def, node.attrs);
  return CheckInputTypes(graph, node, /*kinds_known=*/false);
}

}  // namespace mge
