// SPDX-License-Identifier: Apache-2.0
// Compares whole models on the virtual GPU, which must run all steps with its kernels, with the CPU.
// The models are the zoo and nine well-known architectures. The latter get generated weights, because all weights of
// their files are equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/cli/zoo/architectures.h"
#include "core/engine/session.h"

namespace mge {
namespace {

namespace fs = std::filesystem;

// The tolerance relative to the largest result. Both devices compute in float32 and round differently: after a hundred
// layers the sixth digit differs. A computation in bfloat16 would change the third digit. Models of float16 round each value
// to 11 bits, those of bfloat16 to 8.
double ToleranceOf(DType type) { return type == DType::kF16 ? 5e-3 : type == DType::kBF16 ? 4e-2 : 1e-4; }

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  float Between(float low, float high) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * static_cast<float>(state_ >> 40) * 0x1p-24f;
  }

 private:
  uint64_t state_;
};

absl::StatusOr<Tensor> Uniform(const Shape& shape, float low, float high, uint64_t seed) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kF32, shape));
  Random random(seed);
  for (float& f : out.MutableData<float>()) f = random.Between(low, high);
  return out;
}

absl::StatusOr<Tensor> Cast(const Tensor& from, DType to) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(to, from.shape()));
  DispatchFloating(to, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::ranges::transform(from.Data<float>(), out.MutableData<T>().begin(), [](float f) { return static_cast<T>(f); });
  });
  return out;
}

std::vector<double> NumbersOf(const Tensor& t) {
  std::vector<double> out;
  DispatchFloating(t.dtype(), [&](auto tag) {
    for (auto x : t.Data<typename decltype(tag)::type>()) out.push_back(static_cast<double>(x));
  });
  return out;
}

absl::StatusOr<onnx::Model> ReadZoo(const cli::Architecture& architecture) {
  auto bytes = std::make_shared<std::string>(architecture.write({}));
  return onnx::ReadModelBytes({reinterpret_cast<const std::byte*>(bytes->data()), bytes->size()}, bytes);
}

// Reads a model whose weights are ConstantOfShape nodes, and replaces them. Matrices and filters get random numbers that
// preserve the deviation of their input. Other weights get factors and variances. Inputs of Softmax become outputs,
// because Softmax hides differences.
absl::StatusOr<onnx::Model> ReadLight(const fs::path& path) {
  MGE_ASSIGN_OR_RETURN(onnx::Model model, onnx::ReadModel(path));
  Graph& graph = model.graph;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).op != "ConstantOfShape") continue;
    const ValueId out = graph.node(id).outputs[0];
    auto dims = graph.value(graph.node(id).inputs[0]).constant.Data<int64_t>();
    Shape shape(dims.begin(), dims.end());
    int64_t terms = 1;  // terms of one element of a product
    for (size_t i = 1; i < shape.size(); ++i) terms *= shape[i];
    float low = 0.5f, high = 1.5f;
    if (terms > 1) {
      high = std::sqrt(6 / static_cast<float>(terms));
      low = -high;
    }
    MGE_ASSIGN_OR_RETURN(Tensor weight, Uniform(shape, low, high, static_cast<uint64_t>(id)));
    graph.ReplaceUses(out, graph.AddConstant(graph.value(out).name + "_filled", std::move(weight)));
    graph.RemoveNode(id);
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (!graph.node(id).dead && graph.node(id).op == "Softmax") graph.outputs().push_back(graph.node(id).inputs[0]);
  }
  return model;
}

