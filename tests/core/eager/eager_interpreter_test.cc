// SPDX-License-Identifier: Apache-2.0
// Single operators on each device: results, errors at the right place, the queue.
#include "core/eager/eager_interpreter.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/core/eager/eager.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

class Devices : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Eager, Devices, testing::Values("host", "cpu0", "virtual0"));

std::vector<float> Reference(const char* op, std::vector<HostValue> inputs, Attributes attrs = {}) {
  Graph graph;
  Node node;
  node.op = op;
  node.attrs = std::move(attrs);
  for (const HostValue& v : inputs)
    node.inputs.push_back(graph.AddInput("x", TensorType{v.tensor.dtype(), true, v.tensor.shape()}));
  node.outputs = {graph.AddTemporary("y")};
  graph.outputs() = node.outputs;
  const NodeId id = graph.AddNode(node);
  EXPECT_TRUE(BindNode(graph, id).ok());
  auto out = Evaluate(graph.node(id), inputs);
  EXPECT_TRUE(out.ok()) << FormatError(out.status());
  auto all = (*out)[0].tensor.Data<float>();
  return {all.begin(), all.end()};
}

TEST_P(Devices, OperatorsComputeWhatTheirReferenceEvaluatorsDo) {
  const Eager eager(GetParam());
  const HostValue x = Eager::Waves({3, 4}), y = Eager::Waves({3, 4}, 2), w = Eager::Waves({4, 5}, 3);
  for (const char* op : {"Relu", "Tanh", "Neg", "Exp", "Softmax"}) {
    EXPECT_THAT(eager.Get(eager.Apply(op, {eager.Put(x)})), Pointwise(FloatNear(1e-5f), Reference(op, {x}))) << op;
  }
  for (const char* op : {"Add", "Mul", "Div", "Max"}) {
    EXPECT_THAT(eager.Get(eager.Apply(op, {eager.Put(x), eager.Put(y)})), Pointwise(FloatNear(1e-4f), Reference(op, {x, y})))
        << op;
  }
  const EagerTensorPtr product = eager.Apply("MatMul", {eager.Put(x), eager.Put(w)});
  EXPECT_THAT(eager.Get(product), Pointwise(FloatNear(1e-5f), Reference("MatMul", {x, w})));
  EXPECT_THAT(eager.Get(eager.Apply("Transpose", {product}, With("perm", Ints{1, 0}))).size(), 15u);
  const HostValue image = Eager::Waves({1, 2, 6, 6}), kernel = Eager::Waves({3, 2, 3, 3}, 5);
  const Attributes pads = With("pads", Ints{1, 1, 1, 1});
  EXPECT_THAT(eager.Get(eager.Apply("Conv", {eager.Put(image), eager.Put(kernel)}, pads)),
              Pointwise(FloatNear(1e-4f), Reference("Conv", {image, kernel}, pads)));
}

TEST_P(Devices, ResultsStayOnTheDeviceOfTheInputs) {
  const Eager eager(GetParam());
  const EagerTensorPtr y = eager.Apply("Relu", {eager.Put({2}, {-1, 1})});
  auto value = eager->Get(*y);
  ASSERT_TRUE(value.ok());
  const DeviceMemory* memory = DeviceMemory::Of(value->tensor);
  EXPECT_EQ(memory ? memory->device().name() : "", std::string(GetParam()) == "virtual0" ? "virtual0" : "");
  EXPECT_EQ(y->value()->place()->spec, GetParam());
}

TEST_P(Devices, HostOperandsAreReadOnTheDeviceOfTheOthers) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put({2, 3}, {1, 2, 3, 4, 5, 6});
  const EagerTensorPtr two = eager->HostOperand(Eager::Floats({}, {2}));
  EXPECT_THAT(eager.Get(eager.Apply("Mul", {x, two})), ElementsAre(2, 4, 6, 8, 10, 12));
  // The axes are a constant of the operator, so that the shape of the result is known at once.
  const EagerTensorPtr sum = eager.Apply("ReduceSum", {x, eager.Ints({1})}, With("keepdims", int64_t{0}));
  EXPECT_TRUE(sum->value()->typed());
  EXPECT_EQ(sum->value()->type().type.dims, Shape({2}));
  EXPECT_THAT(eager.Get(sum), ElementsAre(6, 15));
  EXPECT_THAT(eager.Get(eager.Apply("ReduceSum", {x, eager.Ints({0})}, With("keepdims", int64_t{0}))), ElementsAre(5, 7, 9));
  EXPECT_THAT(eager.Get(eager.Apply("Reshape", {x, eager.Ints({3, 2})})), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(eager.Apply("Reshape", {x, eager.Ints({3, -1})})->value()->type().type.dims, Shape({3, 2}));
}

