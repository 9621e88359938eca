// SPDX-License-Identifier: Apache-2.0
#include "core/plan/measure.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/plan/tolerance.h"
#include "core/plan/trial.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kWarmRuns = 2;
constexpr int kTimedRuns = 8;

// Integers may be indices, divisors or conditions: the first kind that the operators accept is taken.
enum class Integers { kMixed, kOnes, kZeros };

// Small values that are neither zero nor all alike, the same on every machine.
void FillSeeded(Tensor& tensor, uint64_t seed, Integers integers) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<int>(state >> 40 & 0xff);
  };
  DispatchFixedSize(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& x : tensor.MutableData<T>()) {
      if constexpr (kIsFloating<T>) {
        x = static_cast<T>(static_cast<float>(next() - 128) / 256.0f + 0.001f);
      } else {
        x = static_cast<T>(integers == Integers::kMixed ? next() & 1 : integers == Integers::kOnes);
      }
    }
  });
}

absl::StatusOr<std::vector<TrialInput>> MakeInputs(const Graph& graph, const Group& group, Integers integers) {
  std::vector<TrialInput> inputs;
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    const Value& v = graph.value(group.inputs[k]);
    if (v.role == Role::kConstant) {
      inputs.push_back({v.constant, true});
      continue;
    }
    MGE_ASSIGN_OR_RETURN(Tensor t, Tensor::Create(v.type.dtype, v.type.dims, group.device->host_allocator()));
    FillSeeded(t, k + 1, integers);
    inputs.push_back({std::move(t), false});
  }
  return inputs;
}

// What the reference evaluators of the group's nodes make of these inputs, per output.
absl::StatusOr<std::vector<Tensor>> Expected(const Graph& graph, const Group& group, std::span<const TrialInput> inputs) {
  std::unordered_map<ValueId, HostValue> values;
  for (size_t k = 0; k < inputs.size(); ++k) values[group.inputs[k]].tensor = inputs[k].tensor;
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    std::vector<HostValue> in;
    for (ValueId v : node.inputs) in.push_back(v == kNone ? HostValue() : values[v]);
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> out, Evaluate(node, in, group.device->host_allocator()));
    for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
      if (node.outputs[i] != kNone) values[node.outputs[i]] = std::move(out[i]);
    }
  }
  std::vector<Tensor> out;
  for (ValueId v : group.outputs) out.push_back(values[v].tensor);
  return out;
}

// Empty if it is right; an error if the results could not be read.
absl::StatusOr<std::string> WhyWrong(Trial& trial, const std::vector<Tensor>& expected,
                                     const OwnedCandidate& candidate, std::span<const OpDef* const> ops) {
  for (size_t i = 0; i < expected.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(Tensor got, trial.Output(i));
    double tolerance = ToleranceOf(ops, expected[i].dtype(), candidate.attributes);
    std::string why = WhyDifferent(got, expected[i], tolerance);
    if (!why.empty()) return fmt::format("output {}: {}", i, why);
  }
  return std::string();
}

// Says nothing of the candidate: what does not fit into memory today may fit tomorrow, and a lost device comes back.
bool IsOfThisDay(const absl::Status& status) {
  return status.code() == absl::StatusCode::kResourceExhausted || status.code() == absl::StatusCode::kUnavailable;
}

std::string TextOf(const absl::Status& status) {
  std::string out = ErrorTitle(status);
  if (ErrorParts parts = PartsOf(status); !parts.what.empty()) out += ": " + parts.what;
  return out;
}

struct Case {
  std::vector<TrialInput> inputs;
  std::vector<Tensor> expected;  // empty: nothing to compare with
  std::string expected_of;       // the kernel whose results they are; empty: the reference evaluators'
  std::string unchecked;         // why there is nothing to compare with, though there should be
  bool unchecked_today = false;  // it may be otherwise at another time
  std::vector<const OpDef*> ops;
};

// With a layout wherever it would take any.
OwnedCandidate Settled(OwnedCandidate candidate) {
  for (std::vector<mge_layout>* list : {&candidate.inputs, &candidate.outputs}) {
    for (mge_layout& l : *list) {
      if (l.kind == MGE_LAYOUT_ANY) l = PlainLayout();
    }
  }
  return candidate;
}

// Empty if the candidate's trial keeps to the limit, else why not.
absl::StatusOr<std::string> WhyTooLarge(const mge_problem& problem, const OwnedCandidate& candidate,
                                        const MeasureLimits& limits) {
  MGE_ASSIGN_OR_RETURN(uint64_t bytes, Trial::Bytes(problem, candidate));
  if (!limits.bytes || bytes <= limits.bytes) return std::string();
  return fmt::format("not timed: it takes {} bytes, the timing of kernels may take {}", bytes, limits.bytes);
}

