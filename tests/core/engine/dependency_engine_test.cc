// SPDX-License-Identifier: Apache-2.0
#include "core/engine/dependency_engine.h"

#include <atomic>
#include <future>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "gtest/gtest.h"
#include "tests/support/forked_child.h"

namespace mge {
namespace {

// A gate that blocks operations until it is opened.
class Gate {
 public:
  absl::Status Wait() {
    opened_.wait();
    return absl::OkStatus();
  }
  void Open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

class EveryKind : public testing::TestWithParam<EngineKind> {};
INSTANTIATE_TEST_SUITE_P(Engines, EveryKind,
                         testing::Values(EngineKind::kNaive, EngineKind::kThreaded, EngineKind::kThreadedPerDevice));

TEST_P(EveryKind, RunsWritesOfAVariableInTheOrderOfThePushes) {
  DependencyEngine engine({.kind = GetParam(), .cpu_workers = 4});
  Variable v = DependencyEngine::NewVariable();
  std::vector<int> order;
  for (int i = 0; i < 200; ++i) {
    engine.Push({.run =
                     [&order, i] {
                       order.push_back(i);  // no lock is needed: writes of one variable never overlap
                       return absl::OkStatus();
                     },
                 .writes = {v},
                 .device = "cpu0"});
  }
  EXPECT_TRUE(engine.WaitForVariable(v).ok());
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[i], i);
  EXPECT_EQ(DependencyEngine::Version(v), 200u);
}

TEST_P(EveryKind, TurnsAnExceptionOfAnOperationIntoItsError) {
  DependencyEngine engine({.kind = GetParam()});
  Variable v = DependencyEngine::NewVariable();
  bool ran = false;
  engine.Push({.run = []() -> absl::Status { throw std::bad_alloc(); }, .writes = {v}, .device = "cpu0"});
  engine.Push({.run =
                   [&ran] {
                     ran = true;
                     return absl::OkStatus();
                   },
               .reads = {v},
               .device = "cpu0"});
  EXPECT_EQ(ErrorId(engine.WaitForAll()), errors::kOutOfMemory.id);
  EXPECT_FALSE(ran);
  EXPECT_EQ(ErrorId(engine.WaitForVariable(v)), errors::kOutOfMemory.id);
  engine.Push({.run = []() -> absl::Status { throw std::runtime_error("a fault"); }, .writes = {v}, .device = "cpu0"});
  absl::Status fault = engine.WaitForVariable(v);
  EXPECT_EQ(ErrorId(fault), errors::kInternal.id);
  EXPECT_EQ(PartsOf(fault).what, "a fault");
  engine.Push({.run =
                   [&ran] {
                     ran = true;
                     return absl::OkStatus();
                   },
               .writes = {v},
               .device = "cpu0"});
  EXPECT_TRUE(engine.WaitForVariable(v).ok());
  EXPECT_TRUE(ran);
}

TEST_P(EveryKind, SeesTheLastWriteInEveryRead) {
  DependencyEngine engine({.kind = GetParam(), .cpu_workers = 4});
  Variable v = DependencyEngine::NewVariable();
  int value = 0;
  std::atomic<int> wrong{0};
  for (int i = 1; i <= 50; ++i) {
    engine.Push({.run =
                     [&value, i] {
                       value = i;
                       return absl::OkStatus();
                     },
                 .writes = {v},
                 .device = "cpu0"});
    for (int k = 0; k < 4; ++k) {
      engine.Push({.run =
                       [&value, &wrong, i] {
                         wrong += value != i;
                         return absl::OkStatus();
                       },
                   .reads = {v},
                   .device = "cpu0"});
    }
  }
  EXPECT_TRUE(engine.WaitForAll().ok());
  EXPECT_EQ(wrong, 0);
}

TEST_P(EveryKind, PassesAnErrorOnlyToOperationsThatReadTheResult) {
  DependencyEngine engine({.kind = GetParam()});
  Variable a = DependencyEngine::NewVariable(), b = DependencyEngine::NewVariable(), c = DependencyEngine::NewVariable();
  std::atomic<int> ran{0};
  engine.Push({.run = [] { return Fail(errors::kKernelFailed, "broken"); }, .writes = {a}, .device = "cpu0"});
  engine.Push({.run =
                   [&] {
                     ++ran;
                     return absl::OkStatus();
                   },
               .reads = {a},
               .writes = {b},
               .device = "cpu0"});
  engine.Push({.run =
                   [&] {
                     ++ran;
                     return absl::OkStatus();
                   },
               .writes = {c},
               .device = "cpu0"});
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(b)), "broken");
  EXPECT_TRUE(engine.WaitForVariable(b).ok()) << "an error is handed out once";
  EXPECT_TRUE(engine.WaitForVariable(c).ok());
  EXPECT_EQ(ran, 1);
}

