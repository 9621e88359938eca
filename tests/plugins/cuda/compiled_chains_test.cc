// SPDX-License-Identifier: Apache-2.0
// Chains of elementwise nodes that are generated and compiled at run time. In place of NVRTC, the tests load a library that
// compiles for this machine.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "tests/plugins/cuda/software_driver.h"
#include "tests/plugins/gpu/run_time_compiler/twins.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kEmulating[] = MGE_BINARY_DIR "/tests/cuda/libnvrtc.so";
constexpr char kReal[] = "/usr/local/cuda/lib64/libnvrtc.so.13";

uint64_t Emulating(const char* what) {
  void* library = dlopen(kEmulating, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<uint64_t (*)()>(dlsym(library, what))();
}

class CompiledChains : public Command {
 protected:
  static std::string Environment(const std::string& library = kEmulating) {
    return std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_NVRTC=" + library;
  }
  std::string Zoo(const std::string& name) const {
    EXPECT_EQ(Mge("zoo " + name + " -o " + name + ".onnx").code, 0);
    return Path(name + ".onnx");
  }
  // Returns a model that quantizes and dequantizes twice, with these dimensions of the scales.
  std::string Quantized(const std::vector<int64_t>& scales) const {
    using namespace onnx_builder;  // NOLINT: its functions build models
    std::vector<float> s(scales.empty() ? 1 : static_cast<size_t>(scales[0]));
    for (size_t i = 0; i < s.size(); ++i) s[i] = 0.01f + 0.001f * static_cast<float>(i);
    const std::string zeros(s.size(), '\x40');
    return Model("quantized.onnx",
                 {NodeProto("QuantizeLinear", {"x", "s", "z"}, {"q"}), NodeProto("DequantizeLinear", {"q", "s", "z"}, {"d"}),
                  NodeProto("Sigmoid", {"d"}, {"t"}), NodeProto("QuantizeLinear", {"t", "s", "z"}, {"u"}),
                  NodeProto("DequantizeLinear", {"u", "s", "z"}, {"y"})},
                 {FloatTensor("s", scales, s), RawTensor("z", DType::kU8, scales, zeros)}, {int64_t{11}, int64_t{37}});
  }
};

TEST_F(CompiledChains, ComputeWhatTheReferenceComputes) {
  for (const char* name : {"eltwise-chain", "tiny-mixed", "tiny-ops"}) {
    const Outcome o = Mge("run " + Zoo(name) + " --device cuda0 --against host", Environment());
    EXPECT_EQ(o.code, 0) << name << o.out << o.err;
    EXPECT_THAT(o.err, Not(HasSubstr("cannot be compiled")));
  }
  EXPECT_THAT(Mge("plan " + Path("eltwise-chain.onnx") + " --device cuda0", Environment()).out,
              HasSubstr("gpu.compiled_chain"));
}

TEST_F(CompiledChains, QuantizeAndDequantize) {
  for (const std::vector<int64_t>& scales : {std::vector<int64_t>{}, {37}}) {
    const std::string model = Quantized(scales);
    const Outcome o = Mge("run " + model + " --device cuda0 --against host", Environment());
    EXPECT_EQ(o.code, 0) << o.out << o.err;
    EXPECT_THAT(o.err, Not(HasSubstr("cannot be compiled")));
    EXPECT_THAT(Mge("plan " + model + " --device cuda0", Environment()).out, HasSubstr("gpu.compiled_chain"));
  }
}

TEST_F(CompiledChains, OfAnyLengthReadAndWriteEachByteOnce) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 100; ++i) {
    nodes.push_back(onnx_builder::NodeProto(i % 2 ? "Sigmoid" : "Tanh", {i ? "t" + std::to_string(i) : "x"},
                                            {i < 99 ? "t" + std::to_string(i + 1) : "y"}));
  }
  const std::string model = Model("long.onnx", nodes, {}, {int64_t{37}, int64_t{11}});
  SoftwareDriver driver;
  auto session = Session::Load(CudaRuntime({{"cuda.nvrtc", kEmulating}}), model, {.device = "cuda0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  const uint64_t before = Emulating("emulating_bytes");
  ASSERT_TRUE(ResultsOf(**session, {Numbers({37, 11})}).ok());
  EXPECT_EQ(Emulating("emulating_bytes") - before, 2u * 37 * 11 * sizeof(float));
}

// Operands of fewer dimensions than the result, or of size 1 in some. Those of the result's size are read once.
TEST_F(CompiledChains, ReadOperandsThatAreRepeated) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  struct Form {
    std::vector<Dim> x;
    std::vector<int64_t> weights;
    uint64_t bytes;  // of the operands that are not repeated, and of the result
  };
  for (const Form& f :
       {Form{{int64_t{4}}, {1, 4}, 48}, Form{{int64_t{1}, int64_t{4}}, {4}, 48}, Form{{int64_t{3}, int64_t{4}}, {4}, 96},
        Form{{int64_t{4}}, {3, 1}, 48}, Form{{int64_t{3}, int64_t{4}}, {3, 1}, 96}, Form{{int64_t{5}}, {3, 1, 5}, 120},
        Form{{int64_t{3}, int64_t{4}}, {1}, 96}, Form{{int64_t{2}, int64_t{1}, int64_t{4}}, {3, 1}, 96},
        Form{{int64_t{1}}, {1, 1}, 12}}) {
    size_t count = 1;
    for (int64_t d : f.weights) count *= static_cast<size_t>(d);
    std::vector<float> weights(count);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.5f * static_cast<float>(i) - 0.25f;
    const std::string model =
        Model("rows.onnx",
              {NodeProto("Add", {"x", "w"}, {"s"}), NodeProto("Mul", {"s", "x"}, {"p"}), NodeProto("Sigmoid", {"p"}, {"y"})},
              {FloatTensor("w", f.weights, weights)}, f.x);
    const Outcome o = Mge("run " + model + " --device cuda0 --against host", Environment());
    EXPECT_EQ(o.code, 0) << o.out << o.err;
    SoftwareDriver driver;
    auto session = Session::Load(CudaRuntime({{"cuda.nvrtc", kEmulating}}), model, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    Shape dims;
    for (const Dim& d : f.x) dims.push_back(std::get<int64_t>(d));
    const uint64_t before = Emulating("emulating_bytes");
    ASSERT_TRUE(ResultsOf(**session, {Numbers(dims)}).ok());
    EXPECT_EQ(Emulating("emulating_bytes") - before, f.bytes);
  }
}

// Images outlive the runtime that compiled them. A damaged one is compiled again.
TEST_F(CompiledChains, AreKeptInTheCacheOfBlobs) {
  const std::string model = Zoo("eltwise-chain"), folder = Path("blobs");
  SoftwareDriver driver;
  const auto compilations = [&] {
    const uint64_t before = Emulating("emulating_compilations");
    const auto session =
        Session::Load(CudaRuntime({{"cuda.nvrtc", kEmulating}, {"cache.dir", folder}}), model, {.device = "cuda0"});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    const auto results = ResultsOf(**session, {Numbers({1 << 20}), Numbers({1 << 20})});
    EXPECT_TRUE(results.ok()) << FormatError(results.status());
    return Emulating("emulating_compilations") - before;
  };
  EXPECT_EQ(compilations(), 1u);
  EXPECT_EQ(compilations(), 0u);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) std::filesystem::resize_file(entry, 40);
  EXPECT_EQ(compilations(), 1u);
}

