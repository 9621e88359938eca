// SPDX-License-Identifier: Apache-2.0
// Devices that require a larger alignment of their operands (mge_device_info.buffer_alignment).
#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

constexpr char kModel[] = R"(
input x : float32[N,33]
const w = float32[33,17]<0.5>
const b = float32[17]<1>
m = MatMul(x, w)
s = Add(m, b)
y = Softmax(s)
output y
)";

std::shared_ptr<Session> Make(uint64_t alignment, const std::string& pool) {
  auto session = Load(NewRuntime({{"virtual.devices", "1"},
                                  {"virtual.buffer_alignment", std::to_string(alignment)},
                                  {"memory.pool", pool},
                                  {"memory.reserve", "none"}}),
                      kModel, "virtual0");
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

// Checks the places of the plan for the last run, and that the plan counts the memory for the alignment.
void CheckMemory(Session& session, uint64_t alignment) {
  std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {7, 33}}};
  auto plan = *session.PlanFor(types);
  for (const Arena& a : plan->arenas) {
    if (a.memory_class == MGE_MEMORY_DEVICE) {
      EXPECT_EQ(a.alignment, alignment);
    }
  }
  ASSERT_FALSE(plan->device_constants.empty());
  for (const auto& c : plan->device_constants) EXPECT_EQ(reinterpret_cast<uintptr_t>(c->address()) % alignment, 0u);
  for (const MemoryNeed& need : plan->needs) {
    if (need.device->name() == "virtual0") {
      EXPECT_GE(need.device->Stats().charged, need.arena + need.constants);
    }
  }
}

class Alignment : public testing::TestWithParam<std::string> {};

TEST_P(Alignment, HoldsForArenasAndConstants) {
  auto usual = Make(64, GetParam());
  auto expected = ResultsOf(*usual, {Numbers({7, 33})});
  usual.reset();  // releases its runtime, because a running backend keeps its settings
  for (uint64_t alignment : {256, 4096}) {
    auto session = Make(alignment, GetParam());
    auto got = ResultsOf(*session, {Numbers({7, 33})});
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(*got, *expected);
    CheckMemory(*session, alignment);
    session.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(Pools, Alignment, testing::Values("growing", "round", "naive", "unpooled"));

}  // namespace
}  // namespace mge
