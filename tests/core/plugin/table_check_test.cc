// SPDX-License-Identifier: Apache-2.0
// Tables of backends that break the contract in one slot each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin/host_device.h"
#include "core/plugin/loader.h"
#include "core/plugin/tables.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A valid table whose parts a test can change.
struct Tables {
  HostDevice host{nullptr};
  mge_plugin plugin = *host.plugin();
  mge_memory_api memory = *plugin.memory;
  mge_queue_api queue = {};
  mge_layout_api layout = {};
  mge_profile_api profile = {};

  Tables() {
    plugin.memory = &memory;
    queue.struct_size = sizeof(queue);
    queue.create = [](mge_device*, int32_t, mge_queue**, mge_error*) -> mge_code { return MGE_OK; };
    queue.destroy = [](mge_queue*) {};
    queue.copy = [](mge_queue*, void*, const void*, uint64_t, mge_error*) -> mge_code { return MGE_OK; };
    queue.fence_create = [](mge_device*, mge_fence**, mge_error*) -> mge_code { return MGE_OK; };
    queue.fence_destroy = [](mge_fence*) {};
    queue.signal = queue.wait = [](mge_queue*, mge_fence*, uint64_t, mge_error*) -> mge_code { return MGE_OK; };
    queue.host_wait = [](mge_fence*, uint64_t, uint64_t, mge_error*) -> mge_code { return MGE_OK; };
    layout.struct_size = sizeof(layout);
    profile.struct_size = sizeof(profile);
    profile.stamp_create = [](mge_device*, mge_stamp**, mge_error*) -> mge_code { return MGE_OK; };
    profile.stamp_destroy = [](mge_stamp*) {};
    profile.stamp = [](mge_queue*, mge_stamp*, mge_error*) -> mge_code { return MGE_OK; };
    profile.elapsed_us = [](mge_stamp*, mge_stamp*, double*, mge_error*) -> mge_code { return MGE_OK; };
  }
  std::string Why() const { return WhyTableIsBad(plugin); }
};

TEST(TableCheck, AcceptsTheValidTable) {
  Tables t;
  EXPECT_EQ(t.Why(), "");
  t.plugin.queue = &t.queue;
  t.plugin.profile = &t.profile;
  EXPECT_EQ(t.Why(), "");
}

TEST(TableCheck, VirtualMemoryHasAllSlotsOrNone) {
  Tables t;
  t.memory.range_granularity = [](mge_device*) -> uint64_t { return 4096; };
  EXPECT_THAT(t.Why(), AllOf(HasSubstr("table 'memory'"), HasSubstr("'range_granularity'"), HasSubstr("is NULL")));
}

// Returns the fault in the description of a device with these properties.
std::string WhyProperties(const std::vector<std::pair<std::string, std::string>>& properties) {
  std::vector<mge_property> list;
  std::vector<const mge_property*> pointers;
  for (const auto& [key, value] : properties) {
    list.push_back({sizeof(mge_property), 0, {key.data(), key.size()}, {value.data(), value.size()}});
  }
  for (const mge_property& p : list) pointers.push_back(&p);
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.properties = pointers.data();
  info.property_count = pointers.size();
  return WhyDeviceInfoIsBad(info);
}

TEST(DeviceInfo, AlignmentIsAPowerOfTwoUpTo4096) {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  for (uint32_t good : {0u, 1u, 64u, 256u, 4096u}) {
    info.buffer_alignment = good;
    EXPECT_EQ(WhyDeviceInfoIsBad(info), "") << good;
  }
  for (uint32_t bad : {3u, 96u, 8192u}) {
    info.buffer_alignment = bad;
    EXPECT_THAT(WhyDeviceInfoIsBad(info),
                AllOf(HasSubstr("device 0 is " + std::to_string(bad)), HasSubstr("a power of two up to 4096")));
  }
}

TEST(DeviceInfo, QueuesAndPropertiesAreBounded) {
  mge_device_info info = {};
  info.struct_size = sizeof(info);
  info.compute_queues = 1025;
  EXPECT_THAT(WhyDeviceInfoIsBad(info), HasSubstr("1025 compute_queues; the most is 1024"));
  info.compute_queues = 1024;
  info.property_count = 1;
  EXPECT_THAT(WhyDeviceInfoIsBad(info), HasSubstr("properties"));  // without a list
  EXPECT_EQ(WhyProperties({{"uuid", "GPU 1"}, {"memory_gb_s", "3350"}, {"x_2", ""}}), "");
  EXPECT_THAT(WhyProperties(std::vector<std::pair<std::string, std::string>>(65, {"a", ""})), HasSubstr("longer than 64"));
}

