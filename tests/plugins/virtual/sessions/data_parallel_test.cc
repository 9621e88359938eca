// SPDX-License-Identifier: Apache-2.0
// Training on several devices gives the loss and the weights of one device with the whole batch.
#include "core/kvstore/data_parallel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "tests/plugins/virtual/sessions/virtual_session.h"
#include "tests/support/trainer.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

HostValue Labels(std::vector<int64_t> labels) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kI64, {static_cast<int64_t>(labels.size())});
  std::copy(labels.begin(), labels.end(), v.tensor.MutableData<int64_t>().begin());
  return v;
}

// The messages of a runtime.
struct Log {
  static void Write(void* self, LogLevel, std::string_view message) {
    auto& log = *static_cast<Log*>(self);
    std::lock_guard lock(log.mutex);
    log.text += std::string(message) + "\n";
  }
  std::mutex mutex;
  std::string text;
};

std::shared_ptr<Runtime> RuntimeWith(std::vector<Assignment> settings = {}, Log* log = nullptr, const char* devices = "5") {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  settings.insert(settings.begin(), {{"virtual.devices", devices}, {"virtual.poison", "1"}});
  options.sources.call = std::move(settings);
  if (log) options.logger = Logger(LogLevel::kWarning, Log::Write, log);
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return runtime.ok() ? *runtime : nullptr;
}

// Devices of replicas, and how they sum.
struct Way {
  const char* devices;
  std::vector<Assignment> settings = {};
};
void PrintTo(const Way& way, std::ostream* out) {
  *out << way.devices;
  for (const Assignment& a : way.settings) *out << " " << a.name << "=" << a.text;
}
const Assignment kTrees = {"kvstore.tree", "1"};
const Assignment kSlices = {"kvstore.tree_array_elements", "6"};

class Replicated : public testing::TestWithParam<Way> {
 protected:
  // Runs the same steps on the built-in device and on replicas. Expects the same losses, outputs and states.
  void ExpectEqual(std::string_view text, const TrainingOptions& training,
                   const std::vector<std::vector<HostValue>>& batches, const std::vector<std::string>& states) {
    Trainer one(runtime_, text, training, "host", false),
        many(runtime_, text, training, GetParam().devices, true, GetParam().settings);
    ASSERT_TRUE(one.status().ok()) << FormatError(one.status());
    ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
    for (const std::vector<HostValue>& batch : batches) {
      const auto expected = one.Step(batch, 0.1f), got = many.Step(batch, 0.1f);
      ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
      ASSERT_TRUE(got.ok()) << FormatError(got.status());
      EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), *expected));
    }
    for (const std::string& state : states) {
      EXPECT_THAT(many.State(state), Pointwise(FloatNear(1e-5f), one.State(state))) << state;
    }
  }

  std::shared_ptr<Runtime> runtime_ = RuntimeWith();
};
INSTANTIATE_TEST_SUITE_P(Devices, Replicated,
                         testing::Values("virtual0,virtual1", "virtual0,virtual1,virtual2", "cpu0,virtual0",
                                         "cpu0,cpu0,cpu0", "host,host", "virtual0"));

// Batches that divide evenly, that do not, and that have fewer examples than there are replicas.
std::vector<std::vector<HostValue>> Batches(bool classes) {
  std::vector<std::vector<HostValue>> out;
  for (const int64_t n : {6, 5, 1, 2, 7}) {
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < n; ++i) labels.push_back(i % 3 == 2 ? -1 : (i + n) % 2);
    out.push_back({Waves({n, 3}, static_cast<int>(n)), classes ? Labels(labels) : Waves({n, 2}, 20)});
  }
  return out;
}

TEST_P(Replicated, SgdWithMomentumAndDecayGivesTheWeightsOfOneDevice) {
  ExpectEqual(kNetwork, {.loss = "mse", .momentum = 0.9, .weight_decay = 0.01}, Batches(false),
              {"w", "b", "v", "w.momentum"});
}

