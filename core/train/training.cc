// SPDX-License-Identifier: Apache-2.0
#include "core/train/training.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/autodiff/autodiff.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/ops/expression.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/known_values.h"
#include "core/ops/rewrites/pattern.h"
#include "core/train/exported.h"
#include "core/train/inference_form.h"
#include "core/train/loss.h"
#include "core/train/optimizer.h"
#include "core/train/unpack_sequences.h"
#include "fmt/format.h"
#include "mge/losses.hpp"
#include "mge/optimizers.hpp"

namespace mge {
namespace {

constexpr std::string_view kNanPolicies[] = {"stop", "skip", "continue"};

// A number that some optimizers read.
struct OptimizerOption {
  std::string_view name;
  double TrainingOptions::*value;
  double min, max;
  bool max_included;
};
constexpr OptimizerOption kOptimizerOptions[] = {{"momentum", &TrainingOptions::momentum, 0, 1, false},
                                                 {"beta1", &TrainingOptions::beta1, 0, 1, false},
                                                 {"beta2", &TrainingOptions::beta2, 0, 1, false},
                                                 {"epsilon", &TrainingOptions::epsilon, 0, 1, true},
                                                 {"weight_decay", &TrainingOptions::weight_decay, 0, 1e6, true}};

absl::Status BadOption(std::string title, std::string fix = {}) {
  return Fail(errors::kBadInput, std::move(title), {.where = "training options", .fix = std::move(fix)});
}

absl::Status CheckChoice(std::string_view what, std::string_view name, std::span<const std::string_view> all) {
  if (std::ranges::find(all, name) != all.end()) return absl::OkStatus();
  return BadOption(fmt::format("there is no {} '{}'", what, name), fmt::format("use one of {}", fmt::join(all, ", ")));
}

absl::Status CheckNumber(std::string_view what, double value, double min, double max, bool max_included) {
  if (value >= min && (value < max || (max_included && value == max))) return absl::OkStatus();
  return BadOption(fmt::format("{} = {} is outside of [{}, {}{}", what, value, min, max, max_included ? "]" : ")"));
}

// Checks the optimizer and its numbers. A number that it does not read must have its default.
absl::Status CheckOptimizer(const TrainingOptions& o) {
  const Optimizer* optimizer = FindOptimizer(o.optimizer);
  if (!optimizer) return BadOption(fmt::format("there is no optimizer '{}'", o.optimizer), "use one of " + OptimizerNames());
  for (const OptimizerOption& option : kOptimizerOptions) {
    MGE_RETURN_IF_ERROR(CheckNumber(option.name, o.*option.value, option.min, option.max, option.max_included));
    if (ReadsOption(*optimizer, option.name) || o.*option.value == TrainingOptions().*option.value) continue;
    return BadOption(fmt::format("the optimizer {} has no {}", o.optimizer, option.name),
                     fmt::format("leave it out, or use an optimizer that has it: {}", OptimizerNames(option.name)));
  }
  return absl::OkStatus();
}

// Checks the loss and its options. An option that it does not read must have its default.
absl::Status CheckLoss(const TrainingOptions& o) {
  const LossRow* loss = FindLoss(o.loss);
  if (!loss) return BadOption(fmt::format("there is no loss '{}'", o.loss), "use one of " + LossNames());
  const std::pair<std::string_view, bool> given[] = {{"label_smoothing", o.label_smoothing != 0},
                                                     {"class_weights", !o.class_weights.empty()},
                                                     {"huber_delta", o.huber_delta != TrainingOptions().huber_delta}};
  for (const auto& [name, is_given] : given) {
    if (!is_given || ReadsOption(*loss, name)) continue;
    return BadOption(fmt::format("the loss {} has no {}", o.loss, name),
                     fmt::format("leave it out, or use a loss that has it: {}", LossNames(name)));
  }
  for (size_t i = 0; i < o.class_weights.size(); ++i) {
    MGE_RETURN_IF_ERROR(CheckNumber(fmt::format("class_weights[{}]", i), o.class_weights[i], 0, 1e30, true));
  }
  MGE_RETURN_IF_ERROR(CheckNumber("huber_delta", o.huber_delta, 1e-30, 1e30, true));
  return CheckNumber("label_smoothing", o.label_smoothing, 0, 1, false);
}

absl::Status CheckGroups(const TrainingOptions& o) {
  for (const ParameterGroup& group : o.groups) {
    MGE_RETURN_IF_ERROR(CheckNumber(fmt::format("the rate of group '{}'", group.pattern), group.rate, 0, 1e30, true));
    if (group.weight_decay < 0) continue;
    MGE_RETURN_IF_ERROR(
        CheckNumber(fmt::format("the weight_decay of group '{}'", group.pattern), group.weight_decay, 0, 1e6, true));
  }
  return absl::OkStatus();
}

absl::Status Check(const TrainingOptions& o) {
  MGE_RETURN_IF_ERROR(CheckLoss(o));
  MGE_RETURN_IF_ERROR(CheckGroups(o));
  MGE_RETURN_IF_ERROR(CheckNumber("average_decay", o.average_decay, 0, 1, false));
  MGE_RETURN_IF_ERROR(CheckChoice("on_nan", o.on_nan, kNanPolicies));
  MGE_RETURN_IF_ERROR(CheckOptimizer(o));
  MGE_RETURN_IF_ERROR(CheckNumber("clip_value", o.clip_value, 0, 1e30, true));
  MGE_RETURN_IF_ERROR(CheckNumber("accumulate", static_cast<double>(o.accumulate), 1, 1e6, true));
  return CheckNumber("clip_norm", o.clip_norm, 0, 1e30, true);
}

// Returns the value that is compared with the labels, or is the loss.
absl::StatusOr<ValueId> FindOutput(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (ValueId v : graph.outputs()) {
    if (name.empty() || graph.value(v).name == name) return v;
    names.push_back(graph.value(v).name);
  }
  if (names.empty()) return BadOption("the model has no output");
  return BadOption(fmt::format("the model has no output '{}'", name), fmt::format("use one of {}", fmt::join(names, ", ")));
}

// Checks that no input has the name of the one that a training step adds.
absl::Status CheckNewInput(const Graph& graph, std::string_view name, std::string fix) {
  const bool taken = std::ranges::any_of(graph.inputs(), [&](ValueId v) { return graph.value(v).name == name; });
  return taken ? BadOption(fmt::format("there is an input '{}' already", name), std::move(fix)) : absl::OkStatus();
}

// Checks that each group has a parameter.
absl::Status CheckGroupNames(const Graph& graph, std::span<const TrainedValue> trained, const TrainingOptions& options) {
  std::vector<std::string> names;
  for (const TrainedValue& t : trained) names.push_back(graph.value(t.parameter).name);
  for (const ParameterGroup& group : options.groups) {
    if (std::ranges::any_of(names, [&](const std::string& n) { return FitsPattern(n, group.pattern); })) continue;
    return BadOption(fmt::format("no parameter has a name like '{}', that of a group", group.pattern),
                     DidYouMeanOr(Nearest(group.pattern, names), ""));
  }
  return absl::OkStatus();
}

// Returns the initializers that can be trained.
absl::StatusOr<std::vector<ValueId>> Trainable(const Graph& graph, const std::vector<std::string>& frozen) {
  std::vector<ValueId> out;
  std::vector<std::string> names;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.dead || value.role != Role::kConstant || value.kind != ValueKind::kTensor || value.constant.shape().empty())
      continue;
    if (!kFloating.Contains(value.constant.dtype())) continue;
    names.push_back(value.name);
    if (std::ranges::none_of(frozen, [&](const std::string& f) { return FitsPattern(value.name, f); })) out.push_back(v);
  }
  for (const std::string& name : frozen) {
    if (std::ranges::any_of(names, [&](const std::string& n) { return FitsPattern(n, name); })) continue;
    return BadOption(fmt::format("the model has no parameter '{}' that could be frozen", name),
                     DidYouMeanOr(Nearest(name, names), ""));
  }
  return out;
}

