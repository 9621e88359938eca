// SPDX-License-Identifier: Apache-2.0
// A group of ranks: sums, copies from rank to rank, and waits that end when the group is aborted.
#include "core/kvstore/local_group.h"

#include <gmock/gmock.h>

#include <thread>

#include "core/base/errors.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Group : public testing::Test {
 protected:
  // Calls f(rank) in a thread for each rank.
  template <typename F>
  void InAllRanks(F f) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < group_->ranks(); ++rank) threads.emplace_back([rank, &f] { f(rank); });
    for (std::thread& thread : threads) thread.join();
  }

  std::shared_ptr<LocalGroup> group_ = std::make_shared<LocalGroup>(3);
};

TEST_F(Group, SumsTheArraysOfAllRanksAgainAndAgain) {
  std::vector<float> results[3];
  InAllRanks([&](uint32_t rank) {
    for (int round = 0; round < 50; ++round) {
      const float a[] = {static_cast<float>(rank + 1), static_cast<float>(round)};
      const double b = 10.0 * rank;
      auto sums = group_->Sum(rank, {{a, DType::kF32, 2}, {&b, DType::kF64, 1}});
      ASSERT_TRUE(sums.ok()) << FormatError(sums.status());
      ASSERT_EQ((*sums)[0].Data<float>()[1], static_cast<float>(3 * round));
      ASSERT_EQ((*sums)[1].Data<double>()[0], 30);
      results[rank].assign((*sums)[0].Data<float>().begin(), (*sums)[0].Data<float>().end());
    }
  });
  for (const auto& result : results) EXPECT_THAT(result, ElementsAre(6, 147));
}

TEST_F(Group, RefusesArraysThatDiffer) {
  InAllRanks([&](uint32_t rank) {
    const float a[] = {1, 2};
    EXPECT_THAT(FormatError(group_->Sum(rank, {{a, DType::kF32, rank == 1 ? 1 : 2}}).status()),
                HasSubstr("differ between replicas"));
  });
}

TEST_F(Group, RefusesTypesThatItCannotSum) {
  InAllRanks([&](uint32_t rank) {
    const bool a = true;
    EXPECT_THAT(FormatError(group_->Sum(rank, {{&a, DType::kBool, 1}}).status()), HasSubstr("cannot sum arrays of bool"));
  });
}

// Rank r sends r + 1 to the next rank, under two keys.
TEST_F(Group, CopiesFromRankToRank) {
  InAllRanks([&](uint32_t rank) {
    for (int round = 0; round < 50; ++round) {
      const float mine = static_cast<float>(rank + 1) + static_cast<float>(round);
      const uint32_t next = (rank + 1) % 3, before = (rank + 2) % 3;
      for (int64_t key : {7, 8}) group_->Submit({rank, next, key}, {.data = &mine, .bytes = sizeof(mine)});
      for (int64_t key : {8, 7}) {
        auto buffer = group_->WaitForBuffer({before, rank, key});
        ASSERT_TRUE(buffer.ok()) << FormatError(buffer.status());
        EXPECT_EQ(*static_cast<const float*>(buffer->data), static_cast<float>(before + 1) + static_cast<float>(round));
        group_->Release({before, rank, key}, {});
      }
      for (int64_t key : {7, 8}) EXPECT_EQ(group_->WaitForRelease({rank, next, key}).fence, nullptr);
    }
  });
}

TEST_F(Group, EndsAllWaitsWhenItIsAborted) {
  InAllRanks([&](uint32_t rank) {
    const float a = 1;
    absl::Status status;
    if (rank == 0) status = group_->Sum(rank, {{&a, DType::kF32, 1}}).status();  // the others never come
    if (rank == 1) status = group_->WaitForBuffer({2, 1, 0}).status();
    if (rank == 2) {
      group_->Submit({2, 0, 1}, {.data = &a, .bytes = sizeof(a)});
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      group_->Abort();
      group_->WaitForRelease({2, 0, 1});
      status = group_->stop().CheckStop();
    }
    EXPECT_EQ(ErrorId(status), errors::kCancelled.id) << rank;
  });
  EXPECT_EQ(ErrorId(group_->Sum(0, {}).status()), errors::kCancelled.id);  // also later ones
}

// The memory that is being copied must not be released.
TEST_F(Group, WaitsForTheEndOfACopyAlsoWhenItIsAborted) {
  const float a = 1;
  group_->Submit({0, 1, 0}, {.data = &a, .bytes = sizeof(a)});
  ASSERT_TRUE(group_->WaitForBuffer({0, 1, 0}).ok());
  group_->Abort();
  bool released = false;
  std::thread copies([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    released = true;
    group_->Release({0, 1, 0}, {});
  });
  group_->WaitForRelease({0, 1, 0});
  EXPECT_TRUE(released);
  copies.join();
}

}  // namespace
}  // namespace mge
