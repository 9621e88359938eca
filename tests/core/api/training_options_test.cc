// SPDX-License-Identifier: Apache-2.0
// Options of training sessions that change how parameters are updated, and learning rates over time.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "mge/mge.hpp"
#include "tests/core/api/api_models.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

// Trains y = w x + b, with w = 1 and b = 0.5, on x = 2 and the label 0. The loss is y^2, and its gradients are 2 y (2, 1).
class UpdateOptions : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.built_in_plugins = options.environment = false;
    ASSERT_TRUE(Runtime::Create(options).MoveTo(runtime_).ok());
  }
  Status Load(TrainingOptions training, Session& session) {
    SessionOptions options;
    options.device = "host";
    training.loss = "mse";
    options.training = std::move(training);
    return Session::LoadBytes(runtime_, model_.data(), model_.size(), options).MoveTo(session);
  }
  void Step(Session& session, float rate = 0.125f) {
    Tensor x, labels, r;
    ASSERT_TRUE(Tensor::Of<float>({1, 1}, {2}).MoveTo(x).ok());
    ASSERT_TRUE(Tensor::Of<float>({1, 1}, {0}).MoveTo(labels).ok());
    ASSERT_TRUE(Tensor::Of<float>({}, {rate}).MoveTo(r).ok());
    std::vector<Tensor> outputs;
    const Tensor* inputs[] = {&x, &labels, &r};
    const Status s = session.Run(inputs, outputs);
    ASSERT_TRUE(s.ok()) << s.text();
  }
  float State(Session& session, const char* name) {
    Tensor t;
    const Status s = session.ReadState(name).MoveTo(t);
    EXPECT_TRUE(s.ok()) << s.text();
    return s.ok() ? t.data<float>()[0] : NAN;
  }

  std::string rest_[2];
  const std::string model_ = api_models::Line(rest_);
  Runtime runtime_;
};

TEST_F(UpdateOptions, GroupsHaveTheirOwnRateAndDecay) {
  Session session;
  const Status loaded = Load({.weight_decay = 0.5, .groups = {{"w", 2, 0}, {"*", 1, -1}}}, session);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  Step(session);
  EXPECT_FLOAT_EQ(State(session, "w"), 1 - 2 * 0.125f * 10);                // without decay
  EXPECT_FLOAT_EQ(State(session, "b"), 0.5f - 0.125f * (5 + 0.5f * 0.5f));  // with that of the options
}

TEST_F(UpdateOptions, AGroupWithoutAParameterIsAnError) {
  Session session;
  EXPECT_THAT(Load({.groups = {{"head.*"}}}, session).text(), HasSubstr("no parameter has a name like 'head.*'"));
  EXPECT_THAT(Load({.groups = {{"w", -1}}}, session).text(), HasSubstr("the rate of group 'w' = -1"));
}

TEST_F(UpdateOptions, AveragesFollowTheParametersAndAreEvaluatedAndSaved) {
  Session session, evaluation, plain;
  ASSERT_TRUE(Load({.average_decay = 0.75}, session).ok());
  EXPECT_EQ(State(session, "w.average"), 1);
  Step(session);
  EXPECT_FLOAT_EQ(State(session, "w"), -0.25f);
  EXPECT_FLOAT_EQ(State(session, "w.average"), 0.75f * 1 + 0.25f * -0.25f);
  EXPECT_FLOAT_EQ(State(session, "b.average"), 0.75f * 0.5f + 0.25f * -0.125f);
  const float y = 2 * State(session, "w.average") + State(session, "b.average");

  ASSERT_TRUE(session.Evaluation().MoveTo(evaluation).ok());
  Tensor x, labels;
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {2}).MoveTo(x).ok());
  ASSERT_TRUE(Tensor::Of<float>({1, 1}, {0}).MoveTo(labels).ok());
  std::vector<Tensor> outputs;
  const Tensor* inputs[] = {&x, &labels};
  ASSERT_TRUE(evaluation.Run(inputs, outputs).ok());
  EXPECT_FLOAT_EQ(outputs[0].data<float>()[0], y * y);

  char file[] = "/tmp/mge-average-XXXXXX";
  close(mkstemp(file));
  ASSERT_TRUE(session.Save(file).ok());
  SessionOptions options;
  options.device = "host";
  ASSERT_TRUE(Session::Load(runtime_, file, options).MoveTo(plain).ok());
  unlink(file);
  std::vector<Tensor> plain_outputs;
  ASSERT_TRUE(plain.Run({&x}, plain_outputs).ok());
  EXPECT_FLOAT_EQ(plain_outputs[0].data<float>()[0], y);
}

TEST_F(UpdateOptions, KeepsTheGradientsBeforeTheyAreClipped) {
  Session session;
  ASSERT_TRUE(Load({.clip_value = 1, .keep_gradients = true}, session).ok());
  Step(session);
  EXPECT_EQ(State(session, "w.gradient"), 10);
  EXPECT_EQ(State(session, "b.gradient"), 5);
  EXPECT_FLOAT_EQ(State(session, "w"), 1 - 0.125f);
}

TEST_F(UpdateOptions, ARankThatWouldMeetNoOtherOneIsAnError) {
  const std::vector<std::string> settings = {"collective.ranks=2", "collective.id=" + std::string(256, '0')};
  for (const bool trains : {false, true}) {
    SessionOptions options;
    options.device = "host";
    options.settings = settings;
    if (trains) options.training = TrainingOptions{.loss = "mse"};
    Session session;
    const Status status = Session::LoadBytes(runtime_, model_.data(), model_.size(), options).MoveTo(session);
    EXPECT_THAT(status.text(),
                testing::AllOf(HasSubstr("collective.ranks is 2"),
                               HasSubstr(trains ? "each rank would train alone" : "the model exchanges nothing")));
  }
}

TEST(ScheduleRate, IsThatOfTheSchedule) {
  mge_schedule schedule;
  mge_schedule_init(&schedule);
  double rate = 0;
  auto at = [&](double part) {
    mge_status* status = mge_schedule_rate(&schedule, part, &rate);
    EXPECT_EQ(status, nullptr);
    return rate;
  };
  EXPECT_DOUBLE_EQ(at(0.7), 0.01);
  schedule.name = "cosine";
  schedule.rate = 2;
  schedule.warmup = 0.5;
  EXPECT_DOUBLE_EQ(at(0.25), 1);
  EXPECT_NEAR(at(0.75), 1, 1e-12);
  const double points[] = {0, 1, 0.5, 0.5, 1, 0};
  schedule.name = "table";
  schedule.warmup = 0;
  schedule.points = points;
  schedule.point_count = 3;
  EXPECT_DOUBLE_EQ(at(0.25), 1.5);
  EXPECT_DOUBLE_EQ(at(0.75), 0.5);
  EXPECT_DOUBLE_EQ(at(1), 0);
}

TEST(ScheduleRate, RefusesUnknownNamesAndPartsOutsideOfTheTraining) {
  mge_schedule schedule;
  mge_schedule_init(&schedule);
  double rate = 0;
  auto error = [&](double part) { return std::string(Status(mge_schedule_rate(&schedule, part, &rate)).text()); };
  EXPECT_THAT(error(1.5), HasSubstr("part = 1.5"));
  schedule.name = "cosin";
  EXPECT_THAT(error(0), HasSubstr("there is no schedule 'cosin'"));
  schedule.name = "table";
  EXPECT_THAT(error(0), HasSubstr("'table' has 0 points"));
  schedule.name = "linear";
  schedule.warmup = 1;
  EXPECT_THAT(error(0), HasSubstr("warmup = 1"));
}

}  // namespace
}  // namespace mge
