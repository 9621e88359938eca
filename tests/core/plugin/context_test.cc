// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/context.h"

#include <gmock/gmock.h>

#include <memory>
#include <thread>
#include <unordered_set>

#include "core/base/errors.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::HasSubstr;

std::optional<DeviceSpec> Default(std::string_view text) { return *ParseDeviceSpec(text); }

TEST(Context, IsAPairOfTypeAndId) {
  EXPECT_EQ(Gpu(2).ToString(), "gpu(2)");
  EXPECT_EQ(Context().ToString(), "cpu(0)");
  EXPECT_EQ(CpuPinned().device_type(), "cpu_pinned");
  EXPECT_EQ(*Context::Create("gpu", 2), Gpu(2));
  EXPECT_EQ(*Context::FromString("gpu(2)"), Gpu(2));
  EXPECT_EQ(*Context::FromString("gpu2"), Gpu(2));
  EXPECT_NE(Gpu(1), Gpu(2));
  EXPECT_EQ((std::unordered_set<Context>{Cpu(), Cpu(0), Gpu(1)}).size(), 2u);
}

TEST(Context, UnknownTypesAreErrors) {
  EXPECT_THAT(PartsOf(Context::Create("gqu").status()).what, HasSubstr("Did you mean \"gpu\"?"));
  for (const char* text : {"gpu(-1)", "gpu(", "", "gpu(1", "xpu(0)"}) {
    EXPECT_EQ(ErrorId(Context::FromString(text).status()), errors::kBadDeviceName.id) << text;
  }
  EXPECT_FALSE(Context::Create("gpu", -1).ok());
}

TEST(Context, ScopesNestAndApplyToTheirThreadOnly) {
  std::unique_ptr<Devices> devices = Load({});
  auto current = [&] { return CurrentContext(*devices, std::nullopt)->ToString(); };
  EXPECT_EQ(current(), "cpu(0)");
  {
    ContextScope outer(Gpu(1));
    EXPECT_EQ(current(), "gpu(1)");
    {
      ContextScope inner(Gpu(1));  // enters the same context twice
      ContextScope innermost(CpuPinned(3));
      EXPECT_EQ(current(), "cpu_pinned(3)");
      std::thread([&] { EXPECT_EQ(current(), "cpu(0)"); }).join();
    }
    EXPECT_EQ(current(), "gpu(1)");
  }
  EXPECT_EQ(current(), "cpu(0)");
}

TEST(Context, ScopesMayEndInAnyOrder) {
  auto a = std::make_unique<ContextScope>(Gpu(1)), b = std::make_unique<ContextScope>(Gpu(2));
  a.reset();
  EXPECT_EQ(*ScopedContext(), Gpu(2));
  b.reset();
  EXPECT_FALSE(ScopedContext().has_value());
}

TEST(Context, IsTheDefaultDeviceOutsideOfScopes) {
  PluginFolder folder;
  folder.Add("card");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  EXPECT_EQ(CurrentContext(*devices, Default("gpu1"))->ToString(), "gpu(1)");
  EXPECT_EQ(CurrentContext(*devices, Default("cpu0"))->ToString(), "cpu(0)");
  EXPECT_EQ(CurrentContext(*devices, Default("multithread4:0"))->ToString(), "cpu(0)");
  EXPECT_EQ(CurrentContext(*devices, Default("xpux"))->ToString(), "gpu(0)");
  EXPECT_FALSE(CurrentContext(*Load({}), Default("xpux")).ok());
}

TEST(Context, ACallOverridesTheScopeWhichOverridesTheDefault) {
  EXPECT_EQ(RequestedDevices("", std::nullopt)->ToString(), "xpux");
  EXPECT_EQ(RequestedDevices("", Default("cpu0"))->ToString(), "cpu0");
  ContextScope scope(Gpu(1));
  EXPECT_EQ(RequestedDevices("", Default("cpu0"))->ToString(), "gpu(1)");
  EXPECT_EQ(RequestedDevices("gpu3,cpu0", Default("cpu0"))->ToString(), "gpu3,cpu0");
}

TEST(Context, GpusAreCountedWithoutErrors) {
  EXPECT_EQ(NumGpus(*Load({})), 0);
  PluginFolder folder;
  folder.Add("old_driver");
  EXPECT_EQ(NumGpus(*Load({folder.path()})), 0);
  folder.Add("board");
  EXPECT_EQ(NumGpus(*Load({folder.path()})), 2);
}

TEST(Context, GpuMemoryIsFreeThenTotal) {
  PluginFolder folder;
  folder.Add("card");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  MemoryInfo info = *GpuMemoryInfo(*devices, 1);
  EXPECT_EQ(info.free_bytes, 1000000u);
  EXPECT_EQ(info.total_bytes, 1000000u);
  EXPECT_EQ(ErrorId(GpuMemoryInfo(*devices, 2).status()), errors::kDeviceUnusable.id);
  EXPECT_EQ(ErrorId(GpuMemoryInfo(*Load({}), 0).status()), errors::kDeviceUnusable.id);
}

TEST(Context, EmptyCacheReleasesOnlyFreeMemory) {
  PluginFolder folder;
  folder.Add("card");
  std::unique_ptr<Devices> devices = Load({folder.path()});
  Pool& pool = **devices->Resolve("gpu0")->devices[0].device->PoolOf();
  mge_reservation live = *pool.Acquire(5000), dead = *pool.Acquire(100000);
  pool.Release(dead);
  EXPECT_EQ(GpuMemoryInfo(*devices)->free_bytes, 1000000u - 105000u);
  ASSERT_TRUE(EmptyCache(*devices, Gpu(0)).ok());
  EXPECT_EQ(GpuMemoryInfo(*devices)->free_bytes, 1000000u - 5000u);
  static_cast<char*>(live.host_address)[4999] = 1;
  pool.Release(live);
  EXPECT_TRUE(EmptyCache(*devices, Gpu(1)).ok());  // this device was never used, so nothing is cached
  EXPECT_FALSE(EmptyCache(*devices, Gpu(7)).ok());
}

}  // namespace
}  // namespace mge
