// SPDX-License-Identifier: Apache-2.0
// mge bench with inputs and outputs in the memory of the host or of a device.
#include <filesystem>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class Bench : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  }
  Outcome Run(const std::string& args) const {
    return Mge("bench " + Good() + " --device virtual0 --runs 3 " + args, "MGE_VIRTUAL_DEVICES=2 MGE_PLAN_HOST_COMPUTE=0");
  }
};

TEST_F(Bench, StagesNothingIfTensorsLieOnTheDevice) {
  Outcome device = Run("--io device --json");
  ASSERT_EQ(device.code, 0) << device.err;
  EXPECT_EQ(json::parse(device.out)["io"], "device");
  EXPECT_EQ(json::parse(device.out)["staged_bytes_per_run"], 0);
  Outcome host = Run("--json");
  ASSERT_EQ(host.code, 0) << host.err;
  EXPECT_EQ(json::parse(host.out)["io"], "host");
  EXPECT_EQ(json::parse(host.out)["staged_bytes_per_run"], 2 * 2 * 3 * 4);  // input and output
}

TEST_F(Bench, DoesNotWarnOfEstimatesForADeviceInSoftware) {
  const std::string digits = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";
  Outcome o = Mge("bench " + digits + " --device virtual0 --runs 3 --json", "MGE_VIRTUAL_DEVICES=1");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["estimate"]["off"], true);
  EXPECT_THAT(o.err, testing::Not(HasSubstr("planner estimated")));
}

TEST_F(Bench, MeasuresAllConstantsOfAModelWithTensorsOnTheDevice) {
  const std::string digits = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";
  Outcome o = Mge("bench " + digits + " --device virtual0 --runs 3 --io device --json", "MGE_VIRTUAL_DEVICES=2");
  ASSERT_EQ(o.code, 0) << o.err;
  const json report = json::parse(o.out);
  EXPECT_EQ(report["measured_peak_bytes"], report["planned_peak_bytes"]);
}

TEST_F(Bench, ShowsWhereTensorsLie) {
  EXPECT_THAT(Run("--io device").out, HasSubstr("inputs, outputs in memory of the device, 0 B staged per run"));
  EXPECT_EQ(Run("--io elsewhere").code, 2);
}

TEST_F(Bench, MeasuresBesideBusyProcessesThatEndWithIt) {
  const Outcome o = Mge("bench " + Good() + " --device cpu0 --runs 3 --neighbours 2 --json");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["neighbours"], 2);
  EXPECT_THAT(Mge("bench " + Good() + " --device cpu0 --runs 3 --neighbours 1").out, HasSubstr("beside 1 busy process"));
  EXPECT_EQ(Mge("bench " + Good() + " --neighbours -1").code, 2);
}

}  // namespace
}  // namespace mge