TEST(DeviceInfo, KeysOfPropertiesAreLowerCaseAndUnique) {
  for (const char* key : {"", "UUID", "a b", "a-b", "\n"}) {
    EXPECT_THAT(WhyProperties({{key, "1"}}), HasSubstr("characters of a-z, 0-9 and _")) << key;
  }
  EXPECT_THAT(WhyProperties({{std::string(65, 'a'), "1"}}), HasSubstr("a key has 1 to 64 characters"));
  EXPECT_THAT(WhyProperties({{"pci", "1"}, {"pci", "2"}}), HasSubstr("two properties 'pci'"));
  EXPECT_THAT(WhyProperties({{"pci", std::string(1025, 'x')}}), HasSubstr("'pci' of its device 0"));
}

TEST(TableCheck, CaptureHasAllSlotsOrNone) {
  Tables t;
  t.plugin.queue = &t.queue;
  t.queue.replay = [](mge_queue*, void*, mge_error*) -> mge_code { return MGE_OK; };
  EXPECT_THAT(t.Why(), AllOf(HasSubstr("table 'queue'"), HasSubstr("'replay'"), HasSubstr("both or neither")));
}

TEST(TableCheck, ALayoutTableNeedsDescribe) {
  Tables t;
  t.plugin.layout = &t.layout;
  EXPECT_THAT(t.Why(), HasSubstr("slot 'describe' of table 'layout' is NULL"));
}

TEST(TableCheck, RefusesUnknownFlagsAndModesOfAStrategy) {
  Tables t;
  mge_strategy_api strategy = {};
  strategy.struct_size = sizeof(strategy);
  strategy.flags = MGE_STRATEGY_BY_COST;
  strategy.mode = MGE_SELECT_REPRODUCIBLE;
  t.plugin.strategy = &strategy;
  EXPECT_EQ(t.Why(), "");
  strategy.flags |= 0x10;
  EXPECT_THAT(t.Why(), AllOf(HasSubstr("table 'strategy'"), HasSubstr("0x10")));
  strategy.flags = 0;
  for (int32_t wrong : {-1, 3}) {
    strategy.mode = wrong;
    EXPECT_THAT(t.Why(), HasSubstr("table 'strategy' names a mode of selection that this host does not know (" +
                                   std::to_string(wrong) + ")"));
  }
}

TEST(TableCheck, AStructSizeThatCutsAMemberExcludesIt) {
  Tables t;
  mge_strategy_api strategy = {};
  strategy.order = [](mge_device*, const mge_choice*, uint32_t*, mge_error*) -> mge_code { return MGE_OK; };
  strategy.struct_size = offsetof(mge_strategy_api, order) + 4;
  EXPECT_EQ(Widen(strategy).order, nullptr);
  strategy.struct_size = offsetof(mge_strategy_api, order) + sizeof(strategy.order);
  EXPECT_EQ(Widen(strategy).order, strategy.order);
  t.plugin.struct_size = offsetof(mge_plugin, kernel) + 4;
  EXPECT_THAT(t.Why(), HasSubstr("table 'kernel' is NULL"));
}

TEST(TableCheck, RefusesUnknownTypesAndLifecyclesOfSettings) {
  Tables t;
  mge_setting setting = {};
  setting.struct_size = sizeof(setting);
  setting.type = MGE_SETTING_CHOICE;
  setting.key = {"host.level", 10};
  setting.lifecycle = MGE_LIFECYCLE_DYNAMIC;
  const mge_setting* settings[] = {&setting};
  t.plugin.settings = settings;
  t.plugin.setting_count = 1;
  EXPECT_EQ(t.Why(), "");
  for (int32_t wrong : {-1, 9}) {
    setting.lifecycle = wrong;
    EXPECT_THAT(t.Why(), AllOf(HasSubstr("setting 0 ('host.level') has the lifecycle " + std::to_string(wrong)),
                               HasSubstr("the last that it knows is 2")));
    setting.lifecycle = 0;  // 0: the default
    setting.type = wrong;
    EXPECT_THAT(t.Why(), AllOf(HasSubstr("setting 0 ('host.level') has the type " + std::to_string(wrong)),
                               HasSubstr("the last that it knows is 6")));
    setting.type = 0;
    EXPECT_EQ(t.Why(), "");
  }
}

TEST(TableCheck, AProfileTableNeedsAllSlotsAndAQueue) {
  Tables t;
  t.plugin.profile = &t.profile;
  EXPECT_THAT(t.Why(), HasSubstr("no table 'queue'"));
  t.plugin.queue = &t.queue;
  t.profile.elapsed_us = nullptr;
  EXPECT_THAT(t.Why(), HasSubstr("slot 'elapsed_us' of table 'profile' is NULL"));
}

}  // namespace
}  // namespace mge
