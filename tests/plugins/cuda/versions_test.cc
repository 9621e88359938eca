// SPDX-License-Identifier: Apache-2.0
// Versions of the driver and of the vendor's libraries: caches that a new driver makes useless, and libraries that are too old.
#include <dlfcn.h>

#include "core/plan/communicator.h"
#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::HasSubstr;
using testing::Not;

#define MGE_TEST_LIBRARY(name) MGE_BINARY_DIR "/tests/cuda/lib" name ".so"

uint64_t Counted(const char* library, const char* what) {
  return reinterpret_cast<uint64_t (*)()>(dlsym(dlopen(library, RTLD_NOW | RTLD_LOCAL), what))();
}

class CudaVersions : public Command {
 protected:
  // Calls count(settings), which returns what it computed without a cache, in three processes one after the other. The third
  // one has a newer driver.
  template <typename F>
  void ExpectAgainWithANewDriver(F&& count) const {
    constexpr int kVersions[] = {13000, 13000, 13010};
    for (int process = 0; process < 3; ++process) {
      SCOPED_TRACE(process);
      SoftwareDriver driver;
      driver.SetVersion(kVersions[process]);
      const uint64_t computed = count(driver);
      if (process == 1) {
        EXPECT_EQ(computed, 0u);
      } else {
        EXPECT_GT(computed, 0u);
      }
    }
  }
  // Runs a model over the backend with these settings.
  void Use(std::vector<Assignment> settings, const std::string& text, const Shape& shape) const {
    settings.push_back({"cache.dir", Path("cache")});
    settings.push_back({"select.cache_dir", Path("times")});
    auto graph = ParseGraphText(text);
    ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
    auto session = Session::Create(CudaRuntime(std::move(settings)), {*std::move(graph), {}}, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    const auto results = ResultsOf(**session, {Numbers(shape)});
    ASSERT_TRUE(results.ok()) << FormatError(results.status());
  }
};

TEST_F(CudaVersions, TimesOfKernelsAreMeasuredAgainWithANewDriver) {
  ExpectAgainWithANewDriver([&](const SoftwareDriver& driver) {
    const uint64_t before = driver.Calls("cuEventElapsedTime");
    Use({{"select.strategy", "profile"}, {"select.tensor_core_conversion", "1"}, {"select.measuring_seconds", "0.001"}},
        "input x : float32[4,64]\nconst w = float32[64,64]<0.5>\ny = MatMul(x, w)\noutput y\n", {4, 64});
    return driver.Calls("cuEventElapsedTime") - before;
  });
}

TEST_F(CudaVersions, ChainsAreCompiledAgainWithANewDriver) {
  constexpr char kLibrary[] = MGE_TEST_LIBRARY("nvrtc");
  ExpectAgainWithANewDriver([&](const SoftwareDriver&) {
    const uint64_t before = Counted(kLibrary, "emulating_compilations");
    Use({{"cuda.nvrtc", kLibrary}}, "input x : float32[4,64]\na = Tanh(x)\ny = Exp(a)\noutput y\n", {4, 64});
    return Counted(kLibrary, "emulating_compilations") - before;
  });
}

TEST_F(CudaVersions, PlansOfConvolutionsAreMadeAgainWithANewDriver) {
  constexpr char kLibrary[] = MGE_TEST_LIBRARY("cudnn");
  if (!std::filesystem::exists(kLibrary)) GTEST_SKIP() << "built without cuDNN's header";
  ExpectAgainWithANewDriver([&](const SoftwareDriver&) {
    const uint64_t before = Counted(kLibrary, "recorded_heuristics");
    Use({{"cuda.cudnn", kLibrary}},
        "input x : float32[1,4,6,5]\nconst w = float32[6,4,3,3]<0.25>\ny = Conv(x, w)\noutput y\n", {1, 4, 6, 5});
    return Counted(kLibrary, "recorded_heuristics") - before;
  });
}

// Each runtime of a process has its own settings.
TEST_F(CudaVersions, OfLibrariesAreThoseOfTheRuntimeAndNotOfAnEarlierOne) {
  constexpr char kNvrtc[] = MGE_TEST_LIBRARY("nvrtc"), kNccl[] = MGE_TEST_LIBRARY("nccl");
  const std::string chain = "input x : float32[4,65]\na = Tanh(x)\ny = Neg(a)\noutput y\n";
  for (const bool with : {false, true, false, true}) {
    SoftwareDriver driver;
    std::filesystem::remove_all(Path("cache"));
    const uint64_t before = Counted(kNvrtc, "emulating_compilations");
    Use({{"cuda.nvrtc", with ? kNvrtc : "off"}}, chain, {4, 65});
    EXPECT_EQ(Counted(kNvrtc, "emulating_compilations") - before, with ? 1u : 0u);
    const auto runtime = CudaRuntime({{"cuda.nccl", with ? kNccl : MGE_TEST_LIBRARY("nccl_old")}});
    Device& device = *runtime->devices().Resolve("cuda0", "the test")->devices.front().device;
    EXPECT_EQ(NewCollectiveId(device).ok(), with);
  }
}

// tests/plugins/cuda/convolutions_test.cc does the same for cuDNN.
TEST_F(CudaVersions, OfALibraryThatAreTooOldAreNamedWithTheNeededOneAndTheFix) {
  const std::string driver = std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver;
  ASSERT_EQ(Mge("zoo bert-tiny -o bert.onnx").code, 0);
  struct Case {
    const char *variable, *library, *message, *other, *absent;
  };
  for (const Case& c : {Case{"MGE_CUDA_CUBLASLT", MGE_TEST_LIBRARY("cublaslt_old"),
                             "cuBLASLt cannot be used: " MGE_TEST_LIBRARY(
                                 "cublaslt_old") " has version 12, and this backend needs 13; install "
                                                 "libcublas of CUDA 13, or set cuda.cublaslt to its path, or to off",
                             "gpu.matmul", "cuda.cublaslt.0"},
                        Case{"MGE_CUDA_NVRTC", MGE_TEST_LIBRARY("nvrtc_old"),
                             "NVRTC cannot be used: " MGE_TEST_LIBRARY(
                                 "nvrtc_old") " has version 12, and this backend needs 13; install libnvrtc "
                                              "of CUDA 13, or set cuda.nvrtc to its path, or to off",
                             "gpu.chain", "gpu.compiled_chain"}}) {
    const std::string variables = driver + " " + c.variable + "=" + c.library;
    const std::string model = c.other == std::string_view("gpu.chain") ? "chain.onnx" : "bert.onnx";
    if (model == "chain.onnx") {
      ASSERT_EQ(Mge("zoo eltwise-chain -o chain.onnx").code, 0);
    }
    const Outcome o = Mge("plan " + model + " --device cuda0 --why", variables);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.out, HasSubstr(c.message));
    EXPECT_THAT(o.out, HasSubstr(c.other));
    EXPECT_THAT(o.out, Not(HasSubstr(c.absent)));
  }
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so --only collective",
                        driver + " MGE_CUDA_NCCL=" MGE_TEST_LIBRARY("nccl_old"));
  EXPECT_THAT(o.out + o.err, HasSubstr("NCCL cannot be used: " MGE_TEST_LIBRARY(
                                 "nccl_old") " has version 2.13, and this backend needs 2.14 or a "
                                             "later 2.x; install libnccl2, or set cuda.nccl to its path"));
}

}  // namespace
}  // namespace mge