// Makes the averages of the parameters, states of the training, its parameters.
absl::Status UseAverages(Graph& graph, const TrainingOptions& options) {
  MGE_ASSIGN_OR_RETURN(const std::vector<ValueId> parameters, Trainable(graph, options.frozen));
  for (ValueId v : parameters) UseAverage(graph, v);
  return absl::OkStatus();
}

// Returns, by value, whether the output depends on it by other ways than settings of operators (IsFixedInput).
std::vector<bool> ReachedWithoutSettings(const Graph& graph, ValueId output) {
  std::vector<bool> reached(static_cast<size_t>(graph.value_count()), false);
  std::vector<ValueId> open = {output};
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (v == kNone || reached[static_cast<size_t>(v)]) continue;
    reached[static_cast<size_t>(v)] = true;
    if (graph.value(v).producer == kNone) continue;
    const Node& node = graph.node(graph.value(v).producer);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!IsFixedInput(*node.def, i)) open.push_back(node.inputs[i]);
    }
    open.insert(open.end(), node.captures.begin(), node.captures.end());
  }
  return reached;
}

// Replaces each If by a branch if its condition follows from shapes, as exporters write it. Other bodies have no gradient.
absl::Status InlineKnownBranches(Graph& graph) {
  const auto row = std::ranges::find(AllRewrites(), "inline_if", [](const Rewrite* r) { return r->name; });
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<Tensor> known;
    MGE_RETURN_IF_ERROR(InferKnownValues(graph, &known));
    for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
      if (graph.node(id).dead || !IsOp(graph.node(id), "If")) continue;
      const Tensor& condition = known[static_cast<size_t>(graph.node(id).inputs[0])];
      if (condition.defined()) graph.node(id).inputs[0] = AddFreshConstant(graph, "condition", condition);
      MGE_ASSIGN_OR_RETURN(const bool inlined, (*row)->apply(graph, id, UnlimitedHostAllocator()));
      changed |= inlined;
    }
  }
  return absl::OkStatus();
}

