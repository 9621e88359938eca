// SPDX-License-Identifier: Apache-2.0
// Random programs on the dependency engine, compared with a sequential interpreter.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/dependency_engine.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kPrograms = 10'000;  // for each engine
#else
constexpr int kPrograms = 26'000;  // for each engine
#endif

// One statement: an operation, or a wait for a variable.
struct Statement {
  enum class Kind { kOperation, kFails, kWait } kind;
  std::vector<int> reads, writes;  // kWait: reads[0]
  uint64_t number;
  bool prepared, prioritized, copies;
};

using Program = std::vector<Statement>;

Program RandomProgram(std::mt19937_64& random, int variables) {
  Program program(1 + random() % 12);
  for (Statement& s : program) {
    const uint64_t dice = random() % 16;
    s.kind = dice == 0 ? Statement::Kind::kWait : dice == 1 ? Statement::Kind::kFails : Statement::Kind::kOperation;
    s.number = random();
    s.prepared = random() % 2;
    s.prioritized = random() % 8 == 0;
    s.copies = random() % 8 == 0;
    const auto any = [&] { return static_cast<int>(random() % static_cast<uint64_t>(variables)); };
    for (uint64_t i = random() % 4; i > 0; --i) s.reads.push_back(any());
    for (uint64_t i = random() % 3; i > 0; --i) s.writes.push_back(any());
    if (s.kind == Statement::Kind::kWait) s.reads = {any()};
  }
  return program;
}

// The values of an operation's variables before and after it.
uint64_t Mix(uint64_t value, uint64_t more) { return (value ^ more) * 0x9e3779b97f4a7c15u + 1; }
void Compute(const Statement& s, std::vector<uint64_t>& values) {
  uint64_t sum = s.number;
  for (int v : s.reads) sum = Mix(sum, values[static_cast<size_t>(v)]);
  for (int v : s.writes) values[static_cast<size_t>(v)] = Mix(values[static_cast<size_t>(v)], sum);
}

// The results of a program.
struct Outcome {
  std::vector<uint64_t> values;
  std::vector<uint64_t> versions;
  std::vector<std::string> waits;  // error texts
  bool failed = false;             // WaitForAll() returned an error
  std::vector<std::string> left;   // errors that the variables keep
  bool operator==(const Outcome&) const = default;
};

// Runs the program statement by statement. `possible` receives the errors that WaitForAll() may return.
Outcome Expected(const Program& program, int variables, std::set<std::string>& possible) {
  const auto count = static_cast<size_t>(variables);
  Outcome out = {std::vector<uint64_t>(count), std::vector<uint64_t>(count), {}, false, {}};
  std::vector<std::string> errors(count);
  std::map<std::string, int> carriers;  // by error: number of variables that have it
  std::set<std::string> returned;       // by waits
  auto set = [&](int v, const std::string& error) {
    std::string& old = errors[static_cast<size_t>(v)];
    if (!old.empty()) --carriers[old];
    old = error;
    if (!old.empty()) ++carriers[old];
  };
  for (const Statement& s : program) {
    if (s.kind == Statement::Kind::kWait) {
      const int v = s.reads[0];
      const std::string error = errors[static_cast<size_t>(v)];
      out.waits.push_back(error);
      set(v, "");
      if (!error.empty()) returned.insert(error);
      continue;
    }
    const std::set<int> writes(s.writes.begin(), s.writes.end());
    std::string error;  // the first of the variables' errors: reads, then writes, in their order
    for (int v : s.reads) error = error.empty() && !writes.count(v) ? errors[static_cast<size_t>(v)] : error;
    for (int v : s.writes) error = error.empty() ? errors[static_cast<size_t>(v)] : error;
    if (error.empty() && s.kind == Statement::Kind::kFails) error = std::to_string(s.number);
    if (error.empty()) {
      Compute(s, out.values);
    } else {
      carriers.try_emplace(error, 0);
    }
    for (int v : writes) {
      ++out.versions[static_cast<size_t>(v)];
      if (!error.empty()) set(v, error);
    }
  }
  for (const auto& [error, number] : carriers) {
    if (number > 0 || !returned.count(error)) possible.insert(error);
  }
  out.failed = !possible.empty();
  out.left = errors;
  return out;
}

