// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/measure.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/interpreter.h"
#include "core/ops/reports/flops.h"
#include "core/plan/kernels/tolerance.h"
#include "core/plan/kernels/trial.h"
#include "core/plan/kernels/trial_inputs.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kWarmRuns = 2;
constexpr int kTimedRuns = 8;
// Times the best time, and microseconds, of a candidate's warm run. Another program may take the processor for some milliseconds.
constexpr double kHopeless = 10, kHopelessLeastUs = 20'000;
// Operations of a problem for which a reference kernel is used before the evaluators, and of one that is too large for them.
constexpr double kLargeFlops = 1 << 28, kTooLargeFlops = 1 << 30;

using Integers = TrialFill::Integers;

// Inputs to try if small values give an output that is one value throughout. Wider ranges reach comparisons, roundings and
// saturations, each with both signs. Special values reach predicates.
constexpr TrialFill kWider[] = {{Integers::kWide, 1, 8},
                                {Integers::kWide, 1, -8},
                                {Integers::kWide, 2, 100},
                                {Integers::kWide, 2, -100},
                                {Integers::kWide, 3, 8, true}};

// Returns the outputs that the reference evaluators of the group's nodes compute from these inputs.
absl::StatusOr<std::vector<Tensor>> Expected(const Graph& graph, const Group& group, std::span<const TrialInput> inputs,
                                             const StopControl* stop) {
  const StopCheck check = [&] { return stop ? stop->CheckStop() : absl::OkStatus(); };
  std::unordered_map<ValueId, HostValue> values;
  for (size_t k = 0; k < inputs.size(); ++k) values[group.inputs[k]].tensor = inputs[k].tensor;
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    std::vector<HostValue> in;
    for (ValueId v : node.inputs) in.push_back(v == kNone ? HostValue() : values[v]);
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> out, Evaluate(node, in, group.device->host_allocator(), check));
    for (size_t i = 0; i < node.outputs.size() && i < out.size(); ++i) {
      if (node.outputs[i] != kNone) values[node.outputs[i]] = std::move(out[i]);
    }
  }
  std::vector<Tensor> out;
  for (ValueId v : group.outputs) out.push_back(values[v].tensor);
  return out;
}

// Returns true for an error that says nothing about the candidate: too little memory, or a lost device. It may not occur
// again.
bool IsTransient(const absl::Status& status) {
  return status.code() == absl::StatusCode::kResourceExhausted || status.code() == absl::StatusCode::kUnavailable;
}

std::string TextOf(const absl::Status& status) {
  std::string out = ErrorTitle(status);
  if (ErrorParts parts = PartsOf(status); !parts.what.empty()) out += ": " + parts.what;
  return out;
}

// Inputs with the expected outputs.
struct Sample {
  std::vector<TrialInput> inputs;
  std::vector<Tensor> expected;  // empty: no reference
};

struct Case {
  Sample timed;                         // small values; also used for timing
  std::vector<Sample> wider;            // further samples, if an output of `timed` is one value throughout
  std::string expected_of;              // the kernel that computed the expected outputs; empty: the reference evaluators
  std::string unchecked;                // the reason why wrong results might not be noticed; empty: results are checked
  bool unchecked_is_transient = false;  // true: checks may succeed at another time or with other weights
  std::vector<const OpDef*> ops;
};

// A function that returns the expected outputs for its inputs.
using Truth = std::function<absl::StatusOr<std::vector<Tensor>>(std::span<const TrialInput>)>;

// Compares the outputs of the trial's last run with the sample. Returns "" if they agree, else the difference. Fails if the
// outputs cannot be read.
absl::StatusOr<std::string> WhyWrong(Trial& trial, const Sample& sample, const OwnedCandidate& candidate, const Case& data) {
  for (size_t i = 0; i < sample.expected.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(Tensor got, trial.Output(i));
    double tolerance = ToleranceOf(data.ops, sample.expected[i].dtype(), candidate.attributes);
    std::string why = WhyDifferent(got, sample.expected[i], tolerance);
    if (why.empty()) continue;
    why = fmt::format("wrong results: output {}: {}", i, why);
    return data.expected_of.empty() ? why : fmt::format("{} (against kernel '{}')", why, data.expected_of);
  }
  return std::string();
}

