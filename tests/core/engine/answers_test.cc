// SPDX-License-Identifier: Apache-2.0
// Small graphs with known results, on every device of this build.
#include <filesystem>
#include <limits>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/ops/op.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kPlugins[] = MGE_BINARY_DIR "/lib/mge/plugins";

std::vector<std::string> Devices() {
  std::vector<std::string> devices = {"host", "cpu0"};
  if (std::filesystem::exists(std::string(kPlugins) + "/mge_virtual.so")) devices.push_back("virtual0");
  return devices;
}

HostValue Floats(Shape shape, std::vector<float> values) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, std::move(shape));
  std::copy(values.begin(), values.end(), v.tensor.MutableData<float>().begin());
  return v;
}

HostValue Numbers(std::vector<int64_t> values) {
  HostValue v;
  v.tensor = Tensor::Vector<int64_t>(values);
  return v;
}

HostValue Truth(bool value) {
  HostValue v;
  v.tensor = Tensor::Scalar<bool>(value);
  return v;
}

// A session of a device, made from a graph in text form.
class Model {
 public:
  Model(std::string_view text, const std::string& device, std::vector<Assignment> settings = {}) {
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {kPlugins};
    options.sources.call = std::move(settings);
    options.sources.call.push_back({"virtual.devices", "1"});
    options.sources.call.push_back({"plan.host_compute", "0"});
    auto runtime = Runtime::Create(std::move(options));
    EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
    onnx::Model model;
    model.graph = *ParseGraphText(text);
    for (NodeId id = 0; id < model.graph.node_count(); ++id) EXPECT_TRUE(BindNode(model.graph, id).ok());
    outputs_ = model.graph.outputs().size();
    auto session = Session::Create(*runtime, std::move(model), {.device = device});
    if (session.ok())
      session_ = *session;
    else
      load_error_ = FormatError(session.status());
  }

  // Runs the session. Returns the outputs as text, or the error.
  std::string operator()(std::vector<HostValue> inputs) {
    if (!session_) return "at load: " + load_error_;
    std::vector<HostValue> out(outputs_);
    RunState control;
    if (absl::Status status = session_->Run(inputs, out, control); !status.ok()) return FormatError(status);
    std::string text;
    for (const HostValue& v : out) text += (text.empty() ? "" : " ") + TensorToText(v.tensor);
    return text;
  }

 private:
  std::shared_ptr<Session> session_;
  std::string load_error_;
  size_t outputs_ = 0;
};

void ExpectEverywhere(std::string_view graph, const std::vector<HostValue>& inputs, const std::string& expected) {
  for (const std::string& device : Devices()) EXPECT_EQ(Model(graph, device)(inputs), expected) << device << "\n" << graph;
}

TEST(Answers, ConcatJoinsValuesWhoseShapesDependOnData) {
  const HostValue x = Floats({1, 2}, {1, 2});
  ExpectEverywhere(
      "input s : int64[2]\ninput x : float32[?,2]\na = ConstantOfShape(s)\nb = Relu(a)\n"
      "y = Concat(b, x) {axis=0}\noutput y\n",
      {Numbers({2, 2}), x}, "float32[3,2]<0.0, 0.0, 0.0, 0.0, 1.0, 2.0>");
  ExpectEverywhere(
      "input s : int64[2]\ninput x : float32[?,2]\nr = Reshape(x, s)\nb = Neg(r)\n"
      "y = Concat(x, b) {axis=0}\noutput y\n",
      {Numbers({1, 2}), x}, "float32[2,2]<1.0, 2.0, -1.0, -2.0>");
  ExpectEverywhere(
      "input s : int64[2]\ninput x : float32[?,2]\nr = Expand(x, s)\nb = Abs(r)\n"
      "y = Concat(b, x) {axis=0}\noutput y\n",
      {Numbers({2, 1}), x}, "float32[3,2]<1.0, 2.0, 1.0, 2.0, 1.0, 2.0>");
  ExpectEverywhere(
      "input s : int64[1]\ninput x : float32[?,2]\nconst e = int64[1]<9>\nr = Slice(x, s, e)\nb = Neg(r)\n"
      "y = Concat(b, x) {axis=0}\noutput y\n",
      {Numbers({1}), x}, "float32[1,2]<1.0, 2.0>");
  ExpectEverywhere("input x : float32[?,2]\nn = NonZero(x)\nm = Neg(n)\ny = Concat(m, n) {axis=0}\noutput y\n", {x},
                   "int64[4,2]<0, 0, 0, -1, 0, 0, 0, 1>");
}

