// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/base/errors.h"
#include "mge/plugin/names.hpp"

namespace mge {
namespace {

using testing::HasSubstr;

TEST(DeviceName, EveryFormIsAccepted) {
  struct Row {
    const char* text;
    DeviceName name;
    const char* printed;  // nullptr: as written
  };
  const Row rows[] = {
      {"cpu0", {.cls = "cpu", .number = 0}, nullptr},
      {"gpu1", {.cls = "gpu", .number = 1}, nullptr},
      {"gpu0:0", {.cls = "gpu", .number = 0, .stream = 0}, nullptr},
      {"cpu1:3", {.cls = "cpu", .number = 1, .stream = 3}, nullptr},
      {"cuda0", {.cls = "cuda", .number = 0}, nullptr},
      {"rocm0", {.cls = "rocm", .number = 0}, nullptr},
      {"xpux", {.cls = "xpu"}, nullptr},
      {"xpu", {.cls = "xpu"}, "xpux"},
      {"gpux", {.cls = "gpu"}, nullptr},
      {"gpux:1", {.cls = "gpu", .stream = 1}, nullptr},
      {"cpu", {.cls = "cpu"}, "cpux"},
      {"cpu:default", {.cls = "cpu", .synchronous = true}, nullptr},
      {"multithread4:0", {.cls = "multithread", .number = 0, .threads = 4}, nullptr},
      {"multithread2:1", {.cls = "multithread", .number = 1, .threads = 2}, nullptr},
      {"multithread4", {.cls = "multithread", .number = 0, .threads = 4}, "multithread4:0"},
      {"multithread:default:4", {.cls = "multithread", .threads = 4, .synchronous = true}, nullptr},
      {"cpu(0)", {.cls = "cpu", .number = 0, .context = true}, nullptr},
      {"gpu(1)", {.cls = "gpu", .number = 1, .context = true}, nullptr},
      {"cpu_pinned(0)", {.cls = "cpu_pinned", .number = 0, .context = true}, nullptr},
      {"host", {.cls = "host"}, "hostx"},
      {"virtual0", {.cls = "virtual", .number = 0}, nullptr},
      {"npu3", {.cls = "npu", .number = 3}, nullptr},
      {" cpu0 ", {.cls = "cpu", .number = 0}, "cpu0"},
  };
  for (const Row& row : rows) {
    absl::StatusOr<DeviceName> name = ParseDeviceName(row.text);
    ASSERT_TRUE(name.ok()) << row.text << ": " << FormatError(name.status());
    EXPECT_EQ(*name, row.name) << row.text;
    EXPECT_EQ(name->ToString(), row.printed ? row.printed : row.text);
    EXPECT_EQ(*ParseDeviceName(name->ToString()), *name) << row.text;
  }
}

TEST(DeviceName, TextsThatAreNotADeviceNameAreRefused) {
  for (const char* text : {"",
                           " ",
                           "0",
                           "x",
                           "a0",
                           "a(0)",
                           "cpu-1",
                           "cpu0:",
                           "cpu0:x",
                           "cpu0:1:2",
                           "cpu0x",
                           "cpu 0",
                           "cpu999999",
                           "cpu1234567",
                           "multithread",
                           "multithread0:0",
                           "multithreadx",
                           "multithread4:",
                           "multithread:default",
                           "multithread:default:0",
                           "multithread99999:0",
                           "cpu(",
                           "cpu()",
                           "cpu(-1)",
                           "cpu(x)",
                           "(0)",
                           "cpu_pinned0",
                           "CPU0",
                           "cpu0\n",
                           "gpu\x1b[31m",
                           "cpu:0",
                           "gpu:default",
                           "cpu0/../x"}) {
    absl::StatusOr<DeviceName> name = ParseDeviceName(text, "MGE_DEFAULT_DEVICE");
    ASSERT_FALSE(name.ok()) << text;
    EXPECT_EQ(ErrorId(name.status()), errors::kBadDeviceName.id) << text;
    EXPECT_EQ(PartsOf(name.status()).where, "MGE_DEFAULT_DEVICE");
    EXPECT_NE(PartsOf(name.status()).fix, "") << text;
  }
}

// A user must be able to name every device class that a backend may declare.
TEST(DeviceName, EveryClassThatABackendMayDeclareIsAccepted) {
  for (std::string cls : {"ab", "a_", "npu", "default", "multi", "xpu_b", "cpu_pinned_b", "virtual"}) {
    ASSERT_EQ(WhyNoClassName(cls), "") << cls;
    for (const auto& [text, number] : {std::pair(cls + "0", 0), {cls + "10", 10}, {cls + "x", kLowestUsable}}) {
      EXPECT_EQ(*ParseDeviceName(text), (DeviceName{.cls = cls, .number = number})) << text;
    }
  }
  for (std::string cls : {"a", "multithread", "multithreads"}) {
    EXPECT_NE(WhyNoClassName(cls), "") << cls;
    EXPECT_FALSE(ParseDeviceName(cls + "x").ok()) << cls;
  }
}

TEST(DeviceName, TheErrorForAColonBeforeTheNumberShowsTheRightForm) {
  absl::Status status = ParseDeviceName("cuda:0").status();
  EXPECT_THAT(PartsOf(status).fix, HasSubstr("cuda0"));
  EXPECT_THAT(PartsOf(ParseDeviceName("gpu:1").status()).fix, HasSubstr("gpu1"));
}

TEST(DeviceName, ATypoGetsASuggestion) {
  EXPECT_THAT(PartsOf(ParseDeviceName("CPU0").status()).what, HasSubstr("Did you mean \"cpu0\"?"));
  EXPECT_THAT(PartsOf(ParseDeviceName("Gpu(1)").status()).what, HasSubstr("gpu(1)"));
}

TEST(DeviceSpec, ACommaIsAPreferenceAndAPlusASplit) {
  DeviceSpec spec = *ParseDeviceSpec("gpu0+gpu1, cpu0");
  ASSERT_EQ(spec.alternatives.size(), 2u);
  ASSERT_EQ(spec.alternatives[0].size(), 2u);
  EXPECT_EQ(spec.alternatives[0][1].ToString(), "gpu1");
  EXPECT_EQ(spec.alternatives[1][0].ToString(), "cpu0");
  EXPECT_EQ(spec.ToString(), "gpu0+gpu1,cpu0");
  EXPECT_EQ(*ParseDeviceSpec(spec.ToString()), spec);
}

TEST(DeviceSpec, EmptyPartsAndTooLongListsAreRefused) {
  for (std::string text :
       {std::string(""), std::string(","), std::string("cpu0,"), std::string("+cpu0"), std::string("cpu0++cpu1")}) {
    EXPECT_FALSE(ParseDeviceSpec(text).ok()) << text;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "cpu0,";
  EXPECT_FALSE(ParseDeviceSpec(many + "cpu0").ok());
}

}  // namespace
}  // namespace mge