TEST_P(Replicated, AdamGivesTheWeightsOfOneDevice) {
  ExpectEqual(kNetwork, {.loss = "mae", .optimizer = "adam"}, Batches(false), {"w", "b", "v", "v.mean", "optimizer.step"});
}

TEST_P(Replicated, AdamwGivesTheWeightsOfOneDevice) {
  ExpectEqual(kNetwork, {.loss = "binary_cross_entropy", .optimizer = "adamw", .weight_decay = 0.1}, Batches(false),
              {"w", "b", "v", "v.variance"});
}

TEST_P(Replicated, TheNormOfAllGradientsIsLimited) {
  ExpectEqual(kNetwork, {.loss = "mse", .clip_norm = 0.05}, Batches(false), {"w", "b", "v"});
}

// The replicas have different numbers of labels that count, in the third batch none at all on some.
TEST_P(Replicated, LabelsThatDoNotCountAreLeftOutOverAllReplicas) {
  std::vector<std::vector<HostValue>> batches = Batches(true);
  batches[2] = {Waves({4, 3}, 9), Labels({-1, 1, -1, -1})};
  ExpectEqual(kNetwork, {}, batches, {"w", "b", "v"});
}

TEST_P(Replicated, FrozenInitializersKeepTheirValues) {
  ExpectEqual(kNetwork, {.loss = "mse", .frozen = {"w"}}, Batches(false), {"b", "v"});
}

// The loss is also an output of the model, which has no examples of its own.
TEST_P(Replicated, ALossOfTheModelIsAMeanOverTheExamples) {
  constexpr char kModel[] = R"(input x : float32[N,3]
input t : float32[N,2]
const w = float32[3,2]<0.3, -0.2, 0.1, 0.5, -0.4, 0.2>
y = MatMul(x, w)
d = Sub(y, t)
s = Mul(d, d)
l = ReduceMean(s) {keepdims=0}
output l
output y
)";
  ExpectEqual(kModel, {.loss = "output"}, Batches(false), {"w"});
}

TEST_P(Replicated, ParametersOfBothFloatingTypesAreTrained) {
  constexpr char kModel[] = R"(input x : float32[N,3]
const w = float32[3,2]<0.3, -0.2, 0.1, 0.5, -0.4, 0.2>
const v = float64[2]<0.5, 2>
y = MatMul(x, w)
z = Cast(y) {to=11}
p = Mul(z, v)
q = Cast(p) {to=1}
output q
)";
  ExpectEqual(kModel, {.loss = "mse", .momentum = 0.5}, Batches(false), {"w"});
}

TEST_P(Replicated, TheModelsOwnInputsWithoutExamplesGoToAllReplicas) {
  constexpr char kModel[] = R"(input x : float32[N,3]
input scale : float32[1,2]
input shift : float32[]
const w = float32[3,2]<0.3, -0.2, 0.1, 0.5, -0.4, 0.2>
m = MatMul(x, w)
n = Mul(m, scale)
y = Add(n, shift)
k = Neg(scale)
output y
output k
)";
  std::vector<std::vector<HostValue>> batches;
  for (const auto& batch : Batches(false)) {
    HostValue shift;
    shift.tensor = Tensor::Scalar<float>(0.5f);
    batches.push_back({batch[0], Waves({1, 2}, 3), shift, batch[1]});
  }
  ExpectEqual(kModel, {.loss = "mse"}, batches, {"w"});
}

TEST_P(Replicated, AModelWithAFixedBatchGetsItsBatchOnEachReplica) {
  constexpr char kModel[] = R"(input x : float32[2,3]
const w = float32[3,2]<0.3, -0.2, 0.1, 0.5, -0.4, 0.2>
y = MatMul(x, w)
output y
)";
  Trainer many(runtime_, kModel, {.loss = "mse"}, GetParam().devices, true, GetParam().settings);
  const std::string devices = GetParam().devices;
  const int64_t replicas = std::count(devices.begin(), devices.end(), ',') + 1;
  const auto good = many.Step({Waves({2 * replicas, 3}, 1), Waves({2 * replicas, 2}, 2)}, 0.1f);
  ASSERT_TRUE(good.ok()) << FormatError(good.status());
  EXPECT_EQ(good->size(), static_cast<size_t>(1 + 4 * replicas));
  if (replicas == 1) return;
  const auto bad = many.Step({Waves({2 * replicas + 1, 3}, 1), Waves({2 * replicas + 1, 2}, 2)}, 0.1f);
  EXPECT_THAT(FormatError(bad.status()), HasSubstr("the model has a fixed batch of 2"));
}

