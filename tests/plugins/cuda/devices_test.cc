// SPDX-License-Identifier: Apache-2.0
// CUDA devices as users see them, and drivers that are missing, too old or broken. The commands use the driver in software.
#include <cctype>

#include "nlohmann/json.hpp"
#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class CudaDevices : public Command {
 protected:
  // Returns the variable that selects a copy of the driver with this configuration.
  std::string Driver(const std::string& configuration) const {
    std::filesystem::copy_file(kSoftwareDriver, Path("libcuda.so.1"), std::filesystem::copy_options::overwrite_existing);
    Write("libcuda.so.1.conf", configuration);
    return "MGE_PLUGIN_START_TIMEOUT_SECONDS=20 MGE_CUDA_DRIVER=" + Path("libcuda.so.1");
  }
};

TEST_F(CudaDevices, AreListedWithTheirProperties) {
  const Outcome o = Mge("devices --json", Driver("devices 2\nmemory 1000000\ncapability 90\n"));
  ASSERT_EQ(o.code, 0) << o.err;
  std::vector<json> devices;
  const json report = json::parse(o.out);
  for (const json& d : report["devices"]) {
    if (d["plugin"] == "cuda") devices.push_back(d);
  }
  ASSERT_EQ(devices.size(), 2u) << o.out;
  for (int i = 0; i < 2; ++i) {
    const json& d = devices[static_cast<size_t>(i)];
    EXPECT_EQ(d["name"], "cuda" + std::to_string(i));
    EXPECT_EQ(d["alias"], "gpu" + std::to_string(i));
    EXPECT_EQ(d["memory_total"], 1000000);
    EXPECT_EQ(d["buffer_alignment"], 256);
    EXPECT_EQ(d["properties"]["capability"], "9.0");
    EXPECT_EQ(d["properties"]["pci"], "ffff:0" + std::to_string(i + 1) + ":00.0");
    EXPECT_EQ(d["properties"]["uuid"], "736f6674-7761-7265-2064-72697665720" + std::to_string(i));
  }
}

TEST_F(CudaDevices, WithMoreMultiprocessorsHaveSmallerEstimates) {
  auto cost_with = [&](const std::string& multiprocessors) {
    const Outcome o =
        Mge("plan " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --shape image=64x1x8x8 --device cuda0 --json",
            Driver("multiprocessors " + multiprocessors + "\n"));
    EXPECT_EQ(o.code, 0) << o.err;
    const json report = json::parse(o.out);
    double us = 0;
    for (const json& unit : report["units"]) {
      if (unit["kernel"].get<std::string>().starts_with("gpu.conv")) us += unit["cost_us"].get<double>();
    }
    return us;
  };
  const double few = cost_with("2"), many = cost_with("200");
  EXPECT_GT(many, 4);          // the time of a launch
  EXPECT_GT(few, 1.5 * many);  // the time of the memory is the same
}

// The rates that gpu-report.sh measures replace those that the driver's properties suggest.
TEST_F(CudaDevices, HaveEstimatesByMeasuredRates) {
  ASSERT_EQ(Mge("zoo products --type float16 --batch 256 -o products.onnx").code, 0);
  auto cost_with = [&](const std::string& kernel, const std::string& variables) {
    const Outcome o = Mge("plan products.onnx --device cuda0 --why --json", Driver("") + " " + variables);
    EXPECT_EQ(o.code, 0) << o.err;
    const json report = json::parse(o.out);
    for (const json& unit : report["units"]) {
      if (unit["kernel"] == kernel) return unit["cost_us"].get<double>();
      for (const json& other : unit["alternatives"]) {
        if (other["id"] == kernel) return other["cost_us"].get<double>();
      }
    }
    ADD_FAILURE() << "no " << kernel << " in " << o.out.substr(0, 4000);
    return 0.0;
  };
  // A product reads and writes 10 MB and computes 2.1 GFLOP.
  const double usual = cost_with("gpu.matmul.tiles", "");
  EXPECT_NEAR(cost_with("gpu.matmul.tiles", "MGE_CUDA_MEMORY_GB_S=0.01") / 1e6, 1.05, 0.1);
  EXPECT_NEAR(cost_with("gpu.matmul.tiles", "MGE_CUDA_COMPUTE_TFLOP_S=0.001") / 1e6, 2.15, 0.2);
  EXPECT_NEAR(cost_with("gpu.matmul.mma", "MGE_CUDA_MATRIX_TFLOP_S=0.001") / 1e6, 2.15, 0.2);
  EXPECT_EQ(cost_with("gpu.matmul.tiles", "MGE_CUDA_MATRIX_TFLOP_S=0.001"), usual);
  Write("rates.toml", "[cuda]\ncompute_tflop_s = 0.001\n");
  EXPECT_NEAR(cost_with("gpu.matmul.tiles", "MGE_CONFIG=" + Path("rates.toml")) / 1e6, 2.15, 0.2);
}