TEST_P(EveryKind, KeepsTheErrorsOfOtherVariablesWhenOneIsReturned) {
  DependencyEngine engine({.kind = GetParam()});
  Variable a = DependencyEngine::NewVariable(), b = DependencyEngine::NewVariable(), c = DependencyEngine::NewVariable();
  auto fail = [] { return Fail(errors::kKernelFailed, "broken"); };
  engine.Push({.run = fail, .writes = {a}, .device = "cpu0"});
  engine.Push({.run = fail, .writes = {b}, .device = "cpu0"});
  engine.Push({.run = [] { return absl::OkStatus(); }, .reads = {b}, .writes = {c}, .device = "cpu0"});
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(a)), "broken");
  EXPECT_EQ(ErrorTitle(engine.WaitForAll()), "broken") << "the error of b is an error of its own";
  EXPECT_TRUE(engine.WaitForAll().ok());
  engine.Push({.run = fail, .writes = {a}, .device = "cpu0"});
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(c)), "broken") << "inherited from b";
  EXPECT_EQ(ErrorTitle(engine.WaitForAll()), "broken") << "the new error of a";
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(b)), "broken");
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(a)), "broken");
  EXPECT_TRUE(engine.WaitForAll().ok());
}

TEST_P(EveryKind, HidesNoErrorOfAnotherVariableAfterAWait) {
  DependencyEngine engine({.kind = GetParam()});
  Variable a = DependencyEngine::NewVariable(), b = DependencyEngine::NewVariable(), c = DependencyEngine::NewVariable();
  auto fail = [] { return Fail(errors::kKernelFailed, "broken"); };
  engine.Push({.run = fail, .writes = {a, b}, .device = "cpu0"});
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(a)), "broken");
  EXPECT_EQ(ErrorTitle(engine.WaitForAll()), "broken") << "nobody has seen the error of b";
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(b)), "broken");
  engine.Push({.run = fail, .writes = {a}, .device = "cpu0"});
  engine.Push({.run = [] { return absl::OkStatus(); }, .reads = {a}, .writes = {c}, .device = "cpu0"});
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(c)), "broken");
  EXPECT_EQ(ErrorTitle(engine.WaitForAll()), "broken") << "nobody has seen the error of a";
  EXPECT_EQ(ErrorTitle(engine.WaitForVariable(a)), "broken");
  EXPECT_TRUE(engine.WaitForAll().ok());
}

TEST_P(EveryKind, KeepsTheErrorsOfManyVariables) {
  DependencyEngine engine({.kind = GetParam()});
  std::vector<Variable> variables;
  for (int i = 0; i < 200; ++i) {
    variables.push_back(DependencyEngine::NewVariable());
    engine.Push(
        {.run = [] { return Fail(errors::kKernelFailed, "broken"); }, .writes = {variables.back()}, .device = "cpu0"});
  }
  for (int i = 0; i < 199; ++i) EXPECT_EQ(ErrorTitle(engine.WaitForVariable(variables[i])), "broken");
  EXPECT_EQ(ErrorTitle(engine.WaitForAll()), "broken") << "nobody has seen the error of the last variable";
  EXPECT_TRUE(engine.WaitForAll().ok());
}

