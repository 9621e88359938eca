// SPDX-License-Identifier: Apache-2.0
// ROCm devices as users see them, over libamdhip64 in software. The host code is that of the CUDA backend, which
// tests/plugins/cuda tests further.
#include <gmock/gmock.h>

#include "tests/support/command.h"

namespace mge {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kDigits[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";

class RocmDevices : public Command {
 protected:
  // Returns the variable that selects a copy of the driver with this configuration.
  std::string Driver(const std::string& configuration) const {
    std::filesystem::copy_file(MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5", Path("libamdhip64.so.5"),
                               std::filesystem::copy_options::overwrite_existing);
    Write("libamdhip64.so.5.conf", configuration);
    return "MGE_PLUGIN_START_TIMEOUT_SECONDS=20 MGE_ROCM_DRIVER=" + Path("libamdhip64.so.5");
  }
};

TEST_F(RocmDevices, AreListedAndRunAModelWithTheNumbersOfTheReference) {
  const std::string driver = Driver("devices 2\ncapability 90\n");
  const Outcome listed = Mge("devices --json", driver);
  EXPECT_THAT(listed.out, HasSubstr("\"name\": \"rocm1\""));
  EXPECT_THAT(listed.out, HasSubstr("\"capability\": \"9.0\""));
  EXPECT_THAT(listed.out, HasSubstr("\"multiprocessors\": \"4\""));
  for (const char* device : {"rocm0", "gpu1", "rocm0+rocm1", "rocm0+cpu0"}) {
    const Outcome o = Mge("run " + std::string(kDigits) + " --against host --device " + device, driver);
    EXPECT_EQ(o.code, 0) << o.err;
  }
}

TEST_F(RocmDevices, PassTheConformanceKit) {
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_rocm.so --quick", Driver("devices 2\n"));
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
}

TEST_F(RocmDevices, ComputeCollectivesByRccl) {
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_rocm.so --only collective",
                        "MGE_ROCM_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5 MGE_ROCM_RCCL=" MGE_BINARY_DIR
                        "/tests/rocm/librccl.so");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

// Matrix products by rocBLAS, in place of which the tests load a library that emulates it.
class RocmProducts : public Command {
 protected:
  static std::string Environment(const std::string& library) {
    return "MGE_ROCM_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5 MGE_ROCM_ROCBLAS=" + library;
  }
  static constexpr char kEmulatingRocblas[] = MGE_BINARY_DIR "/tests/rocm/librocblas.so";
};

// Every form of MatMul and Gemm that operators have.
TEST_F(RocmProducts, PassTheConformanceKit) {
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_rocm.so --only MatMul --only Gemm --report report",
                        Environment(kEmulatingRocblas));
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
  EXPECT_THAT(Read("report/report.json"), HasSubstr("rocm.rocblas"));
}

TEST_F(RocmProducts, OfATransformerAreThoseOfTheLibrary) {
  EXPECT_EQ(Mge("zoo bert-tiny -o bert.onnx").code, 0);
  const std::string model = Path("bert.onnx");
  const std::string plan = Mge("plan " + model + " --device rocm0", Environment(kEmulatingRocblas)).out;
  EXPECT_THAT(plan, HasSubstr("rocm.gemm_epilogue(MatMul+Add) rocm.rocblas"));  // queries, keys and values
  EXPECT_THAT(plan, HasSubstr("rocm.attention(Split+Reshape+"));
  EXPECT_THAT(plan, HasSubstr("rocm.gemm_epilogue(MatMul+Add+Gelu) rocm.rocblas"));
  const Outcome o = Mge("run " + model + " --device rocm0 --against host", Environment(kEmulatingRocblas));
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

TEST_F(RocmProducts, OfOneTensorAreThoseOfTheLibrary) {
  const std::string model = TwoProducts();
  EXPECT_THAT(Mge("plan " + model + " --device rocm0", Environment(kEmulatingRocblas)).out,
              HasSubstr("rocm.sibling_products(MatMul+Add+MatMul+Add) rocm.rocblas"));
  const Outcome o = Mge("run " + model + " --device rocm0 --against host", Environment(kEmulatingRocblas));
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

// The kernel of attention uses no matrix units, as the library does for 16-bit floats. Few scores are not worth more launches.
TEST_F(RocmProducts, OfLargeAttentionOf16BitsAreThoseOfTheLibrary) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  const auto attention = [&](int64_t rows, int64_t type) {
    return Model(
        "attention.onnx",
        {NodeProto("Cast", {"x"}, {"q"}, {.attributes = {IntAttr("to", type)}}),
         NodeProto("Transpose", {"q"}, {"k"}, {.attributes = {IntsAttr("perm", {1, 0})}}),
         NodeProto("MatMul", {"q", "k"}, {"scores"}), NodeProto("Softmax", {"scores"}, {"weights"}),
         NodeProto("MatMul", {"weights", "q"}, {"v"}), NodeProto("Cast", {"v"}, {"y"}, {.attributes = {IntAttr("to", 1)}})},
        {}, {rows, int64_t{128}});
  };
  constexpr int64_t kFloat32 = 1, kFloat16 = 10, kBfloat16 = 16;
  struct Form {
    int64_t rows, type;
    const char* library;
    bool claimed;
  };
  for (const Form& f : {Form{512, kFloat16, kEmulatingRocblas, false}, Form{512, kBfloat16, kEmulatingRocblas, false},
                        Form{16, kFloat16, kEmulatingRocblas, true}, Form{512, kFloat32, kEmulatingRocblas, true},
                        Form{512, kFloat16, "off", true}}) {
    const std::string plan = Mge("plan " + attention(f.rows, f.type) + " --device rocm0 --why", Environment(f.library)).out;
    const auto claim = HasSubstr("rocm.attention(Transpose+MatMul+Softmax+MatMul) gpu.attention");
    const auto refusal = HasSubstr("the products of a library are faster");
    EXPECT_EQ(testing::Matches(claim)(plan), f.claimed) << plan;
    EXPECT_EQ(testing::Matches(refusal)(plan), !f.claimed) << plan;
  }
}

// The library writes the argument, and a kernel computes the Gelu from it.
TEST_F(RocmProducts, WriteTheArgumentOfGeluToo) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  const std::string model =
      Write("gelu.onnx",
            ModelProto(
                {.graph = GraphProto(
                     {.nodes = {NodeProto("MatMul", {"x", "w"}, {"product"}),
                                NodeProto("Add", {"product", "b"}, {"argument"}), NodeProto("Gelu", {"argument"}, {"y"})},
                      .inputs = {ValueInfo("x", DType::kF32, {int64_t{5}, int64_t{4}})},
                      .outputs = {TextField(field::value_info::kName, "y"), TextField(field::value_info::kName, "argument")},
                      .initializers = {FloatTensor("w", {4, 3}, std::vector<float>(12, 0.75f)),
                                       FloatTensor("b", {3}, {-1, 0, 1})}}),
                 .opsets = {{"", 20}}}));
  EXPECT_THAT(Mge("plan " + model + " --device rocm0", Environment(kEmulatingRocblas)).out,
              HasSubstr("rocm.gemm_epilogue(MatMul+Add+Gelu) rocm.rocblas"));
  const Outcome o = Mge("run " + model + " --device rocm0 --against host", Environment(kEmulatingRocblas));
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

TEST_F(RocmProducts, UseOtherKernelsIfTheLibraryIsMissingOrSwitchedOff) {
  EXPECT_EQ(Mge("zoo bert-tiny -o bert.onnx").code, 0);
  for (const auto& [library, why] : {std::pair("/nowhere/librocblas.so.4", "rocBLAS cannot be used: /nowhere"),
                                     {"off", "rocBLAS is switched off (rocm.rocblas=off)"}}) {
    const Outcome o = Mge("plan " + Path("bert.onnx") + " --device rocm0 --why", Environment(library));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("gpu.matmul"));
  }
}

// Convolutions by MIOpen, in place of which the tests load a library that emulates it.
class RocmConvolutions : public Command {
 protected:
  static std::string Environment(const std::string& library) {
    return "MGE_ROCM_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5 MGE_ROCM_MIOPEN=" + library + " ";
  }
  static constexpr char kEmulatingMiopen[] = MGE_BINARY_DIR "/tests/rocm/libmiopen.so";
};

// Every form of Conv and ConvTranspose that operators have: groups, dilations, one to three axes, 16-bit floats.
TEST_F(RocmConvolutions, PassTheConformanceKit) {
  for (const char* op : {"Conv", "ConvTranspose"}) {
    const Outcome o =
        Mge(std::string("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_rocm.so --report report --only ") + op,
            Environment(kEmulatingMiopen));
    EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
    EXPECT_THAT(Read("report/report.json"), HasSubstr("rocm.miopen.91")) << op;
  }
}

TEST_F(RocmConvolutions, OfAResidualBlockAreThoseOfTheLibraryInTheOrderOfItsTimes) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  const std::string model = Model(
      "model.onnx",
      {NodeProto("Conv", {"x", "w", "b"}, {"c"}, {.attributes = {IntsAttr("pads", {1, 1, 1, 1})}}),
       NodeProto("Relu", {"c"}, {"r"}),
       NodeProto("Conv", {"r", "w", "b"}, {"d"}, {.attributes = {IntsAttr("pads", {1, 1, 1, 1})}}),
       NodeProto("Add", {"d", "x"}, {"s"}), NodeProto("Relu", {"s"}, {"y"})},
      {FloatTensor("w", {4, 4, 3, 3}, std::vector<float>(144, 0.25f)), FloatTensor("b", {4}, std::vector<float>(4, 1.5f))},
      {int64_t{1}, int64_t{4}, int64_t{6}, int64_t{5}});
  const std::string plan = Mge("plan " + model + " --device rocm0", Environment(kEmulatingMiopen)).out;
  EXPECT_THAT(plan, HasSubstr("rocm.conv_epilogue(Conv+Relu) rocm.miopen.11"));
  EXPECT_THAT(plan, HasSubstr("rocm.conv_epilogue(Conv+Add+Relu) rocm.miopen.11"));
  for (const char* strategy : {"HEURISTIC", "PROFILE"}) {
    const Outcome o = Mge("run " + model + " --device rocm0 --against host",
                          Environment(kEmulatingMiopen) + "MEGENGINE_EXECUTION_STRATEGY=" + strategy);
    EXPECT_EQ(o.code, 0) << o.out << o.err;
  }
}