TEST(Answers, AReductionOverNoAxesKeepsItsMeaningForConstantsToo) {
  for (const char* x : {"input x : float32[2]", "const x = float32[2]<-2, 1>"}) {
    auto graph = [&](const char* op) {
      return fmt::format("{}\nr = {}(x) {{noop_with_empty_axes=1}}\ny = Neg(r)\noutput y\n", x, op);
    };
    std::vector<HostValue> inputs;
    if (x[0] == 'i') inputs = {Floats({2}, {-2, 1})};
    ExpectEverywhere(graph("ReduceL1"), inputs, "float32[2]<-2.0, -1.0>");
    ExpectEverywhere(graph("ReduceL2"), inputs, "float32[2]<-2.0, -1.0>");
    ExpectEverywhere(graph("ReduceSumSquare"), inputs, "float32[2]<-4.0, -1.0>");
    ExpectEverywhere(graph("ReduceSum"), inputs, "float32[2]<2.0, -1.0>");
  }
}

TEST(Answers, AChainOfSixteenBitFloatsRoundsAfterEveryStep) {
  // In float32 the product is 29.998, and a cast to integers gives 29. In float16 it is rounded to 30 first.
  ExpectEverywhere(
      "input x : float32[1]\nconst k = float16[1]<1.001>\nh = Cast(x) {to=10}\nm = Mul(h, k)\n"
      "y = Cast(m) {to=7}\noutput y\noutput m\n",
      {Floats({1}, {29.97F})}, "int64[1]<30> float16[1]<30.0>");
  ExpectEverywhere(
      "input x : float32[1]\nconst k = bfloat16[1]<1.0078125>\nh = Cast(x) {to=16}\nm = Mul(h, k)\n"
      "s = Sub(m, k)\ny = Cast(s) {to=1}\noutput y\n",
      {Floats({1}, {1.0078125F})}, "float32[1]<0.0078125>");
}

TEST(Answers, AnOperandWithASymbolicShapeBroadcastsToSizeOne) {
  ExpectEverywhere("input x : float32[1,2]\ninput s : float32[N,2]\ny = PRelu(x, s)\noutput y\n",
                   {Floats({1, 2}, {-1, 1}), Floats({1, 2}, {3, 3})}, "float32[1,2]<-3.0, 1.0>");
  ExpectEverywhere(
      "input x : float32[1,2]\ninput s : float32[N]\ny = LayerNormalization(x, s) {axis=1}\nz = Round(y)\noutput z\n",
      {Floats({1, 2}, {-1, 1}), Floats({2}, {3, 3})}, "float32[1,2]<-3.0, 3.0>");
}

TEST(Answers, AKernelLargerThanTheInputPoolsTheWholeInputInCeilMode) {
  const HostValue x = Floats({1, 1, 4}, {-1, 0, 1, 2});
  ExpectEverywhere("input x : float32[1,1,4]\ny = MaxPool(x) {kernel_shape=[5], strides=[2], ceil_mode=1}\noutput y\n", {x},
                   "float32[1,1,1]<2.0>");
  ExpectEverywhere(
      "input x : float32[1,1,4]\ny = AveragePool(x) {kernel_shape=[7], strides=[2], pads=[1,1], ceil_mode=1}\n"
      "output y\n",
      {x}, "float32[1,1,1]<0.5>");
  ExpectEverywhere("input x : float32[1,1,4]\ny = MaxPool(x) {kernel_shape=[5], ceil_mode=1}\noutput y\n", {x},
                   "float32[1,1,0]<>");
}

TEST(Answers, AConvolutionOfPaddingAloneGivesItsBias) {
  ExpectEverywhere(
      "input x : float32[1,1,?]\nconst w = float32[1,1,1]<2>\nconst b = float32[1]<3>\n"
      "y = Conv(x, w, b) {pads=[1,1]}\noutput y\n",
      {Floats({1, 1, 0}, {})}, "float32[1,1,2]<3.0, 3.0>");
  ExpectEverywhere(
      "input x : float32[1,1,0,4]\nconst w = float32[2,1,3,3]<1>\ny = Conv(x, w) {pads=[2,1,1,1]}\nz = ReduceSum(y)\n"
      "output z\n",
      {Floats({1, 1, 0, 4}, {})}, "float32[1,1,1,1]<0.0>");
}