TEST_P(EveryKind, LetsEarlierReadersSeeAnErrorThatAWaitClears) {
  DependencyEngine engine({.kind = GetParam(), .cpu_workers = 4});
  for (int round = 0; round < 200; ++round) {
    Variable a = DependencyEngine::NewVariable();
    std::atomic<int> ran{0};
    engine.Push({.run = [] { return Fail(errors::kKernelFailed, "broken"); }, .writes = {a}, .device = "cpu0"});
    for (int i = 0; i < 4; ++i) {
      engine.Push({.run =
                       [&] {
                         ++ran;
                         return absl::OkStatus();
                       },
                   .reads = {a},
                   .device = "cpu0"});
    }
    EXPECT_EQ(ErrorTitle(engine.WaitForVariable(a)), "broken");
    (void)engine.WaitForAll();
    EXPECT_EQ(ran, 0);
  }
}

TEST_P(EveryKind, RunsPreparedOperationsAgainAndAgain) {
  DependencyEngine engine({.kind = GetParam(), .cpu_workers = 2});
  Variable v = DependencyEngine::NewVariable();
  int value = 0;
  std::vector<PreparedOperation> operations;
  for (int i = 0; i < 3; ++i) {
    operations.emplace_back(Operation{.run =
                                          [&value, i] {
                                            value = value * 3 + i;
                                            return absl::OkStatus();
                                          },
                                      .writes = {v},
                                      .device = "cpu0"});
  }
  OperationGroup group;
  for (int round = 0; round < 1000; ++round) {
    value = 0;
    group.Begin(3);
    for (PreparedOperation& operation : operations) engine.Push(operation, group, 0, false);
    group.Wait();
    ASSERT_EQ(value, 5);
  }
  EXPECT_EQ(DependencyEngine::Version(v), 3000u);
}

TEST_P(EveryKind, TreatsAVariableThatIsReadAndWrittenAsWritten) {
  DependencyEngine engine({.kind = GetParam()});
  Variable v = DependencyEngine::NewVariable();
  engine.Push({.run = [] { return absl::OkStatus(); }, .reads = {v, v}, .writes = {v, v}, .device = "cpu0"});
  EXPECT_TRUE(engine.WaitForAll().ok());
  EXPECT_EQ(DependencyEngine::Version(v), 1u);
}

TEST(NaiveEngine, RunsInTheThreadThatPushes) {
  DependencyEngine engine({.kind = EngineKind::kNaive});
  std::thread::id id;
  engine.Push({.run = [&] {
    id = std::this_thread::get_id();
    return absl::OkStatus();
  }});
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadedEngine, RunsIndependentOperationsSideBySide) {
  DependencyEngine engine({.kind = EngineKind::kThreaded});
  Gate gate;
  std::atomic<int> started{0};
  for (int i = 0; i < 2; ++i) {
    engine.Push({.run =
                     [&] {
                       ++started;
                       return gate.Wait();
                     },
                 .writes = {DependencyEngine::NewVariable()},
                 .device = "cpu0"});
  }
  while (started != 2) std::this_thread::yield();  // with one worker this would never end; two are needed
  gate.Open();
  EXPECT_TRUE(engine.WaitForAll().ok());
}

TEST(ThreadedPerDeviceEngine, KeepsDevicesApartAndOneDeviceInOrder) {
  DependencyEngine engine({.kind = EngineKind::kThreadedPerDevice, .cpu_workers = 1});
  Gate gate;
  std::atomic<bool> second{false}, other{false};
  engine.Push({.run = [&] { return gate.Wait(); }, .device = "cpu0"});
  engine.Push({.run =
                   [&] {
                     second = true;
                     return absl::OkStatus();
                   },
               .device = "cpu0"});
  engine.Push({.run =
                   [&] {
                     other = true;
                     return absl::OkStatus();
                   },
               .device = "cpu1"});
  while (!other) std::this_thread::yield();
  EXPECT_FALSE(second);
  gate.Open();
  EXPECT_TRUE(engine.WaitForAll().ok());
  EXPECT_TRUE(second);
}