TEST_F(CompiledChains, AreInterpretedIfThereIsNoCompiler) {
  const std::string model = Zoo("eltwise-chain");
  for (const auto& [library, why] : {std::pair("/nowhere/libnvrtc.so.13", "NVRTC cannot be used: /nowhere"),
                                     {"off", "NVRTC is switched off"},
                                     {"libnvrtc.so", "which is not an absolute path"},
                                     {kSoftwareDriver, "has no function nvrtcVersion"}}) {
    const Outcome o = Mge("plan " + model + " --device cuda0 --why", Environment(library));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("gpu.chain"));
    EXPECT_THAT(o.out, Not(HasSubstr("gpu.compiled_chain")));
  }
}

// ---- the settings jit.*

TEST_F(CompiledChains, AreKeptAsFilesAlsoIfTheyComeFromTheCache) {
  namespace fs = std::filesystem;
  const std::string run = "run " + Zoo("eltwise-chain") + " --device cuda0";
  const auto count = [&](const std::string& folder, const std::string& suffix) {
    return std::ranges::count_if(fs::directory_iterator(folder), [&](const fs::directory_entry& e) {
      return e.path().filename().string().starts_with("chain_") && e.path().extension() == suffix;
    });
  };
  const std::string settings = Environment() + " MGE_CACHE_DIR=" + Path("cache") + " MGE_JIT_WORK_DIR=";
  for (const std::string& folder : {Path("files/new"), Path("again")}) {
    EXPECT_EQ(Mge(run, settings + folder).code, 0);
    EXPECT_FALSE(fs::exists(folder)) << "without jit.keep_files no file is written";
    const Outcome o = Mge(run, settings + folder + " MGB_JIT_KEEP_INTERM=1");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.err, HasSubstr("the files of generated kernels are kept in " + folder));
    EXPECT_EQ(count(folder, ".cu"), 1);
    EXPECT_EQ(count(folder, ".cubin"), 1);
    EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  }
  const Outcome refused = Mge(run, settings + "/proc/nowhere MGE_JIT_KEEP_FILES=1");
  EXPECT_EQ(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("the files of generated kernels cannot be written to /proc/nowhere: "));
}