TEST_P(Devices, ShapesThatDependOnDataAreKnownOnceTheResultIsReady) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put({4}, {1, 0, 2, 0});
  const EagerTensorPtr where = eager.Apply("NonZero", {x});
  auto type = eager->TypeOf(*where);
  ASSERT_TRUE(type.ok()) << FormatError(type.status());
  EXPECT_EQ(type->type.dims, Shape({1, 2}));
  // The shape of the next operator is an eager tensor.
  HostValue shape;
  shape.tensor = Tensor::Vector<int64_t>(std::vector<int64_t>{2, 2});
  const EagerTensorPtr y = eager.Apply("Reshape", {x, eager.Put(shape)});
  EXPECT_THAT(eager.Get(eager.Apply("Relu", {y})), ElementsAre(1, 0, 2, 0));
  EXPECT_EQ(eager->TypeOf(*y)->type.dims, Shape({2, 2}));
}

TEST_P(Devices, OperatorsWithSeveralOutputsAndOptionalInputs) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto parts =
      eager.ApplyAll({.op = "Split", .attrs = With("axis", int64_t{1}, With("num_outputs", int64_t{2}))}, {x});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(eager.Get(parts[0]), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(eager.Get(parts[1]), ElementsAre(3, 4, 7, 8));
  const auto uneven =
      eager.ApplyAll({.op = "Split", .attrs = With("axis", int64_t{1}), .outputs = 2}, {x, eager.Ints({1, 3})});
  EXPECT_THAT(eager.Get(uneven[0]), ElementsAre(1, 5));
  EXPECT_THAT(eager.Get(eager.Apply("Clip", {x, nullptr, eager->HostOperand(Eager::Floats({}, {3}))})),
              ElementsAre(1, 2, 3, 3, 3, 3, 3, 3));
  const auto top = eager.ApplyAll({.op = "TopK", .outputs = 2}, {x, eager.Ints({1})});
  ASSERT_EQ(top.size(), 2u);
  EXPECT_THAT(eager.Get(top[0]), ElementsAre(4, 8));
}

TEST_P(Devices, OneOperatorServesAllShapesOfItsRank) {
  const Eager eager(GetParam());
  for (int64_t n = 1; n <= 6; ++n) {
    const EagerTensorPtr y = eager.Apply("Relu", {eager.Put(Eager::Waves({n, 2}))});
    EXPECT_EQ(eager.Get(y).size(), static_cast<size_t>(2 * n));
  }
  EXPECT_EQ(eager->counters().operators, 1);
  eager.Get(eager.Apply("Relu", {eager.Put(Eager::Waves({2}))}));
  EXPECT_EQ(eager->counters().operators, 2);
  EXPECT_EQ(eager->counters().runs, 7);
}

TEST_P(Devices, RandomOperatorsDrawNewNumbersInEachCall) {
  const Eager eager(GetParam());
  const Attributes attrs = With("shape", Ints{64});
  const std::vector<float> a = eager.Get(eager.Apply("RandomUniform", {}, attrs)),
                           b = eager.Get(eager.Apply("RandomUniform", {}, attrs));
  EXPECT_EQ(a.size(), 64u);
  EXPECT_NE(a, b);
}

// ---- errors

TEST(EagerErrors, OfNamesAttributesAndKnownShapesArriveInTheCall) {
  const Eager eager("cpu0");
  const EagerTensorPtr x = eager.Put({2, 3}, {1, 2, 3, 4, 5, 6});
  auto error = [&](OperatorRequest request, std::vector<EagerTensorPtr> inputs) {
    return FormatError(eager.Try(std::move(request), std::move(inputs)).status());
  };
  EXPECT_THAT(error({.op = "Relux"}, {x}), AllOf(HasSubstr("Relux"), HasSubstr("Relu")));
  EXPECT_THAT(error({.op = "MatMul"}, {x, x}), AllOf(HasSubstr("3 columns do not match 2 rows"),
                                                     HasSubstr("where: eager operator MatMul(float32[2,3], float32[2,3])\n"),
                                                     HasSubstr("Correct the inputs or the attributes of the call")));
  EXPECT_THAT(error({.op = "Relu", .attrs = With("alpha", 1.0f)}, {x}), HasSubstr("alpha"));
  EXPECT_THAT(error({.op = "Add"}, {x}), HasSubstr("Add"));
  EXPECT_THAT(error({.op = "Add"}, {x, eager.Ints({1, 2, 3})}), AllOf(HasSubstr("Add"), HasSubstr("int64")));
}

