// SPDX-License-Identifier: Apache-2.0
// Training sessions of the public API: parameters, and the model that they write.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <limits>
#include <sstream>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class TrainingSession : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge-training-XXXXXX";
    folder_ = mkdtemp(name);
    std::ofstream(folder_ + "/model.onnx", std::ios::binary) << model_;
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  SessionOptions Options(bool training) const {
    SessionOptions options;
    options.device = "host";
    if (training) options.training = TrainingOptions{.loss = "mse"};
    return options;
  }
  // Runs a step for x = 2 and the label 0. Returns the loss.
  float Step(Session& session) {
    Tensor x, labels, rate;
    EXPECT_TRUE(Tensor::Of<float>({1, 1}, {2}).MoveTo(x).ok());
    EXPECT_TRUE(Tensor::Of<float>({1, 1}, {0}).MoveTo(labels).ok());
    EXPECT_TRUE(Tensor::Of<float>({}, {0.125f}).MoveTo(rate).ok());
    std::vector<Tensor> outputs;
    const Tensor* inputs[] = {&x, &labels, &rate};
    const Status s = session.Run(inputs, outputs);
    EXPECT_TRUE(s.ok()) << s.text();
    return s.ok() ? outputs[0].data<float>()[0] : -1;
  }

  std::string rest_[2];  // parts of the model that a training does not change
  const std::string model_ = api_models::Line(rest_);
  std::string folder_;
  Runtime runtime_;
};

TEST_F(TrainingSession, WritesAModelWithItsParametersThatOtherSessionsLoad) {
  Session session;
  const Status loaded = Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  ASSERT_EQ(session.parameter_count(), 2u);
  EXPECT_EQ(session.parameter_name(0), "w");
  EXPECT_EQ(session.parameter_name(1), "b");
  EXPECT_EQ(Step(session), 6.25f);  // (2 w + b)^2; the gradient is 2 * 2.5 * (2, 1)
  Tensor w;
  ASSERT_TRUE(session.ReadState("w").MoveTo(w).ok());
  EXPECT_THAT(w.data<float>(), ElementsAre(1 - 0.125f * 10));
  const std::string written = folder_ + "/trained.onnx";
  const Status saved = session.Save(written);
  ASSERT_TRUE(saved.ok()) << saved.text();

  Session again, plain;
  ASSERT_TRUE(Session::Load(runtime_, written, Options(true)).MoveTo(again).ok());
  EXPECT_EQ(Step(again), Step(session));  // the second step of both
  ASSERT_TRUE(Session::Load(runtime_, written, Options(false)).MoveTo(plain).ok());
  EXPECT_EQ(plain.input_count(), 1u);
  EXPECT_EQ(plain.parameter_count(), 0u);
}

TEST_F(TrainingSession, GivesCopiesOfItsStatesAlsoBeforeTheFirstStep) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session).ok());
  Tensor w;
  ASSERT_TRUE(session.ReadState("w").MoveTo(w).ok());
  w.data<float>()[0] = 100;
  EXPECT_EQ(Step(session), 6.25f);  // of the model's own weights
}

TEST_F(TrainingSession, ContinuesFromStatesThatWereWritten) {
  SessionOptions options = Options(true);
  options.training->momentum = 0.5;
  Session first, second;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(first).ok());
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(second).ok());
  Step(first);
  std::vector<std::string> names;
  for (size_t i = 0; i < first.state_count(); ++i) names.emplace_back(first.state_name(i));
  EXPECT_THAT(names, UnorderedElementsAre("w", "b", "w.momentum", "b.momentum", "session.random"));
  EXPECT_EQ(mge_session_state_name(first.get(), names.size()), nullptr);
  for (const std::string& name : names) {  // before a run of the second session
    Tensor state;
    ASSERT_TRUE(first.ReadState(name).MoveTo(state).ok());
    const Status written = second.WriteState(name, state);
    EXPECT_TRUE(written.ok()) << written.text();
  }
  EXPECT_EQ(Step(second), Step(first));
  Tensor five, w;
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {5}).MoveTo(five).ok());
  ASSERT_TRUE(second.WriteState("w", five).ok());  // after a run
  ASSERT_TRUE(second.ReadState("w").MoveTo(w).ok());
  EXPECT_THAT(w.data<float>(), ElementsAre(5));
  EXPECT_NE(Step(second), Step(first));
}