TEST_F(CudaDevices, RunAModelByBothNames) {
  const std::string driver = Driver("devices 2\n");
  for (const char* device : {"cuda0", "gpu1", "cuda0+cuda1"}) {
    const Outcome o =
        Mge("run " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --against host --device " + std::string(device), driver);
    EXPECT_EQ(o.code, 0) << o.err;
  }
}

TEST_F(CudaDevices, WithoutADriverTheErrorSaysWhatToInstall) {
  for (const char* driver : {"", "MGE_CUDA_DRIVER=/nowhere/libcuda.so.1"}) {
    if (!*driver && dlopen("libcuda.so.1", RTLD_NOW)) continue;  // this machine has one
    EXPECT_EQ(Mge("run good.onnx --device cpu0", driver).code, Mge("run good.onnx --device cpu0").code);
    const Outcome o = Mge("run " + Good() + " --device cuda0", driver);
    EXPECT_NE(o.code, 0);
    EXPECT_THAT(o.err, HasSubstr("no CUDA driver: "));
    EXPECT_THAT(o.err, HasSubstr("install the NVIDIA driver"));
    EXPECT_THAT(o.err, HasSubstr("or set cuda.driver to its path"));
    const Outcome devices = Mge("devices", driver);
    EXPECT_EQ(devices.code, 0);
    EXPECT_THAT(devices.out, testing::ContainsRegex("- +absent +cuda +- +- +no CUDA driver: .*; install the NVIDIA driver"));
    EXPECT_EQ(devices.err, "");
    EXPECT_THAT(Mge("doctor", driver).out, HasSubstr("install the NVIDIA driver"));
  }
  EXPECT_THAT(Mge("run " + Good() + " --device cuda0", "MGE_CUDA_DRIVER=libcuda.so.1").err,
              HasSubstr("which is not an absolute path"));
}

TEST_F(CudaDevices, OfAnOldDriverAreAnErrorWithBothVersions) {
  const Outcome o = Mge("run " + Good() + " --device cuda0", Driver("version 12040\n"));
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("the driver is too old for this backend: it supports CUDA 12.4, and 13.0 is needed"));
}

TEST_F(CudaDevices, WithoutCodeForThemAreListedAsUnusable) {
  const std::string driver = Driver("capability 70\n");
  EXPECT_THAT(Mge("devices", driver).out, HasSubstr("its compute capability 7.0 is older than 7.5"));
  const Outcome o = Mge("run " + Good() + " --device cuda0", driver);
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("its compute capability 7.0 is older than 7.5"));
  EXPECT_EQ(Mge("run " + Good() + " --device cuda0,cpu0", driver).code, 0);
  for (int code : {209, 222}) {  // no binary, and intermediate code that is newer than the driver
    const std::string failing = Driver("fail cuModuleLoadData 1 " + std::to_string(code) + "\n");
    EXPECT_THAT(Mge("run " + Good() + " --device cuda0", failing).err,
                testing::AllOf(HasSubstr("the kernels of unary.cu cannot be loaded"), HasSubstr("no code for 9.0"),
                               HasSubstr("MGE_CUDA_ARCHITECTURES")));
  }
}

TEST_F(CudaDevices, AbsentOrBusyAreErrorsWithTheReason) {
  Outcome o = Mge("run " + Good() + " --device cuda0", Driver("devices 0\n"));
  EXPECT_THAT(o.err, HasSubstr("the CUDA driver finds no device"));
  EXPECT_THAT(o.err, HasSubstr("CUDA_VISIBLE_DEVICES"));
  o = Mge("run " + Good() + " --device cuda0", Driver("fail cuDevicePrimaryCtxRetain 1 46\n"));
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("another process uses the device exclusively"));
  o = Mge("devices", Driver("fail cuDeviceGetName 1 1\ndevices 2\n"));
  EXPECT_THAT(o.out, HasSubstr("it cannot be queried: cuDeviceGetName failed with CUDA_ERROR_INVALID_VALUE"));
  EXPECT_THAT(o.out, HasSubstr("cuda1"));
}

