// SPDX-License-Identifier: Apache-2.0
#include "core/ops/interpreter.h"

#include "core/ops/eval_context.h"
#include "core/ops/schema.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status CheckProduced(const Value& declared, const HostValue& value) {
  if (value.kind != ValueKind::kTensor || declared.kind != ValueKind::kTensor) return absl::OkStatus();
  TensorType actual{.dtype = value.tensor.dtype(), .has_rank = true, .dims = value.tensor.shape()};
  return MergeTypes(declared.type, actual, declared.name).status();
}

}  // namespace

class Interpreter::Context : public HostEvalContext {
 public:
  Context(Interpreter& owner, const Graph& graph, const Node& node, std::vector<const HostValue*> inputs,
          const std::vector<HostValue>& values)
      : HostEvalContext(node, std::move(inputs), owner.allocator_, owner.stop_,
                        NodeSeed(node, owner.seed_ + 0x9e3779b97f4a7c15u * ++owner.random_nodes_run_)),
        owner_(owner),
        graph_(graph),
        values_(values) {}

  TensorType output_type(int i) const override {
    return has_output(i) ? graph_.value(node().outputs[i]).type : TensorType{};
  }

  absl::StatusOr<std::vector<HostValue>> RunBody(const Graph& body, std::vector<HostValue> inputs) override {
    for (ValueId v : CapturesOf(node(), body)) inputs.push_back(values_[v]);
    MGE_RETURN_IF_ERROR(CheckStop());
    return owner_.Run(body, std::move(inputs));
  }

 private:
  Interpreter& owner_;
  const Graph& graph_;
  const std::vector<HostValue>& values_;
};

absl::StatusOr<const Interpreter::Program*> Interpreter::Prepare(const Graph& graph) {
  std::unique_ptr<Program>& slot = programs_[&graph];
  if (slot) return slot.get();
  auto program = std::make_unique<Program>();
  MGE_ASSIGN_OR_RETURN(program->order, graph.TopologicalOrder());
  program->last_uses.resize(program->order.size());
  std::vector<char> needed(graph.value_count(), 0);
  for (ValueId v : graph.outputs()) needed[v] = 1;
  for (size_t i = program->order.size(); i-- > 0;) {
    const Node& node = graph.node(program->order[i]);
    for (const auto* list : {&node.inputs, &node.captures, &node.outputs}) {
      for (ValueId v : *list) {
        if (v == kNone || needed[v] || graph.value(v).role == Role::kConstant) continue;
        needed[v] = 1;
        program->last_uses[i].push_back(v);
      }
    }
  }
  slot = std::move(program);
  return slot.get();
}

absl::StatusOr<std::vector<HostValue>> Interpreter::Run(const Graph& graph, std::vector<HostValue> inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return Fail(errors::kBadInput,
                fmt::format("graph '{}' has {} inputs, {} were given", graph.name, graph.inputs().size(), inputs.size()));
  }
  if (depth_ >= kMaxBodyDepth) {
    return Fail(errors::kLimit, fmt::format("bodies are nested deeper than {}", kMaxBodyDepth));
  }
  MGE_ASSIGN_OR_RETURN(const Program* program, Prepare(graph));
  std::vector<HostValue> values(graph.value_count());
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (!graph.value(v).dead && graph.value(v).role == Role::kConstant) values[v].tensor = graph.value(v).constant;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    ValueId v = graph.inputs()[i];
    MGE_RETURN_IF_ERROR(CheckProduced(graph.value(v), inputs[i]));
    values[v] = std::move(inputs[i]);
  }
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(d) { ++depth; }
    ~Deeper() { --depth; }
  } deeper(depth_);
  for (size_t step = 0; step < program->order.size(); ++step) {
    const Node& node = graph.node(program->order[step]);
    if (stop_) MGE_RETURN_IF_ERROR(stop_());
    std::vector<const HostValue*> arguments;
    for (ValueId v : node.inputs) arguments.push_back(v == kNone ? nullptr : &values[v]);
    Context context(*this, graph, node, std::move(arguments), values);
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, context.Run());
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      absl::Status produced = CheckProduced(graph.value(node.outputs[i]), results[i]);
      if (!produced.ok()) return AddWhere(std::move(produced), NodePlace(node));
      values[node.outputs[i]] = std::move(results[i]);
    }
    for (ValueId v : program->last_uses[step]) values[v] = {};
  }
  std::vector<HostValue> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(values[v]);
  return outputs;
}

absl::StatusOr<std::vector<HostValue>> Interpret(const Graph& graph, std::vector<HostValue> inputs, HostAllocator& allocator,
                                                 StopCheck stop, uint64_t seed) {
  return Interpreter(allocator, std::move(stop), seed).Run(graph, std::move(inputs));
}

}  // namespace mge