// Plans of a runtime can share memory and wait for each other, but not those of replicas, which run at the same time.
TEST_P(Replicated, RunAtTheSameTimeWithEveryEngineAndPolicyOfMemory) {
  constexpr char kModel[] = R"(input x : float32[2,3]
const w = float32[3,2]<0.3, -0.2, 0.1, 0.5, -0.4, 0.2>
y = MatMul(x, w)
output y
)";
  const std::string devices = GetParam().devices;
  const int64_t replicas = std::count(devices.begin(), devices.end(), ',') + 1;
  for (const Assignment& setting : {Assignment{"memory.static_policy", "static"}, Assignment{"memory.static_policy", "both"},
                                    Assignment{"engine.type", "naive"}, Assignment{"engine.bulk_train", "0"},
                                    Assignment{"engine.gpu_worker_threads", "1"}, Assignment{"threads", "1"}}) {
    Trainer many(RuntimeWith({setting}), kModel, {.loss = "mse"}, GetParam().devices, true, GetParam().settings);
    ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
    for (int step = 0; step < 2; ++step) {
      RunState control;
      control.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      const auto r = many.Step({Waves({2 * replicas, 3}, 1), Waves({2 * replicas, 2}, 2)}, 0.1f, &control);
      ASSERT_TRUE(r.ok()) << setting.name << ": " << FormatError(r.status());
    }
  }
}

// Replica 0 has the examples 1 and 3, replica 1 has 11 and 13.
TEST(Replicas, BatchNormalizationSavesTheStatisticsOfTheFirstReplica) {
  constexpr char kModel[] = R"(input x : float32[N,1]
const scale = float32[1]<1>
const bias = float32[1]<0>
const mean = float32[1]<10>
const var = float32[1]<1>
y = BatchNormalization(x, scale, bias, mean, var) {training_mode=1, momentum=0.75}
output y
)";
  Trainer many(RuntimeWith(), kModel, {.loss = "mse"}, "virtual0,virtual1", true);
  HostValue x;
  x.tensor = Tensor::Of<float>({4, 1}, std::vector<float>{1, 3, 11, 13});
  const auto r = many.Step({x, Waves({4, 1}, 1)}, 0.1f);
  ASSERT_TRUE(r.ok()) << FormatError(r.status());
  EXPECT_THAT(many.State("mean"), ElementsAre(FloatNear(8, 1e-5f)));  // 0.75 * 10 + 0.25 * 2
  EXPECT_THAT(std::vector<float>(r->begin() + 1, r->end()), Pointwise(FloatNear(1e-3f), std::vector<float>{-1, 1, -1, 1}));
}

TEST(Replicas, JoinTheOutputsThatTheSessionNames) {
  auto graph = ParseGraphText(kNetwork);
  ASSERT_TRUE(graph.ok());
  const TrainingOptions training = {.loss = "mse"};
  auto make = [&](const ReplicaExchange& exchange) -> absl::StatusOr<onnx::Model> {
    onnx::Model model;
    model.graph = *graph;
    MGE_RETURN_IF_ERROR(MakeTrainingStep(model, training, exchange).status());
    return model;
  };
  const SessionOptions options = {.device = "virtual0,virtual1", .outputs = {"t"}, .training = true};
  auto session = Session::Create(RuntimeWith(), *make({}), options);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  const absl::Status status = TrainOnReplicas(**session, options, make);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  HostValue rate;
  rate.tensor = Tensor::Scalar<float>(0.1f);
  const auto r = ResultsOf(**session, {Waves({5, 3}, 1), Waves({5, 2}, 2), rate});
  ASSERT_TRUE(r.ok()) << FormatError(r.status());
  EXPECT_EQ(r->size(), 20u);  // t has the shape [5,4]
}