TEST_F(TrainingSession, ContinuesFromACheckpointWithTheSameBits) {
  for (const char* device : {"host", "host,host"}) {
    SessionOptions options = Options(true);
    options.device = device;
    options.training->data_parallel = true;
    options.training->optimizer = "adam";
    Session first, second;
    ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(first).ok());
    ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(second).ok());
    Step(first);
    const std::string path = folder_ + "/state.ckpt";
    const Status saved = first.SaveCheckpoint(path, "row 7");
    ASSERT_TRUE(saved.ok()) << saved.text();
    std::string notes;
    const Status loaded = second.LoadCheckpoint(path).MoveTo(notes);
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    EXPECT_EQ(notes, "row 7");
    EXPECT_EQ(Step(second), Step(first));
    EXPECT_EQ(Step(second), Step(first));
    for (size_t i = 0; i < first.state_count(); ++i) {
      Tensor a, b;
      ASSERT_TRUE(first.ReadState(std::string(first.state_name(i))).MoveTo(a).ok());
      ASSERT_TRUE(second.ReadState(std::string(first.state_name(i))).MoveTo(b).ok());
      EXPECT_EQ(std::memcmp(a.raw_data(), b.raw_data(), static_cast<size_t>(a.bytes())), 0) << first.state_name(i);
    }
  }
}

TEST_F(TrainingSession, RefusesCheckpointsOfOtherTrainingsAndDamagedOnes) {
  Session sgd, adam;
  SessionOptions options = Options(true);
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(sgd).ok());
  options.training->optimizer = "adam";
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(adam).ok());
  const std::string path = folder_ + "/state.ckpt";
  ASSERT_TRUE(adam.SaveCheckpoint(path).ok());
  EXPECT_THAT(sgd.LoadCheckpoint(path).status().text(), HasSubstr("its optimizer is adam, the session has sgd"));
  EXPECT_THAT(sgd.LoadCheckpoint(folder_ + "/none").status().text(), HasSubstr("none"));
  std::stringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  for (size_t i = 0; i < bytes.size(); ++i) {  // each byte, and each length
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x11);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_EQ(adam.LoadCheckpoint(path).status().id(), 308) << i;
    std::ofstream(path, std::ios::binary) << bytes.substr(0, i);
    EXPECT_EQ(adam.LoadCheckpoint(path).status().id(), 308) << i;
  }
}

TEST_F(TrainingSession, EvaluatesWithItsPresentParametersAndChangesNothing) {
  for (const char* device : {"host", "host,host"}) {
    SessionOptions options = Options(true);
    options.device = device;
    options.training->data_parallel = true;
    options.training->optimizer = "adam";
    Session session, evaluation;
    ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(session).ok());
    const Status made = session.Evaluation().MoveTo(evaluation);
    ASSERT_TRUE(made.ok()) << made.text();
    EXPECT_EQ(evaluation.input_count(), 2u);
    EXPECT_EQ(evaluation.parameter_count(), 0u);
    auto loss = [&] {
      Tensor x, labels;
      EXPECT_TRUE(Tensor::Of<float>({1, 1}, {2}).MoveTo(x).ok());
      EXPECT_TRUE(Tensor::Of<float>({1, 1}, {0}).MoveTo(labels).ok());
      std::vector<Tensor> outputs;
      const Tensor* inputs[] = {&x, &labels};
      const Status s = evaluation.Run(inputs, outputs);
      EXPECT_TRUE(s.ok()) << s.text();
      return s.ok() ? outputs[0].data<float>()[0] : -1;
    };
    EXPECT_EQ(loss(), 6.25f);
    for (int i = 0; i < 3; ++i) {
      const float before = loss();
      EXPECT_EQ(before, Step(session));
    }
    Tensor random;
    ASSERT_TRUE(session.ReadState("session.random").MoveTo(random).ok());
    EXPECT_EQ(random.data<int64_t>()[1], 3);
  }
}

