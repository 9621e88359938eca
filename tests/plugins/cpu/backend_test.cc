// SPDX-License-Identifier: Apache-2.0
// Tables of the CPU backend other than the kernels: device, memory, settings, strategy.
#include <cstring>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mge/plugin/host_limits.hpp"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

std::string Words(const mge_text& t) { return {t.data, static_cast<size_t>(t.size)}; }

struct Devices {
  std::vector<std::string> classes, names, keys;
  std::vector<mge_device_info> infos;
};

Devices List() {
  Devices d;
  mge_device_sink sink = {sizeof(sink), 0, &d, [](void* self, const mge_device_info* info) {
                            auto& d = *static_cast<Devices*>(self);
                            d.classes.push_back(Words(info->class_name));
                            d.names.push_back(Words(info->name));
                            d.keys.push_back(Words(info->device_class));
                            d.infos.push_back(*info);
                          }};
  EXPECT_EQ(UnderTest().plugin().device->enumerate(&sink, nullptr), MGE_OK);
  return d;
}

TEST(CpuBackend, HasOneUsableDevice) {
  Devices d = List();
  ASSERT_EQ(d.infos.size(), 1u);
  EXPECT_EQ(d.classes[0], "cpu");
  EXPECT_FALSE(d.names[0].empty());
  EXPECT_THAT(d.keys[0], ::testing::StartsWith("cpu-"));
  EXPECT_GT(d.infos[0].score, 0u);
  EXPECT_TRUE(d.infos[0].flags & MGE_DEVICE_HOST_ACCESSIBLE);
  EXPECT_GT(d.infos[0].memory_total, uint64_t{1} << 20);
  mge_device* device = nullptr;
  EXPECT_EQ(UnderTest().plugin().device->open(1, &device, nullptr), MGE_NOT_FOUND);
}

TEST(CpuBackend, SlabsAreAlignedWritableAndReleased) {
  const mge_memory_api& m = *UnderTest().plugin().memory;
  mge_device* device = nullptr;
  ASSERT_EQ(UnderTest().plugin().device->open(0, &device, nullptr), MGE_OK);
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4097}, uint64_t{2} << 20, (uint64_t{5} << 20) + 3}) {
    for (int32_t memory_class : {MGE_MEMORY_DEVICE, MGE_MEMORY_PINNED}) {
      mge_slab slab = {};
      slab.struct_size = sizeof(slab);
      ASSERT_EQ(m.slab_acquire(device, memory_class, bytes, &slab, nullptr), MGE_OK);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.address) % 64, 0u);
      EXPECT_EQ(slab.address, slab.host_address);
      EXPECT_EQ(slab.bytes, bytes);
      std::memset(slab.address, 7, bytes);
      m.slab_release(device, &slab);
    }
  }
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  EXPECT_EQ(m.slab_acquire(device, MGE_MEMORY_DEVICE, UINT64_MAX - 5, &slab, nullptr), MGE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(m.slab_acquire(device, 99, 64, &slab, nullptr), MGE_UNIMPLEMENTED);
  UnderTest().plugin().device->close(device);
}

TEST(CpuBackend, FreeMemoryIsAtMostTheTotal) {
  uint64_t free_bytes = 0, total = 0;
  mge_device* device = nullptr;
  ASSERT_EQ(UnderTest().plugin().device->open(0, &device, nullptr), MGE_OK);
  UnderTest().plugin().memory->memory_info(device, &free_bytes, &total);
  UnderTest().plugin().device->close(device);
  EXPECT_EQ(total, HostMemoryAmount().total_bytes);
  EXPECT_GT(total, 0u);
  EXPECT_LE(free_bytes, total);
}

TEST(CpuBackend, SettingsBeginWithItsNameAndHaveADoc) {
  std::set<std::string> keys;
  for (uint64_t i = 0; i < UnderTest().plugin().setting_count; ++i) {
    const mge_setting& s = *UnderTest().plugin().settings[i];
    EXPECT_THAT(Words(s.key), ::testing::StartsWith("cpu."));
    EXPECT_FALSE(Words(s.doc).empty()) << Words(s.key);
    EXPECT_TRUE(keys.insert(Words(s.key)).second);
  }
  EXPECT_TRUE(keys.contains("cpu.isa"));
}

TEST(CpuBackend, HasKernelsForQuantizedOperators) {  // the host asks so, with operands that no kernel takes
  for (auto [op, inputs] : {std::pair("QLinearConv", 9), {"QLinearMatMul", 8}, {"MatMulInteger", 4}, {"ConvInteger", 4}}) {
    const Case c = OneNode(op, std::vector<Tensor>(static_cast<size_t>(inputs), Random(DType::kF32, {1})));
    const std::vector<Tensor> output = {Random(DType::kF32, {1})};
    EXPECT_THAT(UnderTest().Offers(c, &output).refusals, ::testing::SizeIs(1)) << op;
  }
}

TEST(CpuBackend, TheSettingLimitsTheInstructionSet) {
  Case c = OneNode("Relu", {Random(DType::kF32, {4})});
  UnderTest().Set("cpu.isa", "portable");
  EXPECT_THAT(UnderTest().Offers(c).candidates, ::testing::ElementsAre("cpu.elementwise.portable"));
  UnderTest().Set("cpu.isa", "auto");
}

}  // namespace
}  // namespace mge::testing