TEST_F(CompiledChains, NeedTheCompilerThatJitBackendNames) {
  const std::string run = "run " + Zoo("eltwise-chain") + " --device cuda0";
  EXPECT_EQ(Mge(run, Environment() + " MGB_JIT_BACKEND=NVRTC").code, 0);
  const Outcome none = Mge(run, Environment("/nowhere/libnvrtc.so.13") + " MGE_JIT_BACKEND=nvrtc");
  EXPECT_EQ(none.code, 5) << none.err;
  EXPECT_THAT(none.err, HasSubstr("NVRTC cannot be used: /nowhere"));
  const Outcome other = Mge(run, Environment() + " MGE_JIT_BACKEND=hiprtc");
  EXPECT_EQ(other.code, 5) << other.err;
  EXPECT_THAT(other.err, HasSubstr("jit.backend is hiprtc, but this backend compiles generated kernels with nvrtc only"));
  const Outcome halide = Mge(run, Environment() + " MGB_JIT_BACKEND=HALIDE");
  EXPECT_EQ(halide.code, 5) << halide.err;
  EXPECT_THAT(halide.err, HasSubstr("jit.backend is halide, but this backend compiles generated kernels with nvrtc only"));
}

TEST_F(CompiledChains, UseTheCompilerOfTheToolkitThatJitCudaPathNames) {
  const std::string plan = "plan " + Zoo("eltwise-chain") + " --device cuda0", driver = " MGE_CUDA_DRIVER=";
  std::filesystem::create_directories(Path("toolkit/lib64"));
  std::filesystem::create_directories(Path("toolkit/bin"));
  std::filesystem::create_symlink(kEmulating, Path("toolkit/lib64/libnvrtc.so.13"));
  EXPECT_THAT(Mge(plan, driver + kSoftwareDriver).out, Not(HasSubstr("gpu.compiled_chain")));
  for (const char* folder : {"toolkit", "toolkit/bin"}) {
    const Outcome o = Mge(plan, driver + kSoftwareDriver + " CUDA_BIN_PATH=" + Path(folder));
    EXPECT_THAT(o.out, HasSubstr("gpu.compiled_chain")) << folder << o.err;
  }
}

// Compiles a source by the library that the tests load in place of NVRTC.
void Compile(const char* source) {
  void* library = dlopen(kEmulating, RTLD_NOW | RTLD_LOCAL);
  const auto create =
      reinterpret_cast<int (*)(void**, const char*, const char*, int, const char* const*, const char* const*)>(
          dlsym(library, "nvrtcCreateProgram"));
  const auto compile = reinterpret_cast<int (*)(void*, int, const char* const*)>(dlsym(library, "nvrtcCompileProgram"));
  void* program = nullptr;
  create(&program, source, "chain.cu", 0, nullptr, nullptr);
  compile(program, 0, nullptr);
}

TEST_F(CompiledChains, EndATestWithTheirSourceIfTheyDoNotCompile) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  constexpr char kOther[] =
      "#include \"plugins/gpu/port.h\"\n"
      "namespace mge::gpu {\n"
      "struct Args {\n  void* p;\n};\n"
      "GPU_DEVICE void Run(const Args&) {}\n"
      "GPU_KERNEL(other, 64, Args, Run)\n"
      "}\n";
  ASSERT_TRUE(CompileTwins({kOther}, kSoftwareDriver, Path("chains.so")));
  const auto with_unit = [&](const char* source) {
    setenv(kUnitVariable, Path("chains.so").c_str(), 1);
    const SoftwareDriver driver;
    Compile(source);
  };
  EXPECT_DEATH(with_unit("// GPU_KERNEL(chain_1, 256)"), "chain_1: it has no twin in");
  if (!std::filesystem::exists(kReal)) GTEST_SKIP() << "no " << kReal;
  EXPECT_DEATH(Compile("float x = ;  // GPU_KERNEL(chain_2, 256)"),
               "chain_2: .*libnvrtc.so.13 refuses it:(.|\n)*float x = ;");
}

// The driver in software has no twin of a kernel that NVRTC has compiled.
TEST_F(CompiledChains, AreCompiledByNvrtcAndInterpretedIfTheDriverRefusesThem) {
  if (!std::filesystem::exists(kReal)) GTEST_SKIP() << "no " << kReal;
  for (const char* name : {"eltwise-chain", "tiny-ops", "tiny-mixed", "quantized"}) {
    const std::string model = name == std::string_view("quantized") ? Quantized({37}) : Zoo(name);
    const Outcome o = Mge("run " + model + " --device cuda0 --against host", Environment(kReal));
    EXPECT_EQ(o.code, 0) << o.out << o.err;
    EXPECT_THAT(o.err, Not(HasSubstr("nvrtcCompileProgram")));
    if (name != std::string_view("tiny-mixed")) {
      EXPECT_THAT(o.err, HasSubstr("cuModuleGetFunction failed with CUDA_ERROR_NOT_FOUND"));
    }
  }
}

}  // namespace
}  // namespace mge
