// SPDX-License-Identifier: Apache-2.0
// The table of all settings of the core. To add one, declare it in the settings_*.h of its area and
// name it in the rows there.
//
//   if (snapshot->Get<kPlanInplace>()) ...   // a bool; the place in the snapshot is known to the
//   compiler
#pragma once

#include "core/env/setting.h"
#include "core/env/settings_compute.h"
#include "core/env/settings_engine.h"
#include "core/env/settings_plan.h"
#include "core/env/settings_runtime.h"
#include "core/env/settings_train.h"

namespace mge {

inline constexpr auto kSettings =
    JoinSettingRows(kRuntimeRows, kEngineRows, kPlanRows, kComputeRows, kTrainRows);

// The place of a setting in kSettings. Does not compile for a setting that is declared but not
// listed.
consteval size_t SettingIndex(std::string_view key) {
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (kSettings[i].key == key) return i;
  }
  throw "the setting is declared but not listed in the rows of its area";
}

// A variable that begins so and that no row knows is reported as a probable typo.
inline constexpr std::string_view kVariablePrefixes[] = {"MGE_", "MXNET_", "NNVM_", "MEGENGINE_",
                                                         "MGB_"};

// Variables with such a prefix that are no settings, and what reads them.
struct IgnoredVariable {
  std::string_view name;
  std::string_view reader;
};
inline constexpr IgnoredVariable kIgnoredVariables[] = {
    {"MGE_TEST_DATA", "the tests: a directory of data that is not in the repository"},
    {"MGE_TEST_UPDATE", "the tests: 1 writes generated files anew instead of comparing them"},
};

// The variable of a row: its own, else MGE_ and the key in capitals with `_` for dots.
std::string VariableOf(const SettingRow& row);

}  // namespace mge