TEST_F(TrainingSession, StopsAtALossThatIsNotFiniteWithoutAChange) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session).ok());
  Tensor x, labels, rate, w;
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {std::numeric_limits<float>::infinity()}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {0}).MoveTo(labels).ok());
  ASSERT_TRUE(Tensor::Of<float>({}, {0.125f}).MoveTo(rate).ok());
  const Tensor* inputs[] = {&x, &labels, &rate};
  std::vector<Tensor> outputs;
  const Status s = session.Run(inputs, outputs);
  EXPECT_EQ(s.id(), 312);
  EXPECT_THAT(s.text(), AllOf(HasSubstr("step 1: the loss is infinity"), HasSubstr("input 'x' has infinity at element 0")));
  ASSERT_TRUE(session.ReadState("w").MoveTo(w).ok());
  EXPECT_THAT(w.data<float>(), ElementsAre(1));
  EXPECT_EQ(Step(session), 6.25f);  // goes on
}

TEST_F(TrainingSession, RefusesAnEmptyBatch) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session).ok());
  Tensor x, labels, rate;
  ASSERT_TRUE(Tensor::Create(MGE_DTYPE_F32, {0, 1}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Create(MGE_DTYPE_F32, {0, 1}).MoveTo(labels).ok());
  ASSERT_TRUE(Tensor::Of<float>({}, {0.125f}).MoveTo(rate).ok());
  const Tensor* inputs[] = {&x, &labels, &rate};
  std::vector<Tensor> outputs;
  EXPECT_THAT(session.Run(inputs, outputs).text(), HasSubstr("the batch is empty"));
}

// The rule of an optimizer for one number: sets its states, and returns the step.
struct Rule {
  const char* optimizer;
  double momentum;
  std::function<double(double g, double w, double rate, int t, double (&s)[2])> step;
};

TEST_F(TrainingSession, StepsLikeTheRuleOfItsOptimizer) {
  const Rule rules[] = {
      {"nesterov", 0.5,
       [](double g, double, double rate, int, double(&s)[2]) {
         s[0] = 0.5 * s[0] + g;
         return rate * (g + 0.5 * s[0]);
       }},
      {"adagrad", 0,
       [](double g, double, double rate, int, double(&s)[2]) {
         s[0] += g * g;
         return rate * g / std::sqrt(s[0]);
       }},
      {"rmsprop", 0.5,
       [](double g, double, double rate, int, double(&s)[2]) {
         s[0] = 0.999 * s[0] + 0.001 * g * g;
         s[1] = 0.5 * s[1] + g / std::sqrt(s[0]);
         return rate * s[1];
       }},
      {"lion", 0,
       [](double g, double, double rate, int, double(&s)[2]) {
         const double sign = 0.9 * s[0] + 0.1 * g > 0 ? 1 : -1;
         s[0] = 0.999 * s[0] + 0.001 * g;
         return rate * sign;
       }},
      {"lamb", 0,
       [](double g, double w, double rate, int t, double(&s)[2]) {
         s[0] = 0.9 * s[0] + 0.1 * g;
         s[1] = 0.999 * s[1] + 0.001 * g * g;
         const double r = s[0] / (1 - std::pow(0.9, t)) / std::sqrt(s[1] / (1 - std::pow(0.999, t)));
         return rate * r * std::abs(w) / std::abs(r);
       }},
      {"adafactor", 0,
       [](double g, double w, double rate, int t, double(&s)[2]) {
         s[0] += (g * g - s[0]) * std::pow(t, -0.8);
         const double u = g / std::sqrt(s[0]);
         return std::max(1e-3, std::abs(w)) * std::min(rate, 1 / std::sqrt(t)) * u / std::max(1.0, std::abs(u));
       }},
  };
  for (const Rule& rule : rules) {
    SessionOptions options = Options(true);
    options.training->optimizer = rule.optimizer;
    options.training->momentum = rule.momentum;
    Session session;
    const Status loaded = Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(session);
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    double w = 1, b = 0.5, of_w[2] = {0, 0}, of_b[2] = {0, 0};
    for (int t = 1; t <= 4; ++t) {
      const double y = 2 * w + b;
      EXPECT_NEAR(Step(session), y * y, 1e-4) << rule.optimizer << t;
      w -= rule.step(4 * y, w, 0.125, t, of_w);
      b -= rule.step(2 * y, b, 0.125, t, of_b);
    }
    Tensor trained;
    ASSERT_TRUE(session.ReadState("w").MoveTo(trained).ok());
    EXPECT_NEAR(trained.data<float>()[0], w, 1e-4) << rule.optimizer;
  }
}

