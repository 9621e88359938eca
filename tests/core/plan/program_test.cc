// SPDX-License-Identifier: Apache-2.0
#include "core/plan/program.h"

#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "gtest/gtest.h"
#include "tests/support/plan_context.h"

namespace mge {
namespace {

// Returns a context whose pool starts a thread per call, the last one first.
PlanContext WithThreads() {
  PlanServices services;
  services.parallel_for = [](uint32_t, uint64_t count, const std::function<void(uint64_t)>& body) {
    std::vector<std::thread> threads;
    for (uint64_t i = count; i-- > 0;) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& t : threads) t.join();
  };
  return ContextWith({}, std::move(services));
}

TEST(ForEachOnPool, CallsEachBodyOnce) {
  for (uint64_t count : {0, 1, 3, 4, 40}) {
    std::vector<std::atomic<int>> calls(count);
    const absl::Status status = ForEachOnPool(WithThreads(), count, [&](uint64_t i) {
      ++calls[i];
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok());
    for (const auto& n : calls) EXPECT_EQ(n, 1);
  }
}

TEST(ForEachOnPool, ReturnsTheErrorOfTheFirstBodyWhateverTheOrderOfThreads) {
  auto body = [](uint64_t i) {
    return i == 3 || i == 7 ? absl::InternalError("body " + std::to_string(i)) : absl::OkStatus();
  };
  EXPECT_EQ(ForEachOnPool(WithThreads(), 9, body).message(), "body 3");
  EXPECT_EQ(ForEachOnPool(ContextWith(), 9, body).message(), "body 3");
}

TEST(ForEachOnPool, ConvertsExceptions) {
  auto body = [](uint64_t i) {
    if (i == 5) throw std::bad_alloc();
    return absl::OkStatus();
  };
  EXPECT_EQ(ErrorId(ForEachOnPool(WithThreads(), 9, body)), errors::kOutOfMemory.id);
}

}  // namespace
}  // namespace mge
