// SPDX-License-Identifier: Apache-2.0
// Training steps on devices: parameters, states of optimizers and statistics have the values of their definitions.
#include "core/train/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

constexpr char kLine[] = "input x : float32[N,1]\nconst w = float32[1]<2>\ny = Mul(x, w)\noutput y\n";

class Training : public testing::TestWithParam<const char*> {
 protected:
  void Start(std::string_view text, const TrainingOptions& options, const char* device = GetParam()) {
    runtime_ = NewRuntime({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
    ASSERT_NE(runtime_, nullptr);
    auto graph = ParseGraphText(text);
    ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
    onnx::Model model;
    model.graph = *std::move(graph);
    auto parameters = MakeTrainingStep(model, options);
    ASSERT_TRUE(parameters.ok()) << FormatError(parameters.status());
    auto session = Session::Create(runtime_, std::move(model), {.device = device, .settings = settings_, .training = true});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    session_ = *session;
  }
  // Runs a step and returns the loss.
  double Step(std::vector<HostValue> inputs, float rate) {
    inputs.push_back({});
    inputs.back().tensor = Tensor::Scalar<float>(rate);
    auto r = ResultsOf(*session_, inputs);
    EXPECT_TRUE(r.ok()) << FormatError(r.status());
    return r.ok() ? (*r)[0] : 0;
  }
  std::vector<float> State(const std::string& name) {
    auto tensor = session_->ReadState(name);
    EXPECT_TRUE(tensor.ok()) << FormatError(tensor.status());
    if (!tensor.ok()) return {};
    return {tensor->Data<float>().begin(), tensor->Data<float>().end()};
  }

  std::vector<Assignment> settings_;
  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Devices, Training, testing::Values("cpu0", "virtual0", "host"));

template <typename T>
HostValue Of(Shape shape, std::vector<T> elements) {
  HostValue v;
  v.tensor = *Tensor::Create(kDTypeOf<T>, std::move(shape));
  std::copy(elements.begin(), elements.end(), v.tensor.MutableData<T>().begin());
  return v;
}

// The loss of y = 2 x against labels: mean((2 x - t)^2), with the gradient mean(2 x (2 x - t)).
TEST_P(Training, SgdWithMomentumAndDecayFollowsItsDefinition) {
  Start(kLine, {.loss = "mse", .momentum = 0.5, .weight_decay = 0.1});
  const auto x = Of<float>({2, 1}, {1, 3}), t = Of<float>({2, 1}, {1, 1});
  EXPECT_THAT(State("w"), ElementsAre(2));
  EXPECT_FLOAT_EQ(static_cast<float>(Step({x, t}, 0.1f)), 13);  // (1 + 25) / 2
  double w = 2, v = 2 * (1 * 1 + 3 * 5) / 2.0 + 0.1 * 2;
  w -= 0.1 * v;
  EXPECT_THAT(State("w"), ElementsAre(FloatNear(static_cast<float>(w), 1e-5f)));
  EXPECT_THAT(State("w.momentum"), ElementsAre(FloatNear(static_cast<float>(v), 1e-5f)));
  Step({x, t}, 0.1f);
  v = 0.5 * v + 2 * (1 * (w - 1) + 3 * (3 * w - 1)) / 2.0 + 0.1 * w;
  w -= 0.1 * v;
  EXPECT_THAT(State("w"), ElementsAre(FloatNear(static_cast<float>(w), 1e-4f)));
}

TEST_P(Training, AdamsFirstStepIsTheLearningRate) {
  Start(kLine, {.loss = "mse", .optimizer = "adam"});
  Step({Of<float>({2, 1}, {1, 3}), Of<float>({2, 1}, {1, 1})}, 0.25f);
  EXPECT_THAT(State("w"), ElementsAre(FloatNear(1.75f, 1e-5f)));
  EXPECT_THAT(State("optimizer.step"), ElementsAre(1));
}

TEST_P(Training, AdamwDecaysTheWeightsApartFromTheGradient) {
  Start(kLine, {.loss = "mse", .optimizer = "adamw", .weight_decay = 0.2});
  Step({Of<float>({2, 1}, {1, 3}), Of<float>({2, 1}, {1, 1})}, 0.25f);
  EXPECT_THAT(State("w"), ElementsAre(FloatNear(2 - 0.25f * (1 + 0.2f * 2), 1e-5f)));
}

TEST_P(Training, TheNormOfTheGradientsIsLimited) {
  Start(kLine, {.loss = "mse", .clip_norm = 0.5});
  Step({Of<float>({2, 1}, {1, 3}), Of<float>({2, 1}, {1, 1})}, 1);
  EXPECT_THAT(State("w"), ElementsAre(FloatNear(1.5f, 1e-5f)));
}

TEST_P(Training, BatchesOfOtherSizesUseTheSameParameters) {
  Start(kLine, {.loss = "mae"});
  Step({Of<float>({2, 1}, {1, 3}), Of<float>({2, 1}, {1, 1})}, 0.5f);  // the gradient is (1 + 3) / 2
  EXPECT_THAT(State("w"), ElementsAre(1));
  EXPECT_FLOAT_EQ(static_cast<float>(Step({Of<float>({1, 1}, {4}), Of<float>({1, 1}, {1})}, 0.5f)), 3);
  EXPECT_THAT(State("w"), ElementsAre(-1));
}

// Scores 0 and w for two classes: the loss of label 1 is log(1 + exp(-w)).
TEST_P(Training, CrossEntropyIgnoresLabelsThatAreNoClasses) {
  Start("input x : float32[N,2]\nconst w = float32[2]<0, 0>\ny = Mul(x, w)\noutput y\n", {});
  const double loss = Step({Of<float>({3, 2}, {1, 1, 1, 1, 1, 1}), Of<int64_t>({3}, {1, -1, 7})}, 1);
  EXPECT_NEAR(loss, std::log(2), 1e-6);
  EXPECT_THAT(State("w"), ElementsAre(FloatNear(-0.5f, 1e-6f), FloatNear(0.5f, 1e-6f)));
}

TEST_P(Training, ProbabilitiesOfASoftmaxGiveTheLossOfItsScores) {
  const char* text =
      "input x : float32[N,2]\nconst w = float32[2]<0, 200>\ns = Mul(x, w)\ny = Softmax(s) {axis=1}\noutput y\n";
  Start(text, {});
  const double loss = Step({Of<float>({1, 2}, {1, 1}), Of<int64_t>({1}, {0})}, 0);
  EXPECT_NEAR(loss, 200, 1e-3);  // the probability itself is 0 in float32
}

TEST_P(Training, BinaryCrossEntropyComparesScoresWithProbabilities) {
  Start(kLine, {.loss = "binary_cross_entropy"});
  const double loss = Step({Of<float>({2, 1}, {1, -100}), Of<float>({2, 1}, {1, 1})}, 1);
  EXPECT_NEAR(loss, (std::log1p(std::exp(-2)) + 200) / 2, 1e-4);
}

// The sum of 90000 squares and their number do not fit into float16.
TEST_P(Training, LossesOfFloat16OutputsAreFloat32) {
  Start("input x : float32[N,300]\nconst w = float32[300]<2>\nm = Mul(x, w)\ny = Cast(m) {to=10}\noutput y\n",
        {.loss = "mse"});
  std::vector<HostValue> outputs(2), inputs = {Of<float>({300, 300}, std::vector<float>(90'000, 1)), {}, {}};
  inputs[1].tensor = *Tensor::Create(DType::kF16, {300, 300});
  std::memset(inputs[1].tensor.mutable_data(), 0, static_cast<size_t>(inputs[1].tensor.bytes()));
  inputs[2].tensor = Tensor::Scalar<float>(300);
  RunState control;
  const absl::Status status = session_->Run(inputs, outputs, control);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  ASSERT_EQ(outputs[0].tensor.dtype(), DType::kF32);
  EXPECT_FLOAT_EQ(outputs[0].tensor.Data<float>()[0], 4);
  EXPECT_NEAR(State("w")[7], 2 - 300 * 4.0 / 300, 0.01);  // the gradient of one of 300 weights is 4 / 300
}

// Returns a tensor of a 16-bit type.
template <typename T>
HostValue Narrow(Shape shape, const std::vector<float>& elements) {
  return Of<T>(std::move(shape), std::vector<T>(elements.begin(), elements.end()));
}

// The gradient of (2 x - t)^2 for x = t = 1 is 2. A step of 0.0002 is lost in 16 bits near 2.
TEST_P(Training, ParametersOf16BitsAreRoundingsOfWideCopies) {
  Start("input x : bfloat16[N,1]\nconst w = bfloat16[1]<2>\ny = Mul(x, w)\noutput y\n", {.loss = "mse"});
  const auto x = Narrow<BFloat16>({1, 1}, {1});
  EXPECT_FLOAT_EQ(static_cast<float>(Step({x, x}, 1e-4f)), 1);
  EXPECT_THAT(State("w.master"), ElementsAre(FloatNear(2 - 2e-4f, 1e-6f)));
  EXPECT_EQ(static_cast<float>(session_->ReadState("w")->Data<BFloat16>()[0]), 2);
  Step({x, x}, 0.25f);
  EXPECT_THAT(State("w.master"), ElementsAre(FloatNear(1.5f - 2e-4f, 1e-6f)));
  EXPECT_EQ(static_cast<float>(session_->ReadState("w")->Data<BFloat16>()[0]), 1.5f);
  EXPECT_FALSE(session_->ReadState("optimizer.loss_scale").ok());  // bfloat16 has the range of float32
}

// The gradient is 2 * 8 * 4 = 64. Times 1024 or more, it is infinite in float16.
TEST_P(Training, StepsWithInfiniteGradientsChangeOnlyTheScaleOfTheLoss) {
  Start("input x : float16[N,1]\nconst w = float16[1]<2>\ny = Mul(x, w)\noutput y\n", {.loss = "mse", .optimizer = "adam"});
  const auto x = Narrow<Half>({1, 1}, {4}), t = Narrow<Half>({1, 1}, {0});
  for (float scale = 65536; scale > 512; scale /= 2) {
    EXPECT_THAT(State("optimizer.loss_scale"), ElementsAre(scale));
    EXPECT_FLOAT_EQ(static_cast<float>(Step({x, t}, 0.25f)), 64);
  }
  EXPECT_THAT(State("w.master"), ElementsAre(2));
  EXPECT_THAT(State("w.mean"), ElementsAre(0));
  EXPECT_THAT(State("optimizer.step"), ElementsAre(0));
  Step({x, t}, 0.25f);
  EXPECT_THAT(State("optimizer.loss_scale"), ElementsAre(512));
  EXPECT_THAT(State("optimizer.finite_steps"), ElementsAre(1));
  EXPECT_THAT(State("w.master"), ElementsAre(FloatNear(1.75f, 1e-5f)));
  EXPECT_THAT(State("w.mean"), ElementsAre(FloatNear(6.4f, 1e-5f)));
  EXPECT_EQ(static_cast<float>(session_->ReadState("w")->Data<Half>()[0]), 1.75f);
}

TEST_P(Training, BatchNormalizationUpdatesItsStatistics) {
  Start(R"(input x : float32[N,1]
const scale = float32[1]<1>
const bias = float32[1]<0>
const mean = float32[1]<10>
const var = float32[1]<1>
y = BatchNormalization(x, scale, bias, mean, var) {training_mode=1, momentum=0.75}
output y
)",
        {.loss = "mse"});
  Step({Of<float>({2, 1}, {1, 3}), Of<float>({2, 1}, {0, 0})}, 0);
  EXPECT_THAT(State("mean"), ElementsAre(FloatNear(8, 1e-5f)));  // 0.75 * 10 + 0.25 * 2
  EXPECT_THAT(State("var"), ElementsAre(FloatNear(1, 1e-5f)));   // 0.75 * 1 + 0.25 * 1
  EXPECT_THAT(State("scale"), ElementsAre(FloatNear(1, 1e-5f)));
}

// Blocks of a matrix product and elementwise nodes, whose results the gradients need.
std::string Blocks(int layers = 4) {
  std::string text = "input x : float32[64,64]\n", last = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    text += "const w" + n + " = float32[64,64]<0.01>\nm" + n + " = MatMul(" + last + ", w" + n + ")\n";
    last = "m" + n;
    for (const char* op : {"Tanh", "Softplus", "Sigmoid", "Softsign", "Sin", "Cos"}) {
      text += op + n + " = " + op + "(" + last + ")\n";
      last = op + n;
    }
  }
  return text + "output " + last + "\n";
}

TEST_P(Training, WithMirroringNeedsLessMemoryForTheSameResult) {
  int64_t bytes[2] = {};
  std::vector<float> weights[2];
  for (const bool mirror : {false, true}) {
    Start(Blocks(), {.loss = "mse", .mirror = mirror});
    Step({Numbers({64, 64}), Numbers({64, 64}, 2)}, 0.1f);
    bytes[mirror] = PlannedPeakBytes(*session_->last_plan());
    weights[mirror] = State("w0");
  }
  EXPECT_LT(bytes[1], bytes[0] * 3 / 4);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_P(Training, WithAPlanOfSublinearMemoryNeedsLessMemoryForTheSameResult) {
  int64_t bytes[2] = {};
  std::vector<float> weights[2];
  for (const bool sublinear : {false, true}) {
    TrainingOptions options = {.loss = "mse"};
    if (sublinear) options.sublinear = SublinearOptions{};
    Start(Blocks(16), options);
    Step({Numbers({64, 64}), Numbers({64, 64}, 2)}, 0.1f);
    bytes[sublinear] = PlannedPeakBytes(*session_->last_plan());
    weights[sublinear] = State("w0");
  }
  EXPECT_LT(bytes[1], bytes[0] * 3 / 4);
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_P(Training, UpdatesInPlaceGiveTheSameParameters) {
  if (GetParam() == std::string("host")) GTEST_SKIP() << "the reference evaluators have no kernel that adds";
  std::vector<float> weights[2];
  for (const bool inplace : {false, true}) {
    Start(Blocks(), {.loss = "mse", .momentum = 0.5, .inplace_update = inplace});
    for (int i = 0; i < 2; ++i) Step({Numbers({64, 64}), Numbers({64, 64}, 2)}, 0.1f);
    weights[inplace] = State("w3");
  }
  ASSERT_EQ(weights[0].size(), weights[1].size());
  for (size_t i = 0; i < weights[0].size(); ++i) ASSERT_NEAR(weights[0][i], weights[1][i], 1e-6);
}

TEST_P(Training, UpdatesInPlaceNeedMemoryForOneCopyOfTheParametersLess) {
  if (GetParam() == std::string("host")) GTEST_SKIP() << "the reference evaluators have no kernel that adds";
  constexpr int64_t kParameters = 2 * 64 * 1024 * 4;  // bytes
  for (const TrainingOptions& given :
       {TrainingOptions{.loss = "mse", .momentum = 0.5}, TrainingOptions{.loss = "mse", .optimizer = "adam"}}) {
    int64_t bytes[2] = {};
    for (const bool inplace : {false, true}) {
      TrainingOptions options = given;
      options.inplace_update = inplace;
      Start(
          "input x : float32[N,64]\nconst w = float32[64,1024]<0.1>\nconst v = float32[1024,64]<0.1>\n"
          "h = MatMul(x, w)\na = Relu(h)\ny = MatMul(a, v)\noutput y\n",
          options);
      Step({Numbers({1, 64}), Numbers({1, 64}, 2)}, 0.1f);
      bytes[inplace] = PlannedPeakBytes(*session_->last_plan());
    }
    EXPECT_LE(bytes[1], bytes[0] - kParameters * 9 / 10) << given.optimizer;
  }
}

TEST_P(Training, ComputesResultsAgainUntilABudgetHolds) {
  int64_t whole = 0;
  std::vector<float> weights;
  for (const int percent : {0, 75, 50}) {
    settings_.clear();
    const int64_t budget = whole * percent / 100;
    if (budget) settings_ = {{"train.memory_budget_bytes", std::to_string(budget)}};
    Start(Blocks(16), {.loss = "mse"});
    Step({Numbers({64, 64}), Numbers({64, 64}, 2)}, 0.1f);
    const int64_t bytes = PlannedPeakBytes(*session_->last_plan());
    if (!budget) {
      whole = bytes;
      weights = State("w0");
    } else {
      EXPECT_LE(bytes, budget * 103 / 100) << percent;
      EXPECT_EQ(State("w0"), weights);
    }
  }
}

TEST_P(Training, ABudgetThatIsTooSmallIsAnError) {
  settings_ = {{"train.memory_budget_bytes", "1024"}};
  Start(Blocks(), {.loss = "mse"});
  std::vector<HostValue> inputs = {Numbers({64, 64}), Numbers({64, 64}, 2), {}};
  inputs.back().tensor = Tensor::Scalar<float>(0.1f);
  const absl::Status status = ResultsOf(*session_, inputs).status();
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
  EXPECT_THAT(FormatError(status), HasSubstr("the budget is 1024"));
}

TEST_P(Training, AnOperationOfTheEngineRunsAsManyStepsAsTheSettingSays) {
  auto operations = [&](const char* setting, const char* value) {
    settings_ = {{setting, value}};
    Start(Blocks(), {.loss = "mse"});
    Step({Numbers({64, 64}), Numbers({64, 64}, 2)}, 0.1f);
    return session_->operations();
  };
  const uint64_t each = operations("engine.bulk_train", "0");
  EXPECT_EQ(each, session_->last_plan()->steps.size());
  EXPECT_EQ(operations("engine.bulk_train_steps", "1"), each);
  EXPECT_LE(operations("engine.bulk_train_steps", "7"), each / 2);
}

// The devices have kernels of their own for convolutions and their gradients, which read weights that change in every step.
TEST_P(Training, ConvolutionsChangeLikeThoseOfTheReference) {
  constexpr char kModel[] = R"(input x : float32[4,16,15,14]
const v = float32[24,16,3,3]<0.02>
const scale = float32[24]<1>
const bias = float32[24]<0>
const mean = float32[24]<0>
const var = float32[24]<1>
const w = float32[16,24,3,3]<0.01>
c = Conv(x, v) {pads=[1,1,1,1]}
n = BatchNormalization(c, scale, bias, mean, var) {training_mode=1}
p, i = MaxPool(n) {kernel_shape=[2,2], strides=[2,2]}
y = Conv(p, w) {pads=[1,1,1,1], strides=[2,2]}
output y
)";
  std::vector<float> image(4 * 16 * 15 * 14), labels(4 * 16 * 4 * 4);
  for (size_t k = 0; k < image.size(); ++k) image[k] = static_cast<float>(std::sin(static_cast<double>(k) * 0.37));
  for (size_t k = 0; k < labels.size(); ++k) labels[k] = static_cast<float>(k % 7) - 3;
  const auto x = Of<float>({4, 16, 15, 14}, image), t = Of<float>({4, 16, 4, 4}, labels);
  std::vector<double> losses[2];
  std::vector<float> weights[2];
  for (const char* device : {"host", GetParam()}) {
    const size_t at = losses[0].empty() ? 0 : 1;
    Start(kModel, {.loss = "mse", .momentum = 0.5}, device);
    for (int step = 0; step < 3; ++step) losses[at].push_back(Step({x, t}, 0.05f));
    weights[at] = State("v");
  }
  EXPECT_LT(losses[0][2], losses[0][0]);
  for (size_t k = 0; k < 3; ++k) EXPECT_NEAR(losses[1][k], losses[0][k], 1e-4 * losses[0][k]);
  EXPECT_THAT(weights[1], testing::Pointwise(testing::FloatNear(1e-4f), weights[0]));
}

TEST_P(Training, AStateThatDoesNotExistIsAnError) {
  Start(kLine, {.loss = "mse"});
  EXPECT_THAT(FormatError(session_->ReadState("v").status()), HasSubstr("no state 'v'"));
}

}  // namespace
}  // namespace mge