// Equal masks on all replicas would drop the same elements of different examples.
TEST(Replicas, DrawDifferentRandomNumbersInEachStep) {
  constexpr char kModel[] = R"(input x : float32[N,64]
const w = float32[64]<1>
const ratio = float32[]<0.5>
const train = bool[]<true>
m = Mul(x, w)
y = Dropout(m, ratio, train)
output y
)";
  Trainer many(RuntimeWith(), kModel, {.loss = "mse"}, "virtual0,virtual1", true);
  HostValue x;
  x.tensor = Tensor::Of<float>({2, 64}, std::vector<float>(128, 1));
  std::vector<std::vector<float>> rows;
  for (int step = 0; step < 2; ++step) {
    const auto r = many.Step({x, Waves({2, 64}, 1)}, 0);
    ASSERT_TRUE(r.ok()) << FormatError(r.status());
    rows.emplace_back(r->begin() + 1, r->begin() + 65);
    rows.emplace_back(r->begin() + 65, r->end());
  }
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::unique(rows.begin(), rows.end()) - rows.begin(), 4);
}

// The first device sums and gathers on the host, the second with the collectives of its backend. Devices of two kinds round the
// parts that they update in their own ways.
TEST(Replicas, DivideTheOptimizerToTheBitsOfWholeStates) {
  const std::vector<TrainingOptions> trainings = {
      {.loss = "mse", .momentum = 0.9, .weight_decay = 0.01},
      {.loss = "mse", .optimizer = "adamw", .weight_decay = 0.1, .on_nan = "skip", .average_decay = 0.5, .clip_norm = 0.05},
      {.loss = "mse", .optimizer = "rmsprop", .momentum = 0.5, .accumulate = 2, .keep_gradients = true}};
  for (const Way& way : {Way{"cpu0,cpu0,cpu0"}, Way{"cpu0,virtual0"}, Way{"virtual0,virtual1,virtual2"},
                         Way{"virtual0,virtual1", {{"kvstore.gpu_p2p", "0"}}}, Way{"virtual0,virtual1", {kTrees}}}) {
    for (const TrainingOptions& training : trainings) {
      std::vector<Assignment> divides = way.settings;
      divides.push_back({"train.shard_optimizer", "1"});
      Trainer whole(RuntimeWith(), kNetwork, training, way.devices, true, way.settings),
          divided(RuntimeWith(), kNetwork, training, way.devices, true, divides);
      for (const auto& batch : Batches(false)) {
        const auto expected = whole.Step(batch, 0.1f), got = divided.Step(batch, 0.1f);
        ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
        ASSERT_TRUE(got.ok()) << FormatError(got.status());
        const float tolerance = way.devices == std::string_view("cpu0,virtual0") ? 1e-5f : 0;
        EXPECT_THAT(*got, Pointwise(FloatNear(tolerance), *expected)) << way.devices;
        // States are read whole, and can be written.
        for (const std::string& name : whole.session().StateNames()) {
          const auto a = whole.session().ReadState(name), b = divided.session().ReadState(name);
          ASSERT_TRUE(b.ok()) << FormatError(b.status());
          ASSERT_EQ(b->shape(), a->shape()) << name;
          if (a->dtype() == DType::kF32) {
            EXPECT_THAT(b->Data<float>(), Pointwise(FloatNear(tolerance), a->Data<float>())) << name << " " << way.devices;
          } else {  // counts steps
            EXPECT_EQ(b->ToInts(), a->ToInts()) << name << " " << way.devices;
          }
          EXPECT_TRUE(divided.session().WriteState(name, *a).ok()) << name;
        }
      }
    }
  }
}

