// SPDX-License-Identifier: Apache-2.0
// Infers the types of all values of a graph, its bodies included.
//
// Planning needs static shapes, but a model declares only the types of its inputs and constants. Many models also
// compute shapes with nodes, for example Reshape(x, Concat(Shape(x), ...)).
//
// Algorithm: visits the nodes in topological order. The shape rule of each operator sets the types of the node's
// outputs. They are merged with the types that the model declares; a contradiction is an error. If all inputs of a node
// have known elements and its outputs are small, the node's evaluator computes the outputs. Later shape rules use these
// elements. A shape that nodes compute may have single sizes that are known (partial_sizes.h). The node's attributes are then
// written in their normal form. Bodies are inferred as copies with the types that the operator passes in; the operator may repeat
// that with wider types.
//
// For other sizes of the inputs (SizeInference), visits the nodes in the same order, but infers only those that read a value
// whose type or elements changed. It begins with the types and attributes of the pattern, since those of other sizes would
// contradict the new ones.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/ops/effects.h"
#include "core/ops/known_values.h"
#include "core/ops/op.h"
#include "core/ops/partial_sizes.h"
#include "core/ops/schema.h"
#include "core/ops/size_inference.h"
#include "fmt/format.h"

namespace mge {
namespace inference {

constexpr int64_t kSmall = 1024;              // maximum number of elements of a known value
constexpr int64_t kSmallBytes = 64 << 10;     // maximum memory for the computation of a known value
constexpr int64_t kMaxBodyNodes = 2'000'000;  // in all inferred bodies together; loops infer their bodies more than once

// The limits of type inference that the graph and all its bodies share.
struct Budget {
  const StopCheck& stop;
  int depth = 0;
  int64_t body_nodes = 0;
};

class SmallAllocator : public HostAllocator {
 public:
  explicit SmallAllocator(int64_t bytes) : left_(bytes) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    if (bytes > left_) return Fail(errors::kOverBudget, "the value is not small");
    left_ -= bytes;
    return UnlimitedHostAllocator().Allocate(bytes);
  }

 private:
  int64_t left_;
};

bool IsSmall(const Tensor& t) { return t.defined() && t.elements() <= kSmall && kFixedSize.Contains(t.dtype()); }

// Merges an inferred type into the declared type of `v`. Fails with kInvalidGraph if they contradict each other.
absl::Status MergeInto(Value& v, const TensorType& type, ValueKind kind) {
  if (v.type.dtype != DType::kUndefined && v.kind != kind) {
    return Fail(errors::kInvalidGraph, fmt::format("the declared type of '{}' contradicts what is computed", v.name),
                {.what = fmt::format("declared {}, computed {}", TypeText(v.kind, v.type), TypeText(kind, type))});
  }
  v.kind = kind;
  MGE_ASSIGN_OR_RETURN(v.type, MergeTypes(v.type, type, v.name));
  return absl::OkStatus();
}

// Makes the axes of a node not negative where the rank is known. `infer` has checked their range.
void MakeAxesPositive(const InferContext& ctx, const OpDef& def, Attributes& attrs) {
  for (const Attr& attr : def.attrs) {
    if (attr.axis_of == kNone || !ctx.has_input(attr.axis_of) || !ctx.input(attr.axis_of).has_rank) continue;
    const auto rank = static_cast<int64_t>(ctx.input(attr.axis_of).dims.size()) + attr.more_axes;
    const auto positive = [&](int64_t axis) { return axis < 0 ? axis + std::max<int64_t>(rank, 1) : axis; };
    if (attr.type == AttrType::kInts) {
      Ints axes = attrs.IntList(attr.name);
      if (std::ranges::none_of(axes, [](int64_t axis) { return axis < 0; })) continue;
      std::ranges::transform(axes, axes.begin(), positive);
      attrs.SetImplied(std::string(attr.name), std::move(axes));
    } else if (attrs.Int(attr.name) < 0) {
      attrs.SetImplied(std::string(attr.name), positive(attrs.Int(attr.name)));
    }
  }
}

class Inference {
 public:
  Inference(Graph& graph, Budget& budget) : graph_(graph), budget_(budget) {}