TEST(EagerErrors, InputsOnDifferentDevicesAreRefused) {
  const Eager eager("cpu0");
  auto other = eager->Put(Eager::Floats({2}, {1, 2}), "host");
  ASSERT_TRUE(other.ok());
  auto out = eager.Try({.op = "Add"}, {eager.Put({2}, {1, 2}), *other});
  EXPECT_THAT(FormatError(out.status()), AllOf(HasSubstr("different devices"), HasSubstr("cpu0"), HasSubstr("host")));
  EXPECT_THAT(FormatError(eager->Put(Eager::Floats({}, {1}), "cpu99").status()), HasSubstr("cpu99"));
}

// Gather with an index out of range fails while it runs.
EagerTensorPtr OutOfRange(const Eager& eager, const EagerTensorPtr& x) {
  HostValue index;
  index.tensor = Tensor::Vector<int64_t>(std::vector<int64_t>{7});
  return eager.Apply("Gather", {x, eager.Put(index)});
}

TEST(EagerErrors, OfTheExecutionArriveWhenTheResultIsRead) {
  const Eager eager("cpu0");
  const EagerTensorPtr x = eager.Put({2}, {1, 2});
  const EagerTensorPtr bad = OutOfRange(eager, x);
  const EagerTensorPtr later = eager.Apply("Relu", {bad}), other = eager.Apply("Neg", {x});
  EXPECT_THAT(eager.ErrorOf(bad), AllOf(HasSubstr("E0309"), HasSubstr("eager operator Gather(float32[2], int64[1])")));
  EXPECT_THAT(eager.ErrorOf(later), AllOf(HasSubstr("E0309"), HasSubstr("input 0 of eager operator Relu"),
                                          HasSubstr("which an earlier operator failed to compute")));
  // After many operators, the error names the last one and the one that failed, each once.
  EagerTensorPtr last = later;
  for (int i = 0; i < 9; ++i) last = eager.Apply("Abs", {last});
  const std::string text = eager.ErrorOf(eager.Apply("Neg", {last}));
  EXPECT_THAT(text,
              AllOf(HasSubstr("input 0 of eager operator Neg"), HasSubstr("eager operator Gather"), Not(HasSubstr("Abs"))));
  EXPECT_EQ(text.find("which an earlier"), text.rfind("which an earlier"));
  EXPECT_THAT(eager.Get(other), ElementsAre(-1, -2));
  EXPECT_EQ(bad->state(), EagerState::kFailed);
  EXPECT_TRUE(eager->Synchronize().ok());  // the error was read
  OutOfRange(eager, x);
  EXPECT_THAT(FormatError(eager->Synchronize()), HasSubstr("Gather"));
  EXPECT_TRUE(eager->Synchronize().ok());  // each error is returned once
}

TEST(EagerErrors, OfTheExecutionArriveInTheCallAtLevelZero) {
  const Eager eager("cpu0", {{"eager.async_level", "0"}});
  const EagerTensorPtr x = eager.Put({2}, {1, 2});
  HostValue index;
  index.tensor = Tensor::Vector<int64_t>(std::vector<int64_t>{7});
  auto out = eager.Try({.op = "Gather"}, {x, eager.Put(index)});
  EXPECT_THAT(FormatError(out.status()), AllOf(HasSubstr("E0309"), HasSubstr("eager operator Gather")));
  const EagerTensorPtr y = eager.Apply("Neg", {x});
  EXPECT_EQ(y->state(), EagerState::kReady);
  EXPECT_THAT(eager.Get(y), ElementsAre(-1, -2));
}