TEST(ThreadedPerDeviceEngine, RunsPrioritizedOperationsByPriority) {
  DependencyEngine engine({.kind = EngineKind::kThreadedPerDevice, .priority_workers = 1});
  Gate gate;
  std::atomic<bool> blocked{false};
  std::vector<int> order;
  engine.Push({.run =
                   [&] {
                     blocked = true;
                     return gate.Wait();
                   },
               .prioritized = true});
  while (!blocked) std::this_thread::yield();
  for (int priority : {-1, 5, 0}) {
    engine.Push({.run =
                     [&order, priority] {
                       order.push_back(priority);
                       return absl::OkStatus();
                     },
                 .priority = priority,
                 .prioritized = true});
  }
  gate.Open();
  EXPECT_TRUE(engine.WaitForAll().ok());
  EXPECT_EQ(order, (std::vector<int>{5, 0, -1}));
}

TEST(Fork, WaitsForOperationsAndLeavesTheChildAnEngineThatWorks) {
  for (EngineKind kind : {EngineKind::kNaive, EngineKind::kThreaded, EngineKind::kThreadedPerDevice}) {
    DependencyEngine engine({.kind = kind});
    Variable v = DependencyEngine::NewVariable();
    std::atomic<bool> done{false};
    engine.Push({.run =
                     [&] {
                       std::this_thread::sleep_for(std::chrono::milliseconds(20));
                       done = true;
                       return absl::OkStatus();
                     },
                 .writes = {v},
                 .device = "cpu0"});
    auto works = [&] {
      if (!done) return false;  // fork waits for the operation first
      std::atomic<int> ran{0};
      for (int i = 0; i < 3; ++i) {
        engine.Push({.run =
                         [&] {
                           ++ran;
                           return absl::OkStatus();
                         },
                     .writes = {v},
                     .device = "cpu0"});
      }
      return engine.WaitForVariable(v).ok() && engine.WaitForAll().ok() && ran == 3;
    };
    EXPECT_EQ(InChild(works), 0);
    EXPECT_TRUE(works());
  }
}

TEST(Fork, GivesTheChildTheWorkersOfItsSetting) {
  auto most_at_once = [](DependencyEngine& engine) {
    std::mutex mutex;
    int now = 0, most = 0;
    for (int i = 0; i < 6; ++i) {
      engine.Push({.run =
                       [&] {
                         {
                           std::lock_guard lock(mutex);
                           most = std::max(most, ++now);
                         }
                         std::this_thread::sleep_for(std::chrono::milliseconds(50));
                         std::lock_guard lock(mutex);
                         --now;
                         return absl::OkStatus();
                       },
                   .device = "cpu0"});
    }
    EXPECT_TRUE(engine.WaitForAll().ok());
    return most;
  };
  DependencyEngine engine({.cpu_workers = 1, .fork_workers = [] { return 3; }});
  EXPECT_EQ(most_at_once(engine), 1);
  EXPECT_EQ(InChild([&] { return most_at_once(engine) == 3; }), 0);
  EXPECT_EQ(most_at_once(engine), 1);
}

TEST(ThreadedEngine, CopiesOnOneThreadBesideTheOthers) {
  DependencyEngine engine({.kind = EngineKind::kThreaded});
  Gate gate;
  for (int i = 0; i < 16; ++i) engine.Push({.run = [&] { return gate.Wait(); }});
  std::mutex mutex;
  std::set<std::thread::id> copiers;
  OperationGroup group;
  std::vector<PreparedOperation> copies;
  for (int i = 0; i < 4; ++i) {
    copies.emplace_back(Operation{.run =
                                      [&] {
                                        std::lock_guard lock(mutex);
                                        copiers.insert(std::this_thread::get_id());
                                        return absl::OkStatus();
                                      },
                                  .device = "gpu0",
                                  .work = Work::kCopy});
  }
  group.Begin(4);
  for (PreparedOperation& copy : copies) engine.Push(copy, group, 0, false);
  group.Wait();  // although all other threads are blocked
  EXPECT_EQ(copiers.size(), 1u);
  gate.Open();
  EXPECT_TRUE(engine.WaitForAll().ok());
}

TEST(Fork, IsPossibleWithinAnOperation) {
  DependencyEngine engine({.kind = EngineKind::kThreaded});
  std::atomic<int> code{-1};
  engine.Push({.run = [&] {
    code = InChild([] { return true; });
    return absl::OkStatus();
  }});
  EXPECT_TRUE(engine.WaitForAll().ok());
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace mge