TEST_F(TrainingSession, UpdatesByTheMeanOfAccumulatedGradients) {
  SessionOptions options = Options(true);
  Session every, third;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(every).ok());
  options.training->accumulate = 3;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(third).ok());
  for (int round = 0; round < 2; ++round) {
    const float first = Step(third);
    EXPECT_EQ(Step(third), first);
    EXPECT_EQ(Step(third), first);
    EXPECT_EQ(Step(every), first);
  }
}

TEST_F(TrainingSession, LimitsEachElementOfTheGradients) {
  SessionOptions options = Options(true);
  options.training->clip_value = 0.5;
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(session).ok());
  Step(session);
  Tensor w;
  ASSERT_TRUE(session.ReadState("w").MoveTo(w).ok());
  EXPECT_THAT(w.data<float>(), ElementsAre(1 - 0.125f * 0.5f));
}

TEST_F(TrainingSession, WritesAStateOfEveryReplica) {
  Session many;
  SessionOptions options = Options(true);
  options.device = "host,host";
  options.training->data_parallel = true;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(many).ok());
  Tensor w, x, labels, rate;
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {3}).MoveTo(w).ok());
  ASSERT_TRUE(many.WriteState("w", w).ok());
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {1, 1}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {0, 0}).MoveTo(labels).ok());
  ASSERT_TRUE(Tensor::Of<float>({}, {0}).MoveTo(rate).ok());
  std::vector<Tensor> outputs;
  ASSERT_TRUE(many.Run({&x, &labels, &rate}, outputs).ok());
  const float y = outputs[1].data<float>()[0];
  EXPECT_THAT(outputs[1].data<float>(), ElementsAre(y, y));
  EXPECT_GT(y, 2);
}

TEST_F(TrainingSession, RefusesElementsThatDoNotFitAState) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session).ok());
  Tensor two, whole;
  ASSERT_TRUE(Tensor::Of<float>({2}, {1, 2}).MoveTo(two).ok());
  ASSERT_TRUE(Tensor::Of<int64_t>({1, 1}, {1}).MoveTo(whole).ok());
  EXPECT_THAT(session.WriteState("w", two).text(), HasSubstr("it is float32[1,1], and they are float32[2]"));
  EXPECT_EQ(session.WriteState("w", whole).code(), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(session.WriteState("ww", two).text(), HasSubstr("did you mean 'w'?"));
  EXPECT_EQ(Step(session), 6.25f);
}

TEST_F(TrainingSession, GivesTheLabelsTheNameOfTheOptions) {
  SessionOptions options = Options(true);
  options.training->labels_name = "target";
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(session).ok());
  EXPECT_EQ(session.input(1).name(), "target");
  EXPECT_EQ(Step(session), 6.25f);
  for (const char* taken : {"x", "learning_rate"}) {
    options.training->labels_name = taken;
    Session none;
    const Status refused = Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(none);
    EXPECT_THAT(refused.text(), HasSubstr(std::string("there is an input '") + taken + "' already"));
  }
}