// Replaces function operators without a gradient rule by their bodies, whose operators may have one.
absl::Status ExpandFunctionsWithoutGradient(Graph& graph) {
  for (int depth = 0; depth < kMaxBodyDepth; ++depth) {
    bool changed = false;
    for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
      const Node& node = graph.node(id);
      if (node.dead || !node.def->body || node.def->gradient) continue;
      MGE_ASSIGN_OR_RETURN(const bool expanded, ExpandFunction(graph, id));
      changed |= expanded;
    }
    if (!changed) break;
    MGE_RETURN_IF_ERROR(InferTypes(graph));
  }
  return absl::OkStatus();
}

// A mean or variance of a BatchNormalization with training_mode, and its next elements.
struct Statistic {
  ValueId target, moved;
};

// Returns the means and variances of every BatchNormalization with training_mode. Adds the outputs that the nodes lack.
std::vector<Statistic> AddStatistics(Graph& graph) {
  std::vector<Statistic> out;
  for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
    const Node node = graph.node(id);  // a copy: adding values moves it
    if (node.dead || node.op != "BatchNormalization" || !node.domain.empty() || node.attrs.Int("training_mode") == 0)
      continue;
    for (size_t i : {1, 2}) {
      const ValueId target = node.inputs[i + 2];
      if (graph.value(target).role != Role::kConstant) continue;
      std::vector<ValueId>& outputs = graph.node(id).outputs;
      if (outputs.size() <= i) outputs.resize(i + 1, kNone);
      if (outputs[i] == kNone) {
        const ValueId made = graph.AddTemporary(graph.value(target).name + ".running", graph.value(target).type);
        graph.value(made).producer = id;
        graph.node(id).outputs[i] = made;
      }
      out.push_back({target, graph.node(id).outputs[i]});
    }
  }
  return out;
}