TEST(Replicas, RefuseToDivideOptimizersThatLookAtWholeParameters) {
  Trainer many(RuntimeWith(), kNetwork, {.loss = "mse", .optimizer = "lamb"}, "cpu0,cpu0", true,
               {{"train.shard_optimizer", "1"}});
  EXPECT_THAT(FormatError(many.status()),
              AllOf(HasSubstr("optimizer lamb cannot be divided"), HasSubstr("leave train.shard_optimizer unset")));
}

TEST(Replicas, GiveTheSameBitsInEveryTraining) {
  for (const Way& way : {Way{"virtual0,virtual1,virtual2"}, Way{"cpu0,cpu0,cpu0"}, Way{"cpu0,virtual0"},
                         Way{"virtual0,virtual1,virtual2,virtual3", {kTrees, kSlices}}}) {
    std::vector<std::vector<float>> weights;
    for (int training = 0; training < 2; ++training) {
      Trainer many(RuntimeWith(), kNetwork, {.loss = "mse"}, way.devices, true, way.settings);
      for (const auto& batch : Batches(false)) {
        const auto r = many.Step(batch, 0.1f);
        ASSERT_TRUE(r.ok()) << FormatError(r.status());
      }
      weights.push_back(many.State("w"));
    }
    EXPECT_EQ(weights[0], weights[1]) << way.devices;
  }
}

TEST(Replicas, RefuseBatchesAndOptionsThatDoNotFit) {
  const auto runtime = RuntimeWith();
  Trainer many(runtime, kNetwork, {.loss = "mse"}, "virtual0,virtual1", true);
  EXPECT_THAT(FormatError(many.Step({Waves({4, 3}, 1), Waves({3, 2}, 1)}, 0).status()),
              HasSubstr("input 'labels' has 3 examples, and 'x' has 4"));
  EXPECT_THAT(FormatError(many.Step({Waves({0, 3}, 1), Waves({0, 2}, 1)}, 0).status()), HasSubstr("the batch is empty"));
  EXPECT_TRUE(many.Step({Waves({4, 3}, 1), Waves({4, 2}, 1)}, 0).ok());
  auto refused = [&](const char* devices, std::vector<Assignment> settings = {}) {
    return FormatError(Trainer(runtime, kNetwork, {.loss = "mse"}, devices, true, std::move(settings)).status());
  };
  EXPECT_THAT(refused("virtual0+virtual1"), HasSubstr("list the devices with commas"));
  EXPECT_THAT(refused("virtual0,virtual7"), HasSubstr("virtual7"));
  EXPECT_THAT(refused("virtual0,virtual0"), HasSubstr("device virtual0 is named twice"));
  EXPECT_THAT(refused("virtual0,virtual1", {{"collective.ranks", "2"}, {"collective.id", std::string(256, '0')}}),
              HasSubstr("the id of the group is not one of this backend"));
}

// Errors of one replica end the step of all, soon, and name the replica.
class Faulty : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Devices, Faulty,
                         testing::Values(Way{"virtual0,virtual1"}, Way{"cpu0,virtual1"}, Way{"virtual0,virtual1,virtual2"},
                                         Way{"virtual0,virtual1,virtual2", {kTrees}}, Way{"cpu0,virtual1,cpu0", {kTrees}}));

TEST_P(Faulty, ADeviceThatFailsEndsTheStepWithAnErrorThatNamesTheReplica) {
  for (const char* fault : {"1:kernel@30+=fail", "1:copy@30+=fail", "1:any@40=lost"}) {
    Trainer many(RuntimeWith({{"virtual.fault", fault}}), kNetwork, {.loss = "mse"}, GetParam().devices, true,
                 GetParam().settings);
    ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status;
    for (int step = 0; step < 20 && status.ok(); ++step) status = many.Step(Batches(false)[0], 0.1f).status();
    // Another replica may be the first to notice, when it copies from the lost device.
    EXPECT_THAT(FormatError(status), testing::AnyOf(HasSubstr("replica 1 on virtual1"),
                                                    AllOf(HasSubstr("replica "), HasSubstr("virtual1 is lost"))))
        << fault;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << fault;
    EXPECT_EQ(many.State("w").size(), 12u);  // the first replica's states can be saved
  }
}