// Returns the candidate with PLAIN in place of ANY layouts.
OwnedCandidate Settled(OwnedCandidate candidate) {
  for (std::vector<mge_layout>* list : {&candidate.inputs, &candidate.outputs}) {
    for (mge_layout& l : *list) {
      if (l.kind == MGE_LAYOUT_ANY) l = PlainLayout();
    }
  }
  return candidate;
}

// Returns "" if the candidate's trial stays within the memory limit, else the reason.
absl::StatusOr<std::string> WhyTooLarge(const mge_problem& problem, const OwnedCandidate& candidate,
                                        const MeasureLimits& limits) {
  MGE_ASSIGN_OR_RETURN(uint64_t bytes, Trial::Bytes(problem, candidate));
  if (bytes <= limits.bytes) return std::string();
  return fmt::format("not timed: it takes {} bytes; the limit for timing is {} bytes", bytes, limits.bytes);
}

// Runs a candidate once and returns its outputs.
absl::StatusOr<std::vector<Tensor>> ResultsOf(const Group& group, const mge_problem& problem, const OwnedCandidate& offered,
                                              std::span<const TrialInput> inputs, const MeasureLimits& limits) {
  const OwnedCandidate candidate = Settled(offered);
  MGE_ASSIGN_OR_RETURN(std::string large, WhyTooLarge(problem, candidate, limits));
  if (!large.empty()) return Fail(errors::kOverBudget, std::move(large));
  if (limits.observer) limits.observer->Begin(candidate.id);
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

// Returns the number of operations of the group; 0 if it is unknown.
double FlopsOfGroup(const Graph& graph, const Group& group) {
  double sum = 0;
  for (NodeId id : group.nodes) sum += std::max(FlopsOf(graph, graph.node(id)), 0.0);
  return sum;
}

// Returns true if an input that is no constant has integers. Operators accept only some integers as indices or divisors.
// Evaluators report the others, kernels may not.
bool ReadsIntegers(const Graph& graph, const Group& group) {
  return std::any_of(group.inputs.begin(), group.inputs.end(), [&](ValueId v) {
    return graph.value(v).role != Role::kConstant && DispatchInteger(graph.value(v).type.dtype, [](auto) {});
  });
}

// Sets the expected outputs with a kernel that is marked as reference. Returns a function for further samples. If there is
// no such kernel or it fails, returns nullptr and sets data.unchecked. `why`: the reason why the evaluators are not used.
Truth ExpectOfReference(const Group& group, const mge_problem& problem, const MeasureLimits& limits, const std::string& why,
                        Case& data) {
  std::string none = "no kernel is marked as the reference";
  for (const OwnedCandidate& offered : group.candidates.offered) {
    if (!(offered.attributes & MGE_KERNEL_REFERENCE)) continue;
    Truth truth = [&](std::span<const TrialInput> inputs) { return ResultsOf(group, problem, offered, inputs, limits); };
    absl::StatusOr<std::vector<Tensor>> results = truth(data.timed.inputs);
    if (limits.observer) limits.observer->End();
    if (results.ok()) {
      data.timed.expected = *std::move(results);
      data.expected_of = offered.id;
      return truth;
    }
    data.unchecked_is_transient |= IsTransient(results.status());
    none = fmt::format("the reference kernel '{}' failed: {}", offered.id, TextOf(results.status()));
  }
  data.unchecked = fmt::format("its results were not checked: the host cannot compute them ({}), and {}", why, none);
  return nullptr;
}

// Returns true if a node converts floats to integers. ONNX does not define the result for floats outside of the integer
// range.
bool MakesIntegersOfReals(const Graph& graph, const Group& group) {
  auto type = [&](ValueId v) { return v == kNone ? DType::kUndefined : graph.value(v).type.dtype; };
  return std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return !node.inputs.empty() && DispatchFloating(type(node.inputs[0]), [](auto) {}) &&
           DispatchInteger(type(node.outputs[0]), [](auto) {});
  });
}