TEST_F(RocmConvolutions, RepeatTheirResultsIfTheUserWantsThat) {
  const std::string environment = Environment(kEmulatingMiopen) + "MEGENGINE_EXECUTION_STRATEGY=REPRODUCIBLE";
  const std::string plan = Mge("plan " + std::string(kDigits) + " --device rocm0", environment).out;
  EXPECT_THAT(plan, HasSubstr("rocm.miopen."));
  EXPECT_THAT(plan, Not(HasSubstr("rocm.miopen.11")));  // its sums have no fixed order
}

TEST_F(RocmConvolutions, UseOtherKernelsIfTheLibraryIsMissingOrSwitchedOff) {
  for (const auto& [library, why] : {std::pair("/nowhere/libMIOpen.so.1", "MIOpen cannot be used: /nowhere"),
                                     {"off", "MIOpen is switched off (rocm.miopen=off)"}}) {
    const Outcome o = Mge("plan " + std::string(kDigits) + " --device rocm0 --why", Environment(library));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("gpu.conv"));
  }
}

constexpr char kEmulating[] = MGE_BINARY_DIR "/tests/rocm/libhiprtc.so";
constexpr char kReal[] = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";

// Chains of elementwise nodes, which hiprtc compiles.
class RocmChains : public Command {
 protected:
  static std::string Environment(const std::string& library) {
    return "MGE_ROCM_DRIVER=" MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5 MGE_ROCM_HIPRTC=" + library;
  }
  std::string Zoo(const std::string& name) const {
    EXPECT_EQ(Mge("zoo " + name + " -o " + name + ".onnx").code, 0);
    return Path(name + ".onnx");
  }
};

