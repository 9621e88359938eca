// SPDX-License-Identifier: Apache-2.0
// The bytes that generated chains move, against the lower bound: each operand is read once, each result written once.
#include <dlfcn.h>

#include <cstring>

#include "tests/core/cli/command.h"
#include "tests/plugins/cuda/software_driver.h"

namespace mge {
namespace {

constexpr char kEmulating[] = MGE_BINARY_DIR "/tests/cuda/libnvrtc.so";

uint64_t Emulating(const char* what) {
  void* library = dlopen(kEmulating, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<uint64_t (*)()>(dlsym(library, what))();
}

// A model with chains, and the reason why some of their operands are read more than once.
struct Network {
  const char* name;
  const char* reason;  // "": none is
};
constexpr char kPerChannel[] = "an operand with one element per channel is read for each row; a cache has it";
constexpr char kNumber[] = "each thread reads an operand of one number; a cache has it";
constexpr Network kZoo[] = {{"eltwise-chain", kNumber}, {"tiny-ops", ""}};
constexpr Network kLight[] = {{"densenet121", kPerChannel}, {"resnet50", ""}, {"shufflenet", ""}};

// The bytes of a chain's operands and results.
struct Bound {
  uint64_t once = 0;      // of those with an element for each element of the result
  uint64_t repeated = 0;  // of the others
};

// Reads the elements and the bytes of a text "x : float32[1,8,4,4]".
void ReadShape(const std::string& text, int64_t* elements, uint64_t* bytes) {
  const size_t type = text.rfind(" : ") + 3, open = text.find('[', type);
  *elements = 1;
  for (size_t at = open + 1; open != std::string::npos && text[at] != ']';) {
    *elements *= std::strtoll(text.c_str() + at, nullptr, 10);
    at = text.find_first_of(",]", at);
    at += text[at] == ',';
  }
  const std::string name = text.substr(type, open - type);
  const uint64_t each = name == "bool" || name.ends_with("int8") ? 1
                        : name.ends_with("16")                   ? 2
                        : name.ends_with("64")                   ? 8
                                                                 : 4;
  *bytes = each * static_cast<uint64_t>(*elements);
}

Bound BoundOf(const Unit& unit) {
  int64_t results = 0, elements;
  Bound bound;
  uint64_t bytes;
  for (const std::string& y : unit.outputs) {
    ReadShape(y, &results, &bytes);
    bound.once += bytes;
  }
  for (const std::string& x : unit.inputs) {
    ReadShape(x, &elements, &bytes);
    (elements == results ? bound.once : bound.repeated) += bytes;
  }
  EXPECT_EQ(static_cast<double>(bound.once + bound.repeated), unit.bytes) << unit.fusion;
  return bound;
}

// Runs a model, and compares what its chains move with what they must.
void Check(const Network& model, const std::string& path) {
  SoftwareDriver driver;
  auto session = Session::Load(CudaRuntime({{"cuda.nvrtc", kEmulating}}), path, {.device = "cuda0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<HostValue> in, out(static_cast<size_t>((*session)->output_count()));
  for (const ValueId id : (*session)->graph().inputs()) {
    const TensorType& type = (*session)->graph().value(id).type;
    auto& input = in.emplace_back();
    input.tensor = *Tensor::Create(type.dtype, type.dims);
    std::memset(input.tensor.mutable_data(), 0, static_cast<size_t>(input.tensor.bytes()));
  }
  const uint64_t before = Emulating("emulating_bytes"), repeated_before = Emulating("emulating_repeated_bytes");
  RunState control;
  const absl::Status status = (*session)->Run(in, out, control);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  const uint64_t moved = Emulating("emulating_bytes") - before,
                 repeated = Emulating("emulating_repeated_bytes") - repeated_before;
  int chains = 0;
  Bound all;
  for (const Unit& unit : (*session)->last_plan()->units) {
    if (!unit.kernel.starts_with("gpu.compiled_chain")) continue;
    const Bound one = BoundOf(unit);
    all.once += one.once;
    all.repeated += one.repeated;
    ++chains;
  }
  EXPECT_GT(chains, 0);
  EXPECT_EQ(moved, all.once);
  EXPECT_EQ(repeated > all.repeated, *model.reason != 0);
  std::cout << model.name << ": " << chains << " chains move " << moved << " bytes, the lower bound is " << all.once
            << "; they read " << repeated << " bytes of repeated operands of " << all.repeated << " bytes"
            << (*model.reason ? ": " : "") << model.reason << "\n";
}

class ChainBytes : public Command {};

TEST_F(ChainBytes, OfTheZooAreTheLowerBound) {
  for (const Network& m : kZoo) {
    SCOPED_TRACE(m.name);
    ASSERT_EQ(Mge(std::string("zoo ") + m.name + " -o model.onnx").code, 0);
    Check(m, Path("model.onnx"));
  }
}

// The planner leaves no chain in these: epilogues, attention and siblings have taken their elementwise nodes.
TEST_F(ChainBytes, OfOtherNetworksOfTheZooAreNone) {
  for (const char* name : {"resnet50", "mobilenetv2", "bert-base-f16", "bert-tiny", "tiny-mixed"}) {
    ASSERT_EQ(Mge(std::string("zoo ") + name + " -o model.onnx").code, 0);
    const Outcome o = Mge("plan model.onnx --device cuda0",
                          std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_NVRTC=" + kEmulating);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, testing::Not(testing::HasSubstr("compiled_chain"))) << name;
  }
}

TEST_F(ChainBytes, OfLargeModelsAreTheLowerBound) {
  const char* data = std::getenv("MGE_TEST_DATA");
  if (!data) GTEST_SKIP() << "MGE_TEST_DATA is not set";
  for (const Network& m : kLight) {
    SCOPED_TRACE(m.name);
    Check(m, std::string(data) + "/onnx_light/light_" + m.name + ".onnx");
  }
}

}  // namespace
}  // namespace mge