// Adds samples until no expected output is the same single value in all of them, since a kernel that always writes that
// value would pass. Small random inputs often give one value: a comparison with a far number, a clip, an index of the largest.
// So wider and special values are tried, in the order of kWider, and only samples that change a constant output are kept. If
// an output stays constant, the results count as not checked, with the reason. `integers`: a kind that the operators accept.
void AddWider(const Graph& graph, const Group& group, const Truth& truth, Integers integers, const StopControl* stop,
              Case& data) {
  const std::vector<Tensor>& first = data.timed.expected;
  std::vector<bool> same(first.size(), true);
  auto adds_information = [&](const std::vector<Tensor>& expected) {
    bool news = false;
    for (size_t i = 0; i < first.size(); ++i) {
      if (expected[i].shape() != first[i].shape()) return false;
      if (!same[i] || AgreesWithFirst(first[i], expected[i], ToleranceOf(data.ops, first[i].dtype(), 0))) continue;
      same[i] = false;
      news = true;
    }
    return news;
  };
  for (size_t i = 0; i < first.size(); ++i) same[i] = first[i].elements() != 0;
  adds_information(first);
  const std::vector<TrialInput>& inputs = data.timed.inputs;
  auto varies = [](const TrialInput& in) { return !in.constant && in.tensor.elements() != 0; };
  if (std::none_of(inputs.begin(), inputs.end(), varies)) return;
  // An evaluator reports inputs that it does not accept. A kernel may not, so it gets only kinds that are known to be valid.
  const bool may_refuse = data.expected_of.empty();
  auto first_constant_output = [&] { return static_cast<size_t>(std::find(same.begin(), same.end(), true) - same.begin()); };
  const bool positive = MakesIntegersOfReals(graph, group);  // non-negative values below 128, which every integer type holds
  for (TrialFill fill : kWider) {
    fill.positive = positive;
    for (Integers kind : {fill.integers, integers}) {
      if (first_constant_output() == same.size() || (stop && !stop->CheckStop().ok())) return;
      // Special values are for predicates only: other kernels may differ in their results for them.
      if (fill.special && first[first_constant_output()].dtype() != DType::kBool) break;
      if (kind == Integers::kWide && !may_refuse) continue;
      fill.integers = kind;
      Sample sample;
      absl::Status made = [&]() -> absl::Status {
        MGE_ASSIGN_OR_RETURN(sample.inputs, MakeInputs(graph, group, fill));
        MGE_ASSIGN_OR_RETURN(sample.expected, truth(sample.inputs));
        return absl::OkStatus();
      }();
      data.unchecked_is_transient |= IsTransient(made);
      if (!made.ok()) continue;
      if (adds_information(sample.expected)) data.wider.push_back(std::move(sample));
      break;
    }
  }
  if (first_constant_output() == same.size()) return;
  // Times are stored for a problem with any weights, but these weights may be the cause.
  data.unchecked_is_transient |= std::any_of(inputs.begin(), inputs.end(), [](const TrialInput& in) { return in.constant; });
  data.unchecked = fmt::format("its results were not checked: output {} was the same for all inputs that were tried",
                               first_constant_output());
}

