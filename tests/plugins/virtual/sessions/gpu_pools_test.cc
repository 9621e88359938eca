// SPDX-License-Identifier: Apache-2.0
// The settings of GPU pools act on the driver's calls. Devices count as GPUs by virtual.gpu=1.
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Variables = std::vector<std::pair<std::string, std::string>>;

// A virtual GPU with these environment variables. Uses its pool directly.
class GpuPool {
 public:
  explicit GpuPool(Variables variables, std::vector<Assignment> settings = {}) {
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.sources.call = {{"virtual.devices", "1"}, {"virtual.gpu", "1"}};
    options.sources.call.insert(options.sources.call.end(), settings.begin(), settings.end());
    options.sources.environment.variables = std::move(variables);
    auto runtime = Runtime::Create(std::move(options));
    EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *std::move(runtime);
    device_ = runtime_->devices().Resolve("gpu0", "the test")->devices.front().device;
    pool_ = *device_->PoolOf();
  }
  std::shared_ptr<Runtime> shared_runtime() { return runtime_; }
  Device& device() { return *device_; }
  // Allocates and releases a block. Returns the bytes that the pool reserved for it.
  uint64_t Use(uint64_t bytes) {
    mge_reservation r = *pool_->Acquire(bytes);
    pool_->Release(r);
    return r.bytes;
  }
  mge_pool_stats Stats() { return pool_->Stats(); }
  std::string name() const { return std::string(pool_->name()); }

 private:
  std::shared_ptr<Runtime> runtime_;
  Device* device_;
  Pool* pool_;
};

TEST(GpuPoolType, NaiveAllocatesOncePerSize) {
  GpuPool pool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Naive"}});
  EXPECT_EQ(pool.Use(5000), 5000u);  // the rounding of MXNet 1.4.1
  EXPECT_EQ(pool.Use(6000), 6000u);
  EXPECT_EQ(pool.Use(5000), 5000u);
  EXPECT_EQ(pool.Stats().slab_acquires, 2u);
  EXPECT_EQ(pool.Stats().slab_releases, 0u);
}

TEST(GpuPoolType, RoundSharesOneBlockBetweenSizesOfOneBucket) {
  GpuPool pool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Round"}});
  EXPECT_EQ(pool.Use(5000), 8192u);
  EXPECT_EQ(pool.Use(6000), 8192u);
  EXPECT_EQ(pool.Stats().slab_acquires, 1u);
}

TEST(GpuPoolType, UnpooledKeepsNothing) {
  GpuPool pool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Unpooled"}});
  pool.Use(5000);
  pool.Use(5000);
  EXPECT_EQ(pool.Stats().slab_acquires, 2u);
  EXPECT_EQ(pool.Stats().slab_releases, 2u);
}

TEST(GpuPoolType, OverridesThePoolOfEveryDeviceAndIsTheBackendsIfUnset) {
  EXPECT_EQ(GpuPool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Round"}}, {{"memory.pool", "naive"}}).name(), "round");
  EXPECT_EQ(GpuPool({}, {{"memory.pool", "naive"}}).name(), "naive");
  EXPECT_EQ(GpuPool({}).name(), GpuPool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", ""}}).name());
}

TEST(GpuPoolType, LeavesDevicesThatAreNoGpusAlone) {
  auto runtime = NewRuntime({{"virtual.devices", "1"}, {"memory.gpu_pool", "round"}});
  Device& device = *runtime->devices().Resolve("virtual0", "the test")->devices.front().device;
  EXPECT_NE((*device.PoolOf())->name(), "round");
}

TEST(GpuPoolType, SecondRunsOfAModelMakeNoDriverCallsInPooledMemory) {
  constexpr char kModel[] = "input x : float32[N,64]\na = Relu(x)\nb = Exp(a)\ny = Add(a, b)\noutput y\n";
  GpuPool pool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Naive"}});
  for (int round = 0; round < 2; ++round) {
    const uint64_t before = pool.Stats().slab_acquires;
    {
      auto session = Load(pool.shared_runtime(), kModel, "gpu0");
      ASSERT_TRUE(session.ok()) << FormatError(session.status());
      ASSERT_TRUE(ResultsOf(**session, {Numbers({8, 64})}).ok());
    }
    EXPECT_EQ(pool.Stats().slab_acquires - before > 0, round == 0);
  }
}

TEST(GpuPoolNumbers, TheLinearCutoffSetsWhereTheBucketsBecomeLinear) {
  EXPECT_EQ(GpuPool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Round"}}).Use(5 << 20), 8u << 20);
  EXPECT_EQ(GpuPool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Round"}, {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "20"}})
                .Use(5 << 20),
            5u << 20);
}

TEST(GpuPoolNumbers, LargeSizesAreRoundedToMultiplesOfTheirSetting) {
  EXPECT_EQ(GpuPool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Naive"}}).Use(2097153), 4194304u);
  EXPECT_EQ(
      GpuPool(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Naive"}, {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "1"}}).Use(2097153),
      2097153u);
}

// Caches 500 of 1000 units, then requests 350 of the 500 free ones. Returns the number of slabs released for that.
uint64_t ReleasedBelow(const std::string& percent) {
  constexpr uint64_t kUnit = 64 << 10;
  GpuPool reserving(Variables{{"MXNET_GPU_MEM_POOL_TYPE", "Naive"},
                              {"MXNET_GPU_MEM_POOL_RESERVE", percent},
                              {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE", "1"}},
                    {{"virtual.memory_bytes", std::to_string(1000 * kUnit)}});
  reserving.Use(500 * kUnit);
  reserving.Use(350 * kUnit);
  return reserving.Stats().slab_releases;
}

TEST(GpuPoolReserve, ReleasesCachedBlocksBeforeTheShareIsTouched) {
  EXPECT_EQ(ReleasedBelow("5"), 0u);
  EXPECT_EQ(ReleasedBelow("20"), 1u);
}

TEST(GpuPoolReserve, HoldsTogetherWithAReserveOfBytes) {
  GpuPool bytes(Variables{{"MXNET_GPU_MEM_POOL_RESERVE", "20"}},
                {{"virtual.memory_bytes", "10M"}, {"memory.reserve", "bytes:9M"}, {"memory.pool", "growing"}});
  ASSERT_TRUE(bytes.device().Reserve({}).ok());
  EXPECT_LE(bytes.Stats().committed, 8u << 20);
  EXPECT_GT(bytes.Stats().committed, 7u << 20);
}

TEST(GpuPoolType, AnUnknownNameIsAnErrorThatNamesTheAllowedOnes) {
  RuntimeOptions options;
  options.sources.environment.variables = {{"MXNET_GPU_MEM_POOL_TYPE", "Roun"}};
  const absl::Status status = Runtime::Create(std::move(options)).status();
  EXPECT_THAT(FormatError(status),
              AllOf(HasSubstr("MXNET_GPU_MEM_POOL_TYPE"), HasSubstr("Naive"), HasSubstr("Round"), HasSubstr("Unpooled")));
}

}  // namespace
}  // namespace mge
