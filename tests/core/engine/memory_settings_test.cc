// SPDX-License-Identifier: Apache-2.0
// Reserves of device classes, on fake backends of these classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "core/engine/runtime.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Variables = std::vector<std::pair<std::string, std::string>>;

// A runtime with fake devices of the classes cuda and rocm, 1,000,000 bytes each.
class Machine {
 public:
  explicit Machine(Variables variables) {
    folder_.Add("cuda");
    folder_.Add("rocm");
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {folder_.path()};
    options.sources.environment.variables = std::move(variables);
    runtime_ = Runtime::Create(std::move(options));
  }
  absl::Status status() const { return runtime_.status(); }
  Device& Get(const std::string& name) { return *(*runtime_)->devices().Resolve(name, "the test")->devices.front().device; }

 private:
  PluginFolder folder_;
  absl::StatusOr<std::shared_ptr<Runtime>> runtime_;
};

TEST(ReserveOfAClass, IsAllocatedOnceAndServesLaterRequests) {
  Machine machine(Variables{{"MGB_CUDA_RESERVE_MEMORY", "b:400000"}});
  ASSERT_TRUE(machine.status().ok()) << FormatError(machine.status());
  Device& cuda = machine.Get("cuda0");
  ASSERT_TRUE(cuda.Reserve({}).ok());
  Pool& pool = **cuda.PoolOf();
  for (uint64_t bytes : {1000, 90000, 5000, 200000, 64}) {
    mge_reservation a = *pool.Acquire(bytes), b = *pool.Acquire(bytes / 2);
    pool.Release(a);
    pool.Release(b);
  }
  EXPECT_EQ(pool.Stats().slab_acquires, 1u);
  EXPECT_EQ(pool.Stats().committed, 400000u);
}

TEST(ReserveOfAClass, LeavesOtherClassesAlone) {
  Machine machine(Variables{{"MGB_CUDA_RESERVE_MEMORY", "b:400000"}, {"MGB_ROCM_RESERVE_MEMORY", "b:128000"}});
  Device &cuda = machine.Get("cuda0"), &rocm = machine.Get("rocm0");
  ASSERT_TRUE(cuda.Reserve({}).ok());
  ASSERT_TRUE(rocm.Reserve({}).ok());
  EXPECT_EQ(cuda.Stats().pool.committed, 400000u);
  EXPECT_EQ(rocm.Stats().pool.committed, 128000u);
  Machine only_rocm(Variables{{"MGB_ROCM_RESERVE_MEMORY", "b:128000"}});
  ASSERT_TRUE(only_rocm.Get("cuda0").Reserve({}).ok());
  EXPECT_EQ(only_rocm.Get("cuda0").Stats().pool.committed, 0u);
}

TEST(ReserveOfAClass, OfZeroIsNone) {
  Machine machine(Variables{{"MGB_CUDA_RESERVE_MEMORY", "0"}, {"MGE_MEMORY_RESERVE", "bytes:1000"}});
  ASSERT_TRUE(machine.Get("cuda0").Reserve({}).ok());
  EXPECT_EQ(machine.Get("cuda0").Stats().pool.committed, 0u);
}

TEST(ReserveOfAClass, IsRefusedBesideAPoolThatCannotCutBlocks) {
  for (const auto& other : Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Round"}, {"MGE_MEMORY_POOL", "naive"}}) {
    Machine machine(Variables{{"MGB_CUDA_RESERVE_MEMORY", "1"}, other});
    EXPECT_EQ(ErrorId(machine.status()), errors::kBadSetting.id);
    EXPECT_THAT(FormatError(machine.status()),
                AllOf(HasSubstr("MGB_CUDA_RESERVE_MEMORY"), HasSubstr(other.first), HasSubstr("growing")));
  }
  EXPECT_TRUE(Machine(Variables{{"MGB_CUDA_RESERVE_MEMORY", "0"}, {"MXNET_GPU_MEM_POOL_TYPE", "Round"}}).status().ok());
}

}  // namespace
}  // namespace mge
