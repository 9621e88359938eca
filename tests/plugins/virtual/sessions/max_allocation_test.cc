// SPDX-License-Identifier: Apache-2.0
// A device whose largest allocation is smaller than its memory (mge_device_info.max_allocation): plans split arenas and
// constants.
#include <algorithm>
#include <set>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr uint64_t kMax = 96 << 10;  // large enough for each weight

constexpr char kModel[] = R"(
input x : float32[N,131]
const w = float32[131,177]<0.5>
const v = float32[177,129]<0.25>
const b = float32[177]<1>
m = MatMul(x, w)
s = Add(m, b)
r = Relu(s)
y = MatMul(r, v)
output y
)";

// `most`: 0 is no limit.
std::shared_ptr<Session> Make(uint64_t most, const std::string& device, const std::string& pool = "growing",
                              std::vector<Assignment> more = {}) {
  more.insert(more.end(), {{"virtual.devices", "1"},
                           {"virtual.max_allocation_bytes", most ? std::to_string(most) : "64TiB"},
                           {"memory.pool", pool}});
  auto session = Load(NewRuntime(std::move(more)), kModel, device);
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

std::shared_ptr<const Plan> PlanOf(Session& session, int64_t batch) {
  std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {batch, 131}}};
  auto plan = session.PlanFor(types);
  EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
  return plan.ok() ? *plan : nullptr;
}

std::vector<int64_t> ArenasOf(const Plan& plan) {
  std::vector<int64_t> bytes;
  for (const Arena& a : plan.arenas) {
    if (a.memory_class == MGE_MEMORY_DEVICE && a.bytes > 0) bytes.push_back(a.bytes);
  }
  return bytes;
}

class MaxAllocation : public testing::TestWithParam<std::string> {};

TEST_P(MaxAllocation, SplitsLargerArenas) {
  auto whole = Make(0, "virtual0", GetParam());
  ASSERT_EQ(ArenasOf(*PlanOf(*whole, 100)).size(), 1u);
  ASSERT_GT(ArenasOf(*PlanOf(*whole, 100))[0], static_cast<int64_t>(kMax));
  auto expected = ResultsOf(*whole, {Numbers({100, 131})});
  whole.reset();  // releases its runtime, because a running backend keeps its settings
  auto split = Make(kMax, "virtual0", GetParam());
  auto plan = PlanOf(*split, 100);
  ASSERT_TRUE(plan);
  EXPECT_GT(ArenasOf(*plan).size(), 1u);
  for (int64_t bytes : ArenasOf(*plan)) EXPECT_LE(bytes, static_cast<int64_t>(kMax));
  EXPECT_EQ(plan->report.reference_steps, 0);
  for (int round = 0; round < 3; ++round) {
    auto got = ResultsOf(*split, {Numbers({100, 131})});
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(*got, *expected);
  }
}

TEST_P(MaxAllocation, AppliesToReservedMemory) {
  auto session = Make(kMax, "virtual0", GetParam(), {{"memory.reserve", "bytes:1MiB"}});
  auto got = ResultsOf(*session, {Numbers({100, 131})});
  EXPECT_TRUE(got.ok()) << FormatError(got.status());
}

INSTANTIATE_TEST_SUITE_P(Pools, MaxAllocation, testing::Values("growing", "round", "naive", "unpooled"));

TEST(LargestAllocation, ALargerTensorGoesToTheNextDevice) {
  auto cpu = Make(kMax, "cpu0");
  auto expected = ResultsOf(*cpu, {Numbers({200, 131})});
  auto session = Make(kMax, "virtual0,cpu0");
  auto plan = PlanOf(*session, 200);
  ASSERT_TRUE(plan);
  std::set<std::string> devices;
  for (const Unit& u : plan->units) {
    if (u.kind == Unit::Kind::kKernel) devices.insert(u.device);
  }
  EXPECT_THAT(devices, Contains("cpu0"));
  EXPECT_THAT(PlanText(*plan, true), HasSubstr("takes 141600 bytes; the most is 98048, as its largest allocation is 98304"));
  auto got = ResultsOf(*session, {Numbers({200, 131})});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  ASSERT_EQ(got->size(), expected->size());
  for (size_t i = 0; i < got->size(); ++i) ASSERT_NEAR((*got)[i], (*expected)[i], 1e-3) << i;
}

TEST(LargestAllocation, HasAnotherErrorThanALackOfMemory) {
  auto session = Make(kMax, "virtual0", "growing", {{"select.strategy", "optimized"}});
  absl::Status status = ResultsOf(*session, {Numbers({200, 131})}).status();
  EXPECT_THAT(FormatError(status),
              AllOf(HasSubstr("operator MatMul has no kernel"), HasSubstr("its largest allocation is 98304")));
}

}  // namespace
}  // namespace mge
