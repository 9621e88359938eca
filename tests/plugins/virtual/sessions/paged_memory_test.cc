// SPDX-License-Identifier: Apache-2.0
// Memory that runs take page by page and return (memory.static_policy dynamic and both, GE_USE_STATIC_MEMORY 3 and 4).
#include "core/engine/run_fence.h"
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kPage = 2 * kMiB;

// Returns a model of `rows` x 1024 numbers whose arena has two buffers at a time: 8 KiB per row.
std::string ModelOf(const std::string& rows) {
  return "input x : float32[" + rows +
         ",1024]\na = Relu(x)\nb = Softmax(a)\nc = Sub(a, b)\nd = Softmax(c)\ny = ReduceSum(d) {keepdims=1}\noutput y\n";
}

// A runtime with the device cpu0 or virtual0.
class PagedMemory : public testing::TestWithParam<std::string> {
 protected:
  static absl::StatusOr<std::shared_ptr<Runtime>> Create(const std::string& mode, std::vector<Assignment> more = {}) {
    more.insert(more.end(), {{"virtual.devices", "1"}, {"threads", "1"}});
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    options.sources.call = std::move(more);
    if (!mode.empty()) options.sources.environment.variables = {{"GE_USE_STATIC_MEMORY", mode}};
    return Runtime::Create(std::move(options));
  }
  void Start(const std::string& mode, std::vector<Assignment> more = {}) {
    auto runtime = Create(mode, std::move(more));
    ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *runtime;
  }
  std::shared_ptr<Session> Make(const std::string& rows) {
    auto session = Load(runtime_, ModelOf(rows), GetParam());
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return *session;
  }
  static std::vector<float> Run(Session& session, int64_t rows) {
    auto result = ResultsOf(session, {Numbers({rows, 1024})});
    EXPECT_TRUE(result.ok()) << FormatError(result.status());
    return result.ok() ? *result : std::vector<float>();
  }
  Device& device() { return *runtime_->devices().Resolve(GetParam(), "test")->devices.front().device; }

  std::shared_ptr<Runtime> runtime_;
};

// The memory of one plan serves the plans for other shapes. Off, each plan keeps its own.
TEST_P(PagedMemory, OfOneShapeServesTheOthers) {
  const std::vector<int64_t> sizes = {1024, 512, 768, 256, 1000, 640};
  std::vector<std::vector<float>> expected;
  uint64_t peak[2] = {}, largest = 0;
  for (const char* mode : {"0", "3"}) {
    Start(mode);
    auto session = Make("N");
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < sizes.size(); ++i) {
        std::vector<float> got = Run(*session, sizes[i]);
        if (expected.size() <= i) expected.push_back(got);
        EXPECT_EQ(got, expected[i]) << mode << " " << sizes[i];
        for (const Arena& a : session->last_plan()->arenas) largest = std::max(largest, static_cast<uint64_t>(a.bytes));
      }
    }
    peak[*mode == '3'] = device().Stats().peak_charged;
    if (*mode == '3') {
      EXPECT_EQ(device().Stats().pool.in_use, 0u);
    }
  }
  EXPECT_GE(largest, 4 * kMiB);
  EXPECT_LT(peak[1] + largest, peak[0]);
  if (GetParam() == "virtual0") {
    EXPECT_LE(peak[1], largest + kPage);
  }
}

// Free blocks that are too small for a request give their pages to it.
TEST_P(PagedMemory, IsNotFragmented) {
  auto script = [&]() -> absl::Status {
    Pool& pool = **device().PoolOf();
    std::vector<mge_reservation> small, kept;
    for (int i = 0; i < 16; ++i) {
      MGE_ASSIGN_OR_RETURN(mge_reservation odd, pool.Acquire(2 * kMiB));
      MGE_ASSIGN_OR_RETURN(mge_reservation even, pool.Acquire(4 * kMiB));
      small.push_back(odd);
      kept.push_back(even);
    }
    for (const mge_reservation& block : small) pool.Release(block);
    absl::StatusOr<mge_reservation> large = pool.Acquire(30 * kMiB);
    for (const mge_reservation& block : kept) pool.Release(block);
    if (!large.ok()) return large.status();
    pool.Release(*large);
    return absl::OkStatus();
  };
  Start("3", {{"memory.limit", GetParam() + "=100MiB"}});
  const absl::Status status = script();
  EXPECT_TRUE(status.ok()) << FormatError(status);
  EXPECT_GT(device().Stats().pool.slab_releases, 0u);
  EXPECT_EQ(device().Stats().pool.in_use, 0u);
}

// Mode 4: plans of fixed and of variable shapes use the same memory, in turn.
TEST_P(PagedMemory, IsSharedByModelsWithFixedAndVariableShapes) {
  uint64_t peak[2] = {};
  std::vector<float> first, second;
  for (const char* mode : {"0", "4"}) {
    Start(mode);
    auto fixed = Make("1024"), other = Make("768"), variable = Make("N");
    for (int round = 0; round < 3; ++round) {
      const std::vector<float> a = Run(*fixed, 1024), b = Run(*variable, 900);
      Run(*other, 768);
      if (first.empty()) first = a, second = b;
      EXPECT_EQ(a, first) << mode;
      EXPECT_EQ(b, second) << mode;
    }
    peak[*mode == '4'] = device().Stats().peak_charged;
    if (*mode == '4') {
      EXPECT_EQ(device().Stats().pool.in_use, 0u);
    }
  }
  EXPECT_LT(peak[1] + 5 * kMiB, peak[0]);
}

TEST_P(PagedMemory, CannotStandBesideAPoolType) {
  for (const char* mode : {"3", "4"}) {
    const absl::Status status = Create(mode, {{"memory.pool", "naive"}}).status();
    EXPECT_EQ(ErrorId(status), errors::kBadSetting.id);
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("memory.pool cannot be set beside memory.static_policy"),
                                           HasSubstr("environment GE_USE_STATIC_MEMORY")));
    EXPECT_THAT(FormatError(Create(mode, {{"MXNET_GPU_MEM_POOL_TYPE", "Round"}}).status()),
                HasSubstr("memory.gpu_pool cannot be set beside"));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PagedMemory, testing::Values("virtual0", "cpu0"),
                         [](const auto& info) { return info.param; });

// An enqueued run keeps its memory until it has ended.
class PagedMemoryOfGpu : public PagedMemory {};

TEST_P(PagedMemoryOfGpu, BelongsToARunUntilItsEnd) {
  RunState control;
  std::vector<HostValue> out(1);
  Start("4");
  auto fixed = Make("512"), variable = Make("N");
  const std::vector<float> expected = Run(*variable, 300);
  Run(*fixed, 512);
  auto fence =
      fixed->Submit({.inputs = std::vector<HostValue>{Numbers({512, 1024})}, .outputs = out, .wait = false}, control);
  ASSERT_TRUE(fence.ok()) << FormatError(fence.status());
  EXPECT_EQ(Run(*variable, 300), expected);  // may overlap
  EXPECT_THAT(FormatError(ResultsOf(*fixed, {Numbers({512, 1024})}).status()), HasSubstr("another run uses"));
  EXPECT_GT(device().Stats().pool.in_use, 0u);
  EXPECT_TRUE((*fence)->Wait(std::chrono::seconds(10)).ok());
  Run(*fixed, 512);
  out.clear();
  fence->reset();
  EXPECT_EQ(device().Stats().pool.in_use, 0u);
}

INSTANTIATE_TEST_SUITE_P(Devices, PagedMemoryOfGpu, testing::Values("virtual0"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mge