TEST_P(Faulty, AStepThatIsStoppedLeavesTheSessionUsable) {
  const auto runtime = RuntimeWith({{"virtual.fault", "1:kernel@60=slow(1s)"}});
  Trainer one(runtime, kNetwork, {.loss = "mse"}, "host", false),
      many(runtime, kNetwork, {.loss = "mse"}, GetParam().devices, true, GetParam().settings);
  ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
  const auto batch = Batches(false)[0];
  int stopped = 0;
  for (int step = 0; step < 10; ++step) {
    RunState control;
    control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
    const auto got = many.Step(batch, 0.1f, step > 0 ? &control : nullptr);  // the first step plans
    const std::vector<float> before = one.State("w");
    const auto expected = one.Step(batch, 0.1f);
    if (got.ok()) {
      EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), *expected));
      continue;
    }
    ++stopped;
    EXPECT_EQ(ErrorId(got.status()), errors::kTimeout.id) << FormatError(got.status());
    // The first replica has made the step or not. All go on from there.
    if (std::abs(many.State("w")[0] - before[0]) > 1e-6f) continue;
    const auto again = many.Step(batch, 0.1f);
    ASSERT_TRUE(again.ok()) << FormatError(again.status());
    EXPECT_THAT(*again, Pointwise(FloatNear(1e-5f), *expected));
  }
  EXPECT_EQ(stopped, 1);
  EXPECT_THAT(many.State("w"), Pointwise(FloatNear(1e-5f), one.State("w")));
}

TEST_P(Faulty, ACancelledStepFailsAsCancelled) {
  Trainer many(RuntimeWith(), kNetwork, {.loss = "mse"}, GetParam().devices, true, GetParam().settings);
  RunState control;
  control.cancel.store(kStopAsked);
  EXPECT_EQ(ErrorId(many.Step(Batches(false)[0], 0.1f, &control).status()), errors::kCancelled.id);
  const auto next = many.Step(Batches(false)[0], 0.1f);
  EXPECT_TRUE(next.ok()) << FormatError(next.status());
}

// The settings of kvstore.*: what they change.
class Settings : public testing::Test {
 protected:
  // Creates a session on these devices. Returns the messages.
  std::string LogOf(std::vector<Assignment> settings, const char* devices = "virtual0,virtual1,virtual2,virtual3") {
    Log log;
    Trainer many(RuntimeWith(std::move(settings), &log), kNetwork, {.loss = "mse"}, devices, true);
    EXPECT_TRUE(many.status().ok()) << FormatError(many.status());
    const auto r = many.Step(Batches(false)[0], 0.1f);
    EXPECT_TRUE(r.ok()) << FormatError(r.status());
    return log.text;
  }
  // Returns the text of a plan of the first replica.
  std::string PlanOf(std::vector<Assignment> settings, const char* devices = "virtual0,virtual1") {
    Trainer many(RuntimeWith(std::move(settings)), kNetwork, {.loss = "mse"}, devices, true);
    const auto r = many.Step(Batches(false)[0], 0.1f);
    EXPECT_TRUE(r.ok()) << FormatError(r.status());
    return r.ok() ? PlanText(*many.session().last_plan(), true) : "";
  }
};

TEST_F(Settings, TheHostSumsOnlyWhatNoBackendDoesWithAsManyThreadsAsSet) {
  const Assignment info = {"log.level", "info"}, threads = {"kvstore.reduction_threads", "3"},
                   bound = {"kvstore.big_array_elements", "12"};
  EXPECT_THAT(LogOf({info, threads, bound}, "cpu0,virtual0"),
              HasSubstr("the host sums the gradients, those of at least 12 elements with 3 threads"));
  EXPECT_THAT(LogOf({info, threads, bound}, "virtual0,virtual1"), HasSubstr("the collectives of backend virtual sum"));
  EXPECT_THAT(LogOf({info, kTrees}, "virtual0,virtual1"), HasSubstr("trees of links sum the gradients"));
}