// Updates the means and variances, unless `counts`, a bool or kNone, is false.
void UpdateStatistics(Graph& graph, std::span<const Statistic> statistics, ValueId counts) {
  for (const Statistic& s : statistics) {
    ExpressionBuilder b(graph, "statistics", graph.value(s.target).type.dtype);
    AddAssign(graph, s.target, counts == kNone ? s.moved : b.Where(counts, Term(b, s.moved), Term(b, s.target)).id());
  }
}

// Returns a value of this type, in float32 if it has 16 bits.
ValueId Wide(Graph& graph, ValueId v, DType type) {
  const bool narrow = type == DType::kF16 || type == DType::kBF16;
  return narrow ? NodeAdder(graph, "wide").Cast(v, type, DType::kF32) : v;
}

// The parts of a loss.
struct LossParts {
  ValueId sum, count;  // the loss is their quotient, or 0 if nothing counts
};

// Returns the count, or 1 if it is 0.
Term AtLeastSomething(const Term& count) { return count.builder().Where(count > 0, count, count.builder().Number(1)); }

// Adds the loss: the mean over what counts, or 0 if nothing does.
ValueId AddMean(Graph& graph, const LossParts& parts) {
  ExpressionBuilder b(graph, "loss", graph.value(parts.sum).type.dtype);
  return (Term(b, parts.sum) / AtLeastSomething(Term(b, parts.count))).id();
}

// The loss of a model before its mean is computed.
struct ModelLoss {
  ValueId output;   // which is compared with the labels, or is the loss
  LossParts parts;  // kNone: the model computes the loss
  ValueId whole;    // the loss that the model computes; kNone: it does not
};

// Adds what a loss needs, and its labels as an input.
absl::StatusOr<ModelLoss> AddModelLoss(onnx::Model& model, const TrainingOptions& options) {
  Graph& graph = model.graph;
  MGE_ASSIGN_OR_RETURN(const ValueId output, FindOutput(graph, options.loss_output));
  if (options.loss == "output")
    return ModelLoss{output, {kNone, kNone}, Wide(graph, output, graph.value(output).type.dtype)};
  MGE_RETURN_IF_ERROR(CheckNewInput(graph, options.labels_name, "give the labels another name with labels_name"));
  MGE_ASSIGN_OR_RETURN(const AddedLoss added, AddLoss(graph, output, options));
  model.info.inputs.push_back({options.labels_name, {graph.value(added.labels).type}});
  return ModelLoss{output, {added.sum, added.count}, kNone};
}

// Makes the loss the first output.
void AddLossOutput(onnx::Model& model, ValueId loss) {
  Graph& graph = model.graph;
  graph.outputs().insert(graph.outputs().begin(), loss);
  model.info.outputs.insert(model.info.outputs.begin(), {graph.value(loss).name, {graph.value(loss).type}});
}

// Returns a bool: the loss is finite.
ValueId AddFinite(Graph& graph, ValueId loss) {
  ExpressionBuilder b(graph, "loss", graph.value(loss).type.dtype);
  return Unary("Abs", Term(b, loss)) < std::numeric_limits<double>::infinity();
}

// Adds the input `replica.examples` and returns the parts of a replica's loss. `whole` is the loss that the model computes, or
// kNone: the loss has `parts`.
LossParts PartsOfReplica(onnx::Model& model, ValueId whole, const LossParts& parts) {
  Graph& graph = model.graph;
  const ValueId input = graph.AddInput(std::string(kExamples), {.dtype = DType::kF32, .has_rank = true});
  model.info.inputs.push_back({std::string(kExamples), {graph.value(input).type}});
  const DType given = graph.value(whole == kNone ? parts.sum : whole).type.dtype;
  const DType dtype = ElementBytes(given) < 4 ? DType::kF32 : given;  // sums do not fit into 16 bits
  ExpressionBuilder b(graph, "replica", dtype);
  const Term examples = b.CastTo(Term(b, input), dtype);
  if (whole != kNone) return {(b.CastTo(Term(b, whole), dtype) * examples).id(), examples.id()};
  const Term counts = Unary("Sign", examples);
  return {(Term(b, parts.sum) * counts).id(), (Term(b, parts.count) * counts).id()};
}

