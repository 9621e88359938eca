// SPDX-License-Identifier: Apache-2.0
// The settings that choose kernels, in all combinations (core/env/kernel_choice.h).
#include "core/env/kernel_choice.h"

#include "core/plan/kernels/kernel_rules.h"
#include "fmt/format.h"
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

// Describes the choice of kernels in the words of core/env/kernel_choice.h.
std::string ChosenBy(const KernelRules& rules, const Device& device, bool tuned) {
  const int32_t mode = rules.ModeOn(device, tuned);
  const mge_constraints constraints = rules.ConstraintsOn(device, tuned);
  const bool measures = tuned || rules.may_measure;
  std::string out = rules.only_replayed          ? "the file of select.replay"
                    : mode != MGE_SELECT_PROFILE ? "estimates"
                    : measures                   ? "times"
                                                 : "stored times, else estimates";
  if (constraints.require & MGE_KERNEL_DETERMINISTIC) out += ", deterministic kernels only";
  if (constraints.workspace_limit != UINT64_MAX) out += ", within select.workspace_bytes";
  return out;
}

TEST(KernelChoice, EveryCombinationOfStrategyBackendModeAndAutotuneIsAsItsPageSays) {
  Folder folder;
  const std::string file = folder.At("replay");
  EXPECT_EQ(Host({Set("select.record", file)}).Chosen("input x : float32[?]\ny = Relu(x)\noutput y\n"), "slow");
  const std::pair<const char*, const char*> devices[] = {
      {"heuristic", "tuner0"}, {"profile", "tuner_profile0"}, {"reproducible", "tuner_repeats0"}};
  int combinations = 0;
  for (const auto& [mode, name] : devices) {
    for (const StrategyRow& row : kStrategyRows) {
      if (!row.mode.empty() && row.mode != mode) continue;
      for (const AutotuneRow& autotune : kAutotuneRows) {
        const bool reproducible = row.strategy.find("reproducible") != row.strategy.npos;
        std::vector<Assignment> settings;
        if (!row.strategy.empty()) settings.push_back(Set("select.strategy", std::string(row.strategy)));
        if (row.strategy == "profile_reproducible") settings.push_back(Set("select.replay", file));
        if (!autotune.number.empty()) settings.push_back(Set("MXNET_CUDNN_AUTOTUNE_DEFAULT", std::string(autotune.number)));
        Host host(settings);
        ASSERT_TRUE(host.status.ok()) << FormatError(host.status);
        const auto resolved = host.runtime->devices().Resolve(name, "test");
        ASSERT_TRUE(resolved.ok()) << FormatError(resolved.status());
        Device& device = *resolved->devices[0].device;
        const bool replay = host.runtime->plan_services()->selection.replay != nullptr;
        const auto rules = KernelRules::Of(*host.runtime->registry().snapshot(), std::vector<Device*>{&device}, replay);
        ASSERT_TRUE(rules.ok()) << FormatError(rules.status());
        const std::string where = fmt::format("{} on {}, autotune {}", row.strategy, name, autotune.autotune);
        EXPECT_EQ(ChosenBy(*rules, device, false), row.chosen_by) << where;
        std::string expected(reproducible ? autotune.reproducible : autotune.chosen_by);
        constexpr std::string_view kAsOthers = "as other kernels";
        if (expected.starts_with(kAsOthers)) expected.replace(0, kAsOthers.size(), row.chosen_by);
        EXPECT_EQ(ChosenBy(*rules, device, rules->gpu_convolutions.has_value()), expected) << where;
        ++combinations;
      }
    }
  }
  EXPECT_EQ(combinations, 3 * 6 * 4);
}

TEST(KernelChoice, AConvolutionOnAGpuTakesTheFastestKernelWithinTheWorkspaceLimitOrWithoutLimit) {
  // "tight" has the better estimate and no workspace; "roomy" is faster and needs 1 MiB.
  auto chosen = [](const char* autotune, const char* limit, int64_t* trials = nullptr) {
    Host host({Set("MXNET_CUDNN_AUTOTUNE_DEFAULT", autotune), Set("select.workspace_bytes", limit)}, "tuner_gpu0");
    host.record() = {};
    auto session = host.Make("input x : float32[1,1,8,8]\nconst w = float32[1,1,1,1]<2>\ny = Conv(x, w)\noutput y\n");
    if (!session.ok()) return FormatError(session.status());
    const std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {1, 1, 8, 8}}};
    auto plan = (*session)->PlanFor(types);
    if (trials) *trials = host.record().launches;
    return plan.ok() ? (*plan)->units[0].kernel : FormatError(plan.status());
  };
  int64_t trials = -1;
  EXPECT_EQ(chosen("0", "1GiB", &trials), "tight");
  EXPECT_EQ(trials, 0);
  EXPECT_EQ(chosen("1", "1GiB", &trials), "roomy");
  EXPECT_GT(trials, 0);
  EXPECT_EQ(chosen("1", "1MiB"), "roomy");
  EXPECT_EQ(chosen("1", "512KiB"), "tight");
  EXPECT_EQ(chosen("2", "512KiB"), "roomy");
}

}  // namespace
}  // namespace mge