TEST_F(Settings, GpusThatMayNotCopyDirectlyUseNoCollectivesOfTheirBackend) {
  const Assignment info = {"log.level", "info"}, gpu = {"virtual.gpu", "1"}, p2p = {"kvstore.gpu_p2p", "0"};
  EXPECT_THAT(LogOf({info, gpu, p2p}, "virtual0,virtual1"),
              AllOf(HasSubstr("the host sums the gradients"), HasSubstr("kvstore.gpu_p2p forbids")));
  EXPECT_THAT(LogOf({info, gpu}, "virtual0,virtual1"), HasSubstr("the collectives of backend virtual sum"));
  EXPECT_THAT(LogOf({info, p2p}, "virtual0,virtual1"), HasSubstr("the collectives of backend virtual sum"));
}

TEST_F(Settings, TreesReplaceTheCollectivesOfTheBackend) {
  EXPECT_THAT(PlanOf({}), AllOf(HasSubstr("AllReduce"), testing::Not(HasSubstr("Exchange"))));
  EXPECT_THAT(PlanOf({kTrees}), AllOf(HasSubstr("Exchange"), testing::Not(HasSubstr("AllReduce"))));
}

TEST_F(Settings, ArraysAboveTheBoundAreCutIntoASliceForEachTree) {
  constexpr char kFour[] = "virtual0,virtual1,virtual2,virtual3";  // two trees share the links
  auto cuts = [&](const char* bound) {
    const std::string plan = PlanOf({kTrees, {"kvstore.tree_array_elements", bound}}, kFour);
    size_t count = 0;
    for (size_t at = 0; (at = plan.find("Concat", at)) != std::string::npos; ++at) ++count;
    return count > 0;
  };
  EXPECT_FALSE(cuts("12"));  // of w with 3 x 4 elements, b with 4, and v with 4 x 2
  EXPECT_TRUE(cuts("7"));    // v; the first dimension of w is not twice the number of trees
}

TEST_F(Settings, TheTreesAreThoseOfTheSearchAndItsPenalty) {
  const Assignment log = {"kvstore.log_tree", "1"}, search = {"kvstore.tree_backtrack", "1"};
  const std::string golden = LogOf({kTrees, log, search});
  EXPECT_THAT(golden, AllOf(HasSubstr("Tree 0: 0 | 0 2 | 0 1 2 3"), HasSubstr("Tree 1: 1 | 1 3 | 1 2 3 0"),
                            HasSubstr("Tree 2: 2 | 2 1 | 2 0 1 3"), HasSubstr("Tree 3: 3 | 3 0 | 3 2 0 1"),
                            HasSubstr("W: 0 2 2 2 | 2 0 2 2"), HasSubstr("Links: 0 ")));
  EXPECT_THAT(LogOf({kTrees, log, search, {"kvstore.tree_link_usage_penalty", "1"}}),
              AllOf(HasSubstr("Tree 1: 1 | 1 2 | 1 0 2 3"), HasSubstr("Tree 3: 3 | 3 1 | 3 0 1 2")));
  EXPECT_EQ(LogOf({kTrees, search}), "");
  EXPECT_THAT(LogOf({kTrees, log, {"kvstore.tree_backtrack", "0"}}), HasSubstr("Tree 3: 3 | "));
}

TEST_F(Settings, TheTreesShareTheLinksUnlessASearchIsSet) {
  const std::string log =
      LogOf({kTrees, {"kvstore.log_tree", "1"}});  // four devices with six links, of which each tree uses three
  EXPECT_THAT(log, AllOf(HasSubstr("Tree 0: "), HasSubstr("Tree 1: "), testing::Not(HasSubstr("Tree 2: ")),
                         HasSubstr("Links: 0 1 1 1 | 1 0 1 1 | 1 1 0 1 | 1 1 1 0")));
}