// A model that takes 0.3 seconds per kernel, so that the host asks for its end while it runs.
TEST_F(CudaDevices, AreAskedAgainIfAQueryFails) {
  const std::string run = "run " MGE_SOURCE_DIR "/packaging/digits/digits.onnx --device cuda0";
  Outcome o = Mge(run, Driver("launch_latency 300000\nfail cuEventQuery 2 1\n"));
  EXPECT_EQ(o.code, 0) << o.err;
  o = Mge(run, Driver("launch_latency 300000\nfail cuEventQuery 2 719\n"));
  EXPECT_NE(o.code, 0);
  EXPECT_THAT(o.err, HasSubstr("cuda0 is lost"));
}

TEST_F(CudaDevices, CopyDirectlyOnlyIfTheyArePeers) {
  for (const auto& [cell, way] :
       {std::pair("25/1.9", "directly over direct link"), {"12/10/host", "there is no direct way between the devices"}}) {
    Write("links.csv", std::string("0 ") + cell + "\n" + cell + " 0\n");
    const std::string driver = Driver("devices 2\nlinks " + Path("links.csv") + "\n");
    const std::string model = MGE_SOURCE_DIR "/packaging/digits/digits.onnx --device cuda0+cuda1";
    EXPECT_THAT(Mge("plan --why " + model, driver).out, HasSubstr(way));
    const Outcome o = Mge("run --against host " + model, driver);
    EXPECT_EQ(o.code, 0) << o.err;
  }
}

TEST_F(CudaDevices, PassTheWholeConformanceKit) {
  const std::string driver = Driver("devices 2\n");
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so", driver);
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
}

// A driver is mapped only if a device of the backend is asked for.
TEST_F(CudaDevices, AreNotStartedForOtherDevices) {
  const std::string driver = Driver("fail cuInit 1 3\n");
  EXPECT_EQ(Mge("run " + Good() + " --device cpu0", driver).code, 0);
  EXPECT_THAT(Mge("plugins", driver).out, Not(HasSubstr("cuInit")));
  EXPECT_THAT(Mge("run " + Good() + " --device cuda0", driver).err, HasSubstr("the driver does not start: cuInit failed"));
}

// The libraries that other work needs are named by the settings, so they would be found.
TEST_F(CudaDevices, MapNoLibraryOfTheVendorButTheDriver) {
  constexpr const char* kLibraries[] = {"cudnn", "cublasLt", "nvrtc", "nccl"};
  std::string environment = Driver("devices 1\n") + " LD_DEBUG=files";
  for (const char* library : kLibraries) {
    std::string name = std::string("MGE_CUDA_") + library;
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    environment += " " + name + "=" MGE_BINARY_DIR "/tests/cuda/lib" + library + ".so";
  }
  const std::string plugins = Mge("plugins", environment).err;
  EXPECT_THAT(plugins, HasSubstr("libc.so.6"));
  EXPECT_THAT(plugins, Not(HasSubstr("mge_cuda.so")));
  EXPECT_THAT(plugins, Not(HasSubstr("/libcuda.so.1")));
  for (const std::string& command : {std::string("devices"), "run " + Good() + " --device cuda0"}) {
    const Outcome o = Mge(command, environment);
    EXPECT_EQ(o.code, 0);
    EXPECT_THAT(o.err, HasSubstr("/libcuda.so.1"));
    EXPECT_THAT(o.err, Not(HasSubstr("libcudart")));
    for (const char* library : kLibraries) {
      EXPECT_THAT(o.err, Not(HasSubstr("/lib" + std::string(library) + ".so"))) << command;
    }
  }
  // A transformer needs products and chains, and no convolutions or collectives.
  ASSERT_EQ(Mge("zoo bert-tiny -o bert.onnx").code, 0);
  const std::string plan = Mge("plan bert.onnx --device cuda0", environment).err;
  EXPECT_THAT(plan, HasSubstr("/libcublasLt.so"));
  EXPECT_THAT(plan, HasSubstr("/libnvrtc.so"));
  EXPECT_THAT(plan, Not(HasSubstr("/libcudnn.so")));
  EXPECT_THAT(plan, Not(HasSubstr("/libnccl.so")));
}

}  // namespace
}  // namespace mge
