// SPDX-License-Identifier: Apache-2.0
// Settings of the planner on virtual GPUs: kernels, queues, bytes and errors that a user can observe.
#include <cmath>
#include <set>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Runtime> With(std::vector<Assignment> settings) {
  settings.push_back({"virtual.devices", "1"});
  return NewRuntime(std::move(settings));
}

// Runs the graph on virtual0.
absl::StatusOr<std::vector<float>> Results(std::vector<Assignment> settings, std::string_view text,
                                           const std::vector<HostValue>& in, std::shared_ptr<const Plan>* plan = nullptr) {
  const std::shared_ptr<Runtime> runtime = With(std::move(settings));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Load(runtime, text, "virtual0"));
  auto results = ResultsOf(*session, in);
  if (plan) *plan = session->last_plan();
  return results;
}

// ---- plan.host_compute

// Returns whether a run launches at least `count` kernels: a fault at that kernel stops it.
bool Launches(int count, const std::string& host_compute, std::string_view text, const std::vector<HostValue>& in) {
  const std::string fault = "0:kernel@" + std::to_string(count) + "=fail";
  return !Results({{"plan.host_compute", host_compute}, {"virtual.fault", fault}}, text, in).ok();
}

int KernelsOf(const std::string& host_compute, std::string_view text, const std::vector<HostValue>& in) {
  int count = 0;
  while (count < 9 && Launches(count + 1, host_compute, text, in)) ++count;
  return count;
}

constexpr char kSmall[] = "input x : float32[7]\nconst w = float32[7]<2>\na = MatMul(x, w)\noutput a\n";

std::string ScaledBy2Plus1(int elements) {
  const std::string n = std::to_string(elements);
  return "input a : float32[" + n + "]\nconst two = float32[1]<2>\nconst one = float32[1]<1>\n" +
         "b = Mul(a, two)\nc = Add(b, one)\noutput c\n";
}

TEST(HostCompute, OfSmallValuesLaunchesNoKernel) {
  EXPECT_EQ(KernelsOf("1", ScaledBy2Plus1(7), {Numbers({7})}), 0);
  EXPECT_GE(KernelsOf("0", ScaledBy2Plus1(7), {Numbers({7})}), 1);
  EXPECT_EQ(Results({{"plan.host_compute", "1"}}, ScaledBy2Plus1(7), {Numbers({7})}).value(),
            Results({{"plan.host_compute", "0"}}, ScaledBy2Plus1(7), {Numbers({7})}).value());
}

TEST(HostCompute, IsNotUsedForMoreThanSevenElements) {
  const int kernels = KernelsOf("0", ScaledBy2Plus1(8), {Numbers({8})});
  EXPECT_GE(kernels, 1);
  EXPECT_EQ(KernelsOf("1", ScaledBy2Plus1(8), {Numbers({8})}), kernels);
}

TEST(HostCompute, IsNotUsedForResultsOfTheDeviceAndOperatorsThatAreNotElementwise) {
  EXPECT_EQ(KernelsOf("1", kSmall, {Numbers({7})}), KernelsOf("0", kSmall, {Numbers({7})}));
  const std::string text = "input x : float32[2,16]\ns = ReduceSum(x) {keepdims=0}\nt = Neg(s)\noutput t\n";
  EXPECT_EQ(KernelsOf("1", text, {Numbers({2, 16})}), KernelsOf("0", text, {Numbers({2, 16})}));
}

// ---- plan.static_input_shape

constexpr char kAnyBatch[] = "input x : float32[N,4]\ny = Relu(x)\noutput y\n";

