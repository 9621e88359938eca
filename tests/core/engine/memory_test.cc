// SPDX-License-Identifier: Apache-2.0
// Memory limits, and devices without free memory.
#include <regex>

#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A model with two buffers that are alive together, and an output.
constexpr char kModel[] = R"(
input x : float32[N,100]
const w = float32[1,100]<2>
a = Relu(x)
b = Neg(a)
c = Sub(a, b)
y = Mul(c, w)
output y
)";

HostValue Batch(int64_t n) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {n, 100});
  float x = -3;
  for (float& f : v.tensor.MutableData<float>()) f = x += 0.25f;
  return v;
}

absl::Status RunBatch(Session& session, int64_t n, std::vector<float>* result = nullptr) {
  std::vector<HostValue> in = {Batch(n)}, out(1);
  RunState control;
  MGE_RETURN_IF_ERROR(session.Run(in, out, control));
  auto data = out[0].tensor.Data<float>();
  if (result) result->assign(data.begin(), data.end());
  return absl::OkStatus();
}

Assignment Limit(uint64_t bytes) { return Set("memory.limit", "tuner0=" + std::to_string(bytes)); }

uint64_t NumberAfter(const std::string& text, const std::string& words) {
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex(words + "([0-9]+)"))) << text;
  return match.empty() ? 0 : std::stoull(match[1]);
}

TEST(MemoryLimit, TheSmallestLimitOfTheErrorFitsAndOneByteLessDoesNot) {
  for (const char* pool : {"naive", "round", "unpooled", "growing"}) {
    auto session = [&](uint64_t limit) {
      Host host({Limit(limit), Set("memory.pool", pool)});
      host.record() = {};
      auto made = host.Make(kModel);
      EXPECT_TRUE(made.ok()) << FormatError(made.status());
      return *made;
    };
    absl::Status status = RunBatch(*session(1000), 64);
    EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
    uint64_t least = NumberAfter(PartsOf(status).fix, "tuner0=");
    EXPECT_GE(least, 64u * 100 * 4 * 2);  // one buffer that is reused in place, and the output
    EXPECT_TRUE(RunBatch(*session(least), 64).ok()) << pool << FormatError(RunBatch(*session(least), 64));
    EXPECT_EQ(ErrorId(RunBatch(*session(least - 1), 64)), errors::kOverBudget.id) << pool;
  }
}

TEST(MemoryLimit, IsCheckedBeforeAnythingIsComputed) {
  Host host({Limit(40000)});
  host.record() = {};
  auto session = *host.Make(kModel);
  absl::Status status = RunBatch(*session, 64);
  EXPECT_EQ(host.record().launches, 0);
  EXPECT_EQ(KindOf(status), ErrorKind::kMemory);
  EXPECT_THAT(FormatError(status), AllOf(HasSubstr("does not fit into the memory limit of device tuner0"),
                                         HasSubstr("the planned peak is "), HasSubstr("the largest are "),
                                         HasSubstr("(25600 bytes)"), HasSubstr("the smallest limit that fits is tuner0=")));
  // Afterwards the same session must run a batch that fits.
  EXPECT_TRUE(RunBatch(*session, 2).ok());
}

TEST(MemoryLimit, DefaultsToTheMemoryOfTheDevice) {
  Host host;
  host.record() = {};
  auto session = *host.Make(kModel);
  absl::Status status = RunBatch(*session, 2'000'000);  // 800 MB for each buffer; the device has 2^30 bytes
  EXPECT_EQ(host.record().launches, 0);
  EXPECT_THAT(FormatError(status), AllOf(HasSubstr("E0602"), HasSubstr("does not fit into the memory of device tuner0"),
                                         HasSubstr("it has 1073741824"), HasSubstr("or a smaller batch or model"),
                                         Not(HasSubstr("smallest limit"))));
  EXPECT_TRUE(RunBatch(*session, 2).ok());
}

TEST(MemoryLimit, ATensorLargerThanAnyMemoryIsNamedInTheError) {
  Host host({Limit(uint64_t{1} << 62)});
  host.record() = {};
  auto session = *host.Make(R"(
input x : float32[1]
const s = int64[1]<1152921504606846976>
a = Expand(x, s)
b = Neg(a)
c = Sub(a, b)
y = ReduceSum(c)
output y
)");
  InputType x = {.dtype = DType::kF32, .shape = {1}};
  absl::Status status = session->PlanFor(std::span(&x, 1)).status();
  EXPECT_EQ(host.record().launches, 0);
  EXPECT_THAT(FormatError(status),
              AllOf(HasSubstr("E0602"), HasSubstr("larger than any memory"), HasSubstr("takes 4611686018427387904 bytes")));
}

TEST(MemoryLimit, MemoryThatAStepNeedsBesideThePlanGivesTheSameError) {
  constexpr char kDynamic[] = "input x : float32[N,100]\na = Relu(x)\nb = Neg(a)\nn = NonZero(b)\noutput n\n";
  uint64_t limit = 52000, refused = 0;
  for (absl::Status status = absl::UnknownError(""); !status.ok() && refused < 10;) {
    Host host({Limit(limit)});
    auto session = host.Make(kDynamic);
    ASSERT_TRUE(session.ok());
    std::vector<HostValue> in = {Batch(64)}, out(1);
    RunState control;
    status = (*session)->Run(in, out, control);
    if (status.ok()) break;
    EXPECT_THAT(
        FormatError(status),
        AllOf(HasSubstr("a run of the model does not fit into the memory limit of device tuner0 beside what is in use"),
              HasSubstr("a step whose memory is not planned"), HasSubstr("the planned peak is "),
              HasSubstr("the largest are ")));
    const uint64_t named = NumberAfter(PartsOf(status).fix, "tuner0=");
    ASSERT_GT(named, limit);
    limit = named;
    ++refused;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, 10u);
}