// A star: no balanced tree has so few levels, but the trees need not be balanced.
TEST_F(Settings, TheTreesSumOverLinksThatAllowNoBalancedTree) {
  const std::string file = testing::TempDir() + "mge_star_links.csv";
  std::ofstream(file) << "0,2,2,2\n2,0,1,1\n2,1,0,1\n2,1,1,0\n";
  const Assignment links = {"virtual.links", file};
  const auto runtime = RuntimeWith({kTrees, kSlices, links}, nullptr, "4");
  Trainer one(runtime, kNetwork, {.loss = "mse"}, "host", false);
  Trainer many(runtime, kNetwork, {.loss = "mse"}, "virtual0,virtual1,virtual2,virtual3", true);
  ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
  for (const auto& batch : Batches(false)) {
    const auto expected = one.Step(batch, 0.1f), got = many.Step(batch, 0.1f);
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), *expected));
  }
  Trainer searched(RuntimeWith({kTrees, links, {"kvstore.tree_backtrack", "1"}}, nullptr, "4"), kNetwork, {.loss = "mse"},
                   "virtual0,virtual1,virtual2,virtual3", true);
  EXPECT_THAT(FormatError(searched.status()), AllOf(HasSubstr("no tree of links"), HasSubstr("unset")));
  std::filesystem::remove(file);
}

// A line of direct links: no tree crosses the host, although the devices at both ends have no direct link.
TEST_F(Settings, TheTreesMatchTheLinksOfTheDevices) {
  const std::string file = testing::TempDir() + "mge_line_links.csv";
  std::ofstream(file) << "0,2,1\n2,0,3\n1,3,0\n";
  const std::vector<Assignment> settings = {kTrees, {"kvstore.log_tree", "1"}, {"virtual.links", file}};
  Log log;
  const auto runtime = RuntimeWith(settings, &log, "3");
  Trainer one(runtime, kNetwork, {.loss = "mse"}, "host", false);
  Trainer many(runtime, kNetwork, {.loss = "mse"}, "virtual0,virtual1,virtual2", true);
  ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
  EXPECT_THAT(log.text, AllOf(HasSubstr("W: 0 1 0 | 1 0 2 | 0 2 0"), HasSubstr("Links: 0 1 0 | 1 0 1 | 0 1 0")));
  for (const auto& batch : Batches(false)) {
    const auto expected = one.Step(batch, 0.1f), got = many.Step(batch, 0.1f);
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), *expected));
  }
  std::filesystem::remove(file);
}

// Two pairs with direct links each; the trees cross the host between them.
TEST_F(Settings, DevicesWithoutADirectLinkCopyThroughTheHost) {
  const std::string file = testing::TempDir() + "mge_pair_links.csv";
  std::ofstream(file) << "0,2,1,1\n2,0,1,1\n1,1,0,2\n1,1,2,0\n";
  const auto runtime = RuntimeWith({kTrees, kSlices, {"virtual.links", file}}, nullptr, "4");
  Trainer one(runtime, kNetwork, {.loss = "mse"}, "host", false);
  Trainer many(runtime, kNetwork, {.loss = "mse"}, "virtual0,virtual1,virtual2,virtual3", true);
  ASSERT_TRUE(many.status().ok()) << FormatError(many.status());
  for (const auto& batch : Batches(false)) {
    const auto expected = one.Step(batch, 0.1f), got = many.Step(batch, 0.1f);
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), *expected));
  }
  std::filesystem::remove(file);
}

TEST(Operators, AnExchangeOfAUsersModelIsAnErrorOutsideOfReplicas) {
  constexpr char kModel[] = R"(input x : float32[2]
y = mge::Exchange(x) {to=[-1], to_key=[0], from=[-1], from_key=[0], like=[0]}
output y
)";
  const auto runtime = RuntimeWith();
  for (const char* device : {"cpu0", "virtual0"}) {
    auto session = Load(runtime, kModel, device);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    EXPECT_THAT(FormatError(ResultsOf(**session, {Waves({2}, 1)}).status()), HasSubstr("other replicas of a session"));
  }
}

}  // namespace
}  // namespace mge
