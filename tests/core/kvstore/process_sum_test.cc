// SPDX-License-Identifier: Apache-2.0
// Sums over processes, with threads in their place: equal bits in all, and the errors of processes that differ.
#include "core/kvstore/process_sum.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "core/base/errors.h"
#include "core/kvstore/training_processes.h"
#include "tests/support/message_board.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::chrono::seconds kLong{20};

// Calls `body` for each rank in a thread of its own. There are `ranks_per_host` ranks on each host.
void ForEachRank(uint32_t ranks, const std::function<void(std::shared_ptr<ProcessGroup>)>& body,
                 uint32_t ranks_per_host = 99) {
  MessageBoard board(ranks);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      auto group = ProcessGroup::Create(board.RankOf(r), "host" + std::to_string(r / ranks_per_host), kLong);
      ASSERT_TRUE(group.ok()) << FormatError(group.status());
      body(*std::move(group));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename T>
Tensor Numbers(int64_t count, uint32_t rank) {
  Tensor out = *Tensor::Create(kDTypeOf<T>, {count});
  auto all = out.MutableData<T>();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<T>(static_cast<float>(std::sin(static_cast<double>(i) * 0.7 + rank) * 1e3));
  }
  return out;
}

// Sums arrays of so many elements over processes, and compares the bytes with the sum in one process.
template <typename T>
void ExpectSumsOfOneProcess(uint32_t ranks, int64_t count) {
  const HostSum sum;
  std::vector<Tensor> arrays;
  std::vector<const void*> pointers;
  for (uint32_t r = 0; r < ranks; ++r) arrays.push_back(Numbers<T>(count, r));
  for (const Tensor& array : arrays) pointers.push_back(array.data());
  Tensor expected = *Tensor::Create(kDTypeOf<T>, {count});
  sum.Add(kDTypeOf<T>, pointers, expected.mutable_data(), count);
  ForEachRank(ranks, [&](std::shared_ptr<ProcessGroup> group) {
    ProcessSum over(group, sum);
    int64_t step = 0;
    for (const auto path : {std::optional<SumPath>(), std::optional(SumPath::kWhole), std::optional(SumPath::kParts)}) {
      Tensor array = Numbers<T>(count, group->rank());
      const ProcessStep now = {step, 8};
      const absl::Status status = over.AllReduce(array, step++ == 0 ? &now : nullptr, {"the sum", kLong}, path);
      ASSERT_TRUE(status.ok()) << FormatError(status);
      if (count > 0) {
        EXPECT_EQ(std::memcmp(array.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0);
      }
    }
  });
}

TEST(ProcessSum, GivesAllProcessesTheBitsOfOneProcess) {
  for (const uint32_t ranks : {2u, 3u, 7u}) {
    for (const int64_t count : {0, 1, 2, 6, 7, 1000, 20'000}) ExpectSumsOfOneProcess<float>(ranks, count);
  }
}

TEST(ProcessSum, AddsEachTypeOfGradients) {
  ExpectSumsOfOneProcess<double>(3, 1001);
  ExpectSumsOfOneProcess<Half>(6, 1001);
  ExpectSumsOfOneProcess<BFloat16>(6, 1001);
  ExpectSumsOfOneProcess<int32_t>(3, 1001);
  ExpectSumsOfOneProcess<int64_t>(3, 1001);
}

TEST(ProcessSum, RoundsSumsOf16BitsOnce) {
  const HostSum sum;
  const std::vector<Half> big(1, Half(2048)), one(1, Half(1));
  const void* const arrays[] = {big.data(), one.data(), one.data()};
  Half out;
  sum.Add(DType::kF16, arrays, &out, 1);
  EXPECT_EQ(static_cast<float>(out), 2050);  // 2048 + 1 rounds to 2048
}

TEST(ProcessSum, RefusesProcessesThatComputeDifferentSteps) {
  struct Case {
    ProcessStep step;
    int64_t elements;
    const char* what;
  };
  for (const Case& c :
       {Case{{4, 8}, 10, "the number of the step is"}, Case{{3, 9}, 10, "the number of examples in the batch is"},
        Case{{3, 8}, 11, "the number of elements to sum is"}}) {
    ForEachRank(2, [&](std::shared_ptr<ProcessGroup> group) {
      ProcessSum over(group, {});
      const bool first = group->rank() == 0;
      Tensor array = Numbers<float>(first ? 10 : c.elements, 0);
      const ProcessStep step = first ? ProcessStep{3, 8} : c.step;
      const absl::Status status = over.AllReduce(array, &step, {"the sum", kLong});
      EXPECT_EQ(ErrorId(status), errors::kRankFailed.id);
      EXPECT_THAT(FormatError(status), AllOf(HasSubstr(c.what), HasSubstr("rank 0 of 2"), HasSubstr("rank 1 of 2")));
    });
  }
}

TEST(ProcessSum, GathersPartsOfAnySize) {
  ForEachRank(3, [](std::shared_ptr<ProcessGroup> group) {
    ProcessSum over(group, {});
    const std::vector<int64_t> ends = {2, 2, 5};  // rank 1 has nothing
    Tensor bytes = *Tensor::Create(DType::kU8, {5});
    std::fill_n(bytes.MutableData<uint8_t>().begin(), 5, 99);
    if (group->rank() == 0) std::fill_n(bytes.MutableData<uint8_t>().begin(), 2, 1);
    if (group->rank() == 2) std::fill_n(bytes.MutableData<uint8_t>().begin() + 2, 3, 3);
    const absl::Status status = over.AllGather(bytes, ends, {"the parts", kLong});
    ASSERT_TRUE(status.ok()) << FormatError(status);
    EXPECT_THAT(bytes.Data<uint8_t>(), testing::ElementsAre(1, 1, 3, 3, 3));
  });
}

TEST(CompareFacts, NamesTheFirstFactThatDiffers) {
  ForEachRank(3, [](std::shared_ptr<ProcessGroup> group) {
    EXPECT_TRUE(CompareFacts(*group, "version: 1\nbatch: 8\n", kLong).ok());
    const absl::Status status =
        CompareFacts(*group, group->rank() == 2 ? "version: 1\nbatch: 16\n" : "version: 1\nbatch: 8\n", kLong);
    EXPECT_EQ(ErrorId(status), errors::kRankFailed.id);
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("'batch' is '8' in rank 0 of 3"), HasSubstr("'16' in rank 2 of 3")));
  });
  EXPECT_THAT(FirstDifference("a: 1\n", "x", "a: 1\nb: 2\n", "y"), HasSubstr("'b' is '' in x, and '2' in y"));
  EXPECT_EQ(FirstDifference("a: 1\n", "x", "a: 1\n", "y"), "");
}

TEST(ProcessSum, ScattersTheSameBitsToPartsOfAnySize) {
  constexpr uint32_t kRanks = 3;
  constexpr int64_t kCount = 50'021;
  const std::vector<int64_t> ends = {20'000, 20'000, kCount};  // the second process has none
  ForEachRank(kRanks, [&](std::shared_ptr<ProcessGroup> group) {
    ProcessSum over(group, HostSum());
    const ProcessStep step = {0, 8};
    Tensor whole = Numbers<float>(kCount, group->rank()), part = Numbers<float>(kCount, group->rank());
    ASSERT_TRUE(over.AllReduce(whole, &step, {"the sum", kLong}).ok());
    ASSERT_TRUE(over.ReduceScatter(part, ends, &step, {"the sum", kLong}).ok());
    const auto begin = static_cast<size_t>(group->rank() == 0 ? 0 : ends[group->rank() - 1]);
    const auto end = static_cast<size_t>(ends[group->rank()]);
    for (size_t i = begin; i < end; ++i) ASSERT_EQ(part.Data<float>()[i], whole.Data<float>()[i]) << i;
  });
}

// The processes of each host sum first, then the hosts.
TEST(ProcessSum, OverHostsAddsTheSumsOfEachHost) {
  constexpr uint32_t kRanks = 6;
  constexpr int64_t kCount = 1003;
  ForEachRank(
      kRanks,
      [&](std::shared_ptr<ProcessGroup> group) {
        ProcessSum over(group, HostSum());
        EXPECT_EQ(over.shape().hosts(), 3u);
        EXPECT_EQ(over.shape().ranks_per_host, 2u);
        Tensor array = Numbers<float>(kCount, group->rank());
        ASSERT_TRUE(over.AllReduce(array, nullptr, {"the sum", kLong}, SumPath::kHosts).ok());
        std::vector<Tensor> all;
        for (uint32_t r = 0; r < kRanks; ++r) all.push_back(Numbers<float>(kCount, r));
        auto of_host = [&](size_t host, size_t i) {
          return all[2 * host].Data<float>()[i] + all[2 * host + 1].Data<float>()[i];
        };
        for (size_t i = 0; i < static_cast<size_t>(kCount); ++i) {
          const float others = of_host(1, i) + of_host(2, i);  // HostSum adds those after the first one together
          ASSERT_EQ(array.Data<float>()[i], of_host(0, i) + others) << i;
        }
      },
      2);
}

// Three processes on two hosts: no host can wait for a partner of each process.
TEST(ProcessSum, OfUnequalHostsIsThatOfSeparateProcesses) {
  ForEachRank(
      3,
      [&](std::shared_ptr<ProcessGroup> group) {
        ProcessSum over(group, HostSum());
        EXPECT_EQ(over.shape().ranks_per_host, 1u);
        Tensor array = Numbers<float>(3'000'000, group->rank());
        ASSERT_TRUE(over.AllReduce(array, nullptr, {"the sum", kLong}).ok());
        std::vector<const void*> pointers;
        const std::vector<Tensor> all = {Numbers<float>(3'000'000, 0), Numbers<float>(3'000'000, 1),
                                         Numbers<float>(3'000'000, 2)};
        for (const Tensor& each : all) pointers.push_back(each.data());
        Tensor expected = *Tensor::Create(DType::kF32, {3'000'000});
        HostSum().Add(DType::kF32, pointers, expected.mutable_data(), expected.elements());
        EXPECT_EQ(std::memcmp(array.data(), expected.data(), static_cast<size_t>(expected.bytes())), 0);
      },
      2);
}

}  // namespace
}  // namespace mge