TEST(MemoryLimit, AReserveOfAllMemoryIsReducedForMemoryNeededBesideThePool) {
  Host host({Limit(200000), Set("memory.reserve", "bytes:200000"), Set("memory.pool", "growing")});
  auto session = *host.Make(kModel);
  absl::Status status = RunBatch(*session, 64);
  EXPECT_TRUE(status.ok()) << FormatError(status);
}

TEST(MemoryLimit, OfTheErrorFitsIfConstantsWereNotFoldedForLackOfMemory) {
  const char* models[] = {
      "input x : float32[N,100]\nconst w = float32[100,1]<2>\nt = Transpose(w) {perm=[1,0]}\nconst r = int64[2]<64, 1>\nm = "
      "Tile(t, r)\n"
      "e = Exp(m)\na = Mul(x, e)\ny = Neg(a)\noutput y\n",
      "input x : float32[N,100]\nconst w = float32[100]<2>\na = Cast(w) {to=11}\nb = Neg(a)\nc = Cast(b) {to=1}\n"
      "d = Exp(c)\ny = Add(x, d)\noutput y\n",
  };
  int named = 0, denied = 0;
  for (const char* model : models) {
    for (uint64_t limit = 1000; limit < 250000; limit += limit / 4) {
      auto run = [&](uint64_t bytes) {
        Host host({Limit(bytes)});
        host.record() = {};
        auto session = host.Make(model);
        return session.ok() ? RunBatch(**session, 64) : session.status();
      };
      absl::Status status = run(limit);
      if (status.ok()) continue;
      ASSERT_EQ(ErrorId(status), errors::kOverBudget.id) << FormatError(status);
      const std::string fix = PartsOf(status).fix;
      denied += fix.find("could not be computed") != std::string::npos;
      ++named;
      absl::Status again = run(NumberAfter(fix, "tuner0="));
      EXPECT_TRUE(again.ok()) << limit << "\n" << FormatError(status) << FormatError(again);
    }
  }
  EXPECT_GT(named, 10);
  EXPECT_GT(denied, 3);
}

// ---------------------------------------------------------------- a device without memory

// Lets the n-th slab fail, for every n until a run needs fewer. Returns the number of runs that failed.
int64_t FailEverySlab(const std::string& pool, const std::string& strategy) {
  std::vector<Assignment> settings = {Set("memory.pool", pool), Set("select.strategy", strategy)};
  std::vector<float> expected;
  {
    Host host(settings);
    host.record() = {};
    EXPECT_TRUE(RunBatch(**host.Make(kModel), 16, &expected).ok());
  }
  int64_t failures = 0;
  for (int64_t n = 1; n < 1000; ++n) {
    Host host(settings);
    host.record() = {};
    auto session = *host.Make(kModel);
    host.record().fail_slab = n;
    std::vector<float> got;
    absl::Status status = RunBatch(*session, 16, &got);
    const bool reached = host.record().fail_slab == 0;
    if (!status.ok()) {
      EXPECT_EQ(ErrorId(status), errors::kOutOfMemory.id) << FormatError(status);
      EXPECT_THAT(FormatError(status), HasSubstr("tuner0"));
      ++failures;
      EXPECT_TRUE(RunBatch(*session, 16, &got).ok());
    }
    EXPECT_EQ(got, expected) << pool << " " << n;
    session.reset();
    for (const auto& device : host.runtime->devices().all()) device->Trim(MGE_TRIM_ALL);
    EXPECT_EQ(host.record().held, 0u);
    if (!reached) return failures;
  }
  ADD_FAILURE() << "it never ends";
  return failures;
}

TEST(DeviceOutOfMemory, EveryFailingSlabIsATypedErrorAndTheSessionStillWorks) {
  for (const char* pool : {"naive", "round", "unpooled"}) EXPECT_GT(FailEverySlab(pool, "heuristic"), 0) << pool;
  EXPECT_EQ(FailEverySlab("growing", "heuristic"), 0);  // this pool retries with a smaller slab
}

TEST(DeviceOutOfMemory, IsATypedErrorUntilTheDeviceHasMemoryAgain) {
  for (const char* pool : {"naive", "round", "unpooled", "growing"}) {
    Host host({Set("memory.pool", pool)});
    host.record() = {};
    auto session = *host.Make(kModel);
    host.record().fail_slab = kFailAlways;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ErrorId(RunBatch(*session, 16)), errors::kOutOfMemory.id);
    host.record().fail_slab = 0;
    EXPECT_TRUE(RunBatch(*session, 16).ok());
  }
}

TEST(DeviceOutOfMemory, WhileTimingAKernelIsNotAnError) {
  for (const char* pool : {"naive", "unpooled"}) FailEverySlab(pool, "profile");
}

}  // namespace
}  // namespace mge
