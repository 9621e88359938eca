// SPDX-License-Identifier: Apache-2.0
// The bytes that generated chains move, against the lower bound: each operand is read once, each result written once.
#include <dlfcn.h>

#include <cstring>

#include "core/base/file.h"
#include "core/base/float16.h"
#include "core/cli/zoo/architectures.h"
#include "core/onnx/reader.h"
#include "tests/plugins/cuda/software_driver.h"
#include "tests/plugins/gpu/run_time_compiler/twins.h"
#include "tests/support/command.h"

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
constexpr Network kZoo[] = {{"tiny-ops", ""}, {"eltwise-chain", kNumber}};  // in the order of the zoo
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

std::shared_ptr<Session> Load(onnx::Model model) {
  auto session = Session::Create(CudaRuntime({{"cuda.nvrtc", kEmulating}}), std::move(model), {.device = "cuda0"});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

// Runs a model, and compares what its chains move with what they must.
void Check(const Network& model, const std::shared_ptr<Session>& session) {
  ASSERT_TRUE(session);
  std::vector<HostValue> in, out(static_cast<size_t>(session->output_count()));
  for (const ValueId id : session->graph().inputs()) {
    const TensorType& type = session->graph().value(id).type;
    auto& input = in.emplace_back();
    input.tensor = *Tensor::Create(type.dtype, type.dims);
    std::memset(input.tensor.mutable_data(), 0, static_cast<size_t>(input.tensor.bytes()));
  }
  const uint64_t before = Emulating("emulating_bytes"), repeated_before = Emulating("emulating_repeated_bytes");
  RunState control;
  const absl::Status status = session->Run(in, out, control);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  const uint64_t moved = Emulating("emulating_bytes") - before,
                 repeated = Emulating("emulating_repeated_bytes") - repeated_before;
  int chains = 0;
  Bound all;
  for (const Unit& unit : session->last_plan()->units) {
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

// Sets a variable of the process while it lives.
struct Variable {
  Variable(const char* variable, const std::string& value) : name(variable) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name); }
  const char* name;
};

// Returns a model of the zoo, whose floats are float16 if `half`.
onnx::Model ZooModel(const cli::Architecture& architecture, bool half) {
  const auto bytes = std::make_shared<const std::string>(architecture.write({}));
  onnx::Model model = *onnx::ReadModelBytes(AsBytes(*bytes), bytes);
  for (ValueId id = 0; half && id < model.graph.value_count(); ++id) {
    Value& value = model.graph.value(id);
    if (value.type.dtype != DType::kF32) continue;
    value.type.dtype = DType::kF16;
    if (value.role != Role::kConstant) continue;
    Tensor narrow = *Tensor::Create(DType::kF16, value.type.dims);
    const auto wide = value.constant.Data<float>();
    std::transform(wide.begin(), wide.end(), narrow.MutableData<Half>().begin(), [](float x) { return Half(x); });
    value.constant = std::move(narrow);
  }
  return model;
}

bool LeavesChains(const std::string& name) {
  return std::ranges::any_of(kZoo, [&](const Network& network) { return name == network.name; });
}

class ChainBytes : public Command {};

// In the other networks, the planner leaves no chain: epilogues, attention and siblings have taken their elementwise nodes.
TEST_F(ChainBytes, OfTheZooInBothTypesCompiledAsOneUnitAreTheLowerBound) {
  struct Found {
    const cli::Architecture* architecture;
    bool half;
  };
  std::vector<Found> found;
  const std::string unit = Path("chains.so");
  std::filesystem::create_directory(Path("chains"));
  {
    const Variable collect(kCollectVariable, Path("chains"));
    for (const bool half : {false, true}) {
      for (const cli::Architecture& a : cli::Architectures()) {
        if (half && !LeavesChains(a.name)) continue;  // their plans have the groups of float32
        SCOPED_TRACE(a.name);
        SoftwareDriver driver;
        const uint64_t before = Emulating("emulating_compilations");
        const std::shared_ptr<Session> session = Load(ZooModel(a, half));
        ASSERT_TRUE(session);
        std::vector<InputType> types;
        for (const ValueId id : session->graph().inputs()) {
          const TensorType& type = session->graph().value(id).type;
          types.push_back({.dtype = type.dtype, .shape = type.dims});
        }
        const auto plan = session->PlanFor(types);
        ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
        if (Emulating("emulating_compilations") > before) found.push_back({&a, half});
      }
    }
  }
  const std::vector<std::string> sources = CollectedSources(Path("chains"));
  ASSERT_EQ(found.size(), 2 * std::size(kZoo));
  EXPECT_GE(sources.size(), found.size());  // without their twins, the planner has asked for smaller ones, too
  ASSERT_TRUE(CompileTwins(sources, kSoftwareDriver, unit));
  const Variable twins(kUnitVariable, unit);
  for (size_t i = 0; i < found.size(); ++i) {
    const Network& network = kZoo[i % std::size(kZoo)];
    ASSERT_STREQ(found[i].architecture->name, network.name);
    SCOPED_TRACE(network.name);
    SoftwareDriver driver;
    Check(network, Load(ZooModel(*found[i].architecture, found[i].half)));
  }
}

TEST_F(ChainBytes, OfLargeModelsAreTheLowerBound) {
  const char* data = std::getenv("MGE_TEST_DATA");
  if (!data) GTEST_SKIP() << "MGE_TEST_DATA is not set";
  for (const Network& m : kLight) {
    SCOPED_TRACE(m.name);
    SoftwareDriver driver;
    Check(m, Load(*onnx::ReadModel(std::string(data) + "/onnx_light/light_" + m.name + ".onnx")));
  }
}

}  // namespace
}  // namespace mge
