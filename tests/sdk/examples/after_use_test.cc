// SPDX-License-Identifier: Apache-2.0
// The example pool for backends with queues: it returns a block to the inner pool only after the last use.
#include "sdk/examples/parts/after_use.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Fence {
  mge::Result HostWait(uint64_t value, uint64_t timeout_ns) {
    if (timeout_ns == UINT64_MAX) reached = std::max(reached, value);  // enqueued work always ends
    if (failed) return {MGE_DATA_LOSS, "the work failed"};
    return reached >= value ? mge::Result() : mge::Result(MGE_DEADLINE_EXCEEDED, "not yet");
  }
  uint64_t reached = 0;
  bool failed = false;
};

struct Inner {
  mge::Result Acquire(const mge::PoolRequest& request, mge_reservation* out) {
    if (back.size() < needs_back) return {MGE_OVER_BUDGET, "no room"};
    out->token = request.bytes;
    return {};
  }
  void Release(const mge_reservation& reservation, const mge_fence_point*) { back.push_back(reservation.token); }
  void Trim(int32_t) { ++trims; }
  std::vector<uint64_t> back;  // tokens of the blocks that were returned
  size_t needs_back = 0;
  int trims = 0;
};

class AfterUseTest : public testing::Test {
 protected:
  mge_reservation Acquire(uint64_t token) {
    mge_reservation out = {};
    EXPECT_TRUE(pool_.Acquire({token, 64, nullptr, 0, nullptr}, &out).ok());
    return out;
  }
  mge_fence_point At(uint64_t value) { return {sizeof(mge_fence_point), 0, reinterpret_cast<mge_fence*>(&fence_), value}; }

  Fence fence_;
  AfterUse<Inner, Fence> pool_;
};

TEST_F(AfterUseTest, ABlockIsReturnedWhenTheFenceOfItsLastUseIsReached) {
  const mge_reservation first = Acquire(1), second = Acquire(2);
  const mge_fence_point one = At(1), two = At(2);
  pool_.Release(second, &two);
  pool_.Release(first, &one);
  Acquire(3);
  EXPECT_THAT(pool_.back, IsEmpty());
  fence_.reached = 1;
  Acquire(4);
  EXPECT_THAT(pool_.back, ElementsAre(1));
  fence_.reached = 2;
  pool_.Trim(MGE_TRIM_ALL);
  EXPECT_THAT(pool_.back, ElementsAre(1, 2));
  EXPECT_EQ(pool_.trims, 1);
}

TEST_F(AfterUseTest, AnUnusedBlockIsReturnedAtOnce) {
  const mge_fence_point reached = {sizeof(reached), 0, nullptr, 0};
  pool_.Release(Acquire(1), nullptr);
  pool_.Release(Acquire(2), &reached);
  EXPECT_THAT(pool_.back, ElementsAre(1, 2));
}

TEST_F(AfterUseTest, AFailedFenceEndsTheUse) {
  const mge_fence_point one = At(1);
  pool_.Release(Acquire(1), &one);
  fence_.failed = true;
  Acquire(2);
  EXPECT_THAT(pool_.back, ElementsAre(1));
}

TEST_F(AfterUseTest, ARefusedRequestWaitsForBlocksInUse) {
  const mge_fence_point one = At(1);
  pool_.Release(Acquire(1), &one);
  pool_.needs_back = 1;
  Acquire(2);
  EXPECT_THAT(pool_.back, ElementsAre(1));
}

}  // namespace