TEST_F(TrainingSession, TakesAZeroAmongTheNumbersOfTheOptimizerAsZero) {
  SessionOptions options = Options(true);
  options.training->optimizer = "adam";
  options.training->beta1 = options.training->beta2 = options.training->epsilon = 0;
  Session session;
  const Status loaded = Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(session);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  Step(session);
  Tensor w;
  ASSERT_TRUE(session.ReadState("w").MoveTo(w).ok());
  EXPECT_THAT(w.data<float>(), ElementsAre(1 - 0.125f));  // without means, a step is the sign of the gradient
}

TEST_F(TrainingSession, ReportsTheMemoryOfAStepThatComputesOnlyTheLoss) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session).ok());
  mge_memory_facts facts = {};
  EXPECT_EQ(session.Memory().MoveTo(facts).id(), 207);
  Tensor x, labels, rate;
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {2}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {0}).MoveTo(labels).ok());
  ASSERT_TRUE(Tensor::Of<float>({}, {0.125f}).MoveTo(rate).ok());
  std::vector<Tensor> outputs;
  const std::string loss(session.output(0).name());
  ASSERT_TRUE(session.Run({&x, &labels, &rate}, outputs, {.output_names = {loss}}).ok());
  ASSERT_TRUE(session.Memory().MoveTo(facts).ok());
  const uint32_t steps = facts.steps;
  EXPECT_GT(steps, 0u);
  Step(session);  // all outputs: another plan
  ASSERT_TRUE(session.Memory().MoveTo(facts).ok());
  EXPECT_GT(facts.planned_peak_bytes, 0u);
}

TEST_F(TrainingSession, KeepsAllOtherBytesOfTheModel) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(true)).MoveTo(session).ok());
  const std::string written = folder_ + "/same.onnx";
  ASSERT_TRUE(session.Save(written).ok());  // before any step
  std::ifstream in(written, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  for (const std::string& part : rest_) EXPECT_THAT(bytes, HasSubstr(part));
}

TEST_F(TrainingSession, OfAModelInMemoryCanWriteItToo) {
  Session session;
  ASSERT_TRUE(Session::LoadBytes(runtime_, model_.data(), model_.size(), Options(true)).MoveTo(session).ok());
  EXPECT_TRUE(session.Save(folder_ + "/from_memory.onnx").ok());
}