// Adds the loss and the gradients of all replicas, in place of those of this one.
absl::Status SumLossAndGradients(Graph& graph, const ReplicaExchange& exchange, bool in_parts, const LossParts& parts,
                                 ValueId& loss, std::vector<TrainedValue>& trained) {
  std::vector<ValueId> values = {parts.sum, parts.count};
  std::vector<bool> divided(2, false);
  for (TrainedValue& t : trained) {
    values.push_back(t.gradient);
    t.divided = in_parts && Elements(graph.value(t.parameter).type.dims) >= int64_t{exchange.replicas};
    divided.push_back(t.divided);
  }
  if (!in_parts) divided.clear();
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  MGE_ASSIGN_OR_RETURN(const std::vector<ValueId> sums, exchange.sum(graph, values, divided));
  const DType dtype = graph.value(parts.sum).type.dtype;
  ExpressionBuilder b(graph, "replicas", dtype);
  const Term count = AtLeastSomething(Term(b, sums[1]));
  loss = (Term(b, sums[0]) / count).id();
  for (size_t i = 0; i < trained.size(); ++i) {
    const Term gradient(b, Wide(graph, sums[i + 2], graph.value(trained[i].parameter).type.dtype));
    const DType own = graph.value(trained[i].parameter).type.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    trained[i].gradient = (gradient / (own == dtype ? count : b.CastTo(count, own))).id();
  }
  return InferTypes(graph);
}

}  // namespace

bool FitsPattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') {
    return FitsPattern(name, pattern.substr(1)) || (!name.empty() && FitsPattern(name.substr(1), pattern));
  }
  return !name.empty() && (pattern.front() == '?' || pattern.front() == name.front()) &&
         FitsPattern(name.substr(1), pattern.substr(1));
}

