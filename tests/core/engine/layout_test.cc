// SPDX-License-Identifier: Apache-2.0
// Layouts are chosen for the whole graph, by the sum of the backend's estimates for kernels and reorders.
#include "fmt/format.h"
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kFourMegabytes = 1 << 20;  // elements; the estimate of a reorder of so many is about 1050 us

// Returns a chain of Neg nodes. Each is estimated at 100 us, or 1 us in the sealed layout.
std::string ChainOfNegs(int length) {
  std::string text = "input x : float32[?]\n";
  for (int i = 0; i < length; ++i) {
    const std::string from = i == 0 ? "x" : fmt::format("t{}", i - 1), to = i + 1 == length ? "y" : fmt::format("t{}", i);
    text += fmt::format("{} = Neg({})\n", to, from);
  }
  return text + "output y\n";
}

std::vector<std::string> KernelsOf(const std::string& device, const std::string& model, int64_t elements) {
  Host host({}, device);
  auto plan = host.PlanOf(model, elements);
  EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
  return plan.ok() ? Kernels(**plan) : std::vector<std::string>();
}

TEST(Layouts, AreUsedIfTheirKernelsTogetherSaveMoreThanTheReordersCost) {
  std::vector<std::string> sealed(30, "sealed");
  sealed.insert(sealed.begin(), "sealed_by_cost.reorder");
  sealed.push_back("sealed_by_cost.reorder");
  EXPECT_EQ(KernelsOf("sealed_by_cost0", ChainOfNegs(30), kFourMegabytes), sealed);
  EXPECT_THAT(KernelsOf("sealed_by_cost0", ChainOfNegs(20), kFourMegabytes), Each("plain"));
}

TEST(Layouts, ThePlanExplainsAChoiceMadeTogetherWithNeighbours) {
  Host host({}, "sealed_by_cost0");
  auto plan = host.PlanOf(ChainOfNegs(30), kFourMegabytes);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT((*plan)->units[15].reason,
              HasSubstr("chosen together with its neighbours: 30 groups can use layout opaque(7)"));
}

TEST(Layouts, UseTheBackendsEstimateForReorders) {
  const std::string one = ChainOfNegs(1);
  EXPECT_THAT(KernelsOf("sealed_by_cost0", one, 64),
              ElementsAre("sealed_by_cost.reorder", "sealed", "sealed_by_cost.reorder"));
  EXPECT_THAT(KernelsOf("sealed_dear0", one, 64), ElementsAre("plain"));
  EXPECT_THAT(KernelsOf("sealed_dear0", ChainOfNegs(2), 64),
              ElementsAre("sealed_dear.reorder", "sealed", "sealed", "sealed_dear.reorder"));
}

TEST(Layouts, TensorsGoFromOneBackendToAnotherInThePlainLayout) {
  Host host({}, "sealed_by_cost0,sealed_dear0");
  auto plan = host.PlanOf(
      "input x : float32[?]\na = Neg(x) on \"sealed_by_cost0\"\nb = Neg(a) on \"sealed_dear0\"\n"
      "y = Neg(b) on \"sealed_dear0\"\noutput y\n");
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(Kernels(**plan), ElementsAre("sealed_by_cost.reorder", "sealed", "sealed_by_cost.reorder",
                                           "sealed_dear.reorder", "sealed", "sealed", "sealed_dear.reorder"));
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {64});
  for (size_t i = 0; float& x : in[0].tensor.MutableData<float>()) x = static_cast<float>(++i);
  RunState control;
  ASSERT_TRUE(host.session->Run(in, out, control).ok());
  EXPECT_EQ(out[0].tensor.Data<float>()[63], -64.0f);
}

}  // namespace
}  // namespace mge