TEST(StaticInputShape, HoldsTheFirstShapesAndNamesBothInTheError) {
  const std::shared_ptr<Runtime> runtime = With({{"plan.static_input_shape", "1"}});
  auto session = Load(runtime, kAnyBatch, "virtual0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  EXPECT_TRUE(ResultsOf(**session, {Numbers({2, 4})}).ok());
  const auto other = ResultsOf(**session, {Numbers({3, 4})});
  EXPECT_THAT(FormatError(other.status()),
              AllOf(HasSubstr("'x'"), HasSubstr("[3,4]"), HasSubstr("[2,4]"), HasSubstr("plan.static_input_shape")));
  EXPECT_TRUE(ResultsOf(**session, {Numbers({2, 4})}).ok());
  // Another session has first shapes of its own.
  auto second = Load(runtime, kAnyBatch, "virtual0");
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(ResultsOf(**second, {Numbers({3, 4})}).ok());
}

TEST(StaticInputShape, OffMakesOnePlanForEachShape) {
  auto session = Load(With({{"plan.static_input_shape", "0"}}), kAnyBatch, "virtual0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  EXPECT_TRUE(ResultsOf(**session, {Numbers({2, 4})}).ok());
  const auto first = (*session)->last_plan();
  EXPECT_TRUE(ResultsOf(**session, {Numbers({3, 4})}).ok());
  EXPECT_NE((*session)->last_plan(), first);
  EXPECT_TRUE(ResultsOf(**session, {Numbers({2, 4})}).ok());
  EXPECT_EQ((*session)->last_plan(), first);
}

TEST(StaticInputShape, IsNotSetByARunThatFails) {
  auto session = Load(With({{"plan.static_input_shape", "1"}}), kAnyBatch, "virtual0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  EXPECT_FALSE(ResultsOf(**session, {Numbers({2, 5})}).ok());
  EXPECT_TRUE(ResultsOf(**session, {Numbers({3, 4})}).ok());
}

// ---- plan.workspaces

// Three chains of three products, and their sum.
std::string ThreeChains() {
  std::string text = "input x : float32[32,32]\nconst w = float32[32,32]<0.01>\n";
  for (const std::string chain : {"a", "b", "c"}) {
    std::string before = "x";
    for (int i = 0; i < 3; ++i) {
      const std::string after = chain + std::to_string(i);
      text += after + " = MatMul(" + before + ", w)\n" + after + "s = Softmax(" + after + ")\n";
      before = after + "s";
    }
  }
  return text + "y = Sum(a2s, b2s, c2s)\noutput y\n";
}

// Returns the compute queues of the plan's kernels.
std::set<std::string> ComputeQueuesOf(const Plan& plan) {
  std::set<std::string> queues;
  for (const Unit& u : plan.units) {
    if (u.kind == Unit::Kind::kKernel) queues.insert(u.queue);
  }
  return queues;
}

TEST(NumTemp, IsTheNumberOfQueuesOfAPlanAndKeepsTheResults) {
  const std::vector<HostValue> in = {Numbers({32, 32})};
  const Assignment device = {"virtual.compute_queues", "4"}, skip = {"plan.skip", "merge_equal"};
  const std::vector<float> expected = Results({skip}, ThreeChains(), in).value();
  auto with = [&](const std::string& temp, const std::string& workers) {
    std::shared_ptr<const Plan> plan;
    const std::vector<Assignment> settings = {
        device, skip, {"plan.workspaces", temp}, {"engine.gpu_worker_threads", workers}, {"virtual.poison", "1"}};
    const auto got = Results(settings, ThreeChains(), in, &plan);
    EXPECT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(*got, expected);
    return plan;
  };
  const auto one = with("1", "4"), two = with("2", "4"), three = with("3", "4"), many = with("8", "8");
  EXPECT_THAT(ComputeQueuesOf(*one), ElementsAre("compute"));
  EXPECT_THAT(ComputeQueuesOf(*two), ElementsAre("compute", "compute 1"));
  EXPECT_THAT(ComputeQueuesOf(*three), ElementsAre("compute", "compute 1", "compute 2"));
  EXPECT_THAT(ComputeQueuesOf(*many), ElementsAre("compute", "compute 1", "compute 2"));
  EXPECT_THAT(ComputeQueuesOf(*with("4", "2")), ElementsAre("compute", "compute 1"));  // no more than workers
  EXPECT_LT(one->report.arena_bytes, two->report.arena_bytes);
}

// ---- jit.backend

TEST(JitBackend, NamesACompilerThatAGpuInSoftwareDoesNotHave) {
  for (const std::string compiler : {"nvrtc", "hiprtc"}) {
    const absl::Status status = Results({{"jit.backend", compiler}}, ScaledBy2Plus1(8), {Numbers({8})}).status();
    EXPECT_THAT(FormatError(status),
                HasSubstr("jit.backend is " + compiler + ", but a GPU in software compiles no kernels"));
  }
  EXPECT_TRUE(Results({{"jit.backend", "auto"}}, ScaledBy2Plus1(8), {Numbers({8})}).ok());
}

// ---- numerics.cast

HostValue Zeros(Shape shape) {
  HostValue v = Numbers(std::move(shape));
  for (float& x : v.tensor.MutableData<float>()) x = 0;
  return v;
}

// Returns what a cast of `number` to the element type `to` gives on a device, cast back to float32.
float CastOn(const std::string& device, const std::string& rule, const std::string& number, int to) {
  const std::string type = std::to_string(to);
  const std::string text = "input x : float32[1]\ny = Cast(x) {to=" + type + "}\nz = Cast(y) {to=1}\noutput z\n";
  const std::shared_ptr<Runtime> runtime = With({{"numerics.cast", rule}});
  auto session = Load(runtime, text, device);
  HostValue x = Numbers({1});
  x.tensor.MutableData<float>()[0] = std::stof(number);
  auto results = session.ok() ? ResultsOf(**session, {x}) : session.status();
  EXPECT_TRUE(results.ok()) << FormatError(results.status());
  return results.ok() ? results->at(0) : NAN;
}

// The same of a constant, which the planner folds.
float FoldedCast(const std::string& rule, const std::string& number, int to) {
  auto results = Results({{"numerics.cast", rule}},
                         "input x : float32[1]\nconst c = float32[1]<" + number +
                             ">\ny = Cast(c) {to=" + std::to_string(to) + "}\nf = Cast(y) {to=1}\nz = Add(f, x)\noutput z\n",
                         {Zeros({1})});
  EXPECT_TRUE(results.ok()) << FormatError(results.status());
  return results.ok() ? results->at(0) : NAN;
}

TEST(NumericsCast, SaturatesOrKeepsTheLowestBitsOnEveryDevice) {
  constexpr int kU8 = 2, kI8 = 3, kI16 = 5, kI32 = 6;
  for (const char* device : {"host", "cpu0", "virtual0"}) {
    EXPECT_EQ(CastOn(device, "saturate", "300", kU8), 255) << device;
    EXPECT_EQ(CastOn(device, "wrap", "300", kU8), 44) << device;
    EXPECT_EQ(CastOn(device, "saturate", "-1.5", kU8), 0) << device;
    EXPECT_EQ(CastOn(device, "wrap", "-1.5", kU8), 255) << device;
    EXPECT_EQ(CastOn(device, "wrap", "200", kI8), -56) << device;
    EXPECT_EQ(CastOn(device, "wrap", "40000", kI16), -25536) << device;
    EXPECT_EQ(CastOn(device, "wrap", "nan", kU8), 0) << device;
    EXPECT_EQ(CastOn(device, "wrap", "77.9", kI32), 77) << device;
  }
}

TEST(NumericsCast, HoldsForConstantsThatAreFolded) {
  EXPECT_EQ(FoldedCast("saturate", "300", 2), 255);
  EXPECT_EQ(FoldedCast("wrap", "300", 2), 44);
}

// ---- the recipes of configs/

std::shared_ptr<const Plan> PlanWithRecipe(const std::string& name) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  options.sources.call = {{"virtual.devices", "1"}, {"virtual.compute_queues", "4"}, {"plan.skip", "merge_equal"}};
  if (!name.empty()) options.sources.config_files = {MGE_SOURCE_DIR "/configs/" + name};
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  auto session = Load(*runtime, ThreeChains(), "virtual0");
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  EXPECT_TRUE(ResultsOf(**session, {Numbers({32, 32})}).ok());
  return (*session)->last_plan();
}

TEST(Recipes, MinimumMemoryUsesOneWorkspaceAndTheLeastBytes) {
  const auto plan = PlanWithRecipe("minimum-memory.toml");
  EXPECT_THAT(ComputeQueuesOf(*plan), ElementsAre("compute"));
  EXPECT_LE(plan->report.arena_bytes, PlanWithRecipe("")->report.arena_bytes);
  EXPECT_LT(plan->report.arena_bytes, PlanWithRecipe("more-parallelism.toml")->report.arena_bytes);
}

TEST(Recipes, MoreParallelismRunsBranchesOnSeveralQueues) {
  EXPECT_THAT(ComputeQueuesOf(*PlanWithRecipe("more-parallelism.toml")), testing::SizeIs(testing::Gt(1u)));
}

}  // namespace
}  // namespace mge