TEST(Answers, AutoPadWinsOverPads) {
  const HostValue x = Floats({1, 1, 4}, {1, 2, 3, 4});
  ExpectEverywhere(
      "input x : float32[1,1,4]\ny = AveragePool(x) {kernel_shape=[2], auto_pad=\"VALID\", pads=[1,1]}\noutput y\n", {x},
      "float32[1,1,3]<1.5, 2.5, 3.5>");
  ExpectEverywhere(
      "input x : float32[1,1,4]\nconst w = float32[1,1,2]<1>\ny = Conv(x, w) {auto_pad=\"SAME_UPPER\", pads=[1,0]}\n"
      "output y\n",
      {x}, "float32[1,1,4]<3.0, 5.0, 7.0, 4.0>");
}

TEST(Answers, GemmWithBetaZeroDoesNotReadItsThirdInput) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* c : {"input c : float32[2]", "const c = float32[2]<nan, 1>"}) {
    std::vector<HostValue> inputs = {Floats({2, 2}, {1, 1, 1, 1})};
    if (c[0] == 'i') inputs.push_back(Floats({2}, {nan, 1}));
    ExpectEverywhere(fmt::format("input x : float32[2,2]\n{}\ny = Gemm(x, x, c) {{beta=0.0}}\noutput y\n", c), inputs,
                     "float32[2,2]<2.0, 2.0, 2.0, 2.0>");
  }
}

TEST(Answers, ReproducibleUsesTheReferenceEvaluatorIfNoKernelIsReproducible) {
  const char* graph = "input x : float32[1,2]\ny = Einsum(x, x) {equation=\"ij,ij->i\"}\noutput y\n";
  for (const std::string& device : Devices()) {
    Model model(graph, device, {{"select.strategy", "reproducible"}});
    EXPECT_EQ(model({Floats({1, 2}, {1, 2})}), "float32[1]<5.0>") << device;
  }
}

TEST(Answers, TheErrorOfABranchIsReportedOnlyByARunThatTakesIt) {
  const char* graph =
      "input c : bool\ninput x : float32[?,3]\ny = If(c) captures(x, x) {then_branch=graph {\ncapture x\nv = Neg(x)\noutput "
      "v\n}, "
      "else_branch=graph {\ncapture x\nconst a = int64[1]<1>\nv = Squeeze(x, a) as \"squeezed\"\noutput v\n}}\n"
      "z = Neg(y)\noutput z\n";
  const HostValue x = Floats({1, 3}, {1, 2, 3});
  for (const std::string& device : Devices()) {
    Model model(graph, device);
    EXPECT_EQ(model({Truth(true), x}), "float32[1,3]<1.0, 2.0, 3.0>") << device;
    EXPECT_THAT(model({Truth(false), x}), AllOf(HasSubstr("only size 1 can be removed"), HasSubstr("squeezed"))) << device;
    EXPECT_EQ(model({Truth(true), x}), "float32[1,3]<1.0, 2.0, 3.0>") << device;
  }
}

TEST(Answers, AnOutputThatIsListedTwiceIsReturnedTwice) {
  ExpectEverywhere("input x : float32[2]\ny = Neg(x)\noutput y, y\n", {Floats({2}, {1, 2})},
                   "float32[2]<-1.0, -2.0> float32[2]<-1.0, -2.0>");
  ExpectEverywhere("input x : float32[?,2]\ny = NonZero(x)\noutput y, y\n", {Floats({1, 2}, {0, 1})},
                   "int64[2,1]<0, 1> int64[2,1]<0, 1>");
}

TEST(ModelWarnings, AllDeviationsOfAModelAreOneWarning) {
  std::vector<std::string> warnings;
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.logger = Logger(
      LogLevel::kWarning,
      [](void* to, LogLevel, std::string_view text) { static_cast<std::vector<std::string>*>(to)->emplace_back(text); },
      &warnings);
  auto runtime = Runtime::Create(std::move(options));
  ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
  onnx::Model model;
  model.graph = *ParseGraphText("input x : float32[2]\ny = Neg(x)\noutput y\n");
  model.info.deviations = {"a", "b", "c", "d", "e"};
  auto session = Session::Create(*runtime, std::move(model), {.device = "host"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  EXPECT_THAT(warnings, Contains(HasSubstr("breaks rules of ONNX and is accepted: a; b; c; and 2 more")).Times(1));
}

}  // namespace
}  // namespace mge