TEST_F(RocmChains, ComputeWhatTheReferenceComputes) {
  for (const char* name : {"eltwise-chain", "tiny-mixed", "tiny-ops"}) {
    const Outcome o = Mge("run " + Zoo(name) + " --device rocm0 --against host", Environment(kEmulating));
    EXPECT_EQ(o.code, 0) << name << o.out << o.err;
    EXPECT_THAT(o.err, Not(HasSubstr("cannot be compiled")));
  }
  EXPECT_THAT(Mge("plan " + Path("eltwise-chain.onnx") + " --device rocm0", Environment(kEmulating)).out,
              HasSubstr("gpu.compiled_chain"));
}

class RocmModels : public RocmChains, public testing::WithParamInterface<const char*> {};

TEST_P(RocmModels, HaveTheNumbersOfTheCpu) {
  const Outcome o = Mge("run " + Zoo(GetParam()) + " --device rocm0 --against cpu0", Environment(kEmulating));
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_THAT(o.err, Not(HasSubstr("cannot be compiled")));
}

INSTANTIATE_TEST_SUITE_P(Zoo, RocmModels, testing::Values("resnet50", "mobilenetv2", "bert-base", "bert-tiny", "one-op"));

TEST_F(RocmChains, AreInterpretedIfThereIsNoCompiler) {
  const std::string model = Zoo("eltwise-chain");
  for (const auto& [library, why] :
       {std::pair(
            "/nowhere/libhiprtc.so.7",
            "hiprtc cannot be used: /nowhere/libhiprtc.so.7: cannot open shared object file: No such file or directory; "
            "install the HIP runtime with hiprtc, or set rocm.hiprtc to its path"),
        {"off", "hiprtc is switched off (rocm.hiprtc=off)"},
        {"libhiprtc.so", "rocm.hiprtc is 'libhiprtc.so', which is not an absolute path"}}) {
    const Outcome o = Mge("plan " + model + " --device rocm0 --why", Environment(library));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("gpu.chain"));
  }
}