  absl::Status Run();
  // Infers the types of one node's outputs. The inputs must have theirs.
  absl::Status InferNode(NodeId id);

  std::vector<Tensor>& known() { return known_; }

 private:
  class Context;

  void Learn(const Node& node);

  Graph& graph_;
  Budget& budget_;
  std::vector<Tensor> known_;  // by value: elements that are known although the value is not a constant
  PartialSizes partial_;
};

class Inference::Context : public InferContext {
 public:
  Context(Inference& owner, const Node& node) : owner_(owner), node_(node) {}

  const Node& node() const override { return node_; }
  const TensorType& input(int i) const override { return In(i).type; }
  ValueKind input_kind(int i) const override { return In(i).kind; }
  const Tensor* constant(int i) const override {
    const Value& v = In(i);
    if (v.role == Role::kConstant) return &v.constant;
    const Tensor& known = owner_.known_[node_.inputs[i]];
    return known.defined() ? &known : nullptr;
  }

  void SetOutput(int i, TensorType type, ValueKind kind) override {
    if (!has_output(i) || !status_.ok()) return;
    Value& v = owner_.graph_.value(node_.outputs[i]);
    if (absl::Status status = MergeInto(v, type, kind); !status.ok()) {
      status_ = AddWhere(std::move(status), NodePlace(node_));
    }
  }

  void SetConstant(int i, Tensor value) override {
    if (has_output(i) && IsSmall(value)) owner_.known_[node_.outputs[i]] = std::move(value);
  }

  absl::StatusOr<std::vector<ValueType>> InferBody(const Graph& body, std::span<const ValueType> inputs) override;

  absl::Status Finish(absl::Status status) { return status.ok() ? status_ : status; }

  // The bodies with the types that the last InferBody call found.
  std::vector<std::pair<const Graph*, GraphPtr>> typed_bodies;

 private:
  const Value& In(int i) const { return owner_.graph_.value(node_.inputs[i]); }

  Inference& owner_;
  const Node& node_;
  absl::Status status_;
};

absl::StatusOr<std::vector<ValueType>> Inference::Context::InferBody(const Graph& body, std::span<const ValueType> inputs) {
  std::span<const ValueId> captures = CapturesOf(node_, body);
  if (inputs.size() + captures.size() != body.inputs().size()) {
    return Invalid(fmt::format("body '{}' has {} inputs, expected {}", body.name, body.inputs().size() - captures.size(),
                               inputs.size()));
  }
  Budget& budget = owner_.budget_;
  budget.body_nodes += body.node_count();
  if (budget.depth >= kMaxBodyDepth || budget.body_nodes > kMaxBodyNodes) {
    return Fail(errors::kLimit, "the bodies of control-flow operators are nested too deeply",
                {.what = fmt::format("the limit is {} levels or {} nodes in all", kMaxBodyDepth, kMaxBodyNodes),
                 .where = NodePlace(node_)});
  }
  auto typed = std::make_shared<Graph>(body);
  Inference nested(*typed, budget);
  nested.known().resize(typed->value_count());
  for (size_t i = 0; i < typed->inputs().size(); ++i) {
    Value& v = typed->value(typed->inputs()[i]);
    if (i >= inputs.size()) {
      ValueId outer = captures[i - inputs.size()];
      const Value& given = owner_.graph_.value(outer);
      v.kind = given.kind;
      v.type = given.type;
      const Tensor& known = given.role == Role::kConstant ? given.constant : owner_.known_[outer];
      if (IsSmall(known)) nested.known()[typed->inputs()[i]] = known;
      continue;
    }
    MGE_RETURN_IF_ERROR(MergeInto(v, inputs[i].type, inputs[i].kind));
  }
  ++budget.depth;
  absl::Status status = nested.Run();
  --budget.depth;
  if (!status.ok()) return AddWhere(std::move(status), NodePlace(node_));
  std::vector<ValueType> out;
  for (ValueId v : typed->outputs()) out.push_back({typed->value(v).type, typed->value(v).kind});
  std::erase_if(typed_bodies, [&](const auto& item) { return item.first == &body; });
  typed_bodies.emplace_back(&body, std::move(typed));
  return out;
}

void Inference::Learn(const Node& node) {
  if (!IsPure(*node.def) || HasBody(node) || !node.def->eval) return;
  for (ValueId out : node.outputs) {
    if (out == kNone) continue;
    const Value& v = graph_.value(out);
    if (v.kind != ValueKind::kTensor) return;
    if (v.type.IsStatic() && NumElements(v.type.dims).value_or(kSmall + 1) > kSmall) return;
  }
  std::vector<HostValue> inputs;
  for (ValueId in : node.inputs) {
    HostValue value;
    if (in != kNone) {
      const Value& v = graph_.value(in);
      const Tensor& tensor = v.role == Role::kConstant ? v.constant : known_[in];
      if (!IsSmall(tensor)) return;
      value.tensor = tensor;
    }
    inputs.push_back(std::move(value));
  }
  std::vector<Tensor> results = EvaluateSmall(node, inputs, kSmallBytes);
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i] != kNone && IsSmall(results[i])) known_[node.outputs[i]] = results[i];
  }
}

