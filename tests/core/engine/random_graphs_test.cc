// SPDX-License-Identifier: Apache-2.0
// Compares random graphs with an executor that shares no memory. The planned run overwrites every buffer after the last step
// that needs it by the plan. A buffer freed too early therefore gives a wrong result.
#include <cstdlib>
#include <random>
#include <unordered_map>

#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

// A random graph of operators with bitwise equal results on every implementation.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    rows_ = 1 + Pick(9);
    columns_ = 1 + Pick(40);
    for (int i = 0, n = 1 + Pick(3); i < n; ++i) {
      graph.AddInput("x" + std::to_string(i), Type(false));
      values_[0].push_back(graph.inputs().back());
    }
    for (int i = 0, n = 2 + Pick(30); i < n; ++i) AddNode();
    for (int i = 0, n = 1 + Pick(3); i < n; ++i) graph.outputs().push_back(Any(Pick(2)));
  }
  HostValue Input() {
    HostValue v;
    v.tensor = *Tensor::Create(DType::kF32, {rows_, columns_});
    for (float& f : v.tensor.MutableData<float>()) f = static_cast<float>(Pick(2000)) / 7 - 100;
    return v;
  }
  Graph graph;

 private:
  int Pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  TensorType Type(bool turned) const {
    return {DType::kF32, true, turned ? Shape{columns_, rows_} : Shape{rows_, columns_}, {}};
  }
  ValueId Any(int turned) {
    if (values_[turned].empty()) turned = 1 - turned;
    return values_[turned][static_cast<size_t>(Pick(static_cast<int>(values_[turned].size())))];
  }
  void AddNode() {
    static constexpr const char* kUnary[] = {"Abs", "Neg", "Identity", "Transpose", "Neg", "Abs"};
    static constexpr const char* kBinary[] = {"Add", "Sub", "Mul", "Max"};
    int turned = values_[1].empty() ? 0 : Pick(2);
    Node node;
    bool unary = Pick(2);
    node.op = unary ? kUnary[Pick(6)] : kBinary[Pick(4)];
    if (node.op == "Mul" && graph.node_count() > 12) node.op = "Max";  // keeps values finite
    node.inputs = {Any(turned)};
    if (!unary) node.inputs.push_back(Any(turned));
    if (node.op == "Transpose") {
      node.attrs.Set("perm", Ints{1, 0});
      turned = 1 - turned;
    }
    node.name = "n" + std::to_string(graph.node_count());
    ValueId out = graph.AddTemporary("v", Type(turned));
    node.outputs = {out};
    NodeId id = graph.AddNode(std::move(node));
    ASSERT_TRUE(BindNode(graph, id).ok());
    values_[turned].push_back(out);
  }

  std::mt19937 random_;
  int rows_, columns_;
  std::vector<ValueId> values_[2];  // [0]: values of shape rows x columns, [1]: transposed
};

// Runs the graph with separate memory for every value.
std::vector<Tensor> RunNaively(const Graph& graph, const std::vector<HostValue>& inputs) {
  std::unordered_map<ValueId, HostValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i]] = inputs[i];
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    std::vector<HostValue> in;
    for (ValueId v : node.inputs) in.push_back(values[v]);
    values[node.outputs[0]] = (*Evaluate(node, in))[0];
  }
  std::vector<Tensor> out;
  for (ValueId v : graph.outputs()) out.push_back(values[v].tensor);
  return out;
}

// Returns the number of pairs of buffers that overlap although they are alive together.
int Overlaps(const Plan& plan) {
  int count = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const PlacedBuffer &a = plan.buffers[i], &b = plan.buffers[k];
      bool together = a.arena == b.arena && a.first <= b.last && b.first <= a.last;
      count += together && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
    }
  }
  return count;
}

// An observer that overwrites every buffer after its last step.
class Poison : public RunObserver {
 public:
  Poison(TunerRecord& record, uint64_t& count) : record_(record), count_(count) {}
  void BeginPlan(const std::shared_ptr<const Plan>& plan, std::string_view) override { plan_ = plan; }
  void EndPlan() override {}
  void BeginStep(int32_t step) override { step_ = step; }
  void EndStep() override {
    const int32_t unit = plan_->steps[static_cast<size_t>(step_)].unit;
    for (const PlacedBuffer& b : plan_->buffers) {
      if (b.last != unit) continue;
      std::memset(static_cast<char*>(record_.arena) + b.offset, 0xff, static_cast<size_t>(b.bytes));
      ++count_;
    }
  }
  void BeginPlanning() override {}
  void EndPlanning() override {}
  void BeginShare() noexcept override {}
  void EndShare() noexcept override {}
  void BeginChunk(uint32_t) noexcept override {}
  void EndChunk(uint32_t) noexcept override {}

 private:
  TunerRecord& record_;
  uint64_t& count_;
  std::shared_ptr<const Plan> plan_;
  int32_t step_ = 0;
};

TEST(RandomGraphs, GiveTheSameBitsAsAnExecutorThatSharesNoMemory) {
  const char* asked = std::getenv("MGE_TEST_RANDOM_GRAPHS");
  const unsigned count = asked ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 400;
  Host host({Set("select.strategy", "heuristic")}, "tuner_own0");
  uint64_t poisoned = 0;
  for (unsigned seed = 1; seed <= count; ++seed) {
    RandomGraph random(seed);
    std::vector<HostValue> inputs;
    for (size_t i = 0; i < random.graph.inputs().size(); ++i) inputs.push_back(random.Input());
    std::vector<Tensor> expected = RunNaively(random.graph, inputs);
    onnx::Model model;
    model.graph = random.graph;
    auto session = Session::Create(host.runtime, std::move(model), {.device = "tuner_own0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    std::vector<InputType> types;
    for (const HostValue& v : inputs) types.push_back(TypeOfValue(v));
    auto plan = *(*session)->PlanFor(types);
    ASSERT_EQ(Overlaps(*plan), 0) << "seed " << seed << "\n" << PlanText(*plan, true);

    Poison poison(host.record(), poisoned);
    RunState control;
    control.observer = &poison;
    std::vector<HostValue> out(expected.size());
    absl::Status status = (*session)->Run(inputs, out, control);
    ASSERT_TRUE(status.ok()) << FormatError(status);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::memcmp(out[i].tensor.data(), expected[i].data(), static_cast<size_t>(expected[i].bytes())), 0)
          << "seed " << seed << ", output " << i << "\n"
          << PlanText(*plan, true);
    }
  }
  EXPECT_GT(poisoned, count);
}

}  // namespace
}  // namespace mge