absl::StatusOr<std::vector<HostValue>> Inputs(const Graph& graph) {
  std::vector<HostValue> out;
  for (ValueId id : graph.inputs()) {
    const TensorType& type = graph.value(id).type;
    HostValue v;
    if (kFloating.Contains(type.dtype)) {
      MGE_ASSIGN_OR_RETURN(const Tensor floats, Uniform(type.dims, -1, 1, 99));
      MGE_ASSIGN_OR_RETURN(v.tensor, Cast(floats, type.dtype));
    } else {
      MGE_ASSIGN_OR_RETURN(v.tensor, Tensor::Create(type.dtype, type.dims));
      int64_t i = 0;
      for (int64_t& word : v.tensor.MutableData<int64_t>()) word = i++ * 37 % 1000;
    }
    out.push_back(std::move(v));
  }
  return out;
}

absl::StatusOr<std::vector<HostValue>> RunOn(const std::string& device, onnx::Model model,
                                             const std::vector<HostValue>& inputs) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  options.sources.call = {{"virtual.devices", "1"}};
  MGE_ASSIGN_OR_RETURN(auto runtime, Runtime::Create(std::move(options)));
  MGE_ASSIGN_OR_RETURN(auto session, Session::Create(runtime, std::move(model), {.device = device}));
  std::vector<InputType> types;
  for (const HostValue& v : inputs) types.push_back(TypeOfValue(v));
  MGE_ASSIGN_OR_RETURN(auto plan, session->PlanFor(types));
  int kernels = 0;
  for (const Unit& unit : plan->units) {
    kernels += unit.kind == Unit::Kind::kKernel;
    if (unit.kind == Unit::Kind::kCopy) continue;
    EXPECT_EQ(unit.device, device) << unit.ops[0];
    EXPECT_NE(unit.kind, Unit::Kind::kReference) << unit.ops[0];
    EXPECT_NE(unit.kind, Unit::Kind::kHost) << unit.ops[0];
  }
  EXPECT_GT(kernels, 0);
  std::vector<HostValue> outputs(static_cast<size_t>(session->output_count()));
  RunState control;
  MGE_RETURN_IF_ERROR(session->Run(inputs, outputs, control));
  return outputs;
}

absl::Status Compare(onnx::Model model) {
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> inputs, Inputs(model.graph));
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> want, RunOn("cpu0", model, inputs));
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> got, RunOn("virtual0", std::move(model), inputs));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].tensor.dtype(), want[i].tensor.dtype());
    EXPECT_EQ(got[i].tensor.shape(), want[i].tensor.shape());
    const std::vector<double> a = NumbersOf(got[i].tensor), b = NumbersOf(want[i].tensor);
    double largest = 0, difference = 0;
    for (size_t k = 0; k < b.size(); ++k) {
      largest = std::max(largest, std::abs(b[k]));
      difference = std::max(difference, std::abs(a[k] - b[k]));
    }
    EXPECT_LE(difference, ToleranceOf(want[i].tensor.dtype()) * largest) << "output " << i;
  }
  return absl::OkStatus();
}

class Zoo : public testing::TestWithParam<cli::Architecture> {};
TEST_P(Zoo, GivesTheSameResultsOnVirtual0AndCpu0) {
  auto model = ReadZoo(GetParam());
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  absl::Status status = Compare(*std::move(model));
  EXPECT_TRUE(status.ok()) << FormatError(status);
}

std::string NameOf(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Virtual, Zoo, testing::ValuesIn(cli::Architectures().begin(), cli::Architectures().end()),
                         [](const auto& p) { return NameOf(p.param.name); });

class Light : public testing::TestWithParam<const char*> {};
TEST_P(Light, GivesTheSameResultsOnVirtual0AndCpu0) {
  const char* data = std::getenv("MGE_TEST_DATA");
  if (!data) GTEST_SKIP() << "MGE_TEST_DATA is not set";
  auto model = ReadLight(fs::path(data) / "onnx_light" / (std::string("light_") + GetParam() + ".onnx"));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  absl::Status status = Compare(*std::move(model));
  EXPECT_TRUE(status.ok()) << FormatError(status);
}
INSTANTIATE_TEST_SUITE_P(Virtual, Light,
                         testing::Values("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50",
                                         "shufflenet", "squeezenet", "vgg19", "zfnet512"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace mge
