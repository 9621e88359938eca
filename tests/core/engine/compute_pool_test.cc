// SPDX-License-Identifier: Apache-2.0
#include "core/engine/compute_pool.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace mge {
namespace {

template <typename F>
void RunOn(ComputePool& pool, uint64_t chunks, uint32_t width, F body) {
  pool.ParallelFor(
      chunks, width, [](void* context, uint64_t i) { (*static_cast<F*>(context))(i); }, &body);
}

TEST(ComputePool, RunsEveryChunkOnce) {
  ComputePool pool(3);
  for (uint64_t chunks : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> seen(chunks);
    RunOn(pool, chunks, 4, [&](uint64_t i) { ++seen[i]; });
    for (auto& n : seen) EXPECT_EQ(n, 1);
  }
}

TEST(ComputePool, HasFinishedAllChunksWhenItReturns) {
  ComputePool pool(2);
  for (int round = 0; round < 20000; ++round) {
    std::atomic<int> sum{0};
    RunOn(pool, 4, 3, [&](uint64_t i) { sum += static_cast<int>(i); });
    ASSERT_EQ(sum, 6);
  }
}

TEST(ComputePool, UsesNoMoreThreadsThanTheWidth) {
  ComputePool pool(4);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  RunOn(pool, 64, 2, [&](uint64_t) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_LE(threads.size(), 2u);
}

TEST(ComputePool, ServesManyCallersAndNestedCalls) {
  ComputePool pool(2);
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 24; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        RunOn(pool, 3, 3, [&](uint64_t) { RunOn(pool, 3, 3, [&](uint64_t) { ++total; }); });
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(total, 24 * 50 * 9);
}

TEST(ComputePool, NumbersItsWorkersFromOne) {
  ComputePool pool(2);
  EXPECT_EQ(ComputePool::ThisThread(), 0u);
  struct Seen {
    std::atomic<int> begun{0};
    std::atomic<uint32_t> numbers{0};  // one bit per number
  } seen;
  pool.ParallelFor(
      3, 3,
      [](void* context, uint64_t) {
        auto& s = *static_cast<Seen*>(context);
        s.numbers.fetch_or(1u << ComputePool::ThisThread());
        ++s.begun;
        while (s.begun < 3) std::this_thread::yield();  // so that each thread takes one chunk
      },
      &seen);
  EXPECT_EQ(seen.numbers, 7u);
}

TEST(ComputePool, GrowsForLoopsOfMoreThreads) {
  // A pool that has met contention does not share its next loop, so each loop has a new pool.
  auto run_together = [](std::initializer_list<uint32_t> reserved, int threads) {
    ComputePool pool(0);
    for (uint32_t n : reserved) pool.Reserve(n);
    std::atomic<int> begun{0};
    RunOn(pool, static_cast<uint64_t>(threads), static_cast<uint32_t>(threads), [&](uint64_t) {
      ++begun;
      while (begun < threads) std::this_thread::yield();  // returns only if each chunk has a thread
    });
    EXPECT_EQ(pool.thread_count(), 1u);
    EXPECT_EQ(pool.reserved_count(), static_cast<uint32_t>(threads));
  };
  run_together({2}, 2);
  run_together({2, 5}, 5);
  run_together({5, 3}, 5);  // it does not shrink
}

// The processors are occupied by as many busy threads, so the system suspends workers inside of chunks.
TEST(ComputePool, RunsEveryChunkOnceBesideBusyThreads) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < UsableThreads(); ++i) {
    busy.emplace_back([&] {
      while (!stop) {
      }
    });
  }
  ComputePool pool(3);
  std::atomic<uint64_t> sum{0};
  for (int round = 0; round < 300; ++round) {
    RunOn(pool, 8, 4, [&](uint64_t i) {
      volatile int n = 0;
      while (n < 20000) {
        n = n + 1;
      }
      sum += i;
    });
  }
  stop = true;
  for (std::thread& t : busy) t.join();
  EXPECT_EQ(sum, 300u * 28);
}

TEST(ComputePool, IsSharedInTheProcessWhileItHasAnOwner) {
  auto a = ComputePool::Shared(), b = ComputePool::Shared();
  EXPECT_EQ(a, b);
  EXPECT_EQ(a->thread_count(), static_cast<uint32_t>(UsableThreads()));
}

}  // namespace
}  // namespace mge
