// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN, in place of which the tests load a library that records and emulates.
#include <dlfcn.h>

#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

constexpr char kRecording[] = MGE_BINARY_DIR "/tests/cuda/libcudnn.so";
constexpr char kOld[] = MGE_BINARY_DIR "/tests/cuda/libcudnn_old.so";
constexpr char kCuda[] = MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so";

template <typename T = uint64_t>
T Recorded(const char* what) {
  void* library = dlopen(kRecording, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<T (*)()>(dlsym(library, what))();
}

class CudaConvolutions : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (!std::filesystem::exists(kRecording)) GTEST_SKIP() << "built without cuDNN's header";
  }
  std::string Environment(const std::string& library = kRecording) const {
    return std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_CUDNN=" + library +
           " MGE_CACHE_DIR=" + Path("cache");
  }
  std::shared_ptr<Runtime> RuntimeWithLibrary() const {
    return CudaRuntime({{"cuda.cudnn", kRecording}, {"cache.dir", Path("cache")}});
  }
  // Writes Relu(Conv(x)). Returns its path.
  std::string Convolution() const {
    using namespace onnx_builder;  // NOLINT: its functions build models
    return Model(
        "model.onnx", {NodeProto("Conv", {"x", "w", "b"}, {"c"}), NodeProto("Relu", {"c"}, {"y"})},
        {FloatTensor("w", {6, 4, 3, 3}, std::vector<float>(216, 0.25f)), FloatTensor("b", {6}, std::vector<float>(6, 1.5f))},
        {int64_t{1}, int64_t{4}, int64_t{6}, int64_t{5}});
  }
};

TEST_F(CudaConvolutions, LogOnRequestTheMemoryThatTheLibraryTakes) {
  const std::string run = "run " + Convolution() + " --device cuda0";
  const Outcome logged = Mge(run, Environment() + " MGB_LOG_TRT_MEM_ALLOC=1"), quiet = Mge(run, Environment());
  EXPECT_EQ(logged.code, 0) << logged.err;
  EXPECT_THAT(logged.err, HasSubstr("backend cuda: cudnnCreate takes 1048576 bytes of the memory of cuda0"));
  EXPECT_THAT(quiet.err, Not(HasSubstr("cudnnCreate")));
}

// Every form of Conv that operators have, and its gradient by the filter, through every engine.
TEST_F(CudaConvolutions, PassTheConformanceKit) {
  const Outcome o =
      Mge(std::string("sdk test ") + kCuda + " --only Conv --only ConvTranspose --only ConvWeightGradient --report report",
          Environment());
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
  const std::string report = Read("report/report.json");
  EXPECT_THAT(report, HasSubstr("cuda.cudnn.0"));
  EXPECT_THAT(report, HasSubstr("cuda.cudnn.2"));
  EXPECT_THAT(report, HasSubstr("cuda.cudnn.reduced.0"));
}

struct Form {
  const char* nodes;
  bool bias;
  const char* order;          // of the library's operations
  uint64_t own_launches = 0;  // launches of own kernels
};

absl::StatusOr<std::shared_ptr<Session>> Load(std::shared_ptr<Runtime> runtime, const Form& form, const char* device) {
  onnx::Model model;
  model.graph = *ParseGraphText(std::string("input x : float32[1,4,6,5]\ninput r : float32[1,6,6,5]\n"
                                            "const w = float32[6,2,3,3]<0.25>\nconst b = float32[6]<1.5>\n") +
                                (form.bias ? "c = Conv(x, w, b)" : "c = Conv(x, w)") + " {group=2, pads=[1,1,1,1]}\n" +
                                form.nodes + "output y\n");
  return Session::Create(std::move(runtime), std::move(model), {.device = device});
}

// The library has engines for one order of operations only, and none without a bias.
TEST_F(CudaConvolutions, AreOneCallInTheOrderThatNeedsNoCompilation) {
  constexpr Form kForms[] = {{"y = Identity(c)\n", false, "conv"},
                             {"y = Identity(c)\n", true, "conv bias"},
                             {"y = Relu(c)\n", true, "conv bias relu"},
                             {"y = Relu(c)\n", false, "conv bias relu"},
                             {"y = Add(c, r)\n", true, "conv residual bias"},
                             {"s = Add(c, r)\ny = Relu(s)\n", true, "conv residual bias relu"},
                             {"s = Add(r, c)\ny = Relu(s)\n", false, "conv residual bias relu"},
                             {"y = Sigmoid(c)\n", true, "conv bias", 1},
                             {"s = Add(c, r)\ny = LeakyRelu(s)\n", false, "conv residual bias", 1}};
  SoftwareDriver driver;
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.nodes);
    auto session = Load(RuntimeWithLibrary(), form, "cuda0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    const std::vector<HostValue> in = {Numbers({1, 4, 6, 5}), Numbers({1, 6, 6, 5}, 2)};
    const auto first = ResultsOf(**session, in);
    ASSERT_TRUE(first.ok()) << FormatError(first.status());
    const uint64_t runs = Recorded("recorded_runs"), launches = driver.Calls("cuLaunchKernel");
    const auto got = ResultsOf(**session, in);
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(Recorded("recorded_runs"), runs + 1);
    EXPECT_EQ(driver.Calls("cuLaunchKernel"), launches + 1 + form.own_launches);  // the library launches one
    EXPECT_STREQ(Recorded<const char*>("recorded_order"), form.order);
    auto host = Load(CudaRuntime(), form, "host");
    ASSERT_TRUE(host.ok());
    EXPECT_THAT(*got, Pointwise(FloatNear(1e-4f), *ResultsOf(**host, in)));
  }
}

