// SPDX-License-Identifier: Apache-2.0
#include "core/eager/eager_operator.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "core/ops/gradient.h"
#include "core/ops/op.h"
#include "core/plan/host_compute.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kMaxConstantElements = 1024;
constexpr size_t kMaxSignatures = 1024;
constexpr int64_t kMaxOutputs = 1 << 20;

// Returns the name of an input in errors: that of the operator's schema.
std::string InputName(const OpDef* def, size_t i) {
  const int last = def ? def->inputs.size() - 1 : -1;
  if (static_cast<int>(i) < last || (static_cast<int>(i) == last && def->inputs[last].arity != Arity::kVariadic)) {
    return std::string(def->inputs[static_cast<int>(i)].name);
  }
  return fmt::format("input {}", i);
}

// Builds the graph of a request. Inputs have the operands' types, with their sizes if `sizes` is true. Operands in `constant`
// are constants.
absl::StatusOr<Graph> GraphOf(const OperatorRequest& request, std::span<const Operand> operands,
                              const std::vector<bool>& constant, bool sizes) {
  const OpDef* def = FindOp(request.domain, request.op);
  Graph graph;
  graph.name = request.op;
  Node node;
  node.op = request.op;
  node.domain = request.domain;
  node.name = request.op;
  node.version = request.version;
  node.attrs = request.attrs;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    if (!operand.given) {
      node.inputs.push_back(kNone);
      continue;
    }
    const std::string name = InputName(def, i);
    if (constant[i]) {
      node.inputs.push_back(graph.AddConstant(name, *operand.host));
      continue;
    }
    TensorType type = operand.type.type;
    if (!sizes) std::ranges::fill(type.dims, kUnknownDim);
    node.inputs.push_back(graph.AddInput(name, std::move(type)));
    graph.value(node.inputs.back()).kind = operand.type.kind;
  }
  while (!node.inputs.empty() && node.inputs.back() == kNone) node.inputs.pop_back();
  for (size_t i = 0; i < AllOutputs(request); ++i) node.outputs.push_back(graph.AddTemporary(fmt::format("output {}", i)));
  graph.outputs() = node.outputs;
  graph.AddNode(std::move(node));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  return graph;
}

std::vector<ValueType> OutputTypesOf(const Graph& graph) {
  std::vector<ValueType> out;
  for (ValueId v : graph.outputs()) out.push_back({graph.value(v).type, graph.value(v).kind});
  return out;
}

bool SameTypes(const std::vector<ValueType>& a, const std::vector<ValueType>& b) {
  return std::ranges::equal(a, b, [](const ValueType& x, const ValueType& y) {
    return x.kind == y.kind && x.type.dtype == y.type.dtype && x.type.has_rank == y.type.has_rank &&
           x.type.dims == y.type.dims;
  });
}

bool IsPureGraph(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (!node.dead && node.def && !IsPure(*node.def)) return false;
  }
  return true;
}

}  // namespace

size_t RequestedOutputs(const OperatorRequest& request) {
  if (request.outputs > 0) return request.outputs;
  if (const int64_t named = request.attrs.Int("num_outputs"); named > 0 && named <= kMaxOutputs) {
    return static_cast<size_t>(named);
  }
  const OpDef* def = FindOp(request.domain, request.op);
  size_t count = 0;
  for (int i = 0; def && i < def->outputs.size(); ++i) count += def->outputs[i].arity == Arity::kRequired;
  return std::max<size_t>(count, 1);
}

size_t AllOutputs(const OperatorRequest& request) {
  const size_t count = RequestedOutputs(request);
  const OpDef* def = FindOp(request.domain, request.op);
  if (!def || !def->Is(kRandom) || !RuleOf(*def)) return count;
  for (const Slot& slot : def->outputs) {
    if (slot.arity == Arity::kVariadic) return count;
  }
  return std::max(count, static_cast<size_t>(def->outputs.size()));
}

EagerOperator::EagerOperator(std::string name, Graph graph, std::vector<size_t> slots)
    : name_(std::move(name)),
      graph_(std::move(graph)),
      slots_(std::move(slots)),
      pure_(IsPureGraph(graph_)),
      outputs_(graph_.outputs().size()) {}

absl::Status RefusedCall(const absl::Status& status, std::string_view op, std::span<const Operand> operands) {
  std::string types;
  for (const Operand& operand : operands) {
    types += types.empty() ? "" : ", ";
    types += operand.given ? TypeText(operand.type.kind, operand.type.type) : "none";
  }
  const std::string place = fmt::format("eager operator {}({})", op, types);
  const ErrorRow* row = errors::Find(ErrorId(status));
  if (!row || (row != &errors::kInvalidNode && row != &errors::kInvalidGraph)) return AddWhere(status, place);
  // The remedies of these errors are for models.
  return Fail(*row, ErrorTitle(status),
              {.what = PartsOf(status).what, .where = place, .fix = "Correct the inputs or the attributes of the call."});
}

