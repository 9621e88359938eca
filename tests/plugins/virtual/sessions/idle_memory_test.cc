// SPDX-License-Identifier: Apache-2.0
// Memory limits: memory that sessions keep for later runs must be released before a run is refused. Memory of concurrent
// runs counts. Tested on devices with and without separate memory.
#include <atomic>
#include <regex>
#include <thread>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A model with buffers that are alive together, and without constants.
constexpr char kModel[] = R"(
input x : float32[N,160]
a = Relu(x)
b = Neg(a)
c = Exp(b)
d = Sub(a, c)
e = Mul(b, d)
y = ReduceSum(e) {keepdims=1}
output y
)";

// A model with constants that plans do not share: small ones, and one that is packed for a shape.
constexpr char kConstants[] = R"(
input x : float32[N,160]
const w = float32[160,96]<0.5>
const b = float32[96]<1>
m = MatMul(x, w)
s = Add(m, b)
y = Exp(s)
output y
)";

struct Place {
  std::string device, pool;
};

// A model on a device with a memory limit.
class LimitedMemory : public testing::TestWithParam<Place> {
 protected:
  std::shared_ptr<Runtime> Limited(uint64_t bytes) {
    return NewRuntime({{"virtual.devices", "1"},
                       {"memory.limit", GetParam().device + "=" + std::to_string(bytes)},
                       {"memory.pool", GetParam().pool},
                       {"threads", "1"}});
  }
  std::shared_ptr<Session> SessionIn(std::shared_ptr<Runtime> runtime, std::string_view model = kModel) {
    auto session = Load(std::move(runtime), model, GetParam().device);
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return session.ok() ? *session : nullptr;
  }
  static absl::Status RunBatch(Session& session, int64_t batch) {
    return ResultsOf(session, {Numbers({batch, 160})}).status();
  }
  // Returns the number that follows `words` in the fix of an out-of-budget error.
  static uint64_t Named(const absl::Status& status, const std::string& words) {
    EXPECT_EQ(ErrorId(status), errors::kOverBudget.id) << FormatError(status);
    const std::string fix = PartsOf(status).fix;
    std::smatch match;
    EXPECT_TRUE(std::regex_search(fix, match, std::regex(words + "([0-9]+)"))) << fix;
    return match.empty() ? 0 : std::stoull(match[1]);
  }
  uint64_t NamedLimit(const absl::Status& status) {
    return Named(status, "the smallest limit that fits is " + GetParam().device + "=");
  }
  uint64_t LeastFor(int64_t batch, std::string_view model = kModel) {
    return NamedLimit(RunBatch(*SessionIn(Limited(1000), model), batch));
  }
};

class IdleMemory : public LimitedMemory {};

TEST_P(IdleMemory, OfOneShapeIsReleasedForAnotherWithinTheLargerOfTheirLimits) {
  const std::shared_ptr<Session> session = SessionIn(Limited(std::max(LeastFor(256), LeastFor(250))));
  for (int64_t batch : {256, 250, 256, 251, 250, 256}) {
    absl::Status status = RunBatch(*session, batch);
    EXPECT_TRUE(status.ok()) << batch << "\n" << FormatError(status);
  }
}

TEST_P(IdleMemory, OfOneSessionIsReleasedForAnother) {
  const std::shared_ptr<Runtime> runtime = Limited(std::max(LeastFor(256), LeastFor(250)));
  const std::shared_ptr<Session> one = SessionIn(runtime), other = SessionIn(runtime);
  for (int round = 0; round < 3; ++round) {
    absl::Status first = RunBatch(*one, 256), second = RunBatch(*other, 250);
    EXPECT_TRUE(first.ok()) << FormatError(first);
    EXPECT_TRUE(second.ok()) << FormatError(second);
  }
}

TEST_P(IdleMemory, DoesNotCountInTheErrorOfABatchThatDoesNotFit) {
  const std::shared_ptr<Session> session = SessionIn(Limited(LeastFor(256)));
  const absl::Status fresh = RunBatch(*session, 1000);
  EXPECT_EQ(ErrorId(fresh), errors::kOverBudget.id);
  EXPECT_TRUE(RunBatch(*session, 256).ok());
  EXPECT_TRUE(RunBatch(*session, 200).ok());
  EXPECT_EQ(FormatError(RunBatch(*session, 1000)), FormatError(fresh));
  EXPECT_TRUE(RunBatch(*session, 256).ok());
}

TEST_P(IdleMemory, IsReleasedWhileManyThreadsRun) {
  constexpr int kThreads = 4, kRuns = 25;
  const std::shared_ptr<Runtime> runtime = Limited(kThreads * std::max(LeastFor(256), LeastFor(250)) - 1000);
  const std::shared_ptr<Session> sessions[] = {SessionIn(runtime), SessionIn(runtime)};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRuns; ++i) {
        const int64_t batch = 250 + (t * 5 + i * 3) % 7;
        auto got = ResultsOf(*sessions[t % 2], {Numbers({batch, 160})});
        if (got.ok()) continue;
        EXPECT_EQ(ErrorId(got.status()), errors::kOverBudget.id) << FormatError(got.status());
        ++refused;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  // A run may be refused while all threads run at the same time. If idle memory stayed in use, almost every run would be.
  EXPECT_LT(refused, kThreads * kRuns * 3 / 4);
  for (const auto& session : sessions) EXPECT_TRUE(RunBatch(*session, 256).ok());
}