TEST_F(CudaConvolutions, AreCapturedAndReplayed) {
  SoftwareDriver driver;
  const uint64_t handles = Recorded("recorded_handles"), descriptors = Recorded("recorded_descriptors");
  {
    auto session = LoadDigits(RuntimeWithLibrary(), "cuda0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(ResultsOf(**session, DigitsInput()).ok());
    const uint64_t before = Recorded("recorded_runs");
    EXPECT_GT(before, 0u);
    const auto replayed = ResultsOf(**session, DigitsInput());
    ASSERT_TRUE(replayed.ok());
    EXPECT_THAT(*replayed, Pointwise(FloatNear(1e-4f), DigitsOnHost()));
    EXPECT_EQ(Recorded("recorded_runs"), before);  // a graph ran them
    EXPECT_EQ(Recorded("recorded_handles"), handles + 1);
  }
  EXPECT_EQ(Recorded("recorded_handles"), handles);
  EXPECT_EQ(Recorded("recorded_descriptors"), descriptors);
  EXPECT_EQ(driver.Live(), 0);
}

// The heuristics are asked once per convolution: the plans are kept for the next process.
TEST_F(CudaConvolutions, HavePlansInTheCacheOfBlobs) {
  SoftwareDriver driver;
  std::vector<float> first;
  for (int process = 0; process < 3; ++process) {
    const uint64_t before = Recorded("recorded_heuristics");
    auto session = LoadDigits(RuntimeWithLibrary(), "cuda0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    const auto got = ResultsOf(**session, DigitsInput());
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    if (process == 0) first = *got;
    EXPECT_EQ(*got, first);
    if (process == 1) {
      EXPECT_EQ(Recorded("recorded_heuristics"), before);
    } else {
      EXPECT_GT(Recorded("recorded_heuristics"), before);
    }
    if (process == 1) Recorded<void>("recorded_forget");  // the library reads no text that it wrote before
  }
}

// Tensor cores round float32 values, so they compute only what the user allows.
TEST_F(CudaConvolutions, RoundOnlyIfTheUserAllowsIt) {
  const std::string model = Convolution();
  auto plan = [&](const std::string& variables) {
    const Outcome o = Mge("plan " + model + " --device cuda0 --why", Environment() + " " + variables);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  EXPECT_THAT(plan(""), HasSubstr("cuda.conv_epilogue(Conv+Relu) cuda.cudnn.0"));
  EXPECT_THAT(plan("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION=1"),
              HasSubstr("cuda.conv_epilogue(Conv+Relu) cuda.cudnn.reduced.0"));
  EXPECT_THAT(plan("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION=1 MXNET_CUDA_ALLOW_TENSOR_CORE=0"),
              HasSubstr("cuda.conv_epilogue(Conv+Relu) cuda.cudnn.0"));
}

void FailCall(uint64_t call) {
  void* library = dlopen(kRecording, RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<void (*)(uint64_t)>(dlsym(library, "recorded_fail"))(call);
}

// A call that fails while a convolution is planned leaves it to other kernels. One that fails in a run is an error of the
// run, unless the run is recorded only. Nothing leaks, and the next run is right. After
// the calls for the first convolution, a sample is enough.
TEST_F(CudaConvolutions, SurviveTheFailureOfEveryCallOfTheLibrary) {
  const std::vector<float> expected = DigitsOnHost();
  const uint64_t descriptors = Recorded("recorded_descriptors"), handles = Recorded("recorded_handles");
  int failed_runs = 0;
  for (uint64_t call = 0, calls = 1; call <= calls; call += call < 150 ? 1 : 7) {
    SCOPED_TRACE(call);
    SoftwareDriver driver;
    {
      std::filesystem::remove_all(Path("cache"));
      FailCall(call);
      auto session = LoadDigits(RuntimeWithLibrary(), "cuda0");
      ASSERT_TRUE(session.ok()) << FormatError(session.status());
      for (int run = 0; run < 3; ++run) {
        const auto got = ResultsOf(**session, DigitsInput());
        if (got.ok()) {
          EXPECT_THAT(*got, Pointwise(FloatNear(1e-4f), expected));
        } else {
          ++failed_runs;
          EXPECT_THAT(FormatError(got.status()), HasSubstr("failed with CUDNN_STATUS_EXECUTION_FAILED: no luck"));
        }
      }
      if (call == 0) calls = Recorded("recorded_calls");
      const auto last = ResultsOf(**session, DigitsInput());
      ASSERT_TRUE(last.ok()) << FormatError(last.status());
      EXPECT_THAT(*last, Pointwise(FloatNear(1e-4f), expected));
    }
    EXPECT_EQ(Recorded("recorded_handles"), handles);
    EXPECT_EQ(Recorded("recorded_descriptors"), descriptors);
    EXPECT_EQ(driver.Live(), 0);
  }
  FailCall(0);
  EXPECT_GT(failed_runs, 0);
}

TEST_F(CudaConvolutions, UseOtherKernelsIfTheLibraryIsMissingOldOrSwitchedOff) {
  const std::string model = Convolution();
  for (const auto& [library, why] : {std::pair("/nowhere/libcudnn.so.9", "cuDNN cannot be used: /nowhere"),
                                     {"off", "cuDNN is switched off"},
                                     {"libcudnn.so", "which is not an absolute path"},
                                     {kOld, "has version 9.1, and this backend needs 9."},
                                     {kSoftwareDriver, "has no function cudnnGetVersion"}}) {
    const Outcome o = Mge("plan " + model + " --device cuda0 --why", Environment(library));
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(why));
    EXPECT_THAT(o.out, HasSubstr("gpu.conv."));
    EXPECT_THAT(o.out, Not(HasSubstr("cuda.cudnn.0")));
  }
}

}  // namespace
}  // namespace mge