absl::StatusOr<std::vector<std::string>> MakeTrainingStep(onnx::Model& model, const TrainingOptions& options,
                                                          const ReplicaExchange& exchange) {
  MGE_RETURN_IF_ERROR(Check(options));
  if (exchange.gather && !UpdatesElementsAlone(options)) {
    return Fail(errors::kBadInput,
                fmt::format("the states of optimizer {} cannot be divided over replicas", options.optimizer),
                {.what = "its update of an element depends on other elements of the parameter",
                 .where = "training options",
                 .fix = "leave train.shard_optimizer unset, or use another optimizer such as adamw"});
  }
  Graph& graph = model.graph;
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  MGE_RETURN_IF_ERROR(InlineKnownBranches(graph));
  MGE_RETURN_IF_ERROR(UnpackSequences(graph));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  // Before functions are expanded: constants of their bodies are no parameters.
  MGE_ASSIGN_OR_RETURN(std::vector<ValueId> candidates, Trainable(graph, options.frozen));
  MGE_ASSIGN_OR_RETURN(const ValueId compared, FindOutput(graph, options.loss_output));
  const std::vector<bool> reached = ReachedWithoutSettings(graph, compared);
  const std::vector<bool> constants = ExportedConstants(model);
  std::erase_if(candidates,
                [&](ValueId v) { return !reached[static_cast<size_t>(v)] || constants[static_cast<size_t>(v)]; });
  MGE_RETURN_IF_ERROR(ExpandFunctionsWithoutGradient(graph));
  MGE_ASSIGN_OR_RETURN(ModelLoss added, AddModelLoss(model, options));
  LossParts& parts = added.parts;
  ValueId loss = added.whole;
  MGE_RETURN_IF_ERROR(CheckNewInput(graph, kLearningRate, "rename that input: a training step needs the name"));
  const ValueId rate = graph.AddInput(std::string(kLearningRate), {.dtype = DType::kF32, .has_rank = true});
  model.info.inputs.push_back({std::string(kLearningRate), {graph.value(rate).type}});
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  if (exchange.sum) {
    parts = PartsOfReplica(model, loss, parts);
    loss = parts.sum;
  } else if (parts.sum != kNone) {
    loss = AddMean(graph, parts);
  }
  const bool scales =
      std::ranges::any_of(candidates, [&](ValueId v) { return graph.value(v).constant.dtype() == DType::kF16; });
  const ValueId scale = scales ? AddLossScale(graph) : kNone;
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  ValueId differentiated = loss;
  if (scales) {
    ExpressionBuilder b(graph, "loss", graph.value(loss).type.dtype);
    differentiated = (Term(b, loss) * b.CastTo(Term(b, scale), b.dtype())).id();
    MGE_RETURN_IF_ERROR(InferTypes(graph));
  }

  const std::vector<Statistic> statistics = AddStatistics(graph);
  std::erase_if(candidates,
                [&](ValueId v) { return std::ranges::find(statistics, v, &Statistic::target) != statistics.end(); });
  MGE_ASSIGN_OR_RETURN(
      std::vector<ValueId> gradients,
      AddGradients(graph, differentiated, candidates, {.mirror = options.mirror, .sublinear = options.sublinear}));
  std::vector<TrainedValue> trained;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (gradients[i] != kNone) trained.push_back({candidates[i], gradients[i]});
  }
  if (trained.empty()) {
    return Fail(errors::kBadInput, fmt::format("the loss depends on no parameter of graph '{}'", graph.name),
                {.what = "parameters are floating initializers with at least one dimension", .where = "training options"});
  }
  if (exchange.sum) {
    const bool in_parts = exchange.gather && exchange.sums_parts && scale == kNone && !NeedsWholeGradients(options);
    MGE_RETURN_IF_ERROR(SumLossAndGradients(graph, exchange, in_parts, parts, loss, trained));
    if (options.loss == "output") std::ranges::replace(graph.outputs(), added.output, loss);
  }
  MGE_RETURN_IF_ERROR(CheckGroupNames(graph, trained, options));
  const ValueId finite = options.on_nan == "continue" ? kNone : AddFinite(graph, loss);
  UpdateStatistics(graph, statistics, finite);
  MGE_RETURN_IF_ERROR(AddOptimizer(graph, trained, rate, {.loss_scale = scale, .finite_loss = finite}, options, exchange));
  AddLossOutput(model, loss);
  std::vector<std::string> names;
  for (const TrainedValue& t : trained) names.push_back(graph.value(t.parameter).name);
  for (const Statistic& s : statistics) names.push_back(graph.value(s.target).name);
  return names;
}

absl::Status MakeEvaluation(onnx::Model& model, const TrainingOptions& options, bool inference_form) {
  MGE_RETURN_IF_ERROR(Check(options));
  Graph& graph = model.graph;
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  MGE_RETURN_IF_ERROR(InlineKnownBranches(graph));
  MGE_RETURN_IF_ERROR(UnpackSequences(graph));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  MGE_RETURN_IF_ERROR(ExpandFunctionsWithoutGradient(graph));
  if (inference_form) {
    if (options.average_decay > 0) MGE_RETURN_IF_ERROR(UseAverages(graph, options));
    MakeInferenceForm(graph);
  }
  MGE_ASSIGN_OR_RETURN(const ModelLoss added, AddModelLoss(model, options));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  AddLossOutput(model, added.whole == kNone ? AddMean(graph, added.parts) : added.whole);
  return InferTypes(graph);
}

}  // namespace mge
