// SPDX-License-Identifier: Apache-2.0
// plan.host_compute in eager mode: the host computes what is small and known there.
#include "tests/core/eager/eager.h"

namespace mge {
namespace {

using testing::ElementsAre;

// A device that fails in its first kernel.
Eager WithoutKernels(const char* host_compute) {
  return Eager("virtual0", {{"plan.host_compute", host_compute}, {"virtual.fault", "0:kernel@1=fail"}});
}

TEST(EagerHostCompute, OfSmallTensorsLaunchesNoKernel) {
  const Eager eager = WithoutKernels("1");
  const EagerTensorPtr sum = eager.Apply("Add", {eager.Put({2}, {1, 2}), eager.Put({2}, {3, 4})});
  EXPECT_THAT(eager.Get(eager.Apply("Mul", {sum, sum})), ElementsAre(16, 36));
}

TEST(EagerHostCompute, IsOffByDefault) {
  const Eager eager = WithoutKernels("0");
  const EagerTensorPtr sum = eager.Apply("Add", {eager.Put({2}, {1, 2}), eager.Put({2}, {3, 4})});
  EXPECT_FALSE(eager->Get(*sum).ok());
}

TEST(EagerHostCompute, LeavesResultsAboveTheLimitToTheDevice) {
  const Eager eager = WithoutKernels("1");
  const EagerTensorPtr outer = eager.Apply("Add", {eager.Put({4, 1}, {1, 2, 3, 4}), eager.Put({1, 2}, {3, 4})});
  EXPECT_FALSE(eager->Get(*outer).ok());
}

TEST(EagerHostCompute, LeavesOperatorsThatAreNotElementwiseToTheDevice) {
  const Eager eager = WithoutKernels("1");
  const EagerTensorPtr product = eager.Apply("MatMul", {eager.Put({1, 2}, {1, 2}), eager.Put({2, 1}, {3, 4})});
  EXPECT_FALSE(eager->Get(*product).ok());
}

TEST(EagerHostCompute, GivesItsResultsToKernels) {
  const Eager eager("virtual0", {{"plan.host_compute", "1"}});
  const EagerTensorPtr sum = eager.Apply("Add", {eager.Put({1, 2}, {1, 2}), eager.Put({1, 2}, {3, 4})});
  const EagerTensorPtr product = eager.Apply("MatMul", {sum, eager.Put({2, 1}, {1, 10})});
  EXPECT_THAT(eager.Get(product), ElementsAre(64));
  EXPECT_THAT(eager.Get(eager.Apply("Neg", {sum})), ElementsAre(-4, -6));
  EXPECT_EQ(eager->counters().swaps_in, 0);
}

}  // namespace
}  // namespace mge