TEST(EagerErrors, LevelOneWaitsOnlyForResultsOfUnknownShape) {
  for (const char* level : {"1", "2"}) {
    const Eager eager("cpu0", {{"eager.async_level", level}});
    const EagerTensorPtr x = eager.Put({4}, {1, 2, 3, 4});
    HostValue shape;
    shape.tensor = Tensor::Vector<int64_t>(std::vector<int64_t>{2, 2});
    EagerTensorPtr s = eager.Put(shape);
    HostValue both;
    both.tensor = Tensor::Of<bool>({2}, std::array{true, true});
    // Nothing is known of the result, since the length of its shape depends on data.
    const EagerTensorPtr y = eager.Apply("Reshape", {x, eager.Apply("Compress", {s, eager.Put(both)})});
    if (std::string(level) == "1") {
      EXPECT_EQ(y->state(), EagerState::kReady);
    }
    auto out = eager.Try({.op = "MatMul"}, {y, x});  // [2,2] times [4]
    if (std::string(level) == "1") {
      EXPECT_THAT(FormatError(out.status()), HasSubstr("MatMul"));
    } else if (out.ok()) {  // else the worker was faster than this thread
      EXPECT_THAT(eager.ErrorOf((*out)[0]), HasSubstr("MatMul"));
    }
    EXPECT_THAT(eager.Get(eager.Apply("Neg", {y})), ElementsAre(-1, -2, -3, -4));
  }
}

TEST(EagerErrorsDeathTest, WithoutCatchingTheProcessAborts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        const Eager eager("cpu0", {{"eager.catch_worker_errors", "0"}});
        const EagerTensorPtr bad = OutOfRange(eager, eager.Put({2}, {1, 2}));
        eager.ErrorOf(bad);
      },
      "E0309(.|\n)*eager.catch_worker_errors is off");
}

TEST(EagerErrors, AForkedChildIsTold) {
  const Eager eager("cpu0");
  const EagerTensorPtr x = eager.Put({2}, {1, 2});
  eager.Get(eager.Apply("Neg", {x}));
  const pid_t child = fork();
  if (child == 0) {
    auto out = eager.Try({.op = "Neg"}, {x});
    _exit(FormatError(out.status()).find("E0506") == std::string::npos ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// ---- the queue

// A matrix product that takes a while on the reference device.
EagerTensorPtr SlowOperator(const Eager& eager) {
  const EagerTensorPtr a = eager.Put(Eager::Waves({320, 320}));
  return eager.Apply("MatMul", {a, a});
}

TEST(EagerQueue, LevelTwoReturnsBeforeTheOperatorHasRun) {
  const Eager eager("host");
  const EagerTensorPtr y = SlowOperator(eager);
  EXPECT_EQ(y->state(), EagerState::kPending);
  EXPECT_EQ(y->value()->type().type.dims, Shape({320, 320}));  // known although it has not run
  EXPECT_EQ(eager.Get(y).size(), 320u * 320u);
}

TEST(EagerQueue, LevelZeroReturnsAfterwards) {
  const Eager eager("host", {{"eager.async_level", "0"}});
  EXPECT_EQ(SlowOperator(eager)->state(), EagerState::kReady);
}

TEST(EagerQueue, AFullQueueBlocksTheCaller) {
  const Eager eager("host", {{"eager.queue_commands", "5"}});
  const EagerTensorPtr x = eager.Put({2}, {-1, 1});
  eager.Get(eager.Apply("Relu", {x}));
  const EagerTensorPtr slow = SlowOperator(eager);
  std::vector<EagerTensorPtr> all;
  for (int i = 0; i < 5; ++i) all.push_back(eager.Apply("Relu", {x}));
  EXPECT_EQ(slow->state(), EagerState::kPending);
  for (int i = 0; i < 5; ++i) all.push_back(eager.Apply("Relu", {x}));
  EXPECT_NE(slow->state(), EagerState::kPending);  // at most 5 commands wait, so the slow one has ended
  EXPECT_LE(eager->counters().queue_peak, 5);
  for (const EagerTensorPtr& y : all) EXPECT_THAT(eager.Get(y), ElementsAre(0, 1));
}

TEST(EagerQueue, AnyNumberOfThreadsMayCall) {
  const Eager eager("cpu0", {{"eager.queue_commands", "16"}});
  const EagerTensorPtr x = eager.Put({3}, {1, 2, 3});
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      EagerTensorPtr y = x;
      for (int i = 0; i < 50; ++i) y = eager.Apply("Add", {y, x});
      if (eager.Get(y) == std::vector<float>{51, 102, 153}) ++right;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 4);
  EXPECT_EQ(eager->counters().runs, 200);
  EXPECT_TRUE(eager->Synchronize().ok());
}

TEST(EagerQueue, AnInterpreterMayBeReleasedWithCommandsInTheQueue) {
  for (int i = 0; i < 20; ++i) {
    const Eager eager("cpu0");
    EagerTensorPtr y = eager.Put({3}, {1, 2, 3});
    for (int k = 0; k < 10; ++k) y = eager.Apply("Neg", {y});
  }
}

}  // namespace
}  // namespace mge
