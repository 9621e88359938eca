// SPDX-License-Identifier: Apache-2.0
#include "core/eager/command_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace mge {
namespace {

using std::chrono::milliseconds;

TEST(CommandQueue, BlocksTheProducerAtTheLimit) {
  CommandQueue<int> queue(3);
  std::atomic<int> pushed{0};
  std::thread producer([&] {
    for (int i = 0; i < 5; ++i) {
      queue.Push(i);
      ++pushed;
    }
  });
  while (pushed < 3) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(pushed, 3);
  queue.Push(100, /*beyond_limit=*/true);
  std::vector<int> got(6);
  for (int& x : got) ASSERT_TRUE(queue.Pop(x));
  producer.join();
  EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 100, 3, 4}));
  EXPECT_EQ(queue.most(), 4u);
}

TEST(CommandQueue, CloseEndsProducersAndTheConsumer) {
  CommandQueue<int> queue(1);
  queue.Push(1);
  std::thread producer([&] { queue.Push(2); });
  std::this_thread::sleep_for(milliseconds(10));
  queue.Close();
  producer.join();
  int x = 0;
  EXPECT_FALSE(queue.Pop(x));
  queue.Push(3);  // ignored
  EXPECT_EQ(queue.size(), 1u);
}

}  // namespace
}  // namespace mge
