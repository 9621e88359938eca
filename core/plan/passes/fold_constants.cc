// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
#include "core/ops/effects.h"
#include "core/ops/interpreter.h"
#include "core/ops/known_values.h"
#include "core/ops/reports/flops.h"
#include "core/ops/rewrite.h"
#include "core/plan/passes/pass.h"
#include "core/plan/passes/replacements.h"

namespace mge {
namespace {

// The size limit of a folded value, in bytes. A larger value stays a node.
constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;

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
absl::StatusOr<int> ReplaceKnown(Graph& graph, const PassContext& context) {
  bool arithmetic = false;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    arithmetic |= !node.dead && node.def && node.def->Is(kHostOnly);
  }
  if (!arithmetic) return 0;
  std::vector<Tensor> known;
  MGE_RETURN_IF_ERROR(InferKnownValues(graph, &known, [&] { return context.CheckStop(); }));
  auto is_known = [&](ValueId v) { return v == kNone || (known[v].defined() && graph.value(v).kind == ValueKind::kTensor); };
  int changes = 0;
  Replacements replacements(graph);
  for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
    const Node& node = graph.node(id);
    if (node.dead || !node.def || !IsPure(*node.def) || HasBody(node) || node.outputs.empty()) continue;
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) continue;
    const std::vector<ValueId> outputs = node.outputs;
    for (ValueId v : outputs) {
      if (v == kNone) continue;
      replacements.Replace(v, graph.AddConstant(graph.value(v).name, known[v]));
    }
    graph.RemoveNode(id);
    ++changes;
  }
  replacements.Finish();
  return changes;
}

// An allocator that limits the bytes of all requests of one evaluation.
class EvaluationAllocator : public HostAllocator {
 public:
  EvaluationAllocator(HostAllocator& allocator, int64_t limit) : allocator_(allocator), left_(limit) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    if (bytes > left_) return absl::ResourceExhaustedError("the evaluation takes more memory than folding may");
    left_ -= bytes;
    return allocator_.Allocate(bytes);
  }

 private:
  HostAllocator& allocator_;
  int64_t left_;
};

class Folder {
 public:
  Folder(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), limits_(*context.fold_limits), replacements_(graph), denied_(graph) {
    uses_.assign(static_cast<size_t>(graph.value_count()), 0);
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (graph.node(id).dead) continue;
      for (const auto* list : {&graph.node(id).inputs, &graph.node(id).captures}) {
        for (ValueId v : *list) uses_[v == kNone ? 0 : v] += v != kNone;
      }
    }
    for (ValueId v : graph.outputs()) ++uses_[v];
    bytes_ = ConstantBytes(graph);
  }

  absl::StatusOr<int> Run() {
    MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph_.TopologicalOrder());
    int changes = 0;
    for (NodeId id : order) {
      MGE_RETURN_IF_ERROR(context_.CheckStop());
      replacements_.Update(graph_.node(id));
      MGE_ASSIGN_OR_RETURN(const bool folded, Fold(id));
      changes += folded;
    }
    replacements_.Finish();
    return changes;
  }

 private:
  absl::StatusOr<bool> Fold(NodeId id) {
    if (!Foldable(graph_, graph_.node(id))) return false;
    const Inputs inputs = InputsOf(graph_, graph_.node(id), denied_);
    if (inputs == Inputs::kUnknown) return false;
    if (IsKept(graph_.node(id), context_)) {
      if (context_.waits_for_round) *context_.waits_for_round = true;
      return false;
    }
    const Node node = graph_.node(id);  // a copy: evaluators keep it
    if (inputs == Inputs::kConstant) {
      const double flops = Flops(node);
      if (flops > limits_.flops || OutputBytes(node) > limits_.bytes - bytes_ + FreedBytes(node)) return false;
      limits_.flops -= flops;
      EvaluationAllocator allocator(*context_.allocator, limits_.bytes);
      const std::vector<Tensor> constants = ConstantsOf(graph_, node);
      absl::StatusOr<std::vector<HostValue>> results =
          EvaluateHeld(node, constants, allocator, [&] { return context_.CheckStop(); });
      if (results.ok()) return Replace(id, node, constants, *results);
      MGE_RETURN_IF_ERROR(context_.CheckStop());
      // A node whose evaluation fails stays in the graph. The run then reports the error with the node.
      if (ErrorId(results.status()) != errors::kOverBudget.id) return false;
    }
    *context_.denied_bytes += denied_.Add(node);
    return false;
  }

  // Replaces a node by constants, unless they are larger than the limit.
  bool Replace(NodeId id, const Node& node, const std::vector<Tensor>& constants, std::span<const HostValue> results) {
    int64_t bytes = 0;
    for (const HostValue& value : results) bytes += value.tensor.defined() ? value.tensor.bytes() : 0;
    if (bytes > limits_.bytes - bytes_ + FreedBytes(node)) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      const ValueId constant =
          graph_.AddConstant(graph_.value(node.outputs[i]).name, LazyResult(node, i, constants, results[i].tensor));
      replacements_.Replace(node.outputs[i], constant);
      uses_.push_back(uses_[node.outputs[i]]);
      bytes_ += results[i].tensor.bytes();
    }
    for (ValueId v : node.inputs) {
      if (v == kNone || --uses_[v] > 0) continue;
      Value& value = graph_.value(v);
      bytes_ -= value.constant.bytes();
      value.constant = Tensor();
      value.dead = true;
    }
    graph_.RemoveNode(id);
    return true;
  }

  double Flops(const Node& node) const { return std::max(FlopsOf(graph_, node), 0.0); }

  // Returns the known bytes of the node's outputs.
  int64_t OutputBytes(const Node& node) const {
    int64_t bytes = 0;
    for (ValueId v : node.outputs) {
      if (v != kNone && graph_.value(v).type.IsStatic()) {
        bytes += NumBytes(graph_.value(v).type.dtype, graph_.value(v).type.dims).value_or(0);
      }
    }
    return bytes;
  }

  // Returns the bytes of the constants that only this node reads.
  int64_t FreedBytes(const Node& node) const {
    int64_t bytes = 0;
    std::vector<ValueId> read = node.inputs;
    std::sort(read.begin(), read.end());
    for (auto at = read.begin(); at != read.end();) {
      const auto end = std::upper_bound(at, read.end(), *at);
      if (*at != kNone && uses_[*at] == end - at) bytes += graph_.value(*at).constant.bytes();
      at = end;
    }
    return bytes;
  }

  Graph& graph_;
  const PassContext& context_;
  FoldLimits& limits_;
  Replacements replacements_;
  Denied denied_;
  std::vector<int32_t> uses_;  // by value
  int64_t bytes_ = 0;          // of all constants
};

}  // namespace

int64_t ConstantBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.role == Role::kConstant && !value.dead && value.constant.defined()) bytes += value.constant.bytes();
  }
  return bytes;
}

absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context) {
  MGE_ASSIGN_OR_RETURN(const int known, ReplaceKnown(graph, context));
  MGE_ASSIGN_OR_RETURN(const int folded, Folder(graph, context).Run());
  return known + folded;
}

}  // namespace mge