// The outputs of one run.
absl::StatusOr<std::vector<Tensor>> ResultsOf(const Group& group, const mge_problem& problem, const OwnedCandidate& offered,
                                              std::span<const TrialInput> inputs, const MeasureLimits& limits) {
  const OwnedCandidate candidate = Settled(offered);
  MGE_ASSIGN_OR_RETURN(std::string large, WhyTooLarge(problem, candidate, limits));
  if (!large.empty()) return Fail(errors::kOverBudget, std::move(large));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<TrialBench> bench, TrialBench::Create(*group.device, limits.stop));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Trial> trial, Trial::Create(*bench, problem, candidate, inputs));
  MGE_RETURN_IF_ERROR(trial->Run().status());
  std::vector<Tensor> out;
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(Tensor result, trial->Output(i));
    out.push_back(std::move(result));
  }
  return out;
}

// Where the host cannot say what the results are, the backend's own reference does, if it has one.
void ExpectOfReference(const Group& group, const mge_problem& problem, const MeasureLimits& limits, const std::string& why,
                       Case& data) {
  std::string none = "no kernel is marked as the reference";
  for (const OwnedCandidate& offered : group.candidates.offered) {
    if (!(offered.attributes & MGE_KERNEL_REFERENCE)) continue;
    absl::StatusOr<std::vector<Tensor>> results = ResultsOf(group, problem, offered, data.inputs, limits);
    if (results.ok()) {
      data.expected = *std::move(results);
      data.expected_of = offered.id;
      return;
    }
    data.unchecked_today |= IsOfThisDay(results.status());
    none = fmt::format("the reference kernel '{}' failed: {}", offered.id, TextOf(results.status()));
  }
  data.unchecked = fmt::format("its results were not checked: the host cannot compute them ({}), and {}", why, none);
}

Measurement MeasureOne(TrialBench& bench, const mge_problem& problem, const OwnedCandidate& offered, const Case& data,
                       const MeasureLimits& limits) {
  const OwnedCandidate candidate = Settled(offered);
  Measurement m;
  auto failed = [&](const absl::Status& status) {
    m.fault = TextOf(status);
    m.kept = !IsOfThisDay(status);
    return m;
  };
  absl::StatusOr<std::string> large = WhyTooLarge(problem, candidate, limits);
  if (!large.ok()) return failed(large.status());
  if (!large->empty()) {
    m.fault = *std::move(large);
    return m;
  }
  absl::StatusOr<std::shared_ptr<Trial>> trial = Trial::Create(bench, problem, candidate, data.inputs);
  if (!trial.ok()) return failed(trial.status());
  double spent = 0, best = -1;
  for (int i = 0; i < kWarmRuns + kTimedRuns && (i == 0 || spent < limits.seconds * 1e6); ++i) {
    absl::StatusOr<double> us = (*trial)->Run();
    if (!us.ok()) return failed(us.status());
    if (i == 0 && !data.expected.empty()) {
      absl::StatusOr<std::string> wrong = WhyWrong(**trial, data.expected, candidate, data.ops);
      if (!wrong.ok()) return failed(wrong.status());
      if (!wrong->empty()) {
        m.wrong = m.kept = true;
        m.fault = fmt::format("wrong results: {}", *wrong);
        if (!data.expected_of.empty()) m.fault += fmt::format(" (against kernel '{}')", data.expected_of);
        return m;
      }
    }
    if (i == 0) (*trial)->Capture();
    spent += *us;
    if (i >= kWarmRuns || best < 0) best = best < 0 || i == kWarmRuns ? *us : std::min(best, *us);
  }
  m.us = best;
  m.kept = !data.unchecked_today || data.unchecked.empty();
  m.unchecked = !data.unchecked.empty();
  m.fault = data.unchecked;
  return m;
}

}  // namespace

absl::StatusOr<std::vector<Measurement>> MeasureCandidates(const Graph& graph, const Group& group,
                                                           std::span<const int> which, uint32_t threads,
                                                           const MeasureLimits& limits) {
  Case data;
  bool random = false;
  std::string why;  // the evaluators give no results
  for (NodeId id : group.nodes) {
    data.ops.push_back(graph.node(id).def);
    random |= data.ops.back()->Is(kRandom);
    if (!data.ops.back()->eval) why = fmt::format("there is no evaluator of {}", graph.node(id).op);
  }
  for (Integers integers : {Integers::kMixed, Integers::kOnes, Integers::kZeros}) {
    MGE_ASSIGN_OR_RETURN(data.inputs, MakeInputs(graph, group, integers));
    if (random || (integers == Integers::kMixed && !why.empty())) break;
    absl::StatusOr<std::vector<Tensor>> expected = Expected(graph, group, data.inputs);
    if (expected.ok()) {
      data.expected = *std::move(expected);
      break;
    }
    why = TextOf(expected.status());
    data.unchecked_today = IsOfThisDay(expected.status());
    if (data.unchecked_today) break;  // too large for the evaluators; the candidates may still fit
  }
  mge_problem problem = ProblemOf(group, threads);
  if (!random && data.expected.empty()) ExpectOfReference(group, problem, limits, why, data);
  std::vector<Measurement> out;
  auto stopped = [&] { return limits.stop && !limits.stop->CheckStop().ok(); };
  for (int c : which) {
    if (stopped()) break;
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<TrialBench> bench, TrialBench::Create(*group.device, limits.stop));
    Measurement m = MeasureOne(*bench, problem, group.candidates.offered[c], data, limits);
    if (m.us < 0 && stopped()) break;  // which is not the candidate's fault
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace mge
