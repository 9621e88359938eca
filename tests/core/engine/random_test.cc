// SPDX-License-Identifier: Apache-2.0
// Random operators that the host computes: new numbers in every run and every iteration of a loop, equal ones for equal seeds.
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/session_values.h"

namespace mge {
namespace {

// Returns the results of several runs of a new session. `run_seed` 0: the runs have no seed of their own.
std::vector<std::vector<float>> Runs(std::string_view text, int count, const std::string& seed = "0",
                                     uint64_t run_seed = 0) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.sources.call = {{"seed", seed}};
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  auto session = Session::Create(*runtime, {*ParseGraphText(text), {}}, {.device = "host"});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  HostValue x;
  x.tensor = *Tensor::Create(DType::kF32, {100});
  std::vector<std::vector<float>> out;
  for (int i = 0; i < count; ++i) {
    RunState run;
    run.seed = run_seed;
    auto result = ResultsOf(**session, {x}, run);
    EXPECT_TRUE(result.ok()) << FormatError(result.status());
    out.push_back(*std::move(result));
  }
  return out;
}

constexpr std::string_view kUniform = "input x : float32[N]\ny = RandomUniformLike(x)\noutput y\n";

TEST(RandomOnHost, DiffersInEveryRunAndRepeatsInANewSession) {
  const auto first = Runs(kUniform, 4);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 4u);
  EXPECT_EQ(Runs(kUniform, 4), first);
  EXPECT_NE(Runs(kUniform, 4, "1"), first);
}

TEST(RandomOnHost, RepeatsInRunsWithTheSameSeed) {
  const auto runs = Runs(kUniform, 3, "0", 7);
  EXPECT_EQ(std::set(runs.begin(), runs.end()).size(), 1u);
}

TEST(RandomOnHost, DiffersInEveryIterationOfALoop) {
  const auto runs = Runs(R"(
input x : float32[N]
const yes = bool[]<true>
const n = int64[]<3>
last, all = Loop(n, yes, x) {body=graph {
  input i : int64[]
  input c : bool[]
  input v : float32[N]
  k = Identity(c)
  r = RandomUniformLike(v)
  output k
  output r
  output r
}}
output all
)",
                         1);
  ASSERT_EQ(runs[0].size(), 300u);
  std::set<std::vector<float>> iterations;
  for (auto at = runs[0].begin(); at != runs[0].end(); at += 100) iterations.emplace(at, at + 100);
  EXPECT_EQ(iterations.size(), 3u);
}

}  // namespace
}  // namespace mge
