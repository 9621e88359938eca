// SPDX-License-Identifier: Apache-2.0
// Operators of eager mode: an operator with its attributes, or the gradient of one, ready to run on inputs of these kinds.
//
// An eager operator is a small graph whose shapes are unknown, and a session for it. The session keeps a plan for each
// signature of shapes, so that a repeated call only looks up its plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph.h"

namespace mge {

// The operator that a caller names.
struct OperatorRequest {
  std::string op = {};      // "MatMul"
  std::string domain = {};  // "" is ONNX's
  int version = 0;          // of the domain's operator set; 0: the newest
  Attributes attrs = {};
  // 0: the operator's required outputs, or as many as its attribute num_outputs says.
  size_t outputs = 0;
};

// An input of a call.
struct Operand {
  bool given = false;  // false: an optional input that is absent
  ValueType type = {};
  /*nullable*/ const Tensor* host = nullptr;  // the elements, for a host operand
};

// Returns the number of outputs that a request asks for, and that of the node: the rule of a random operator must read what the
// operator drew, so that its optional outputs are computed too.
size_t RequestedOutputs(const OperatorRequest& request);
size_t AllOutputs(const OperatorRequest& request);

class EagerOperator;

// The computation of the gradients of an operator's inputs.
struct OperatorGradient {
  // A gradient: none (the outputs do not depend on the input), one of `operands`, or a result of `op`.
  struct Source {
    enum class Kind { kNone, kOperand, kResult } kind = Kind::kNone;
    size_t index = 0;
  };
  std::shared_ptr<EagerOperator> op;  // nullptr: nothing is to compute
  // The inputs of `op`, as indices into the list: inputs of the call, its outputs, the gradients of its outputs.
  std::vector<size_t> operands;
  std::vector<Source> gradients;  // for each wanted input; kOperand is an index into that list
};

// Thread-safe.
class EagerOperator {
 public:
  // Creates the operator. Fails with the errors of BindNode() and InferTypes().
  static absl::StatusOr<std::shared_ptr<EagerOperator>> Create(const OperatorRequest& request,
                                                               std::span<const Operand> operands);
  // Creates an operator of a graph whose types are inferred. `slots` are the inputs of a call that the graph's inputs are.
  EagerOperator(std::string name, Graph graph, std::vector<size_t> slots);

  const std::string& name() const { return name_; }  // "MatMul", "gradient of MatMul"
  const Graph& graph() const { return graph_; }
  // Returns the inputs of a call that the graph's inputs are. Others are absent, or constants of the graph.
  std::span<const size_t> slots() const { return slots_; }
  // Returns the number of outputs that the caller asked for. The graph may have more: what gradients of random operators read.
  size_t outputs() const { return outputs_; }
  size_t all_outputs() const { return graph_.outputs().size(); }
  // Returns whether equal inputs give equal outputs, so that outputs may be computed again.
  bool pure() const { return pure_; }
  // Returns whether the host can compute a call in place of a device (plan.host_compute): the operator is elementwise, and its
  // inputs and outputs are tensors of at most kHostComputeElements elements.
  bool IsHostComputable(std::span<const Operand> operands);

  // Returns the types of all outputs for the inputs of a call. Fails if the shapes violate the operator's rules.
  absl::StatusOr<std::vector<ValueType>> Infer(std::span<const Operand> operands);
  // Returns the session on these devices with these settings, which are always the same. Creates it at the first call.
  absl::StatusOr<std::shared_ptr<Session>> SessionOn(const std::shared_ptr<Runtime>& runtime, const std::string& spec,
                                                     std::shared_ptr<const Snapshot> settings);
  // Likewise, of the session that computes on the host.
  absl::StatusOr<std::shared_ptr<Session>> SessionOnHost(const std::shared_ptr<Runtime>& runtime,
                                                         std::shared_ptr<const Snapshot> settings);

  // Returns how to compute the gradients of the wanted inputs of a call from the outputs that have gradients. `host` are the
  // elements of those inputs of the call that are host operands, else nullptr: some rules need constants. Fails with
  // kUnsupportedFeature if a rule is missing.
  absl::StatusOr<std::shared_ptr<const OperatorGradient>> GradientOf(const std::vector<bool>& has_gradient,
                                                                     const std::vector<bool>& wanted,
                                                                     std::span<const Tensor* const> host);
  // Returns whether gradients may reach this input of a call.
  bool CarriesGradient(size_t input) const;

 private:
  absl::StatusOr<std::shared_ptr<const OperatorGradient>> MakeGradient(const std::vector<bool>& has_gradient,
                                                                       const std::vector<bool>& wanted,
                                                                       std::span<const Tensor* const> constants) const;
  // Returns `session`, a member. Creates it at the first call.
  absl::StatusOr<std::shared_ptr<Session>> OnlySession(std::shared_ptr<Session>& session,
                                                       const std::shared_ptr<Runtime>& runtime,
                                                       const SessionOptions& options);

  const std::string name_;
  const Graph graph_;
  const std::vector<size_t> slots_;
  const bool pure_;
  size_t outputs_;
  std::mutex mutex_;                                                  // guards the members below
  std::unordered_map<std::string, std::vector<ValueType>> inferred_;  // by the sizes of the inputs
  std::shared_ptr<Session> session_, host_session_;
  bool gradient_needs_constants_ = false;
  std::map<std::string, std::shared_ptr<const OperatorGradient>> gradients_;
};

// Returns the error of a call whose inputs or attributes an operator refuses, from that of its node.
absl::Status RefusedCall(const absl::Status& status, std::string_view op, std::span<const Operand> operands);

// Returns which host operands must be constants of the operator, because the types of its outputs depend on their elements:
// the shape of Reshape, the axes of ReduceSum. Fails like EagerOperator::Create().
absl::StatusOr<std::vector<bool>> ConstantOperands(const OperatorRequest& request, std::span<const Operand> operands);

}  // namespace mge
