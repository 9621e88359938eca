// SPDX-License-Identifier: Apache-2.0
// Groups of processes, with threads in their place: messages, late and failed processes.
#include "core/engine/process_group.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "core/base/errors.h"
#include "tests/support/message_board.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kLong{20};

// Calls `body` for each rank in a thread of its own, with its group.
void ForEachRank(uint32_t ranks, const std::function<void(ProcessGroup&)>& body) {
  MessageBoard board(ranks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      auto group = ProcessGroup::Create(board.RankOf(r), "host" + std::to_string(r), kLong);
      ASSERT_TRUE(group.ok()) << FormatError(group.status());
      body(**group);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(board.left(), static_cast<int>(ranks));
}

TEST(ProcessGroup, KnowsTheHostsOfAllProcesses) {
  ForEachRank(3, [](ProcessGroup& group) {
    EXPECT_THAT(group.Name(2), AllOf(HasSubstr("rank 2 of 3"), HasSubstr("host2")));
    EXPECT_THAT(group.Name(0), HasSubstr("host0"));
  });
}

TEST(ProcessGroup, GathersTextsInTheOrderOfTheRanks) {
  ForEachRank(4, [](ProcessGroup& group) {
    const uint32_t channel = group.NewChannel();
    for (int i = 0; i < 3; ++i) {
      auto all = group.Gather(channel, std::string(group.rank(), 'x'), {"the texts", kLong});
      ASSERT_TRUE(all.ok()) << FormatError(all.status());
      EXPECT_THAT(*all, ElementsAre("", "x", "xx", "xxx"));
    }
  });
}

TEST(ProcessGroup, BroadcastsTheBytesOfOneRank) {
  ForEachRank(3, [](ProcessGroup& group) {
    std::vector<std::byte> bytes(5, std::byte(group.rank()));
    EXPECT_TRUE(group.Broadcast(group.NewChannel(), 1, bytes, {"the bytes", kLong}).ok());
    EXPECT_EQ(bytes, std::vector<std::byte>(5, std::byte(1)));
  });
}

TEST(ProcessGroup, NamesTheProcessThatIsLateAndWhatItIsLateFor) {
  ForEachRank(3, [](ProcessGroup& group) {
    const uint32_t channel = group.NewChannel();
    if (group.rank() == 1) {  // comes when the others have given up
      std::this_thread::sleep_for(std::chrono::seconds(1));
      return;
    }
    auto all = group.Gather(channel, "text", {"the dinner", std::chrono::milliseconds(200)});
    EXPECT_EQ(ErrorId(all.status()), errors::kRankFailed.id);
    EXPECT_THAT(FormatError(all.status()),
                AllOf(HasSubstr("rank 1 of 3 (host host1"), HasSubstr("has not come to the dinner within 0.2 s")));
    EXPECT_THAT(FormatError(group.Gather(channel, "text", {"the dessert", kLong}).status()), HasSubstr("the dinner"));
  });
}

TEST(ProcessGroup, EndsTheWaitsOfAllWithTheErrorOfOne) {
  const auto begin = std::chrono::steady_clock::now();
  ForEachRank(3, [](ProcessGroup& group) {
    const uint32_t channel = group.NewChannel();
    if (group.rank() == 2) return group.Fail(Fail(errors::kFileWrite, "the disk is full"));
    const absl::Status status = group.Gather(channel, "text", {"the dinner", kLong}).status();
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("rank 2 of 3 (host host2"), HasSubstr("the disk is full")));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong / 2);
}

TEST(ProcessGroup, EndsTheWaitForAProcessThatHasEnded) {
  ForEachRank(2, [](ProcessGroup& group) {
    const uint32_t channel = group.NewChannel();
    if (group.rank() == 0) return;
    EXPECT_THAT(FormatError(group.Gather(channel, "text", {"the dinner", kLong}).status()), HasSubstr("rank 0 of 2"));
  });
}

TEST(ProcessGroup, EndsAWaitThatIsStopped) {
  ForEachRank(2, [](ProcessGroup& group) {
    const uint32_t channel = group.NewChannel();
    StopControl stop;
    stop.cancel.store(kStopAsked);
    if (group.rank() == 0) return;
    EXPECT_TRUE(absl::IsCancelled(group.Gather(channel, "text", {"the dinner", kLong, &stop}).status()));
  });
}

}  // namespace
}  // namespace mge
