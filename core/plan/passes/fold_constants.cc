// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
#include "core/ops/effects.h"
#include "core/ops/interpreter.h"
#include "core/ops/known_values.h"
#include "core/ops/rewrite.h"
#include "core/plan/passes/pass.h"
#include "core/plan/passes/replacements.h"

namespace mge {
namespace {

// The size limit of a folded value, in bytes. A larger value stays a node, so that a model with a small file takes little
// memory.
constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;

bool HasBody(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(),
                     [](const auto& item) { return std::holds_alternative<GraphPtr>(item.second); });
}

bool Foldable(const Graph& graph, const Node& node) {
  if (node.dead || !node.def || !node.def->eval || !IsPure(*node.def) || HasBody(node)) return false;
  for (ValueId v : node.outputs) {
    if (v == kNone) continue;
    const Value& out = graph.value(v);
    if (out.kind != ValueKind::kTensor) return false;
    if (out.type.IsStatic()) {
      auto bytes = NumBytes(out.type.dtype, out.type.dims);
      if (!bytes.ok() || *bytes > kMaxFoldedBytes) return false;
    } else if (node.def->Is(kNoFold)) {
      return false;  // the size is unknown, and the result may be much larger than the inputs
    }
  }
  return true;
}

// The values that were not folded for lack of memory, and the values computed from them.
class Denied {
 public:
  explicit Denied(const Graph& graph) : graph_(graph), denied_(static_cast<size_t>(graph.value_count())) {}

  bool Has(ValueId v) const { return static_cast<size_t>(v) < denied_.size() && denied_[v]; }
  // Marks the outputs of a node. Returns the sum of their known sizes.
  int64_t Add(const Node& node) {
    int64_t bytes = 0;
    for (ValueId v : node.outputs) {
      if (v == kNone) continue;
      denied_[v] = true;
      const TensorType& type = graph_.value(v).type;
      if (type.IsStatic()) bytes += NumBytes(type.dtype, type.dims).value_or(0);
    }
    return bytes;
  }

 private:
  const Graph& graph_;
  std::vector<bool> denied_;
};

// Returns whether a rewrite needs to see the node. It is then folded in the second round.
bool IsKept(const Node& node, const PassContext& context) {
  if (!context.first_round || !node.domain.empty() || context.Skips("rewrite")) return false;
  return std::any_of(AllRewrites().begin(), AllRewrites().end(), [&](const Rewrite* rewrite) {
    return !rewrite->contains.empty() && rewrite->contains == node.op && !context.Skips(rewrite->name);
  });
}

enum class Inputs { kUnknown, kConstant, kDenied };

Inputs InputsOf(const Graph& graph, const Node& node, const Denied& denied) {
  Inputs out = Inputs::kConstant;
  for (ValueId v : node.inputs) {
    if (v == kNone || graph.value(v).role == Role::kConstant) continue;
    if (!denied.Has(v)) return Inputs::kUnknown;
    out = Inputs::kDenied;
  }
  return out;
}

std::vector<Tensor> ConstantsOf(const Graph& graph, const Node& node) {
  std::vector<Tensor> out(node.inputs.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (node.inputs[i] != kNone) out[i] = graph.value(node.inputs[i]).constant;
  }
  return out;
}

absl::StatusOr<std::vector<HostValue>> EvaluateHeld(const Node& node, const std::vector<Tensor>& constants,
                                                    HostAllocator& allocator, const StopCheck& stop) {
  std::vector<HostValue> inputs(constants.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(inputs[i].tensor, constants[i].Held());
  }
  return Evaluate(node, inputs, allocator, stop);
}

// Returns `result`, output k of the node, as a lazy tensor if it is large and was computed from a lazy one. Else a folded copy of
// a weight would stay in memory beside the form that a kernel makes of it.
Tensor LazyResult(const Node& node, size_t k, const std::vector<Tensor>& constants, Tensor result) {
  const auto lazy = std::find_if(constants.begin(), constants.end(), [](const Tensor& t) { return t.lazy(); });
  if (lazy == constants.end() || result.dtype() == DType::kString || result.bytes() < kLazyBytes) return result;
  if (node.def->KeepsBytes() && k == 0 && lazy == constants.begin()) return lazy->Reshaped(result.shape());
  std::shared_ptr<const std::byte> first(result.owner(), static_cast<const std::byte*>(result.data()));
  auto again = [node, k, constants](std::span<std::byte> out) -> absl::Status {
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, EvaluateHeld(node, constants, UnlimitedHostAllocator(), nullptr));
    std::memcpy(out.data(), results[k].tensor.data(), out.size());
    return absl::OkStatus();
  };
  return Tensor::Lazy(result.dtype(), result.shape(),
                      std::make_shared<LazyBytes>(result.bytes(), std::string(), std::move(again), std::move(first)));
}

// Replaces values that shape inference knows, such as Shape(x) of a static x. Evaluators cannot fold them, since x is not a
// constant. Computes nothing.
absl::StatusOr<int> ReplaceKnown(Graph& graph) {
  bool arithmetic = false;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    arithmetic |= !node.dead && node.def && node.def->Is(kHostOnly);
  }
  if (!arithmetic) return 0;
  std::vector<Tensor> known;
  MGE_RETURN_IF_ERROR(InferKnownValues(graph, &known));
  auto is_known = [&](ValueId v) { return v == kNone || (known[v].defined() && graph.value(v).kind == ValueKind::kTensor); };
  int changes = 0;
  Replacements replacements(graph);
  for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
    const Node node = graph.node(id);
    if (node.dead || !node.def || !IsPure(*node.def) || HasBody(node) || node.outputs.empty()) continue;
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) continue;
    for (ValueId v : node.outputs) {
      if (v == kNone) continue;
      replacements.Replace(v, graph.AddConstant(graph.value(v).name, known[v]));
    }
    graph.RemoveNode(id);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

}  // namespace

absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context) {
  MGE_ASSIGN_OR_RETURN(int changes, ReplaceKnown(graph));
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  Replacements replacements(graph);
  Denied denied(graph);
  for (NodeId id : order) {
    replacements.Update(graph.node(id));
    if (!Foldable(graph, graph.node(id))) continue;
    const Node node = graph.node(id);
    const Inputs inputs = InputsOf(graph, node, denied);
    if (inputs == Inputs::kUnknown) continue;
    if (IsKept(node, context)) {
      if (context.waits_for_round) *context.waits_for_round = true;
      continue;
    }
    if (inputs == Inputs::kConstant) {
      const std::vector<Tensor> constants = ConstantsOf(graph, node);
      absl::StatusOr<std::vector<HostValue>> results =
          EvaluateHeld(node, constants, *context.allocator, [&] { return context.CheckStop(); });
      if (results.ok()) {
        for (size_t i = 0; i < node.outputs.size(); ++i) {
          if (node.outputs[i] == kNone) continue;
          std::string name = graph.value(node.outputs[i]).name;
          Tensor result = LazyResult(node, i, constants, std::move((*results)[i].tensor));
          replacements.Replace(node.outputs[i], graph.AddConstant(name, std::move(result)));
        }
        graph.RemoveNode(id);
        ++changes;
        continue;
      }
      MGE_RETURN_IF_ERROR(context.CheckStop());
      // A node whose evaluation fails stays in the graph. The run then reports the error with the node.
      if (ErrorId(results.status()) != errors::kOverBudget.id) continue;
    }
    *context.denied_bytes += denied.Add(node);
  }
  replacements.Finish();
  return changes;
}

}  // namespace mge