// (2 w + b)^2 for x = 2, and (w + b)^2 for x = 1: a mean over both devices.
TEST_F(TrainingSession, OnSeveralDevicesDividesTheBatchAndSavesTheSameModel) {
  Session one, many;
  SessionOptions options = Options(true);
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(one).ok());
  options.device = "host,host";
  options.training->data_parallel = true;
  const Status loaded = Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(many);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(many.input_count(), one.input_count());
  Tensor x, labels, rate;
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {2, 1}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {0, 0}).MoveTo(labels).ok());
  ASSERT_TRUE(Tensor::Of<float>({}, {0.125f}).MoveTo(rate).ok());
  for (int step = 0; step < 3; ++step) {
    std::vector<Tensor> expected, outputs;
    ASSERT_TRUE(one.Run({&x, &labels, &rate}, expected).ok());
    ASSERT_TRUE(many.Run({&x, &labels, &rate}, outputs).ok());
    EXPECT_EQ(outputs[0].data<float>()[0], expected[0].data<float>()[0]);
    EXPECT_EQ(std::vector<float>(outputs[1].data<float>().begin(), outputs[1].data<float>().end()),
              std::vector<float>(expected[1].data<float>().begin(), expected[1].data<float>().end()));
  }
  Tensor w, expected_w;
  ASSERT_TRUE(one.ReadState("w").MoveTo(expected_w).ok());
  ASSERT_TRUE(many.ReadState("w").MoveTo(w).ok());
  EXPECT_EQ(w.data<float>()[0], expected_w.data<float>()[0]);
  ASSERT_TRUE(one.Save(folder_ + "/one.onnx").ok());
  ASSERT_TRUE(many.Save(folder_ + "/many.onnx").ok());
  auto bytes = [&](const char* name) {
    std::ifstream in(folder_ + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(bytes("/many.onnx"), bytes("/one.onnx"));
}

// Outputs by name, in memory of the caller, and runs that do not wait.
TEST_F(TrainingSession, OnSeveralDevicesRunsInEveryWay) {
  Session many;
  SessionOptions options = Options(true);
  options.device = "host,host,host";
  options.training->data_parallel = true;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", options).MoveTo(many).ok());
  Tensor x, labels, rate;
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {2, 2}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {0, 0}).MoveTo(labels).ok());
  ASSERT_TRUE(Tensor::Of<float>({}, {0}).MoveTo(rate).ok());
  std::vector<Tensor> some;
  ASSERT_TRUE(
      many.Run({&labels, &x, &rate}, some, {.input_names = {"labels", "x", "learning_rate"}, .output_names = {"y"}}).ok());
  EXPECT_THAT(some[0].data<float>(), ElementsAre(2.5f, 2.5f));

  std::vector<Tensor> own(2);
  ASSERT_TRUE(Tensor::Of<float>({2, 1}, {0, 0}).MoveTo(own[1]).ok());
  ASSERT_TRUE(many.Run({&x, &labels, &rate}, own).ok());
  EXPECT_THAT(own[0].data<float>(), ElementsAre(6.25f));
  EXPECT_THAT(own[1].data<float>(), ElementsAre(2.5f, 2.5f));
  Tensor three;
  ASSERT_TRUE(Tensor::Of<float>({3, 1}, {0, 0, 0}).MoveTo(three).ok());
  std::vector<Tensor> wrong(2);
  wrong[1] = std::move(three);
  EXPECT_FALSE(many.Run({&x, &labels, &rate}, wrong).ok());

  std::promise<float> loss;
  const Status started =
      many.Run({&x, &labels, &rate}, {.done =
                                          [&](Result<std::vector<Tensor>> outputs) {
                                            loss.set_value(outputs.ok() ? (*outputs)[0].data<float>()[0] : -1);
                                          }})
          .status();
  ASSERT_TRUE(started.ok()) << started.text();
  EXPECT_EQ(loss.get_future().get(), 6.25f);

  std::vector<Tensor> enqueued;
  RunFence fence;
  ASSERT_TRUE(many.Run({&x, &labels, &rate}, enqueued, {.fence = &fence}).ok());
  ASSERT_TRUE(fence.Wait().ok());
  EXPECT_THAT(enqueued[0].data<float>(), ElementsAre(6.25f));

  Profile profile = *Profile::Create();
  RunControl profiled = *RunControl::Create();
  profiled.SetProfile(&profile);
  std::vector<Tensor> again;
  ASSERT_TRUE(many.Run({&x, &labels, &rate}, again, {.control = &profiled}).ok());
  std::string times;
  ASSERT_TRUE(profile.Report("mge.profile/1").MoveTo(times).ok());
  EXPECT_THAT(times, HasSubstr("AllReduce"));

  std::string plan, memory;
  ASSERT_TRUE(many.Plan(std::vector<const Tensor*>{&x, &labels, &rate}, "text", false).MoveTo(plan).ok());
  EXPECT_THAT(plan, HasSubstr("AllReduce"));
  EXPECT_TRUE(many.Report("mge.memory/1").MoveTo(memory).ok());
}

TEST_F(TrainingSession, ThatDoesNotTrainCannotWriteAModel) {
  Session session;
  ASSERT_TRUE(Session::Load(runtime_, folder_ + "/model.onnx", Options(false)).MoveTo(session).ok());
  EXPECT_THAT(session.Save(folder_ + "/none.onnx").text(), HasSubstr("the session does not train"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/none.onnx"));
}

}  // namespace
}  // namespace mge