absl::StatusOr<std::vector<bool>> ConstantOperands(const OperatorRequest& request, std::span<const Operand> operands) {
  std::vector<bool> constant(operands.size(), false);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor* host = operands[i].host;
    constant[i] = operands[i].given && host && host->dtype() != DType::kString && host->elements() <= kMaxConstantElements;
  }
  MGE_ASSIGN_OR_RETURN(const Graph all, GraphOf(request, operands, constant, /*sizes=*/true));
  const std::vector<ValueType> types = OutputTypesOf(all);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!constant[i]) continue;
    std::vector<bool> without = constant;
    without[i] = false;
    absl::StatusOr<Graph> graph = GraphOf(request, operands, without, /*sizes=*/true);
    if (graph.ok() && SameTypes(OutputTypesOf(*graph), types)) constant[i] = false;
  }
  return constant;
}

absl::StatusOr<std::shared_ptr<EagerOperator>> EagerOperator::Create(const OperatorRequest& request,
                                                                     std::span<const Operand> operands) {
  std::vector<bool> constant(operands.size(), false);
  std::vector<size_t> slots;
  for (size_t i = 0; i < operands.size(); ++i) {
    constant[i] = operands[i].given && operands[i].host;
    if (operands[i].given && !constant[i]) slots.push_back(i);
  }
  MGE_ASSIGN_OR_RETURN(Graph graph, GraphOf(request, operands, constant, /*sizes=*/false));
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (!graph.node(id).dead && IsUpdate(*graph.node(id).def)) {
      return Fail(errors::kUnsupportedFeature,
                  fmt::format("operator {} changes its input, which eager mode does not do", request.op),
                  {.fix = "use an operator that returns a new tensor"});
    }
  }
  auto out = std::make_shared<EagerOperator>(request.op, std::move(graph), std::move(slots));
  out->outputs_ = RequestedOutputs(request);
  return out;
}

absl::StatusOr<std::vector<ValueType>> EagerOperator::Infer(std::span<const Operand> operands) {
  std::string key;
  bool known = true;
  for (const size_t i : slots_) {
    for (const int64_t d : operands[i].type.type.dims) {
      known = known && d >= 0;
      key.append(reinterpret_cast<const char*>(&d), sizeof(d));
    }
  }
  if (!known) return OutputTypesOf(graph_);
  {
    std::lock_guard lock(mutex_);
    if (const auto at = inferred_.find(key); at != inferred_.end()) return at->second;
  }
  Graph graph = graph_;
  for (size_t k = 0; k < slots_.size(); ++k) {
    Value& v = graph.value(graph.inputs()[k]);
    if (v.kind == ValueKind::kTensor) v.type = operands[slots_[k]].type.type;
  }
  if (absl::Status s = InferTypes(graph); !s.ok()) return RefusedCall(s, name_, operands);
  std::vector<ValueType> types = OutputTypesOf(graph);
  std::lock_guard lock(mutex_);
  if (inferred_.size() >= kMaxSignatures) inferred_.clear();
  inferred_.emplace(std::move(key), types);
  return types;
}

bool EagerOperator::IsHostComputable(std::span<const Operand> operands) {
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    const Node& node = graph_.node(id);
    if (!node.dead && !(node.def->Is(kElementwise) && IsPure(*node.def) && node.def->eval)) return false;
  }
  const auto small = [](const ValueType& t) { return FitsHostCompute(t.kind, t.type); };
  for (const size_t i : slots_) {
    if (!small(operands[i].type)) return false;
  }
  absl::StatusOr<std::vector<ValueType>> outputs = Infer(operands);
  return outputs.ok() && std::ranges::all_of(*outputs, small);
}

absl::StatusOr<std::shared_ptr<Session>> EagerOperator::SessionOn(const std::shared_ptr<Runtime>& runtime,
                                                                  const std::string& spec,
                                                                  std::shared_ptr<const Snapshot> settings) {
  return OnlySession(session_, runtime, {.device = spec, .snapshot = std::move(settings), .outputs_on_device = true});
}

absl::StatusOr<std::shared_ptr<Session>> EagerOperator::SessionOnHost(const std::shared_ptr<Runtime>& runtime,
                                                                      std::shared_ptr<const Snapshot> settings) {
  return OnlySession(host_session_, runtime, {.device = "host", .snapshot = std::move(settings)});
}

absl::StatusOr<std::shared_ptr<Session>> EagerOperator::OnlySession(std::shared_ptr<Session>& session,
                                                                    const std::shared_ptr<Runtime>& runtime,
                                                                    const SessionOptions& options) {
  std::lock_guard lock(mutex_);
  if (session) return session;
  onnx::Model model;
  model.graph = graph_;
  MGE_ASSIGN_OR_RETURN(session, Session::Create(runtime, std::move(model), options));
  return session;
}

bool EagerOperator::CarriesGradient(size_t input) const {
  const auto at = std::ranges::find(slots_, input);
  if (at == slots_.end()) return false;
  const Value& v = graph_.value(graph_.inputs()[static_cast<size_t>(at - slots_.begin())]);
  return v.kind == ValueKind::kTensor && kFloating.Contains(v.type.dtype);
}

}  // namespace mge