// hiprtc needs no GPU. The driver in software has no twin of a kernel that it has compiled.
TEST_F(RocmChains, AreCompiledByHiprtc) {
  if (!std::filesystem::exists(kReal)) GTEST_SKIP() << "no " << kReal;
  const Outcome o = Mge("run " + Zoo("tiny-ops") + " --device rocm0 --against host", Environment(kReal));
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_THAT(o.err, HasSubstr("hipModuleGetFunction failed with error 500"));
  EXPECT_THAT(o.err, Not(HasSubstr("hiprtcCompileProgram")));
}

TEST_F(RocmDevices, WithoutADriverTheErrorSaysWhatToInstall) {
  const std::string driver = "MGE_ROCM_DRIVER=/nowhere/libamdhip64.so.5";
  EXPECT_THAT(Mge("run " + Good() + " --device rocm0", driver).err,
              ContainsRegex("no ROCm driver: .*; install the amdgpu kernel driver and the HIP runtime, or set rocm.driver"));
  EXPECT_THAT(Mge("devices", driver).out, ContainsRegex("- +absent +rocm +- +- +no ROCm driver: "));
  if (std::filesystem::exists("/dev/kfd")) return;
  EXPECT_THAT(Mge("run " + Good() + " --device rocm0").err, HasSubstr("no ROCm driver: there is no /dev/kfd"));
}

TEST_F(RocmDevices, WithAFailingDriverAreAnErrorThatNamesTheCall) {
  for (const auto& [function, code] :
       {std::pair("hipModuleLoadData", 209), {"hipStreamCreateWithFlags", 2}, {"hipInit", 3}}) {
    const std::string failure = std::string("fail ") + function + " 1 " + std::to_string(code) + "\n";
    const Outcome o = Mge("run " + std::string(kDigits) + " --device rocm0", Driver(failure));
    EXPECT_NE(o.code, 0) << function;
    EXPECT_THAT(o.err, HasSubstr(std::string(function) + " failed with error " + std::to_string(code)));
  }
}

}  // namespace
}  // namespace mge
