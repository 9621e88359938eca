// SPDX-License-Identifier: Apache-2.0
// Memory limits of a device with separate memory: the smallest limit that an error names suffices, and one byte less does
// not.
#include <regex>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

// A model with large and small constants of odd sizes, one of them computed from another.
constexpr char kModel[] = R"(
input x : float32[N,131]
const w = float32[131,177]<0.5>
const v = float32[177,129]<0.25>
const b = float32[177]<1>
const c = float32[129]<2>
m = MatMul(x, w)
s = Add(m, b)
r = Relu(s)
n = MatMul(r, v)
d = Neg(c)
y = Add(n, d)
output y
)";

std::shared_ptr<Session> Limited(const std::string& limit, const std::string& pool) {
  auto session =
      Load(NewRuntime({{"virtual.devices", "1"}, {"memory.limit", limit}, {"memory.pool", pool}}), kModel, "virtual0");
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

absl::Status RunBatch(Session& session, int64_t batch) { return ResultsOf(session, {Numbers({batch, 131})}).status(); }

uint64_t NamedLimit(const absl::Status& status, const std::string& device) {
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id) << FormatError(status);
  const std::string fix = PartsOf(status).fix;
  std::smatch match;
  EXPECT_TRUE(std::regex_search(fix, match, std::regex("the smallest limit that fits is " + device + "=([0-9]+)"))) << fix;
  return match.empty() ? 0 : std::stoull(match[1]);
}

class DeviceMemoryLimit : public testing::TestWithParam<std::string> {};

TEST_P(DeviceMemoryLimit, NamedAsTheSmallestFitsAndOneByteLessDoesNot) {
  auto limited = [&](uint64_t bytes) { return Limited("virtual0=" + std::to_string(bytes), GetParam()); };
  const uint64_t least = NamedLimit(RunBatch(*limited(1000), 7), "virtual0");
  EXPECT_GT(least, 131u * 177 * 4 + 177u * 129 * 4);
  absl::Status fits = RunBatch(*limited(least), 7);
  EXPECT_TRUE(fits.ok()) << FormatError(fits);
  EXPECT_EQ(NamedLimit(RunBatch(*limited(least - 1), 7), "virtual0"), least);
}

TEST_P(DeviceMemoryLimit, NamedForTheHostFitsToo) {
  auto limited = [&](uint64_t bytes) { return Limited("host=" + std::to_string(bytes), GetParam()); };
  const uint64_t least = NamedLimit(RunBatch(*limited(2000), 7), "host");
  absl::Status fits = RunBatch(*limited(least), 7);
  EXPECT_TRUE(fits.ok()) << FormatError(fits);
}

TEST_P(DeviceMemoryLimit, CountsMemorySharedByPlansOnce) {
  const std::shared_ptr<Session> free = Limited("", GetParam());
  ASSERT_TRUE(RunBatch(*free, 7).ok());
  ASSERT_TRUE(RunBatch(*free, 5).ok());
  const auto session = Limited("virtual0=" + std::to_string(free->device().Stats().peak_charged), GetParam());
  ASSERT_TRUE(RunBatch(*session, 7).ok());
  absl::Status second = RunBatch(*session, 5);
  EXPECT_TRUE(second.ok()) << FormatError(second);
}

INSTANTIATE_TEST_SUITE_P(Pools, DeviceMemoryLimit, testing::Values("naive", "round", "unpooled", "growing"),
                         [](const auto& info) { return info.param; });

TEST(GrowingPool, OfASessionHoldsAtMostOneMebibyteMoreThanItsConstantsAndArena) {
  // 12 MiB of weights in six constants: steps that double would hold 15 MiB.
  std::string text = "input x : float32[1,724]\n", last = "x";
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i);
    text += "const w" + n + " = float32[724,724]<0.00" + n + "1>\nm" + n + " = MatMul(" + last + ", w" + n + ")\n";
    last = "m" + n;
  }
  for (const char* limit : {"", "virtual0=512MiB"}) {
    auto runtime = NewRuntime({{"virtual.devices", "1"}, {"memory.pool", "growing"}, {"memory.limit", limit}});
    auto session = Load(runtime, text + "output " + last + "\n", "virtual0");
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    absl::Status run = ResultsOf(**session, {Numbers({1, 724})}).status();
    ASSERT_TRUE(run.ok()) << FormatError(run);
    const mge_pool_stats pool = (*session)->device().Stats().pool;
    EXPECT_GE(pool.peak_in_use, uint64_t{6} * 724 * 724 * 4);
    EXPECT_LE(pool.committed, pool.peak_in_use + (1 << 20)) << limit;
  }
}