TEST_P(IdleMemory, AndConstantsOfAnotherShapeAreReleasedTogether) {
  const uint64_t least = std::max(LeastFor(7, kConstants), LeastFor(5, kConstants));
  const std::shared_ptr<Session> session = SessionIn(Limited(least), kConstants);
  for (int64_t batch : {7, 5, 6, 7}) {
    absl::Status status = RunBatch(*session, batch);
    EXPECT_TRUE(status.ok()) << batch << "\n" << FormatError(status);
  }
}

// ---------------------------------------------------------------- memory in use

class MemoryInUse : public LimitedMemory {};

TEST_P(MemoryInUse, ByAnotherRunIsAnErrorThatNamesThePeakAndTheSmallestLimit) {
  auto beside_another = [&](uint64_t limit) {
    const std::shared_ptr<Session> session = SessionIn(Limited(limit));
    EXPECT_TRUE(RunBatch(*session, 256).ok());
    InstanceStore& store = InstanceStore::Of(*session->last_plan());
    auto busy = store.Acquire();  // taken as by another run
    EXPECT_TRUE(busy.ok());
    return RunBatch(*session, 256);
  };
  const absl::Status refused = beside_another(LeastFor(256));
  EXPECT_THAT(FormatError(refused), AllOf(HasSubstr("a run of the model does not fit into the memory limit of device "),
                                          HasSubstr("the planned peak is "), HasSubstr(" are in use and the limit is "),
                                          HasSubstr("the largest are '"), HasSubstr("steps ")));
  const uint64_t named = NamedLimit(refused);
  absl::Status fits = beside_another(named);
  EXPECT_TRUE(fits.ok()) << FormatError(fits);
  if (GetParam().pool == "growing") return;  // two runs share its rounded memory
  EXPECT_EQ(NamedLimit(beside_another(named - 1)), named);
}

TEST_P(MemoryInUse, ByConstantsOfAPlanInUseIsIncludedInTheNamedLimit) {
  uint64_t limit = LeastFor(7, kConstants);
  std::shared_ptr<Session> session = SessionIn(Limited(limit), kConstants);
  ASSERT_TRUE(RunBatch(*session, 7).ok());
  std::shared_ptr<const Plan> held = session->last_plan();
  const absl::Status refused = RunBatch(*session, 300);
  EXPECT_EQ(ErrorId(refused), errors::kOverBudget.id);
  EXPECT_TRUE(RunBatch(*session, 7).ok());
  EXPECT_EQ(session->last_plan(), held);
  held.reset();                              // must be released before its devices
  if (GetParam().pool == "growing") return;  // other runs cannot use the rest of its last granule
  session = SessionIn(Limited(NamedLimit(refused)), kConstants);
  ASSERT_TRUE(RunBatch(*session, 7).ok());
  held = session->last_plan();
  absl::Status fits = RunBatch(*session, 300);
  EXPECT_TRUE(fits.ok()) << FormatError(refused) << FormatError(fits);
}

std::vector<Place> Places() {
  std::vector<Place> places;
  for (const char* device : {"cpu0", "virtual0"}) {
    for (const char* pool : {"naive", "round", "unpooled", "growing"}) places.push_back({device, pool});
  }
  return places;
}

std::string NameOf(const testing::TestParamInfo<Place>& info) { return info.param.device + "_" + info.param.pool; }

INSTANTIATE_TEST_SUITE_P(Pools, IdleMemory, testing::ValuesIn(Places()), NameOf);
INSTANTIATE_TEST_SUITE_P(Pools, MemoryInUse, testing::ValuesIn(Places()), NameOf);

TEST(IdleMemoryOfTheHost, IsReleasedForATensorOfTheCaller) {
  constexpr int64_t kLimit = 4 << 20;
  for (const char* pool : {"naive", "round", "unpooled", "growing"}) {
    auto session =
        *Load(NewRuntime({{"memory.limit", "cpu0=" + std::to_string(kLimit)}, {"memory.pool", pool}}), kModel, "cpu0");
    std::vector<HostValue> in = {Numbers({256, 160})};
    ASSERT_TRUE(ResultsOf(*session, in).ok());
    auto tensor = Tensor::Create(DType::kU8, {kLimit}, session->device().host_allocator());
    EXPECT_TRUE(tensor.ok()) << pool << FormatError(tensor.status());
    EXPECT_EQ(ErrorId(ResultsOf(*session, in).status()), errors::kOverBudget.id) << pool;
    tensor = Tensor();
    EXPECT_TRUE(ResultsOf(*session, in).ok()) << pool;
  }
}

}  // namespace
}  // namespace mge