// `best_us`: the least time of the candidates before; negative: none.
Measurement MeasureOne(TrialBench& bench, const mge_problem& problem, const OwnedCandidate& offered, const Case& data,
                       const MeasureLimits& limits, double best_us) {
  const OwnedCandidate candidate = Settled(offered);
  Measurement m;
  auto failed = [&](const absl::Status& status) {
    m.fault = TextOf(status);
    m.kept = !IsTransient(status);
    return m;
  };
  absl::StatusOr<std::string> large = WhyTooLarge(problem, candidate, limits);
  if (!large.ok()) return failed(large.status());
  if (!large->empty()) {
    m.fault = *std::move(large);
    return m;
  }
  auto wrong_for = [&](std::string why) {
    m.wrong = m.kept = true;
    m.fault = std::move(why);
    return m;
  };
  for (const Sample& sample : data.wider) {
    absl::StatusOr<std::string> wrong = [&]() -> absl::StatusOr<std::string> {
      MGE_ASSIGN_OR_RETURN(std::shared_ptr<Trial> trial, Trial::Create(bench, problem, candidate, sample.inputs));
      MGE_RETURN_IF_ERROR(trial->Run().status());
      return WhyWrong(*trial, sample, candidate, data);
    }();
    if (!wrong.ok()) return failed(wrong.status());
    if (!wrong->empty()) return wrong_for(*std::move(wrong));
  }
  absl::StatusOr<std::shared_ptr<Trial>> trial = Trial::Create(bench, problem, candidate, data.timed.inputs);
  if (!trial.ok()) return failed(trial.status());
  double spent = 0, best = -1;
  for (int i = 0; i < kWarmRuns + kTimedRuns && (i == 0 || spent < limits.seconds * 1e6); ++i) {
    absl::StatusOr<double> us = (*trial)->Run();
    if (!us.ok()) return failed(us.status());
    if (i == 0) {
      absl::StatusOr<std::string> wrong = WhyWrong(**trial, data.timed, candidate, data);
      if (!wrong.ok()) return failed(wrong.status());
      if (!wrong->empty()) return wrong_for(*std::move(wrong));
      (*trial)->Capture();
    }
    spent += *us;
    if (i >= kWarmRuns || best < 0) best = best < 0 || i == kWarmRuns ? *us : std::min(best, *us);
    if (i + 1 == kWarmRuns && best_us >= 0 && *us > std::max(kHopeless * best_us, kHopelessLeastUs)) {
      best = *us;
      break;
    }
  }
  m.us = best;
  m.kept = !data.unchecked_is_transient || data.unchecked.empty();
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
  std::string why;  // the reason why the evaluators give no results
  for (NodeId id : group.nodes) {
    data.ops.push_back(graph.node(id).def);
    random |= data.ops.back()->Is(kRandom);
    if (!data.ops.back()->eval) why = fmt::format("there is no evaluator of {}", graph.node(id).op);
  }
  const mge_problem problem = ProblemOf(group, threads);
  Truth truth;
  TrialFill fill;
  // Tries the evaluators with one kind of inputs after the other, until they accept one.
  auto by_evaluators = [&]() -> absl::Status {
    for (Integers kind : {Integers::kBits, Integers::kPositive, Integers::kOnes, Integers::kZeros}) {
      fill.integers = kind;
      MGE_ASSIGN_OR_RETURN(data.timed.inputs, MakeInputs(graph, group, fill));
      if (random || (kind == Integers::kBits && !why.empty())) break;
      truth = [&](std::span<const TrialInput> inputs) { return Expected(graph, group, inputs, limits.stop); };
      absl::StatusOr<std::vector<Tensor>> expected = truth(data.timed.inputs);
      if (expected.ok()) {
        data.timed.expected = *std::move(expected);
        break;
      }
      why = TextOf(expected.status());
      data.unchecked_is_transient = IsTransient(expected.status());
      if (data.unchecked_is_transient) break;  // too little memory for the evaluators; the candidates may still fit
    }
    return absl::OkStatus();
  };
  const double flops = random || ReadsIntegers(graph, group) ? 0 : FlopsOfGroup(graph, group);
  if (flops > kTooLargeFlops) why = fmt::format("{:.2g} operations take too long", flops);
  if (flops > kLargeFlops) {
    MGE_ASSIGN_OR_RETURN(data.timed.inputs, MakeInputs(graph, group, fill));
    truth = ExpectOfReference(group, problem, limits, why, data);
  }
  if (!truth && flops <= kTooLargeFlops) {
    data.unchecked.clear();
    data.unchecked_is_transient = false;
    MGE_RETURN_IF_ERROR(by_evaluators());
    if (!random && data.timed.expected.empty()) truth = ExpectOfReference(group, problem, limits, why, data);
  }
  if (!data.timed.expected.empty()) AddWider(graph, group, truth, fill.integers, limits.stop, data);
  if (limits.observer) limits.observer->End();
  std::vector<Measurement> out;
  double best_us = -1;
  auto stopped = [&] { return limits.stop && !limits.stop->CheckStop().ok(); };
  for (int c : which) {
    if (stopped()) break;
    const OwnedCandidate& candidate = group.candidates.offered[c];
    if (limits.observer) limits.observer->Begin(candidate.id);
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<TrialBench> bench, TrialBench::Create(*group.device, limits.stop));
    Measurement m = MeasureOne(*bench, problem, candidate, data, limits, best_us);
    if (m.us >= 0) best_us = best_us < 0 ? m.us : std::min(best_us, m.us);
    if (m.us < 0 && stopped()) break;  // the run was stopped; the candidate did not fail
    if (limits.observer) limits.observer->Result(candidate.id, m);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace mge
