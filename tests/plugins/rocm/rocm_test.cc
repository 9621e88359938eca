// SPDX-License-Identifier: Apache-2.0
// ROCm devices as users see them, over libamdhip64 in software. The host code is that of the CUDA backend, which
// tests/plugins/cuda tests further.
#include <gmock/gmock.h>

#include "tests/core/cli/command.h"

namespace mge {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr char kDigits[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";

class RocmDevices : public Command {
 protected:
  // Returns the variable that selects a copy of the driver with this configuration.
  std::string Driver(const std::string& configuration) const {
    std::filesystem::copy_file(MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5", Path("libamdhip64.so.5"),
                               std::filesystem::copy_options::overwrite_existing);
    Write("libamdhip64.so.5.conf", configuration);
    return "MGE_PLUGIN_START_TIMEOUT=20 MGE_ROCM_DRIVER=" + Path("libamdhip64.so.5");
  }
};

TEST_F(RocmDevices, AreListedAndRunAModelWithTheNumbersOfTheReference) {
  const std::string driver = Driver("devices 2\ncapability 90\n");
  const Outcome listed = Mge("devices --json", driver);
  EXPECT_THAT(listed.out, HasSubstr("\"name\": \"rocm1\""));
  EXPECT_THAT(listed.out, HasSubstr("\"capability\": \"9.0\""));
  EXPECT_THAT(listed.out, HasSubstr("\"multiprocessors\": \"4\""));
  for (const char* device : {"rocm0", "gpu1", "rocm0+rocm1", "rocm0+cpu0"}) {
    const Outcome o = Mge("run " + std::string(kDigits) + " --compare host --device " + device, driver);
    EXPECT_EQ(o.code, 0) << o.err;
  }
}

TEST_F(RocmDevices, PassTheConformanceKit) {
  const Outcome o = Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_rocm.so --quick", Driver("devices 2\n"));
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
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
