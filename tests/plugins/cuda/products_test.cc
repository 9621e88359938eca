// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt, in place of which the tests load a library that records and emulates.
#include <dlfcn.h>

#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

constexpr char kRecording[] = MGE_BINARY_DIR "/tests/cuda/libcublasLt.so";
constexpr char kCuda[] = MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so";

uint64_t Recorded(const char* what) {
  void* library = dlopen(kRecording, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<uint64_t (*)()>(dlsym(library, what))();
}

class CudaProducts : public Command {
 protected:
  static std::string Environment(const std::string& library = kRecording) {
    return std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_CUBLASLT=" + library;
  }
  // Writes a small transformer. Returns its path.
  std::string Bert() const {
    EXPECT_EQ(Mge("zoo bert-tiny -o bert.onnx").code, 0);
    return Path("bert.onnx");
  }
};

// Every form of MatMul and Gemm that operators have, through every algorithm, with and without conversion.
TEST_F(CudaProducts, PassTheConformanceKit) {
  const Outcome o = Mge(std::string("sdk test ") + kCuda + " --only MatMul --only Gemm --report report", Environment());
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
  const std::string report = Read("report/report.json");
  EXPECT_THAT(report, HasSubstr("cuda.cublaslt.1"));
  EXPECT_THAT(report, HasSubstr("cuda.cublaslt.tf32.0"));
}

TEST_F(CudaProducts, OfATransformerAreThoseOfTheLibrary) {
  const std::string model = Bert();
  const std::string plan = Mge("plan " + model + " --device cuda0", Environment()).out;
  EXPECT_THAT(plan, HasSubstr("cuda.gemm_epilogue(MatMul+Add) cuda.cublaslt.0"));  // queries, keys and values
  EXPECT_THAT(plan, HasSubstr("cuda.attention(Split+Reshape+"));
  EXPECT_THAT(plan, HasSubstr("cuda.gemm_epilogue(MatMul+Add+Gelu) cuda.cublaslt.0"));
  EXPECT_THAT(plan, HasSubstr("cuda.gemm_epilogue(MatMul+Add+Add) cuda.cublaslt.0"));
  const Outcome o = Mge("run " + model + " --device cuda0 --against host", Environment());
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

TEST_F(CudaProducts, OfOneTensorAreThoseOfTheLibrary) {
  const std::string model = TwoProducts();
  EXPECT_THAT(Mge("plan " + model + " --device cuda0", Environment()).out,
              HasSubstr("cuda.sibling_products(MatMul+Add+MatMul+Add) cuda.cublaslt.0"));
  const Outcome o = Mge("run " + model + " --device cuda0 --against host", Environment());
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

// Code for capability 7.5 has no matrix units of bfloat16, as the library has on the device.
TEST_F(CudaProducts, OfLargeAttentionOfBfloat16AreThoseOfTheLibrary) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  const std::string model = Model(
      "attention.onnx",
      {NodeProto("Cast", {"x"}, {"q"}, {.attributes = {IntAttr("to", 16)}}),
       NodeProto("Transpose", {"q"}, {"k"}, {.attributes = {IntsAttr("perm", {1, 0})}}),
       NodeProto("MatMul", {"q", "k"}, {"scores"}), NodeProto("Softmax", {"scores"}, {"weights"}),
       NodeProto("MatMul", {"weights", "q"}, {"v"}), NodeProto("Cast", {"v"}, {"y"}, {.attributes = {IntAttr("to", 1)}})},
      {}, {int64_t{1024}, int64_t{128}});
  const std::string alone = Mge("plan " + model + " --device cuda0", Environment("off")).out;
  if (alone.find("gpu.attention.mma") != std::string::npos) GTEST_SKIP() << "built for capability 8.0";
  EXPECT_THAT(alone, HasSubstr("gpu.attention"));
  EXPECT_THAT(Mge("plan " + model + " --device cuda0 --why", Environment()).out,
              HasSubstr("the products of a library are faster"));
}

TEST_F(CudaProducts, AreCapturedAndReplayed) {
  SoftwareDriver driver;
  const std::string model = Bert();
  const uint64_t handles = Recorded("recorded_handles");
  {
    auto session = Session::Load(CudaRuntime({{"cuda.cublaslt", kRecording}}), model, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    const std::vector<int64_t> tokens(128, 7);
    std::vector<HostValue> ids(1);
    ids[0].tensor = Tensor::Of<int64_t>({1, 128}, tokens);
    const auto expected = ResultsOf(**session, ids);
    ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
    for (int run = 0; run < 2; ++run) ASSERT_TRUE(ResultsOf(**session, ids).ok());
    const uint64_t before = Recorded("recorded_products");
    EXPECT_GT(before, 12u);
    const auto replayed = ResultsOf(**session, ids);
    ASSERT_TRUE(replayed.ok());
    EXPECT_THAT(*replayed, Pointwise(FloatNear(1e-6f), *expected));
    EXPECT_EQ(Recorded("recorded_products"), before);  // a graph ran them
    EXPECT_EQ(Recorded("recorded_handles"), handles + 1);
  }
  EXPECT_EQ(Recorded("recorded_handles"), handles);
  EXPECT_EQ(driver.Live(), 0);
}

// The gradient of a Gelu reads its argument, which the library writes beside the result: for its own form of Gelu, in columns
// that it can align. Otherwise a kernel computes the activation.
TEST_F(CudaProducts, WriteTheArgumentOfGeluToo) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  struct Form {
    DType type;
    int64_t columns;
    const char* gelu;
    bool by_library;
  };
  for (const Form& f :
       {Form{DType::kF32, 24, "tanh", true}, Form{DType::kF16, 8, "tanh", true}, Form{DType::kF32, 20, "tanh", false},
        Form{DType::kF32, 24, "none", false}, Form{DType::kBF16, 24, "tanh", false}}) {
    const auto elements = static_cast<size_t>(f.columns);
    const auto type = IntAttr("to", static_cast<int64_t>(f.type));
    std::vector<float> weights(16 * elements);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 0.25f * static_cast<float>(i % 7) - 0.75f;
    const std::string model = Write(
        "gelu.onnx",
        ModelProto(
            {.graph = GraphProto(
                 {.nodes = {NodeProto("Cast", {"weights"}, {"w"}, {.attributes = {type}}),
                            NodeProto("Cast", {"biases"}, {"b"}, {.attributes = {type}}),
                            NodeProto("MatMul", {"x", "w"}, {"product"}), NodeProto("Add", {"product", "b"}, {"argument"}),
                            NodeProto("Gelu", {"argument"}, {"y"}, {.attributes = {TextAttr("approximate", f.gelu)}})},
                  .inputs = {ValueInfo("x", f.type, {int64_t{2}, int64_t{5}, int64_t{16}})},
                  .outputs = {TextField(field::value_info::kName, "y"), TextField(field::value_info::kName, "argument")},
                  .initializers = {FloatTensor("weights", {16, f.columns}, weights),
                                   FloatTensor("biases", {f.columns}, std::vector<float>(elements, 0.5f))}}),
             .opsets = {{"", 20}}}));
    EXPECT_THAT(Mge("plan " + model + " --device cuda0", Environment()).out,
                HasSubstr("cuda.gemm_epilogue(MatMul+Add+Gelu) cuda.cublaslt.0"));
    // The reference rounds a product of 16-bit floats before it adds the bias.
    const char* tolerance = f.type == DType::kF32 ? "" : " --rtol 0.02 --atol 0.02";
    const Outcome o = Mge("run " + model + " --device cuda0 --against host" + tolerance, Environment());
    EXPECT_EQ(o.code, 0) << o.out << o.err;
    SoftwareDriver driver;
    const uint64_t before = Recorded("recorded_products_with_argument");
    auto session = Session::Load(CudaRuntime({{"cuda.cublaslt", kRecording}}), model, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    std::vector<HostValue> in(1), out(2);
    in[0].tensor = *Tensor::Create(f.type, {2, 5, 16});
    RunState control;
    const absl::Status status = (*session)->Run(in, out, control);
    ASSERT_TRUE(status.ok()) << FormatError(status);
    EXPECT_EQ(Recorded("recorded_products_with_argument") > before, f.by_library) << f.columns << f.gelu;
  }
}

TEST_F(CudaProducts, UseOtherKernelsIfTheLibraryIsMissingOrSwitchedOff) {
  const std::string model = Bert();
  for (const auto& [library, why] : {std::pair("/nowhere/libcublasLt.so.13", "cuBLASLt cannot be used: /nowhere"),
                                     {"off", "cuBLASLt is switched off"},
                                     {"libcublasLt.so", "which is not an absolute path"},
                                     {kSoftwareDriver, "has no function cublasLtCreate"}}) {
    const Outcome o = Mge("plan " + model + " --device cuda0 --why", Environment(library));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("gpu.matmul"));
    EXPECT_THAT(o.out, Not(HasSubstr("cuda.cublaslt.0")));
  }
}

}  // namespace
}  // namespace mge