absl::Status Inference::InferNode(NodeId id) {
  MGE_RETURN_IF_ERROR(CheckInputTypes(graph_, graph_.node(id), /*kinds_known=*/true));
  Node& node = graph_.node(id);
  Context context(*this, node);
  MGE_RETURN_IF_ERROR(context.Finish(node.def->infer ? node.def->infer(context) : absl::OkStatus()));
  MakeAxesPositive(context, *node.def, node.attrs);
  if (node.def->normalize) MGE_RETURN_IF_ERROR(node.def->normalize(context, node.attrs));
  for (auto& [body, typed] : context.typed_bodies) {
    for (const auto& [name, value] : node.attrs) {
      const GraphPtr* present = std::get_if<GraphPtr>(&value);
      if (present && present->get() == body) {
        node.attrs.Set(name, typed);
        break;
      }
    }
  }
  bool learned =
      std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNone && known_[v].defined(); });
  if (!learned) Learn(node);
  for (ValueId out : node.outputs) {
    if (out == kNone || !known_[out].defined()) continue;
    Value& v = graph_.value(out);
    TensorType exact{.dtype = known_[out].dtype(), .has_rank = true, .dims = known_[out].shape()};
    if (absl::Status s = MergeInto(v, exact, ValueKind::kTensor); !s.ok()) return AddWhere(std::move(s), NodePlace(node));
  }
  if (const std::optional<Shape> dims = partial_.Learn(graph_, node, known_)) {
    Value& v = graph_.value(node.outputs[0]);
    const TensorType partly{.dtype = v.type.dtype, .has_rank = true, .dims = *dims};
    MGE_RETURN_IF_ERROR(AddWhere(MergeInto(v, partly, v.kind), NodePlace(node)));
  }
  return absl::OkStatus();
}

absl::Status Inference::Run() {
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    if (!graph_.node(id).dead && !graph_.node(id).def) MGE_RETURN_IF_ERROR(BindNode(graph_, id));
  }
  known_.resize(graph_.value_count());
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph_.TopologicalOrder());
  for (NodeId id : order) {
    if (budget_.stop) MGE_RETURN_IF_ERROR(budget_.stop());
    absl::Status status = InferNode(id);
    if (status.ok()) continue;
    std::string place = NodePlace(graph_.node(id));
    return PartsOf(status).where.starts_with(place) ? status : AddWhere(std::move(status), place);
  }
  return absl::OkStatus();
}

}  // namespace inference

using inference::Budget;
using inference::Inference;

std::vector<Tensor> EvaluateSmall(const Node& node, std::span<const HostValue> inputs, int64_t max_bytes) {
  inference::SmallAllocator allocator(max_bytes);
  absl::StatusOr<std::vector<HostValue>> results = Evaluate(node, inputs, allocator);
  std::vector<Tensor> out;
  if (!results.ok()) return out;  // not an error here: the run reports it if the node runs
  for (HostValue& v : *results) out.push_back(std::move(v.tensor));
  return out;
}

