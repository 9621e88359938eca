// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

#include <algorithm>

#include "core/ops/interpreter.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Makes a graph of the node alone. `input(i)` adds the value of a present input.
template <typename AddInput>
Graph GraphOf(const Node& node, AddInput input) {
  Graph graph;
  Node copy = node;
  for (size_t i = 0; i < copy.inputs.size(); ++i) {
    if (copy.inputs[i] != kNone) copy.inputs[i] = input(graph, static_cast<int>(i));
  }
  for (ValueId& output : copy.outputs) {
    if (output == kNone) continue;
    output = graph.AddTemporary("y");
    graph.outputs().push_back(output);
  }
  graph.AddNode(std::move(copy));
  return graph;
}

}  // namespace

bool FunctionBody::IsStatic() const {
  return std::ranges::all_of(node_.inputs, [&](ValueId v) { return v == kNone || graph_.value(v).type.IsStatic(); });
}

ValueId FunctionBody::AddMicrosoft(std::string op, std::vector<ValueId> inputs, Attributes attrs) {
  const ValueId y = NewValue();
  AddMicrosoftTo({y}, std::move(op), std::move(inputs), std::move(attrs));
  return y;
}
void FunctionBody::AddMicrosoftTo(std::vector<ValueId> outputs, std::string op, std::vector<ValueId> inputs,
                                  Attributes attrs) {
  const ValueId y = outputs[0];
  AddTo(std::move(outputs), std::move(op), std::move(inputs), std::move(attrs));
  graph_.node(graph_.value(y).producer).domain = "com.microsoft";
}

std::vector<ValueId> FunctionBody::AddWithBody(std::string op, std::vector<ValueId> inputs, std::vector<ValueId> captures,
                                               size_t outputs, Attributes attrs) {
  std::vector<ValueId> y = Add(std::move(op), std::move(inputs), outputs, std::move(attrs));
  graph_.node(graph_.value(y[0]).producer).captures = std::move(captures);
  return y;
}

std::vector<ValueId> FunctionBody::Inline(const Graph& graph, std::span<const ValueId> inputs) {
  std::vector<ValueId> map(static_cast<size_t>(graph.value_count()), kNone);
  for (size_t i = 0; i < inputs.size(); ++i) map[static_cast<size_t>(graph.inputs()[i])] = inputs[i];
  auto mapped = [&](ValueId v) {
    if (v == kNone) return kNone;
    ValueId& copy = map[static_cast<size_t>(v)];
    if (copy != kNone) return copy;
    const Value& source = graph.value(v);
    copy = graph_.AddTemporary(source.name, source.type);
    graph_.value(copy).kind = source.kind;
    graph_.value(copy).role = source.role;
    graph_.value(copy).constant = source.constant;
    return copy;
  };
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).dead) continue;
    Node copy = graph.node(id);
    for (auto* list : {&copy.inputs, &copy.outputs, &copy.captures}) {
      for (ValueId& v : *list) v = mapped(v);
    }
    copy.name = node_.name;
    copy.device = node_.device;
    graph_.AddNode(std::move(copy));
  }
  std::vector<ValueId> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(mapped(v));
  return outputs;
}

ValueId FunctionBody::AddVersion(int version, std::string op, std::vector<ValueId> inputs, Attributes attrs) {
  const ValueId y = Add(std::move(op), std::move(inputs), std::move(attrs));
  graph_.node(graph_.value(y).producer).version = version;
  return y;
}

bool FunctionBody::AppliesInFloat32() {
  if (dtype() != DType::kF16 && dtype() != DType::kBF16) return false;
  const ValueId wide = Add(node_.op, {CastTo(x(), DType::kF32).id()}, node_.attrs);
  Result(0, "Cast", {wide}, mge::CastTo(dtype()));
  return true;
}

Attributes FunctionBody::Only(std::initializer_list<std::string_view> names) const {
  Attributes out;
  for (std::string_view name : names) {
    if (const AttributeValue* value = node_.attrs.Find(name)) out.Set(std::string(name), *value);
  }
  return out;
}

absl::Status FunctionBody::Invalid(std::string what) const {
  return Fail(errors::kInvalidNode, fmt::format("{}: {}", node_.op, what), {.where = NodePlace(node_)});
}
absl::Status FunctionBody::Unsupported(std::string what) const {
  return Fail(errors::kUnsupportedFeature, fmt::format("{}: {} is not implemented", node_.op, what),
              {.where = NodePlace(node_)});
}

absl::StatusOr<bool> ExpandFunction(Graph& graph, NodeId id) { return ExpandFunction(graph, id, graph.node(id).def->body); }

absl::StatusOr<bool> ExpandFunction(Graph& graph, NodeId id, BodyFn make) {
  for (ValueId v : graph.node(id).inputs) {
    if (v != kNone && graph.value(v).type.dtype == DType::kUndefined) return false;
  }
  const NodeId first_new = graph.node_count();
  const bool recomputed = graph.node(id).recomputed;
  FunctionBody body(graph, id);
  absl::StatusOr<bool> made = make(body);
  if (!made.ok()) {
    const std::string place = NodePlace(graph.node(id));
    return PartsOf(made.status()).where.starts_with(place) ? made.status() : AddWhere(made.status(), place);
  }
  if (!*made) return false;
  graph.RemoveNode(id);  // its outputs stay alive: they have new producers
  for (NodeId n = first_new; n < graph.node_count(); ++n) {
    graph.node(n).recomputed |= recomputed;
    MGE_RETURN_IF_ERROR(BindNode(graph, n));
  }
  return true;
}

absl::Status InferByBody(InferContext& ctx) {
  Graph graph = GraphOf(ctx.node(), [&](Graph& g, int i) {
    const Tensor* known = ctx.constant(i);
    return known ? g.AddConstant(fmt::format("x{}", i), *known) : g.AddInput(fmt::format("x{}", i), ctx.input(i));
  });
  MGE_ASSIGN_OR_RETURN(const bool expanded, ExpandFunction(graph, 0));
  if (!expanded) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  size_t next = 0;
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (!ctx.has_output(i)) continue;
    const Value& y = graph.value(graph.outputs()[next++]);
    if (y.type.dtype != DType::kUndefined) ctx.SetOutput(i, y.type, y.kind);
  }
  return absl::OkStatus();
}

absl::Status EvalByBody(EvalContext& ctx) {
  Graph graph = GraphOf(ctx.node(), [&](Graph& g, int i) { return g.AddConstant(fmt::format("x{}", i), ctx.input(i)); });
  MGE_ASSIGN_OR_RETURN(const bool expanded, ExpandFunction(graph, 0));
  if (!expanded) return ctx.Unsupported("this combination of inputs");
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results,
                       Interpret(graph, {}, ctx.allocator(), [&] { return ctx.CheckStop(); }));
  size_t next = 0;
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (ctx.has_output(i)) MGE_RETURN_IF_ERROR(ctx.SetOutput(i, std::move(results[next++])));
  }
  return absl::OkStatus();
}

}  // namespace mge