Outcome Got(DependencyEngine& engine, const Program& program, int variables, std::string& first) {
  const auto count = static_cast<size_t>(variables);
  Outcome out = {std::vector<uint64_t>(count), {}, {}, false, {}};
  std::vector<Variable> all;
  for (int v = 0; v < variables; ++v) all.push_back(DependencyEngine::NewVariable());
  std::vector<PreparedOperation> prepared;
  OperationGroup group;
  int64_t in_group = 0;
  for (const Statement& s : program) in_group += s.kind != Statement::Kind::kWait && s.prepared;
  group.Begin(in_group);
  for (const Statement& s : program) {
    if (s.kind == Statement::Kind::kWait) {
      out.waits.emplace_back(ErrorTitle(engine.WaitForVariable(all[static_cast<size_t>(s.reads[0])])));
      continue;
    }
    Operation operation;
    operation.run = [&s, &out] {
      if (s.kind == Statement::Kind::kFails) return Fail(errors::kKernelFailed, std::to_string(s.number));
      Compute(s, out.values);
      return absl::OkStatus();
    };
    for (int v : s.reads) operation.reads.push_back(all[static_cast<size_t>(v)]);
    for (int v : s.writes) operation.writes.push_back(all[static_cast<size_t>(v)]);
    operation.device = s.number % 3 ? "cpu0" : "cpu1";
    operation.work = s.copies ? Work::kCopy : Work::kCpu;
    operation.priority = static_cast<int>(s.number % 5);
    operation.prioritized = s.prioritized;
    if (!s.prepared) {
      engine.Push(std::move(operation));
      continue;
    }
    prepared.emplace_back(std::move(operation));
    engine.Push(prepared.back(), group, static_cast<int>(s.number % 5), s.prioritized);
  }
  group.Wait();
  const absl::Status all_status = engine.WaitForAll();
  out.failed = !all_status.ok();
  first = ErrorTitle(all_status);
  for (const Variable& v : all) {
    out.versions.push_back(DependencyEngine::Version(v));
    out.left.emplace_back(ErrorTitle(engine.WaitForVariable(v)));
  }
  (void)engine.WaitForAll();
  return out;
}

class RandomPrograms : public testing::TestWithParam<EngineOptions> {};

INSTANTIATE_TEST_SUITE_P(Engines, RandomPrograms,
                         testing::Values(EngineOptions{.kind = EngineKind::kNaive},
                                         EngineOptions{.kind = EngineKind::kThreaded, .pool_workers = 3},
                                         EngineOptions{.cpu_workers = 1, .priority_workers = 1, .gpu_copy_workers = 1},
                                         EngineOptions{.cpu_workers = 3, .priority_workers = 2, .gpu_copy_workers = 2}));

TEST_P(RandomPrograms, HaveTheResultsAndErrorsOfASequentialRun) {
  DependencyEngine engine(GetParam());
  std::mt19937_64 random(20);
  for (int i = 0; i < kPrograms; ++i) {
    const int variables = 1 + static_cast<int>(random() % 6);
    const Program program = RandomProgram(random, variables);
    std::set<std::string> possible;
    std::string first;
    const Outcome expected = Expected(program, variables, possible);
    const Outcome got = Got(engine, program, variables, first);
    ASSERT_EQ(got.values, expected.values) << "program " << i;
    ASSERT_EQ(got.versions, expected.versions) << "program " << i;
    ASSERT_EQ(got.waits, expected.waits) << "program " << i;
    ASSERT_EQ(got.left, expected.left) << "program " << i;
    ASSERT_EQ(got.failed, expected.failed) << "program " << i;
    ASSERT_TRUE(first.empty() || possible.count(first)) << "program " << i << ": " << first;
  }
}

}  // namespace
}  // namespace mge