absl::Status InferKnownValues(Graph& graph, std::vector<Tensor>* known, const StopCheck& stop) {
  Budget budget = {.stop = stop};
  Inference inference(graph, budget);
  MGE_RETURN_IF_ERROR(inference.Run());
  *known = std::move(inference.known());
  return absl::OkStatus();
}

absl::Status InferTypes(Graph& graph, const StopCheck& stop) {
  std::vector<Tensor> known;
  return InferKnownValues(graph, &known, stop);
}

namespace {

bool SameElements(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  return !a.defined() || (a.dtype() == b.dtype() && a.shape() == b.shape() &&
                          std::memcmp(a.data(), b.data(), static_cast<size_t>(a.bytes())) == 0);
}

}  // namespace

struct SizeInference::State {
  State(Graph& graph, std::vector<NodeId> sorted)
      : inference(graph, budget), order(std::move(sorted)), changed(static_cast<size_t>(graph.value_count())) {}
  StopCheck none;
  Budget budget = {.stop = none};
  Inference inference;
  std::vector<NodeId> order;
  std::vector<bool> changed;  // by value
};

SizeInference::SizeInference(std::shared_ptr<const Graph> pattern) : pattern_(std::move(pattern)), sized_(*pattern_) {}
SizeInference::~SizeInference() = default;

const std::vector<Tensor>& SizeInference::known() const { return state_->inference.known(); }

absl::Status SizeInference::SetInputs(std::span<const Shape> shapes, const StopCheck& stop) {
  changed_values_.clear();
  changed_nodes_.clear();
  std::unique_ptr<State> state = std::move(state_);
  const bool first = !state;
  if (first) {
    sized_ = *pattern_;
    MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, sized_.TopologicalOrder());
    state = std::make_unique<State>(sized_, std::move(order));
    state->inference.known().resize(static_cast<size_t>(sized_.value_count()));
  }
  state->budget.body_nodes = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    TensorType& type = sized_.value(sized_.inputs()[i]).type;
    if (type.dims == shapes[i]) continue;
    type.dims = shapes[i];
    changed_values_.push_back(sized_.inputs()[i]);
    state->changed[sized_.inputs()[i]] = true;
  }
  std::vector<Tensor>& known = state->inference.known();
  const auto reached = [&](const std::vector<ValueId>& values) {
    return std::any_of(values.begin(), values.end(), [&](ValueId v) { return v != kNone && state->changed[v]; });
  };
  for (const NodeId id : state->order) {
    Node& node = sized_.node(id);
    if (!first && !reached(node.inputs) && !reached(node.captures)) continue;
    if (stop) MGE_RETURN_IF_ERROR(stop());
    std::vector<std::pair<TensorType, Tensor>> before;
    before.reserve(node.outputs.size());
    for (const ValueId v : node.outputs) {
      if (v == kNone) continue;
      Value& value = sized_.value(v);
      before.emplace_back(std::move(value.type), std::exchange(known[v], Tensor()));
      value.type = pattern_->value(v).type;
      value.kind = pattern_->value(v).kind;
    }
    if (node.def->normalize || HasBody(node)) {
      node.attrs = pattern_->node(id).attrs;
      changed_nodes_.push_back(id);
    }
    if (absl::Status s = state->inference.InferNode(id); !s.ok()) return AddWhere(std::move(s), NodePlace(node));
    size_t k = 0;
    for (const ValueId v : node.outputs) {
      if (v == kNone) continue;
      const auto& [type, elements] = before[k++];
      if (!first && type.dims == sized_.value(v).type.dims && SameElements(elements, known[v])) continue;
      state->changed[v] = true;
      changed_values_.push_back(v);
    }
  }
  for (const ValueId v : changed_values_) state->changed[v] = false;
  state_ = std::move(state);
  return absl::OkStatus();
}

}  // namespace mge
