// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/pass.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/ops/rewrite.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kMaxRounds = 8;

constexpr Pass kPasses[] = {
    {"infer_types", "Gives every value its element type and as much of its shape as is known.", RunInferTypes},
    {"expand_functions", "Replaces function operators by their bodies, unless every device has a kernel.", ExpandFunctions},
    {"fold_constants", "Computes nodes that depend on constants only.", FoldConstants},
    {"remove_identities", "Removes nodes whose output equals their input.", RemoveIdentities},
    {"rewrite", "Replaces small patterns by cheaper equivalents (core/ops/rewrites).", RunRewrites},
    {"merge_transposes", "Merges consecutive transposes, and removes those that move nothing.", MergeTransposes},
    {"merge_equal", "Computes equal nodes once.", MergeEqualNodes},
    {"remove_dead", "Removes nodes whose outputs nothing reads.", RemoveDeadNodes},
};

}  // namespace

bool PassContext::Skips(std::string_view name) const { return std::find(skip.begin(), skip.end(), name) != skip.end(); }

std::span<const Pass> AllPasses() { return kPasses; }

absl::Status CheckSkippedNames(std::span<const std::string> names) {
  std::vector<std::string_view> known;
  for (const Pass& pass : kPasses) known.push_back(pass.name);
  for (const Rewrite* rewrite : AllRewrites()) known.push_back(rewrite->name);
  for (const std::string& name : names) {
    if (name.find('.') != std::string::npos || std::find(known.begin(), known.end(), name) != known.end()) continue;
    return Fail(errors::kBadSetting, fmt::format("plan.skip: '{}' is not a pass, rewrite or fusion", name),
                {.what = fmt::format("No pass or rewrite has this name.{}", DidYouMean(Nearest(name, known))),
                 .fix = "`mge plan MODEL --why` shows what is done; a backend's fusion is named with the backend, as in "
                        "cpu.elementwise_chain"});
  }
  return absl::OkStatus();
}

absl::Status RunPasses(Graph& graph, const PassContext& given, std::vector<std::string>* log) {
  std::vector<int> totals(std::size(kPasses), 0), rewrites(AllRewrites().size(), 0);
  int64_t unused = 0;
  PassContext context = given;
  context.rewrite_counts = &rewrites;
  bool waits = false;
  context.waits_for_round = &waits;
  if (!context.denied_bytes) context.denied_bytes = &unused;
  FoldLimits fold_limits = {.bytes = 4 * ConstantBytes(graph) + context.fold_bytes};
  context.fold_limits = &fold_limits;
  ProgressOfStage progress(context.progress, "optimize", std::size(kPasses));
  for (int round = 0; round < kMaxRounds; ++round) {
    int changes = 0;
    context.first_round = round == 0;
    *context.denied_bytes = 0;  // each round counts from zero, since it tries all of them again
    for (size_t i = 0; i < std::size(kPasses); ++i) {
      const Pass& pass = kPasses[i];
      if (context.first_round) progress.Advance();
      if (context.Skips(pass.name)) continue;
      MGE_RETURN_IF_ERROR(context.CheckStop());
      MGE_ASSIGN_OR_RETURN(int n, pass.run(graph, context));
      if (n == 0) continue;
      if (absl::Status s = VerifyGraph(graph); !s.ok()) {
        return Fail(errors::kInternal, fmt::format("pass {} left a broken graph", pass.name),
                    {.what = std::string(s.message())});
      }
      totals[i] += n;
      changes += n;
      if (context.trace) context.trace(context.trace_self, pass.name, n, graph);
    }
    if (changes == 0 && !(context.first_round && waits)) break;
  }
  for (size_t i = 0; log && i < std::size(kPasses); ++i) {
    if (totals[i]) log->push_back(fmt::format("{}: {} changes", kPasses[i].name, totals[i]));
  }
  for (size_t i = 0; log && i < rewrites.size(); ++i) {
    if (rewrites[i]) log->push_back(fmt::format("{}: {} changes", AllRewrites()[i]->name, rewrites[i]));
  }
  return graph.Compact();
}

}  // namespace mge