TEST(DeviceMemoryLimitBesideOthers, IsNamedEvenIfOnlyTheConstantsDoNotFit) {
  // The pool takes whole granules, which is more than two plans need. With some limits this is detected when the second
  // plan is checked, with others only when its constants are allocated.
  constexpr char kLarge[] = "input x : float32[N,512]\nconst w = float32[512,787]<0.5>\ny = MatMul(x, w)\noutput y\n";
  auto run = [&](uint64_t limit) {
    auto runtime = NewRuntime({{"virtual.devices", "1"}, {"memory.limit", "virtual0=" + std::to_string(limit)}});
    auto first = Load(runtime, kLarge, "virtual0"), second = Load(runtime, kLarge, "virtual0");
    absl::Status status = ResultsOf(**first, {Numbers({1, 512})}).status();
    return status.ok() ? ResultsOf(**second, {Numbers({1, 512})}).status() : status;
  };
  int refused = 0, late = 0;
  for (uint64_t limit = 3200001; limit < 3300000; limit += 5001) {
    absl::Status status = run(limit);
    if (status.ok()) continue;
    ++refused;
    EXPECT_THAT(FormatError(status), testing::AllOf(testing::HasSubstr("E0602"), testing::HasSubstr("the planned peak is "),
                                                    testing::HasSubstr("the largest are ")));
    std::smatch match;
    const std::string fix = PartsOf(status).fix;
    ASSERT_TRUE(std::regex_search(fix, match, std::regex("virtual0=([0-9]+)"))) << fix;
    const uint64_t named = std::stoull(match[1]);
    EXPECT_GT(named, limit) << FormatError(status);
    if (fix.find("a limit that fits is ") == std::string::npos) continue;
    ++late;
    absl::Status again = run(named);
    EXPECT_TRUE(again.ok()) << FormatError(status) << FormatError(again);
  }
  EXPECT_GT(refused, late);
  EXPECT_GT(late, 0);
}

TEST(TimingOfKernels, StaysWithinTheMemoryLimitOfTheHost) {
  constexpr char kLarge[] = "input x : float32[N,256]\nconst w = float32[256,512]<0.5>\ny = MatMul(x, w)\noutput y\n";
  auto plan = [&](const std::string& limit) {
    auto session = *Load(NewRuntime({{"virtual.devices", "1"},
                                     {"select.strategy", "profile"},
                                     {"MGE_FASTRUN_CACHE_TYPE", "memory"},
                                     {"select.tensor_core_conversion", "1"},  // allows more than one candidate
                                     {"memory.pool", "naive"},
                                     {"memory.limit", limit}}),
                         kLarge, "virtual0");
    absl::Status status = ResultsOf(*session, {Numbers({4, 256})}).status();
    EXPECT_TRUE(status.ok()) << FormatError(status);
    EXPECT_LE(session->runtime().devices().host().Stats().peak_charged,
              session->runtime().devices().host().budget().limit());
    return status.ok() ? PlanText(*session->last_plan(), true) : std::string();
  };
  EXPECT_THAT(plan("host=256KiB"), testing::HasSubstr("the memory limit of device host would be exceeded"));
  EXPECT_THAT(plan("host=16MiB"), testing::Not(testing::HasSubstr("the memory limit of device host")));
}

// Returns a session of a convolution with groups and a product, whose weights the virtual GPU packs on its queue.
std::shared_ptr<Session> Packing(const std::shared_ptr<Runtime>& runtime, const std::string& device) {
  absl::StatusOr<Graph> graph = ParseGraphText(R"(
input x : float32[N,6,9,7]
const filter = float32[24,3,3,3]<1>
const weights = float32[200,1512]<1>
const bias = float32[200]<0.5>
c = Conv(x, filter) {group=2, pads=[1,1,1,1]}
f = Flatten(c)
y = Gemm(f, weights, bias) {transB=1}
output y
)");
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  for (ValueId v = 0; v < graph->value_count(); ++v) {
    Value& value = graph->value(v);
    if (value.name == "filter" || value.name == "weights") value.constant = Numbers(value.constant.shape(), 3).tensor;
  }
  auto session = Session::Create(runtime, {*std::move(graph), {}}, {.device = device});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return *session;
}

TEST(ConstantsOfASession, AreHeldOnceForTwoSignaturesOfInputs) {
  auto runtime = NewRuntime({{"virtual.devices", "1"}});
  auto gpu = Packing(runtime, "virtual0"), host = Packing(runtime, "host");
  std::shared_ptr<const Plan> first;
  for (int64_t batch : {2, 5}) {
    const std::vector<HostValue> in = {Numbers({batch, 6, 9, 7})};
    auto got = ResultsOf(*gpu, in), expected = ResultsOf(*host, in);
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
    EXPECT_THAT(*got, testing::Pointwise(testing::FloatNear(0.1f), *expected));
    const std::shared_ptr<const Plan> plan = gpu->last_plan();
    EXPECT_GE(plan->report.uploaded_bytes, (24 * 27 + 200 * 1512 + 200) * 4);
    EXPECT_EQ(plan->report.packed_bytes, 0);
    EXPECT_GT(plan->report.uploaded_packed_bytes, 0);
    EXPECT_LE(plan->report.uploaded_packed_bytes, plan->report.uploaded_bytes);
    if (!first) {
      first = plan;
      EXPECT_GT(plan->report.measured_constant_bytes, 0);
    } else {
      EXPECT_NE(plan, first);
      EXPECT_EQ(plan->report.measured_constant_bytes, 0);
      EXPECT_EQ(plan->report.uploaded_bytes, first->report.uploaded_bytes);
      EXPECT_EQ(plan->report.uploaded_packed_bytes, first->report.uploaded_packed_bytes);
    }
  }
}

}  // namespace
}  // namespace mge
