// SPDX-License-Identifier: Apache-2.0
// bench_engine: nanoseconds of one operation of the dependency engine, from its push to its end.
//
// A chain: each operation reads the variable of the one before it and writes its own. Independent operations have a variable
// each. New operations are created and deleted by the push; prepared ones are pushed again and again.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "core/engine/dependency_engine.h"

namespace {

using mge::DependencyEngine;
using mge::Operation;
using mge::Variable;

constexpr int kOperations = 1 << 18;
constexpr int kRounds = 7;

Operation OperationAt(const std::vector<Variable>& variables, int i, bool chain) {
  Operation operation = {.run = [] { return absl::OkStatus(); }, .device = "cpu0"};
  operation.writes.push_back(variables[static_cast<size_t>(i)]);
  if (chain && i > 0) operation.reads.push_back(variables[static_cast<size_t>(i) - 1]);
  return operation;
}

// Returns the least time per operation of several rounds, because other work on the machine can only add time.
double NsPerOperation(mge::EngineOptions options, bool chain, bool prepared) {
  using Clock = std::chrono::steady_clock;
  DependencyEngine engine(std::move(options));
  std::vector<Variable> variables;
  for (int i = 0; i < kOperations; ++i) variables.push_back(DependencyEngine::NewVariable());
  std::vector<mge::PreparedOperation> all;
  for (int i = 0; i < kOperations && prepared; ++i) all.emplace_back(OperationAt(variables, i, chain));
  mge::OperationGroup group;
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    if (prepared) {
      group.Begin(kOperations);
      for (mge::PreparedOperation& operation : all) engine.Push(operation, group, 0, false);
      group.Wait();
    } else {
      for (int i = 0; i < kOperations; ++i) engine.Push(OperationAt(variables, i, chain));
      (void)engine.WaitForAll();
    }
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kOperations);
  }
  return best;
}

}  // namespace

int main() {
  std::printf("%-24s %-24s %10s %10s\n", "2^18 operations", "engine", "new", "prepared");
  const struct {
    const char* name;
    mge::EngineOptions options;
  } engines[] = {
      {"naive", {.kind = mge::EngineKind::kNaive}},
      {"per device, 1 worker", {.cpu_workers = 1}},
      {"per device, 2 workers", {.cpu_workers = 2}},
  };
  for (const bool chain : {true, false}) {
    for (const auto& engine : engines) {
      std::printf("%-24s %-24s %7.0f ns %7.0f ns\n", chain ? "chain" : "independent", engine.name,
                  NsPerOperation(engine.options, chain, false), NsPerOperation(engine.options, chain, true));
    }
  }
  return 0;
}
